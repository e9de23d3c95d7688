/**
 * Small text files, read and written through libc: that needs no permission beyond FFI, and files in `/proc` report no
 * size.
 *
 * @module
 */
import { NativeArena } from "./arena.ts";
import { libc } from "./libc.ts";
import { cString, readString } from "./c_string.ts";
import { attempt } from "./system_error.ts";

// law ffi/readTextFile: unix/descriptors, unix/socket
/** The first bytes of a file as text, or null if it cannot be read. */
export function readTextFile(path: string, most = 4096): string | null {
  const { fopen, fread, fclose } = libc().stdio;
  const file = fopen(cString(path), cString("re"));
  if (file === 0n) return null;
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(most);
  const length = fread(address, 1n, BigInt(bytes.length), file);
  fclose(file);
  return readString(address, Number(length));
}

// law ffi/writeTextFile: device/graph/graph
/** Writes a file, replacing what it held. @returns whether it could be written */
export function writeTextFile(path: string, text: string): boolean {
  const { stdio, files } = libc();
  const file = stdio.fopen(cString(path), cString("we"));
  if (file === 0n) return false;
  using arena = new NativeArena();
  const encoded = new TextEncoder().encode(text);
  const { address, bytes } = arena.bytes(encoded.length);
  bytes.set(encoded);
  let done = 0;
  while (done < encoded.length) {
    const [from, left] = [address + BigInt(done), BigInt(encoded.length - done)];
    const written = attempt(() => files.pwrite(stdio.fileno(file), from, left, BigInt(done)));
    if (written <= 0) break;
    done += written;
  }
  stdio.fclose(file);
  return done === encoded.length;
}
