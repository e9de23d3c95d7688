/**
 * `causeway/layout` as published, in a browser: the examples of its documentation behave there as they do here. The
 * browser is the distribution's Chromium, headless.
 */
import { assert, assertEquals } from "@std/assert";
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { basename, join } from "node:path";
import { patiently } from "../support/child.ts";
import { layoutExamples, toProgram } from "../support/layout_examples.ts";
import { needs } from "../support/needs.ts";
import { testOnce } from "../support/once.ts";
import { scratchFolder } from "../support/scratch.ts";
import { installed } from "./installed.ts";

const chromium = ["chromium", "chromium-browser", "google-chrome"]
  .find((program) => spawnSync(program, ["--version"]).status === 0);
const missing = chromium === undefined ? "no Chromium: apt-get install chromium" : null;

const places = { layout: "/layout.js", assert: "/assert.js" };
const wrong = {
  where: "wrong on purpose",
  code: 'import { slice } from "@causeway/causeway/layout";\nslice(1).start; // 2\n',
};
const examples = [...layoutExamples(), wrong];

/** The part of node:assert that the examples use. */
const assertModule = `
  let count = 0;
  export const counted = () => count;
  function equal(a, b) {
    if (Object.is(a, b)) return true;
    if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
    const keys = Object.keys(a);
    return Object.getPrototypeOf(a) === Object.getPrototypeOf(b) && keys.length === Object.keys(b).length &&
      keys.every((key) => Object.hasOwn(b, key) && equal(a[key], b[key]));
  }
  export default {
    deepStrictEqual(actual, expected) {
      count++;
      if (!equal(actual, expected)) throw new Error("not equal");
    },
    throws(act, isRight) {
      count++;
      let thrown;
      try { act(); } catch (error) { thrown = error; }
      if (thrown === undefined || !isRight(thrown)) throw new Error("threw " + thrown);
    },
  };`;

/** Sends its findings to the server: Chromium would print the page once loaded, with its scripts still running. */
const page = `<!doctype html><title>causeway/layout</title><script type="module">
  import { counted } from "/assert.js";
  const failed = {};
  for (let i = 0; i < ${examples.length}; i++) {
    try { await import("/example" + i + ".js"); } catch (error) { failed[i] = String(error); }
  }
  const body = JSON.stringify({ counted: counted(), failed, runtime: [typeof process, typeof Deno, typeof Bun] });
  await fetch("/report", { method: "POST", body });
</script>`;

/** The text of a file that the page loads. */
function textOf(path: string): string | null {
  if (path === "/") return page;
  if (path === places.assert) return assertModule;
  const example = examples[Number(/^\/example(?<number>\d+)\.js$/.exec(path)?.groups?.["number"] ?? -1)];
  if (example !== undefined) return toProgram(example.code, places);
  if (!path.endsWith(".js")) return null;
  return readFileSync(join(installed().project, "node_modules/causeway/dist", basename(path)), "utf8");
}

/** Opens a page until it has sent its report. */
async function reportOf(url: string, report: Promise<string>): Promise<string> {
  const args = ["--headless", "--no-sandbox", "--disable-gpu", `--user-data-dir=${scratchFolder()}`, url];
  const child = spawn(chromium ?? "", args, { stdio: "ignore", timeout: 120_000 });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  try {
    return await Promise.race([report, ended.then(() => Promise.reject(new Error("Chromium ended without a report")))]);
  } finally {
    child.kill();
    await ended;
  }
}

const [title, { skip }] = needs(missing, "layouts and dtypes do in a browser what their documentation says");
testOnce(title, { skip, ...patiently }, async () => {
  installed();
  const { promise, resolve } = Promise.withResolvers<string>();
  const server = createServer((request, response) => {
    const { url = "" } = request;
    if (request.method === "POST") {
      let body = "";
      request.setEncoding("utf8").on("data", (text: string) => body += text).once("end", () => resolve(body));
    }
    const text = request.method === "POST" ? "" : textOf(url);
    response.statusCode = text === null ? 404 : 200;
    response.setHeader("content-type", url === "/" ? "text/html" : "text/javascript");
    response.end(text ?? "");
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", () => listening()));
  try {
    const { port } = server.address() as AddressInfo; // the server listens at an address
    const { counted, failed, runtime } = JSON.parse(await reportOf(`http://127.0.0.1:${port}/`, promise));
    assertEquals(failed, { [examples.indexOf(wrong)]: "Error: not equal" });
    assert(counted > 100, `${counted} comparisons`);
    assertEquals(runtime, ["undefined", "undefined", "undefined"]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
