/**
 * Where UCX writes its warnings.
 *
 * @module
 */
import { cString, libc } from "../ffi/mod.ts";

/**
 * Makes UCX warn on standard error unless `UCX_LOG_FILE` says otherwise: its default is standard output, which belongs
 * to the command. UCX reads the variable when it is loaded, from C's environment, which `process.env` does not reach in
 * Bun.
 */
export function warnOnStandardError(): void {
  libc().loading.setenv(cString("UCX_LOG_FILE"), cString("stderr"), 0);
}
