/** Sub-byte types: padded, packed with lanes, packed without; elements and layouts. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { bytesBefore, bytesFrom, DType, MAX_SPAN_IN_BYTES, slice, StridedLayout } from "../../src/layout/mod.ts";
import { check, fc } from "../support/property.ts";
import { gridOf } from "../support/strided_oracle.ts";

const packedTypes = DType.all().filter((dtype) => dtype.isPacked);

/** Memory as bits, lowest bit of the first byte first, as DLPack packs them. */
function bitsOf(bytes: Uint8Array): number[] {
  return [...bytes].flatMap((byte) => Array.from({ length: 8 }, (_, bit) => (byte >>> bit) & 1));
}

function codeAt(bits: readonly number[], from: number, count: number): number {
  return bits.slice(from, from + count).reduce((code, bit, place) => code + bit * 2 ** place, 0);
}

test("every width below a byte has a packed and a padded type", () => {
  assertEquals(packedTypes.length, 7 + 7 + 1 + 3);
  for (const packed of packedTypes) {
    assertEquals(packed.itemsize, packed.bits / 8);
    assertEquals(packed.lanes, 1);
    assertEquals(packed.dlpack.padded, false);
    const padded = DType.from({ ...packed.dlpack, padded: true });
    assertEquals([padded.itemsize, padded.name], [1, packed.name.replace("_packed", "")]);
  }
});

test("a packed element is the bits at its place, and writing it leaves its neighbours alone", () => {
  const cases = fc.record({
    dtype: fc.constantFrom(...packedTypes),
    bytes: fc.uint8Array({ minLength: 4, maxLength: 8 }),
    place: fc.nat(),
    source: fc.nat(),
  });
  check(
    fc.property(cases, ({ dtype, bytes, place, source }) => {
      const { bits } = dtype;
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const count = Math.floor((bytes.length * 8) / bits);
      const [to, from] = [place % count, source % count];
      const before = bitsOf(bytes);
      // The same code in its own byte gives the value that the packed one should read as.
      const padded = DType.from({ ...dtype.dlpack, padded: true });
      const alone = new DataView(new Uint8Array([codeAt(before, from * bits, bits)]).buffer);
      const value = dtype.read(view, from * dtype.itemsize);
      assertEquals(value, padded.read(alone, 0));
      dtype.write(view, to * dtype.itemsize, value);
      padded.write(alone, 0, value);
      const expected = [...before];
      for (let bit = 0; bit < bits; bit++) expected[to * bits + bit] = (alone.getUint8(0) >>> bit) & 1;
      assertEquals(bitsOf(bytes), expected);
    }),
    6000,
  );
});

test("lanes of less than a byte lie bit by bit in an element of whole bytes", () => {
  const pair = DType.from("float4_e2m1fnx2");
  const view = new DataView(new ArrayBuffer(4));
  pair.write(view, 1, [0.5, -6]);
  assertEquals(view.getUint8(1), 0xf1); // the first lane in the low bits
  assertEquals(pair.read(view, 1), [0.5, -6]);
  const four = DType.from("float6_e3m2fnx4");
  assertEquals(four.itemsize, 3);
  four.write(view, 0, [1, -2, 0.0625, 28]);
  assertEquals(four.read(view, 0), [1, -2, 0.0625, 28]);
  assertEquals(
    bitsOf(new Uint8Array(view.buffer)).reduce((word, bit, place) => word + bit * 2 ** place, 0),
    0x0c | (0x30 << 6) | (0x01 << 12) | (0x1f << 18),
  );
  assertThrows(() => pair.write(view, 0, [1]), TypeError, "an array of 2 values for float4_e2m1fnx2, got (1,)");
  assertThrows(() => (pair as DType).write(view, 0, 1), TypeError, "an array of 2 values");
  assertThrows(
    () => DType.from("float4_e2m1fn" as string).write(view, 0, [1, 2]),
    TypeError,
    "one value for float4_e2m1fn",
  );
});

test("only packed types begin inside a byte", () => {
  const view = new DataView(new ArrayBuffer(4));
  assertThrows(() => DType.from("float4_e2m1fn").read(view, 0.5), RangeError, "a non-negative integer, got 0.5");
  assertThrows(() => DType.from("float32").read(view, 0.5), RangeError, "got 0.5");
  assertThrows(() => DType.from("int4_packed").read(view, 0.3), RangeError, "a non-negative multiple of 1/8, got 0.3");
  assertThrows(() => DType.from("int4_packed").read(view, -0.5), RangeError, "got -0.5");
  assertThrows(() => DType.from("int4_packed").read(view, 4), RangeError);
  assertThrows(() => DType.from("float6_e2m3fn_packed").write(view, 3.75, 1), RangeError);
});

test("a packed layout is cut at whole bytes, and says so otherwise", () => {
  const nibbles = StridedLayout.dense([4, 6], 0.5);
  assertEquals(nibbles.requiredSizeInBytes(), 12);
  assertEquals(nibbles.stridesInBytes, [3, 0.5]);
  const right = nibbles.sliced(slice(1), slice(2));
  assertEquals([right.sliceOffset, right.sliceOffsetInBytes], [8, 4]);
  assertThrows(() => nibbles.sliced(slice(), slice(1)), RangeError, "lies inside a byte. Slice at a multiple of 2");
  assertThrows(() => nibbles.sliced(0, 3), RangeError, "packed layout of 4-bit elements at element 3");
  assertThrows(() => StridedLayout.dense([9], 0.75).sliced(slice(2)), RangeError, "Slice at a multiple of 4");
  assertThrows(() => StridedLayout.dense([9], 0.125).sliced(slice(4)), RangeError, "Slice at a multiple of 8");
  // Rows of five nibbles: every second row begins inside a byte.
  const odd = StridedLayout.dense([4, 5], 0.5);
  assertThrows(() => odd.sliced(1), RangeError, "inside a byte");
  assertEquals(odd.sliced(2).sliceOffsetInBytes, 5);
  assertEquals(odd.requiredSizeInBytes(), 10);
  assertEquals(StridedLayout.dense([3, 5], 0.5).requiredSizeInBytes(), 8); // half a byte is unused
  // The slice is empty, so it has no start.
  assertEquals(nibbles.sliced(slice(4), slice(1)).sliceOffset, 0);
});

test("a packed layout repacks to bytes where its rows are whole bytes, and only there", () => {
  const nibbles = StridedLayout.dense([4, 6], 0.5);
  assertEquals(nibbles.repacked(1).shape, [4, 3]);
  assert(nibbles.repacked(1).repacked(0.5).equals(nibbles));
  assertEquals(nibbles.sliced(slice(1), slice(2)).repacked(1).sliceOffset, 4);
  assertThrows(() => StridedLayout.dense([4, 5], 0.5).repacked(1), RangeError, "extent 5 is not a multiple of 2");
  assertThrows(() => nibbles.permuted([1, 0]).repacked(1), RangeError, "its stride must be 1");
  assertThrows(() => nibbles.sliced(slice(), slice(null, null, 2)).repacked(1), RangeError, "its stride must be 1");
  assertEquals(StridedLayout.dense([2, 8], 0.75).repacked(3).shape, [2, 2]);
  assertThrows(() => StridedLayout.dense([2, 8], 0.75).repacked(1), RangeError, "number of bytes would change");
  assertEquals(nibbles.maxCompatibleItemsize(), 1);
  assertEquals(StridedLayout.dense([4, 32], 0.5).maxCompatibleItemsize(), 16);
});

test("the elements of a packed array are those of the padded one", () => {
  const cases = fc.record({
    dtype: fc.constantFrom(...packedTypes),
    shape: fc.tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 6 })),
    order: fc.constantFrom<"C" | "F">("C", "F"),
    bytes: fc.uint8Array({ minLength: 30, maxLength: 30 }),
  });
  check(
    fc.property(cases, ({ dtype, shape, order, bytes }) => {
      const packed = StridedLayout.dense(shape, dtype.itemsize, order);
      const padded = StridedLayout.dense(shape, 1, order);
      assert(packed.requiredSizeInBytes() <= bytes.length);
      const bits = bitsOf(bytes);
      const one = DType.from({ ...dtype.dlpack, padded: true });
      const spread = new DataView(new ArrayBuffer(packed.volume));
      for (let place = 0; place < packed.volume; place++) {
        spread.setUint8(place, codeAt(bits, place * dtype.bits, dtype.bits));
      }
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const values = gridOf(packed).values.map((offset) => dtype.read(view, offset * packed.itemsize));
      assertEquals(values, gridOf(padded).values.map((offset) => one.read(spread, offset)));
    }),
    3000,
  );
});

test("elements reach as many whole bytes before and after offset 0 as their bits need, however many they are", () => {
  const bits = fc.constantFrom(1, 2, 3, 4, 5, 6, 7, 8, 16, 24, 32, 64, 128);
  const most = MAX_SPAN_IN_BYTES / 2;
  const cases = fc.record({
    bits,
    lowest: fc.integer({ min: 0, max: most }),
    highest: fc.integer({ min: 0, max: most }),
  });
  const bytes = (count: bigint, bits: number) => Number((count * BigInt(bits) + 7n) / 8n);
  check(
    fc.property(cases, fc.boolean(), ({ bits, lowest, highest }, few) => {
      const itemsize = bits / 8;
      const reach = (count: number) => few ? count % 100 : Math.floor(count / Math.max(1, itemsize));
      const layout = { minOffset: -reach(lowest), maxOffset: reach(highest), itemsize };
      assertEquals(bytesBefore(layout), bytes(BigInt(reach(lowest)), bits));
      assertEquals(bytesFrom(layout), bytes(BigInt(reach(highest)) + 1n, bits));
    }),
    2000,
  );
});
