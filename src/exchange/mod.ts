/**
 * Exchange of arrays with other libraries, without copies and in the right order.
 *
 * @module
 */
import { provideArraySource, provideProtocols } from "../view/protocols.ts";
import {
  fromArrayInterface,
  fromCudaArrayInterface,
  hasInterface,
  toArrayInterface,
  toCudaArrayInterface,
} from "./array_interface.ts";
import { dlpackDevice, isDlpackSource } from "./dlpack.ts";
import { toDlpack } from "./dlpack_export.ts";
import { fromDlpack } from "./dlpack_import.ts";

provideProtocols({
  toDlpack,
  fromDlpack,
  dlpackDevice,
  toArrayInterface,
  toCudaArrayInterface,
  fromArrayInterface,
  fromCudaArrayInterface,
});
provideArraySource({ speaks: "__dlpack__", accepts: isDlpackSource, take: fromDlpack });
provideArraySource({
  speaks: "__cuda_array_interface__",
  accepts: (source) => hasInterface(source, "__cuda_array_interface__"),
  take: fromCudaArrayInterface,
});
provideArraySource({
  speaks: "__array_interface__",
  accepts: (source) => hasInterface(source, "__array_interface__"),
  take: fromArrayInterface,
});

export type { ArrayInterface, CudaArrayInterface } from "./array_interface.ts";

export { type DlpackSource, DlpackTensor, type ImportOptions, type ToDlpackOptions } from "./dlpack.ts";
export { ExchangeError } from "./error.ts";
export { liveExports } from "./live_exports.ts";
