/**
 * A CUDA driver in TypeScript that needs no GPU and exploits all the freedom that CUDA leaves a driver.
 *
 * The room depends on the driver's symbol table and types, the runtime's FFI and the PTX interpreter, and on no room
 * above. A call arrives at a function of `driver.ts`, which dispatches it to the table of its group in `calls/`. The
 * call changes the state of a `Simulator`: work becomes tasks of the scheduler, which runs them when something waits
 * for them, or earlier, in an order that the seed chooses among all those that the dependencies allow. Tasks read and
 * write the bytes of an `AddressSpace`.
 *
 * Through the symbols of `driver/traits.ts`, a driver exposes the causes of its errors and lets kernels be observed.
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
