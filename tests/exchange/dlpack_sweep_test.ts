/** Exports that were released are given back although nobody asks for them, allocates, or waits. */
import { assert } from "@std/assert";
import { test } from "node:test";
import { MemoryBuffer, StridedMemoryView } from "../../mod.ts";

test("a thousand exports that nobody looks at again do not pile up", () => {
  let freed = 0;
  for (let i = 0; i < 1000; i++) {
    // Memory from nowhere: no allocation of ours, which would look after released exports.
    const owner = new Uint8Array(new ArrayBuffer(64));
    const { ptr } = StridedMemoryView.fromTypedArray(owner);
    const free = () => void freed++;
    const buffer = MemoryBuffer.fromAllocation({ ptr, size: 64, device: null, stream: null, owner, free });
    const tensor = StridedMemoryView.fromBuffer(buffer, { shape: [64], dtype: "uint8" }).toDlpack();
    buffer.close();
    tensor.close(); // calls the deleter, which can only leave a mark
  }
  assert(freed >= 1000 - 128, `${freed} of 1000 were given back`);
});
