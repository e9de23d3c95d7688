/** Malformed tensors, tried in a separate process, so that a crash is recognized as one. */
import { assert } from "@std/assert";
import { test } from "node:test";
import { patiently } from "../support/child.ts";
import { scaled } from "../support/property.ts";
import { runFuzz } from "../support/fuzz.ts";

test(
  "malformed tensors are refused before anything is read that they do not vouch for, and nothing is taken",
  patiently,
  async () => {
    const { taken = 0, refused = 0, plain = 0 } = await runFuzz(new URL("fuzz_child.ts", import.meta.url));
    // Both sides of the boundary must have been covered.
    assert(
      refused >= scaled(8000) && taken > scaled(2000) && plain > scaled(2000),
      `${refused} ${taken} ${plain}`,
    );
  },
);
