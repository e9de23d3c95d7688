/**
 * Copies between layouts on one device. Rates are twice the bytes of the destination. The contiguous copy for
 * comparison moves as much memory: for every other column all columns must be read, and a repeated row is only written.
 *
 * @module
 */
import { type Cuda, DeviceMemoryResource, DType, slice, StridedLayout, StridedMemoryView } from "../../mod.ts";
import { deviceRate, ratio, row, table, type Torch } from "./section.ts";
import { enqueueCopy, enqueueFill } from "../../src/device/mod.ts";

/**
 * A source: a dense array of this shape, whose last axis is stepped (0: the first axis repeats), then permuted.
 */
interface Case {
  readonly name: string;
  readonly shape: readonly number[];
  readonly axes: readonly number[];
  readonly step: number;
  readonly itemsize: number;
}

const dtypes: { readonly [itemsize: number]: string } = {
  1: "uint8",
  2: "int16",
  4: "float32",
  8: "float64",
  16: "complex128",
};

const shapes: readonly Omit<Case, "itemsize">[] = [
  { name: "transposed", shape: [4096, 4096], axes: [1, 0], step: 1 },
  { name: "reversed", shape: [256, 256, 256], axes: [2, 1, 0], step: 1 },
  { name: "NCHW to NHWC", shape: [64, 128, 64, 64], axes: [0, 2, 3, 1], step: 1 },
  { name: "every other column", shape: [4096, 4096], axes: [0, 1], step: 2 },
  { name: "a row repeated", shape: [4096, 4096], axes: [0, 1], step: 0 },
];

/** The copies; the peer makes the same ones. */
const layouts: readonly Case[] = shapes.flatMap((shape) =>
  [1, 2, 4, 8, 16].map((itemsize): Case => ({ ...shape, itemsize }))
);

function sourceLayout({ shape, axes, step, itemsize }: Case): StridedLayout {
  if (step === 0) return StridedLayout.dense(shape.slice(1), itemsize).broadcastTo(shape);
  const room = shape.map((extent, axis) => axis === shape.length - 1 ? extent * step : extent);
  return StridedLayout.dense(room, itemsize).sliced("...", slice(null, null, step)).permuted(axes);
}

export async function measureLayouts(cuda: Cuda, torch: Torch): Promise<number> {
  const device = cuda.device(0);
  using stream = device.createStream();
  const pool = new DeviceMemoryResource(device);
  table(
    "Layouts, GB/s read and written",
    ...["copy", "bytes", "ours", "in one piece", "of it", "torch", "ratio", "", "how"],
  );
  let failures = 0;
  for (const one of layouts) {
    const from = sourceLayout(one);
    const to = StridedLayout.dense(from.shape, one.itemsize);
    const bytes = to.requiredSizeInBytes();
    using source = pool.allocate(Math.max(bytes, from.requiredSizeInBytes()), { stream });
    // The contiguous copy moves as much: for every other column all that is read; a repeated row is only written.
    const piece = bytes * (1 + one.step) / 2;
    using destination = pool.allocate(Math.max(bytes, piece), { stream });
    source.fill(7, { stream });
    const dtype = DType.from(dtypes[one.itemsize] ?? "");
    const view = StridedMemoryView.fromBuffer(source, { shape: from.shape, strides: from.strides, dtype });
    const into = StridedMemoryView.fromBuffer(destination, { shape: to.shape, dtype });
    const rate = (enqueue: () => void) => deviceRate(device, stream, 2 * bytes, enqueue);
    const ours = rate(() => into.copyFrom(view, { stream }));
    const limit = rate(() => {
      if (one.step === 0) enqueueFill(stream, destination.ptr, 7, 4, bytes);
      else enqueueCopy(stream, destination.ptr, source.ptr, piece, "DtoD");
    });
    const theirs = await torch("layouts", one);
    const [factor, part] = one.step === 1 ? [2, 0.9] : [1, 0.95];
    const passes = theirs === undefined || ours >= factor * theirs || ours >= part * limit;
    if (!passes) failures++;
    const percent = `${(100 * ours / limit).toFixed(0)}%`;
    const judged = [ratio(ours, theirs), passes ? "PASS" : "FAIL", into.explainCopyFrom(view)];
    row(one.name, one.itemsize, ours, limit, percent, theirs, ...judged);
  }
  return failures;
}
