/**
 * Copies that convert, on one device. Rates are bytes read and written.
 *
 * @module
 */
import { type Cuda, DeviceMemoryResource, DType, StridedLayout, StridedMemoryView } from "../../mod.ts";
import { deviceRate, ratio, row, table, type Torch } from "./section.ts";
import { enqueueCopy } from "../../src/device/mod.ts";

interface Case {
  readonly from: string;
  readonly to: string;
  readonly axes: readonly number[];
}

const shape = [8192, 4096];

/** The conversions; the peer runs the same ones. */
const conversions: readonly Case[] = [
  { from: "float32", to: "bfloat16", axes: [0, 1] },
  { from: "bfloat16", to: "float32", axes: [0, 1] },
  { from: "float32", to: "float16", axes: [0, 1] },
  { from: "float64", to: "float32", axes: [0, 1] },
  { from: "uint8", to: "float32", axes: [0, 1] },
  { from: "float32", to: "uint8", axes: [0, 1] },
  { from: "int64", to: "int32", axes: [0, 1] },
  { from: "float32", to: "bfloat16", axes: [1, 0] },
  { from: "uint8", to: "float32", axes: [1, 0] },
];

export async function measureConversions(cuda: Cuda, torch: Torch): Promise<number> {
  const device = cuda.device(0);
  using stream = device.createStream();
  const pool = new DeviceMemoryResource(device);
  table("Conversions, GB/s read and written", "from", "to", "", "ours", "in one piece", "of it", "torch", "ratio", "");
  let failures = 0;
  for (const one of conversions) {
    const { from, to, axes } = one;
    const [source, target] = [from, to].map((name) => StridedLayout.dense(shape, DType.from(name).itemsize));
    if (source === undefined || target === undefined) continue;
    const [read, written] = [source.requiredSizeInBytes(), target.requiredSizeInBytes()];
    using given = pool.allocate(Math.max(read, written), { stream });
    using result = pool.allocate(Math.max(read, written), { stream });
    given.fill(0, { stream });
    const view = StridedMemoryView.fromBuffer(given, { shape, dtype: DType.from(from) }).permuted(axes);
    const into = StridedMemoryView.fromBuffer(result, { shape: view.shape, dtype: DType.from(to) });
    const rate = (bytes: number, enqueue: () => void) => deviceRate(device, stream, bytes, enqueue);
    const ours = rate(read + written, () => into.copyFrom(view, { stream, convert: true }));
    const piece = Math.floor((read + written) / 2);
    const limit = rate(
      2 * piece,
      () => enqueueCopy(stream, result.ptr, given.ptr, Math.min(piece, given.size), "DtoD"),
    );
    const theirs = await torch("conversions", one);
    const passes = theirs === undefined || ours >= theirs || ours >= 0.9 * limit;
    if (!passes) failures++;
    const percent = `${(100 * ours / limit).toFixed(0)}%`;
    const how = axes[0] === 0 ? "as it lies" : "transposed";
    row(from, to, how, ours, limit, percent, theirs, ratio(ours, theirs), passes ? "PASS" : "FAIL");
  }
  return failures;
}
