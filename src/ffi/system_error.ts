/**
 * Calls of the C library that fail with `errno`.
 *
 * @module
 */
import { errno } from "../../bindings/libc.ts";
import { libc } from "./libc.ts";
import { ffiPort } from "./port.ts";

const names = new Map<number, string>(Object.entries(errno).map(([name, value]) => [value, name]));

/** A call into the operating system failed. */
export class SystemError extends Error {
  /** `SystemError`. */
  override readonly name: string = "SystemError";
  /** The value of `errno`. */
  readonly errno: number;
  /** Its name, for example `ECONNREFUSED`; `errno 5` for one that is not expected here. */
  readonly code: string;
  /** The function that failed. */
  readonly call: string;

  /** `hint`: the usual cause or remedy, as a sentence without its full stop; or nothing. */
  constructor(doing: string, call: string, code: number, hint: string, options?: ErrorOptions) {
    const codeName = names.get(code) ?? `errno ${code}`;
    super(`Cannot ${doing}: ${call} failed with ${codeName}${hint === "" ? "" : `. ${hint}`}`, options);
    this.errno = code;
    this.code = codeName;
    this.call = call;
  }
}

let place: Int32Array | undefined;

// law ffi/attempt: unix/descriptors, unix/socket
/**
 * Makes a call that returns a negative number and sets `errno` if it fails, and repeats it if a signal interrupted it.
 *
 * `errno` is a variable of the thread, whose address is found before the call: so nothing that could set it anew
 * happens between the call and the reading of it.
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
