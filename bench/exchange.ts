/**
 * Views of foreign arrays, exports and leases beside cuda.core's StridedMemoryView and the bare driver, in one run on
 * one machine. Prints Markdown.
 *
 * Claim: a view of a DLPack tensor, of an object with the CUDA Array Interface and of a typed array takes at most half
 * of cuda.core's time; an export and its release at most 1 us; a lease at most 1.5 times the two event pairs that it
 * issues.
 *
 * ```sh
 * CAUSEWAY_PYTHON=venv/bin/python taskset -c 4-7 deno run -A bench/exchange.ts
 * CAUSEWAY_PYTHON=venv/bin/python taskset -c 4-7 bun bench/exchange.ts
 * ```
 *
 * `taskset` pins both to the same processors, which differ on some hosts.
 *
 * The peer needs cuda-core, cuda-bindings and numpy, and uses torch's arrays if torch is installed. Without a GPU the
 * driver is one that does nothing, so that our own share can be measured anywhere; rows that depend on a driver are
 * then not judged.
 *
 * Measurements alternate, in rounds: an operation of ours, its counterpart, the next operation. For each, the median of
 * the fastest round counts: other load on such a machine slows everything down for seconds, down to the C library, and
 * never makes anything faster. The median of all rounds is printed beside it.
 *
 * "Ordered" is with a stream of the consumer, which must wait for the producer's. cuda.core orders them itself, even
 * for torch's tensors, which it recognizes and queries through no protocol; a DLPack tensor was ordered by its
 * producer, so the driver's time for that is the producer's, and shown in its own row. Without ordering, the CUDA Array
 * Interface is compared on an object that is not torch's, and is therefore queried.
 *
 * Objects created and dropped are registered with the garbage collector at the end of the turn: that is on the clock,
 * as is reclaiming what consumers have released. The collector's work in between is not.
 */
import { cpus } from "node:os";
import process from "node:process";
import { setImmediate } from "node:timers/promises";
import { DLDeviceType } from "../bindings/dlpack.ts";
import { Cuda, StridedMemoryView } from "../mod.ts";
import { NativeArena } from "../src/ffi/arena.ts";
import { releaseThunks } from "../src/native/release_thunk.ts";
import { foreignTensor, type ForeignTensorOptions } from "../tests/support/raw_dlpack.ts";
import { nullDriver } from "../tests/support/null_driver.ts";
import { Peer, Rounds } from "./peer.ts";

const BATCH = 200;
/** Batches of an operation in each round, and the rounds. */
const SAMPLES = 20;
const ROUNDS = 27;
/** Warm-up batches: the engines' top-tier compilers take functions that have run 100,000 times. */
const WARM = 1000;
const isBun = "Bun" in globalThis;

const hasGpu = Cuda.probe().available;
using cuda = hasGpu ? Cuda.open() : Cuda.over(nullDriver().driver);
const device = cuda.device(0);
using home = device.createStream();
using other = device.createStream();

const shape = [64, 32];
using buffer = device.memory.allocate(4 * 64 * 32, { stream: home });
using view = StridedMemoryView.fromBuffer(buffer, { shape, dtype: "float32" });
const floats = new Float32Array(64 * 32);
using host = StridedMemoryView.fromTypedArray(floats, { shape });

// A foreign tensor, released as often as it is taken: its deleter counts. The count is never freed: views that were
// dropped are released after the last line.
const arena = new NativeArena();
const foreign: ForeignTensorOptions = {
  shape,
  strides: [32, 1],
  managerContext: arena.out("u64").$address,
  deleter: releaseThunks().address.DLManagedTensorVersioned,
};
const onHost = foreignTensor("versioned", { ...foreign, data: host.ptr });
const onDevice = foreignTensor("versioned", { ...foreign, data: view.ptr, deviceType: DLDeviceType.kDLCUDA });
const described = { __cuda_array_interface__: { ...view.toCudaArrayInterface(), stream: null } };
const onStream = { __cuda_array_interface__: { ...view.toCudaArrayInterface(), stream: home.handle } };
const unordered = { device, stream: null };
/** More shapes than are cached. */
const tensors = Array.from({ length: 80 }, (_, i) => {
  const options = { shape: [i + 1, 16], strides: [16, 1], data: view.ptr, deviceType: DLDeviceType.kDLCUDA };
  return foreignTensor("versioned", { ...foreign, ...options });
});
let turn = 0;
const ordered = { stream: other };

const { event: events, stream: streams, context: contexts } = cuda.driver;
const { context } = device;
const mark = device.createEvent();
const [first, second, event] = [home.argument, other.argument, mark.argumentFor("record")];
const markHandle = mark.handle;

/** The calls that a release must make: the home stream waits for all work of the context. */
function waitForContext(): void {
  contexts.cuCtxRecordEvent?.(context, markHandle);
  streams.cuStreamWaitEvent(first, event, 0);
}

/** The calls that a producer must make for a consumer's stream: it waits for the producer's. */
function waitForProducer(): void {
  events.cuEventRecord(event, first);
  streams.cuStreamWaitEvent(second, event, 0);
}

/** Keeps a result from being optimised away. */
let kept: unknown;

interface Operation {
  readonly run: () => void;
  /** The counterpart: an operation of the peer, or the driver calls that the operation must make. */
  readonly peer?: string;
  readonly bare?: () => void;
  /** The maximum, in nanoseconds or as a multiple of the counterpart. */
  readonly most?: { readonly nanoseconds: number } | { readonly ratio: number };
}

function takeTensor(ptr: bigint, options = {}): StridedMemoryView {
  return StridedMemoryView.fromDlpack({ managedTensorVersioned: ptr }, options);
}

const half = { ratio: 0.5 };
const microsecond = { nanoseconds: 1000 };

const operations: ReadonlyMap<string, Operation> = new Map<string, Operation>([
  ["view of a DLPack tensor on the device, for a stream", {
    run: () => kept = takeTensor(onDevice.ptr, ordered),
    peer: "torch, ordered",
    most: half,
  }],
  ["view of a DLPack tensor on the device, for a stream, and the producer's calls", {
    run() {
      waitForProducer();
      kept = takeTensor(onDevice.ptr, ordered);
    },
    peer: "torch, ordered",
  }],
  ["view of a DLPack tensor on the device", {
    run: () => kept = takeTensor(onDevice.ptr, unordered),
    peer: "torch",
  }],
  ["view of a DLPack tensor on the device, and its close", {
    run: () => takeTensor(onDevice.ptr, unordered).close(),
    peer: "torch",
  }],
  ["view of DLPack tensors of 80 shapes in turn, for a stream", {
    run: () => kept = takeTensor(tensors[turn = (turn + 1) % tensors.length]?.ptr ?? 0n, ordered),
    peer: "torch, ordered",
    most: half,
  }],
  ["view of a DLPack tensor on the host, and its close", {
    run: () => takeTensor(onHost.ptr).close(),
    peer: "dlpack, NumPy",
  }],
  ["view by the CUDA Array Interface, ordered", {
    run: () => kept = StridedMemoryView.fromCudaArrayInterface(onStream, ordered),
    peer: "torch by the interface, ordered",
    most: half,
  }],
  ["view by the CUDA Array Interface, ordered, and its close", {
    run: () => StridedMemoryView.fromCudaArrayInterface(onStream, ordered).close(),
    peer: "torch by the interface, ordered",
  }],
  ["view by the CUDA Array Interface", {
    run: () => kept = StridedMemoryView.fromCudaArrayInterface(described, unordered),
    peer: "cuda array interface",
    most: half,
  }],
  ["view by the CUDA Array Interface, and its close", {
    run: () => StridedMemoryView.fromCudaArrayInterface(described, unordered).close(),
    peer: "cuda array interface",
    most: half,
  }],
  ["view of a typed array", {
    run: () => kept = StridedMemoryView.fromTypedArray(floats, { shape }),
    peer: "array",
    most: half,
  }],
  ["view of anything: a typed array", { run: () => kept = StridedMemoryView.from(floats), peer: "array", most: half }],
  ["view of a buffer of ours", { run: () => kept = StridedMemoryView.fromBuffer(buffer, { shape, dtype: "float32" }) }],
  ["export by DLPack, host, and its release", { run: () => host.toDlpack().close(), most: microsecond }],
  ["export by DLPack, device, no order, and its release", {
    run: () => view.toDlpack({ stream: null }).close(),
    bare: waitForContext,
    most: microsecond,
  }],
  ["export by DLPack, device, to another stream, and its release", {
    run: () => view.toDlpack({ stream: other }).close(),
    bare() {
      waitForProducer();
      waitForContext();
    },
    most: microsecond,
  }],
  ["export by the CUDA Array Interface", { run: () => kept = view.toCudaArrayInterface(), most: microsecond }],
  ["export by Arrow, host, and its release", { run: () => host.toArrowDevice().close(), most: microsecond }],
  ["export by Arrow, device, and its release", {
    run: () => view.toArrowDevice().close(),
    bare() {
      events.cuEventRecord(event, first);
      waitForContext();
    },
    most: microsecond,
  }],
  ["lease", {
    run: () => view.borrow(other).close(),
    bare() {
      events.cuEventRecord(event, first);
      streams.cuStreamWaitEvent(second, event, 0);
      events.cuEventRecord(event, second);
      streams.cuStreamWaitEvent(first, event, 0);
    },
    ...(hasGpu ? { most: { ratio: 1.5 } } : {}),
  }],
]);

/** Nanoseconds of one call, including work deferred to the end of the turn. */
async function time(run: () => void): Promise<number> {
  const start = process.hrtime.bigint();
  for (let i = 0; i < BATCH; i++) run();
  await Promise.resolve();
  const end = process.hrtime.bigint();
  device.synchronize();
  await setImmediate(); // finalisers run in their own turn
  return Number(end - start) / BATCH;
}

async function batches(run: () => void, count: number): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < count; i++) times.push(await time(run));
  return times;
}

const peer = Peer.python("exchange_peer.py");
const versions = await peer.hear();
if (versions === null) console.error("No peer: install cuda-core, cuda-bindings and numpy, and set CAUSEWAY_PYTHON.");
const rows = [...operations].map(([name, operation]) => ({
  name,
  operation,
  ours: new Rounds(),
  beside: new Rounds(),
}));
for (const { operation: { run, bare } } of rows) {
  await batches(run, WARM);
  if (bare !== undefined) await batches(bare, WARM);
}
for (let round = 0; round < ROUNDS; round++) {
  for (const { operation: { run, bare, peer: other }, ours, beside } of rows) {
    await batches(run, 3); // re-warms what was evicted meanwhile
    ours.add(await batches(run, SAMPLES));
    if (bare !== undefined) beside.add(await batches(bare, SAMPLES));
    else if (other !== undefined && versions !== null) beside.add([Number(await peer.ask(other) ?? NaN)]);
  }
}
peer.close();

const runtime = isBun ? `Bun ${process.versions["bun"]}` : `Deno ${process.versions["deno"]}`;
const where = hasGpu ? device.name : "no GPU, a driver that does nothing";
console.log(
  `## ${runtime}\n\n${where}, ${
    cpus()[0]?.model
  }; ${versions}. Nanoseconds per call, of the fastest of ${ROUNDS} rounds.\n`,
);
console.log("| operation | ns | median of rounds | beside | ratio | limit | |\n|---|--:|--:|--:|--:|--:|---|");
let failures = 0;
for (const { name, operation: { bare, peer: other, most }, ours, beside } of rows) {
  const isCompared = Number.isFinite(beside.best);
  const limit = most === undefined ? NaN : "ratio" in most ? most.ratio * beside.best : most.nanoseconds;
  const isJudged = Number.isFinite(limit);
  if (isJudged && ours.best > limit) failures++;
  const of = bare === undefined ? `cuda.core, ${other}` : "bare driver";
  const cells = [
    name,
    ours.best.toFixed(0),
    ours.median.toFixed(0),
    isCompared ? `${of}: ${beside.best.toFixed(0)} (${beside.median.toFixed(0)})` : "-",
    isCompared ? (ours.best / beside.best).toFixed(2) : "-",
    most === undefined ? "-" : "ratio" in most ? `${most.ratio}x` : `${most.nanoseconds}`,
    isJudged ? ours.best <= limit ? "PASS" : "FAIL" : "",
  ];
  console.log(`| ${cells.join(" | ")} |`);
}
mark.close();
void kept;
process.exitCode = failures === 0 ? 0 : 1;
