/** Of some 210 runs of `deno test` with asyncio, which imports ssl, three crashed in or beside OpenSSL's cleanup. */
import { assertEquals } from "@std/assert";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { patiently, runScript } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const executable = typeof found === "string" ? "" : found.executable;
const modules = ["hashlib", "ssl"];

/** Why a module cannot tell whether OpenSSL cleans up, or null: in Python itself, it does. */
function missing(): string | null {
  if (typeof found === "string") return found;
  const script = fileURLToPath(new URL("./openssl.py", import.meta.url));
  const ends = modules.map((name) => spawnSync(executable, [script, name]).signal);
  return ends.every((signal) => signal === "SIGABRT") ? null : `this Python links OpenSSL in another way: ${ends}`;
}

const [title, { skip }] = needs(missing(), "OpenSSL does not clean up while the process exits");

test(title, { skip, ...patiently }, async () => {
  for (const name of modules) {
    const env = { CAUSEWAY_PYTHON: executable };
    const { code, signal, stdout, stderr } = await runScript(new URL("./openssl_child.ts", import.meta.url), {
      args: [name],
      env,
    });
    assertEquals([code, signal, stdout], [0, null, `${name} is imported\n`], stderr);
  }
});
