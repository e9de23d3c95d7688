/**
 * The shapes that most instructions have: some operands, a pure function, a result. Each shape is spelled out per
 * width, because it runs in the innermost loop.
 *
 * @module
 */
import type { Compiled } from "../execution_state.ts";
import type { WordOp } from "../int64.ts";
import { isSigned, type ScalarType } from "../types.ts";

/** A function of numbers, signed or unsigned as the type says. A result that exceeds its width wraps. */
export type IntFunction = (a: number, b: number, c: number) => number;

/** Reads an integer of up to 32 bits. */
export function readerOf(type: ScalarType): (r: DataView, slot: number) => number {
  const signed = isSigned(type);
  switch (type.bits) {
    case 1:
      return (r, slot) => Math.min(r.getUint32(slot, true), 1);
    case 8:
      return signed ? (r, slot) => r.getInt8(slot) : (r, slot) => r.getUint8(slot);
    case 16:
      return signed ? (r, slot) => r.getInt16(slot, true) : (r, slot) => r.getUint16(slot, true);
    default:
      return signed ? (r, slot) => r.getInt32(slot, true) : (r, slot) => r.getUint32(slot, true);
  }
}

/** Reads an integer of any width. */
export function bigReaderOf(type: ScalarType): (r: DataView, slot: number) => bigint {
  if (type.bits < 64) {
    const read = readerOf(type);
    return (r, slot) => BigInt(read(r, slot));
  }
  return isSigned(type) ? (r, slot) => r.getBigInt64(slot, true) : (r, slot) => r.getBigUint64(slot, true);
}

/** `d = compute(a, b)` of integers of 16 or 32 bits. */
export function binaryInt(type: ScalarType, d: number, a: number, b: number, compute: IntFunction): Compiled {
  if (type.bits === 16) {
    const read = readerOf(type);
    return ({ regs: r }, next) => (t) => {
      r.setInt32(t + d, compute(read(r, t + a), read(r, t + b), 0) & 0xffff, true);
      return next;
    };
  }
  if (isSigned(type)) {
    return ({ regs: r }, next) => (t) => {
      r.setInt32(t + d, compute(r.getInt32(t + a, true), r.getInt32(t + b, true), 0), true);
      return next;
    };
  }
  return ({ regs: r }, next) => (t) => {
    r.setInt32(t + d, compute(r.getUint32(t + a, true), r.getUint32(t + b, true), 0), true);
    return next;
  };
}

/** `d = compute(a)` of integers of 16 or 32 bits. */
export function unaryInt(type: ScalarType, d: number, a: number, compute: IntFunction): Compiled {
  const read = readerOf(type);
  const mask = type.bits === 16 ? 0xffff : -1;
  return ({ regs: r }, next) => (t) => {
    r.setInt32(t + d, compute(read(r, t + a), 0, 0) & mask, true);
    return next;
  };
}

/** `d = compute(a, b, c)` of integers of 16 or 32 bits. */
export function ternaryInt(
  type: ScalarType,
  d: number,
  a: number,
  b: number,
  c: number,
  compute: IntFunction,
): Compiled {
  const read = readerOf(type);
  const mask = type.bits === 16 ? 0xffff : -1;
  return ({ regs: r }, next) => (t) => {
    r.setInt32(t + d, compute(read(r, t + a), read(r, t + b), read(r, t + c)) & mask, true);
    return next;
  };
}

/** An operation on pairs of words. */
export function binaryWords(d: number, a: number, b: number, compute: WordOp): Compiled {
  return ({ regs: r }, next) => (t) => {
    compute(r, t + d, t + a, t + b);
    return next;
  };
}

/** Copies the bits of a register, whatever their type. */
export function copyBits(bits: number, d: number, a: number): Compiled {
  if (bits === 64) {
    return ({ regs: r }, next) => (t) => {
      const lo = r.getInt32(t + a, true);
      const hi = r.getInt32(t + a + 4, true);
      r.setInt32(t + d, lo, true);
      r.setInt32(t + d + 4, hi, true);
      return next;
    };
  }
  if (bits === 16) {
    return ({ regs: r }, next) => (t) => {
      r.setInt32(t + d, r.getUint16(t + a, true), true);
      return next;
    };
  }
  return ({ regs: r }, next) => (t) => {
    r.setInt32(t + d, r.getInt32(t + a, true), true);
    return next;
  };
}

/** Fuses two instructions into one. */
export function inSequence(first: Compiled, second: Compiled): Compiled {
  return (state, next, base) => {
    const [one, two] = [first(state, next, base), second(state, next, base)];
    return (t) => {
      one(t);
      return two(t);
    };
  };
}
