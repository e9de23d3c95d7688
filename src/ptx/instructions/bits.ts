/**
 * Logic, shifts, and bit fields.
 *
 * @module
 */
import type { Compiled } from "../execution_state.ts";
import { integerTypes } from "./integer_arithmetic.ts";
import {
  bigReaderOf,
  binaryInt,
  binaryWords,
  type IntFunction,
  readerOf,
  ternaryInt,
  unaryInt,
} from "./op_templates.ts";
import { and64, or64, shl64, shrSigned64, shrUnsigned64, viaBigint, type WordOp, xor64 } from "../int64.ts";
import type { InstructionReader, InstructionTable, Lowering } from "../operands.ts";
import { isSigned, type ScalarType, u32 } from "../types.ts";

/** Bitwise logic, on predicates too. */
function logic(small: IntFunction, words: WordOp): Lowering {
  return (reader) => {
    const type = reader.type("pred", "b16", "b32", "b64");
    reader.end(3);
    const [d, a, b] = [reader.result(type), reader.source(1, type), reader.source(2, type)];
    if (type.bits === 64) return binaryWords(d, a, b, words);
    if (type.bits > 1) return binaryInt(type, d, a, b, small);
    const read = readerOf(type);
    return ({ regs: r }, next) => (t) => {
      r.setInt32(t + d, small(read(r, t + a), read(r, t + b), 0), true);
      return next;
    };
  };
}

function not(reader: InstructionReader): Compiled {
  const type = reader.type("pred", "b16", "b32", "b64");
  reader.end(2);
  const [d, a] = [reader.result(type), reader.source(1, type)];
  if (type.bits === 64) return binaryWords(d, a, a, viaBigint(false, (x) => ~x));
  if (type.bits === 1) return predicateNot(d, a);
  return unaryInt(type, d, a, (x) => ~x);
}

function predicateNot(d: number, a: number): Compiled {
  return ({ regs: r }, next) => (t) => {
    r.setInt32(t + d, r.getInt32(t + a, true) === 0 ? 1 : 0, true);
    return next;
  };
}

function cnot(reader: InstructionReader): Compiled {
  const type = reader.type("b16", "b32", "b64");
  reader.end(2);
  const [d, a] = [reader.result(type), reader.source(1, type)];
  if (type.bits === 64) return binaryWords(d, a, a, viaBigint(false, (x) => x === 0n ? 1n : 0n));
  return unaryInt(type, d, a, (x) => x === 0 ? 1 : 0);
}

/** Any bitwise function of three operands, given by its truth table. */
function lop3(reader: InstructionReader): Compiled {
  const type = reader.type("b32");
  reader.end(5);
  const [d, a, b, c] = [reader.result(type), reader.source(1, type), reader.source(2, type), reader.source(3, type)];
  const operand = reader.operand(4);
  if (operand.kind !== "integer" || operand.value < 0n || operand.value > 255n) {
    reader.fail("expected a table of 0 to 255");
  }
  const table = Number(operand.value);
  return ternaryInt(type, d, a, b, c, (x, y, z) => {
    let result = 0;
    for (let row = 0; row < 8; row++) {
      if (((table >>> row) & 1) === 0) continue;
      result |= (row & 4 ? x : ~x) & (row & 2 ? y : ~y) & (row & 1 ? z : ~z);
    }
    return result;
  });
}

/** Shifts; the amount is always an unsigned word, and one that is too large shifts everything out. */
function shift(
  small: (signed: boolean, bits: number) => IntFunction,
  signed: WordOp,
  unsigned: WordOp,
): Lowering {
  return (reader) => {
    const type = reader.type("b16", "b32", "b64", ...integerTypes);
    if (reader.instruction.opcode === "shl" && type.kind !== "bits") reader.fail("shl takes .b16, .b32 and .b64");
    reader.end(3);
    const [d, a, b] = [reader.result(type), reader.source(1, type), reader.source(2, u32)];
    if (type.bits === 64) return binaryWords(d, a, b, isSigned(type) ? signed : unsigned);
    const read = readerOf(type);
    const compute = small(isSigned(type), type.bits);
    const mask = type.bits === 16 ? 0xffff : -1;
    return ({ regs: r }, next) => (t) => {
      r.setInt32(t + d, compute(read(r, t + a), r.getUint32(t + b, true), 0) & mask, true);
      return next;
    };
  };
}

const shl = shift(() => (a, n) => n > 31 ? 0 : a << n, shl64, shl64);

const shr = shift(
  (signed) => signed ? (a, n) => a >> Math.min(n, 31) : (a, n) => n > 31 ? 0 : a >>> n,
  shrSigned64,
  shrUnsigned64,
);

/** Funnel shift: 32 bits out of 64. */
function shf(reader: InstructionReader): Compiled {
  const left = reader.choice("l", "r") === "l";
  const clamp = reader.choice("clamp", "wrap") === "clamp";
  const type = reader.type("b32");
  reader.end(4);
  const [d, a, b, c] = [reader.result(type), reader.source(1, type), reader.source(2, type), reader.source(3, type)];
  return ternaryInt(type, d, a, b, c, (lo, hi, amount) => {
    const n = clamp ? Math.min(amount, 32) : amount & 31;
    if (n === 0) return left ? hi : lo;
    if (n === 32) return left ? lo : hi;
    return left ? (hi << n) | (lo >>> (32 - n)) : (hi << (32 - n)) | (lo >>> n);
  });
}

function popCount(value: number): number {
  let count = 0;
  for (let rest = value; rest !== 0; rest &= rest - 1) count++;
  return count;
}

/** Reverses the bits of a word. */
function reverseBits(value: number): number {
  let result = 0;
  for (let i = 0; i < 32; i++) result |= ((value >>> i) & 1) << (31 - i);
  return result;
}

/** `popc`, `clz`: a count, in a word, over an integer of 32 or 64 bits. */
function count(
  small: (a: number) => number,
  join: (lo: number, hi: number) => number,
): Lowering {
  return (reader) => {
    const type = reader.type("b32", "b64");
    reader.end(2);
    const [d, a] = [reader.result(u32), reader.source(1, type)];
    if (type.bits === 32) return unaryInt(u32, d, a, small);
    return ({ regs: r }, next) => (t) => {
      r.setInt32(t + d, join(small(r.getUint32(t + a, true)), small(r.getUint32(t + a + 4, true))), true);
      return next;
    };
  };
}

const popc = count(popCount, (lo, hi) => lo + hi);

const clz = count(Math.clz32, (lo, hi) => hi === 32 ? 32 + lo : hi);

function brev(reader: InstructionReader): Compiled {
  const type = reader.type("b32", "b64");
  reader.end(2);
  const [d, a] = [reader.result(type), reader.source(1, type)];
  if (type.bits === 32) return unaryInt(u32, d, a, reverseBits);
  return ({ regs: r }, next) => (t) => {
    const [lo, hi] = [r.getInt32(t + a, true), r.getInt32(t + a + 4, true)];
    r.setInt32(t + d, reverseBits(hi), true);
    r.setInt32(t + d + 4, reverseBits(lo), true);
    return next;
  };
}

/** Position of the highest bit that differs from the sign, or all ones; `.shiftamt`: its shift distance to the top. */
function bfind(reader: InstructionReader): Compiled {
  const shiftAmount = reader.flag("shiftamt");
  const type = reader.type("u32", "s32", "u64", "s64");
  reader.end(2);
  const [d, a] = [reader.result(u32), reader.source(1, type)];
  const read = bigReaderOf(type);
  return ({ regs: r }, next) => (t) => {
    const value = read(r, t + a);
    const size = value < 0n ? ~value : value;
    const at = size === 0n ? -1 : size.toString(2).length - 1;
    r.setInt32(t + d, shiftAmount && at >= 0 ? type.bits - 1 - at : at, true);
    return next;
  };
}

/**
 * Reads the position or length of a field. Only values up to 255 are defined; beyond, an H200 uses the lowest byte for
 * 32-bit fields, and extends 64-bit fields to the end.
 */
function extentReader(type: ScalarType): (r: DataView, slot: number) => number {
  return type.bits === 64 ? (r, slot) => Math.min(r.getUint32(slot, true), 255) : (r, slot) => r.getUint8(slot);
}

/** Extracts a field; bits beyond the top replicate the sign. */
function bfe(reader: InstructionReader): Compiled {
  const type = reader.type("u32", "s32", "u64", "s64");
  reader.end(4);
  const [d, a, b, c] = [reader.result(type), reader.source(1, type), reader.source(2, u32), reader.source(3, u32)];
  const read = bigReaderOf(type);
  const extent = extentReader(type);
  return ({ regs: r }, next) => (t) => {
    const [position, length] = [extent(r, t + b), extent(r, t + c)];
    const value = read(r, t + a);
    // The bigint extends the sign, so a field that reaches past the top needs no special case.
    const field = value >> BigInt(position);
    const bits = BigInt(Math.min(length, type.bits));
    const result = isSigned(type) && position + length <= type.bits ? BigInt.asIntN(Number(bits), field) : field;
    const cut = length === 0 ? 0n : isSigned(type) ? result : BigInt.asUintN(Number(bits), result);
    if (type.bits === 64) r.setBigInt64(t + d, BigInt.asIntN(64, cut), true);
    else r.setInt32(t + d, Number(BigInt.asIntN(32, cut)), true);
    return next;
  };
}

/** Inserts a field into another value. */
function bfi(reader: InstructionReader): Compiled {
  const type = reader.type("b32", "b64");
  reader.end(5);
  const [d, a, b] = [reader.result(type), reader.source(1, type), reader.source(2, type)];
  const [c, n] = [reader.source(3, u32), reader.source(4, u32)];
  const read = bigReaderOf(type);
  const extent = extentReader(type);
  return ({ regs: r }, next) => (t) => {
    const position = BigInt(extent(r, t + c));
    const mask = ((1n << BigInt(extent(r, t + n))) - 1n) << position;
    const field = (read(r, t + a) << position) & mask;
    const result = field | (read(r, t + b) & ~mask);
    if (type.bits === 64) r.setBigUint64(t + d, BigInt.asUintN(64, result), true);
    else r.setInt32(t + d, Number(BigInt.asIntN(32, result)), true);
    return next;
  };
}

/** A mask of a given width at a given position. */
function bmsk(reader: InstructionReader): Compiled {
  const wrap = reader.choice("clamp", "wrap") === "wrap";
  const type = reader.type("b32");
  reader.end(3);
  const [d, a, b] = [reader.result(type), reader.source(1, type), reader.source(2, type)];
  return binaryInt(type, d, a, b, (x, y) => {
    const [position, width] = wrap ? [x & 31, y & 31] : [Math.min(x, 32), Math.min(y, 32)];
    return Number(BigInt.asIntN(32, ((1n << BigInt(width)) - 1n) << BigInt(position)));
  });
}

/** Picks four bytes out of eight. */
function prmt(reader: InstructionReader): Compiled {
  const type = reader.type("b32");
  const mode = reader.option("f4e", "b4e", "rc8", "ecl", "ecr", "rc16");
  reader.end(4);
  const [d, a, b, c] = [reader.result(type), reader.source(1, type), reader.source(2, type), reader.source(3, type)];
  return ternaryInt(type, d, a, b, c, (lo, hi, selector) => {
    let result = 0;
    for (let i = 0; i < 4; i++) {
      const nibble = mode === null ? selector >>> (4 * i) : prmtModes[mode](selector & 3, i);
      const word = nibble & 4 ? hi : lo;
      const byte = (word >>> (8 * (nibble & 3))) & 0xff;
      const value = mode === null && nibble & 8 ? (byte & 0x80 ? 0xff : 0) : byte;
      result |= value << (8 * i);
    }
    return result;
  });
}

/** Source byte of result byte i, by mode and by the selector's two bits. */
const prmtModes: Readonly<Record<"f4e" | "b4e" | "rc8" | "ecl" | "ecr" | "rc16", (s: number, i: number) => number>> = {
  f4e: (s, i) => s + i,
  b4e: (s, i) => (s - i) & 7,
  rc8: (s) => s,
  ecl: (s, i) => Math.max(s, i),
  ecr: (s, i) => Math.min(s, i),
  rc16: (s, i) => (s & 1) * 2 + (i & 1),
};

/** Sign- or zero-extends the lower bits. */
function szext(reader: InstructionReader): Compiled {
  const wrap = reader.choice("clamp", "wrap") === "wrap";
  const type = reader.type("u32", "s32");
  reader.end(3);
  const [d, a, b] = [reader.result(type), reader.source(1, type), reader.source(2, u32)];
  return binaryInt(u32, d, a, b, (x, y) => {
    const bits = wrap ? y & 31 : Math.min(y, 32);
    if (bits === 0) return 0;
    return isSigned(type) ? (x << (32 - bits)) >> (32 - bits) : (x << (32 - bits)) >>> (32 - bits);
  });
}

/** Logic, shifts and bit fields, by opcode. */
export const bitInstructions: InstructionTable = {
  and: logic((a, b) => a & b, and64),
  or: logic((a, b) => a | b, or64),
  xor: logic((a, b) => a ^ b, xor64),
  not,
  cnot,
  lop3,
  shl,
  shr,
  shf,
  popc,
  clz,
  brev,
  bfind,
  bfe,
  bfi,
  bmsk,
  prmt,
  szext,
};
