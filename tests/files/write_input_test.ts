/** What a program without types gives to be written: found by typing what NumPy's `save` takes. */
import { assertEquals, assertRejects } from "@std/assert";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { StridedMemoryView, writeNpy, writeNpz } from "../../mod.ts";
import { scratchFolder } from "../support/scratch.ts";

const view = StridedMemoryView.arange(3);
const wrong: readonly (readonly [unknown, string])[] = [
  [[1, 2], "an array"],
  [new Float32Array(2), "an instance of Float32Array"],
  ["x.npy", "string"],
  [undefined, "undefined"],
  [null, "object"],
];

test("what is no view is refused by its kind, with what makes one, and no file is made", async () => {
  for (const [value, kind] of wrong) {
    const path = join(scratchFolder(), "x.npy");
    const message = `expected a StridedMemoryView, behind the path in writeNpy(path, view), got ${kind}.`;
    await assertRejects(() => writeNpy(path, value as StridedMemoryView), TypeError, message);
    await assertRejects(() => writeNpz(path, { value: value as StridedMemoryView }), TypeError, message);
    assertEquals(existsSync(path), false);
  }
  await assertRejects(() => writeNpy(view as never, "x.npy" as never), TypeError, "got string");
});
