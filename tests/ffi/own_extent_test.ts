/**
 * What a subclass or a property says of an array's memory is not believed: native code would leave the memory.
 */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { HostMemoryResource, MemoryBuffer, StridedMemoryView } from "../../mod.ts";
import { ownBuffer, ownLength, ownOffset, ownSize } from "../../src/ffi/own_extent.ts";
import { liars, lie, lies } from "../support/liars.ts";

for (const [what, make] of Object.entries(liars)) {
  test(`an array has the memory that the engine gives it, whatever ${what} may say`, () => {
    const liar = make();
    assertEquals([ownLength(liar), ownOffset(liar), ownBuffer(liar).byteLength], [8, 8, 16]);
    const buffer = new HostMemoryResource().allocate(8);
    buffer.fill(7);
    buffer.copyTo(liar);
    buffer.fill(3);
    buffer.copyFrom(liar);
    assertEquals([...buffer.bytes()], Array(8).fill(7));
    buffer.close();
    assertThrows(() => StridedMemoryView.fromTypedArray(liar), RangeError, "expected integers within");
  });
}

test("DataViews and ArrayBuffers have theirs, and no view is made of an array that says it is longer", () => {
  const data = Object.defineProperties(new DataView(new ArrayBuffer(16), 4, 8), lies);
  assertEquals([ownLength(data), ownOffset(data), ownBuffer(data).byteLength], [8, 4, 16]);
  const memory = Object.defineProperty(new ArrayBuffer(8), "byteLength", { value: lie });
  assertEquals(ownSize(memory), 8);
  assertEquals(MemoryBuffer.fromArrayBuffer(memory).size, 8);
  const both = Object.defineProperties(new Float32Array(memory), {
    length: { value: lie / 4 },
    byteLength: { value: lie },
  });
  assertThrows(() => StridedMemoryView.fromTypedArray(both), RangeError, "expected integers within 8 bytes");
  for (const name of ["length", "byteLength"]) {
    const array = Object.defineProperty(new Float32Array(4), name, { value: lie });
    assertThrows(() => StridedMemoryView.fromTypedArray(array), TypeError, "length is overridden");
  }
});
