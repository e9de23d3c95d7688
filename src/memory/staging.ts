/**
 * Copies between ordinary host memory and a device, through a ring of pinned memory: native threads copy one chunk while
 * the chunks before it are on the bus. The driver does the same with one thread, which is slower than the bus.
 *
 * The copy is over for the host when the call returns, as with the driver's own copies of such memory: what was read may
 * change, and what was to be written is there. So no thread outlives the call, and nothing is kept.
 *
 * @module
 */
import { CU_MEMHOSTALLOC, CUresult } from "../../bindings/cuda_types.ts";
import { isCapturing } from "../cuda/captures.ts";
import { checkOf } from "../cuda/checking.ts";
import type { CopyDirection, CudaDevice } from "../cuda/device.ts";
import { checkCuda, checkRelease, CudaError } from "../cuda/driver.ts";
import type { CudaEvent } from "../cuda/event.ts";
import { PointerQuery } from "../cuda/pointer_attributes.ts";
import type { CudaStream } from "../cuda/stream.ts";
import { NativeArena } from "../ffi/arena.ts";
import type { NativeCall } from "../ffi/call_list.ts";
import { FfiError } from "../ffi/errors.ts";
import { libc } from "../ffi/libc.ts";
import { canHaveTeams, NativeTeam } from "../ffi/native_team.ts";
import { cString } from "../ffi/text.ts";

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
  /** Bytes that they copy together before the bus gets them. */
  readonly chunk: number;
}

/** Chunks in flight. */
const slots = 4;

/** From so many bytes on. Below, starting threads costs more than they save: 24 MiB are still slower on an H200. */
const enough = 64 * 2 ** 20;

/** Bytes. With less the threads wait for each other too often. */
const chunkBytes = 8 * 2 ** 20;

/** As many as fill the bus. Each copies about 10 GB/s, and more of them get no further. */
const mostThreads = 8;

/** The driver alone is about as fast as two. */
const fewestThreads = 4;

/** Parts of threads begin at pages. */
const page = 4096;

/** Rounds of one team: so a list of calls stays small however much is copied. */
const mostRounds = 256;

/**
 * Decides whether a copy of ordinary host memory is staged, and how.
 *
 * @param cpus processors that this process may use
 * @returns null if the driver alone is at least as fast
 */
export function planStaging(bytes: number, cpus: number): StagingPlan | null {
  const threads = Math.min(mostThreads, cpus);
  return bytes < enough || threads < fewestThreads ? null : { threads, chunk: chunkBytes };
}

/** Enqueues a copy on a stream: staged, if that is faster. */
export function copyRun(run: Run, stream: CudaStream, plan: StagingPlan | null = stagingOf(run, stream)): void {
  const { to, from, bytes, direction, peers } = run;
  if (plan !== null && tryStaged(run, stream, plan)) return;
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

/** How a copy is staged, or null if the driver does it alone. */
export function stagingOf(
  run: Run,
  { device }: CudaStream,
  cpus: number = navigator.hardwareConcurrency,
): StagingPlan | null {
  if (!run.isPageable || (run.direction !== "HtoD" && run.direction !== "DtoH")) return null;
  const plan = planStaging(run.bytes, cpus);
  if (plan === null || !canHaveTeams() || isCapturing(device.driver)) return null;
  return isUnknown(device, run.direction === "HtoD" ? run.from : run.to) ? plan : null;
}

/** Whether the driver knows nothing of host memory: what somebody has pinned it copies best by itself. */
function isUnknown(device: CudaDevice, address: bigint): boolean {
  const query = new PointerQuery(device.driver, []);
  try {
    return device.within(() => query.ask(address).kind) === "host";
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
  const ring = ringOf(stream.device, plan.chunk);
  const most = mostRounds * plan.chunk;
  for (let at = 0; at < run.bytes; at += most) {
    const [to, from] = [run.to + BigInt(at), run.from + BigInt(at)];
    const part = { ...run, to, from, bytes: Math.min(most, run.bytes - at) };
    if (run.direction === "HtoD") toDevice(part, stream, ring, plan);
    else toHost(part, stream, ring, plan);
  }
}

/** What the bus copies while threads copy the next chunk. */
function toDevice(run: Run, stream: CudaStream, ring: Ring, plan: StagingPlan): void {
  const { to, bytes } = run;
  const chunks = Math.ceil(bytes / plan.chunk);
  using team = NativeTeam.start(lanesOf(run, ring, plan));
  for (let chunk = 0; chunk <= chunks; chunk++) {
    if (chunk < chunks) ring.wait(chunk);
    team.next(); // the chunk before is in its slot, and this one begins
    if (chunk === 0) continue;
    const at = (chunk - 1) * plan.chunk;
    ring.enqueue(chunk - 1, stream, (slot) => {
      stream.device.copy(to + BigInt(at), slot, Math.min(plan.chunk, bytes - at), "HtoD", stream);
    });
  }
}

/** The bus fills slots ahead of the threads that empty them. */
function toHost(run: Run, stream: CudaStream, ring: Ring, plan: StagingPlan): void {
  const { from, bytes } = run;
  const chunks = Math.ceil(bytes / plan.chunk);
  const fetch = (chunk: number): void => {
    if (chunk >= chunks) return;
    const at = chunk * plan.chunk;
    ring.enqueue(chunk, stream, (slot) => {
      stream.device.copy(slot, from + BigInt(at), Math.min(plan.chunk, bytes - at), "DtoH", stream);
    });
  };
  for (let chunk = 0; chunk < slots; chunk++) {
    ring.wait(chunk); // what an earlier copy has left in the slot may not be on the device yet
    fetch(chunk);
  }
  using team = NativeTeam.start(lanesOf(run, ring, plan));
  for (let chunk = 0; chunk <= chunks; chunk++) {
    if (chunk < chunks) ring.wait(chunk);
    team.next(); // the slot of the chunk before is empty
    if (chunk > 0) fetch(chunk - 1 + slots);
  }
}

let memcpy = 0n;

/** For every thread, its part of each chunk. */
function lanesOf({ to, from, bytes, direction }: Run, ring: Ring, { threads, chunk }: StagingPlan) {
  if (memcpy === 0n) memcpy = libc().loading.dlsym(0n, cString("memcpy"));
  const lanes: (NativeCall | null)[][] = Array.from({ length: threads }, () => []);
  for (let index = 0; index * chunk < bytes; index++) {
    const at = index * chunk;
    const size = Math.min(chunk, bytes - at);
    const part = Math.ceil(size / threads / page) * page;
    lanes.forEach((lane, thread) => {
      const start = thread * part;
      if (start >= size) return lane.push(null);
      const [slot, offset] = [ring.slot(index) + BigInt(start), BigInt(at + start)];
      const [target, source] = direction === "HtoD" ? [slot, from + offset] : [to + offset, slot];
      return lane.push([memcpy, target, source, BigInt(Math.min(part, size - start))]);
    });
  }
  return lanes;
}

/** Pinned memory for a few chunks. Chunks go through its slots in turn. */
class Ring {
  readonly #device: CudaDevice;
  readonly #memory: bigint;
  readonly #chunk: number;
  /** For each slot, when the bus is done with it; not there before its first use. */
  readonly #events: (CudaEvent | undefined)[] = [];

  constructor(device: CudaDevice, chunk: number) {
    this.#device = device;
    this.#chunk = chunk;
    using arena = new NativeArena();
    const out = arena.out("ptr");
    const { cuMemHostAlloc } = device.driver.hostMemory;
    const bytes = BigInt(slots * chunk);
    const code = device.within(() => cuMemHostAlloc(out.$address, bytes, CU_MEMHOSTALLOC.PORTABLE));
    checkCuda(device.driver, "cuMemHostAlloc", code);
    this.#memory = out.value;
    checkOf(device.driver)?.letGo(this.#memory); // it goes with the device
  }

  /** Where a chunk lies. */
  slot(chunk: number): bigint {
    return this.#memory + BigInt(chunk % slots * this.#chunk);
  }

  /** Waits until the bus is done with a chunk's slot. */
  wait(chunk: number): void {
    this.#events[chunk % slots]?.synchronize();
  }

  /** Enqueues what the bus does with a chunk's slot. */
  enqueue(chunk: number, stream: CudaStream, work: (slot: bigint) => void): void {
    work(this.slot(chunk));
    stream.record(this.#events[chunk % slots] ??= this.#event());
  }

  #event(): CudaEvent {
    const event = this.#device.createEvent();
    checkOf(this.#device.driver)?.letGo(event.handle);
    return event;
  }

  close(): void {
    const { driver } = this.#device;
    this.#device.synchronize(); // the bus may still be at work
    for (const event of this.#events) event?.close();
    checkRelease(driver, "cuMemFreeHost", this.#device.within(() => driver.hostMemory.cuMemFreeHost(this.#memory)));
  }
}

const rings = new WeakMap<CudaDevice, Map<number, Ring>>();

/** The ring of a device: made at first use, and closed with the device. */
function ringOf(device: CudaDevice, chunk: number): Ring {
  let own = rings.get(device);
  if (own === undefined) {
    const made = own = new Map<number, Ring>();
    rings.set(device, made);
    device.onClose(() => {
      rings.delete(device);
      for (const ring of made.values()) ring.close();
    });
  }
  const ring = own.get(chunk) ?? new Ring(device, chunk);
  own.set(chunk, ring);
  return ring;
}
