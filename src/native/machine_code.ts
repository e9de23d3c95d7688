/**
 * Our own machine code: a few functions for threads that cannot run JavaScript.
 *
 * @module
 */
import { MAP, PROT } from "../../bindings/libc.ts";
import { ffiPort, libc, littleEndian, roundUp } from "../ffi/mod.ts";

/** What `mmap` returns when it fails: (void *) -1. */
const MAP_FAILED = 0xffff_ffff_ffff_ffffn;

const pageBytes = 4096;

// law native/mapExecutable: native/release_thunk
/**
 * Maps functions into pages that are first writable and then executable, never both, and never unmapped.
 *
 * On arm64 we need no cache maintenance: Linux synchronizes the instruction cache when `mprotect` makes a page
 * executable.
 *
 * @param functions position-independent code for this CPU
 * @returns their addresses, or null where the system refuses executable memory
 */
export function mapExecutable(functions: readonly Uint8Array[]): bigint[] | null {
  const { mmap, mprotect, munmap } = libc().memory;
  const places: number[] = [];
  let used = 0;
  for (const { length } of functions) {
    places.push(used);
    used += roundUp(length, 16); // CPUs fetch instructions in aligned blocks
  }
  const size = Math.max(1, Math.ceil(used / pageBytes)) * pageBytes;
  const start = mmap(0n, BigInt(size), PROT.READ | PROT.WRITE, MAP.PRIVATE | MAP.ANONYMOUS, -1, 0n);
  if (start === MAP_FAILED) return null;
  const memory = new Uint8Array(ffiPort().memory(start, size));
  functions.forEach((code, i) => memory.set(code, places[i]));
  if (mprotect(start, BigInt(size), PROT.READ | PROT.EXEC) === 0) return places.map((place) => start + BigInt(place));
  munmap(start, BigInt(size));
  return null;
}

/** The bytes of a 32-bit number in an instruction of x86-64. */
export function int32(value: number): number[] {
  return [value & 255, value >> 8 & 255, value >> 16 & 255, value >> 24 & 255];
}

/** Code for an architecture with 32-bit instructions, such as arm64. */
export function instructions(words: readonly number[]): Uint8Array<ArrayBuffer> {
  const code = new DataView(new ArrayBuffer(words.length * 4));
  words.forEach((word, i) => code.setUint32(i * 4, word, littleEndian));
  return new Uint8Array(code.buffer);
}
