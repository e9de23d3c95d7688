/**
 * New host memory that is about to be completely overwritten.
 *
 * @module
 */
import { MADV } from "../../bindings/libc.ts";
import { cString, describeHostMemory, ffiPort, libc, nodeBuiltin } from "../ffi/mod.ts";
import type { NativeCall } from "./call_ring.ts";

/** Smaller buffers mostly get memory that the runtime has written before; NumPy has the same threshold. */
const minFreshBytes = 4 * 2 ** 20;

/** A multiple of all page sizes on Linux. */
const page = 64n * 1024n;

/**
 * Allocates an ArrayBuffer. If it is large, asks the system for 2 MiB pages, where these are available on request: the
 * first write to each page is a fault, and all the faults took longer than the writing.
 *
 * @throws {RangeError} if the runtime cannot allocate it, with the requested size and what the host has
 */
export function newArrayBuffer(bytes: number): ArrayBuffer {
  return advised(make(bytes));
}

/**
 * The same with undefined contents, for a caller that writes all of it before any other code sees it. Bun zeroes memory
 * that it reuses, which takes longer than copying to it; Deno gets new memory from the system.
 *
 * @throws {RangeError} if the runtime cannot allocate it, with the requested size and what the host has
 */
export function unwrittenArrayBuffer(bytes: number): ArrayBuffer {
  if (bytes < minFreshBytes || ffiPort().runtime.name !== "bun") return newArrayBuffer(bytes);
  try {
    return advised(nodeBuiltin("node:buffer").Buffer.allocUnsafeSlow(bytes).buffer);
  } catch {
    return newArrayBuffer(bytes); // succeeds beyond that function's limit, or reports the requested size
  }
}

const largePage = 2n * 1024n * 1024n;

/** The most calls that {@linkcode pageCalls} returns for `bytes` bytes. */
export function maxPageCalls(bytes: number): number {
  return Math.ceil(bytes / Number(largePage));
}

let madvise = 0n;

// law native/pageCalls: native/huge_pages
/**
 * Calls, for threads, that make the system populate new memory: the 2 MiB pages that begin between two addresses, the
 * last one only up to `end`. One call takes a thread 0.3 ms (H200's host). Before Linux 5.14 they do nothing, and
 * writes fault the pages in.
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
/** Requests large pages. */
function advised(buffer: ArrayBuffer): ArrayBuffer {
  const bytes = buffer.byteLength;
  if (bytes < minFreshBytes) return buffer;
  const address = ffiPort().addressOf(buffer);
  const first = (address + page - 1n) / page * page;
  const length = (address + BigInt(bytes) - first) / page * page;
  libc().paging.madvise(first, length, MADV.HUGEPAGE); // only a hint: nothing is lost if it is ignored
  return buffer;
}

// law native/make: native/huge_pages
function make(bytes: number): ArrayBuffer {
  try {
    return new ArrayBuffer(bytes);
  } catch (cause) {
    throw new RangeError(
      `Cannot make an ArrayBuffer of ${bytes} bytes: expected a size that this runtime allows and the host has free; ` +
        `${describeHostMemory()}. Use several smaller ones, or memory outside JavaScript, such as that of a ` +
        "HostMemoryResource, which may take all that is free",
      { cause },
    );
  }
}
