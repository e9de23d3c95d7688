/**
 * Layout operations beside cuda.core's compiled layout and NumPy's arrays, in one run on one machine. Prints Markdown.
 *
 * Claim: every operation takes at most half of cuda.core's time, and allocates its result and nothing else.
 *
 * ```sh
 * CAUSEWAY_PYTHON=venv/bin/python deno run -A --v8-flags=--expose-gc bench/layout.ts
 * CAUSEWAY_PYTHON=venv/bin/python bun bench/layout.ts
 * ```
 *
 * The peer needs `pip install cuda-core cuda-bindings numpy` and no GPU. The two sides alternate, each turn in its own
 * process, and for both the fastest loop of all turns counts (as timeit advises: slower loops were disturbed by
 * something else). The ratio of the median turns is printed beside it.
 */
import { do_not_optimize, measure } from "mitata";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { slice, StridedLayout } from "../src/layout/mod.ts";

const TURNS = 6;
const LIMIT = 0.5;
const isBun = "Bun" in globalThis;

// Created beforehand, as Python creates constant tuples once; slices are created each time, as in Python.
const shape = [64, 32, 16];
const strides = [512, 16, 1];
const permutedShape = [16, 64, 32];
const permutedStrides = [1, 512, 16];
const axes = [2, 0, 1];
const matrix = [2048, 16];
const batch = [8, 64, 32, 16];
const layout = StridedLayout.dense(shape, 4);
const row = StridedLayout.dense([64, 1, 16], 4);

/** Keeps compilers from eliminating an unused result. */
function keep<T>(result: T): T {
  do_not_optimize(result);
  return result;
}

/** The operations by their names in layout_peer.py. */
const operations: Map<string, () => unknown> = new Map(Object.entries({
  "constructor": () => keep(new StridedLayout(shape, strides, 4)),
  "constructor, implicit strides": () => keep(new StridedLayout(shape, null, 4)),
  "dense": () => keep(StridedLayout.dense(shape, 4)),
  "permuted": () => keep(layout.permuted(axes)),
  "reshaped": () => keep(layout.reshaped(matrix)),
  "sliced": () => keep(layout.sliced(slice(1, 60, 2), slice(null, null, -1), 3)),
  "broadcast": () => keep(row.broadcastTo(shape)),
  "broadcast to four axes": () => keep(row.broadcastTo(batch)),
  "flattened": () => keep(layout.flattened()),
  "squeezed": () => keep(row.squeezed()),
  "unsqueezed": () => keep(layout.unsqueezed(1)),
  "permuted, then dense": () => keep(layout.permuted(axes).toDense("C")),
  "repacked": () => keep(layout.repacked(16)),
  "constructor + contiguity + bounds + uniqueness": () => {
    const made = new StridedLayout(shape, strides, 4);
    return keep(made.isContiguousC && made.offsetBounds[1] > 0 && made.isUnique);
  },
  "the same, permuted": () => {
    const made = new StridedLayout(permutedShape, permutedStrides, 4);
    return keep(!made.isContiguousC && made.offsetBounds[1] > 0 && made.isUnique);
  },
  "uniqueness, asked again": () => keep(layout.isUnique),
}));

interface PeerReport {
  versions: Record<string, string>;
  cudaCore: Record<string, number>;
  numpy: Record<string, number>;
}

function measurePeer(): PeerReport | string {
  const python = process.env["CAUSEWAY_PYTHON"] ?? "python3";
  const script = fileURLToPath(new URL("layout_peer.py", import.meta.url));
  const { status, stdout, stderr } = spawnSync(python, [script], { encoding: "utf8" });
  return status === 0 ? JSON.parse(stdout) : `${python}: ${stderr.trim().split("\n").at(-1) ?? "it did not run"}`;
}

/**
 * Nanoseconds of one operation: the fastest of mitata's samples, as for Python. Samples are long enough that each
 * includes garbage collection.
 */
async function measureSelf(run: () => unknown): Promise<number> {
  const { min } = await measure(run, { batch_samples: 131_072, min_samples: 12, min_cpu_time: 120e6 });
  return min;
}

const COUNT = 2000;

function medianOf(sample: () => number): number {
  return Array.from({ length: 51 }, sample).sort((one, two) => one - two)[25] ?? NaN;
}

/** The engine's heap: the bytes in use, and a way to collect garbage, if there is one. */
interface Heap {
  used(): number;
  collect: (() => void) | null;
}

async function openHeap(): Promise<Heap> {
  if (!isBun) {
    const gc: unknown = Reflect.get(globalThis, "gc");
    return { used: () => process.memoryUsage().heapUsed, collect: typeof gc === "function" ? () => gc() : null };
  }
  // In a variable, so that a type checker that knows only one runtime does not resolve it.
  const name = "bun:jsc";
  const jsc: { heapStats(): { heapSize: number }; fullGC(): void } = await import(name);
  return { used: () => jsc.heapStats().heapSize, collect: () => jsc.fullGC() };
}

/** Bytes per result: those still in use when results are kept. */
function bytesKept({ used, collect }: Heap, run: () => unknown): number | null {
  if (collect === null) return null;
  const results: unknown[] = Array.from({ length: COUNT }, () => 0);
  return medianOf(() => {
    results.fill(0);
    collect();
    const before = used();
    for (let index = 0; index < COUNT; index++) results[index] = run();
    collect();
    return (used() - before) / COUNT;
  });
}

/** Bytes that one operation allocates, garbage included. JavaScriptCore counts its heap only when it collects. */
function bytesAllocated({ used }: Heap, run: () => unknown): number | null {
  if (isBun) return null;
  return medianOf(() => {
    const before = used();
    for (let index = 0; index < COUNT; index++) run();
    return (used() - before) / COUNT;
  });
}

/** Times of one turn, by operation. */
type Times = Record<string, number>;

/** Measures our side in this process. */
async function measureOurs(): Promise<Times> {
  for (const run of operations.values()) for (let warm = 0; warm < 200_000; warm++) run();
  const times: [name: string, time: number][] = [];
  for (const [name, run] of operations) times.push([name, await measureSelf(run)]);
  return Object.fromEntries(times);
}

/**
 * Measures our side in its own process: how an engine compiles, and where its heap lies, is fixed once per process.
 */
function measureOursElsewhere(): Times {
  const self = fileURLToPath(import.meta.url);
  const args = isBun ? [self, "--ours"] : ["run", "-A", self, "--ours"];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`The other process failed: ${stderr}`);
  return JSON.parse(stdout);
}

if (process.argv[2] === "--ours") {
  console.log(JSON.stringify(await measureOurs()));
  process.exit(0);
}

const own: Times[] = [];
const cudaCore: Times[] = [];
const numpy: Times[] = [];
let versions: Record<string, string> = {};
for (let turn = 0; turn < TURNS; turn++) {
  const peer = measurePeer();
  if (typeof peer === "string") {
    console.error(
      `No peer (${peer}).\nInstall cuda-core, cuda-bindings and numpy, and name their Python in CAUSEWAY_PYTHON.`,
    );
    process.exit(1);
  }
  versions = peer.versions;
  cudaCore.push(peer.cudaCore);
  numpy.push(peer.numpy);
  own.push(measureOursElsewhere());
}

/** The times of an operation in all turns, ascending; empty if that side has no such operation. */
function timesOf(turns: readonly Times[], name: string): number[] {
  return turns.flatMap((turn) => Object.hasOwn(turn, name) ? [turn[name] ?? NaN] : []).sort((one, two) => one - two);
}

const runtime = isBun ? `Bun ${process.versions["bun"]}` : `Deno ${process.versions["deno"]}`;
const peers = Object.entries(versions).map(([name, version]) => `${name} ${version}`).join(", ");
const model = /^model name\s*: (.*)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1] ?? "unknown CPU";
console.log(`## ${runtime}\n`);
console.log(
  `${availableParallelism()} CPUs, ${model}; ${peers}. Nanoseconds per operation, best of ${TURNS} processes; load average ${
    loadavg().map((load) => load.toFixed(1)).join(", ")
  }.\n`,
);
console.log("| operation | ours | cuda.core | ratio | medians | NumPy | ratio | bytes kept | bytes allocated |");
console.log("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
const heap = await openHeap();
for (const run of operations.values()) for (let warm = 0; warm < 200_000; warm++) run();
const middle = Math.floor(TURNS / 2);
const over: string[] = [];
for (const [name, run] of operations) {
  const [ours, core, array] = [timesOf(own, name), timesOf(cudaCore, name), timesOf(numpy, name)];
  const time = (times: readonly number[], digits: number) => times[0]?.toFixed(digits) ?? "";
  const ratio = (times: readonly number[], at: number) =>
    times.length === 0 ? "" : ((ours[at] ?? NaN) / (times[at] ?? NaN)).toFixed(2);
  if (core.length > 0 && (ours[0] ?? NaN) / (core[0] ?? NaN) > LIMIT) over.push(`${name} (${ratio(core, 0)})`);
  const bytes = [bytesKept(heap, run), bytesAllocated(heap, run)].map((count) =>
    count === null ? "-" : String(Math.max(0, Math.round(count)))
  );
  const times = [time(ours, 1), time(core, 0), ratio(core, 0), ratio(core, middle), time(array, 0), ratio(array, 0)];
  console.log(`| ${[name, ...times, ...bytes].join(" | ")} |`);
}
console.log(
  over.length === 0
    ? "\nEvery operation takes at most half of cuda.core's time."
    : `\nMore than half of cuda.core's time: ${over.join(", ")}.`,
);
