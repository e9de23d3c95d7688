/**
 * Exports of a Worker that has ended, and Python's lock when a Worker is ended within a call: in
 * separate processes, because a failure here ends them, or hangs them.
 */
import { assertEquals, assertMatch } from "@std/assert";
import { test } from "node:test";
import { patiently, runScriptForJson } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";
import { testOnce } from "../support/once.ts";
import { runtimes, startIn } from "../support/runtimes.ts";

const script = new URL("./worker_end_child.ts", import.meta.url);

/**
 * Runs a check with a random seed, which describes the Workers. Failures are not shrunk: each process is different.
 */
async function forSomeSeed(about: (seed: string) => Promise<void>): Promise<void> {
  await check(fc.asyncProperty(fc.nat(), (seed) => about(String(seed))), 1, { endOnFailure: true });
}

const refusal = /^ExchangeError: Cannot export the memory of a typed array from a Worker without a copy/;

for (const [packages, what] of [[[], "any library in C"], [["numpy"], "Python"]] as const) {
  const found = packages.length === 0 ? null : findPython(...packages);
  const missing = typeof found === "string" ? found : null;
  const home = found === null || typeof found === "string" ? [] : [found.executable];
  const [title, { skip }] = needs(missing, `a Worker's exports stay valid for ${what} when the Worker has ended`);
  test(title, { skip, ...patiently }, () =>
    forSomeSeed(async (seed) => {
      const workers = 3;
      const args = ["export", seed, String(workers), ...home];
      const { refused, ...rest } = await runScriptForJson(script, { args }) as Record<string, unknown>;
      assertEquals(rest, { right: workers * (packages.length === 0 ? 9 : 12), wrong: 0, inPlace: [true] });
      const [first = "", second = "none"] = refused as string[];
      assertMatch(first, refusal);
      assertMatch(second, packages.length === 0 ? /none/ : /read-only/); // no write is lost
    }));
}

const found = findPython();
const executable = typeof found === "string" ? "" : found.executable;
const noPython = typeof found === "string" ? found : null;
for (const runtime of runtimes) { // in both: only Bun skips `finally` blocks
  const [title, { skip }] = needs(
    noPython ?? runtime.missing,
    `Python answers when a Worker was ended in a call: ${runtime.name}`,
  );
  testOnce(title, { skip, ...patiently }, () =>
    forSomeSeed(async (seed) => {
      const workers = 8;
      const { printed } = startIn(runtime, script, ["call", seed, String(workers), executable]); // killed when it hangs
      assertEquals(JSON.parse(await printed), { right: workers });
    }));
}
