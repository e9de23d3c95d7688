/**
 * New host memory that is about to be written as a whole.
 *
 * @module
 */
import { MADV } from "../../bindings/libc.ts";
import { cString, describeHostMemory, ffiPort, libc, nodeBuiltin } from "../ffi/mod.ts";
import type { NativeCall } from "./call_ring.ts";

/** Smaller buffers mostly get memory that the runtime has written before; NumPy begins at the same size. */
const enough = 4 * 2 ** 20;

/** A multiple of all sizes that pages have on Linux. */
const page = 64n * 1024n;

/**
 * An ArrayBuffer. If it is large the system is asked to back it by pages of 2 MiB, where it gives
 * them on request: the first write to each page is a fault, and all the faults took longer than the writing.
 *
 * @throws {RangeError} if the runtime does not make one, with what was asked for and what the host has
 */
export function newArrayBuffer(bytes: number): ArrayBuffer {
  return advised(make(bytes));
}

/**
 * The same, but what is in it is undefined: for who writes all of it before anybody else sees it. Bun writes zeros to
 * memory that it has had before, which takes longer than to copy to it; Deno gets new memory from the system.
 *
 * @throws {RangeError} if the runtime does not make one, with what was asked for and what the host has
 */
export function unwrittenArrayBuffer(bytes: number): ArrayBuffer {
  if (bytes < enough || ffiPort().runtime.name !== "bun") return newArrayBuffer(bytes);
  try {
    return advised(nodeBuiltin("node:buffer").Buffer.allocUnsafeSlow(bytes).buffer);
  } catch {
    return newArrayBuffer(bytes); // more than Bun makes so; or which says what was asked for
  }
}

const largePage = 2n * 1024n * 1024n;

/** The most calls of {@linkcode pageCalls} for so many bytes. */
export function mostPageCalls(bytes: number): number {
  return Math.ceil(bytes / Number(largePage));
}

let madvise = 0n;

// law native/pageCalls: native/huge_pages
/**
 * Calls, for threads, by which the system makes the pages of new memory: those of 2 MiB that begin between two
 * addresses, and of the last one what is before `end`. One takes a thread 0.3 ms (H200's host). Before Linux 5.14 they do nothing, and who writes makes the pages.
 */
export function pageCalls(from: bigint, to: bigint, end: bigint): NativeCall[] {
  if (madvise === 0n) madvise = libc().loading.dlsym(0n, cString("madvise"));
  const calls: NativeCall[] = [];
  for (let at = (from + largePage - 1n) / largePage * largePage; at < to; at += largePage) {
    const left = (end - at) / page * page;
    if (left > 0n) calls.push([madvise, at, left < largePage ? left : largePage, BigInt(MADV.POPULATE_WRITE)]);
  }
  return calls;
}

// law native/advised: native/huge_pages
/** Asks for large pages. */
function advised(buffer: ArrayBuffer): ArrayBuffer {
  const bytes = buffer.byteLength;
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
