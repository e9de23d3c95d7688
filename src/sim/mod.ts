/**
 * A CUDA driver in TypeScript, which needs no GPU and is as unkind as CUDA's rules allow.
 *
 * @module
 */
import { provideSimulator } from "../cuda/simulation.ts";
import { simulateDriver } from "./driver.ts";

provideSimulator((options) => simulateDriver(options).driver);

export { type LiveObjects, SimulatedDriver, simulateDriver } from "./driver.ts";
export { IllegalAddressError, type LoadPtx } from "./kernels.ts";
export {
  type PtxAccess,
  type PtxGlobal,
  type PtxKernel,
  type PtxLaunch,
  type PtxMemory,
  type PtxModule,
} from "./ptx/mod.ts";
export type { SimulateOptions } from "./options.ts";
export type { Schedule } from "./scheduler.ts";
