/** Signals that Python handles while JavaScript is not inside a call of Python. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { patiently, runScriptForJson } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const [title, { skip }] = needs(
  typeof found === "string" ? found : null,
  "what the handler of a signal raises is an uncaught error, and all calls are answered",
);

// As with signal.alarm(), or with Ctrl-C and default_int_handler: these calls and all later ones stayed pending. Of
// many signals at a time, some are handled while a function's answer goes to Python: it was lost.
test(title, { skip, ...patiently }, async () => {
  const env = { CAUSEWAY_PYTHON: typeof found === "string" ? "" : found.executable };
  assertEquals(await runScriptForJson(new URL("./signals_child.ts", import.meta.url), { env }), {
    results: [{ status: "fulfilled", value: null }, { status: "fulfilled", value: 6 }],
    later: 3,
    uncaught: ["TimeoutError: late"],
    asked: [6, "PythonError", "PythonError", "PythonError", 9],
    here: "PythonError: TimeoutError: late",
    slept: null,
  });
});
