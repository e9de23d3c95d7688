/** Torch with host memory: its functions take our arrays in place and return theirs. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { patiently, runScriptForJson } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { findPythonOrSystem } from "../support/python.ts";

const found = findPythonOrSystem("torch");
const [title, { skip }] = needs(
  typeof found === "string" ? found : null,
  "functions of torch take views and return views",
);

test(title, { skip, ...patiently }, async () => {
  const env = { CAUSEWAY_PYTHON: typeof found === "string" ? "" : found.executable, VIRTUAL_ENV: undefined };
  assertEquals(await runScriptForJson(new URL("./torch_child.ts", import.meta.url), { env, timeout: 200_000 }), true);
});
