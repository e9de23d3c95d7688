/**
 * C library calls that fail with `errno`.
 *
 * @module
 */
import { errno } from "../../bindings/libc.ts";
import { constantName } from "./errors.ts";
import { libc } from "./libc.ts";
import { ffiPort } from "./port.ts";

/** A call into the operating system failed. */
export class SystemError extends Error {
  /** `SystemError`. */
  override readonly name: string = "SystemError";
  /** The value of `errno`; 0 if the function that failed does not set it. */
  readonly errno: number;
  /** Its name, for example `ECONNREFUSED`, or the function's own (`ENOTFOUND`); `errno 5` for an unexpected one. */
  readonly code: string;
  /** The function that failed. */
  readonly call: string;

  /** `hint`: the usual cause or remedy, as a sentence without its full stop; or empty. */
  constructor(doing: string, call: string, code: number | string, hint: string, options?: ErrorOptions) {
    const codeName = typeof code === "string" ? code : constantName(errno, code) ?? `errno ${code}`;
    super(`Cannot ${doing}: ${call} failed with ${codeName}${hint === "" ? "" : `. ${hint}`}`, options);
    this.errno = typeof code === "string" ? 0 : code;
    this.code = codeName;
    this.call = call;
  }
}

let place: Int32Array | undefined;

// law ffi/attempt: unix/descriptors, unix/socket
/**
 * Makes a call that returns a negative number and sets `errno` if it fails, and retries it if a signal interrupted it.
 *
 * `errno` is thread-local, and its address is looked up before the call, so that nothing can overwrite it between the
 * call and reading it.
 *
 * @returns what the call returned, or `-errno`
 */
export function attempt(call: () => number | bigint): number {
  place ??= new Int32Array(ffiPort().memory(libc().sockets.__errno_location(), 4));
  for (;;) {
    const result = Number(call());
    if (result >= 0) return result;
    const code = place[0] ?? 0;
    if (code !== errno.EINTR) return -code;
  }
}
