/**
 * New memory of the host that is written all at once.
 *
 * @module
 */
import { MADV } from "../../bindings/libc.ts";
import { libc } from "../ffi/libc.ts";
import { ffiPort } from "../ffi/port.ts";

/** Below that the runtimes mostly have memory that was written before; NumPy asks from there on, too. */
const enough = 4 * 2 ** 20;

/** A multiple of all sizes that pages have on Linux. */
const page = 64n * 1024n;

/**
 * An ArrayBuffer. If it is large the system is asked to back it by pages of 2 MiB, where it has them for who asks: writing to
 * memory for the first time stops at every page, and that took longer than the writing.
 */
export function newArrayBuffer(bytes: number): ArrayBuffer {
  const buffer = new ArrayBuffer(bytes);
  if (bytes < enough) return buffer;
  const address = ffiPort().addressOf(buffer);
  const first = (address + page - 1n) / page * page;
  const length = (address + BigInt(bytes) - first) / page * page;
  libc().paging.madvise(first, length, MADV.HUGEPAGE); // advice: whoever cannot take it says so, and nothing is lost
  return buffer;
}
