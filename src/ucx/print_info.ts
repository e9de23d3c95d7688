/**
 * What UCX prints about its objects. For some facts, such as the transports of an endpoint, it is the only source that
 * exists from UCX 1.13 on.
 *
 * @module
 */
import { FfiError, libc, NativeArena, readString } from "../ffi/mod.ts";

// law ucx/printInfo: ucx/failing_calls
/** The text that a function prints into a C `FILE *`. @throws {FfiError} if there is no memory for it */
export function printInfo(print: (file: bigint) => void): string {
  using arena = new NativeArena();
  const text = arena.out("ptr");
  const length = arena.out("size");
  const { open_memstream, fclose } = libc().stdio;
  const file = open_memstream(text.$address, length.$address);
  if (file === 0n) throw new FfiError("Cannot read what UCX prints: open_memstream returned NULL, for want of memory");
  print(file);
  fclose(file);
  try {
    return readString(text.value, length.value);
  } finally {
    libc().loading.free(text.value);
  }
}
