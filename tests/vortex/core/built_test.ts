/**
 * Arrays of every dtype, in every encoding close to Arrow's own, nested in each other, keep their values: here, in
 * PyVortex, and when they are read back from PyVortex or from their own description.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { ArrowArray, type PyObject } from "../../../mod.ts";
import { rootNode } from "../../../src/vortex/encoded_node.ts";
import { limitsOf } from "../../../src/vortex/limits.ts";
import { decodeVortexIpc, encodeVortexIpc, fromVortexMetadata, VortexSession } from "../../../src/vortex/mod.ts";
import { openAll } from "../../../src/vortex/open_nodes.ts";
import { VortexArray } from "../../../src/vortex/vortex_array.ts";
import { patiently } from "../../support/child.ts";
import { needs } from "../../support/needs.ts";
import { check, fc } from "../../support/property.ts";
import { type CanonicalTree, canonicalTree } from "../../support/vortex/canonical_trees.ts";
import { missingPyVortex, openPyVortex } from "../../support/vortex/python_arrays.ts";
import { idsOf } from "../../support/vortex/wheel.ts";

const session = VortexSession.default();

function arrayOf({ dtype, length, tree }: CanonicalTree): VortexArray {
  const root = rootNode(tree, dtype, length);
  openAll(session, root);
  return VortexArray.ofNode(root, { session, limits: limitsOf() });
}

const trees = fc.nat().map((seed) => canonicalTree(seed)).map((tree) =>
  Object.assign(tree, { [fc.toStringMethod]: () => `${arrayOf(tree).displayTree()} of ${String(tree.values)}` })
);

test("arrays in encodings near to Arrow's are what they were made of, whole and in part", patiently, () => {
  const seen = new Set<string>();
  check(
    fc.property(trees, fc.nat(), fc.nat(), (tree, one, two) => {
      const array = arrayOf(tree);
      for (const id of idsOf(tree.tree)) seen.add(id);
      assertEquals(array.toArrow().toArray() as unknown, tree.values);
      assertEquals(array.toArrow({ keep: ["dictionary", "runEnd"] }).toArray() as unknown, tree.values);
      const [start = 0, end = 0] = [one, two].map((at) => at % (tree.length + 1)).toSorted((a, b) => a - b);
      const slice = array.slice(start, end);
      assertEquals(slice.toArrow().toArray() as unknown, tree.values.slice(start, end));
      assertEquals(fromVortexMetadata(slice.toMetadata()).toArrow().toArray(), slice.toArrow().toArray());
      assertEquals(fromVortexMetadata(arrayOf(tree).toMetadata()).toArrow().toArray() as unknown, tree.values);
      const { array: message, dtype } = encodeVortexIpc(arrayOf(tree));
      assertEquals(decodeVortexIpc(message, { dtype }).toArrow().toArray() as unknown, tree.values);
    }),
    1000,
  );
  assert(seen.size >= 17, `${[...seen].join(" ")}`);
});

const [title, options] = needs(missingPyVortex, "PyVortex sees the same in arrays in encodings near to Arrow's");

test(title, { ...options, ...patiently }, () => {
  const ofMessages = openPyVortex().evaluate("of_messages");
  check(
    fc.property(trees, (tree) => {
      const { array, dtype } = encodeVortexIpc(arrayOf(tree));
      using theirs: PyObject = ofMessages.$call(array, dtype);
      using again = ArrowArray.from(theirs);
      assertEquals(again.toArray() as unknown, tree.values);
    }),
    500,
  );
});
