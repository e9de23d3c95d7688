import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { hasDictionaries } from "../../../src/vortex/compressed/zstd.ts";
import { VortexError } from "../../../src/vortex/error.ts";
import { check, fc } from "../../support/property.ts";
import { codeTree } from "../../support/vortex/code_trees.ts";
import { node, proto } from "../../support/vortex/nodes.ts";
import { type BuiltArray, decodeTree, idsOf, judge, rowsOf, withWheel } from "../../support/vortex/wheel.ts";
import { zstdFrame } from "../../support/vortex/zstd_frames.ts";

const ids = ["vortex.fsst", "vortex.onpair", "vortex.zstd", "vortex.pco"];

test("strings as codes and compressed arrays are decoded to what was encoded, bit for bit", () => {
  const met = new Set<string>();
  check(
    fc.property(fc.nat(2 ** 24), (seed) => {
      const { name, rows, ...array } = codeTree(seed);
      for (const id of idsOf(array.tree)) met.add(id);
      assertEquals(rowsOf(decodeTree(array)), rows, name);
    }),
    300,
    { endOnFailure: true },
  );
  assert(ids.every((id) => met.has(id)), `met only ${[...met].toSorted()}`);
});

test(...withWheel("frames that share a dictionary are decoded as PyVortex does, where the runtime can"), () => {
  const dictionary = new TextEncoder().encode("https://example.org/a/page/of/many ".repeat(8));
  const content = new TextEncoder().encode("https://example.org/a/page/of/one, https://example.org/a/page/of/a");
  const form = { blocks: "compressed", sizeBytes: 4, isSingleSegment: false } as const;
  const frame = zstdFrame(content, form, dictionary);
  const metadata = proto([1, dictionary.length], [2, proto([1, content.length], [2, content.length])]);
  const tree = node("vortex.zstd", metadata, [dictionary, frame]);
  const array: BuiltArray = {
    dtype: { kind: "primitive", ptype: "u8", nullable: false },
    length: content.length,
    tree,
  };
  if (hasDictionaries()) assertEquals({ rows: rowsOf(decodeTree(array)) }, judge([array])[0]);
  else assertThrows(() => decodeTree(array), VortexError, "decode it in Bun");
});
