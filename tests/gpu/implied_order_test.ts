/**
 * A default stream and a blocking one are ordered implicitly. The driver ignores that order when it reads a little
 * page-locked memory during the call; and what we do about it. And an allocation on the legacy default stream is not
 * ordered after one stream and before another: a random program on an H200 read 64 bytes of managed memory as they were
 * written on the thread's stream after such an allocation, in 364 of 400 runs.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { CU_EVENT, CU_STREAM, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, CUresult } from "../../bindings/cuda_types.ts";
import { Cuda, CudaStream, PinnedMemoryResource, slice, StridedMemoryView } from "../../mod.ts";
import { type CudaDriver, libcuda } from "../../src/driver/driver.ts";
import { openLibrary } from "../../src/ffi/library.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { simulateDriver } from "../../src/sim/mod.ts";
import { Raw } from "../support/raw_driver.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";

const KiB = 1024;
const MiB = 1024 * KiB;
const most = 64 * KiB;

/** Sizes that a GPU takes long enough to fill, and a simulated one not too long. */
const slowBytes = { gpu: 2 ** 26, simulated: 64 };

/** The stream that writes to the host, and the stream that reads from there. */
const pairs = ["legacy, thread", "legacy, blocking", "thread, legacy", "blocking, legacy"] as const;

/** How the second stream is ordered after the first, if at all. */
const hows = ["not at all", "an event", "an event of its own", "a record of its own"] as const;

interface Trial {
  readonly pair: (typeof pairs)[number] | "free, thread";
  readonly how: (typeof hows)[number];
  readonly bytes: number;
}

/** Whether the second stream copies to the device what the first one has written to page-locked memory. */
function isSeen(raw: Raw, { pair, how, bytes }: Trial, slowBytes: number): boolean {
  const { driver } = raw;
  const streamOf = (flags: number) => raw.word((out) => driver.stream.cuStreamCreate(out, flags));
  const streams: Readonly<Record<string, bigint>> = {
    legacy: 1n,
    thread: 2n,
    blocking: streamOf(CU_STREAM.DEFAULT),
    free: streamOf(CU_STREAM.NON_BLOCKING),
  };
  const [first = 0n, second = 0n] = pair.split(", ").map((name) => streams[name]);
  const event = raw.word((out) => driver.event.cuEventCreate(out, CU_EVENT.DISABLE_TIMING));
  const [from, to, slow] = [bytes, bytes, slowBytes].map((size) =>
    raw.word((out) => driver.memory.cuMemAlloc_v2(out, BigInt(size)))
  );
  const [between, result] = [0, 1].map(() =>
    raw.word((out) => driver.hostMemory.cuMemHostAlloc(out, BigInt(bytes), 0))
  );
  assert(from !== undefined && to !== undefined && slow !== undefined && between !== undefined && result !== undefined);
  const size = BigInt(bytes);
  const bytesAt = (address: bigint) => new Uint8Array(ffiPort().memory(address, bytes));
  bytesAt(between).fill(1);
  raw.ok(driver.fill.cuMemsetD8Async(from, 7, size, first));
  for (let i = 0; i < 8; i++) raw.ok(driver.fill.cuMemsetD8Async(slow, i, BigInt(slowBytes), first));
  raw.ok(driver.copy.cuMemcpyDtoHAsync_v2(between, from, size, first));
  if (how !== "not at all") raw.ok(driver.event.cuEventRecord(event, how === "an event" ? first : second));
  if (how !== "not at all" && how !== "a record of its own") raw.ok(driver.stream.cuStreamWaitEvent(second, event, 0));
  raw.ok(driver.copy.cuMemcpyHtoDAsync_v2(to, between, size, second));
  raw.ok(driver.copy.cuMemcpyDtoHAsync_v2(result, to, size, second));
  raw.ok(driver.context.cuCtxSynchronize());
  const seen = bytesAt(result).every((byte) => byte === 7);
  for (const address of [from, to, slow]) raw.ok(driver.memory.cuMemFree_v2(address));
  for (const address of [between, result]) raw.ok(driver.hostMemory.cuMemFreeHost(address));
  raw.ok(driver.event.cuEventDestroy_v2(event));
  for (const name of ["blocking", "free"]) raw.ok(driver.stream.cuStreamDestroy_v2(streams[name] ?? 0n));
  return seen;
}

/** As observed on an H200 with driver 580: larger copies, and streams that wait explicitly, always see it. */
function isExpected({ pair, how, bytes }: Trial): boolean {
  if (bytes > 24 * KiB || pair === "free, thread" || how === "an event" || how === "an event of its own") return true;
  return how === "a record of its own" && pair.endsWith("legacy");
}

const trials: readonly Trial[] = [1, 64, 24 * KiB, 32 * KiB, most].flatMap((bytes) => [
  ...pairs.flatMap((pair) => hows.map((how) => ({ pair, how, bytes }))),
  { pair: "free, thread" as const, how: "an event" as const, bytes },
]);

for (
  const [name, missing, open, much] of [
    ["the simulator", null, () => simulateDriver({ schedule: "latest" }).driver, slowBytes.simulated],
    ["libcuda", missingGpus(), () => openLibrary(libcuda).functions, slowBytes.gpu],
  ] as const
) {
  test(
    ...needs(missing, `${name} reads little page-locked memory before what a default stream implies, if not ordered`),
    () => {
      const driver: CudaDriver = open();
      using raw = new Raw(driver);
      raw.ok(driver.context.cuCtxPushCurrent_v2(raw.context(0)));
      for (const trial of trials) {
        const seen = [0, 1, 2].map(() => isSeen(raw, trial, much));
        const what = JSON.stringify(trial);
        if (isExpected(trial)) assertEquals(seen, [true, true, true], what);
        else assert(seen.includes(false), `${what}: the driver has changed, and needs no explicit order any more`);
      }
      raw.word((out) => driver.context.cuCtxPopCurrent_v2(out));
    },
  );
}

/**
 * Operations on the legacy default stream between work of two others, and whether they are promised to order them.
 * Where they are not, the driver may still do so: an allocation that reuses memory which a stream has freed but not yet
 * passed comes after that stream, and so does what follows the allocation (driver 580 on H200s, 8 of 8 times).
 */
const between = {
  nothing: false,
  allocation: false,
  "allocation, and another": false,
  "allocation of what the first has just freed": false,
  "fill of no bytes": false,
  "launch of an empty graph": false,
  "allocation and event": true,
  free: true,
  event: true,
  wait: true,
  fill: true,
} as const;

/** Captures nothing, and launches it. */
function launchEmptyGraph(raw: Raw, stream: bigint): void {
  const { driver } = raw;
  const captured = raw.stream(CU_STREAM.NON_BLOCKING);
  raw.ok(driver.capture.cuStreamBeginCapture_v2(captured, 0));
  const graph = raw.word((out) => driver.capture.cuStreamEndCapture(captured, out));
  const exec = raw.word((out) => driver.graph.cuGraphInstantiateWithFlags(out, graph, 0n));
  raw.ok(driver.graph.cuGraphLaunch(exec, stream));
  raw.ok(driver.graph.cuGraphExecDestroy(exec));
  raw.ok(driver.graph.cuGraphDestroy(graph));
}

/** What a trial has shown. */
interface Seen {
  /** Whether the first stream has read what was there before the second one wrote. */
  readonly isReadFirst: boolean;
  /**
   * Whether the first stream was still busy when everything was enqueued: otherwise they were in order anyway.
   */
  readonly wasUnderWay: boolean;
}

/** One stream reads device memory and another fills it, with an operation in between on the legacy stream. */
function readAndFill(raw: Raw, first: bigint, second: bigint, what: keyof typeof between, slowBytes: number): Seen {
  const { driver } = raw;
  const [memory, slow] = [most, slowBytes].map((size) =>
    raw.word((out) => driver.memory.cuMemAlloc_v2(out, BigInt(size)))
  );
  const result = raw.word((out) => driver.hostMemory.cuMemHostAlloc(out, 64n, 0));
  const event = raw.word((out) => driver.event.cuEventCreate(out, CU_EVENT.DISABLE_TIMING));
  const pooled = raw.allocate(64, CU_STREAM_LEGACY);
  const freed = what.endsWith("freed") ? raw.allocate(2 * MiB, first) : 0n;
  assert(memory !== undefined && slow !== undefined);
  raw.ok(driver.fill.cuMemsetD8Async(memory, 4, 64n, CU_STREAM_LEGACY));
  raw.ok(driver.event.cuEventRecord(event, CU_STREAM_LEGACY));
  raw.ok(driver.context.cuCtxSynchronize());
  for (let i = 0; i < 8; i++) raw.ok(driver.fill.cuMemsetD8Async(slow, i, BigInt(slowBytes), first));
  raw.ok(driver.copy.cuMemcpyDtoHAsync_v2(result, memory, 64n, first));
  const others = [pooled];
  if (freed !== 0n) {
    raw.ok(driver.pool.cuMemFreeAsync(freed, first));
    others.push(raw.allocate(2 * MiB, CU_STREAM_LEGACY));
  } else if (what.startsWith("allocation")) others.push(raw.allocate(64, CU_STREAM_LEGACY));
  if (what.endsWith("another")) others.push(raw.allocate(64, CU_STREAM_LEGACY));
  if (what === "free") raw.ok(driver.pool.cuMemFreeAsync(others.pop() ?? 0n, CU_STREAM_LEGACY));
  if (what === "fill of no bytes") raw.ok(driver.fill.cuMemsetD8Async(memory, 1, 0n, CU_STREAM_LEGACY));
  if (what === "launch of an empty graph") launchEmptyGraph(raw, CU_STREAM_LEGACY);
  if (what === "fill") raw.ok(driver.fill.cuMemsetD8Async(memory + 64n, 1, 64n, CU_STREAM_LEGACY));
  if (what === "wait") raw.ok(driver.stream.cuStreamWaitEvent(CU_STREAM_LEGACY, event, 0)); // which has completed
  if (what.endsWith("event")) raw.ok(driver.event.cuEventRecord(event, CU_STREAM_LEGACY));
  raw.ok(driver.fill.cuMemsetD8Async(memory, 9, 64n, second));
  const wasUnderWay = driver.stream.cuStreamQuery(first) === CUresult.CUDA_ERROR_NOT_READY;
  raw.ok(driver.stream.cuStreamSynchronize(second));
  raw.ok(driver.context.cuCtxSynchronize());
  const isReadFirst = new Uint8Array(ffiPort().memory(result, 64)).every((byte) => byte === 4);
  for (const one of others) raw.ok(driver.pool.cuMemFreeAsync(one, CU_STREAM_LEGACY));
  for (const one of [memory, slow]) raw.ok(driver.memory.cuMemFree_v2(one));
  raw.ok(driver.hostMemory.cuMemFreeHost(result));
  raw.ok(driver.event.cuEventDestroy_v2(event));
  return { isReadFirst, wasUnderWay };
}

for (
  const [name, missing, open, much] of [
    ["the simulator", null, () => simulateDriver({ schedule: "latest" }).driver, slowBytes.simulated],
    ["libcuda", missingGpus(), () => openLibrary(libcuda).functions, 2 ** 28],
  ] as const
) {
  test(
    ...needs(missing, `${name}: all work of the legacy stream passes on the order before it; allocations may`),
    () => {
      using raw = new Raw(open());
      raw.ok(raw.driver.context.cuCtxPushCurrent_v2(raw.context(0)));
      const [blocking, thread] = [raw.stream(CU_STREAM.DEFAULT), CU_STREAM_PER_THREAD];
      const legacy = CU_STREAM_LEGACY;
      for (
        const [first, second] of [[blocking, thread], [thread, blocking], [legacy, thread], [legacy, blocking]] as const
      ) {
        for (const what of Object.keys(between) as (keyof typeof between)[]) {
          const seen = Array.from({ length: 5 }, () => readAndFill(raw, first, second, what, much));
          if (first === legacy || between[what]) assert(seen.every(({ isReadFirst }) => isReadFirst), what);
          // The simulator does the least that is promised, so that reliance on more is found.
          else if (name === "the simulator") assert(seen.some(({ isReadFirst }) => !isReadFirst), what);
          else {
            const decisive = seen.filter(({ wasUnderWay }) => wasUnderWay);
            const early = decisive.filter(({ isReadFirst }) => !isReadFirst);
            console.log(
              `${what}: not in order ${early.length} times of ${decisive.length} in which they could be out of it`,
            );
          }
        }
      }
      raw.word((out) => raw.driver.context.cuCtxPopCurrent_v2(out));
    },
  );
}

for (
  const [name, missing, open, much] of [
    ["simulated", null, () => Cuda.simulate({ schedule: "latest" }), slowBytes.simulated],
    ["on a GPU", missingGpus(), () => Cuda.open(), slowBytes.gpu],
  ] as const
) {
  test(...needs(missing, `copies of page-locked memory come after what default streams imply: ${name}`), () => {
    using cuda = open();
    const device = cuda.device(0);
    using blocking = device.createStream({ nonBlocking: false });
    const foreign = CudaStream.fromHandle(device, blocking.handle);
    const { defaultStream: legacy, perThreadStream: thread } = device;
    const pinned = new PinnedMemoryResource(device);
    using slow = device.memory.allocate(much, { stream: legacy });
    for (const bytes of [64, 4096, 24 * KiB, most]) {
      using between = pinned.allocate(2 * bytes);
      using result = pinned.allocate(2 * bytes);
      using from = device.memory.allocate(2 * bytes, { stream: legacy });
      using to = device.memory.allocate(2 * bytes, { stream: legacy });
      const half = (buffer: typeof to) =>
        StridedMemoryView.fromBuffer(buffer, { shape: [2, bytes], dtype: "uint8" }).sliced(
          slice(),
          slice(0, bytes / 2),
        );
      const ways = {
        "in one piece": (stream: CudaStream) => to.copyFrom(between, { stream }),
        "rows": (stream: CudaStream) => half(to).copyFrom(half(between), { stream }),
        "on the host": (stream: CudaStream) => {
          result.copyFrom(between, { stream });
          to.copyFrom(result, { stream });
        },
      };
      for (
        const [before, after] of [[legacy, thread], [legacy, blocking], [legacy, foreign], [thread, legacy], [
          blocking,
          legacy,
        ]] as const
      ) {
        for (const [way, copy] of Object.entries(ways)) {
          between.bytes().fill(1);
          result.bytes().fill(2);
          from.fill(7, { stream: before });
          for (let i = 0; i < 8; i++) slow.fill(i, { stream: before });
          between.copyFrom(from, { stream: before });
          copy(after);
          to.copyTo(result, { stream: after });
          device.synchronize();
          const rows = [0, bytes].map((row) => result.bytes().subarray(row, row + bytes / 2));
          assert(rows.every((row) => row.every((byte) => byte === 7)), `${way}, ${bytes} bytes`);
        }
      }
    }
  });
}
