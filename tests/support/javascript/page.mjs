// Uses an exported page as a person would, and compares what it shows with what the module of the same network says.
// Usage: node page.mjs PAGE.html MODEL.js
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { withBrowser } from "./browser.mjs";
import { digits, variants } from "./strokes.mjs";

const [page, model] = process.argv.slice(2).map((path) => pathToFileURL(resolve(path)).href);
const { classes, columns, encode, image, inputs, predict } = await import(model);

/** What the page shows: the answer, and names and shares of all bars. */
async function shown(browser) {
  await browser.settle();
  return browser.run(`const texts = (selector) => Array.from(document.querySelectorAll(selector), (each) => each.textContent);
    return { answer: texts("#answer")[0], names: texts("#bars .name"), shares: texts("#bars .share") };`);
}

const share = (probability) => `${(100 * probability).toFixed(1)} %`;
/** Nothing is seen yet, and these words say what to do. */
const nothing = (answer) => ({ answer, names: classes, shares: classes.map(() => "") });
const drawFirst = nothing("Draw in the field: what the network takes it for appears here.");
const chooseFirst = nothing("Choose a picture: what the network takes it for appears here.");
const expected = (features) => {
  const { label, probabilities } = predict(features);
  return { answer: label, names: classes, shares: probabilities.map(share) };
};
const textOf = (browser, selector) => browser.run(`return document.querySelector(arguments[0]).textContent`, selector);
const isShown = (browser, selector) =>
  browser.run(`return document.querySelector(arguments[0]).getClientRects().length > 0`, selector);

/** Strokes in another size, about the middle of the field. */
const sized = (strokes, size) => strokes.map((stroke) => stroke.map((place) => place.map((x) => 0.5 + size * (x - 0.5))));

/** Every digit is taken for what it is, large and small, but an 8 and a 6, which docs/EXPORT_WEB.md tells. */
async function testDigits(browser) {
  const drawn = [...Object.entries(digits).map(([digit, strokes]) => [digit, "", strokes]), ...variants]
    .filter(([digit, how]) => digit !== "8" && how !== "a straight back");
  for (const [digit, how, strokes] of drawn) {
    for (const size of [1, 0.5]) {
      await browser.draw("#pad", sized(strokes, size));
      assert.equal((await shown(browser)).answer, digit, `${digit} ${how}, ${size}`);
      await browser.click("#clear");
    }
  }
}

/** Digits are drawn with a mouse and a finger, and cleared by the button and the key. */
async function testPad(browser) {
  assert.equal(await textOf(browser, "h1"), "Draw a digit");
  assert.deepEqual(await shown(browser), drawFirst);
  assert.ok(!await isShown(browser, "#seen"));
  await browser.draw("#pad", digits[0]);
  assert.equal((await shown(browser)).answer, "0");
  assert.ok(await isShown(browser, "#seen"));
  await browser.click("#clear");
  assert.deepEqual(await shown(browser), drawFirst);
  // A tap is a dot.
  await browser.draw("#pad", [[[0.5, 0.5]]]);
  assert.ok(classes.includes((await shown(browser)).answer));
  assert.deepEqual(await browser.run(`const pad = document.getElementById("pad");
    return [pad.getContext("2d").getImageData(pad.width / 2, pad.height / 2, 1, 1).data[3],
      document.getElementById("pad-hint").getClientRects().length];`), [255, 0]);
  await browser.click("#clear");
  await testDigits(browser);
  // A bar as thick as the 1 of the data, a quarter of its length.
  await browser.draw("#pad", [0.46, 0.54].map((x) => [[x, 0.2], [x, 0.8]]), "touch");
  assert.equal((await shown(browser)).answer, "1");
  const seen = await browser.run(`const seen = document.getElementById("seen");
    return Array.from(seen.getContext("2d").getImageData(0, 0, seen.width, seen.height).data);`);
  assert.equal(seen.length, 4 * inputs);
  // The bar is as high as the field and in its middle, and black on both sides.
  const [height, width] = image, at = (row, column) => seen[4 * (row * width + column)];
  for (let row = 0; row < height; row++) {
    assert.equal(at(row, 0), 0);
    assert.equal(at(row, width - 1), 0);
    assert.ok(at(row, width / 2) + at(row, width / 2 - 1) > 200);
  }
  await browser.type("body", "\uE00C"); // Escape
  assert.deepEqual(await shown(browser), drawFirst);
}

/** A file of a picture, left half and right half of one colour each, in the format BMP. */
function picture(width, height, left, right) {
  const file = Buffer.alloc(54 + 3 * width * height);
  file.write("BM");
  [[2, file.length], [10, 54], [14, 40], [18, width], [22, height]].forEach(([at, value]) => file.writeUInt32LE(value, at));
  [[26, 1], [28, 24]].forEach(([at, value]) => file.writeUInt16LE(value, at));
  for (let i = 0; i < width * height; i++) {
    file.set((i % width < width / 2 ? left : right).slice().reverse(), 54 + 3 * i);
  }
  return file;
}

/** The middle of a picture is seen as large as the field, and what is no picture is told. */
async function testPicture(browser) {
  const folder = dirname(resolve(process.argv[2])), [height, width, channels] = image;
  const left = [250, 20, 90], right = [10, 120, 240];
  await writeFile(join(folder, "p.bmp"), picture(8 * width, 4 * height, left, right));
  assert.deepEqual(await shown(browser), chooseFirst);
  assert.ok(!await isShown(browser, "#seen"));
  await browser.type("#file", join(folder, "p.bmp"));
  await browser.until(`return !document.querySelector("#answer").classList.contains("hint")`);
  const features = Array.from({ length: inputs }, (_, i) =>
    (Math.floor(i / channels) % width < width / 2 ? left : right)[i % channels]);
  assert.deepEqual(await shown(browser), expected(features));
  await browser.click("#clear");
  assert.deepEqual(await shown(browser), chooseFirst);
  await writeFile(join(folder, "none.png"), "no picture");
  await browser.type("#file", join(folder, "none.png"));
  await browser.until(`return !document.querySelector("#answer").classList.contains("hint")`);
  assert.match((await shown(browser)).answer, /'none.png' is no picture/);
}

/** Cells are chosen and typed, left out, and given as a line of text. */
async function testForm(browser) {
  const labels = await browser.run(`return Array.from(document.querySelectorAll("form label span"), (each) => each.textContent);`);
  assert.deepEqual(labels, columns.map(({ name }) => name));
  assert.ok(classes.includes((await shown(browser)).answer)); // of the means
  assert.match(await textOf(browser, "#note"), /^A typical row/);
  const cells = columns.map(({ words }, i) => (words ? words.at(-1) : String(20 + i)));
  for (const [i, { words }] of columns.entries()) {
    const field = `form label:nth-child(${i + 1}) ${words ? "select" : "input"}`;
    if (words) {
      await browser.click(`${field} option:last-child`);
    } else {
      await browser.clear(field);
      await browser.type(field, cells[i]);
    }
  }
  assert.deepEqual(await shown(browser), expected(encode(cells)));
  assert.ok(!await isShown(browser, "#note"));

  const place = columns.findIndex(({ words }) => !words), without = cells.map((cell, i) => (i === place ? "" : cell));
  await browser.clear(`form label:nth-child(${place + 1}) input`);
  assert.deepEqual(await shown(browser), expected(encode(without)));

  await browser.click("#paste summary");
  const quoted = cells.map((cell) => `"${cell.replaceAll('"', '""')}"`);
  await browser.clear("#row");
  await browser.type("#row", quoted.join(", "));
  assert.deepEqual(await shown(browser), expected(encode(cells)));
  await browser.type("#row", ", one more");
  assert.match((await shown(browser)).answer, /cells found/);
  assert.deepEqual((await shown(browser)).shares, nothing("").shares);

  const strange = cells.map((cell, i) => (columns[i].words ? `new${i}` : cell));
  await browser.clear("#row");
  await browser.type("#row", strange.join(", "));
  assert.deepEqual(await shown(browser), expected(encode(strange)));
  const told = await textOf(browser, "#note");
  columns.forEach(({ name, words }, i) => assert.equal(told.includes(`'new${i}' in '${name}'`), words !== undefined));
}

/** Rows of many columns are pasted, and of many classes the likeliest ten are shown, or all. */
async function testWide(browser) {
  const cells = columns.map((_, i) => String(i % 7)), { label, probabilities } = predict(encode(cells));
  await browser.clear("#row");
  await browser.type("#row", cells.join(", "));
  const order = classes.map((_, i) => i).sort((a, b) => probabilities[b] - probabilities[a] || a - b);
  // Of a long name both ends are shown.
  const nameOf = (i) => (classes[i].length > 56 ? `${classes[i].slice(0, 28)}…${classes[i].slice(-28)}` : classes[i]);
  for (const count of [10, classes.length, 10]) {
    assert.deepEqual(await shown(browser), { answer: label, names: order.slice(0, count).map(nameOf),
      shares: order.slice(0, count).map((i) => share(probabilities[i])) });
    await browser.click("#more");
  }
  assert.equal(await browser.run(`return document.querySelectorAll("form label").length`), 0);
  await browser.click("#order summary");
  assert.deepEqual(await browser.run(`return Array.from(document.querySelectorAll("#order li"), (each) => each.textContent)`),
    columns.map(({ name }) => name));
}

await withBrowser(async (browser) => {
  await browser.open(page);
  await (columns?.length > 64 ? testWide : columns ? testForm : image[2] === 1 ? testPad : testPicture)(browser);
  await browser.checkQuiet(page);
});
