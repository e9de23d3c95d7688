/** What a message costs on the JavaScript heap: a program that sends millions of them pays for it in collections. */
import { assert } from "@std/assert";
import { test } from "node:test";
import { isBun, patiently, runScriptForJson } from "../support/child.ts";

/**
 * The most that a message may cost, sent and received: in Deno bytes, in Bun cells. In place that is the object which
 * the receive returns, 40 bytes in V8; its tag is the requested one, and a new bigint, 40 bytes, only where several
 * match. Awaited it is that, two promises, and their resolvers. The count itself costs a tenth of a cell.
 */
const most: Readonly<Record<string, number>> = isBun
  ? {
    "in place": 1.2,
    "in place, by tag": 1.2,
    "in place, by some bits of a tag": 2.2,
    "awaited": 8,
    "polled": 0.2,
  }
  : {
    "in place": 60, // 42 to 52 measured
    "in place, by tag": 60,
    "in place, by some bits of a tag": 95,
    "awaited": 850,
    "polled": 8,
  };

test("a message takes no more of the heap than the objects returned to the program", patiently, async () => {
  const script = new URL("./allocations_child.ts", import.meta.url);
  const took = await runScriptForJson(script, { env: { UCX_LOG_LEVEL: "fatal" } });
  for (const [how, bound] of Object.entries(most)) {
    const heap: unknown = Reflect.get(Object(took), how);
    assert(typeof heap === "number" && heap <= bound, `${how}: ${heap} of at most ${bound}`);
  }
});
