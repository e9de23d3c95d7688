/**
 * Small text files, read by libc: that needs no permission but the one for FFI, and files of `/proc` have no size to
 * ask for.
 *
 * @module
 */
import { NativeArena } from "./arena.ts";
import { libc } from "./libc.ts";
import { cString, readString } from "./c_string.ts";

// law ffi/readTextFile: unix/descriptors, unix/socket
/** The first 4096 bytes of a file as text, or null if it cannot be read. */
export function readTextFile(path: string): string | null {
  const { fopen, fread, fclose } = libc().stdio;
  const file = fopen(cString(path), cString("re"));
  if (file === 0n) return null;
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(4096);
  const length = fread(address, 1n, BigInt(bytes.length), file);
  fclose(file);
  return readString(address, Number(length));
}
