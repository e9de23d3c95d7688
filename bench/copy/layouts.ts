/**
 * Copies between layouts on one device. Rates are bytes read and written. What the memory allows follows from the copy in one
 * piece: of every other column all has to be read, of a repeated row nothing but once.
 *
 * @module
 */
import { type Cuda, DeviceMemoryResource, slice, StridedLayout, StridedMemoryView } from "../../mod.ts";
import { stridedKernel } from "../../src/view/copy_kernels.ts";
import { copyProblem } from "../../src/view/copy_problem.ts";
import { deviceRate, type Peer, ratio, row, table } from "./section.ts";

/** A source: a dense array of this shape, of which the last axis is stepped (0: the first axis repeats), then permuted. */
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

/** What is copied: the peer copies the same. */
export const layouts: readonly Case[] = shapes.flatMap((shape) =>
  [1, 2, 4, 8, 16].map((itemsize): Case => ({ ...shape, itemsize }))
);

function sourceLayout({ shape, axes, step, itemsize }: Case): StridedLayout {
  if (step === 0) return StridedLayout.dense(shape.slice(1), itemsize).broadcastTo(shape);
  const room = shape.map((extent, axis) => axis === shape.length - 1 ? extent * step : extent);
  return StridedLayout.dense(room, itemsize).sliced("...", slice(null, null, step)).permuted(axes);
}

/** Bytes read and written, over bytes that the memory has to move: in sectors of 32. */
function share({ step }: Case): number {
  return 2 / (1 + step);
}

export function measureLayouts(cuda: Cuda, peer: Peer): number {
  const device = cuda.device(0);
  using stream = device.createStream();
  const pool = new DeviceMemoryResource(device);
  table(
    "Layouts, GB/s read and written",
    ...["copy", "bytes", "ours", "in one piece", "of what the memory allows", "torch", "ratio", "", "how"],
  );
  let failures = 0;
  layouts.forEach((one, i) => {
    const from = sourceLayout(one);
    const to = StridedLayout.dense(from.shape, one.itemsize);
    const bytes = to.requiredSizeInBytes();
    using source = pool.allocate(Math.max(bytes, from.requiredSizeInBytes()), { stream });
    using destination = pool.allocate(bytes, { stream });
    source.fill(7, { stream });
    const dtype = dtypes[one.itemsize] ?? "";
    const view = StridedMemoryView.fromBuffer(source, { shape: from.shape, strides: from.strides, dtype });
    const into = StridedMemoryView.fromBuffer(destination, { shape: to.shape, dtype });
    const rate = (enqueue: () => void) => deviceRate(device, stream, 2 * bytes, enqueue);
    const ours = rate(() => into.copyFrom(view, { stream }));
    const piece = rate(() => device.copy(destination.ptr, source.ptr, bytes, "DtoD", stream));
    const theirs = peer.layouts?.[i];
    const limit = share(one) * piece;
    const [factor, part] = one.step === 1 ? [2, 0.9] : [1, 0.95];
    const passes = theirs === undefined || ours >= factor * theirs || ours >= part * limit;
    if (!passes) failures++;
    const percent = `${(100 * ours / limit).toFixed(0)}%`;
    const judged = [ratio(ours, theirs), passes ? "PASS" : "FAIL", into.explainCopyFrom(view)];
    row(one.name, one.itemsize, ours, piece, percent, theirs, ...judged);
    if (one.step === 2) measureVariants(one, view, into, rate);
  });
  return failures;
}

/** How the instructions of the strided kernel could be spelled otherwise. */
const spellings: readonly (readonly [name: string, load: string, store: string])[] = [
  ["read only", "ld.global.nc.", "st.global."],
  ["read once", "ld.global.cs.", "st.global."],
  ["read and written once", "ld.global.cs.", "st.global.cs."],
  ["not kept in the first cache", "ld.global.L1::no_allocate.", "st.global."],
];

/** The same copy by kernels that are written otherwise: whether one of them should be the one. */
function measureVariants(
  one: Case,
  from: StridedMemoryView,
  to: StridedMemoryView,
  rate: (enqueue: () => void) => number,
): void {
  const { device, stream } = to;
  if (device === null || stream === null) return;
  const problem = copyProblem(from.layout, to.layout, { from: from.ptr, to: to.ptr });
  const written = [1, 2, 4, 8].map((words) => ({ name: `${words} words a thread`, ...stridedKernel(problem, words) }));
  const { ptx, grid, block } = stridedKernel(problem);
  const spelled = spellings.map(([name, load, store]) => {
    // The cache hints by level came with PTX 7.4.
    const text = ptx.replaceAll("ld.global.", load).replaceAll("st.global.", store).replace(
      ".version 7.0",
      ".version 7.4",
    );
    return { name, ptx: text, grid, block };
  });
  for (const variant of [...written, ...spelled]) {
    using program = device.loadPtx(variant.ptx);
    const kernel = program.kernel("copy");
    const ours = rate(() => kernel.launch(stream, variant.grid, variant.block, [to.ptr, from.ptr]));
    row(`... ${variant.name}`, one.itemsize, ours, "", "", "", "", "", "");
    device.synchronize();
  }
}
