// Draws a digit of strokes.mjs on an exported page, says what the page takes it for, and keeps a picture of the page.
// Usage: node picture.mjs PAGE.html DIGIT PICTURE.png [CHROMIUM-FLAG...]
import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { withBrowser } from "./browser.mjs";
import { digits } from "./strokes.mjs";

const [page, digit, picture, ...flags] = process.argv.slice(2);
if (digits[digit] === undefined || picture === undefined) {
  console.error(`picture: digit '${digit}' and picture '${picture}' found, but wanted are one of ` +
    `${Object.keys(digits).join(", ")}, whose strokes are in strokes.mjs, and the name of a PNG file`);
  process.exit(2);
}
await withBrowser(async (browser) => {
  await browser.open(pathToFileURL(resolve(page)).href);
  await browser.draw("#pad", digits[digit]);
  console.log(`${digit} is taken for ${await browser.run(`return document.getElementById("answer").textContent`)}`);
  await writeFile(picture, await browser.screenshot());
}, flags);
