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

const ended = "JavaScript has ended: its functions cannot be called any more";

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

/** Asks until the answer is an error, which is printed. */
const asking = `
import time
def begin(function):
    def run():
        while (answer := outcome(function)) == 1: time.sleep(0.01)
        print(1, answer, flush=True)
    threading.Thread(target=run, daemon=True).start()
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
  assertEquals(lines, ["0", ...[1, 2].map((n) => `${n} ${ended},${ended},${ended} true`)]);
});

// Deno dispatches no "unload" then: the process ended with SIGABRT or SIGSEGV.
const failed = "so is one of a program that has failed";
const [failedName, options] = needs(missing, failed);
test(failedName, { ...options, ...patiently }, async () => {
  const { lines, signal } = await reloaded((version) =>
    `import { Python } from "${python}";
const py = Python.open({ home: ${JSON.stringify(home)} });
const main = py.import("__main__");
py.run(${JSON.stringify(scene)});
const asked = "kept" in main ? [main.outcome(main.kept), await py.async(main.outcome)(main.kept)] : [];
main.kept = (x) => x;
await py.async(main.outcome)(main.kept);
console.log([${version}, ...asked].join(" "));
throw new Error("failed");
`
  );
  assertEquals(signal, null, lines.join("\n"));
  assertEquals(lines, ["0", ...[1, 2].map((n) => `${n} ${ended} ${ended}`)]);
});

// It waited until Python was opened again.
const [elsewhereName, elsewhere] = needs(
  missing,
  "so it is on a thread of Python's if the new program does not open it",
);
test(elsewhereName, { ...elsewhere, ...patiently }, async () => {
  const { lines } = await reloaded((version) =>
    version > 0 ? `if (${version === 2}) console.log("2 ended");` : `import { Python } from "${python}";
const py = Python.open({ home: ${JSON.stringify(home)} });
const main = py.import("__main__");
py.run(${JSON.stringify(scene + asking)});
main.begin((x) => x);
console.log(0);
setInterval(() => {}, 1000);
`
  );
  assertEquals(lines, ["0", `1 ${ended}`, "2 ended"]);
});
