import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { flatten } from "../../../src/vortex/ops/flatten.ts";
import { rootNode } from "../../../src/vortex/encoded_node.ts";
import { limitsOf } from "../../../src/vortex/limits.ts";
import { VortexSession } from "../../../src/vortex/mod.ts";
import { openAll } from "../../../src/vortex/open_nodes.ts";
import { VortexArray } from "../../../src/vortex/vortex_array.ts";
import { check, fc, scaled } from "../../support/property.ts";
import { numberTree } from "../../support/vortex/number_trees.ts";
import { decodeTree, rowsOf } from "../../support/vortex/wheel.ts";

const session = VortexSession.default();

test("runs that are kept rise from the first row to the last, and stand for the rows that they are decoded to", () => {
  let kept = 0;
  check(
    fc.property(fc.nat(2 ** 24), (seed) => {
      const tree = numberTree(seed);
      if (tree.tree.id !== "vortex.runend") return;
      const array = decodeTree(tree, { keep: { dictionary: false, runEnd: true } });
      assert(array.kind === "runEnd");
      kept++;
      const { ends, length, values } = array;
      assertEquals([values.length, ends.at(-1), array.dtype], [ends.length, length, tree.dtype]);
      assert(ends.every((end, run) => end > (ends[run - 1] ?? 0)), `${ends}`);
      const { dtype } = tree;
      const root = rootNode(tree.tree, dtype, length);
      openAll(session, root);
      const own = VortexArray.ofNode(root, { session, limits: limitsOf() });
      const arrow = own.toArrow({ keep: ["runEnd"] });
      assertEquals([arrow.type.kind, arrow.nullCount], ["run_end_encoded", 0]);
      assertEquals(arrow.toArray(), own.toArrow().toArray());
      assertEquals(rowsOf(flatten(array, (bytes) => new Uint8Array(bytes))), rowsOf(decodeTree(tree)));
    }),
    600,
  );
  assert(kept > scaled(20), `kept only ${kept}`);
});
