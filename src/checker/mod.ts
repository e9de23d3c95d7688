/**
 * A CUDA driver that wraps another one: it does the same, and reports what its caller leaves to chance.
 *
 * The room knows the driver's symbol table and types, the runtime's FFI, and the parser of PTX; it does not know
 * whether the inner driver is a real one. A call arrives at a function of `calls/`, which determines what it reads and
 * writes before calling the driver, and adds that to the checker's state once the driver has accepted the call: to the
 * vector clock of its stream, and to the history of the memory that it touches. Accesses unordered with that history go
 * to the `Reporter`, which reports each once, by throwing the report or passing it on.
 *
 * What the calls do not show (accesses by the host, waits by other libraries) is reported to it as a `DriverObserver`.
 *
 * @module
 */
export { CausalityChecker, checkDriver, checkIsDriver, type CheckOptions } from "./checker.ts";
export {
  type CausalityCall,
  CausalityError,
  type CausalityKind,
  CausalityReport,
  type LeakedObject,
} from "./report.ts";
export type { Mark, MarkKind } from "./timeline.ts";
