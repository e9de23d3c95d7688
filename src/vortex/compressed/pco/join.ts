/**
 * Combines one or two variables into the bits of numbers.
 *
 * The bits sort like the numbers: the sign of signed integers and of floats is inverted, and all bits of negative
 * floats are.
 *
 * @module
 */
import type { Fail } from "../../error.ts";
import { bitsOf, type PcoMode, type PcoType } from "./chunk_meta.ts";
import type { Latents } from "./page_variable.ts";

/** The output: words of 16 or 32 bits, two per 64-bit number, the lower one first. */
export type NumberWords = Uint16Array<ArrayBuffer> | Int32Array<ArrayBuffer>;

/** Joins a batch; leaves the ordered bits of its numbers in `first`. */
export function join(mode: PcoMode, type: PcoType, first: Latents, second: Latents, count: number, fail: Fail): void {
  switch (mode.kind) {
    case "classic":
      return;
    case "intMult":
      return bitsOf(type) === 64
        ? joinLongMult(mode.low, mode.high, first, second, count)
        : joinMult(mode.low, first.low, second.low, count, bitsOf(type) === 16 ? 0xffff : -1);
    case "floatMult":
      return joinFloatMult(mode.base, type, first, second, count);
    case "floatQuant":
      return bitsOf(type) === 64
        ? joinLongQuant(mode.bits, first, second, count, fail)
        : joinQuant(mode.bits, bitsOf(type), first.low, second.low, count, fail);
    case "dict":
      return lookUp(mode.low, mode.high, first, count, fail);
  }
}

function joinMult(base: number, first: Int32Array, second: Int32Array, count: number, mask: number): void {
  // law vortex/compressed/joinMult: vortex/compressed/pco
  for (let i = 0; i < count; i++) first[i] = Math.imul(first[i] ?? 0, base) + (second[i] ?? 0) & mask;
}

function joinLongMult(baseLow: number, baseHigh: number, first: Latents, second: Latents, count: number): void {
  const [base0, base1] = [baseLow & 0xffff, baseLow >>> 16];
  // law vortex/compressed/joinLongMult: vortex/compressed/pco
  for (let i = 0; i < count; i++) {
    const low = first.low[i] ?? 0;
    const [low0, low1] = [low & 0xffff, low >>> 16];
    // The upper word of low * baseLow, from 16-bit products.
    const middle = low1 * base0 + (low0 * base0 >>> 16);
    const upper = low1 * base1 + Math.floor(middle / 0x10000) +
      Math.floor(((middle & 0xffff) + low0 * base1) / 0x10000);
    const product = Math.imul(low, baseLow);
    const sum = product + (second.low[i] ?? 0) | 0;
    const carry = Number(sum >>> 0 < product >>> 0);
    first.high[i] = (upper | 0) + Math.imul(first.high[i] ?? 0, baseLow) + Math.imul(low, baseHigh) +
      (second.high[i] ?? 0) + carry;
    first.low[i] = sum;
  }
}

function joinQuant(
  shift: number,
  bits: number,
  first: Int32Array,
  second: Int32Array,
  count: number,
  fail: Fail,
): void {
  const middle = 2 ** (bits - 1 - shift);
  const all = 2 ** shift - 1;
  const mask = bits === 16 ? 0xffff : -1;
  let beyond = 0; // bits that belong to neither part
  // law vortex/compressed/joinQuant: vortex/compressed/pco, vortex/compressed/malformed
  for (let i = 0; i < count; i++) {
    const upper = (first[i] ?? 0) >>> 0;
    const lower = second[i] ?? 0;
    beyond |= upper >>> (bits - shift) | lower >>> shift;
    first[i] = (upper << shift) + (upper >= middle ? lower : all - lower) & mask;
  }
  if (beyond !== 0) failQuant(shift, bits, fail);
}

/** No float yields such parts; PyVortex, whose library expects none, returns whatever its compiler made of them. */
function failQuant(shift: number, bits: number, fail: Fail): never {
  return fail(`FloatQuant of parts with more than the ${bits - shift} and ${shift} bits of a ${bits}-bit float`);
}

function joinLongQuant(shift: number, first: Latents, second: Latents, count: number, fail: Fail): void {
  const [allLow, allHigh] = shift < 32 ? [-1 >>> (32 - shift), 0] : [-1, shift === 32 ? 0 : -1 >>> (64 - shift)];
  // The midpoint of the shifted numbers, as the one word that holds its only bit.
  const middle = 2 ** ((63 - shift) % 32);
  let beyond = 0;
  // law vortex/compressed/joinLongQuant: vortex/compressed/pco, vortex/compressed/malformed
  for (let i = 0; i < count; i++) {
    const [low, high] = [first.low[i] ?? 0, first.high[i] ?? 0];
    const isPositive = shift < 32 ? high >>> 0 >= middle : high !== 0 || low >>> 0 >= middle;
    const [upperLow, upperHigh] = shift < 32
      ? [low << shift, high << shift | low >>> (32 - shift)]
      : [0, low << (shift - 32)];
    let [lowerLow, lowerHigh] = [second.low[i] ?? 0, second.high[i] ?? 0];
    beyond |= shift < 32
      ? high >>> (32 - shift) | lowerHigh | lowerLow >>> shift
      : high | (shift > 32 ? low >>> (64 - shift) | lowerHigh >>> (shift - 32) : lowerHigh);
    if (!isPositive) {
      const borrow = Number(lowerLow >>> 0 > allLow >>> 0);
      [lowerLow, lowerHigh] = [allLow - lowerLow | 0, allHigh - lowerHigh - borrow | 0];
    }
    const sum = upperLow + lowerLow | 0;
    first.high[i] = upperHigh + lowerHigh + Number(sum >>> 0 < lowerLow >>> 0);
    first.low[i] = sum;
  }
  if (beyond !== 0) failQuant(shift, 64, fail);
}

/** Constants per float type; from `exact`, 2^digits, on, integers enumerate the floats in order. */
const floats = {
  f16: { exact: 2 ** 11, exactBits: 0x6800, top: 0x8000, quiet: 0x0200, infinity: 0x7c00 },
  f32: { exact: 2 ** 24, exactBits: 0x4b80_0000, top: 1 << 31, quiet: 0x0040_0000, infinity: 0x7f80_0000 },
} as const;

function joinFloatMult(base: number, type: PcoType, first: Latents, second: Latents, count: number): void {
  if (type === "f16" || type === "f32") joinShortFloatMult(base, type, first.low, second.low, count);
  else joinDoubleMult(base, first, second, count);
}

/** A double that is written as a number and read as words. */
const double = new Float64Array(1);
const doubleWords = new Int32Array(double.buffer);

function joinDoubleMult(base: number, first: Latents, second: Latents, count: number): void {
  // law vortex/compressed/joinDoubleMult: vortex/compressed/pco
  for (let i = 0; i < count; i++) {
    const isNegative = (first.high[i] ?? 0) >= 0;
    let low = first.low[i] ?? 0;
    let high = first.high[i] ?? 0;
    if (isNegative) [low, high] = [~low, ~high];
    high &= 0x7fff_ffff;
    if (high < 0x20_0000) {
      const integer = high * 0x1_0000_0000 + (low >>> 0);
      double[0] = (isNegative ? -integer : integer) * base;
    } else {
      // From 2^53 on, integers enumerate floats: the bits of 2^53 plus the excess over it.
      doubleWords[0] = low;
      doubleWords[1] = high + (0x4340_0000 - 0x20_0000) | (isNegative ? 1 << 31 : 0);
      const isNan = (doubleWords[1] & 0x7ff0_0000) === 0x7ff0_0000 && ((doubleWords[1] & 0xf_ffff) | low) !== 0;
      // Not left to the engine, which may change a NaN's bits: the product of a NaN is that NaN, made quiet.
      if (isNan) doubleWords[1] |= 0x8_0000;
      else double[0] = (double[0] ?? 0) * base;
    }
    [low = 0, high = 0] = doubleWords;
    [low, high] = high < 0 ? [~low, ~high] : [low, high ^ 1 << 31];
    const sum = low + (second.low[i] ?? 0) | 0;
    first.high[i] = high + (second.high[i] ?? 0) + Number(sum >>> 0 < low >>> 0) ^ 1 << 31;
    first.low[i] = sum;
  }
}

/** A float that is written as a number and read as bits. */
const short = new DataView(new ArrayBuffer(4));

function joinShortFloatMult(
  base: number,
  type: "f16" | "f32",
  first: Int32Array,
  second: Int32Array,
  count: number,
): void {
  const { exact, exactBits, top, quiet, infinity } = floats[type];
  const below = (top >>> 0) - 1;
  const mask = type === "f16" ? 0xffff : -1;
  const numberOf = (bits: number) => {
    short.setInt32(0, bits, true);
    return type === "f16" ? short.getFloat16(0, true) : short.getFloat32(0, true);
  };
  const bitsOf = (number: number) => {
    short.setInt32(0, 0, true);
    if (type === "f16") short.setFloat16(0, number, true);
    else short.setFloat32(0, number, true);
    return short.getInt32(0, true);
  };
  // law vortex/compressed/joinShortFloatMult: vortex/compressed/pco, vortex/strings/wheel
  for (let i = 0; i < count; i++) {
    const latent = first[i] ?? 0;
    const isNegative = (latent & top) === 0;
    const integer = (isNegative ? ~latent : latent) & below;
    let bits: number;
    if (integer < exact) {
      bits = bitsOf((isNegative ? -integer : integer) * base);
    } else {
      // "Or" is right even if an integer beyond all floats has overflowed into the sign, as only damaged data does.
      bits = exactBits + (integer - exact) | (isNegative ? top : 0);
      // Not left to the engine, which may change a NaN's bits: the product of a NaN is that NaN, made quiet.
      bits = (bits & below) > infinity ? bits | quiet : bitsOf(numberOf(bits) * base);
    }
    const ordered = (bits & top) !== 0 ? ~bits : bits ^ top;
    first[i] = (ordered + (second[i] ?? 0) ^ top) & mask;
  }
}

function lookUp(low: Int32Array, high: Int32Array, first: Latents, count: number, fail: Fail): void {
  // law vortex/compressed/lookUp: vortex/compressed/pco, vortex/compressed/malformed
  for (let i = 0; i < count; i++) {
    const index = (first.low[i] ?? 0) >>> 0;
    if (index >= low.length) fail(`the number ${index} of a dictionary of ${low.length}`);
    first.low[i] = low[index] ?? 0;
    first.high[i] = high[index] ?? 0;
  }
}

/** Writes a batch's numbers from their ordered bits. */
export function store(type: PcoType, { low, high }: Latents, count: number, words: NumberWords, at: number): void {
  const bits = bitsOf(type);
  const isFloat = type.startsWith("f");
  const top = type.startsWith("u") ? 0 : bits === 16 ? 0x8000 : 1 << 31;
  // law vortex/compressed/store: vortex/compressed/pco
  if (bits === 64) {
    let to = at * 2;
    for (let i = 0; i < count; i++, to += 2) {
      const upper = high[i] ?? 0;
      const inverted = isFloat ? ~(upper >> 31) : 0; // all bits of negative numbers, the sign of all others
      words[to] = (low[i] ?? 0) ^ inverted;
      words[to + 1] = upper ^ (top | inverted);
    }
    return;
  }
  const shift = 32 - bits;
  for (let i = 0; i < count; i++) {
    const word = low[i] ?? 0;
    words[at + i] = word ^ (top | (isFloat ? ~(word << shift >> 31) : 0));
  }
}
