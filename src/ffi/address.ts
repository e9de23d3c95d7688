/**
 * Addresses and handles: their range and their low bits.
 *
 * @module
 */

/** One past the last address: addresses and handles have 64 bits. */
const addressEnd: bigint = 1n << 64n;

/** Memory that begins up to here ends below `addressEnd`: checked first, because adding bigints takes time. */
const farEnough = addressEnd - (1n << 53n);

/** Whether memory of `size` bytes, a safe integer, would end beyond the last address. */
export function endsBeyondMemory(address: bigint, size: number): boolean {
  return address > farEnough && address + BigInt(size) > addressEnd;
}

// law ffi/isFarFromEnds: dlpack/import, dlpack/array_interface
/**
 * Whether an address is neither NULL nor near the last one: memory that begins there cannot end beyond it, whatever its
 * size. True of nearly all memory.
 */
export function isFarFromEnds(address: bigint): boolean {
  return address > 0n && address <= farEnough;
}

const word = new BigUint64Array(1);
const halves = new Uint32Array(word.buffer);

/** The low 32 bits of an address, for testing its lowest bits: each bigint operator would allocate another bigint. */
export function lowHalf(address: bigint): number {
  word[0] = address;
  return halves[0] ?? 0; // both architectures are little-endian
}

/** Whether a value is in range for an address or a handle; says nothing about what is mapped there. */
export function isAddress(value: bigint): boolean {
  return typeof value === "bigint" && value >= 0n && value < addressEnd;
}
