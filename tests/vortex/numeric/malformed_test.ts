import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import type { VortexDType } from "../../../src/vortex/dtype.ts";
import { VortexError } from "../../../src/vortex/error.ts";
import type { PType } from "../../../src/vortex/ptype.ts";
import type { RawNode } from "../../../src/vortex/raw_node.ts";
import { check, fc, scaled } from "../../support/property.ts";
import { joined, node, primitiveNode, proto, ptypeCode, scalarOf } from "../../support/vortex/nodes.ts";
import { damaged, numberTree } from "../../support/vortex/number_trees.ts";
import { decodeTree, idsOf, judge, rowsOf, withWheel } from "../../support/vortex/wheel.ts";

const numbers = (ptype: PType, nullable = false): VortexDType => ({ kind: "primitive", ptype, nullable });
const none = new Uint8Array(0);
const words = (length: number, word = 1n) => Array.from({ length }, () => word);

/** Asserts that the node at a path refuses a tree. */
function refused(dtype: VortexDType, length: number, tree: RawNode, text: string, path = "$"): void {
  const error = assertThrows(() => decodeTree({ dtype, length, tree }, { bytes: 2 ** 24 }), VortexError, text);
  assertEquals(error.path, path);
}

/** A message of row patches, with u8 indices by default. */
const patchesOf = (count: number, offset = 0, ptype = 0) => proto([1, count], [2, offset], [3, ptype]);

test("packed words with an impossible width, offset, size, children or patches are refused", () => {
  const packed = (metadata: Uint8Array<ArrayBuffer>, bytes: number, ...children: RawNode[]) =>
    node("fastlanes.bitpacked", metadata, [new Uint8Array(bytes)], ...children);
  const i8 = numbers("i8");
  assertEquals(decodeTree({ dtype: i8, length: 3, tree: packed(proto([1, 8]), 1024) }).length, 3);
  refused(i8, 3, packed(proto([1, 9]), 1152), "packs i8 to 9 bits. Expected 0 to 8");
  refused(i8, 3, packed(proto([1, 8], [2, 1024]), 2048), "begins at row 1024 of a block");
  refused(i8, 3, packed(proto([1, 8]), 1023), "Buffer 0 of fastlanes.bitpacked has 1023 bytes, expected 1024");
  refused(i8, 3, packed(proto([1, 8]), 1152), "has 1152 bytes, expected 1024");
  refused(numbers("f32"), 3, packed(proto([1, 8]), 1024), "cannot have the dtype f32. Expected integers");
  const more = primitiveNode([1], "u8");
  refused(i8, 3, packed(proto([1, 8]), 1024, more), "has a validity child but dtype i8 is not nullable");
  refused(numbers("i8", true), 3, packed(proto([1, 8]), 1024, more, more), "has 2 children, expected 0 to 1");
  const patched = (rows: readonly number[], message: Uint8Array<ArrayBuffer>, ...more: RawNode[]) =>
    packed(
      proto([1, 8], [3, message]),
      1024,
      primitiveNode(rows, "u8"),
      primitiveNode(words(rows.length), "i8"),
      ...more,
    );
  refused(i8, 3, patched([3], patchesOf(1)), "Patch 0 is for row 3, expected 0 to 2");
  refused(i8, 3, patched([6], patchesOf(1, 7)), "Patch 0 is for row -1");
  refused(i8, 3, patched([], patchesOf(0)), "has 0 patches of 3 rows");
  refused(i8, 3, patched([0, 1, 2, 2], patchesOf(4)), "has 4 patches of 3 rows");
  refused(i8, 3, patched([0], patchesOf(1, 0, 4)), "names i8: expected an unsigned integer");
  refused(i8, 3, patched([0], patchesOf(1, 0, 11)), "names the ptype 11: expected 0 to 10");
  refused(i8, 3, patched([0], joined(patchesOf(1), proto([4, 1], [5, 0]))), "Cannot find child 2");
  // Any number of claimed rows of zero bits is charged to the limit before allocation.
  refused(numbers("u64"), 2 ** 40, packed(proto([1, 0]), 0), "Decoding would allocate");
});

test("blocks of their own widths are refused where a block's bytes are missing, or fit no width", () => {
  const packed = (ends: number[], bytes = 1024, length = 3) => ({
    dtype: numbers("u8"),
    length,
    tree: node("fastlanes.bitpacked.v2", proto([1, 0], [2, 1]), [new Uint8Array(bytes)], primitiveNode(ends, "u16")),
  });
  const expect = (ends: number[], text: string) => refused(numbers("u8"), 3, packed(ends).tree, text);
  assertEquals(decodeTree(packed([0, 1024])).length, 3);
  expect([0, 1152], "Block 0 has the bytes 0 to 1152 of 1024");
  expect([128, 1152], "Block 0 has the bytes 128 to 1152 of 1024");
  expect([0, 100], "Block 0 has the bytes 0 to 100");
  expect([256, 128], "Block 0 has the bytes 256 to 128");
  refused(numbers("u8"), 3, packed([0, 1152], 1152).tree, "Block 0 has the bytes 0 to 1152 of 1152");
  const { tree } = packed([0, 1024]);
  const one = primitiveNode([1], "u8");
  const more = (...children: RawNode[]): RawNode => ({ ...tree, children: [...children, ...tree.children] });
  refused(numbers("u8"), 3, more(one), "has a validity child, but u8 has no nulls");
  refused(numbers("u8", true), 3, more(one, one), "has 3 children, expected 1 to 2");
});

test("runs, differences, blocks of values, patches by lane and rare values are refused where they miss rows", () => {
  const u8 = numbers("u8");
  const runs = (ends: readonly number[], offset: number, length: number, ptype: PType = "u8") => {
    const message = proto([1, ptypeCode(ptype)], [2, ends.length], [3, offset]);
    refused(
      u8,
      length,
      node("vortex.runend", message, [], primitiveNode(ends, ptype), primitiveNode(words(ends.length), "u8")),
      ptype.startsWith("i") ? "names i8: expected an unsigned integer" : "ends at",
    );
  };
  runs([3, 3, 9], 0, 9);
  runs([3, 2, 9], 0, 9);
  runs([3, 8], 0, 9);
  runs([2, 9], 3, 6);
  runs([9], 0, 9, "i8");
  // 64-bit ends become numbers, which count towards the limit.
  const ends = Array.from({ length: 1000 }, (_, run) => run + 1);
  const long = node(
    "vortex.runend",
    proto([1, ptypeCode("u64")], [2, 1000], [3, 0]),
    [],
    primitiveNode(ends, "u64"),
    primitiveNode(words(1000), "u8"),
  );
  const decodeIn = (bytes: number) => decodeTree({ dtype: u8, length: 1000, tree: long }, { bytes });
  assertEquals(decodeIn(9000).length, 1000);
  assertThrows(() => decodeIn(8999), VortexError, "Decoding would allocate 1000 bytes");

  const delta = (count: number, offset: number) =>
    node(
      "fastlanes.delta",
      proto([1, count], [2, offset]),
      [],
      primitiveNode(words(Math.ceil(count / 1024) * 128), "u8"),
      primitiveNode(words(count), "u8"),
    );
  refused(u8, 5, delta(1023, 0), "has 1023 differences for 5 rows at offset 0");
  refused(u8, 1020, delta(1024, 5), "has 1024 differences for 1020 rows at offset 5");

  const rle = (indices: number, index: number, starts: number[], code: PType = "u8") =>
    node(
      "fastlanes.rle",
      proto([1, 3], [2, indices], [3, ptypeCode(code)], [4, starts.length], [5, 0], [6, 0]),
      [],
      primitiveNode([7, 8, 9], "u8"),
      primitiveNode(words(indices, BigInt(index)), code),
      primitiveNode(starts, "u8"),
    );
  assertEquals(decodeTree({ dtype: u8, length: 5, tree: rle(1024, 2, [0]) }).length, 5);
  refused(u8, 5, rle(1024, 3, [0]), "Row 0 has index 3, expected one below 3");
  refused(u8, 5, rle(1024, 2, [4, 6, 7]), "Row 0 has index 2, expected one below 2");
  refused(u8, 5, rle(1024, 0, []), "Block 0 has values NaN");
  refused(u8, 1025, rle(1024, 0, [0]), "has 1024 indices for 1025 rows at offset 0");
  refused(u8, 5, rle(1000, 0, [0]), "has 1000 indices");
  refused(u8, 5, rle(1024, 0, [0], "u32"), "has indices of u32. Expected u8 or u16");

  const patched = (starts: number[], lanes = 1) =>
    node(
      "vortex.patched",
      proto([1, 2], [2, lanes], [3, 0]),
      [],
      primitiveNode(words(5), "u8"),
      primitiveNode(starts, "u32"),
      primitiveNode([1, 2], "u16"),
      primitiveNode([1, 2], "u8"),
    );
  refused(u8, 5, patched([0, 3]), "Block 0 has patches 0 to 3, expected a range within 0 to 2");
  refused(u8, 5, patched([0, 2], 0), "has 0 lanes");

  const sparse = (row: number, message = patchesOf(1), fill = scalarOf(5n, "u8")) =>
    node("vortex.sparse", message.length === 0 ? none : proto([1, message]), [fill], ...[
      primitiveNode([row], "u8"),
      primitiveNode([1], "u8"),
    ]);
  refused(u8, 5, sparse(5), "Patch 0 is for row 5");
  refused(u8, 5, sparse(4, none), "has no patches");
  refused(u8, 5, sparse(4, patchesOf(1), scalarOf(null, "u8")), "is not nullable");
  refused(u8, 5, sparse(4, patchesOf(1), scalarOf(256n, "u16")), "the number is 256");
  refused(u8, 2 ** 40, sparse(4), "Decoding would allocate");
});

test("fractions, upper parts, instants and decimals with impossible parts are refused", () => {
  const [f64, f32] = [numbers("f64"), numbers("f32")];
  const alp = (e: number, f: number, ptype: PType = "i64") =>
    node("vortex.alp", proto([1, e], [2, f]), [], primitiveNode([1, 2], ptype));
  refused(f64, 2, alp(19, 0), "Expected exponents up to 18, got 19 and 0");
  refused(f32, 2, alp(0, 11, "i32"), "Expected exponents up to 10, got 0 and 11");
  const twice = alp(0, 0);
  refused(f64, 2, { ...twice, children: [...twice.children, ...twice.children] }, "has 2 children, expected 1");
  refused(numbers("f16"), 2, alp(0, 0), "cannot have the dtype f16. Expected f32 or f64");

  const alpRd = (width: number, count: number, entries: number[], code = 0, ptype = 1) =>
    node(
      "vortex.alprd",
      joined(proto([1, width], [2, count]), ...entries.map((entry) => proto([3, entry])), proto([4, ptype])),
      [],
      primitiveNode([0, code], "u16"),
      primitiveNode([1, 2], "u64"),
    );
  assertEquals(decodeTree({ dtype: f64, length: 2, tree: alpRd(48, 1, [65_535]) }).length, 2);
  refused(f64, 2, alpRd(48, 2, [1, 2], 2), "Row 1 has code 2, expected one below 2");
  refused(f64, 2, alpRd(64, 1, [1]), "has lower parts of 64 bits of 64");
  refused(f64, 2, alpRd(47, 1, [1]), "has lower parts of 47 bits of 64");
  refused(f64, 2, alpRd(60, 1, [16]), "has the upper part 16. Expected one of 4 bits");
  refused(f64, 2, alpRd(48, 9, words(9).map(Number)), "has 9 upper parts and lists 9");
  refused(f64, 2, alpRd(48, 2, [1]), "has 2 upper parts and lists 1");
  refused(f64, 2, alpRd(48, 1, [1], 0, 2), "has upper parts of the ptype 2");

  const timestamp = (unit: number): VortexDType => ({
    kind: "extension",
    id: "vortex.timestamp",
    storage: numbers("i64"),
    metadata: Uint8Array.of(unit, 0, 0),
    nullable: false,
  });
  const times = (ptype: number) =>
    node(
      "vortex.datetimeparts",
      proto([1, ptype], [2, 4], [3, 4]),
      [],
      ...[1, 2, 3].map(() => primitiveNode([1], "i8")),
    );
  refused(timestamp(4), 1, times(4), "A timestamp has the unit 4: expected 0 to 3");
  refused(timestamp(1), 1, times(10), "names f64: expected an integer");
  refused(numbers("i64"), 1, times(4), "Expected vortex.timestamp of i64");

  const decimal: VortexDType = { kind: "decimal", precision: 38, scale: 0, nullable: false };
  const parts = (id: string, message: Uint8Array<ArrayBuffer>, lower: number) =>
    node(id, message, [], primitiveNode([1], "i8"), ...words(lower).map(() => primitiveNode([1], "u64")));
  const [v1, v2] = ["vortex.decimal_byte_parts", "vortex.decimal_byte_parts.v2"];
  const short: VortexDType = { kind: "decimal", precision: 2, scale: 0, nullable: false };
  const hundred = node(v1, proto([1, 4]), [], primitiveNode([100], "i8"));
  refused(short, 1, hundred, "Element 0 has more than the 2 digits of its decimal");
  refused(decimal, 1, parts(v1, proto([1, 4], [2, 1]), 1), "has 1 lower parts. Expected none");
  refused(decimal, 1, parts(v1, proto([1, 0]), 0), "names u8: expected a signed integer");
  refused(decimal, 1, parts(v2, proto([1, 4], [2, Uint8Array.of(3, 3, 3, 3)]), 4), "has 4 lower parts");
  refused(short, 1, parts(v2, proto([1, 4], [2, Uint8Array.of(3)]), 1), "more than the 2 digits");
  refused(decimal, 1, parts(v2, proto([1, 4], [2, Uint8Array.of(7)]), 1), "names i64: expected an unsigned integer");
});

test("a reference that is null, too large or missing is refused, and so are signs where none are allowed", () => {
  const differences = (metadata: Uint8Array<ArrayBuffer>) =>
    node("fastlanes.for", metadata, [], primitiveNode([1], "u8", [true]));
  refused(numbers("u8", true), 1, differences(scalarOf(null, "u8")), "it is null, but u8 is not nullable");
  refused(numbers("u8", true), 1, differences(proto([4, 256])), "the number is 256");
  refused(numbers("u8", true), 1, differences(none), "missing kind");
  refused(numbers("u8"), 1, node("vortex.zigzag", none, [], primitiveNode([1], "u8")), "Expected signed");
});

test("damaged trees are refused by an error that names a node, or decoded: nothing else happens", () => {
  let refusals = 0;
  check(
    fc.property(fc.nat(2 ** 24), (seed) => {
      const tree = damaged(numberTree(seed), seed);
      try {
        assertEquals(decodeTree(tree, { bytes: 2 ** 26 }).length, tree.length);
      } catch (error) {
        if (!(error instanceof VortexError)) throw error;
        assert(error.path.startsWith("$"), error.message);
        refusals++;
      }
    }),
    2000,
  );
  assert(refusals > scaled(500), `refused only ${refusals}`);
});

test(...withWheel("damaged data is decoded as by PyVortex, unless PyVortex refuses it"), () => {
  let same = 0;
  check(
    fc.property(fc.nat(2 ** 24), (seed) => {
      const trees = Array.from({ length: 200 }, (_, index) => damaged(numberTree(seed + index), seed + index, "data"));
      for (const [index, verdict] of judge(trees).entries()) {
        const tree = trees[index];
        if (tree === undefined || "error" in verdict) continue;
        try {
          assertEquals(rowsOf(decodeTree(tree)), verdict.rows, `${tree.name}: ${idsOf(tree.tree)}`);
          same++;
        } catch (error) {
          if (!(error instanceof VortexError)) throw error;
        }
      }
    }),
    1,
    { endOnFailure: true },
  );
  assert(same > scaled(50), `compared only ${same}`);
});
