import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { check, fc } from "../../support/property.ts";
import { codeTree } from "../../support/vortex/code_trees.ts";
import { decodeTree, idsOf, judge, rowsOf, withWheel } from "../../support/vortex/wheel.ts";

const ids = ["vortex.fsst", "vortex.onpair", "vortex.zstd", "vortex.pco"];

test("strings as codes and what compressors store are decoded to what was encoded, bit for bit", () => {
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

test(...withWheel("PyVortex decodes the same to the same"), () => {
  check(
    fc.property(fc.nat(2 ** 24), (seed) => {
      const trees = Array.from({ length: 100 }, (_, index) => codeTree(seed + index));
      const verdicts = judge(trees);
      for (const [index, { name, rows }] of trees.entries()) assertEquals(verdicts[index], { rows }, name);
    }),
    3,
    { endOnFailure: true },
  );
});
