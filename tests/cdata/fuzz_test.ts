/** Malformed Arrow structs, tried in a separate process, so that a crash is recognized as one. */
import { assert } from "@std/assert";
import { test } from "node:test";
import { patiently } from "../support/child.ts";
import { scaled } from "../support/property.ts";
import { runFuzz } from "../support/fuzz.ts";

test(
  "malformed Arrow structs are refused before anything is read that they do not vouch for",
  patiently,
  async () => {
    const tally = await runFuzz(new URL("fuzz_child.ts", import.meta.url));
    const { nothing = 0, ...broken } = tally;
    const refused = Object.values(broken).reduce((sum, count) => sum + count, 0);
    assert(refused >= scaled(6000), JSON.stringify(tally));
    // Every way to break an array must have been tried often, and valid arrays too.
    for (const [how, count] of Object.entries(tally)) assert(count >= scaled(3), `${how}: ${count}`);
    assert(nothing > 0 && Object.keys(broken).length >= 34, JSON.stringify(tally));
  },
);
