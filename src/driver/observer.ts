/**
 * How a driver is checked. The checker is built on top of the driver's type: the room `sim` plugs it in when it is
 * loaded, which every public module does. So no import points upwards.
 *
 * @module
 */
import { ffiPort } from "../ffi/port.ts";
import type { CheckOptions } from "../checker/options.ts";
import type { CausalityReport } from "../checker/report.ts";
import type { CudaDriver } from "./driver.ts";

/** The checker of a driver, as far as this room needs it. */
export interface DriverCheck {
  /** The driver to use. */
  readonly driver: CudaDriver;
  /** The driver that does the work. */
  readonly inner: CudaDriver;
  /** What was reported so far. */
  readonly reports: readonly CausalityReport[];
  /** Notes where a stream is; the result is called when the host has waited for that without asking the driver. */
  mark(stream: bigint): () => void;
  /** Notes that a stream was made by somebody else. */
  adopted(stream: bigint): void;
  /**
   * Notes that somebody has made a stream wait for another one by a driver that is not this one.
   *
   * @param context the one that default streams are of
   */
  ordered(context: bigint, first: bigint, then: bigint): void;
  /** Notes that the host reads or writes memory by itself. */
  touchedByHost(address: bigint, bytes: number, writes: boolean, call: string): void;
  /** Notes that a stream, a pool or memory is closed, though somebody still needs it: its user has done what he must. */
  letGo(handle: bigint): void;
  /** Reports what is left. */
  close(): void;
}

/** Makes a checker. */
export type MakeCheck = (driver: CudaDriver, options: CheckOptions) => DriverCheck;

let provided: MakeCheck | undefined;
const checks = new WeakMap<CudaDriver, DriverCheck>();
/** Whether there was ever one: looking for one that is not there would cost each closing of a buffer some of its time. */
let areThere = false;
/** Those that have not been closed. */
const open = new Set<WeakRef<DriverCheck>>();

/** Plugs the checker in. */
export function provideCheck(make: MakeCheck): void {
  provided = make;
}

/** Makes a checker known by its driver. */
export function registerCheck(check: DriverCheck): void {
  checks.set(check.driver, check);
  open.add(new WeakRef(check));
  areThere = true;
}

/** The checker of a driver, or null if it is not checked. */
export function checkOf(driver: CudaDriver): DriverCheck | null {
  return areThere ? checks.get(driver) ?? null : null;
}

/**
 * Tells the checkers that the host reads or writes memory by itself: ordinary memory may be in the hands of any driver.
 *
 * @param call what does it, as a report names it: `toTypedArray()`
 */
export function tellHostAccess(address: bigint, bytes: number, writes: boolean, call: string): void {
  if (!areThere || bytes === 0) return;
  for (const one of open) {
    const check = one.deref();
    if (check === undefined) open.delete(one);
    else check.touchedByHost(address, bytes, writes, call);
  }
}

/** Whether to check, and how. */
export interface CheckedOptions {
  /**
   * Whether the driver is checked, and how. Default: as the environment says, `CAUSEWAY_CHECK=1` for everything,
   * `CAUSEWAY_CHECK=order` for everything but leaks; otherwise it is not.
   */
  readonly check?: boolean | CheckOptions;
}

/** The driver to use for what was chosen: the given one, or a checked one over it. */
export function checkIfWanted(driver: CudaDriver, { check }: CheckedOptions): CudaDriver {
  const wanted = check ?? fromEnvironment();
  if (wanted === false) return driver;
  if (provided === undefined) throw new TypeError("Cannot check CUDA: import the package, not one file of it");
  return provided(driver, wanted === true ? {} : wanted).driver;
}

function fromEnvironment(): boolean | CheckOptions {
  const value = ffiPort().env("CAUSEWAY_CHECK");
  return value === "order" ? { leaks: false } : value === "1";
}

/** Reports what is left of a checked driver; does nothing for another one. */
export function reportLeaks(driver: CudaDriver): void {
  checkOf(driver)?.close();
}
