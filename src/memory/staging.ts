/**
 * Copies between ordinary host memory and a device, through a ring of pinned memory: native threads copy one chunk while
 * the chunks before it are on the bus. The driver does the same with one thread, which is slower than the bus.
 *
 * The copy is over for the host when the call returns, as with the driver's own copies of such memory: what was read may
 * change, and what was to be written is there. The threads sleep until the next copy.
 *
 * @module
 */
import { CU_MEMHOSTALLOC, CUresult } from "../../bindings/cuda_types.ts";
import {
  besideCaptures,
  type CopyDirection,
  type CudaDevice,
  type CudaEvent,
  type CudaStream,
  isCapturing,
  PointerQuery,
} from "../device/mod.ts";
import { checkCuda, checkRelease, CudaError, observerOf } from "../driver/mod.ts";
import { cString, FfiError, libc, NativeArena } from "../ffi/mod.ts";
import { canStartThreads, type NativeCall, nonTemporalCopy, ThreadTeam } from "../native/mod.ts";

/** A run of bytes to copy. */
export interface Run {
  readonly to: bigint;
  readonly from: bigint;
  readonly bytes: number;
  readonly direction: CopyDirection;
  /** Whether the host's side, if there is one, is not known to be pinned. */
  readonly isPageable: boolean;
  /** The devices that it is between, if there are two. */
  readonly peers: { readonly from: CudaDevice; readonly to: CudaDevice } | null;
}

/** How host memory is staged. */
export interface StagingPlan {
  /** Native threads that copy. */
  readonly threads: number;
  /** Chunks that are under way: copied by threads, waiting for the bus, or on it. */
  readonly slots: number;
  /** Bytes that the bus gets at a time. */
  readonly chunk: number;
  /** Bytes of them that one thread copies at a time. */
  readonly piece: number;
}

const MiB = 2 ** 20;

/** From so many bytes on it is faster, if the ring and the threads are there. */
const enough = 4 * MiB;

/**
 * From so many bytes on the first copy makes up for what it takes to begin: 16 ms for pinned memory and threads, on an H200's
 * host. Smaller ones are staged once a device has copied as much in all.
 */
const much = 64 * MiB;

/** Pinned memory of a device for chunks. Much more of it leaves the processor's caches before the bus has read it. */
const ringBytes = 32 * MiB;

/** Of small chunks no more are under way. */
const mostSlots = 16;

/** So that each of the threads has something to do. */
const piecesOfChunk = 8;

/** As many as fill the bus. Each copies 6 to 10 GB/s on the host of an H200, and more of them get no further. */
const mostThreads = 8;

/** The driver alone is about as fast as two. */
const fewestThreads = 4;

/**
 * Decides whether a copy of ordinary host memory is staged, and how.
 *
 * @param cpus processors that this process may use
 * @returns null if the driver alone is at least as fast
 */
export function planStaging(bytes: number, cpus: number): StagingPlan | null {
  const threads = Math.min(mostThreads, cpus);
  if (bytes < enough || threads < fewestThreads) return null;
  // While the first chunk is filled and the last one emptied the bus is idle: so the chunks of small copies are small.
  const chunk = bytes < 16 * MiB ? MiB : bytes < much ? 2 * MiB : 8 * MiB;
  return { threads, slots: Math.min(mostSlots, ringBytes / chunk), chunk, piece: chunk / piecesOfChunk };
}

/** Bytes that a device has copied without its ring, which would have been faster. */
const unstaged = new WeakMap<CudaDevice, number>();

function isRingWorthIt(device: CudaDevice, bytes: number): boolean {
  return rings.has(device) || (unstaged.get(device) ?? 0) + bytes >= much;
}

/** Whether a ring could help: what is quick to say, because asking for the processors takes longer than a small copy. */
function isLargeAndPageable({ bytes, isPageable, direction }: Run): boolean {
  return bytes >= enough && isPageable && (direction === "HtoD" || direction === "DtoH");
}

/** Enqueues a copy on a stream: staged, if that is faster. */
export function copyRun(run: Run, stream: CudaStream, plan: StagingPlan | null = stagingOf(run, stream)): void {
  const { to, from, bytes, direction, peers } = run;
  if (plan !== null && tryStaged(run, stream, plan)) return;
  if (isLargeAndPageable(run)) unstaged.set(stream.device, (unstaged.get(stream.device) ?? 0) + bytes);
  if (peers === null) stream.device.copy(to, from, bytes, direction, stream);
  else stream.device.copyPeer(to, peers.to, from, peers.from, bytes, stream);
}

/** @returns whether there were threads and pinned memory for it */
function tryStaged(run: Run, stream: CudaStream, plan: StagingPlan): boolean {
  try {
    copyStaged(run, stream, plan);
    return true;
  } catch (error) {
    const isShort = error instanceof CudaError && error.code === CUresult.CUDA_ERROR_OUT_OF_MEMORY;
    if (error instanceof FfiError || isShort) return false; // nothing is lost: the driver does it all
    throw error;
  }
}

/** How a copy is staged, or null if the driver does it alone: as it is faster, or as the ring is not worth its price yet. */
export function stagingOf(run: Run, { device }: CudaStream, cpus?: number): StagingPlan | null {
  if (!isLargeAndPageable(run) || !isRingWorthIt(device, run.bytes)) return null;
  const plan = planStaging(run.bytes, cpus ?? navigator.hardwareConcurrency);
  if (plan === null || !canStartThreads() || isCapturing(device.driver)) return null;
  return isUnknown(device, run.direction === "HtoD" ? run.from : run.to) ? plan : null;
}

/** Whether the driver knows nothing of host memory: what somebody has pinned it copies best by itself. */
function isUnknown(device: CudaDevice, address: bigint): boolean {
  const query = new PointerQuery(device.driver, []);
  try {
    return device.withContext(() => query.ask(address).kind) === "host";
  } finally {
    query.close();
  }
}

/**
 * Copies through the ring of the stream's device. Enqueued on the stream, and over for the host when it returns.
 *
 * @throws {CudaError} if the driver refuses; what was to be written is undefined then
 * @throws {FfiError} if there are no threads left
 */
export function copyStaged(run: Run, stream: CudaStream, plan: StagingPlan): void {
  const ring = ringOf(stream.device);
  ring.arrange(plan);
  try {
    if (run.direction === "HtoD") toDevice(run, stream, ring, plan);
    else toHost(run, stream, ring, plan);
  } finally {
    ring.team.finishAll(); // nothing of it is left, even if the driver has refused something
  }
}

/** The bus takes a chunk as soon as it is in its slot, while threads fill the slots after it. */
function toDevice(run: Run, stream: CudaStream, ring: Ring, plan: StagingPlan): void {
  const { slots } = plan;
  const chunks = Math.ceil(run.bytes / plan.chunk);
  const fill = (chunk: number): void => {
    if (chunk >= chunks) return;
    ring.wait(chunk); // the bus may still read what was in the slot
    ring.team.begin(piecesOf(run, ring, plan, chunk));
  };
  for (let chunk = 0; chunk < slots; chunk++) fill(chunk);
  const onBus = slots >> 2; // not the slots of these: the bus has only now been given them
  for (let chunk = 0; chunk < chunks; chunk++) {
    ring.team.finish(); // the chunk is in its slot
    const at = chunk * plan.chunk;
    ring.enqueue(chunk, stream, (slot) => {
      stream.device.copy(run.to + BigInt(at), slot, Math.min(plan.chunk, run.bytes - at), "HtoD", stream);
    });
    if (chunk >= onBus) fill(chunk - onBus + slots);
  }
}

/** The bus fills slots ahead of the threads that empty them. */
function toHost(run: Run, stream: CudaStream, ring: Ring, plan: StagingPlan): void {
  const { slots } = plan;
  const chunks = Math.ceil(run.bytes / plan.chunk);
  const fetch = (chunk: number): void => {
    if (chunk >= chunks) return;
    const at = chunk * plan.chunk;
    ring.enqueue(chunk, stream, (slot) => {
      stream.device.copy(slot, run.from + BigInt(at), Math.min(plan.chunk, run.bytes - at), "DtoH", stream);
    });
  };
  for (let chunk = 0; chunk < slots; chunk++) {
    ring.wait(chunk); // what an earlier copy has left in the slot may not be on the device yet
    fetch(chunk);
  }
  const inHand = slots >> 1; // with threads, while the bus fills the others
  for (let chunk = 0; chunk < chunks + inHand; chunk++) {
    if (chunk < chunks) {
      ring.wait(chunk); // the bus is done with it
      ring.team.begin(piecesOf(run, ring, plan, chunk));
    }
    if (chunk < inHand) continue;
    ring.team.finish(); // the slot is empty
    fetch(chunk - inHand + slots);
  }
}

let memcpy = 0n;

/** What threads copy of a chunk, in pieces for whoever is free. */
function piecesOf({ to, from, bytes, direction }: Run, ring: Ring, plan: StagingPlan, chunk: number): NativeCall[] {
  if (memcpy === 0n) memcpy = libc().loading.dlsym(0n, cString("memcpy"));
  // What the bus reads next should be in a cache, and what is done with should not.
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

/** Pinned memory for a few chunks, which go through its slots in turn, and the threads that copy them. */
class Ring {
  readonly #device: CudaDevice;
  readonly #memory: bigint;
  /** For each slot, when the bus is done with it; not there before its first use. */
  readonly #events: (CudaEvent | undefined)[] = [];
  #slots = 0;
  #chunk = 0;
  #team: ThreadTeam | null = null;

  constructor(device: CudaDevice) {
    this.#device = device;
    using arena = new NativeArena();
    const out = arena.out("ptr");
    const { driver } = device;
    const { cuMemHostAlloc } = driver.hostMemory;
    const allocate = () => cuMemHostAlloc(out.$address, BigInt(ringBytes), CU_MEMHOSTALLOC.PORTABLE);
    checkCuda(driver, "cuMemHostAlloc", besideCaptures(driver, () => device.withContext(allocate)));
    this.#memory = out.value;
    observerOf(device.driver)?.closedByUser(this.#memory); // it goes with the device
  }

  /** The threads: they sleep between copies, and end with the device. To start them takes as long as to copy 20 MiB. */
  get team(): ThreadTeam {
    if (this.#team === null) throw new FfiError("Cannot copy through a ring that is not arranged");
    return this.#team;
  }

  /**
   * Makes the ring fit a plan.
   *
   * @throws {FfiError} if there are no threads left
   */
  arrange({ threads, slots, chunk, piece }: StagingPlan): void {
    if (slots !== this.#slots || chunk !== this.#chunk) {
      for (const event of this.#events) event?.synchronize(); // what was a slot is now part of another
      [this.#slots, this.#chunk] = [slots, chunk];
    }
    // Large enough for what comes next, too: to start threads takes longer than to copy with them.
    const rounds = Math.max(slots, mostSlots);
    const size = { threads, rounds, calls: Math.max(Math.ceil(chunk / piece), piecesOfChunk) };
    if (this.#team?.fits(size)) return;
    this.#team?.close();
    this.#team = null;
    this.#team = ThreadTeam.start(size);
  }

  /** Where a chunk lies. */
  slot(chunk: number): bigint {
    return this.#memory + BigInt(chunk % this.#slots * this.#chunk);
  }

  /** Waits until the bus is done with a chunk's slot. */
  wait(chunk: number): void {
    this.#events[chunk % this.#slots]?.synchronize();
  }

  /** Enqueues what the bus does with a chunk's slot. */
  enqueue(chunk: number, stream: CudaStream, work: (slot: bigint) => void): void {
    work(this.slot(chunk));
    stream.record(this.#events[chunk % this.#slots] ??= this.#event());
  }

  #event(): CudaEvent {
    const event = this.#device.makeEvent();
    observerOf(this.#device.driver)?.closedByUser(event.handle);
    return event;
  }

  close(): void {
    const { driver } = this.#device;
    this.#team?.close();
    this.#device.synchronize(); // the bus may still be at work
    for (const event of this.#events) event?.close();
    const free = () => this.#device.withContext(() => driver.hostMemory.cuMemFreeHost(this.#memory));
    checkRelease(driver, "cuMemFreeHost", besideCaptures(driver, free));
  }
}

const rings = new WeakMap<CudaDevice, Ring>();

/** The ring of a device: made at first use, and closed with the device. */
function ringOf(device: CudaDevice): Ring {
  const known = rings.get(device);
  if (known !== undefined) return known;
  const ring = new Ring(device);
  rings.set(device, ring);
  device.onClose(() => {
    rings.delete(device);
    ring.close();
  });
  return ring;
}
