/**
 * Integer arithmetic: sums with carries, products, quotients, dot products.
 *
 * @module
 */
import type { Compiled } from "../execution_state.ts";
import {
  bigReaderOf,
  binaryInt,
  binaryWords,
  inSequence,
  type IntFunction,
  readerOf,
  ternaryInt,
  unaryInt,
} from "./op_templates.ts";
import {
  add64,
  divSigned64,
  divUnsigned64,
  mul64,
  mulWideSigned,
  mulWideUnsigned,
  remSigned64,
  remUnsigned64,
  sub64,
  upperWord,
  viaBigint,
  type WordOp,
} from "../int64.ts";
import type { InstructionReader, InstructionTable, Lowering } from "../operands.ts";
import { isSigned, type ScalarType, scalarType, u32 } from "../types.ts";

/** The integer types that arithmetic supports. */
export const integerTypes = ["u16", "u32", "u64", "s16", "s32", "s64"];

/** Two integers of 16 bits in a word. */
const pairTypes = ["u16x2", "s16x2"];

/** `d = compute(a, b)` on each half. */
function pairs(reader: InstructionReader, type: ScalarType, compute: IntFunction): Compiled {
  reader.end(3);
  const [d, a, b] = [reader.result(type), reader.source(1, type), reader.source(2, type)];
  const read = readerOf(scalarType(type.name.slice(0, "u16".length)));
  return ({ regs: r }, next) => (t) => {
    const low = compute(read(r, t + a), read(r, t + b), 0) & 0xffff;
    r.setInt32(t + d, low | (compute(read(r, t + a + 2), read(r, t + b + 2), 0) << 16), true);
    return next;
  };
}

/** The integer type of the same signedness and twice the width. */
function twice(type: ScalarType): ScalarType {
  return scalarType(`${type.name[0]}${type.bits * 2}`);
}

/** `d = a op b` with a function per width. */
function binary(
  small: IntFunction,
  signed: WordOp,
  unsigned: WordOp = signed,
): (reader: InstructionReader, type: ScalarType) => Compiled {
  return (reader, type) => {
    reader.end(3);
    const [d, a, b] = [reader.result(type), reader.source(1, type), reader.source(2, type)];
    return type.bits === 64
      ? binaryWords(d, a, b, isSigned(type) ? signed : unsigned)
      : binaryInt(type, d, a, b, small);
  };
}

const INT_MAX = 0x7fffffff;

const INT_MIN = -0x80000000;

/** Sums and differences, with carry (`.cc`, `addc`) and saturation (`.sat`); sums also of pairs. */
function addition(negate: boolean, small: IntFunction, words: WordOp): Lowering {
  const plain = binary(small, words);
  return (reader) => {
    const carryIn = reader.instruction.opcode.endsWith("c");
    const carryOut = reader.flag("cc");
    const clamp = reader.flag("sat");
    const type = reader.type(...integerTypes, ...(negate || carryIn || carryOut || clamp ? [] : pairTypes));
    if (type.kind === "packed") return pairs(reader, type, small);
    if (clamp) {
      if (type.name !== "s32" || carryIn || carryOut) reader.fail("only .s32 saturates");
      reader.end(3);
      const [d, a, b] = [reader.result(type), reader.source(1, type), reader.source(2, type)];
      return binaryInt(type, d, a, b, (x, y) => Math.max(INT_MIN, Math.min(INT_MAX, small(x, y, 0))));
    }
    if (!carryIn && !carryOut) return plain(reader, type);
    if (type.bits === 16) reader.fail("carries require 32 or 64 bits");
    reader.end(3);
    const [d, a, b] = [reader.result(type), reader.source(1, type), reader.source(2, type)];
    return carried(reader, type.bits, d, a, b, { negate, carryIn, carryOut });
  };
}

/**
 * `d = a + b + carry`, or `d = a - b - borrow`, using the condition code, which is the carry or the inverse of the
 * borrow.
 */
function carried(
  reader: InstructionReader,
  bits: number,
  d: number,
  a: number,
  b: number,
  how: { readonly negate: boolean; readonly carryIn: boolean; readonly carryOut: boolean },
): Compiled {
  const cc = reader.context.frame.carry;
  const { negate, carryIn, carryOut } = how;
  const read = bigReaderOf(scalarType(`u${bits}`));
  return ({ regs: r }, next) => (t) => {
    const code = r.getInt32(t + cc, true) !== 0;
    const carry = carryIn && code !== negate ? 1n : 0n;
    const [x, y] = [read(r, t + a), read(r, t + b)];
    const sum = negate ? x - y - carry : x + y + carry;
    if (bits === 64) r.setBigUint64(t + d, BigInt.asUintN(64, sum), true);
    else r.setInt32(t + d, Number(BigInt.asIntN(32, sum)), true);
    if (carryOut) r.setInt32(t + cc, (sum >> BigInt(bits) !== 0n) !== negate ? 1 : 0, true);
    return next;
  };
}

/** A product: its lower half, its upper half, or all of it. */
function product(
  reader: InstructionReader,
  type: ScalarType,
  part: "lo" | "hi" | "wide",
  d: number,
  a: number,
  b: number,
): Compiled {
  if (part === "wide") {
    if (type.bits === 64) reader.fail(".wide requires 16 or 32 bits");
    if (type.bits === 32) return binaryWords(d, a, b, isSigned(type) ? mulWideSigned : mulWideUnsigned);
    const read = readerOf(type);
    return ({ regs: r }, next) => (t) => {
      r.setInt32(t + d, read(r, t + a) * read(r, t + b), true);
      return next;
    };
  }
  if (type.bits === 64) {
    return binaryWords(d, a, b, part === "lo" ? mul64 : viaBigint(isSigned(type), (x, y) => (x * y) >> 64n));
  }
  if (type.bits === 16) return binaryInt(type, d, a, b, part === "lo" ? (x, y) => x * y : (x, y) => (x * y) >> 16);
  return binaryInt(type, d, a, b, part === "lo" ? Math.imul : upperWord);
}

function mul(reader: InstructionReader): Compiled {
  const type = reader.type(...integerTypes);
  const part = reader.choice("lo", "hi", "wide");
  reader.end(3);
  const d = reader.result(part === "wide" && type.bits < 64 ? twice(type) : type);
  return product(reader, type, part, d, reader.source(1, type), reader.source(2, type));
}

/** `d = a * b + c`, with the product in a temporary slot. */
function mad(reader: InstructionReader): Compiled {
  const type = reader.type(...integerTypes);
  const part = reader.choice("lo", "hi", "wide");
  const carryIn = reader.instruction.opcode === "madc";
  const carryOut = reader.flag("cc");
  const clamp = reader.flag("sat");
  reader.end(4);
  const result = part === "wide" && type.bits < 64 ? twice(type) : type;
  const [d, a, b, c] = [
    reader.result(result),
    reader.source(1, type),
    reader.source(2, type),
    reader.source(3, result),
  ];
  if (part === "lo" && type.bits === 32 && !carryIn && !carryOut && !clamp) {
    return ternaryInt(type, d, a, b, c, (x, y, z) => Math.imul(x, y) + z);
  }
  if (clamp && (part !== "hi" || type.name !== "s32" || carryIn || carryOut)) reader.fail("only .hi.s32 saturates");
  if ((carryIn || carryOut) && (part === "wide" || type.bits === 16)) reader.fail("carries require 32 or 64 bits");
  const place = reader.context.frame.allocate(8);
  const first = product(reader, type, part, place, a, b);
  const second = clamp
    ? binaryInt(result, d, place, c, (x, y) => Math.max(INT_MIN, Math.min(INT_MAX, x + y)))
    : carryIn || carryOut
    ? carried(reader, type.bits, d, place, c, { negate: false, carryIn, carryOut })
    : result.bits === 64
    ? binaryWords(d, place, c, add64)
    : binaryInt(result, d, place, c, (x, y) => x + y);
  return inSequence(first, second);
}

/** 24-bit products: of the lower 24 bits of each operand, the lower or upper 32 bits of the 48. */
function mul24(reader: InstructionReader): Compiled {
  const part = reader.choice("lo", "hi");
  const type = reader.type("u32", "s32");
  const add = reader.instruction.opcode === "mad24";
  reader.end(add ? 4 : 3);
  const cut: IntFunction = isSigned(type) ? (x) => (x << 8) >> 8 : (x) => x & 0xffffff;
  const [d, a, b] = [reader.result(type), reader.source(1, type), reader.source(2, type)];
  const c = add ? reader.source(3, type) : reader.context.frame.constant(0n);
  // Products of 24 bits are exact as doubles.
  return ternaryInt(type, d, a, b, c, (x, y, z) => {
    const all = cut(x, 0, 0) * cut(y, 0, 0);
    return (part === "lo" ? all : Math.floor(all / 65536)) % 4294967296 + z;
  });
}

// Dividing by zero is undefined; an H200 gives all ones, for the remainder too.
const div = binary((a, b) => b === 0 ? -1 : Math.trunc(a / b), divSigned64, divUnsigned64);

const rem = binary((a, b) => b === 0 ? -1 : a % b, remSigned64, remUnsigned64);

const min = binary(
  (a, b) => Math.min(a, b),
  viaBigint(true, (a, b) => a < b ? a : b),
  viaBigint(false, (a, b) => a < b ? a : b),
);

const max = binary(
  (a, b) => Math.max(a, b),
  viaBigint(true, (a, b) => a > b ? a : b),
  viaBigint(false, (a, b) => a > b ? a : b),
);

/** Minimum or maximum of integers; `.s32` also supports `.relu`. */
export function minMaxInteger(reader: InstructionReader, type: ScalarType, which: "min" | "max"): Compiled {
  const isPair = pairTypes.includes(type.name);
  if (!isPair && !integerTypes.includes(type.name)) reader.fail(`the type .${type.name} is not understood here`);
  const relu = reader.flag("relu");
  if (relu && type.name !== "s32" && type.name !== "s16x2") reader.fail(".relu is for .s32 and .s16x2");
  if (isPair) return pairs(reader, type, (x, y) => relu ? Math.max(0, Math[which](x, y)) : Math[which](x, y));
  if (!relu) return (which === "min" ? min : max)(reader, type);
  reader.end(3);
  const [d, a, b] = [reader.result(type), reader.source(1, type), reader.source(2, type)];
  return binaryInt(type, d, a, b, (x, y) => Math.max(0, Math[which](x, y)));
}

/** `d = f(a)` on signed integers. */
export function unarySigned(
  reader: InstructionReader,
  type: ScalarType,
  small: IntFunction,
  words: (a: bigint) => bigint,
): Compiled {
  reader.end(2);
  const [d, a] = [reader.result(type), reader.source(1, type)];
  return type.bits === 64 ? binaryWords(d, a, a, viaBigint(true, words)) : unaryInt(type, d, a, small);
}

/** Sum of absolute differences. */
function sad(reader: InstructionReader): Compiled {
  const type = reader.type(...integerTypes);
  reader.end(4);
  const [d, a, b, c] = [reader.result(type), reader.source(1, type), reader.source(2, type), reader.source(3, type)];
  if (type.bits < 64) return ternaryInt(type, d, a, b, c, (x, y, z) => Math.abs(x - y) + z);
  const place = reader.context.frame.allocate(8);
  const difference = viaBigint(isSigned(type), (x, y) => x < y ? y - x : x - y);
  return inSequence(binaryWords(place, a, b, difference), binaryWords(d, place, c, add64));
}

/** Dot products of bytes (`dp4a`), or of two 16-bit numbers and bytes (`dp2a`), added to a word. */
function dot(reader: InstructionReader): Compiled {
  const four = reader.instruction.opcode === "dp4a";
  const upper = four ? false : reader.choice("lo", "hi") === "hi";
  const [left, right] = [reader.type("u32", "s32"), reader.type("u32", "s32")];
  reader.end(4);
  const [d, a, b, c] = [reader.result(u32), reader.source(1, u32), reader.source(2, u32), reader.source(3, u32)];
  const wide = readerOf(scalarType(`${left.name[0]}${four ? 8 : 16}`));
  const narrow = readerOf(scalarType(`${right.name[0]}8`));
  return ({ regs: r }, next) => (t) => {
    let sum = r.getInt32(t + c, true);
    for (let i = 0; i < (four ? 4 : 2); i++) {
      sum += wide(r, t + a + (four ? i : 2 * i)) * narrow(r, t + b + i + (upper ? 2 : 0));
    }
    r.setInt32(t + d, sum, true);
    return next;
  };
}

/** Absolute differences of the bytes (`vabsdiff4`) or halves of two words; `.add`: their sum plus a word. */
function absoluteDifferences(reader: InstructionReader): Compiled {
  const bits = reader.instruction.opcode === "vabsdiff4" ? 8 : 16;
  const total = reader.flag("add");
  const types = [reader.type("u32"), reader.type("u32"), reader.type("u32")];
  reader.end(4);
  const d = reader.result(u32);
  const [a = 0, b = 0, c = 0] = types.map((type, i) => reader.source(i + 1, type));
  const read = readerOf(scalarType(`u${bits}`));
  return ({ regs: r }, next) => (t) => {
    let [result, sum] = [0, r.getInt32(t + c, true)];
    for (let i = 0; i < 4; i += bits / 8) {
      const difference = Math.abs(read(r, t + a + i) - read(r, t + b + i));
      result |= difference << (8 * i);
      sum += difference;
    }
    r.setInt32(t + d, total ? sum : result, true);
    return next;
  };
}

/** Sums of integers. */
export const addInteger: Lowering = addition(false, (a, b) => a + b, add64);

/** Differences of integers. */
export const subInteger: Lowering = addition(true, (a, b) => a - b, sub64);

/** Products of integers. */
export const mulInteger: Lowering = mul;

/** Multiply-add of integers. */
export const madInteger: Lowering = mad;

/** Quotients of integers. */
export const divInteger: (reader: InstructionReader, type: ScalarType) => Compiled = div;

/** Integer-only arithmetic, by opcode. */
export const integerArithmeticInstructions: InstructionTable = {
  addc: addInteger,
  subc: subInteger,
  madc: mad,
  mul24,
  mad24: mul24,
  rem: (reader) => rem(reader, reader.type(...integerTypes)),
  sad,
  dp4a: dot,
  dp2a: dot,
  vabsdiff2: absoluteDifferences,
  vabsdiff4: absoluteDifferences,
};
