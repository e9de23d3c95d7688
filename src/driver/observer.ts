/**
 * Who observes a driver's calls. The causality checker does: here it learns what the calls alone do not show.
 *
 * @module
 */
import type { CudaDriver } from "./driver.ts";
import { observer } from "./traits.ts";

/** What an observer of a driver is notified of. */
export interface DriverObserver {
  /** The driver that does the work. */
  readonly inner: CudaDriver;
  /** Notes where a stream is; the result is called when the host has waited for that without asking the driver. */
  mark(stream: bigint): () => void;
  /** Notes a foreign stream, whose handle may be that of a stream that was destroyed. */
  foreignStream(stream: bigint): void;
  /**
   * Notes that one stream was made to wait for another one through another driver.
   *
   * @param context the one that default streams are of
   */
  orderedElsewhere(context: bigint, first: bigint, then: bigint): void;
  /** Notes that the host reads or writes memory by itself. */
  hostAccess(address: bigint, bytes: number, writes: boolean, call: string): void;
  /**
   * Notes that memory of another process was received: what is in it is there for what comes after this on a stream.
   *
   * @param call what received it, as a report names it
   */
  received(address: bigint, bytes: number, stream: bigint, call: string): void;
  /** Notes that a stream, a pool or memory was closed by its user, although it is still retained: it is no leak. */
  closedByUser(handle: bigint): void;
  /** Notes what the user calls a stream. */
  nameStream(stream: bigint, name: string): void;
  /** Notes what the user calls the memory at an address. */
  nameMemory(address: bigint, name: string): void;
  /** Notes what the user calls a device. */
  nameDevice(ordinal: number, name: string): void;
}

/**
 * Observers of the host's accesses. A list of the process: ordinary memory is of no driver and no Cuda by which its
 * observer could be found, and code that reads or writes it may have no Cuda at all. Each is on the list as long as it
 * lives.
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

// law driver/observeHost: driver/errors
/** Notifies an observer of the host's accesses as long as it lives. */
export function observeHost(one: DriverObserver): void {
  observers.add(new WeakRef(one));
}

/** Whether anyone observes the host's accesses: without, what an access is need not be found out. */
export function isHostObserved(): boolean {
  return observers.size !== 0;
}

// law driver/noteHostAccess: driver/errors
/**
 * Notifies all observers that the host reads or writes memory by itself.
 *
 * @param call what does it, as a report names it: `toTypedArray()`
 */
export function noteHostAccess(address: bigint, bytes: number, writes: boolean, call: string): void {
  if (observers.size === 0 || bytes === 0) return;
  for (const reference of observers) {
    const one = reference.deref();
    if (one === undefined) observers.delete(reference);
    else one.hostAccess(address, bytes, writes, call);
  }
}
