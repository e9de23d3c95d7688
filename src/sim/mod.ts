/**
 * A CUDA driver in TypeScript, which needs no GPU and makes use of all the freedom that CUDA leaves a driver.
 *
 * The room knows the driver's symbol table and types, the runtime's FFI and the PTX interpreter, and no room above. A
 * call arrives at a function of `driver.ts`, which hands it to the table of its group in `calls/`. That changes the
 * state of a `Simulator`: work becomes tasks of the scheduler, which runs them when something waits for them, or
 * earlier, in an order that the seed chooses among all that the dependencies allow. Tasks read and write the bytes of
 * an `AddressSpace`.
 *
 * A driver says what is behind its errors and lets kernels be observed by the symbols of `driver/traits.ts`.
 *
 * @module
 */
export {
  type LiveObjects,
  SimulatedDriver,
  simulateDriver,
  simulateOptionNames,
  type SimulateOptions,
} from "./driver.ts";
export { IllegalAddressError } from "./kernel_faults.ts";
export type { Print } from "./output.ts";
export type { Schedule } from "./scheduler.ts";
