// Scores the rows of a table without quotes, whose last column is the label, by names and in their order. Prints
// how many of each class were taken for each. Usage: node table.mjs MODEL.js TABLE.csv
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { classes, columns, encode, inputs, logits, predict } = await import(pathToFileURL(process.argv[2]));
const [names, ...rows] = readFileSync(process.argv[3], "utf8").trimEnd().split("\n").map((line) => line.split(","));
const counts = classes.map(() => classes.map(() => 0));
for (const row of rows) {
  const label = row[row.length - 1];
  const features = encode(Object.fromEntries(names.map((name, i) => [name, row[i]])));
  assert.deepEqual(features, encode(columns.map(({ name }) => row[names.indexOf(name)])));
  assert.equal(features.length, inputs);
  counts[classes.indexOf(label)][predict(features).number]++;
}
console.log(JSON.stringify(counts));

assert.throws(() => encode([1]), /1 cells found/);
for (const number of ["1,5", "many", "0x10", Infinity]) {
  assert.throws(() => encode(columns.map(({ words }) => (words ? words[0] : number))), /found, a number expected/);
}
assert.throws(() => encode(columns.map(({ words }) => (words ? words[0] : "-1e39"))),
  /'-1e39' found, but float32 ends at 3.4e38/);

// What is no number is refused by its place, and NaN is the mean.
const features = Array(inputs).fill(1);
for (const [feature, said] of [[undefined, /^feature 2: undefined found, a number/], [null, /^feature 2: null found, a number/],
  ["abc", /^feature 2: 'abc' found, a number/], ["1", /^feature 2: '1' found, a number/], [1n, /^feature 2: 1 found, a number/],
  [-Infinity, /^feature 2: -Infinity found, but float32 ends/], [3.5e38, /^feature 2: 3.5e\+38 found, but float32 ends/]]) {
  assert.throws(() => predict(Object.assign([...features], { 2: feature })), { name: "TypeError", message: said });
}
assert.throws(() => logits("abc"), /3 features found/);
assert.notEqual(predict(Object.assign([...features], { 2: NaN })).label, undefined);
