/**
 * New host memory that is about to be written as a whole.
 *
 * @module
 */
import { MADV } from "../../bindings/libc.ts";
import { describeHostMemory, ffiPort, libc } from "../ffi/mod.ts";

/** Smaller buffers mostly get memory that the runtime has written before; NumPy begins at the same size. */
const enough = 4 * 2 ** 20;

/** A multiple of all sizes that pages have on Linux. */
const page = 64n * 1024n;

// law native/newArrayBuffer: native/huge_pages
/**
 * An ArrayBuffer. If it is large the system is asked to back it by pages of 2 MiB, where it gives
 * them on request: the first write to each page is a fault, and all the faults took longer than the writing.
 *
 * @throws {RangeError} if the runtime does not make one, with what was asked for and what the host has
 */
export function newArrayBuffer(bytes: number): ArrayBuffer {
  const buffer = make(bytes);
  if (bytes < enough) return buffer;
  const address = ffiPort().addressOf(buffer);
  const first = (address + page - 1n) / page * page;
  const length = (address + BigInt(bytes) - first) / page * page;
  libc().paging.madvise(first, length, MADV.HUGEPAGE); // advice: where it is not followed, nothing is lost
  return buffer;
}

// law native/make: native/huge_pages
function make(bytes: number): ArrayBuffer {
  try {
    return new ArrayBuffer(bytes);
  } catch (cause) {
    throw new RangeError(
      `Cannot make an ArrayBuffer of ${bytes} bytes: expected a size that this runtime allows and the host has free; ` +
        `${describeHostMemory()}. Use several smaller ones, or memory that is not JavaScript's, as that of a ` +
        "HostMemoryResource, which may be as large as what is free",
      { cause },
    );
  }
}
