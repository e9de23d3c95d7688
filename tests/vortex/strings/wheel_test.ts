import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { check, fc } from "../../support/property.ts";
import { decodeTree, idsOf, rowsOf, withWheel, writtenColumns } from "../../support/vortex/wheel.ts";

/** What PyVortex chooses for these columns, of what this shelf and its neighbour decode. */
const chosen = ["vortex.fsst", "vortex.onpair", "vortex.zstd", "vortex.pco"];

test(
  ...withWheel("text and numbers of PyVortex's files are decoded to what PyVortex decodes them to, bit for bit"),
  () => {
    const met = new Set<string>();
    check(
      fc.property(fc.nat(2 ** 31 - 1), (seed) => {
        for (const { name, array, rows } of writtenColumns(seed, 80)) {
          const ids = idsOf(array.tree);
          for (const id of ids) met.add(id);
          assertEquals(rowsOf(decodeTree(array)), rows, `${name}: ${ids}`);
        }
      }),
      3,
      { endOnFailure: true },
    );
    assert(chosen.every((id) => met.has(id)), `met only ${[...met].toSorted()}`);
  },
);
