/** Rows compare with literals as their values do, whichever loop compares them. */
import { assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { FileWriter } from "../../support/vortex/file_writer.ts";
import { primitiveDType, type VortexDType } from "../../../src/vortex/dtype.ts";
import { literalOf, type LiteralValue } from "../../../src/vortex/file/literal.ts";
import { rowOrderOf } from "../../../src/vortex/file/row_order.ts";
import { openVortex } from "../../../src/vortex/mod.ts";
import type { PType } from "../../../src/vortex/ptype.ts";
import type { RawNode } from "../../../src/vortex/raw_node.ts";
import { check, fc } from "../../support/property.ts";
import { bytesOf } from "../../support/vortex/words.ts";
import { node, primitiveNode, proto, ptypeBits, ptypeCode } from "../../support/vortex/nodes.ts";

const none = new Uint8Array(0);

/** How each row of a node compares with a literal. */
async function ordersOf(root: RawNode, dtype: VortexDType, rows: number, value: LiteralValue, isEquality = false) {
  const writer = new FileWriter();
  using file = await openVortex(writer.finish({ dtype, layout: writer.flat(root, rows) }));
  for await (const batch of file.scan()) {
    const order = rowOrderOf(batch.decoded(), literalOf(value, dtype, "it"), isEquality);
    return Array.from({ length: rows }, (_, row) => order(row));
  }
  return [];
}

function orderOf<T extends number | bigint | string>(one: T, other: number | bigint | string): -1 | 0 | 1 {
  return one < other ? -1 : one > other ? 1 : 0;
}

const integers = (["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"] as const).map((ptype: PType) => ({
  ptype,
  of: (word: bigint) =>
    ptype.startsWith("u") ? BigInt.asUintN(ptypeBits(ptype), word) : BigInt.asIntN(ptypeBits(ptype), word),
}));
const word = fc.oneof(fc.bigInt({ min: -3n, max: 3n }), fc.bigInt({ min: -(2n ** 65n), max: 2n ** 65n }));

test("integers of all widths, against integers and fractions, also those that no row equals", async () => {
  const literal = fc.oneof(word, fc.double({ noNaN: true }), fc.constantFrom(0.5, -2.5, 2 ** 63, -Infinity));
  await check(
    fc.asyncProperty(
      fc.constantFrom(...integers),
      fc.array(word, { minLength: 1, maxLength: 8 }),
      literal,
      fc.boolean(),
      async (
        { ptype, of },
        words,
        value,
        isOfRow,
      ) => {
        const values = words.map(of);
        const wanted = isOfRow ? values[0] ?? 0n : value;
        const got = await ordersOf(primitiveNode(values, ptype), primitiveDType(ptype), values.length, wanted);
        assertEquals(got, values.map((one) => orderOf(one, wanted)));
      },
    ),
    300,
  );
});

// NumPy's 0/0 is a NaN with a sign on x86: rows with it were above everything in Bun, and below in Deno and PyVortex.
test("floats, in the total order, in which the sign of a NaN matters", async () => {
  const float = fc.oneof(fc.constantFrom(0, -0, NaN, 1.5, -1.5, Infinity, -Infinity), fc.float());
  const rank = (value: number) => Number.isNaN(value) ? Infinity : value;
  const stored = fc.array(fc.tuple(float, fc.boolean()), { minLength: 1, maxLength: 8 });
  await check(
    fc.asyncProperty(fc.constantFrom("f16", "f32", "f64"), stored, float, async (ptype, rows, wanted) => {
      const bytes = ptypeBits(ptype) / 8;
      const memory = new DataView(new ArrayBuffer(bytes * rows.length));
      const types = { f16: Float16Array, f32: Float32Array, f64: Float64Array };
      const typed = types[ptype].from(rows.map(([one]) => one));
      new Uint8Array(memory.buffer).set(new Uint8Array(typed.buffer));
      const isSignedNaN = rows.map(([one, isSigned]) => Number.isNaN(one) && isSigned);
      isSignedNaN.forEach((isSigned, row) => {
        const top = bytes * (row + 1) - 1;
        if (Number.isNaN(typed[row])) memory.setUint8(top, memory.getUint8(top) & 0x7f | (isSigned ? 0x80 : 0));
      });
      const root = node("vortex.primitive", none, [new Uint8Array(memory.buffer)]);
      const got = await ordersOf(root, primitiveDType(ptype), rows.length, wanted);
      const expected = Array.from(typed, (one, row) => {
        if (isSignedNaN[row]) return -1;
        if (Number.isNaN(one) !== Number.isNaN(wanted)) return Number.isNaN(one) ? 1 : -1;
        if (one === 0 && wanted === 0) return orderOf(Object.is(one, -0) ? 0 : 1, Object.is(wanted, -0) ? 0 : 1);
        return orderOf(rank(one), rank(wanted));
      });
      assertEquals(got, expected);
    }),
    300,
  );
});

test("texts by their UTF-8 bytes; where only equality counts, what differs is not equal", async () => {
  const text = fc.oneof(
    fc.constantFrom("", "a", "ab", "ab\0", "abc", "abcd", "\u{ffff}", "\u{1f600}", "a text that no view has room for"),
    fc.string({ unit: "binary", maxLength: 20 }),
  );
  const utf8: VortexDType = { kind: "utf8", nullable: false };
  await check(
    fc.asyncProperty(
      fc.array(text, { minLength: 1, maxLength: 8 }),
      text,
      fc.boolean(),
      async (values, other, isOfRow) => {
        const wanted = isOfRow ? values[0] ?? "" : other;
        const offsets = values.reduce<number[]>((all, one) => [...all, (all.at(-1) ?? 0) + Buffer.byteLength(one)], [
          0,
        ]);
        const bytes = Uint8Array.from(Buffer.from(values.join("")));
        const root = node(
          "vortex.varbin",
          proto([1, ptypeCode("u32")]),
          [bytes],
          node("vortex.primitive", none, [bytesOf(offsets.map(BigInt), 32)]),
        );
        const hex = (one: string) => Buffer.from(one).toString("hex");
        const expected = values.map((one) => orderOf(hex(one), hex(wanted)));
        assertEquals(await ordersOf(root, utf8, values.length, wanted), expected);
        const isEqual = (await ordersOf(root, utf8, values.length, wanted, true)).map((order) => order === 0);
        assertEquals(isEqual, expected.map((order) => order === 0));
      },
    ),
    300,
  );
});
