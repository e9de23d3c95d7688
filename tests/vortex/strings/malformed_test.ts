/** Strings as codes whose bytes are inconsistent: the node that holds them refuses them. */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import type { VortexDType } from "../../../src/vortex/dtype.ts";
import { VortexError } from "../../../src/vortex/error.ts";
import type { PType } from "../../../src/vortex/ptype.ts";
import type { RawNode } from "../../../src/vortex/raw_node.ts";
import { node, primitiveNode, proto, ptypeCode } from "../../support/vortex/nodes.ts";
import { decodeTree } from "../../support/vortex/wheel.ts";

type Bytes = Uint8Array<ArrayBuffer>;

const utf8: VortexDType = { kind: "utf8", nullable: false };
const bytes = (...of: number[]): Bytes => Uint8Array.from(of);
const ascii = (text: string): Bytes => new TextEncoder().encode(text);

/** Asserts that the node at a path refuses a tree. */
function refused(dtype: VortexDType, length: number, tree: RawNode, text: string, path = "$"): void {
  const error = assertThrows(() => decodeTree({ dtype, length, tree }, { bytes: 2 ** 24 }), VortexError, text);
  assertEquals(error.path, path, error.message);
}

/** Two rows, "ab" and "x": the symbol "ab", and an escape. */
function fsst(
  {
    symbols = ascii("ab\0\0\0\0\0\0"),
    sizes = bytes(2),
    codes = bytes(0, 255, 0x78),
    places = [0, 1, 3],
    lengths = [2, 1],
  },
): RawNode {
  return node(
    "vortex.fsst",
    proto([1, ptypeCode("i32")], [2, ptypeCode("u8")]),
    [symbols, sizes, codes],
    primitiveNode(lengths, "i32"),
    primitiveNode(places, "u8"),
  );
}

test("FSST's codes that are unassigned, end too early, or are of other strings than stated are refused", () => {
  assertEquals(decodeTree({ dtype: utf8, length: 2, tree: fsst({}) }).length, 2);
  refused(utf8, 2, fsst({ codes: bytes(1, 255, 0x78) }), "row 0 has the code 1, which is unassigned");
  const unknown = fsst({ codes: bytes(1, 0x41, 0), places: [0, 2, 3], lengths: [1, 2] });
  refused(utf8, 2, unknown, "row 0 has the code 1, which is unassigned");
  refused(utf8, 2, fsst({ codes: bytes(0, 0x41, 255) }), "row 1 has the code 65, which is unassigned");
  refused(utf8, 2, fsst({ codes: bytes(0, 255), places: [0, 1, 2] }), "row 1 ends in an escape");
  refused(utf8, 2, fsst({ codes: bytes(255, 255, 0x78), lengths: [1, 2] }), "row 0 ends in an escape");
  refused(utf8, 2, fsst({ lengths: [2, 2] }), "row 1 decodes to 1 bytes, expected 2");
  refused(utf8, 2, fsst({ lengths: [1, 1] }), "row 0 decodes to 2 bytes or more, expected 1");
  refused(utf8, 2, fsst({ lengths: [2, 0] }), "row 1 decodes to 1 bytes or more, expected 0");
  refused(utf8, 2, fsst({ lengths: [2, 1000] }), "the rows have 1002 bytes, but their codes decode to at most 24");
  refused(utf8, 2, fsst({ lengths: [2, 2 ** 31 - 1] }), "but their codes decode to at most 24");
  refused(utf8, 2, fsst({ lengths: [2, -1] }), "length 1 is -1, expected 0 to 2147483647", "$.children[0]");
  refused(utf8, 2, fsst({ places: [0, 3, 1] }), "offsets of codes fall from 3 to 1 at 2", "$.children[1]");
  refused(
    utf8,
    2,
    fsst({ places: [0, 1, 4] }),
    "the last of the offsets of codes is 4, expected at most 3",
    "$.children[1]",
  );
  refused(utf8, 2, fsst({ sizes: bytes(9) }), "symbol 0 has 9 bytes, expected 1 to 8");
  refused(utf8, 2, fsst({ sizes: bytes(0) }), "symbol 0 has 0 bytes, expected 1 to 8");
  refused(utf8, 2, fsst({ sizes: bytes(2, 2) }), "8 bytes of symbols and 2 lengths");
  refused(
    utf8,
    2,
    fsst({ symbols: new Uint8Array(256 * 8), sizes: new Uint8Array(256).fill(1) }),
    "at most 255 lengths",
  );
  refused(utf8, 2, fsst({ codes: bytes(0, 255, 0xff) }), "Element 1 is not UTF-8");
  refused(
    utf8,
    2,
    fsst({ symbols: ascii("\u00fc\0\0\0\0\0\0").map((byte) => byte === 0xbc ? 0x41 : byte) }),
    "Element 0 is not UTF-8",
  );
  // Two halves of a character are text together, but not apart.
  const split = fsst({ codes: bytes(255, 0xc3, 255, 0xbc), places: [0, 2, 4], lengths: [1, 1] });
  refused(utf8, 2, split, "Element 0 is not UTF-8");
  assertEquals(decodeTree({ dtype: { kind: "binary", nullable: false }, length: 2, tree: split }).length, 2);
  refused({ kind: "bool", nullable: false }, 2, fsst({}), "cannot have the dtype bool");
  const one = node("vortex.fsst", proto(), [bytes()], primitiveNode([0], "u8"), primitiveNode([0, 0], "u8"));
  refused(utf8, 1, one, "has 1 buffers, expected 2 to 3");
});

test("lengths and places of any integer type that are too large or negative are refused", () => {
  const row = (length: bigint, ptype: PType) =>
    node(
      "vortex.fsst",
      proto([1, ptypeCode(ptype)], [2, ptypeCode(ptype)]),
      [bytes(), bytes(), bytes(255, 0x78)],
      primitiveNode([length], ptype),
      primitiveNode([0n, 2n], ptype),
    );
  for (const ptype of ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64"] as const) {
    assertEquals(decodeTree({ dtype: utf8, length: 1, tree: row(1n, ptype) }).length, 1);
  }
  const expect = (length: bigint, ptype: PType) =>
    refused(utf8, 1, row(length, ptype), `length 0 is ${length}, expected 0 to 2147483647`, "$.children[0]");
  expect(2n ** 32n + 1n, "u64");
  expect(2n ** 31n, "u64");
  expect(2n ** 31n, "u32");
  expect(-1n, "i64");
  expect(-1n, "i32");
  expect(-1n, "i16");
  expect(-1n, "i8");
});

/** Two rows, "abc" and "a". */
function onPair(
  { tokens = ascii("abc"), places = [0, 1, 3], codes = [0, 1, 0], rows = [0, 2, 3], lengths = [3, 1], count = 2 },
): RawNode {
  return node(
    "vortex.onpair",
    proto([3, count], [4, codes.length], [6, ptypeCode("u32")]),
    [tokens],
    primitiveNode(places, "u8"),
    primitiveNode(codes, "u32"),
    primitiveNode(rows, "u8"),
    primitiveNode(lengths, "u8"),
  );
}

test("OnPair's codes that are unassigned, or are of other strings than stated, are refused", () => {
  assertEquals(decodeTree({ dtype: utf8, length: 2, tree: onPair({}) }).length, 2);
  refused(utf8, 2, onPair({ codes: [0, 2, 0] }), "row 0 has the code 2, which is unassigned");
  refused(utf8, 2, onPair({ codes: [0, 65536, 0] }), "code 1 is 65536, expected 0 to 65535", "$.children[1]");
  refused(utf8, 2, onPair({ lengths: [3, 2] }), "row 1 decodes to 1 bytes, expected 2");
  refused(utf8, 2, onPair({ lengths: [2, 1] }), "row 0 decodes to 3 bytes or more, expected 2");
  refused(utf8, 2, onPair({ lengths: [200, 1] }), "the rows have 201 bytes, but their codes decode to at most 48");
  refused(utf8, 2, onPair({ places: [0, 0, 3] }), "token 0 has 0 bytes, expected 1 to 16");
  refused(
    utf8,
    2,
    onPair({ tokens: new Uint8Array(18), places: [0, 1, 18] }),
    "token 1 has 17 bytes, expected 1 to 16",
  );
  refused(utf8, 2, onPair({ places: [0, 1, 4] }), "the last of the offsets of tokens is 4", "$.children[0]");
  refused(utf8, 2, onPair({ places: [2, 1, 3] }), "offsets of tokens fall from 2 to 1", "$.children[0]");
  refused(utf8, 2, onPair({ rows: [0, 2, 4] }), "the last of the offsets of codes is 4", "$.children[2]");
  refused(utf8, 2, onPair({ rows: [0, 3, 2] }), "offsets of codes fall from 3 to 2", "$.children[2]");
  refused(utf8, 2, onPair({ count: 65537 }), "It has 65537 tokens. Expected at most 65536");
  refused(utf8, 2, onPair({ tokens: bytes(0x61, 0xc3, 0x63) }), "Element 0 is not UTF-8");
});
