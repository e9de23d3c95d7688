/**
 * Writing into a C `FILE *`.
 *
 * @module
 */
import { ffiPort } from "../../src/ffi/port.ts";

const { fputs } = ffiPort().bind("libc.so.6", 0n, {
  // int fputs(const char *s, FILE *stream);
  fputs: { args: ["buffer", "ptr"], returns: "i32" },
});

/** Writes a NUL-terminated text. */
export function put(text: Uint8Array<ArrayBuffer>, file: bigint): void {
  fputs(text, file); // fails where the file is full, which is noticed when it is read
}
