/**
 * Streams, memory, addresses and launches beside cuda.core, cuda.bindings and the bare driver, in one run on one machine.
 * Prints Markdown.
 *
 * Claim: recording and waiting, allocating and freeing from a pool, and asking about an address take at most 0.6 (Bun) or
 * 0.8 (Deno) of cuda.core's time; a launch with four arguments at most 0.9, and at most 300 ns more than the bare call.
 *
 * ```sh
 * CAUSEWAY_PYTHON=venv/bin/python deno run -A bench/cuda.ts
 * CAUSEWAY_PYTHON=venv/bin/python bun bench/cuda.ts
 * ```
 *
 * Needs a GPU; the peer needs cuda-core and cuda-bindings. The bare driver is called through the same bindings with handles
 * made beforehand and nothing checked. Work is enqueued in batches, and the device is waited for between them, off the clock.
 */
import { spawnSync } from "node:child_process";
import { cpus } from "node:os";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { Cuda, DeviceMemoryResource } from "../mod.ts";
import { NativeArena } from "../src/ffi/arena.ts";

const BATCH = 200;
const SAMPLES = 400;
const WARM = 100;
/** Processes of the peer. */
const PEERS = 5;
const isBun = "Bun" in globalThis;
const limit = isBun ? 0.6 : 0.8;

if (!Cuda.probe().available) {
  console.log("Not measured: there is no GPU here.");
  process.exit(0);
}

using cuda = Cuda.open();
const device = cuda.device(0);
using stream = device.createStream();
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
const [first, second, mark, block, at] = [stream.handle, other.handle, event.handle, BigInt(1 << 20), out.$address];
const values = arena.bytes(4 * 16, 16);
const list = arena.bytes(4 * 8);
const data = new DataView(values.bytes.buffer, values.bytes.byteOffset);
const pointers = new DataView(list.bytes.buffer, list.bytes.byteOffset);
for (let i = 0; i < 4; i++) pointers.setBigUint64(8 * i, values.address + BigInt(16 * i), true);
const { event: events, stream: streams, pool: pools, pointer, kernel: kernels } = cuda.driver;
const memory = pool.pool.handle;
const [ptr, code, parameters] = [buffer.ptr, kernel.handle, list.address];

/** Each operation by the name that cuda_peer.py has for it: ours, and the bare driver's. */
const operations = new Map<string, readonly [ours: () => unknown, bare: () => unknown]>([
  ["record + wait", [
    () => {
      stream.record(event);
      other.wait(event);
    },
    () => {
      events.cuEventRecord(mark, first);
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
    () => pointer.cuPointerGetAttribute(at, 9, ptr), // DEVICE_ORDINAL, as the bindings are asked
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

/** Medians of batches of both, in turns: so that a clock that changes meanwhile changes both. */
function measure(ours: () => unknown, bare: () => unknown): [ours: number, bare: number] {
  const times: [number[], number[]] = [[], []];
  for (let sample = 0; sample < SAMPLES + WARM; sample++) {
    const [one, other] = [time(ours), time(bare)];
    if (sample < WARM) continue;
    times[0].push(one);
    times[1].push(other);
  }
  const median = (list: number[]) => list.sort((a, b) => a - b)[SAMPLES / 2] ?? NaN;
  return [median(times[0]), median(times[1])];
}

interface PeerReport {
  readonly versions: { readonly [name: string]: string };
  readonly core: { readonly [name: string]: number };
  readonly bindings: { readonly [name: string]: number };
}

function measurePeer(): PeerReport | null {
  const script = fileURLToPath(new URL("cuda_peer.py", import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.env["CAUSEWAY_PYTHON"] ?? "python3", [script], {
    encoding: "utf8",
  });
  if (status === 0) return JSON.parse(stdout);
  console.error(`No peer: ${stderr.trim().split("\n").at(-1)}. Install cuda-core and cuda-bindings.`);
  return null;
}

/** What one process measures of Python can be twice what the next one does: the medians of several. */
function measurePeers(): PeerReport | null {
  const reports: PeerReport[] = [];
  for (let i = 0; i < PEERS; i++) {
    const report = measurePeer();
    if (report === null) return null;
    reports.push(report);
  }
  const medians = (of: (report: PeerReport) => { readonly [name: string]: number }) =>
    Object.fromEntries(
      [...operations.keys()].flatMap((name) => {
        const times = reports.map((report) => of(report)[name]).filter((time) => time !== undefined);
        const median = times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
        return median === undefined ? [] : [[name, median]]; // cuda.bindings launches nothing here
      }),
    );
  const [{ versions } = { versions: {} }] = reports;
  return { versions, core: medians(({ core }) => core), bindings: medians(({ bindings }) => bindings) };
}

const peer = measurePeers();
const runtime = isBun ? `Bun ${process.versions["bun"]}` : `Deno ${process.versions["deno"]}`;
const versions = Object.entries(peer?.versions ?? {}).map(([name, version]) => `${name} ${version}`).join(", ");
console.log(
  `## ${runtime}\n\n${device.name}, ${
    cpus()[0]?.model
  }; ${versions}. Nanoseconds per call, medians; the peers' of ${PEERS} processes.\n`,
);
console.log("| operation | ours | bare driver | over it | cuda.core | ratio | limit | | cuda.bindings | ratio |");
console.log("|---|--:|--:|--:|--:|--:|--:|---|--:|--:|");
let failures = 0;
for (const [name, [ours, bare]] of operations) {
  const [taken, floor] = measure(ours, bare);
  const [core, bindings] = [peer?.core[name], peer?.bindings[name]];
  const isLaunch = name.startsWith("launch");
  const most = isLaunch ? 0.9 : limit;
  const passes = (core === undefined || taken <= most * core) && (!isLaunch || taken - floor <= 300);
  if (!passes) failures++;
  const cells = [name, taken.toFixed(0), floor.toFixed(0), `+${(taken - floor).toFixed(0)}`, core?.toFixed(0) ?? "-"];
  const ratio = (other: number | undefined) => other === undefined ? "-" : (taken / other).toFixed(2);
  const rest = [ratio(core), most, passes ? "PASS" : "FAIL", bindings?.toFixed(0) ?? "-", ratio(bindings)];
  console.log(`| ${[...cells, ...rest].join(" | ")} |`);
}
process.exitCode = failures === 0 ? 0 : 1;
