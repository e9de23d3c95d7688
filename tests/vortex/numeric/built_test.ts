import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { numericEncodings } from "../../../src/vortex/numeric/numeric_encodings.ts";
import { check, fc } from "../../support/property.ts";
import { numberTree } from "../../support/vortex/number_trees.ts";
import { decodeTree, idsOf, judge, rowsOf, withWheel } from "../../support/vortex/wheel.ts";

test(...withWheel("nested encodings are decoded as by PyVortex, bit for bit"), () => {
  const met = new Set<string>();
  check(
    fc.property(fc.nat(2 ** 24), (seed) => {
      const trees = Array.from({ length: 100 }, (_, index) => numberTree(seed + index));
      const verdicts = judge(trees);
      for (const [index, tree] of trees.entries()) {
        const ids = idsOf(tree.tree);
        for (const id of ids) met.add(id);
        // PyVortex panics on some arrays without rows, which leave nothing to judge.
        const verdict = tree.length === 0 ? { rows: "" } : verdicts[index];
        assertEquals({ rows: rowsOf(decodeTree(tree)) }, verdict, `${tree.name}: ${ids}`);
      }
    }),
    4,
    { endOnFailure: true },
  );
  assert(numericEncodings.every(({ id }) => met.has(id)), `met only ${[...met].toSorted()}`);
});
