// A headless Chromium, driven by chromium-driver as the W3C's WebDriver protocol says.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

// Nothing but the page: no first-run windows, and no services that would look for updates.
const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
  "--window-size=1000,800"];

/** Starts the driver on a port that the system chooses, and resolves to that port. */
function portOf(driver) {
  return new Promise((resolve, reject) => {
    let said = "";
    driver.stdout.on("data", (text) => {
      said += text;
      const found = /started successfully on port (\d+)/.exec(said);
      if (found) resolve(found[1]);
    });
    driver.on("error", reject);
    driver.on("exit", () => reject(new Error(`chromedriver ended: ${said}`)));
  });
}

/** Calls body(browser) with a new browser, which is closed afterwards. */
export async function withBrowser(body, moreFlags = []) {
  const profile = await mkdtemp(join(tmpdir(), "tritgrad-browser-"));
  const driver = spawn("chromedriver", ["--port=0"], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const root = `http://127.0.0.1:${await portOf(driver)}`;
    const call = async (path, content, method = "POST") => {
      const answer = await fetch(`${root}/session${path}`, { method, body: content && JSON.stringify(content) });
      const { value } = await answer.json();
      if (!answer.ok) throw new Error(`${path}: ${value.message}`);
      return value;
    };
    const { sessionId } = await call("", { capabilities: { alwaysMatch: {
      browserName: "chrome",
      "goog:chromeOptions": { args: [...flags, ...moreFlags, `--user-data-dir=${profile}`] },
      "goog:loggingPrefs": { browser: "ALL", performance: "ALL" },
    } } });
    try {
      await body(new Browser((path, ...rest) => call(`/${sessionId}${path}`, ...rest)));
    } finally {
      await call(`/${sessionId}`, undefined, "DELETE");
    }
  } finally {
    driver.kill();
    await rm(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

class Browser {
  constructor(call) {
    this.call = call;
  }

  open(url) {
    return this.call("/url", { url });
  }

  /** Runs the text of a function within the page and returns what it returns. */
  run(script, ...args) {
    return this.call("/execute/sync", { script, args });
  }

  /** Waits for the next frames, in which pages show what has changed. */
  settle() {
    return this.call("/execute/async", {
      script: "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));",
      args: [],
    });
  }

  /** Draws strokes, lists of places [x, y] of 0 to 1 within an element, with a pointer. */
  async draw(selector, strokes, pointerType = "mouse") {
    const box = await this.run(`const { x, y, width, height } = document.querySelector(arguments[0])
      .getBoundingClientRect(); return { x, y, width, height };`, selector);
    const move = ([x, y]) => ({ type: "pointerMove", duration: 5, origin: "viewport",
      x: Math.round(box.x + x * box.width), y: Math.round(box.y + y * box.height) });
    const actions = strokes.flatMap(([first, ...others]) => [move(first), { type: "pointerDown", button: 0 },
      ...others.map(move), { type: "pointerUp", button: 0 }]);
    await this.call("/actions", { actions: [{ type: "pointer", id: "pen", parameters: { pointerType }, actions }] });
    await this.settle();
  }

  async screenshot() {
    return Buffer.from(await this.call("/screenshot", undefined, "GET"), "base64");
  }

  /** Checks that the page said nothing to the console and asked for nothing but itself. */
  async checkQuiet(url) {
    assert.deepEqual(await this.call("/se/log", { type: "browser" }), []);
    const asked = (await this.call("/se/log", { type: "performance" }))
      .map(({ message }) => JSON.parse(message).message)
      .filter(({ method, params }) => method === "Network.requestWillBeSent" && params.documentURL === url)
      .map(({ params }) => params.request.url);
    assert.deepEqual(asked.filter((each) => !each.startsWith("data:")), [url]);
  }
}
