/**
 * Addresses as numbers, for those that are computed with often.
 *
 * @module
 */
import { ffiPort } from "./port.ts";

/** Numbers are exact below. */
const exactEnd = 2 ** 53;

const word = new BigUint64Array(1);
const halves = new Uint32Array(word.buffer); // the lower half first, as on both architectures

let convert: ((address: bigint) => number) | undefined;

// law ffi/exactAddress: ffi/address
/** An address as a number; 0 if it is none that is exact, which no address of a program's memory is. */
export function exactAddress(address: bigint): number {
  convert ??= ffiPort().runtime.name === "bun" ? Number : throughMemory;
  const number = convert(address);
  return number < exactEnd ? number : 0;
}

/** Deno's `Number` takes 20 ns and this 8; Bun's takes 7, and this 24. */
function throughMemory(address: bigint): number {
  word[0] = address;
  return (halves[1] ?? 0) * 2 ** 32 + (halves[0] ?? 0);
}
