/**
 * Trees that no writer produces but a reader may meet: lists whose ranges overlap, numbers beyond 2^32, and
 * inconsistent data, which is refused with the node's path.
 */
import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { test } from "node:test";
import { fromVortexMetadata, VortexError, type VortexMetadata } from "../../../src/vortex/mod.ts";
import { primitiveDType, type VortexDType } from "../../../src/vortex/dtype.ts";
import type { PType } from "../../../src/vortex/ptype.ts";
import { ptypes } from "../../../src/vortex/ptype.ts";
import { writeDType } from "../../../src/vortex/wire/dtype_flatbuffer.ts";
import { check, fc } from "../../support/property.ts";
import { scalarOf } from "../../support/vortex/nodes.ts";
import { type ProtoField, protoOf } from "../../../src/vortex/wire/proto_writer.ts";

const code = (ptype: PType) => ptypes.indexOf(ptype);

function node(
  id: string,
  dtype: VortexDType,
  length: number,
  fields: readonly ProtoField[],
  buffers: readonly ArrayBufferView<ArrayBuffer>[],
  children: readonly VortexMetadata[] = [],
): VortexMetadata {
  const bytes = buffers.map(({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength));
  return [id, writeDType(dtype), length, protoOf(fields), bytes, children];
}

function numbers(ptype: PType, values: ArrayBufferView<ArrayBuffer> & { readonly length: number }): VortexMetadata {
  return node("vortex.primitive", primitiveDType(ptype), values.length, [], [values]);
}

function valuesOf(tree: VortexMetadata): unknown {
  return fromVortexMetadata(tree).toArrow().toArray();
}

const u8 = primitiveDType("u8");
const lists: VortexDType = { kind: "list", element: u8, nullable: false };
const elements = numbers("u8", Uint8Array.of(10, 11, 12, 13, 14));
const byRanges = (starts: Uint32Array<ArrayBuffer>, sizes: Uint8Array<ArrayBuffer>) =>
  node("vortex.listview", lists, starts.length, [[1, 5], [2, code("u32")], [3, code("u8")]], [], [
    elements,
    numbers("u32", starts),
    numbers("u8", sizes),
  ]);
const byOffsets = (offsets: Int32Array<ArrayBuffer> | BigInt64Array<ArrayBuffer>) => {
  const ptype = offsets instanceof Int32Array ? "i32" : "i64";
  const fields: ProtoField[] = [[1, 5], [2, code(ptype)]];
  return node("vortex.list", lists, offsets.length - 1, fields, [], [elements, numbers(ptype, offsets)]);
};

test("lists by ranges may overlap, leave elements out, and be empty anywhere", () => {
  const overlapping = byRanges(Uint32Array.of(2, 0, 77, 1), Uint8Array.of(2, 3, 0, 1));
  assertThrows(() => valuesOf(overlapping), VortexError, "List 2 ends at element 77 of 5");
  assertEquals(valuesOf(byRanges(Uint32Array.of(2, 0, 5, 1), Uint8Array.of(2, 3, 0, 1))), [
    [12, 13],
    [10, 11, 12],
    [],
    [11],
  ]);
  assertEquals(valuesOf(byRanges(Uint32Array.of(3, 1, 3, 0), Uint8Array.of(0, 2, 2, 0))), [[], [11, 12], [13, 14], []]);
});

test("lists by offsets may begin anywhere, and end within their elements", () => {
  assertEquals(valuesOf(byOffsets(Int32Array.of(1, 1, 4))), [[], [11, 12, 13]]);
  assertEquals(valuesOf(byOffsets(BigInt64Array.of(0n, 5n))), [[10, 11, 12, 13, 14]]);
  assertThrows(() => valuesOf(byOffsets(Int32Array.of(0, 6))), VortexError, "there are only 5");
  assertThrows(() => valuesOf(byOffsets(Int32Array.of(0, 2, 1))), VortexError, "less than the one before");
  assertThrows(() => valuesOf(byOffsets(Int32Array.of(-1, 2))), VortexError, "Expected no negative numbers");
  assertThrows(() => valuesOf(byOffsets(BigInt64Array.of(-1n, 2n))), VortexError, "Offset 0 is -1");
});

test("a sequence counts beyond 2^32, and may fall", () => {
  const term = (value: bigint) => protoOf([[3, Number(value < 0n ? -2n * value - 1n : 2n * value)]]);
  const sequence = (base: bigint, step: bigint) =>
    node("vortex.sequence", primitiveDType("i64"), 4, [[1, term(base)], [2, term(step)]], []);
  assertEquals(valuesOf(sequence(2n ** 32n - 2n, 1n)), [2n ** 32n - 2n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 32n + 1n]);
  assertEquals(valuesOf(sequence(1n, -(2n ** 33n))), [1n, 1n - 2n ** 33n, 1n - 2n ** 34n, 1n - 3n * 2n ** 33n]);
});

test("codes lead to values, and those of nulls anywhere", () => {
  const dict = (codes: VortexMetadata, nullable: boolean) =>
    node("vortex.dict", primitiveDType("u8", nullable), 3, [[1, 2], [2, 0], [3, Number(nullable)]], [], [
      codes,
      node("vortex.primitive", primitiveDType("u8", nullable), 2, [], [Uint8Array.of(7, 9)]),
    ]);
  assertEquals(valuesOf(dict(numbers("u8", Uint8Array.of(1, 0, 1)), false)), [9, 7, 9]);
  assertThrows(() => valuesOf(dict(numbers("u8", Uint8Array.of(1, 2, 1)), false)), VortexError, "Code 1 is 2");
  const valid = node("vortex.bool", { kind: "bool", nullable: false }, 3, [], [Uint8Array.of(0b101)]);
  const codes = node("vortex.primitive", primitiveDType("u8", true), 3, [], [Uint8Array.of(1, 200, 0)], [valid]);
  assertEquals(valuesOf(dict(codes, true)), [9, null, 7]);
});

test("chunks are as long as their array", () => {
  const chunked = (offsets: readonly bigint[]) =>
    node("vortex.chunked", u8, 3, [], [], [
      numbers("u64", BigUint64Array.from(offsets)),
      numbers("u8", Uint8Array.of(1, 2)),
      numbers("u8", Uint8Array.of(3)),
    ]);
  assertEquals(valuesOf(chunked([0n, 2n, 3n])), [1, 2, 3]);
  assertThrows(() => valuesOf(chunked([0n, 2n, 2n])), VortexError, "expected 0 to 3");
  assertThrows(() => valuesOf(chunked([0n, 1n, 3n])), VortexError, "expected 1");
});

test("text is whole characters, and a view leads to what it says", () => {
  const text: VortexDType = { kind: "utf8", nullable: false };
  const bytes = new TextEncoder().encode("\u00e9!");
  const varbin = (offsets: Int32Array<ArrayBuffer>) =>
    node("vortex.varbin", text, offsets.length - 1, [[1, code("i32")]], [bytes], [numbers("i32", offsets)]);
  assertEquals(valuesOf(varbin(Int32Array.of(0, 2, 3))), ["\u00e9", "!"]);
  assertThrows(() => valuesOf(varbin(Int32Array.of(0, 1, 3))), VortexError, "Element 0 is not UTF-8");
  assertThrows(() => valuesOf(varbin(Int32Array.of(1, 3))), VortexError, "Element 0 is not UTF-8");
  const long = new TextEncoder().encode("long enough to need its buffer");
  const view = (size: number, prefix: string, buffer: number, start: number) => {
    const words = Uint32Array.of(size, 0, buffer, start);
    new Uint8Array(words.buffer).set(new TextEncoder().encode(prefix), 4);
    return node("vortex.varbinview", text, 1, [], [long, words]);
  };
  assertEquals(valuesOf(view(13, "long", 0, 0)), ["long enough t"]);
  assertThrows(() => valuesOf(view(13, "lang", 0, 0)), VortexError, "a prefix unlike");
  assertThrows(() => valuesOf(view(13, "long", 1, 0)), VortexError, "buffer 1 of 1");
  assertThrows(() => valuesOf(view(300, "long", 0, 0)), VortexError, "ends at 300");
});

test("a short text is padded with zeros for Arrow, whatever it was padded with", () => {
  const text: VortexDType = { kind: "utf8", nullable: true };
  // Most rows are clean: a single stray byte must be noticed.
  const bytes = fc.array(fc.tuple(fc.nat(11), fc.nat(255)), { maxLength: 2 });
  const rows = fc.array(
    fc.record({ text: fc.string({ unit: "binary-ascii", maxLength: 12, size: "max" }), bytes, valid: fc.boolean() }),
  );
  check(fc.property(rows, (rows) => {
    const given = new Uint8Array(16 * rows.length);
    const expected = new Uint8Array(16 * rows.length);
    const valid = new Uint8Array(Math.ceil(rows.length / 8));
    rows.forEach((row, i) => {
      const own = new TextEncoder().encode(row.text);
      for (const [at, byte] of row.bytes) given[16 * i + 4 + at] = byte;
      for (const views of [given, expected]) {
        views.set([own.length], 16 * i);
        views.set(own, 16 * i + 4);
      }
      if (row.valid) valid[i >>> 3] = (valid[i >>> 3] ?? 0) | 1 << (i & 7);
    });
    const before = given.slice();
    const truth = node("vortex.bool", { kind: "bool", nullable: false }, rows.length, [], [valid]);
    const tree = node("vortex.varbinview", text, rows.length, [], [given], [truth]);
    const array = fromVortexMetadata(tree).decoded();
    assertEquals(array.kind === "varbinview" && array.views, expected);
    assertEquals(given, before); // the input belongs to its producer
  }));
});

test("needless metadata is refused as by PyVortex", () => {
  const truth: VortexDType = { kind: "bool", nullable: false };
  const short = node("vortex.primitive", u8, 1, [], [Uint8Array.of(1)]);
  const trees: readonly VortexMetadata[] = [
    short,
    node("vortex.null", { kind: "null", nullable: true }, 1, [], []),
    node("vortex.bytebool", truth, 1, [], [Uint8Array.of(1)]),
    node("vortex.varbinview", { kind: "utf8", nullable: false }, 1, [], [new Uint8Array(16)]),
    node("vortex.struct", { kind: "struct", names: ["a"], fields: [u8], nullable: false }, 1, [], [], [short]),
    node("vortex.fixed_size_list", { kind: "fixedSizeList", element: u8, size: 1, nullable: false }, 1, [], [], [
      short,
    ]),
    node("vortex.chunked", u8, 1, [], [], [numbers("u64", BigUint64Array.of(0n, 1n)), short]),
    node("vortex.masked", primitiveDType("u8", true), 1, [], [], [short]),
    node("vortex.zigzag", primitiveDType("i8"), 1, [], [], [short]),
  ];
  for (const [id, dtype, length, metadata, buffers, children] of trees) {
    assertEquals(fromVortexMetadata([id, dtype, length, metadata, buffers, children]).length, 1);
    const wrong: VortexMetadata = [id, dtype, length, Uint8Array.of(8, 1), buffers, children];
    assertThrows(() => fromVortexMetadata(wrong), VortexError, `${id} expects empty metadata, got 2 bytes`);
  }
});

test("a sequence wraps nowhere, wherever it begins", () => {
  const half = fc.bigInt({ min: -(2n ** 61n), max: 2n ** 61n });
  const near = fc.tuple(fc.bigInt({ min: -4n, max: 4n }), fc.bigInt({ min: -5n, max: 5n })).map(([high, low]) =>
    high * 2n ** 31n + low
  );
  check(
    fc.property(fc.oneof(half, near), fc.oneof(half, near), fc.integer({ min: 1, max: 4 }), (base, step, length) => {
      const expected = Array.from({ length }, (_, i) => base + BigInt(i) * step);
      const fits = BigInt.asIntN(64, expected.at(-1) ?? 0n) === expected.at(-1);
      fc.pre(fits);
      const tree = node("vortex.sequence", primitiveDType("i64"), length, [[1, scalarOf(base, "i64")], [
        2,
        scalarOf(step, "i64"),
      ]], []);
      assertEquals(valuesOf(tree), expected);
    }),
  );
});

test("a decimal has no more digits than its dtype", () => {
  const decimal = (precision: number, value: bigint, width: 4 | 8 | 16) => {
    const bytes = new Uint8Array(width);
    for (let i = 0; i < width; i++) bytes[i] = Number(value >> BigInt(8 * i) & 0xffn);
    const dtype: VortexDType = { kind: "decimal", precision, scale: 1, nullable: false };
    return node("vortex.decimal", dtype, 1, [[1, { 4: 2, 8: 3, 16: 4 }[width]]], [bytes]);
  };
  for (const [precision, width] of [[3, 4], [12, 8], [20, 16]] as const) {
    const most = 10n ** BigInt(precision) - 1n;
    for (const value of [most, -most]) {
      assertStringIncludes(`${valuesOf(decimal(precision, value, width))}`, `${most / 10n}.9`);
    }
    for (const value of [most + 1n, -most - 1n]) {
      assertThrows(() => valuesOf(decimal(precision, value, width)), VortexError, `the ${precision} digits`);
    }
  }
});
