/**
 * A CUDA driver around a CUDA driver: it does the same, and reports what its caller leaves to chance.
 *
 * @module
 */
export { CausalityChecker, checkDriver, type CheckOptions } from "./checker.ts";
export {
  type CausalityCall,
  CausalityError,
  type CausalityKind,
  CausalityReport,
  type LeakedObject,
  type ReportParts,
} from "./report.ts";
export type { Mark, MarkKind } from "./timeline.ts";
