// Prints what logits.c prints, of the module MODEL. Usage: node logits.mjs MODEL.js <ROWS.csv
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { inputs, logits, predict } = await import(pathToFileURL(process.argv[2]));
// No data of these models missed a cell.
assert.throws(() => logits(Array(inputs).fill(NaN)), { name: "TypeError", message: /^feature 0: NaN found/ });
for (const line of readFileSync(0, "utf8").trimEnd().split("\n")) {
  const features = line.split(",").map(Number);
  const bits = new Uint32Array(logits(features).buffer);
  const { number, label } = predict(features);
  console.log(`${Array.from(bits, (each) => each.toString(16).padStart(8, "0")).join(" ")} ${number} ${label}`);
}
