/**
 * What a driver value may offer besides the functions of libcuda. These are optional members under symbols, which no group
 * of functions can clash with. The real driver has none of them.
 *
 * @module
 */

/** What a kernel does to memory. `volatile`: in a way that other threads may rely on, as they may on atomic accesses. */
export type KernelAccess = "read" | "write" | "atomic" | "volatile read" | "volatile write";

/** Follows what kernels do to memory while they run. */
export interface KernelObserver {
  /** A kernel has accessed bytes. */
  accessed(address: bigint, bytes: number, access: KernelAccess): void;
  /** A kernel has ended. */
  ended(): void;
}

/** The member by which a driver that runs kernels itself, the simulator, has them observed. */
export const observeKernels: unique symbol = Symbol("observeKernels");

/** The optional members of a driver value. */
export type DriverTraits = {
  /**
   * Makes a call that launches kernels, and has these kernels observed: when they run, which may be long after the call
   * has returned.
   *
   * @returns what the call returned
   */
  readonly [observeKernels]?: (observer: KernelObserver, call: () => number) => number;
};
