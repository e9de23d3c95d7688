/** Of a program that `deno run --watch` loads again, the functions that Python still has can be called: they fail. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { isBun, patiently } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";
import { reloaded } from "../support/reloads.ts";

const python = new URL("../../src/python/mod.ts", import.meta.url).href;
const found = findPython();
const missing = typeof found === "string" ? found : isBun ? "Bun starts another process" : null;
const home = typeof found === "string" ? "" : found.executable;

const scene = `
import asyncio, threading
is_cancelled = threading.Event()
async def never():
    try: await asyncio.sleep(1e9)
    finally: is_cancelled.set()
def outcome(function):
    try: return function(1)
    except RuntimeError as error: return str(error)
def ask(function):
    def run(): answer.append(outcome(function))
    global thread, answer
    thread, answer = threading.Thread(target=run), []
    thread.start()
`;

// In Deno 2.9.6 the process ended with SIGSEGV; on another thread the call waited for ever. Asyncio's loop went on.
const title =
  "a function of modules that were given up is an error in Python, on any thread, and coroutines are cancelled";
const [name, { skip }] = needs(missing, title);
test(name, { skip, ...patiently }, async () => {
  const { lines, signal } = await reloaded((version) =>
    `import { Python } from "${python}";
const py = Python.open({ home: ${JSON.stringify(home)} });
const main = py.import("__main__");
if ("kept" in main) {
  const here = main.outcome(main.kept);
  const there = await py.async(main.outcome)(main.kept);
  await py.async(main.thread.join)();
  console.log(${version}, [here, there, ...main.answer].join(), await py.async(main.is_cancelled.wait)(60));
  main.is_cancelled.clear();
} else {
  py.run(${JSON.stringify(scene)});
  console.log(${version});
}
py.async(main.never)().catch(() => {});
main.kept = (x) => x;
await py.async(main.outcome)(main.kept);
addEventListener("unload", () => main.ask(main.kept)); // which waits for an answer
setInterval(() => {}, 1000);
`
  );
  assertEquals(signal, null, lines.join("\n"));
  const ended = "JavaScript has ended: its functions cannot be called any more";
  assertEquals(lines, ["0", ...[1, 2].map((n) => `${n} ${ended},${ended},${ended} true`)]);
});
