/**
 * Where UCX writes its warnings.
 *
 * @module
 */
import { cString, libc } from "../ffi/mod.ts";

/**
 * Has UCX warn on standard error unless `UCX_LOG_FILE` says otherwise: it would on standard output, which is a
 * command's own. UCX reads that when it is loaded, from C's environment, which `process.env` does not reach in Bun.
 */
export function warnOnStandardError(): void {
  libc().loading.setenv(cString("UCX_LOG_FILE"), cString("stderr"), 0);
}
