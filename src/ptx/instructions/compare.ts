/**
 * Comparisons and selection.
 *
 * @module
 */
import type { Compiled, Op } from "../execution_state.ts";
import { codecOf, flush } from "../float_registers.ts";
import { compareSigned64, compareUnsigned64 } from "../int64.ts";
import { copyBits, readerOf } from "./op_templates.ts";
import type { InstructionReader, InstructionTable } from "../operands.ts";
import { isSigned, pred, type ScalarType } from "../types.ts";

/** `lt` to `ge` of unsigned integers. */
const unsignedOnly = ["lo", "ls", "hi", "hs"] as const;
/** Those ending in u also hold for NaN. */
const floatOnly = ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"] as const;
/** Comparisons by name. */
const comparisons = ["eq", "ne", "lt", "le", "gt", "ge", ...unsignedOnly, ...floatOnly] as const;
type Comparison = (typeof comparisons)[number];

/** Whether each comparison holds. Takes two numbers, or, for 64-bit integers, the sign of their comparison and 0. */
const holds: Readonly<Record<Comparison, (a: number, b: number) => boolean>> = {
  eq: (a, b) => a === b,
  ne: (a, b) => a !== b && !Number.isNaN(a) && !Number.isNaN(b),
  lt: (a, b) => a < b,
  le: (a, b) => a <= b,
  gt: (a, b) => a > b,
  ge: (a, b) => a >= b,
  lo: (a, b) => a < b,
  ls: (a, b) => a <= b,
  hi: (a, b) => a > b,
  hs: (a, b) => a >= b,
  equ: (a, b) => a === b || Number.isNaN(a) || Number.isNaN(b),
  neu: (a, b) => a !== b,
  ltu: (a, b) => !(a >= b),
  leu: (a, b) => !(a > b),
  gtu: (a, b) => !(a <= b),
  geu: (a, b) => !(a < b),
  num: (a, b) => !Number.isNaN(a) && !Number.isNaN(b),
  nan: (a, b) => Number.isNaN(a) || Number.isNaN(b),
};

const types = ["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f16", "bf16", "f32", "f64"];

/** Where the upper half of a pair is: a comparison of the frame there is one of the upper halves. */
const UPPER = 2;

/** A comparison of operands `first` and `first + 1`. */
function comparison(
  reader: InstructionReader,
  type: ScalarType,
  compare: Comparison,
  first: number,
): (r: DataView, t: number) => boolean {
  const isFloat = type.kind === "float" || type.kind === "packed";
  const ftz = isFloat && type.bits < 64 && !type.name.startsWith("bf") && reader.flag("ftz");
  const isOneOf = (names: readonly string[]): boolean => names.includes(compare);
  if (isOneOf(unsignedOnly) && type.kind !== "unsigned") reader.fail(`.${compare} is for unsigned integers`);
  if (isOneOf(floatOnly) && !isFloat) reader.fail(`.${compare} is for floats`);
  if (type.kind === "bits" && compare !== "eq" && compare !== "ne") reader.fail("bits compare with .eq or .ne only");
  const [a, b] = [reader.source(first, type), reader.source(first + 1, type)];
  const test = holds[compare];
  if (isFloat) {
    const { read, bits } = codecOf(reader, type).codec;
    if (ftz && bits === 32) return (r, t) => test(flush(read(r, t + a)), flush(read(r, t + b)));
    return (r, t) => test(read(r, t + a), read(r, t + b));
  }
  if (type.bits === 64) {
    const order = isSigned(type) ? compareSigned64 : compareUnsigned64;
    return (r, t) => test(order(r, t + a, t + b), 0);
  }
  const read = readerOf(type);
  return (r, t) => test(read(r, t + a), read(r, t + b));
}

/** `setp.lt.s32 p, a, b` and `setp.lt.and.s32 p|q, a, b, c`; of pairs, q is the comparison of the upper halves. */
function setp(reader: InstructionReader): Compiled {
  const compare = reader.choice(...comparisons);
  const combine = reader.option("and", "or", "xor");
  const type = reader.type(...types, "f16x2", "bf16x2");
  const test = comparison(reader, type, compare, 1);
  reader.end(combine === null ? 3 : 4);
  const target = reader.operand(0);
  const [first, second] = target.kind === "pair" ? [target.first, target.second] : [target, null];
  const p = reader.to(first, pred);
  const q = second === null ? null : reader.to(second, pred);
  const c = combine === null ? null : reader.predicate(reader.operand(3));
  if (q === null && c === null) {
    return ({ regs: r }, next): Op => (t) => {
      r.setInt32(t + p, test(r, t) ? 1 : 0, true);
      return next;
    };
  }
  const join = combined(combine);
  return ({ regs: r }, next) => (t) => {
    const result = test(r, t);
    const second = type.kind === "packed" ? test(r, t + UPPER) : !result;
    const other = c !== null && (r.getInt32(t + c.slot, true) !== 0) !== c.negated;
    r.setInt32(t + p, join(result, other) ? 1 : 0, true);
    if (q !== null) r.setInt32(t + q, join(second, other) ? 1 : 0, true);
    return next;
  };
}

function combined(combine: "and" | "or" | "xor" | null): (a: boolean, b: boolean) => boolean {
  switch (combine) {
    case "and":
      return (a, b) => a && b;
    case "or":
      return (a, b) => a || b;
    case "xor":
      return (a, b) => a !== b;
    case null:
      return (a) => a;
  }
}

/** The types that a comparison can give, by what it compares. */
function resultTypes({ name, kind }: ScalarType): readonly string[] {
  if (kind === "packed") return ["u32", "s32", name];
  if (name === "f16") return ["u16", "s16", "u32", "s32", "f16", "bf16"];
  if (name === "bf16") return ["u16", "s16", "u32", "s32", "bf16"];
  return ["u32", "s32", "f16", "bf16", "f32"];
}

/** What a comparison that holds gives: 1.0 as a float, else all ones. */
function yesOf(result: ScalarType, isHalf: boolean): number {
  switch (result.name) {
    case "f32":
      return 0x3f800000;
    case "f16":
    case "f16x2":
      return 0x3c00;
    case "bf16":
    case "bf16x2":
      return 0x3f80;
  }
  return isHalf || result.bits === 16 ? 0xffff : -1;
}

/** `set.lt.u32.s32 d, a, b`: all ones, or 1.0 as a float; pairs are compared half by half. */
function set(reader: InstructionReader): Compiled {
  const compare = reader.choice(...comparisons);
  const combine = reader.option("and", "or", "xor");
  const result = reader.type();
  const type = reader.type(...types, "f16x2", "bf16x2");
  if (!resultTypes(type).includes(result.name)) reader.fail(`comparing .${type.name} does not give .${result.name}`);
  if (result.name === "bf16" && reader.flag("ftz")) reader.fail("the modifier .ftz is not for results of .bf16");
  const test = comparison(reader, type, compare, 1);
  reader.end(combine === null ? 3 : 4);
  const d = reader.result(result);
  const c = combine === null ? null : reader.predicate(reader.operand(3));
  const join = combined(combine);
  const isPair = type.kind === "packed";
  const yes = yesOf(result, isPair);
  return ({ regs: r }, next) => (t) => {
    const other = c !== null && (r.getInt32(t + c.slot, true) !== 0) !== c.negated;
    let value = join(test(r, t), other) ? yes : 0;
    if (isPair && join(test(r, t + UPPER), other)) value |= yes << 16;
    r.setInt32(t + d, value, true);
    return next;
  };
}

/** The types that are selected from: 16-bit floats are bits here. */
const selectedTypes = types.filter((name) => name !== "f16" && name !== "bf16");

/** `selp.b32 d, a, b, p`: a if p, else b. */
function selp(reader: InstructionReader): Compiled {
  const type = reader.type(...selectedTypes);
  reader.end(4);
  const d = reader.result(type);
  const [one, other] = [reader.source(1, type), reader.source(2, type)];
  const { slot, negated } = reader.predicate(reader.operand(3));
  const [a, b] = negated ? [other, one] : [one, other];
  const [taken, left] = [copyBits(type.bits, d, a), copyBits(type.bits, d, b)];
  return (state, next, base) => {
    const { regs: r } = state;
    const [yes, no] = [taken(state, next, base), left(state, next, base)];
    return (t) => r.getInt32(t + slot, true) !== 0 ? yes(t) : no(t);
  };
}

/** `slct.f32.s32 d, a, b, c`: a if c is not negative, else b. */
function slct(reader: InstructionReader): Compiled {
  const ftz = reader.flag("ftz");
  const type = reader.type(...selectedTypes);
  const by = reader.type("s32", "f32");
  if (ftz && by.name !== "f32") reader.fail("the modifier .ftz is not understood here");
  reader.end(4);
  const [d, a, b, c] = [reader.result(type), reader.source(1, type), reader.source(2, type), reader.source(3, by)];
  const [first, second] = [copyBits(type.bits, d, a), copyBits(type.bits, d, b)];
  return (state, next, base) => {
    const { regs: r } = state;
    const [one, two] = [first(state, next, base), second(state, next, base)];
    if (by.name === "s32") return (t) => r.getInt32(t + c, true) >= 0 ? one(t) : two(t);
    return (t) => {
      const value = r.getFloat32(t + c, true);
      return (ftz ? flush(value) : value) >= 0 ? one(t) : two(t);
    };
  };
}

/** Comparisons and selections, by opcode. */
export const compareInstructions: InstructionTable = {
  setp,
  set,
  selp,
  slct,
};
