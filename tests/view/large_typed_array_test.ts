/** Large typed arrays start in memory with undefined content: all of it is written. */
import { assert } from "@std/assert";
import { test } from "node:test";
import { slice, StridedMemoryView } from "../../mod.ts";
import { unwrittenArrayBuffer } from "../../src/native/huge_pages.ts";
import { collectGarbage } from "../support/collect.ts";
import { check, fc } from "../support/property.ts";

const side = 2200; // a square of this side, or 7/8 of it, exceeds 4 MiB

/** Leaves nonzero memory behind. */
async function leaveOnes(): Promise<void> {
  for (let i = 0; i < 3; i++) new Uint8Array(unwrittenArrayBuffer(side * side)).fill(0xff);
  await collectGarbage();
}

/** Where the elements of a view of the square come from. */
interface Look {
  readonly isTransposed: boolean;
  readonly isReversed: boolean;
  readonly isRepeated: boolean;
  readonly from: number;
}

const looks: fc.Arbitrary<Look> = fc.record({
  isTransposed: fc.boolean(),
  isReversed: fc.boolean(),
  isRepeated: fc.boolean(),
  from: fc.nat(side >> 3),
});

test("a large typed array has the elements, and nothing that its memory held before, in any layout", async () => {
  const square = new Uint8Array(side * side).map((_, i) => i % 251);
  const there = StridedMemoryView.fromTypedArray(square, { shape: [side, side] });
  await check(
    fc.asyncProperty(looks, async ({ isTransposed, isReversed, isRepeated, from }) => {
      let view: StridedMemoryView = there;
      if (isTransposed) view = view.permuted([1, 0]);
      view = view.sliced(isReversed ? slice(null, null, -1) : slice(from, null));
      if (isRepeated) view = view.sliced(slice(0, 1)).broadcastTo([side, side]);
      await leaveOnes();
      const array = await view.toTypedArray();
      const [rows = 0, columns = 0] = view.shape;
      assert(array.length === rows * columns);
      let right = 0; // elements, up to the first that is wrong; a loop, for it looks at 39 million
      for (; right < array.length; right++) {
        const [row, column] = [isRepeated ? 0 : Math.floor(right / columns), right % columns];
        const index = isReversed ? side - 1 - row : from + row;
        if (array[right] !== (isTransposed ? column * side + index : index * side + column) % 251) break;
      }
      assert(right === array.length, `element ${right} of ${view.shape}`);
    }),
    4,
  );
});
