/** The net below `close`: workers and contexts that are dropped are given back, and none that somebody waits for. */
import { assert } from "@std/assert";
import { test } from "node:test";
import { patiently, runScriptForJson } from "../support/child.ts";

const script = new URL("./dropped_child.ts", import.meta.url);

/** What the script prints. */
interface Result {
  readonly before: Readonly<Record<string, number>>;
  readonly most: Readonly<Record<string, number>>;
  readonly after: Readonly<Record<string, number>>;
}

/** Has glibc give back what was freed, so that what stays is not: it learns to keep what is as large as our messages. */
const frugal = { MALLOC_ARENA_MAX: "1", MALLOC_MMAP_THRESHOLD_: "65536", MALLOC_TRIM_THRESHOLD_: "65536" };

for (const what of ["workers", "contexts"]) {
  test(`100 ${what} that are dropped cost nothing any more: descriptors, threads and memory`, patiently, async () => {
    const options = {
      args: [what],
      gc: true,
      env: { ...frugal, CAUSEWAY_LEAKS: undefined, UCX_LOG_LEVEL: "fatal" },
      timeout: 240_000,
    };
    const { before, most, after } = await runScriptForJson(script, options) as Result; // what it prints
    for (const [kind, first = NaN] of Object.entries(before)) {
      assert((after[kind] ?? NaN) <= 1.1 * first, `${kind}: ${first}, at most ${most[kind]}, then ${after[kind]}`);
    }
  });
}
