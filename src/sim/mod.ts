/**
 * A CUDA driver in TypeScript, which needs no GPU and is as unkind as CUDA's rules allow.
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
export { IllegalAddressError, type LoadPtx } from "./kernel_faults.ts";
export {
  type PrintTarget,
  type PtxAccess,
  PtxError,
  PtxFault,
  type PtxFaultKind,
  type PtxGlobal,
  type PtxKernel,
  type PtxLaunch,
  type PtxMemory,
  type PtxModule,
} from "../ptx/mod.ts";
export type { Print } from "./output.ts";
export type { Schedule } from "./scheduler.ts";
