/**
 * What a driver value may offer besides the functions of libcuda. These are optional members under symbols, which no
 * group of functions can clash with. The real driver has none of them.
 *
 * @module
 */
import type { DriverObserver } from "./observer.ts";

/**
 * What a kernel does to memory. `volatile`: in a way that other threads may rely on, as they may on atomic accesses.
 */
export type KernelAccess = "read" | "write" | "atomic" | "volatile read" | "volatile write";

/** Follows what kernels do to memory while they run. */
export interface KernelObserver {
  /** A kernel has accessed bytes. */
  accessed(address: bigint, bytes: number, access: KernelAccess): void;
  /** A kernel has ended. */
  ended(): void;
}

/** The member by which a driver says what is behind an error code. The simulator does: it knows what the kernel did. */
export const cause: unique symbol = Symbol("cause");

/** The member by which a driver says who observes its calls: a checked one has an observer. */
export const observer: unique symbol = Symbol("observer");

/** The member by which a driver that runs kernels itself, the simulator, has them observed. */
export const observeKernels: unique symbol = Symbol("observeKernels");

/**
 * The optional members of a driver value. A type alias, not an interface: a driver can still be read by group names.
 */
export type DriverTraits = {
  /** What is behind an error code, or undefined if that is not known. */
  readonly [cause]?: (code: number) => unknown;
  /** Who observes the calls. */
  readonly [observer]?: DriverObserver;
  /**
   * Makes a call that launches kernels, and has these kernels observed: when they run, which may be long after the call
   * has returned.
   *
   * @returns what the call returned
   */
  readonly [observeKernels]?: (observer: KernelObserver, call: () => number) => number;
};
