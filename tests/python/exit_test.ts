// OpenBLAS waits for its threads at exit, whose work belongs to a call: of 24 processes that exited meanwhile 12 stood
// still in Deno. Bun does not run what the C library would at exit.
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { isBun, patiently, runScript } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const [title, { skip }] = needs(
  typeof found === "string" ? found : null,
  "a process that exits while calls are made ends at once, any other as always",
);

test(title, { skip, ...patiently }, async () => {
  const script = new URL("./exit_child.ts", import.meta.url);
  const env = { CAUSEWAY_PYTHON: typeof found === "string" ? "" : found.executable };
  const cases = ["exit", "throw"].flatMap((way) => [true, false].map((isBusy) => ({ way, isBusy })));
  const ends = await Promise.all(cases.map(async ({ way, isBusy }) => {
    const { code, signal } = await runScript(script, { args: [way, `${isBusy}`], env });
    return { way, isBusy, end: signal ?? code };
  }));
  const expected = cases.map((one) => ({
    ...one,
    end: !one.isBusy && !isBun ? "SIGABRT" : one.way === "throw" ? 1 : 7,
  }));
  assertEquals(ends, expected);
});
