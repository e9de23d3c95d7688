/**
 * Exchange of arrays with other libraries, without copies and in the right order.
 *
 * @module
 */
import { provideProtocols } from "../view/protocols.ts";
import { dlpackDevice, isDlpackSource } from "./dlpack.ts";
import { toDlpack } from "./dlpack_export.ts";
import { fromDlpack } from "./dlpack_import.ts";

provideProtocols({ isDlpackSource, toDlpack, fromDlpack, dlpackDevice });

export { type DlpackSource, DlpackTensor, type ImportOptions, type ToDlpackOptions } from "./dlpack.ts";
export { ExchangeError } from "./error.ts";
export { liveExports } from "./live_exports.ts";
