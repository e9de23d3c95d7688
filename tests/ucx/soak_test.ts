/** Many messages of every kind between two processes: see `soak_child.ts`, which checks each of them. */
import { assert } from "@std/assert";
import { test } from "node:test";
import { patiently, runScriptForJson } from "../support/child.ts";
import { findPython } from "../support/python.ts";
import { check, fc, scaled } from "../support/property.ts";

/**
 * How much a process may grow after its warm-up, in bytes: a few of the largest messages, which allocators keep.
 * It is the same for more messages, so that a long run finds small leaks.
 */
const limit = 48 << 20;

const python = findPython("numpy"); // without it JavaScript's arrays stand in for NumPy's

for (const tls of [undefined, "tcp"]) {
  const messages = Math.max(25_000, scaled(25_000)); // 100,000 over both settings in both runtimes, at least
  test(
    `${messages} messages of any kind and size all arrive once, whole and in order, and memory stays flat: UCX_TLS ${
      tls ?? "unset"
    }`,
    { timeout: Math.max(patiently.timeout, messages) },
    async () => {
      const run = async (seed: number) => {
        const script = new URL("./soak_child.ts", import.meta.url);
        const args = ["first", `${seed}`, `${messages}`, typeof python === "string" ? "" : python.executable];
        const grown = await runScriptForJson(script, { args, env: { UCX_TLS: tls }, timeout: 60_000 + messages });
        for (const bytes of Object.values(grown as Record<string, number>)) { // the script's output
          assert(bytes < limit, `grown by ${JSON.stringify(grown)} bytes`);
        }
      };
      await check(fc.asyncProperty(fc.nat(1_000_000), run), 1e-9, { endOnFailure: true }); // once
    },
  );
}
