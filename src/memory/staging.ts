/**
 * Copies between ordinary host memory and a device, through a ring of pinned memory: native threads copy one chunk
 * while the chunks before it are on the bus. The driver does the same with one thread, which is slower than the bus.
 *
 * For the host the copy is complete when the call returns, as with the driver's own copies of such memory: the source
 * may change, and the destination is written. The threads sleep until the next copy.
 *
 * @module
 */
import { CUresult } from "../../bindings/cuda_types.ts";
import {
  type CopyDirection,
  type CudaDevice,
  type CudaStream,
  enqueueCopy,
  enqueuePeerCopy,
  isCapturing,
  PointerQuery,
} from "../device/mod.ts";
import { CudaError } from "../driver/mod.ts";
import { cString, FfiError, libc } from "../ffi/mod.ts";
import { canStartThreads, type NativeCall, nonTemporalCopy, pageCalls, type ThreadTeam } from "../native/mod.ts";
import { planStaging, type StagingPlan, worthStaging, worthStarting } from "./staging_plan.ts";
import { rings, type StagingRing } from "./staging_ring.ts";

/** A run of bytes to copy. */
export interface Run {
  readonly to: bigint;
  readonly from: bigint;
  readonly bytes: number;
  readonly direction: CopyDirection;
  /** Whether the host side, if there is one, is not known to be pinned. */
  readonly isPageable: boolean;
  /** Whether the host side is memory that was never written: the system creates its pages on the first write. */
  readonly isNew?: boolean;
  /** The two devices, if the copy is between two. */
  readonly peers: { readonly from: CudaDevice; readonly to: CudaDevice } | null;
}

/** Bytes that each device has copied without a ring although one would have been faster. */
const unstaged = new WeakMap<CudaDevice, number>();

// law memory/isRingWorthIt: memory/staging
function isRingWorthIt(device: CudaDevice, bytes: number): boolean {
  return rings.has(device) || (unstaged.get(device) ?? 0) + bytes >= worthStarting;
}

/**
 * Whether staging could be faster: a cheap check, because querying the number of processors takes longer than a small
 * copy.
 */
function isLargeAndPageable({ bytes, isPageable, direction }: Run): boolean {
  return bytes >= worthStaging && isPageable && (direction === "HtoD" || direction === "DtoH");
}

/** Enqueues a copy on a stream, staged if that is faster. */
export function copyRun(run: Run, stream: CudaStream, plan: StagingPlan | null = stagingOf(run, stream)): void {
  const { to, from, bytes, direction, peers } = run;
  if (plan !== null && tryStaged(run, stream, plan)) return;
  if (isLargeAndPageable(run)) unstaged.set(stream.device, (unstaged.get(stream.device) ?? 0) + bytes);
  if (peers === null) enqueueCopy(stream, to, from, bytes, direction);
  else enqueuePeerCopy(stream, to, peers.to, from, peers.from, bytes);
}

/** @returns whether threads and pinned memory were available */
function tryStaged(run: Run, stream: CudaStream, plan: StagingPlan): boolean {
  try {
    copyStaged(run, stream, plan);
    return true;
  } catch (error) {
    const isShort = error instanceof CudaError && error.code === CUresult.CUDA_ERROR_OUT_OF_MEMORY;
    if (error instanceof FfiError || isShort) return false; // the driver copies all of it
    throw error;
  }
}

/** How a copy is staged; null if the driver alone is faster, or starting the ring does not pay off yet. */
export function stagingOf(run: Run, { device }: CudaStream, cpus?: number): StagingPlan | null {
  if (!isLargeAndPageable(run) || !isRingWorthIt(device, run.bytes)) return null;
  const plan = planStaging(run.bytes, cpus ?? navigator.hardwareConcurrency);
  if (plan === null || !canStartThreads() || isCapturing(device.driver)) return null;
  return isUnknown(device, run.direction === "HtoD" ? run.from : run.to) ? plan : null;
}

/**
 * Whether the driver does not know a host address: memory that a program has pinned is copied fastest by the driver.
 */
function isUnknown(device: CudaDevice, address: bigint): boolean {
  const query = new PointerQuery(device.driver, []);
  try {
    return device.withContext(() => query.ask(address).kind) === "host";
  } finally {
    query.close();
  }
}

/**
 * Copies through the ring of the stream's device. The copy is enqueued on the stream; for the host it is complete on
 * return.
 *
 * @throws {CudaError} if the driver refuses; the destination is undefined then
 * @throws {FfiError} if there are no threads left
 */
export function copyStaged(run: Run, stream: CudaStream, plan: StagingPlan): void {
  const ring = rings.of(stream.device);
  const team = ring.arrange(plan);
  try {
    if (run.direction === "HtoD") toDevice(run, stream, ring, team, plan);
    else toHost(run, stream, ring, team, plan);
  } finally {
    team.finishAll(); // even if the driver refused a call
  }
}

// law memory/toDevice: memory/staging
/** The bus transfers a chunk as soon as it is in its slot, while threads fill the slots after it. */
function toDevice(run: Run, stream: CudaStream, ring: StagingRing, team: ThreadTeam, plan: StagingPlan): void {
  const { slots } = plan;
  const chunks = Math.ceil(run.bytes / plan.chunk);
  const fill = (chunk: number): void => {
    if (chunk >= chunks) return;
    ring.wait(chunk); // the bus may still read the slot's previous chunk
    team.begin(piecesOf(run, ring, plan, chunk));
  };
  for (let chunk = 0; chunk < slots; chunk++) fill(chunk);
  const onBus = slots >> 2; // chunks that were just passed to the bus: their slots are not refilled yet
  for (let chunk = 0; chunk < chunks; chunk++) {
    team.finish(); // the chunk is in its slot
    const at = chunk * plan.chunk;
    ring.enqueue(chunk, stream, (slot) => {
      enqueueCopy(stream, run.to + BigInt(at), slot, Math.min(plan.chunk, run.bytes - at), "HtoD");
    });
    if (chunk >= onBus) fill(chunk - onBus + slots);
  }
}

// law memory/toHost: memory/staging
/** The bus fills slots ahead of the threads that drain them. */
function toHost(run: Run, stream: CudaStream, ring: StagingRing, team: ThreadTeam, plan: StagingPlan): void {
  const { slots } = plan;
  const chunks = Math.ceil(run.bytes / plan.chunk);
  const fetch = (chunk: number): void => {
    if (chunk >= chunks) return;
    const at = chunk * plan.chunk;
    ring.enqueue(chunk, stream, (slot) => {
      enqueueCopy(stream, slot, run.from + BigInt(at), Math.min(plan.chunk, run.bytes - at), "DtoH");
    });
  };
  for (let chunk = 0; chunk < slots; chunk++) {
    ring.wait(chunk); // an earlier copy's chunk may still be in the slot
    fetch(chunk);
  }
  const inHand = slots >> 1; // slots that threads drain while the bus fills the others
  for (let chunk = 0; chunk < chunks + inHand; chunk++) {
    if (chunk < chunks) {
      ring.wait(chunk); // the bus is done with it
      // Creates new pages ahead of the writes: that takes several times as long as the copy.
      team.begin([...pagesOf(run, plan, chunk + 1), ...piecesOf(run, ring, plan, chunk)]);
    }
    if (chunk < inHand) continue;
    team.finish(); // the slot is drained
    fetch(chunk - inHand + slots);
  }
}

// law memory/pagesOf: memory/staging
/** Calls that create the pages which begin in a chunk of new memory. */
function pagesOf({ to, bytes, isNew = false }: Run, plan: StagingPlan, chunk: number): NativeCall[] {
  const [start, end] = [to + BigInt(chunk * plan.chunk), to + BigInt(bytes)];
  const next = start + BigInt(plan.chunk);
  return isNew ? pageCalls(start, next < end ? next : end, end) : [];
}

let memcpy = 0n;

/** The copies of a chunk, in pieces that idle threads pick up. */
function piecesOf(
  { to, from, bytes, direction }: Run,
  ring: StagingRing,
  plan: StagingPlan,
  chunk: number,
): NativeCall[] {
  if (memcpy === 0n) memcpy = libc().loading.dlsym(0n, cString("memcpy"));
  // Data that the bus reads next should be cached; data copied out of the ring should not.
  const copy = direction === "HtoD" ? memcpy : nonTemporalCopy();
  const pieces: NativeCall[] = [];
  const start = chunk * plan.chunk;
  const size = Math.min(plan.chunk, bytes - start);
  for (let at = 0; at < size; at += plan.piece) {
    const [slot, offset] = [ring.slot(chunk) + BigInt(at), BigInt(start + at)];
    const [target, source] = direction === "HtoD" ? [slot, from + offset] : [to + offset, slot];
    pieces.push([copy, target, source, BigInt(Math.min(plan.piece, size - at))]);
  }
  return pieces;
}
