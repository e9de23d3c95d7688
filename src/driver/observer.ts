/**
 * Observers of a driver's calls. The causality checker is one: through this interface it learns what the calls alone do
 * not show.
 *
 * @module
 */
import type { CudaDriver } from "./driver.ts";
import { observeKernels, observer } from "./traits.ts";

/** What an observer of a driver is notified of. */
export interface DriverObserver {
  /** The driver that does the work. */
  readonly inner: CudaDriver;
  /**
   * Notes a stream's current position; the caller calls the result once the host has waited for it without the driver.
   */
  mark(stream: bigint): () => void;
  /** Notes a foreign stream, whose handle may be that of a destroyed stream. */
  foreignStream(stream: bigint): void;
  /**
   * Notes that one stream was made to wait for another one through another driver.
   *
   * @param context the context that default streams belong to
   */
  orderedElsewhere(context: bigint, first: bigint, then: bigint): void;
  /** Notes that the host reads or writes memory directly. */
  hostAccess(address: bigint, bytes: number, writes: boolean, call: string): void;
  /** Notes ordinary host memory that is new: what was at its address before is freed, and so no longer in use. */
  newHostMemory(address: bigint, bytes: number): void;
  /**
   * Notes that memory of another process was received: its contents are there for later work on a stream.
   *
   * @param call the function that received it, as a report names it
   */
  received(address: bigint, bytes: number, stream: bigint, call: string): void;
  /** Notes that a stream, a pool or memory was closed by its user, although it is still retained: it is not a leak. */
  closedByUser(handle: bigint): void;
  /** Notes the user's name for a stream. */
  nameStream(stream: bigint, name: string): void;
  /** Notes the user's name for the memory at an address. */
  nameMemory(address: bigint, name: string): void;
  /** Notes the user's name for a device. */
  nameDevice(ordinal: number, name: string): void;
}

/**
 * Observers of the host's accesses. The list is process-wide: ordinary memory belongs to no driver and no Cuda through
 * which its observer could be found, and code that reads or writes it may have no Cuda at all. Each observer is on the
 * list until it is closed or collected.
 */
const observers = new Set<WeakRef<DriverObserver>>();

/** The observer of a driver, or null if it has none. */
export function observerOf(driver: CudaDriver): DriverObserver | null {
  return driver[observer] ?? null;
}

/** The driver that does the work: the one behind an observed driver, or the driver itself. */
export function innermost(driver: CudaDriver): CudaDriver {
  return driver[observer]?.inner ?? driver;
}

/** Whether a driver runs kernels itself: the simulator, checked or not. Its devices' memory is the host's. */
export function isSimulated(driver: CudaDriver): boolean {
  return innermost(driver)[observeKernels] !== undefined;
}

// law driver/observeHost: driver/errors
/**
 * Notifies an observer of the host's accesses as long as it lives.
 *
 * @returns a function that ends this earlier
 */
export function observeHost(one: DriverObserver): () => void {
  const reference = new WeakRef(one);
  observers.add(reference);
  return () => void observers.delete(reference);
}

/** Whether the host's accesses are observed: if not, callers need not work out what an access touches. */
export function isHostObserved(): boolean {
  return observers.size !== 0;
}

// law driver/noteHostAccess: driver/errors
/**
 * Notifies all observers that the host reads or writes memory directly.
 *
 * @param call the function that does so, as a report names it: `toTypedArray()`
 */
export function noteHostAccess(address: bigint, bytes: number, writes: boolean, call: string): void {
  if (observers.size === 0 || bytes === 0) return;
  for (const reference of observers) {
    const one = reference.deref();
    if (one === undefined) observers.delete(reference);
    else one.hostAccess(address, bytes, writes, call);
  }
}

/** Notifies all observers of new ordinary host memory. */
export function noteNewHostMemory(address: bigint, bytes: number): void {
  if (bytes === 0) return;
  for (const reference of observers) reference.deref()?.newHostMemory(address, bytes);
}
