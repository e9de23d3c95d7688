/**
 * Float arithmetic. Everything that PTX rounds is rounded once and exactly; what PTX calls approximate is computed as a
 * double and rounded to nearest, which is at least as accurate as a GPU's result but not identical.
 *
 * @module
 */
import type { Compiled } from "../execution_state.ts";
import { codecOf, codecs, encode16, type FloatCodec, flush, isNegative, NAN32, saturate } from "../float_registers.ts";
import { addInteger, divInteger, madInteger, mulInteger, subInteger } from "./integer_arithmetic.ts";
import type { InstructionReader, InstructionTable, Lowering } from "../operands.ts";
import {
  add64f,
  addToOdd,
  div64f,
  divideToOdd,
  fma64,
  fmaToOdd,
  mul64f,
  type Rounding,
  sqrt64f,
  sqrtToOdd,
} from "../rounding.ts";
import type { ScalarType } from "../types.ts";

/** How a computed value becomes the result. */
export interface Finish {
  readonly rounding: Rounding;
  /** Flushes subnormal operands and results to zero. */
  readonly ftz: boolean;
  /** Clamps to [0, 1]. */
  readonly sat: boolean;
  /** Clamps negative results to zero. */
  readonly relu: boolean;
  /** Which NaN is propagated. Default: as in hardware. */
  readonly nan?: keyof typeof nanOrders;
}

/** A function on doubles: exact or rounded to odd for formats of up to 32 bits, rounded as requested for binary64. */
export type FloatFunction = (a: number, b: number, c: number, rounding: Rounding) => number;

/** Compiles a float instruction from its slots: that of the result, then those of three operands. */
type FloatInstruction = (
  codec: FloatCodec,
  finish: Finish,
  d: number,
  a: number,
  b: number,
  c: number,
  compute: FloatFunction,
) => Compiled;

/** The float types. */
export const floatTypes = ["f32", "f64", "f16", "bf16", "f16x2", "bf16x2"] as const;

/** Whether the instruction has a float type. */
export function hasFloatType(reader: InstructionReader): boolean {
  return reader.instruction.modifiers.some((name) => (floatTypes as readonly string[]).includes(name));
}

/** Compiles a float instruction with one to three sources. */
export function floatInstruction(
  reader: InstructionReader,
  type: ScalarType,
  sources: number,
  finish: Finish,
  compute: FloatFunction,
): Compiled {
  reader.end(sources + 1);
  const { codec, lanes } = codecOf(reader, type);
  const d = reader.result(type);
  const slots = Array.from({ length: sources }, (_, i) => reader.source(i + 1, type));
  const [a = 0, b = a, c = a] = slots;
  return lanes === 2 ? pairs(codec, finish, d, a, b, c, compute) : scalar(codec, finish, d, a, b, c, compute);
}

/** Rounds the exact result, then flushes, saturates and clamps it. */
function finished(codec: FloatCodec, finish: Finish, exact: number): number {
  let value = codec.round(exact, finish.rounding);
  if (finish.ftz && isTiny(codec, exact, finish.rounding)) value = exact * 0;
  if (finish.sat) value = saturate(value);
  if (finish.relu && isNegative(value)) value = 0; // a NaN stays
  return value;
}

/**
 * Whether a result is subnormal. An H200 decides that after rounding with an unbounded exponent: some results just
 * below the smallest normal number round to it.
 */
function isTiny(codec: FloatCodec, exact: number, rounding: Rounding): boolean {
  const least = minNormal(codec);
  if (Math.abs(exact) >= least) return false;
  const scale = 2 ** (codec.format?.precision ?? 0); // exact, and far from both ends of the format
  return Math.abs(codec.round(exact * scale, rounding)) < least * scale;
}

/** The smallest normal number of a format. */
export function minNormal({ format }: FloatCodec): number {
  return format === null ? 2 ** -1022 : 2 ** format.minExponent;
}

/** Compiles an instruction on one float per register. */
export const scalar: FloatInstruction = (codec, finish, d, a, b, c, compute) => {
  const { rounding, ftz, sat, relu } = finish;
  const { read, write } = codec;
  const least = minNormal(codec);
  if (codec.bits === 64) {
    const order = nanOrders[finish.nan ?? "hardware"];
    return ({ regs: r }, next) => (t) => {
      const [x, y, z] = [r.getFloat64(t + a, true), r.getFloat64(t + b, true), r.getFloat64(t + c, true)];
      const value = compute(x, y, z, rounding);
      if (Number.isNaN(value)) writeNan64(r, t + d, order(t + a, t + b, t + c));
      else r.setFloat64(t + d, value, true);
      return next;
    };
  }
  if (codec.bits === 32 && rounding === "rn" && !ftz && !sat && !relu) {
    return ({ regs: r }, next) => (t) => {
      const value = compute(r.getFloat32(t + a, true), r.getFloat32(t + b, true), r.getFloat32(t + c, true), "rn");
      if (Number.isNaN(value)) r.setInt32(t + d, NAN32, true);
      else r.setFloat32(t + d, value, true); // which rounds
      return next;
    };
  }
  return ({ regs: r }, next) => (t) => {
    let [x, y, z] = [read(r, t + a), read(r, t + b), read(r, t + c)];
    if (ftz) [x, y, z] = [flush(x, least), flush(y, least), flush(z, least)];
    write(r, t + d, finished(codec, finish, compute(x, y, z, rounding)));
    return next;
  };
};

/** Which of several NaN is propagated: by hardware adders and multipliers, and by division, a software routine. */
const nanOrders = {
  hardware: (a: number, b: number, c: number): readonly number[] => [b, c, a],
  program: (a: number, b: number, c: number): readonly number[] => [a, b, c],
} as const;

/** Writes the NaN of an instruction on doubles: the first NaN operand, made quiet, or else the canonical NaN. */
function writeNan64(r: DataView, d: number, operands: readonly number[]): void {
  for (const slot of operands) {
    if (!Number.isNaN(r.getFloat64(slot, true))) continue;
    const [lo, hi] = [r.getInt32(slot, true), r.getInt32(slot + 4, true)];
    r.setInt32(d, lo, true);
    r.setInt32(d + 4, hi | 0x00080000, true);
    return;
  }
  codecs.f64.write(r, d, NaN);
}

/** Compiles an instruction on two 16-bit floats per word, each computed separately. */
const pairs: FloatInstruction = (codec, finish, d, a, b, c, compute) => {
  const { format } = codec;
  if (format === null) throw new Error("doubles do not come in pairs");
  const least = minNormal(codec);
  return ({ regs: r }, next) => (t) => {
    let word = 0;
    for (const half of [0, 2]) {
      let [x, y, z] = [codec.read(r, t + a + half), codec.read(r, t + b + half), codec.read(r, t + c + half)];
      if (finish.ftz) [x, y, z] = [flush(x, least), flush(y, least), flush(z, least)];
      word |= encode16(format, finished(codec, finish, compute(x, y, z, finish.rounding))) << (8 * half);
    }
    r.setInt32(t + d, word, true);
    return next;
  };
};

/** Reads the modifiers of an instruction that rounds: which are allowed depends on the type. */
function rounded(reader: InstructionReader, type: ScalarType, required: boolean): Finish {
  const rounding = reader.option("rn", "rz", "rm", "rp");
  if (rounding === null && required) reader.fail("expected one of .rn, .rz, .rm, .rp");
  if (type.bits === 16 || type.kind === "packed") {
    if (rounding !== null && rounding !== "rn") reader.fail(`.${type.name} rounds to nearest only`);
  }
  return { rounding: rounding ?? "rn", ...flags(reader, type) };
}

/** Reads the modifiers of a division or root: a rounding, or that it is approximate, and no saturation. */
function divided(reader: InstructionReader, type: ScalarType, approximate: boolean): Finish {
  if (approximate && type.name === "f64") reader.fail("the type .f64 is not understood here");
  const finish = approximate ? { rounding: "rn" as const, ...flags(reader, type) } : rounded(reader, type, true);
  if (finish.sat) reader.fail("the modifier .sat is not understood here");
  return finish;
}

/** Reads `.ftz` and `.sat` where the type supports them. */
function flags(reader: InstructionReader, type: ScalarType): { ftz: boolean; sat: boolean; relu: boolean } {
  const small = type.name === "f32" || type.name.startsWith("f16");
  return { ftz: small && reader.flag("ftz"), sat: small && reader.flag("sat"), relu: false };
}

/** Selects by width: `odd` for formats of up to 32 bits, `double` for binary64. */
function byWidth(type: ScalarType, odd: FloatFunction, double: FloatFunction): FloatFunction {
  return type.name === "f64" ? double : odd;
}

/** Whether rounding to a double first, to nearest, changes nothing: binary32 has less than half of its bits. */
function nearest(type: ScalarType, finish: Finish): boolean {
  return type.name === "f32" && finish.rounding === "rn";
}

function add(reader: InstructionReader): Compiled {
  if (!hasFloatType(reader)) return addInteger(reader);
  const type = reader.type(...floatTypes);
  const finish = rounded(reader, type, false);
  const odd: FloatFunction = nearest(type, finish) ? (a, b) => a + b : (a, b, _, rounding) => addToOdd(a, b, rounding);
  return floatInstruction(reader, type, 2, finish, byWidth(type, odd, (a, b, _, rounding) => add64f(a, b, rounding)));
}

function sub(reader: InstructionReader): Compiled {
  if (!hasFloatType(reader)) return subInteger(reader);
  const type = reader.type(...floatTypes);
  const finish = rounded(reader, type, false);
  const odd: FloatFunction = nearest(type, finish) ? (a, b) => a - b : (a, b, _, rounding) => addToOdd(a, -b, rounding);
  return floatInstruction(reader, type, 2, finish, byWidth(type, odd, (a, b, _, rounding) => add64f(a, -b, rounding)));
}

function mul(reader: InstructionReader): Compiled {
  if (!hasFloatType(reader)) return mulInteger(reader);
  const type = reader.type(...floatTypes);
  const finish = rounded(reader, type, false);
  return floatInstruction(
    reader,
    type,
    2,
    finish,
    byWidth(type, (a, b) => a * b, (a, b, _, rounding) => mul64f(a, b, rounding)),
  );
}

/** `fma`, and `mad` of floats, which is the same on every GPU of the last ten years. */
function fma(reader: InstructionReader): Compiled {
  if (!hasFloatType(reader)) return madInteger(reader);
  const type = reader.type(...(reader.instruction.opcode === "mad" ? ["f32", "f64"] : floatTypes));
  const finish = rounded(reader, type, true);
  const relu = type.bits === 16 || type.kind === "packed" ? reader.flag("relu") : false;
  if (relu && finish.sat) reader.fail(".relu and .sat exclude each other");
  return floatInstruction(reader, type, 3, { ...finish, relu }, byWidth(type, fmaToOdd, fma64));
}

function div(reader: InstructionReader): Compiled {
  if (!hasFloatType(reader)) return divInteger(reader, reader.type("u16", "s16", "u32", "s32", "u64", "s64"));
  const approximate = reader.option("approx", "full");
  const type = reader.type("f32", "f64");
  const finish = divided(reader, type, approximate !== null);
  const odd: FloatFunction = nearest(type, finish) ? (a, b) => a / b : divideToOdd;
  const divide = byWidth(type, odd, (a, b, _, rounding) => div64f(a, b, rounding));
  return floatInstruction(reader, type, 2, { ...finish, nan: "program" }, divide);
}

function rcp(reader: InstructionReader): Compiled {
  const approximate = reader.flag("approx");
  const type = reader.type("f32", "f64");
  if (approximate && type.name === "f64") return roughDouble(reader, type, (a) => 1 / a);
  const finish = divided(reader, type, approximate);
  const odd: FloatFunction = nearest(type, finish) ? (a) => 1 / a : (a) => divideToOdd(1, a);
  return floatInstruction(reader, type, 1, finish, byWidth(type, odd, (a, _b, _c, rounding) => div64f(1, a, rounding)));
}

function sqrt(reader: InstructionReader): Compiled {
  const approximate = reader.flag("approx");
  const type = reader.type("f32", "f64");
  const finish = divided(reader, type, approximate);
  const odd: FloatFunction = nearest(type, finish) ? Math.sqrt : sqrtToOdd;
  return floatInstruction(reader, type, 1, finish, byWidth(type, odd, (a, _b, _c, rounding) => sqrt64f(a, rounding)));
}

/** Approximations for doubles: only the upper word of the result is set, and `.ftz` is mandatory. */
function roughDouble(reader: InstructionReader, type: ScalarType, compute: (a: number) => number): Compiled {
  const least = minNormal(codecs.f64);
  if (!reader.flag("ftz")) reader.fail("expected .ftz");
  reader.end(2);
  const [d, a] = [reader.result(type), reader.source(1, type)];
  return ({ regs: r }, next) => (t) => {
    const value = compute(flush(r.getFloat64(t + a, true), least));
    codecs.f64.write(r, t + d, flush(value, least));
    r.setInt32(t + d, 0, true);
    return next;
  };
}

function rsqrt(reader: InstructionReader): Compiled {
  if (!reader.flag("approx")) reader.fail("expected .approx");
  const type = reader.type("f32", "f64");
  if (type.name === "f64") {
    return reader.instruction.modifiers.includes("ftz")
      ? roughDouble(reader, type, (a) => 1 / Math.sqrt(a))
      : floatInstruction(reader, type, 1, { rounding: "rn", ...flags(reader, type) }, (a) => 1 / Math.sqrt(a));
  }
  return floatInstruction(reader, type, 1, divided(reader, type, true), (a) => 1 / Math.sqrt(a));
}

/** An approximate function on binary32, and on those 16-bit formats that support it. */
function approximation(
  compute: (a: number) => number,
  ...types: (typeof floatTypes)[number][]
): Lowering {
  return (reader) => {
    if (!reader.flag("approx")) reader.fail("expected .approx");
    const type = reader.type("f32", ...types);
    const { opcode } = reader.instruction;
    const ftz = opcode !== "tanh" && !type.name.startsWith("f16") && reader.flag("ftz");
    if (!ftz && opcode === "ex2" && type.name.startsWith("bf16")) reader.fail("expected .ftz");
    return floatInstruction(
      reader,
      type,
      1,
      { rounding: "rn", ftz: ftz && type.name === "f32", sat: false, relu: false },
      compute,
    );
  };
}

/** Instructions that round, by opcode; some take integers too. */
export const floatArithmeticInstructions: InstructionTable = {
  add,
  sub,
  mul,
  fma,
  mad: fma,
  div,
  rcp,
  sqrt,
  rsqrt,
  sin: approximation(Math.sin),
  cos: approximation(Math.cos),
  lg2: approximation(Math.log2),
  ex2: approximation((a) => 2 ** a, "f16", "bf16", "f16x2", "bf16x2"),
  tanh: approximation(Math.tanh, "f16", "bf16", "f16x2", "bf16x2"),
};
