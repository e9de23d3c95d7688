/**
 * What UCX prints about its objects. For some facts, such as the transports of an endpoint, it is the only source that
 * exists from UCX 1.13 on.
 *
 * @module
 */
import { cString, FfiError, libc, NativeArena, readField } from "../ffi/mod.ts";

const mode = cString("w");

/** Bytes for a text at first: all settings of UCX 1.13 take 14 KB, and 1.21's less. */
const usualSize = 2 ** 15;

// law ucx/printInfo: ucx/failing_calls, ucx/print_info
/**
 * The text that a function prints into a C `FILE *`. It is called again if the text did not fit.
 *
 * The text goes into memory of ours. `open_memstream` would allocate it for us to free, and under a preloaded
 * allocator, such as jemalloc, that is not the `free` which Deno finds in libc.so.6: the process ended.
 *
 * @throws {FfiError} if there is no memory for it
 */
export function printInfo(print: (file: bigint) => void): string {
  const { fmemopen, fclose } = libc().stdio;
  for (let size = usualSize;; size *= 4) {
    using arena = new NativeArena();
    const { address, bytes } = arena.bytes(size);
    const file = fmemopen(address, BigInt(size), mode);
    if (file === 0n) throw new FfiError("Cannot read what UCX prints: fmemopen returned NULL, for want of memory");
    print(file);
    fclose(file);
    if (bytes.at(-2) === 0) return readField(bytes); // the last byte is 0 also where a text was cut
  }
}
