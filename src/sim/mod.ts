/**
 * A CUDA driver in TypeScript, which needs no GPU and is as unkind as CUDA's rules allow.
 *
 * @module
 */
import { CUresult } from "../../bindings/cuda_types.ts";
import { provideCheck } from "../driver/observer.ts";
import { provideSimulator } from "../cuda/simulation.ts";
import { checkDriver } from "../checker/checker.ts";
import { SimulatedDriver, simulateDriver } from "./driver.ts";

provideSimulator(
  (options) => simulateDriver(options).driver,
  (driver, code) => {
    const simulated = SimulatedDriver.of(driver);
    const isLoading = code === CUresult.CUDA_ERROR_INVALID_PTX || code === CUresult.CUDA_ERROR_INVALID_IMAGE;
    return (isLoading ? simulated?.lastPtxError : simulated?.lastKernelError) ?? undefined;
  },
);
provideCheck(checkDriver);

export { CausalityChecker, checkDriver } from "../checker/checker.ts";
export type { CheckOptions } from "../checker/options.ts";
export {
  type CausalityCall,
  CausalityError,
  type CausalityKind,
  CausalityReport,
  type LeakedObject,
  type ReportParts,
} from "../checker/report.ts";
export type { Mark, MarkKind } from "../checker/timeline.ts";

export { type LiveObjects, SimulatedDriver, simulateDriver } from "./driver.ts";
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
export type { SimulateOptions } from "./options.ts";
export type { Print } from "./output.ts";
export type { Schedule } from "./scheduler.ts";
