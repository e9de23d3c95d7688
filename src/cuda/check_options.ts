/**
 * Whether a driver is checked: as its user chooses, or else the environment.
 *
 * @module
 */
import { CausalityChecker, type CheckOptions } from "../checker/mod.ts";
import type { CudaDriver } from "../driver/mod.ts";
import { ffiPort } from "../ffi/mod.ts";

/** Whether to check, and how. */
export interface CheckedOptions {
  /**
   * Whether the driver is checked, and how. Default: as set in the environment, `CAUSEWAY_CHECK=1` for everything,
   * `CAUSEWAY_CHECK=order` for everything but leaks; otherwise, and for a driver that is passed in, unchecked.
   */
  readonly check?: boolean | CheckOptions;
}

/** The driver to use for these options: the given one, or a checked one over it. */
export function checkIfWanted(driver: CudaDriver, { check }: CheckedOptions): CudaDriver {
  const wanted = check ?? fromEnvironment();
  return wanted === false ? driver : new CausalityChecker(driver, wanted === true ? {} : wanted).driver;
}

function fromEnvironment(): boolean | CheckOptions {
  const value = ffiPort().env("CAUSEWAY_CHECK");
  return value === "order" ? { leaks: false } : value === "1";
}
