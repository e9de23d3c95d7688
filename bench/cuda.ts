/**
 * Streams, memory, addresses and launches beside cuda.core, cuda.bindings, the bare driver and the same calls from C,
 * in one run on one machine. Prints Markdown.
 *
 * Claim: recording and waiting, allocating and freeing from a pool, and querying an address take at most 0.6 (Bun) or
 * 0.8 (Deno) of cuda.core's time; a launch with four arguments at most 0.9, and at most 300 ns more than the bare call.
 *
 * ```sh
 * CAUSEWAY_PYTHON=venv/bin/python taskset -c 4-7 deno run -A bench/cuda.ts
 * CAUSEWAY_PYTHON=venv/bin/python taskset -c 4-7 bun bench/cuda.ts
 * ```
 *
 * Needs a GPU; the peer needs cuda-core and cuda-bindings. The bare driver is called through the same bindings, with
 * handles created beforehand and nothing checked; from C, if there is a compiler, by `cuda_floor.c`. Work is enqueued
 * in batches, and the device is synchronized between them, off the clock. `taskset` pins all of them to the same
 * processors, which differ on some hosts.
 *
 * Once memory has been allocated from a pool on a stream, the driver takes some 85 ns more for each event on that
 * stream, in any language: this case has its own row, without a limit. The other row is between otherwise unused
 * streams.
 *
 * Measurements alternate, in rounds: ours and the bare driver batch by batch, then the peers. For each, the median of
 * the fastest round counts; the median of all rounds is printed beside it.
 */
import { cpus } from "node:os";
import process from "node:process";
import { Cuda, DeviceMemoryResource } from "../mod.ts";
import { NativeArena } from "../src/ffi/arena.ts";
import { Peer, Rounds } from "./peer.ts";

const BATCH = 200;
/**
 * Batches of an operation in each round, and the rounds: on shared hosts some seconds are twice as slow as others.
 */
const SAMPLES = 20;
const ROUNDS = 81;
/** Warm-up batches: the engines' top-tier compilers take functions that have run 100,000 times. */
const WARM = 500;
const isBun = "Bun" in globalThis;
const limit = isBun ? 0.6 : 0.8;
const afterAllocation = "record + wait, after an allocation";

if (!Cuda.probe().available) {
  console.log("Not measured: there is no GPU here.");
  process.exit(0);
}

using cuda = Cuda.open();
const device = cuda.device(0);
using stream = device.createStream();
using idle = device.createStream();
using other = device.createStream();
using event = device.createEvent();
const pool = new DeviceMemoryResource(device);
using buffer = pool.allocate(1 << 20, { stream });
const source =
  'extern "C" __global__ void scale(float *y, const float *x, float a, int n) { if (n < 0) y[0] = a * x[0]; }';
using program = device.compile(source);
const kernel = program.kernel("scale");

using arena = new NativeArena();
const out = arena.out("ptr");
const [first, block, at] = [stream.handle, BigInt(1 << 20), out.$address];
const [used, plain, second, mark] = [stream.argument, idle.argument, other.argument, event.argumentFor("record")];
const values = arena.bytes(4 * 16, 16);
const list = arena.bytes(4 * 8);
const data = new DataView(values.bytes.buffer, values.bytes.byteOffset);
const pointers = new DataView(list.bytes.buffer, list.bytes.byteOffset);
for (let i = 0; i < 4; i++) pointers.setBigUint64(8 * i, values.address + BigInt(16 * i), true);
const { event: events, stream: streams, pool: pools, pointer, kernel: kernels } = cuda.driver;
const memory = pool.pool.handle;
const [ptr, code, parameters] = [buffer.ptr, kernel.handle, list.address];

/**
 * Each operation by its name in cuda_peer.py: ours, and the bare driver's. Similar code is written out: a shared
 * function is compiled for both uses, and no longer inlined into its caller.
 */
const operations = new Map<string, readonly [ours: () => unknown, bare: () => unknown]>([
  ["record + wait", [
    () => {
      idle.record(event);
      other.wait(event);
    },
    () => {
      events.cuEventRecord(mark, plain);
      streams.cuStreamWaitEvent(second, mark, 0);
    },
  ]],
  [afterAllocation, [
    () => {
      stream.record(event);
      other.wait(event);
    },
    () => {
      events.cuEventRecord(mark, used);
      streams.cuStreamWaitEvent(second, mark, 0);
    },
  ]],
  ["allocate + free", [
    () => pool.allocate(1 << 20, { stream }).close(),
    () => {
      pools.cuMemAllocFromPoolAsync(at, block, memory, first);
      pools.cuMemFreeAsync(out.value, first);
    },
  ]],
  ["pointer attributes", [
    () => cuda.pointerAttributes(ptr),
    () => pointer.cuPointerGetAttribute(at, 9, ptr), // DEVICE_ORDINAL, as in the query through cuda.bindings
  ]],
  ["launch, four arguments", [
    () => kernel.launch(stream, 1, 32, [buffer, buffer, ["float32", 2], ["int32", 7]]),
    () => {
      data.setBigUint64(0, ptr, true);
      data.setBigUint64(16, ptr, true);
      data.setFloat32(32, 2, true);
      data.setInt32(48, 7, true);
      kernels.cuLaunchKernel(code, 1, 1, 1, 32, 1, 1, 0, first, parameters, 0n);
    },
  ]],
]);

/** Nanoseconds of one call. */
function time(run: () => unknown): number {
  const start = process.hrtime.bigint();
  for (let i = 0; i < BATCH; i++) run();
  const end = process.hrtime.bigint();
  device.synchronize();
  return Number(end - start) / BATCH;
}

/** Measures batches of both, in alternation. */
function measure(ours: () => unknown, bare: () => unknown, count: number): [ours: number[], bare: number[]] {
  const times: [number[], number[]] = [[], []];
  for (let sample = 0; sample < count; sample++) {
    times[0].push(time(ours));
    times[1].push(time(bare));
  }
  return times;
}

const peer = Peer.python("cuda_peer.py");
const versions = await peer.hear();
if (versions === null) console.error("No peer: install cuda-core and cuda-bindings, and set CAUSEWAY_PYTHON.");
const floor = Peer.c("cuda_floor.c");
const hasFloor = floor !== null && await floor.hear() !== null;
const rows = [...operations].map(([name, [ours, bare]]) => ({
  name,
  run: { ours, bare },
  ours: new Rounds(),
  bare: new Rounds(),
  c: new Rounds(),
  core: new Rounds(),
  bindings: new Rounds(),
}));
for (const { run } of rows) measure(run.ours, run.bare, WARM);
for (let round = 0; round < ROUNDS; round++) {
  for (const { name, run, ours, bare, c, core, bindings } of rows) {
    const [taken, least] = measure(run.ours, run.bare, SAMPLES);
    ours.add(taken);
    bare.add(least);
    if (hasFloor) c.add([Number(await floor.ask(name) ?? NaN)]);
    if (versions === null) continue;
    core.add([Number(await peer.ask(["cuda.core", name]) ?? NaN)]);
    bindings.add([Number(await peer.ask(["cuda.bindings", name]) ?? NaN)]); // which launches nothing here
  }
}
peer.close();
floor?.close();

const runtime = isBun ? `Bun ${process.versions["bun"]}` : `Deno ${process.versions["deno"]}`;
console.log(
  `## ${runtime}\n\n${device.name}, ${
    cpus()[0]?.model
  }; ${versions}. Nanoseconds per call, of the fastest of ${ROUNDS} rounds (of all).\n`,
);
console.log(
  "| operation | ours | bare driver | over it | from C | cuda.core | ratio | limit | | cuda.bindings | ratio |",
);
console.log("|---|--:|--:|--:|--:|--:|--:|--:|---|--:|--:|");
let failures = 0;
for (const { name, ours, bare, c, core, bindings } of rows) {
  const isLaunch = name.startsWith("launch");
  const most = isLaunch ? 0.9 : name === afterAllocation ? Infinity : limit;
  const over = ours.best - bare.best;
  const isCompared = Number.isFinite(core.best);
  const passes = !(ours.best > most * core.best) && !(isLaunch && over > 300);
  if (!passes) failures++;
  const show = (rounds: Rounds) =>
    Number.isFinite(rounds.best) ? `${rounds.best.toFixed(0)} (${rounds.median.toFixed(0)})` : "-";
  const ratio = (other: Rounds) => Number.isFinite(other.best) ? (ours.best / other.best).toFixed(2) : "-";
  const isJudged = Number.isFinite(most) && (isCompared || isLaunch);
  const verdict = isJudged ? [most, passes ? "PASS" : "FAIL"] : ["-", ""];
  const cells = [name, show(ours), show(bare), `+${over.toFixed(0)}`, show(c), show(core), ratio(core), ...verdict];
  console.log(`| ${[...cells, show(bindings), ratio(bindings)].join(" | ")} |`);
}
process.exitCode = failures === 0 ? 0 : 1;
