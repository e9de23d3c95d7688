/**
 * 64-bit integers as two words in a frame. A bigint costs an allocation per operation, and nearly every memory access
 * computes an address, so the operations that addresses need work on words; the rest (division, upper halves of
 * products) reads and writes bigints.
 *
 * All functions take offsets of the low words; the high word follows 4 bytes later. The result may alias an operand.
 *
 * @module
 */

/** An operation with two operands. */
export type WordOp = (r: DataView, d: number, a: number, b: number) => void;

/** Two to the 32nd: the weight of a carry. */
const WORD = 4294967296;

function put(r: DataView, d: number, lo: number, hi: number): void {
  r.setInt32(d, lo, true);
  r.setInt32(d + 4, hi, true);
}

/** `d = a + b` */
export function add64(r: DataView, d: number, a: number, b: number): void {
  const lo = r.getUint32(a, true) + r.getUint32(b, true);
  put(r, d, lo, r.getInt32(a + 4, true) + r.getInt32(b + 4, true) + (lo >= WORD ? 1 : 0));
}

/** `d = a - b` */
export function sub64(r: DataView, d: number, a: number, b: number): void {
  const lo = r.getUint32(a, true) - r.getUint32(b, true);
  put(r, d, lo, r.getInt32(a + 4, true) - r.getInt32(b + 4, true) - (lo < 0 ? 1 : 0));
}

/** `d = a & b` */
export function and64(r: DataView, d: number, a: number, b: number): void {
  put(r, d, r.getInt32(a, true) & r.getInt32(b, true), r.getInt32(a + 4, true) & r.getInt32(b + 4, true));
}

/** `d = a | b` */
export function or64(r: DataView, d: number, a: number, b: number): void {
  put(r, d, r.getInt32(a, true) | r.getInt32(b, true), r.getInt32(a + 4, true) | r.getInt32(b + 4, true));
}

/** `d = a ^ b` */
export function xor64(r: DataView, d: number, a: number, b: number): void {
  put(r, d, r.getInt32(a, true) ^ r.getInt32(b, true), r.getInt32(a + 4, true) ^ r.getInt32(b + 4, true));
}

/**
 * The upper word of a product of two words, both signed or both unsigned.
 *
 * The product as a double is off by at most 2^11 (of up to 2^64). Minus the exact lower word, it is a multiple of 2^32
 * apart from that error, so rounding the quotient gives the exact upper word.
 */
export function upperWord(a: number, b: number): number {
  return Math.round((a * b - (Math.imul(a, b) >>> 0)) / WORD) | 0;
}

/** `d = a * b` of signed words */
export function mulWideSigned(r: DataView, d: number, a: number, b: number): void {
  const [x, y] = [r.getInt32(a, true), r.getInt32(b, true)];
  put(r, d, Math.imul(x, y), upperWord(x, y));
}

/** `d = a * b` of unsigned words */
export function mulWideUnsigned(r: DataView, d: number, a: number, b: number): void {
  const [x, y] = [r.getUint32(a, true), r.getUint32(b, true)];
  put(r, d, Math.imul(x, y), upperWord(x, y));
}

/** `d = a * b`, the lower 64 bits */
export function mul64(r: DataView, d: number, a: number, b: number): void {
  const [alo, ahi] = [r.getUint32(a, true), r.getInt32(a + 4, true)];
  const [blo, bhi] = [r.getUint32(b, true), r.getInt32(b + 4, true)];
  put(r, d, Math.imul(alo, blo), (upperWord(alo, blo) + Math.imul(alo, bhi) + Math.imul(ahi, blo)) | 0);
}

/** `d = a << b`; b is an unsigned word, and 64 or more shifts everything out */
export function shl64(r: DataView, d: number, a: number, b: number): void {
  const [lo, hi, n] = [r.getInt32(a, true), r.getInt32(a + 4, true), r.getUint32(b, true)];
  if (n === 0) put(r, d, lo, hi);
  else if (n < 32) put(r, d, lo << n, (hi << n) | (lo >>> (32 - n)));
  else put(r, d, 0, n < 64 ? lo << (n - 32) : 0);
}

/** `d = a >> b`, zero-filled; b is an unsigned word */
export function shrUnsigned64(r: DataView, d: number, a: number, b: number): void {
  const [lo, hi, n] = [r.getInt32(a, true), r.getInt32(a + 4, true), r.getUint32(b, true)];
  if (n === 0) put(r, d, lo, hi);
  else if (n < 32) put(r, d, (lo >>> n) | (hi << (32 - n)), hi >>> n);
  else put(r, d, n < 64 ? hi >>> (n - 32) : 0, 0);
}

/** `d = a >> b`, sign-filled; b is an unsigned word */
export function shrSigned64(r: DataView, d: number, a: number, b: number): void {
  const [lo, hi, n] = [r.getInt32(a, true), r.getInt32(a + 4, true), r.getUint32(b, true)];
  if (n === 0) put(r, d, lo, hi);
  else if (n < 32) put(r, d, (lo >>> n) | (hi << (32 - n)), hi >> n);
  else put(r, d, hi >> Math.min(n - 32, 31), hi >> 31);
}

/** Numbers with an upper word up to this are exact as doubles, and so are their quotients and remainders. */
const EXACT_UPPER_WORD = 0x1fffff;

/** Quotient or remainder of unsigned integers, computed in doubles where these are exact. */
function divideUnsigned(r: DataView, d: number, a: number, b: number, remainder: boolean): void {
  const [ahi, bhi] = [r.getUint32(a + 4, true), r.getUint32(b + 4, true)];
  if (ahi <= EXACT_UPPER_WORD && bhi <= EXACT_UPPER_WORD) {
    const x = ahi * WORD + r.getUint32(a, true);
    const y = bhi * WORD + r.getUint32(b, true);
    if (y !== 0) {
      const rest = x % y;
      const value = remainder ? rest : (x - rest) / y;
      put(r, d, value % WORD, Math.floor(value / WORD));
      return;
    }
  }
  const [x, y] = [r.getBigUint64(a, true), r.getBigUint64(b, true)];
  // Dividing by zero is undefined; an H200 gives all ones, for the remainder too.
  r.setBigUint64(d, y === 0n ? 0xffffffffffffffffn : remainder ? x % y : x / y, true);
}

/** `d = a / b` of unsigned integers */
export function divUnsigned64(r: DataView, d: number, a: number, b: number): void {
  divideUnsigned(r, d, a, b, false);
}

/** `d = a % b` of unsigned integers */
export function remUnsigned64(r: DataView, d: number, a: number, b: number): void {
  divideUnsigned(r, d, a, b, true);
}

/** `d = a / b` of signed integers, towards zero; the one quotient that overflows wraps */
export function divSigned64(r: DataView, d: number, a: number, b: number): void {
  if ((r.getInt32(a + 4, true) | r.getInt32(b + 4, true)) >= 0) return divideUnsigned(r, d, a, b, false);
  const [x, y] = [r.getBigInt64(a, true), r.getBigInt64(b, true)];
  r.setBigInt64(d, y === 0n ? -1n : x / y, true);
}

/** `d = a % b` of signed integers, with the sign of a */
export function remSigned64(r: DataView, d: number, a: number, b: number): void {
  if ((r.getInt32(a + 4, true) | r.getInt32(b + 4, true)) >= 0) return divideUnsigned(r, d, a, b, true);
  const [x, y] = [r.getBigInt64(a, true), r.getBigInt64(b, true)];
  r.setBigInt64(d, y === 0n ? -1n : x % y, true);
}

/** Negative, zero or positive, as a is less than, equal to or greater than b. */
export function compareSigned64(r: DataView, a: number, b: number): number {
  const [ahi, bhi] = [r.getInt32(a + 4, true), r.getInt32(b + 4, true)];
  return ahi === bhi ? r.getUint32(a, true) - r.getUint32(b, true) : ahi - bhi;
}

/** Negative, zero or positive, as a is less than, equal to or greater than b, both unsigned. */
export function compareUnsigned64(r: DataView, a: number, b: number): number {
  const [ahi, bhi] = [r.getUint32(a + 4, true), r.getUint32(b + 4, true)];
  return ahi === bhi ? r.getUint32(a, true) - r.getUint32(b, true) : ahi - bhi;
}

/** Wraps an operation on bigints as one on words. */
export function viaBigint(signed: boolean, compute: (a: bigint, b: bigint) => bigint): WordOp {
  return signed
    ? (r, d, a, b) => r.setBigInt64(d, BigInt.asIntN(64, compute(r.getBigInt64(a, true), r.getBigInt64(b, true))), true)
    : (r, d, a, b) =>
      r.setBigUint64(d, BigInt.asUintN(64, compute(r.getBigUint64(a, true), r.getBigUint64(b, true))), true);
}
