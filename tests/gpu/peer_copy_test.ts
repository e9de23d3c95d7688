/**
 * Copies between two real devices: in one piece, by rows, gathered and scattered, and by one kernel, with and without
 * access.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import {
  Cuda,
  DeviceMemoryResource,
  PinnedMemoryResource,
  slice,
  StridedLayout,
  StridedMemoryView,
} from "../../mod.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";

const rows = 512;
const columns = 256;
const count = rows * columns;

/** Layouts of the source and the destination, by description. */
const layouts: { readonly [name: string]: readonly [StridedLayout, StridedLayout] } = {
  alike: [StridedLayout.dense([rows, columns], 4), StridedLayout.dense([rows, columns], 4)],
  "wide rows": [
    StridedLayout.dense([rows, columns + 8], 4).sliced("...", slice(0, columns)),
    StridedLayout.dense([rows, columns], 4),
  ],
  turned: [StridedLayout.dense([columns, rows], 4).permuted([1, 0]), StridedLayout.dense([rows, columns], 4)],
  "every other column": [
    StridedLayout.dense([rows, 2 * columns], 4).sliced("...", slice(null, null, 2)),
    StridedLayout.dense([rows, columns], 4),
  ],
  "every other column of both": [
    StridedLayout.dense([rows, 2 * columns], 4).sliced("...", slice(null, null, 2)),
    StridedLayout.dense([rows, 3 * columns], 4).sliced("...", slice(null, null, 3)),
  ],
};

test(
  ...needs(missingGpus(2), "elements go from one device to another, with access to each other's memory or without"),
  () => {
    using cuda = Cuda.open();
    const devices = [cuda.device(0), cuda.device(1)] as const;
    const wrong: string[] = [];
    for (const access of [[], [0], [1], [0, 1]]) {
      // Separate pools: the devices' default pools are shared.
      using mine = new DeviceMemoryResource(devices[0], {});
      using theirs = new DeviceMemoryResource(devices[1], {});
      if (access.includes(1)) mine.peerAccessibleBy = [1];
      if (access.includes(0)) theirs.peerAccessibleBy = [0];
      for (const [name, [from, to]] of Object.entries(layouts)) {
        for (const place of devices) {
          using stream = place.createStream();
          using home = devices[0].createStream();
          using other = devices[1].createStream();
          using source = mine.allocate(from.requiredSizeInBytes(), { stream: home });
          using destination = theirs.allocate(to.requiredSizeInBytes(), { stream: other });
          using host = new PinnedMemoryResource(devices[0]).allocate(4 * count);
          const numbers = new Uint32Array(host.bytes().buffer, host.bytes().byteOffset, count);
          numbers.forEach((_, i) => numbers[i] = Math.imul(i, 2654435761) >>> 0);
          const dense = StridedMemoryView.fromBuffer(host, { shape: [rows, columns], dtype: "uint32" });
          const here = StridedMemoryView.fromBuffer(source, { ...strides(from), dtype: "uint32" });
          const there = StridedMemoryView.fromBuffer(destination, { ...strides(to), dtype: "uint32" });
          here.copyFrom(dense, { stream: home });
          there.copyFrom(here, { stream });
          other.synchronize();
          numbers.fill(0);
          dense.copyFrom(there, { stream: other });
          other.synchronize();
          const bad = numbers.findIndex((number, i) => number !== Math.imul(i, 2654435761) >>> 0);
          const how = there.explainCopyFrom(here, { stream });
          if (bad >= 0) wrong.push(`${name}, access of ${access}, stream of ${place.ordinal}: element ${bad}; ${how}`);
        }
      }
    }
    assertEquals(wrong, []);
  },
);

function strides({ shape, strides }: StridedLayout) {
  return { shape, strides };
}
