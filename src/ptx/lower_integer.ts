/**
 * Integer arithmetic, logic and shifts.
 *
 * @module
 */
import type { Compiled } from "./execution_state.ts";
import {
  bigReaderOf,
  binaryInt,
  binaryWords,
  type IntFunction,
  readerOf,
  ternaryInt,
  unaryInt,
} from "./op_templates.ts";
import type { InstructionReader } from "./operands.ts";
import { isSigned, type ScalarType, scalarTypes } from "./types.ts";
import {
  add64,
  and64,
  divSigned64,
  divUnsigned64,
  mul64,
  mulWideSigned,
  mulWideUnsigned,
  or64,
  remSigned64,
  remUnsigned64,
  shl64,
  shrSigned64,
  shrUnsigned64,
  sub64,
  upperWord,
  viaBigint,
  type WordOp,
  xor64,
} from "./int64.ts";

const integers = ["u16", "u32", "u64", "s16", "s32", "s64"];

/** The type of a name that is known to be one. */
export function scalarType(name: string): ScalarType {
  const type = scalarTypes.get(name);
  if (type === undefined) throw new Error(`${name} is no type`);
  return type;
}

const u32 = scalarType("u32");

/** The integer type of the same sign and twice the width. */
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

/** Sums and differences, with carry (`.cc`, `addc`), saturation (`.sat`) and pairs of 16 bits left to the floats. */
function addition(negate: boolean, small: IntFunction, words: WordOp): (reader: InstructionReader) => Compiled {
  const plain = binary(small, words);
  return (reader) => {
    const carryIn = reader.instruction.opcode.endsWith("c");
    const carryOut = reader.flag("cc");
    const clamp = reader.flag("sat");
    const type = reader.type(...integers);
    if (clamp) {
      if (type.name !== "s32" || carryIn || carryOut) reader.fail("only .s32 saturates");
      reader.end(3);
      const [d, a, b] = [reader.result(type), reader.source(1, type), reader.source(2, type)];
      return binaryInt(type, d, a, b, (x, y) => Math.max(INT_MIN, Math.min(INT_MAX, small(x, y, 0))));
    }
    if (!carryIn && !carryOut) return plain(reader, type);
    if (type.bits === 16) reader.fail("carries are of 32 and 64 bits");
    reader.end(3);
    const [d, a, b] = [reader.result(type), reader.source(1, type), reader.source(2, type)];
    return carried(reader, type.bits, d, a, b, { negate, carryIn, carryOut });
  };
}

/** `d = a + b + carry`, or `d = a - b - borrow`, on the condition code, which is the carry and the opposite of a borrow. */
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

/** Which bits of a product: the lower half, the upper half, or all. */
function product(
  reader: InstructionReader,
  type: ScalarType,
  part: "lo" | "hi" | "wide",
  d: number,
  a: number,
  b: number,
): Compiled {
  if (part === "wide") {
    if (type.bits === 64) reader.fail(".wide is of 16 and 32 bits");
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
  const part = reader.choice("lo", "hi", "wide");
  const type = reader.type(...integers);
  reader.end(3);
  const d = reader.result(part === "wide" && type.bits < 64 ? twice(type) : type);
  return product(reader, type, part, d, reader.source(1, type), reader.source(2, type));
}

/** `d = a * b + c`, with the product in a place of its own. */
function mad(reader: InstructionReader): Compiled {
  const part = reader.choice("lo", "hi", "wide");
  const carryIn = reader.instruction.opcode === "madc";
  const carryOut = reader.flag("cc");
  const clamp = reader.flag("sat");
  const type = reader.type(...integers);
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
  if ((carryIn || carryOut) && (part === "wide" || type.bits === 16)) reader.fail("carries are of 32 and 64 bits");
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

/** One instruction made of two. */
export function inSequence(first: Compiled, second: Compiled): Compiled {
  return (state, next, base) => {
    const [one, two] = [first(state, next, base), second(state, next, base)];
    return (t) => {
      one(t);
      return two(t);
    };
  };
}

/** 24-bit products: of the lower 24 bits of each, the lower 32 or the upper 32 of 48. */
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

// Dividing by zero is undefined; an H200 gives all ones, also as the rest.
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

/** Whether a type of min and max is of integers; `.relu` is of s32 too. */
export function minMaxInteger(reader: InstructionReader, type: ScalarType, which: "min" | "max"): Compiled {
  if (!integers.includes(type.name)) reader.fail(`the type .${type.name} is not understood here`);
  if (!reader.flag("relu")) return (which === "min" ? min : max)(reader, type);
  if (type.name !== "s32") reader.fail(".relu is of .s32");
  reader.end(3);
  const [d, a, b] = [reader.result(type), reader.source(1, type), reader.source(2, type)];
  return binaryInt(type, d, a, b, (x, y) => Math.max(0, Math[which](x, y)));
}

/** `d = f(a)` of signed integers. */
export function unarySigned(
  reader: InstructionReader,
  type: ScalarType,
  small: IntFunction,
  words: (a: bigint) => bigint,
): Compiled {
  if (!isSigned(type)) reader.fail(`the type .${type.name} is not understood here`);
  reader.end(2);
  const [d, a] = [reader.result(type), reader.source(1, type)];
  return type.bits === 64 ? binaryWords(d, a, a, viaBigint(true, words)) : unaryInt(type, d, a, small);
}

/** Bitwise logic, of predicates too. */
function logic(small: IntFunction, words: WordOp): (reader: InstructionReader) => Compiled {
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

/** Any function of three bits, given by its table. */
function lop3(reader: InstructionReader): Compiled {
  const type = reader.type("b32");
  reader.end(5);
  const [d, a, b, c] = [reader.result(type), reader.source(1, type), reader.source(2, type), reader.source(3, type)];
  const operand = reader.operand(4);
  if (operand.kind !== "integer" || operand.value < 0n || operand.value > 255n) reader.fail("the table is 0 to 255");
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
): (reader: InstructionReader) => Compiled {
  return (reader) => {
    const type = reader.type("b16", "b32", "b64", ...integers);
    if (reader.instruction.opcode === "shl" && type.kind !== "bits") reader.fail("shl is of .b16, .b32 and .b64");
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

/** Bits of a word in reverse. */
export function reverseBits(value: number): number {
  let result = 0;
  for (let i = 0; i < 32; i++) result |= ((value >>> i) & 1) << (31 - i);
  return result;
}

/** `popc`, `clz`: a word about an integer of 32 or 64 bits. */
function count(
  small: (a: number) => number,
  join: (lo: number, hi: number) => number,
): (reader: InstructionReader) => Compiled {
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

/** The highest bit that differs from the sign, or all ones; `.shiftamt`: how far it must be shifted to the top. */
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
 * Reads the position or length of a field. Only up to 255 is defined; beyond, an H200 takes the lowest byte of it for
 * fields of 32 bits, and goes to the end for those of 64.
 */
function extentReader(type: ScalarType): (r: DataView, slot: number) => number {
  return type.bits === 64 ? (r, slot) => Math.min(r.getUint32(slot, true), 255) : (r, slot) => r.getUint8(slot);
}

/** Extracts a field; beyond the top stands the sign. */
function bfe(reader: InstructionReader): Compiled {
  const type = reader.type("u32", "s32", "u64", "s64");
  reader.end(4);
  const [d, a, b, c] = [reader.result(type), reader.source(1, type), reader.source(2, u32), reader.source(3, u32)];
  const read = bigReaderOf(type);
  const extent = extentReader(type);
  return ({ regs: r }, next) => (t) => {
    const [position, length] = [extent(r, t + b), extent(r, t + c)];
    const value = read(r, t + a);
    // With the sign above, a field that reaches over the top needs no case of its own.
    const field = value >> BigInt(position);
    const bits = BigInt(Math.min(length, type.bits));
    const result = isSigned(type) && position + length <= type.bits ? BigInt.asIntN(Number(bits), field) : field;
    const cut = length === 0 ? 0n : isSigned(type) ? result : BigInt.asUintN(Number(bits), result);
    if (type.bits === 64) r.setBigInt64(t + d, BigInt.asIntN(64, cut), true);
    else r.setInt32(t + d, Number(BigInt.asIntN(32, cut)), true);
    return next;
  };
}

/** Puts a field into another value. */
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

/** A mask of some bits from a position. */
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

/** Which byte comes i-th, by mode and by the selector's two bits. */
const prmtModes: Readonly<Record<"f4e" | "b4e" | "rc8" | "ecl" | "ecr" | "rc16", (s: number, i: number) => number>> = {
  f4e: (s, i) => s + i,
  b4e: (s, i) => (s - i) & 7,
  rc8: (s) => s,
  ecl: (s, i) => Math.max(s, i),
  ecr: (s, i) => Math.min(s, i),
  rc16: (s, i) => (s & 1) * 2 + (i & 1),
};

/** Sum of absolute differences. */
function sad(reader: InstructionReader): Compiled {
  const type = reader.type(...integers);
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

/** The lower bits with their sign or with zeros above. */
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

/** Sums and differences of integers. */
export const addInteger: (reader: InstructionReader) => Compiled = addition(false, (a, b) => a + b, add64);
/** Differences of integers. */
export const subInteger: (reader: InstructionReader) => Compiled = addition(true, (a, b) => a - b, sub64);
/** Products of integers. */
export const mulInteger: (reader: InstructionReader) => Compiled = mul;
/** Products and sums of integers. */
export const madInteger: (reader: InstructionReader) => Compiled = mad;
/** Quotients of integers. */
export const divInteger: (reader: InstructionReader, type: ScalarType) => Compiled = div;

/** Instructions on integers alone, by opcode. */
export const integerInstructions: Readonly<Record<string, (reader: InstructionReader) => Compiled>> = {
  addc: addInteger,
  subc: subInteger,
  madc: mad,
  mul24,
  mad24: mul24,
  rem: (reader) => rem(reader, reader.type(...integers)),
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
  sad,
  dp4a: dot,
  dp2a: dot,
  szext,
};
