/**
 * A CUDA driver that wraps another one and reports what its caller leaves to chance.
 *
 * @module
 */
export {
  type CausalityCall,
  CausalityChecker,
  CausalityError,
  type CausalityKind,
  CausalityReport,
  checkDriver,
  type CheckOptions,
  type LeakedObject,
  type Mark,
  type MarkKind,
} from "../checker/mod.ts";
export type { CudaDriver } from "../driver/mod.ts";
