/** Compressed numbers and strings whose bytes are inconsistent, or expand too far. */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import type { VortexDType } from "../../../src/vortex/dtype.ts";
import { VortexError } from "../../../src/vortex/error.ts";
import type { PType } from "../../../src/vortex/ptype.ts";
import type { RawNode } from "../../../src/vortex/raw_node.ts";
import { boolNode, joined, node, proto } from "../../support/vortex/nodes.ts";
import { BitWriter } from "../../support/vortex/bit_writer.ts";
import { decodeTree } from "../../support/vortex/wheel.ts";
import { zstdFrame } from "../../support/vortex/zstd_frames.ts";

type Bytes = Uint8Array<ArrayBuffer>;

const numbers = (ptype: PType, nullable = false): VortexDType => ({ kind: "primitive", ptype, nullable });
const utf8: VortexDType = { kind: "utf8", nullable: false };
const bytes = (...of: number[]): Bytes => Uint8Array.from(of);

/** Asserts that the root node refuses a tree. */
function refused(dtype: VortexDType, length: number, tree: RawNode, text: string): void {
  const error = assertThrows(() => decodeTree({ dtype, length, tree }, { bytes: 2 ** 24 }), VortexError, text);
  assertEquals(error.path, "$", error.message);
}

/** One frame of raw blocks. */
function zstd(content: Bytes, { size = content.length, count = 1, validity = null as RawNode | null } = {}): RawNode {
  const frame = zstdFrame(content, { blocks: "raw", sizeBytes: 4, isSingleSegment: true });
  return node("vortex.zstd", proto([2, proto([1, size], [2, count])]), [frame], validity);
}

test("frames are refused that hold more or less than the rows, or other strings than they say", () => {
  const two = bytes(1, 0, 2, 0);
  assertEquals(decodeTree({ dtype: numbers("u16"), length: 2, tree: zstd(two) }).length, 2);
  refused(numbers("u16"), 3, zstd(two), "4 bytes, expected 6 for 3 values of u16");
  refused(numbers("u16"), 1, zstd(two), "4 bytes, expected 2 for 1 values of u16");
  refused(numbers("u16", true), 2, zstd(two, { validity: boolNode([true, false]) }), "expected 2 for 1 values");
  refused(numbers("u64"), 2 ** 40, zstd(two), "4 bytes, expected 8796093022208");
  refused(numbers("u16"), 2, zstd(two, { size: 6 }), "expected 4 for 2 values");
  refused(numbers("u16"), 3, zstd(two, { size: 6 }), "zstd frame 0 holds 4 bytes, expected 6");
  refused({ kind: "bool", nullable: false }, 2, zstd(two), "cannot have the dtype bool");
  const more = node("vortex.zstd", proto([2, proto([1, 4])]), [two, two]);
  refused(numbers("u16"), 2, more, "has 2 buffers, expected 1");

  const text = bytes(1, 0, 0, 0, 0x61, 0, 0, 0, 0);
  assertEquals(decodeTree({ dtype: utf8, length: 2, tree: zstd(text) }).length, 2);
  refused(utf8, 1, zstd(text), "4 bytes after the last string");
  refused(utf8, 3, zstd(text), "9 bytes for 3 strings, each with a 4-byte size prefix");
  refused(utf8, 2, zstd(bytes(2, 0, 0, 0, 0x61, 0x61, 0, 0)), "8 bytes of strings end before the size of row 1");
  refused(utf8, 1, zstd(bytes(2, 0, 0, 0, 0x61)), "row 0 has 2 bytes, but the strings end 1 bytes later");
  refused(utf8, 1, zstd(bytes(255, 255, 255, 255, 0x61)), "row 0 has 4294967295 bytes");
  refused(utf8, 1, zstd(bytes(1, 0, 0, 0, 0x80)), "row 0 is not UTF-8");
  // The row ends with the first byte of a character, which the next row's size appears to continue.
  refused(utf8, 2, zstd(bytes(1, 0, 0, 0, 0xc3, 0x80, 0, 0, 0, ...new Uint8Array(128))), "row 0 is not UTF-8");
  refused(utf8, 0, zstd(bytes(1, 2, 3, 4)), "4 bytes after the last string");
});

test("a dictionary must have the stated size", () => {
  const tree = node("vortex.zstd", proto([1, 5]), [bytes(1, 2, 3)]);
  refused(numbers("u16"), 0, tree, "Buffer 0 of vortex.zstd has 3 bytes, expected 5");
});

/** Bits, lowest first: pairs of a value and its width. */
function bits(...parts: readonly (readonly [value: number | bigint, width: number])[]): Bytes {
  const writer = new BitWriter();
  for (const [value, width] of parts) writer.write(value, width);
  return Uint8Array.from(writer.bytes());
}

/** A chunk's metadata: no mode, no differences, then one table of these bits. */
const plain = (...table: readonly (readonly [number | bigint, number])[]) => bits([0, 4], [0, 4], ...table);

/** One bin whose numbers are all `lower`. */
const constant = (lower: number, width: number) => plain([0, 4], [1, 15], [lower, width], [0, Math.log2(width) + 1]);

function pco(meta: Bytes, page: Bytes, count: number, header: Bytes = bytes(4, 1)): RawNode {
  return node("vortex.pco", proto([1, header], [2, proto([1, proto([1, count])])]), [meta, page]);
}

test("pco's chunks with impossible parts are refused", () => {
  const u32 = numbers("u32");
  const meta = constant(7, 32);
  assertEquals(decodeTree({ dtype: u32, length: 5, tree: pco(meta, bytes(), 5) }).length, 5);
  const expect = (meta: Bytes, text: string, page = bytes()) => refused(u32, 5, pco(meta, page, 5), text);
  refused(u32, 5, pco(meta, bytes(), 5, bytes(5, 0)), "version 5 of the pco format");
  refused(u32, 5, pco(meta, bytes(), 5, bytes(4)), "a header of 1 bytes");
  refused(u32, 5, pco(meta, bytes(), 5, bytes()), "a header of 0 bytes");
  refused(u32, 4, pco(meta, bytes(), 5), "pages of 5 numbers, expected 4");
  refused(u32, 2 ** 40, pco(meta, bytes(), 5), "pages of 5 numbers, expected 1099511627776");
  refused(numbers("u8"), 5, pco(meta, bytes(), 5), "cannot have the dtype u8. Expected numbers of 16, 32 or 64 bits");
  expect(meta.slice(0, 3), "the metadata of a pco chunk is truncated after 3 bytes");
  expect(bits([5, 4], [0, 4]), "mode 5 of a pco chunk");
  expect(bits([1, 4], [0, 32], [0, 4]), "mode IntMult with a base of 0");
  expect(bits([2, 4], [1, 32], [0, 4]), "mode FloatMult of u32, expected floats");
  expect(bits([3, 4], [1, 8], [0, 4]), "mode FloatQuant of u32, expected floats");
  expect(bits([4, 4], [2 ** 25 - 1, 25]), "a dictionary of 33554431 numbers in 0 bytes");
  expect(bits([0, 4], [4, 4]), "differences of kind 4");
  expect(bits([0, 4], [1, 4], [0, 3]), "consecutive differences of order 0");
  expect(bits([0, 4], [2, 4], [0, 5], [9, 4]), "2^9 numbers before a window of 2^1");
  expect(plain([15, 4], [1, 15]), "a table of 2^15 states");
  expect(plain([2, 4], [5, 15]), "5 bins, expected at most the 4 states");
  expect(plain([1, 4], [1, 15]), "one bin with 2 states");
  expect(plain([0, 4], [1, 15], [7, 32], [33, 6]), "offsets of 33 bits, expected at most 32");
  expect(plain([1, 4], [2, 15], [1, 1], [0, 32], [0, 6], [1, 1], [0, 32], [0, 6]), "add up to 4");
  expect(plain([0, 4], [0, 15]), "a pco chunk without bins has a page of 5 numbers");
  // At 32 bits per number, the page is too short.
  expect(
    plain([0, 4], [1, 15], [0, 32], [32, 6]),
    "a pco page is truncated after 7 bytes",
    new Uint8Array(7),
  );
  expect(
    bits([4, 4], [1, 25], [0, 3], [9, 32], [0, 4], [0, 4], [1, 15], [1, 32], [0, 6]),
    "the number 1 of a dictionary",
  );
  const lookback = (back: number) =>
    bits([0, 4], [2, 4], [0, 5], [0, 4], [0, 1], [0, 4], [1, 15], [back, 32], [0, 6], [0, 4], [1, 15], [0, 32], [0, 6]);
  assertEquals(decodeTree({ dtype: u32, length: 5, tree: pco(lookback(2), new Uint8Array(4), 5) }).length, 5);
  expect(lookback(0), "a lookback of 0, expected 1 to 2", new Uint8Array(4));
  expect(lookback(3), "a lookback of 3, expected 1 to 2", new Uint8Array(4));
  refused(numbers("f32"), 5, pco(bits([2, 4], [2 ** 31, 32], [0, 4]), bytes(), 5), "FloatMult with a base of 0");
  refused(numbers("f32"), 5, pco(bits([3, 4], [24, 8], [0, 4]), bytes(), 5), "with 24 bits, expected 1 to 23 of f32");
});

test("impossible parts of quantized floats are refused, of every width; the largest possible ones are not", () => {
  const widths = [
    { ptype: "f16", width: 16, most: 10 },
    { ptype: "f32", width: 32, most: 23 },
    { ptype: "f64", width: 64, most: 52 },
  ] as const;
  for (const { ptype, width, most } of widths) {
    for (let low = 1; low <= most; low++) {
      const high = width - low;
      const table = (value: bigint) =>
        [[0, 4], [1, 15], [value, width], [0, Math.log2(width) + 1]] as readonly (readonly [number | bigint, number])[];
      const tree = (upper: bigint, lower: bigint) =>
        pco(bits([3, 4], [low, 8], [0, 4], ...table(upper), ...table(lower)), bytes(), 1);
      const dtype = numbers(ptype);
      const largest = [2n ** BigInt(high) - 1n, 2n ** BigInt(low) - 1n] as const;
      assertEquals(decodeTree({ dtype, length: 1, tree: tree(...largest) }).length, 1);
      const text = `FloatQuant of parts with more than the ${high} and ${low} bits of a ${width}-bit float`;
      for (let bit = BigInt(high); bit < width; bit++) refused(dtype, 1, tree(1n << bit, 0n), text);
      for (let bit = BigInt(low); bit < width; bit++) refused(dtype, 1, tree(0n, 1n << bit), text);
    }
  }
});

test("a few bytes of pco cannot make more than the limits allow", () => {
  // Numbers of zero bits: their memory is charged to the limit before it is allocated.
  refused(numbers("u32"), 2 ** 31, pco(constant(7, 32), bytes(), 2 ** 31), "Decoding would allocate");
  // Many large state tables, for empty pages.
  const half = [[2 ** 13 - 1, 14], [0, 32], [0, 6]] as const;
  const meta = plain([14, 4], [2, 15], ...half, ...half);
  const chunks = Array.from({ length: 200 }, () => [2, proto()] as const);
  const tree = node("vortex.pco", joined(proto([1, bytes(4, 1)]), proto(...chunks)), chunks.map(() => meta));
  refused(numbers("u32"), 0, tree, "Decoding would allocate");
});
