/** Arrays of encodings that the session does not know: described and passed on, they lose nothing. */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import {
  decodeVortexIpc,
  encodeVortexIpc,
  fromVortexMetadata,
  VortexError,
  type VortexMetadata,
  VortexSession,
} from "../../../src/vortex/mod.ts";
import { writeDType } from "../../../src/vortex/wire/dtype_flatbuffer.ts";

const u8 = writeDType({ kind: "primitive", ptype: "u8", nullable: false });
const none = new Uint8Array();
const numbers: VortexMetadata = ["vortex.primitive", u8, 3, none, [Uint8Array.of(1, 2, 3)], []];
/** Unknown below known and above it. */
const tree: VortexMetadata = ["mine.outer", u8, 3, Uint8Array.of(9), [Uint8Array.of(4)], [
  ["mine.inner", u8, 3, none, [], [numbers]],
  numbers,
]];
const session = VortexSession.default({ allowsUnknown: true });

test("an array of an unknown encoding is described with all its children, as it came", () => {
  using array = fromVortexMetadata(tree, { session });
  assertEquals(array.toMetadata(), tree);
});

test("children of an unknown encoding that came in a message are passed on in one, but not described", () => {
  const { dtype, array } = encodeVortexIpc(fromVortexMetadata(tree, { session }));
  using received = decodeVortexIpc(array, { dtype, session });
  assertThrows(() => received.toMetadata(), VortexError, "Cannot describe the children of mine.outer: register");
  const again = encodeVortexIpc(received);
  assertEquals(decodeVortexIpc(again.array, { dtype, session }).displayTree(), received.displayTree());
});
