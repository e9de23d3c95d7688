/**
 * State that the driver keeps for the whole process, whichever library in it opened the driver.
 *
 * @module
 */
import { type CudaDriver, innermost } from "../driver/mod.ts";

/** Values per process, by handle or address. */
export class ProcessWide<T> {
  readonly #processes = new WeakMap<CudaDriver, Map<bigint, T>>();

  // law memory/ProcessWide.of: memory/sharing/sharing, memory/sharing/pieces
  /** The values of a driver's process: a checked driver shares those of the driver that it checks. */
  of(driver: CudaDriver): Map<bigint, T> {
    const process = innermost(driver);
    return this.#processes.getOrInsertComputed(process, () => new Map());
  }
}
