// Draws all strokes of strokes.mjs on exported pages, and prints a table of what each page takes them for.
// Usage: node strokes_taken.mjs PAGE.html...
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { withBrowser } from "./browser.mjs";
import { digits, variants } from "./strokes.mjs";

const pages = process.argv.slice(2);
const drawn = [...Object.entries(digits).map(([digit, strokes]) => [digit, "", strokes]), ...variants];
const rows = drawn.map(([digit, how]) => [how ? `${digit}, ${how}` : digit]);
await withBrowser(async (browser) => {
  for (const page of pages) {
    await browser.open(pathToFileURL(resolve(page)).href);
    for (const [i, [, , strokes]] of drawn.entries()) {
      await browser.click("#clear");
      await browser.draw("#pad", strokes);
      rows[i].push(await browser.run(`const text = (selector) => document.querySelector(selector).textContent;
        return text("#answer") + ", " + text("#bars .best .share");`));
    }
  }
});
for (const row of [["strokes", ...pages.map((page) => basename(page))], pages.reduce((line) => [...line, "---"], ["---"]), ...rows]) {
  console.log(`| ${row.join(" | ")} |`);
}
