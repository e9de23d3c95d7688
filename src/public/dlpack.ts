/**
 * DLPack and the array interfaces.
 *
 * @module
 */
export {
  type ArrayInterface,
  type CudaArrayInterface,
  type DlpackPointer,
  type DlpackSource,
  DlpackTensor,
  type ImportOptions,
  type ToDlpackOptions,
} from "../dlpack/mod.ts";
export { ExchangeError, liveExports } from "../order/mod.ts";
