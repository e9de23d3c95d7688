/**
 * Copies between layouts on one device, beside torch's `copy_` and a copy in one piece, in one run. Prints Markdown.
 *
 * Claim: transposes run at twice torch's rate or more, and at 65% of the rate of a copy in one piece; parts and repeated rows
 * are never slower than torch.
 *
 * ```sh
 * CAUSEWAY_PYTHON=venv/bin/python deno run -A bench/copy.ts
 * CAUSEWAY_PYTHON=venv/bin/python bun bench/copy.ts
 * ```
 *
 * Needs a GPU; the peer needs torch. Rates are bytes read and written, by the device's clock.
 */
import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { Cuda, DeviceMemoryResource, slice, StridedLayout, StridedMemoryView } from "../mod.ts";

const REPEATS = 20;
const ROUNDS = 7;
const isBun = "Bun" in globalThis;

if (!Cuda.probe().available) {
  console.log("Not measured: there is no GPU here.");
  process.exit(0);
}

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
const cases: readonly Case[] = shapes.flatMap((shape) =>
  [1, 2, 4, 8, 16].map((itemsize): Case => ({ ...shape, itemsize }))
);

using cuda = Cuda.open();
const device = cuda.device(0);
using stream = device.createStream();
const pool = new DeviceMemoryResource(device);

function sourceLayout({ shape, axes, step, itemsize }: Case): StridedLayout {
  if (step === 0) return StridedLayout.dense(shape.slice(1), itemsize).broadcastTo(shape);
  const room = shape.map((extent, axis) => axis === shape.length - 1 ? extent * step : extent);
  return StridedLayout.dense(room, itemsize).sliced("...", slice(null, null, step)).permuted(axes);
}

/** Gigabytes per second of something that is enqueued. */
function rate(bytes: number, enqueue: () => void): number {
  using start = device.createEvent({ timing: true });
  using end = device.createEvent({ timing: true });
  enqueue();
  const times = Array.from({ length: ROUNDS }, () => {
    stream.record(start);
    for (let i = 0; i < REPEATS; i++) enqueue();
    stream.record(end).synchronize();
    return end.millisecondsSince(start) / REPEATS;
  }).sort((one, other) => one - other);
  return 2 * bytes / (times[Math.floor(ROUNDS / 2)] ?? NaN) / 1e6;
}

function measure(one: Case): { ours: number; floor: number; plan: string } {
  const from = sourceLayout(one);
  const to = StridedLayout.dense(from.shape, one.itemsize);
  const bytes = to.requiredSizeInBytes();
  using source = pool.allocate(Math.max(bytes, from.requiredSizeInBytes()), { stream });
  using destination = pool.allocate(bytes, { stream });
  source.fill(7, { stream });
  const dtype = dtypes[one.itemsize] ?? "";
  const view = StridedMemoryView.fromBuffer(source, { ...from, dtype });
  const into = StridedMemoryView.fromBuffer(destination, { ...to, dtype });
  const ours = rate(bytes, () => into.copyFrom(view, { stream }));
  const floor = rate(bytes, () => device.copy(destination.ptr, source.ptr, bytes, "DtoD", stream));
  stream.synchronize();
  return { ours, floor, plan: into.explainCopyFrom(view) };
}

const script = fileURLToPath(new URL("copy_peer.py", import.meta.url));
const python = process.env["CAUSEWAY_PYTHON"] ?? "python3";
const { status, stdout, stderr } = spawnSync(python, [script, JSON.stringify(cases)], { encoding: "utf8" });
const peer: { version: string; rates: number[] } | null = status === 0 ? JSON.parse(stdout) : null;
if (peer === null) console.error(`No peer: ${stderr.trim().split("\n").at(-1)}. Install torch.`);

const runtime = isBun ? `Bun ${process.versions["bun"]}` : `Deno ${process.versions["deno"]}`;
console.log(`## ${runtime}\n\n${device.name}; torch ${peer?.version ?? "-"}. GB/s read and written, medians.\n`);
console.log("| copy | bytes | ours | in one piece | of it | torch | ratio | | how |");
console.log("|---|--:|--:|--:|--:|--:|--:|---|---|");
let failures = 0;
cases.forEach((one, i) => {
  const { ours, floor, plan } = measure(one);
  const theirs = peer?.rates[i];
  const isTranspose = one.step === 1;
  const passes = (theirs === undefined || ours >= (isTranspose ? 2 : 1) * theirs) &&
    (!isTranspose || ours >= 0.65 * floor);
  if (!passes) failures++;
  const cells = [one.name, one.itemsize, ours.toFixed(0), floor.toFixed(0), `${(100 * ours / floor).toFixed(0)}%`];
  const rest = [theirs?.toFixed(0) ?? "-", theirs === undefined ? "-" : (ours / theirs).toFixed(2)];
  console.log(`| ${[...cells, ...rest, passes ? "PASS" : "FAIL", plan].join(" | ")} |`);
});
process.exitCode = failures === 0 ? 0 : 1;
