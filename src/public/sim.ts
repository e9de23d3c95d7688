/**
 * A CUDA driver without a GPU: streams defer their work and run it in any order that CUDA allows.
 *
 * @module
 */
export {
  IllegalAddressError,
  type LiveObjects,
  type Print,
  type Schedule,
  SimulatedDriver,
  simulateDriver,
  type SimulateOptions,
} from "../sim/mod.ts";
export { PtxError, PtxFault, type PtxFaultKind } from "../ptx/mod.ts";
export type { CudaDriver } from "../driver/mod.ts";
