/**
 * A process that may open few more files, as if it had opened all others that it is allowed.
 *
 * @module
 */
import { littleEndian } from "../../src/ffi/endian.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { libc } from "../../src/ffi/libc.ts";
import { EFD } from "../../bindings/libc.ts";
import { filesByDescriptor } from "./open_files.ts";

const RLIMIT_NOFILE = 7;

/**
 * Sets how many files this process may open. Done in-process: a runtime needs files while it waits for a program that
 * would do it.
 *
 * @returns how many it could
 */
export function limitFiles(count: bigint): bigint {
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(16); // struct rlimit
  const limits = new DataView(bytes.buffer, bytes.byteOffset);
  const args = ["i32", "ptr"] as const;
  const { getrlimit, setrlimit } = ffiPort().bind("libc.so.6", 0n, {
    getrlimit: { args, returns: "i32" },
    setrlimit: { args, returns: "i32" },
  });
  if (getrlimit(RLIMIT_NOFILE, address) !== 0) throw new Error("getrlimit failed");
  const before = limits.getBigUint64(0, littleEndian);
  limits.setBigUint64(0, count, littleEndian);
  if (setrlimit(RLIMIT_NOFILE, address) !== 0) throw new Error("setrlimit failed");
  return before;
}

/** Allows this process `count` more files. @returns a function that allows it all again */
export function leaveFiles(count: number): () => void {
  const { eventfd, close } = libc().files;
  const most = Math.max(...filesByDescriptor().keys()) + count + 2;
  const before = limitFiles(BigInt(most));
  const opened: number[] = [];
  for (let fd = eventfd(0, EFD.CLOEXEC); fd >= 0; fd = eventfd(0, EFD.CLOEXEC)) opened.push(fd);
  for (const fd of opened.splice(0, count)) close(fd);
  return () => {
    for (const fd of opened) close(fd);
    limitFiles(before);
  };
}
