/**
 * Copies of runs of bytes, rectangles and boxes.
 *
 * @module
 */
import {
  CU_GRAPH_NODE_TYPE,
  CU_MEMORYTYPE,
  CUDA_MEMCPY2D_v2,
  CUDA_MEMCPY3D_PEER,
  CUDA_MEMCPY3D_v2,
  CUresult,
} from "../../../bindings/cuda_types.ts";
import { isAccessible } from "../address_space.ts";
import { type CallTable, refuse, unsimulated } from "../call.ts";
import { poison } from "../device_memory.ts";
import type { Simulator } from "../simulator.ts";
import { viewStruct } from "../out_parameters.ts";
import type { Allocation, Context, Stream } from "../objects.ts";

/** A contiguous run of bytes. */
interface Run {
  readonly to: bigint;
  readonly from: bigint;
  readonly bytes: number;
}

/** Whether a copy is synchronous with the host. */
type CopyMode = "synchronous" | "asynchronous";

/** The memory at one end of a run, by how the host is involved. */
type Place = "device" | "pinned" | "pageable";

/** What an address must be. Calls that name a direction check only the device side: the host side may be any memory. */
type Expected = "any" | "device";

/** The calls for runs of bytes. */
export function copyCalls(simulator: Simulator): CallTable<"copy"> {
  const copy = (
    stream: Stream,
    run: Run,
    mode: CopyMode,
    to: Expected = "any",
    from: Expected = "any",
  ): void => {
    expect(simulator, run.to, run.bytes, to);
    expect(simulator, run.from, run.bytes, from);
    transfer(simulator, stream, [run], mode, true);
  };
  const run = (to: bigint, from: bigint, size: bigint): Run => ({ to, from, bytes: count(size) });
  const now = (): Stream => simulator.current().legacy;
  const peer = (stream: Stream, given: Run, toContext: bigint, fromContext: bigint, mode: CopyMode): void => {
    simulator.usable(simulator.context(toContext));
    simulator.usable(simulator.context(fromContext));
    transfer(simulator, stream, [given], mode, false);
  };
  return {
    cuMemcpy: (to, from, size) => copy(now(), run(to, from, size), "synchronous"),
    cuMemcpyHtoD_v2: (to, from, size) => copy(now(), run(to, from, size), "synchronous", "device"),
    cuMemcpyDtoH_v2: (to, from, size) => copy(now(), run(to, from, size), "synchronous", "any", "device"),
    cuMemcpyDtoD_v2: (to, from, size) => copy(now(), run(to, from, size), "synchronous", "device", "device"),
    cuMemcpyPeer: (to, toContext, from, fromContext, size) =>
      peer(now(), run(to, from, size), toContext, fromContext, "synchronous"),
    cuMemcpyAsync: (to, from, size, stream) => copy(simulator.stream(stream), run(to, from, size), "asynchronous"),
    cuMemcpyHtoDAsync_v2: (to, from, size, stream) =>
      copy(simulator.stream(stream), run(to, from, size), "asynchronous", "device"),
    cuMemcpyDtoHAsync_v2: (to, from, size, stream) =>
      copy(simulator.stream(stream), run(to, from, size), "asynchronous", "any", "device"),
    cuMemcpyDtoDAsync_v2: (to, from, size, stream) =>
      copy(simulator.stream(stream), run(to, from, size), "asynchronous", "device", "device"),
    cuMemcpyPeerAsync: (to, toContext, from, fromContext, size, stream) =>
      peer(simulator.stream(stream), run(to, from, size), toContext, fromContext, "asynchronous"),
  };
}

/** The calls for rectangles and boxes. */
export function copyPitchedCalls(simulator: Simulator): CallTable<"copyPitched"> {
  const now = (): Stream => simulator.current().legacy;
  const flat = (stream: Stream, address: bigint, mode: CopyMode) => {
    const c = viewStruct(CUDA_MEMCPY2D_v2, address);
    const layer = { srcZ: 0, dstZ: 0, srcHeight: c.srcY + c.Height, dstHeight: c.dstY + c.Height, Depth: 1 };
    transfer(simulator, stream, boxRuns(c, layer), mode, true);
  };
  const deep = (stream: Stream, address: bigint, mode: CopyMode) => {
    const c = viewStruct(CUDA_MEMCPY3D_v2, address);
    transfer(simulator, stream, boxRuns(c, c), mode, true);
  };
  const peer = (stream: Stream, address: bigint, mode: CopyMode) => {
    const c = viewStruct(CUDA_MEMCPY3D_PEER, address);
    simulator.usable(simulator.context(c.srcContext));
    simulator.usable(simulator.context(c.dstContext));
    transfer(simulator, stream, boxRuns(c, c), mode, false);
  };
  return {
    cuMemcpy2D_v2: (copy) => flat(now(), copy, "synchronous"),
    cuMemcpy2DUnaligned_v2: (copy) => flat(now(), copy, "synchronous"),
    cuMemcpy2DAsync_v2: (copy, stream) => flat(simulator.stream(stream), copy, "asynchronous"),
    cuMemcpy3D_v2: (copy) => deep(now(), copy, "synchronous"),
    cuMemcpy3DAsync_v2: (copy, stream) => deep(simulator.stream(stream), copy, "asynchronous"),
    cuMemcpy3DPeer: (copy) => peer(now(), copy, "synchronous"),
    cuMemcpy3DPeerAsync: (copy, stream) => peer(simulator.stream(stream), copy, "asynchronous"),
  };
}

/** Converts a size argument to a number. */
export function count(size: bigint): number {
  const bytes = Number(size);
  if (!Number.isSafeInteger(bytes) || bytes < 0) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  return bytes;
}

/** Refuses memory unknown to the driver where the call's name says that it is device memory. */
function expect(simulator: Simulator, address: bigint, bytes: number, expected: Expected): void {
  if (expected === "any" || bytes === 0) return;
  if (simulator.space.allocations.find(address) === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
}

// law sim/transfer: sim/overlapping_copies, sim/memory
/**
 * Enqueues a copy of runs, and waits for it as far as CUDA says that the call does.
 *
 * Where CUDA leaves open whether a call waits for pageable host memory, the schedule decides: `latest` never waits, and
 * reads and writes that memory when the copy runs; `round-robin` waits, as drivers mostly do; `random` does either.
 *
 * @param direct whether the device of the current context must have access to pool memory, whatever the stream
 */
function transfer(
  simulator: Simulator,
  stream: Stream,
  runs: readonly Run[],
  mode: CopyMode,
  direct: boolean,
): void {
  const work = runs.filter(({ bytes }) => bytes > 0);
  const reader = direct ? simulator.stack.at(-1) ?? stream.context : null;
  const to = locate(simulator, reader, work, "to");
  const from = locate(simulator, reader, work, "from");
  if (work.length === 0) return;
  const bytes = work.reduce((sum, run) => sum + run.bytes, 0);
  const { space } = simulator;
  const pieces = torn(simulator, work);
  const copy = () => {
    simulator.clock += bytes * 1e-8; // milliseconds at 100 GB/s
    if (space.isUnregistered(to.allocation)) return; // the target no longer exists
    const isGone = space.isUnregistered(from.allocation);
    for (const run of pieces) {
      if (isGone) space.fill(run.to, Uint8Array.of(poison), run.bytes);
      else space.copy(run.to, run.from, run.bytes);
    }
  };
  if (stream.capture !== null) return void simulator.submit(stream, CU_GRAPH_NODE_TYPE.MEMCPY, copy);
  const { context } = stream;
  const alwaysWaits = to.synchronizes || from.synchronizes;
  const isStagedNow = from.kind === "pageable" && (mode === "synchronous" || isStaged(simulator));
  if (to.kind === "device" && (isStagedNow || isReadAtOnce(stream, from.kind, bytes))) {
    // The source is read before the call returns; the rest of the copy may complete later.
    if (mode === "synchronous") simulator.hostWaits(context, simulator.enqueue(stream, () => {}));
    const staged = work.map((run) => {
      const part = new Uint8Array(run.bytes);
      space.read(run.from, part);
      return part;
    });
    const task = simulator.enqueue(stream, () => {
      simulator.clock += bytes * 1e-8;
      work.forEach((run, i) => space.write(run.to, staged[i] ?? new Uint8Array()));
    });
    if (alwaysWaits) simulator.hostWaits(context, task);
    return;
  }
  const task = simulator.enqueue(stream, copy);
  const onHost = to.kind !== "device" && from.kind !== "device";
  const touchesHost = to.kind !== "device" || from.kind !== "device";
  const waits = mode === "synchronous" ? touchesHost : onHost || (to.kind === "pageable" && isStaged(simulator));
  if (waits || alwaysWaits) simulator.hostWaits(context, task);
}

// law sim/torn: sim/overlapping_copies
/**
 * The runs of a copy, or, if it overlaps its own source, pieces of them in an order in which each overwrites the
 * source of a later one: CUDA leaves the result undefined, so a program must not get the bytes that it expects by
 * accident.
 */
function torn({ random }: Simulator, runs: readonly Run[]): readonly Run[] {
  const [first, last] = [runs[0], runs.at(-1)];
  if (first === undefined || last === undefined) return runs;
  const end = (side: "to" | "from") => last[side] + BigInt(last.bytes);
  if (first.to >= end("from") || first.from >= end("to")) return runs;
  const parts = 2 + random.below(7);
  const pieces = runs.flatMap(({ to, from, bytes }) => {
    const most = Math.ceil(bytes / parts);
    return Array.from({ length: Math.ceil(bytes / most) }, (_, i) => {
      const at = BigInt(i * most);
      return { to: to + at, from: from + at, bytes: Math.min(most, bytes - i * most) };
    });
  });
  return first.to > first.from ? pieces : pieces.reverse();
}

/** Driver 580 reads up to this many bytes of page-locked memory during the call if it can. */
const readAtOnce = 24 * 1024;

// law sim/isReadAtOnce: gpu/implied_order, sim/driver
/**
 * Whether a copy reads page-locked memory during the call: the driver does so if no work enqueued on the stream itself
 * is pending. It does not check work that the copy must follow only by default-stream rules
 * (`tests/gpu/implied_order_test.ts`). If there is no such work, the memory is read when the copy runs, as late as
 * possible.
 */
function isReadAtOnce(stream: Stream, from: Place, bytes: number): boolean {
  if (from !== "pinned" || bytes > readAtOnce || !stream.isBlocking || stream.explicitTail?.done === false) {
    return false;
  }
  const { legacy, streams } = stream.context;
  const others = [...streams].filter((one) => one !== stream && one.isBlocking);
  const implied = stream === legacy ? others.map(({ tail }) => tail) : [legacy.implicitTail];
  return implied.some((task) => task?.done === false);
}

/** Whether a copy between pageable memory and a device completes its host side before the call returns. */
function isStaged({ options, random }: Simulator): boolean {
  return options.schedule === "round-robin" || (options.schedule === "random" && random.chance(0.5));
}

/** Locates one side of a copy. All runs of a copy lie in the same place. */
function locate(
  simulator: Simulator,
  reader: Context | null,
  runs: readonly Run[],
  side: "to" | "from",
): { readonly kind: Place; readonly allocation: Allocation | null; readonly synchronizes: boolean } {
  let allocation: Allocation | null = null;
  for (const run of runs) {
    allocation = simulator.space.range(run[side], run.bytes);
    if (allocation === null || reader === null || allocation.pool === null) continue;
    if (!isAccessible(allocation, reader)) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  }
  const synchronizes = allocation?.syncMemops ?? false;
  switch (allocation?.kind) {
    case undefined:
      return { kind: "pageable", allocation, synchronizes };
    case "pinned":
    case "registered":
      return { kind: "pinned", allocation, synchronizes };
    default:
      return { kind: "device", allocation, synchronizes };
  }
}

/** The rows of a copy, as the structs of all pitched copies describe them. */
interface Rectangle {
  readonly srcXInBytes: number;
  readonly srcY: number;
  readonly srcMemoryType: number;
  readonly srcHost: bigint;
  readonly srcDevice: bigint;
  readonly srcPitch: number;
  readonly dstXInBytes: number;
  readonly dstY: number;
  readonly dstMemoryType: number;
  readonly dstHost: bigint;
  readonly dstDevice: bigint;
  readonly dstPitch: number;
  readonly WidthInBytes: number;
  readonly Height: number;
}

/** The layers of a copy of boxes. */
interface Layers {
  readonly srcZ: number;
  readonly srcHeight: number;
  readonly dstZ: number;
  readonly dstHeight: number;
  readonly Depth: number;
}

// law sim/boxRuns: sim/refusals
/** The rows of a box. A pitch of 0 means contiguous rows. */
function boxRuns(box: Rectangle, { srcZ, srcHeight, dstZ, dstHeight, Depth }: Layers): Run[] {
  const { WidthInBytes: bytes, Height } = box;
  const source = base(box.srcMemoryType, box.srcHost, box.srcDevice);
  const destination = base(box.dstMemoryType, box.dstHost, box.dstDevice);
  const sourcePitch = box.srcPitch === 0 ? box.srcXInBytes + bytes : box.srcPitch;
  const destinationPitch = box.dstPitch === 0 ? box.dstXInBytes + bytes : box.dstPitch;
  if (box.srcXInBytes + bytes > sourcePitch || box.dstXInBytes + bytes > destinationPitch) {
    throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  }
  const sourceHeight = srcHeight === 0 ? box.srcY + Height : srcHeight;
  const destinationHeight = dstHeight === 0 ? box.dstY + Height : dstHeight;
  if (box.srcY + Height > sourceHeight || box.dstY + Height > destinationHeight) {
    throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  }
  const runs: Run[] = [];
  for (let z = 0; z < Depth; z++) {
    for (let y = 0; y < Height; y++) {
      const sourceRow = (srcZ + z) * sourceHeight + box.srcY + y;
      const destinationRow = (dstZ + z) * destinationHeight + box.dstY + y;
      const from = source + BigInt(sourceRow * sourcePitch + box.srcXInBytes);
      const to = destination + BigInt(destinationRow * destinationPitch + box.dstXInBytes);
      runs.push({ to, from, bytes });
    }
  }
  return runs;
}

function base(type: number, host: bigint, device: bigint): bigint {
  switch (type) {
    case CU_MEMORYTYPE.HOST:
      return host;
    case CU_MEMORYTYPE.DEVICE:
    case CU_MEMORYTYPE.UNIFIED:
      return device;
    case CU_MEMORYTYPE.ARRAY:
      throw unsimulated("CUDA arrays");
    default:
      throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  }
}
