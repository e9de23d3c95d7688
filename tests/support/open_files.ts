/**
 * In-memory files, for tests that pass file descriptors around.
 *
 * @module
 */
import { MFD } from "../../bindings/libc.ts";
import { readdirSync, readlinkSync } from "node:fs";
import { NativeArena } from "../../src/ffi/arena.ts";
import { FileDescriptor } from "../../src/unix/file_descriptor.ts";
import { libc } from "../../src/ffi/libc.ts";
import { cString } from "../../src/ffi/c_string.ts";

/** An in-memory file with this content. */
export function fileWith(content: Uint8Array): FileDescriptor {
  const file = FileDescriptor.adopt(libc().files.memfd_create(cString("causeway-test"), MFD.CLOEXEC));
  overwrite(file, content);
  return file;
}

/** Overwrites the beginning of a file. */
export function overwrite(file: FileDescriptor, content: Uint8Array): void {
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(content.length);
  bytes.set(content);
  libc().files.pwrite(file.number, address, BigInt(content.length), 0n);
}

/** The first bytes of a file, at most 4096. */
export function contentOf(file: FileDescriptor): Uint8Array {
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(4096);
  return bytes.slice(0, Number(libc().files.pread(file.number, address, 4096n, 0n)));
}

/**
 * The files that this process has open, by descriptor. Without `statm`, which the collector's threads of JavaScriptCore
 * open and close at any time, to see how much memory is in use.
 */
export function filesByDescriptor(): Map<number, string> {
  const files = new Map<number, string>();
  for (const number of readdirSync("/proc/self/fd")) {
    try {
      const file = readlinkSync(`/proc/self/fd/${number}`);
      if (!file.endsWith("/statm")) files.set(Number(number), file);
    } catch {
      // closed meanwhile, as the descriptor of the folder itself is
    }
  }
  return files;
}

/** How many files this process has open. */
export function openFiles(): number {
  return filesByDescriptor().size;
}
