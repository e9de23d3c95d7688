/** What a runtime prints of an uncaught Python error: Python's frames and the program's. */
import { assert, assertEquals } from "@std/assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { isBun, patiently, runScript } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const child = new URL("./uncaught_child.ts", import.meta.url);
const lastLine = readFileSync(child, "utf8").split("\n").findIndex((line) => line.includes("// the last frame")) + 1;
const [title, { skip }] = needs(
  typeof found === "string" ? found : null,
  "an uncaught error is printed with the frames of Python, then those of the program",
);

test(title, { skip, ...patiently }, async () => {
  const env = { CAUSEWAY_PYTHON: typeof found === "string" ? "" : found.executable, NO_COLOR: "1" };
  const printed = async (way: string): Promise<string> => {
    const { code, stderr } = await runScript(child, { args: [way], env });
    assertEquals(code, 1, stderr);
    return stderr;
  };
  const division = "PythonError: ZeroDivisionError: division by zero";
  const expected: [string, string[]][] = [
    ["call", [division, "at fails (<string>:2", "program", "uncaught_child.ts:"]],
    // For an error thrown in a callback Bun prints only the place of the throw.
    ["timer", [division, ...(isBun ? [] : ["at fails (<string>:2"]), "program", "uncaught_child.ts:"]],
    ["thread", [division, "at fails (<string>:2", "at asynchronous (", "uncaught_child.ts:"]],
    ["coroutine", [division, "at fails (<string>:2", "at fails_later (<string>:4", "at asynchronous ("]],
    ["syntax", ["SyntaxError: invalid syntax (<string>, line 2)", "uncaught_child.ts:"]],
  ];
  for (const [way, parts] of expected) {
    const text = await printed(way);
    let at = 0;
    for (const part of parts) {
      const where = text.indexOf(part, at);
      assert(where >= at, `${way}: ${part} is missing in\n${text}`);
      at = where + part.length;
    }
    const isPlace = isBun && way === "timer";
    assert(isPlace || !/<causeway>|src\/python/.test(text), text);
    assert(way === "timer" || text.includes(`uncaught_child.ts:${lastLine}`), `the last frame is there:\n${text}`);
  }
});
