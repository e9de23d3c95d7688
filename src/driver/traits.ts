/**
 * What a driver value may offer besides the functions of libcuda: optional members under symbols, with which no group
 * of functions can clash. The real driver has none of them.
 *
 * @module
 */
import type { DriverObserver } from "./observer.ts";

/** What a kernel does to memory. Other threads may rely on a `volatile` access, as they may on an atomic one. */
export type KernelAccess = "read" | "write" | "atomic" | "volatile read" | "volatile write";

/** Follows what kernels do to memory while they run. */
export interface KernelObserver {
  /** A kernel has accessed bytes. */
  accessed(address: bigint, bytes: number, access: KernelAccess): void;
  /** A kernel has completed. */
  ended(): void;
}

/** The member by which a driver gives the cause of an error code. The simulator does: it knows what the kernel did. */
export const cause: unique symbol = Symbol("cause");

/** The member that holds the observer of a driver's calls: a checked driver has one. */
export const observer: unique symbol = Symbol("observer");

/** The member by which a driver that runs kernels itself, the simulator, lets them be observed. */
export const observeKernels: unique symbol = Symbol("observeKernels");

/**
 * The optional members of a driver value. A type alias, not an interface, so that a driver can still be indexed by
 * group names.
 */
export type DriverTraits = {
  /** The cause of an error code, or undefined if unknown. */
  readonly [cause]?: (code: number) => unknown;
  /** The observer of the calls. */
  readonly [observer]?: DriverObserver;
  /**
   * Makes a call that launches kernels, and lets them be observed when they run, which may be long after the call has
   * returned.
   *
   * @returns what the call returned
   */
  readonly [observeKernels]?: (observer: KernelObserver, call: () => number) => number;
};
