/**
 * Exports and imports that are never closed: prints how many are left after garbage collection, the values of a child
 * that was kept, and how many exports it retains.
 */
import { liveExports } from "../../src/order/reclaim.ts";
import { ArrowArray, arrowField, StridedMemoryView } from "../../mod.ts";
import { collectGarbage } from "../support/collect.ts";

/** A child of an import that is itself dropped. */
function onlyChild(): ArrowArray {
  const numbers = new ArrowArray({
    field: arrowField("c"),
    length: 2,
    buffers: [null, StridedMemoryView.fromTypedArray(Uint8Array.of(1, 2))],
  });
  const field = arrowField({ kind: "struct", children: [numbers.field, numbers.field] });
  const table = new ArrowArray({ field, length: 2, buffers: [null], children: [numbers, numbers] });
  return ArrowArray.from(table).child(0);
}

function drop(): void {
  const view = StridedMemoryView.fromTypedArray(new Float32Array(100));
  for (let i = 0; i < 50; i++) {
    view.toArrowDevice();
    ArrowArray.from(view);
  }
}

const child = onlyChild();
for (let i = 0; i < 3; i++) await collectGarbage();
const withChild = liveExports();
drop();
for (let i = 0; i < 10 && liveExports() > withChild + 10; i++) await collectGarbage();
console.log(JSON.stringify({ left: liveExports() - withChild, child: child.toArray(), withChild }));
