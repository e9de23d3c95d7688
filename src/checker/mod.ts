/**
 * A CUDA driver around a CUDA driver: it does the same, and reports what its caller leaves to chance.
 *
 * The room knows the driver's symbol table and types, the runtime's FFI, and PTX as text; it does not know whether the
 * driver inside is a real one. A call arrives at a function of `calls/`, which says what it reads and writes before
 * the driver is called, and puts that into the state of the checker once the driver has accepted it: into the vector
 * clock of its stream, and into the history of the memory that it touches. What is unordered with that history goes to
 * the `Reporter`, which makes a report of it, each once, and throws it or hands it over.
 *
 * What cannot be seen in the calls (accesses of the host, waits by other libraries) is reported to it as a
 * `DriverObserver`.
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
} from "./report.ts";
export type { Mark, MarkKind } from "./timeline.ts";
