/**
 * Floating-point arithmetic. Everything that PTX rounds is rounded once and exactly; what PTX calls approximate is
 * computed as a double and rounded to nearest, which is at least as good as what a GPU gives but not the same.
 *
 * @module
 */
import { codecs, encode16, type FloatCodec, flush, NAN32, saturate } from "./float_registers.ts";
import {
  addInteger,
  divInteger,
  inSequence,
  madInteger,
  minMaxInteger,
  mulInteger,
  subInteger,
  unarySigned,
} from "./lower_integer.ts";
import type { Compiled } from "./execution_state.ts";
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
} from "./rounding.ts";
import type { InstructionReader } from "./operands.ts";
import type { ScalarType } from "./types.ts";

/** How a result is made of what was computed. */
interface Finish {
  readonly rounding: Rounding;
  /** Numbers too small to be normal are zero, as operands and as results. */
  readonly ftz: boolean;
  /** Into [0, 1]. */
  readonly sat: boolean;
  /** Nothing below zero. */
  readonly relu: boolean;
  /** Which NaN is passed on. Default: as hardware does it. */
  readonly nan?: keyof typeof nanOrders;
}

/** A function on doubles: for formats of up to 32 bits exact or rounded to odd, for binary64 rounded as asked. */
type FloatFunction = (a: number, b: number, c: number, rounding: Rounding) => number;

const names = ["f32", "f64", "f16", "bf16", "f16x2", "bf16x2"] as const;

/** The codec of a type, and how many numbers a register of it holds. */
export function codecOf(
  reader: InstructionReader,
  type: ScalarType,
): { readonly codec: FloatCodec; readonly lanes: number } {
  switch (type.name) {
    case "f16":
    case "bf16":
    case "f32":
    case "f64":
      return { codec: codecs[type.name], lanes: 1 };
    case "f16x2":
      return { codec: codecs.f16, lanes: 2 };
    case "bf16x2":
      return { codec: codecs.bf16, lanes: 2 };
  }
  return reader.fail(`the type .${type.name} is not understood here`);
}

/** Whether the instruction's type is one of floats. */
function isFloat(reader: InstructionReader): boolean {
  return reader.instruction.modifiers.some((name) => (names as readonly string[]).includes(name));
}

/** An instruction on floats with one to three sources. */
function floats(
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
  return lanes === 2 ? pairs(codec, finish, d, a, b, c, compute) : single(codec, finish, d, a, b, c, compute);
}

/** What happens to the exact result and to the rounded one. */
function finished(codec: FloatCodec, finish: Finish, exact: number): number {
  let value = codec.round(exact, finish.rounding);
  if (finish.ftz && isTiny(codec, exact, finish.rounding)) value = exact * 0;
  if (finish.sat) value = saturate(value);
  // NaN stays what it is.
  if (finish.relu && (value < 0 || Object.is(value, -0))) value = 0;
  return value;
}

/**
 * Whether a result is too small to be normal. An H200 asks this of what it has rounded as if exponents had no end: just below
 * the smallest normal number there are results that round to it.
 */
function isTiny(codec: FloatCodec, exact: number, rounding: Rounding): boolean {
  const least = leastNormal(codec);
  if (Math.abs(exact) >= least) return false;
  const scale = 2 ** (codec.format?.precision ?? 0); // exact, and far from both ends of the format
  return Math.abs(codec.round(exact * scale, rounding)) < least * scale;
}

/** The smallest normal number of a format. */
function leastNormal({ format }: FloatCodec): number {
  return format === null ? 2 ** -1022 : 2 ** format.minExponent;
}

function single(
  codec: FloatCodec,
  finish: Finish,
  d: number,
  a: number,
  b: number,
  c: number,
  compute: FloatFunction,
): Compiled {
  const { rounding, ftz, sat, relu } = finish;
  const { read, write } = codec;
  const least = leastNormal(codec);
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
}

/** Which of several NaN is passed on: as adders and multipliers do it, and as division does, which is a program. */
const nanOrders = {
  hardware: (a: number, b: number, c: number): readonly number[] => [b, c, a],
  program: (a: number, b: number, c: number): readonly number[] => [a, b, c],
} as const;

/** The NaN of an instruction on doubles: the first operand that is one, made quiet, or one of its own. */
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

/** Two 16-bit numbers in a word, each computed with on its own. */
function pairs(
  codec: FloatCodec,
  finish: Finish,
  d: number,
  a: number,
  b: number,
  c: number,
  compute: FloatFunction,
): Compiled {
  const { format } = codec;
  if (format === null) throw new Error("doubles come one by one");
  const least = leastNormal(codec);
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
}

/** Modifiers of instructions that round: which are allowed depends on the type. */
function rounded(reader: InstructionReader, type: ScalarType, required: boolean): Finish {
  const rounding = reader.option("rn", "rz", "rm", "rp");
  if (rounding === null && required) reader.fail("expected one of .rn, .rz, .rm, .rp");
  if (type.bits === 16 || type.kind === "packed") {
    if (rounding !== null && rounding !== "rn") reader.fail(`.${type.name} rounds to nearest only`);
  }
  return { rounding: rounding ?? "rn", ...flags(reader, type) };
}

/** Modifiers of a division or root: it says how it is rounded, or that it is approximate, and does not saturate. */
function divided(reader: InstructionReader, type: ScalarType, approximate: boolean): Finish {
  if (approximate && type.name === "f64") reader.fail("the type .f64 is not understood here");
  const finish = approximate ? { rounding: "rn" as const, ...flags(reader, type) } : rounded(reader, type, true);
  if (finish.sat) reader.fail("the modifier .sat is not understood here");
  return finish;
}

/** `.ftz` and `.sat` where the type has them. */
function flags(reader: InstructionReader, type: ScalarType): { ftz: boolean; sat: boolean; relu: boolean } {
  const small = type.name === "f32" || type.name.startsWith("f16");
  return { ftz: small && reader.flag("ftz"), sat: small && reader.flag("sat"), relu: false };
}

/** By the width: `odd` for formats of up to 32 bits, `double` for binary64. */
function byWidth(type: ScalarType, odd: FloatFunction, double: FloatFunction): FloatFunction {
  return type.name === "f64" ? double : odd;
}

/** Where rounding to nearest a double first is the same: binary32 has less than half of its bits. */
function nearest(type: ScalarType, finish: Finish): boolean {
  return type.name === "f32" && finish.rounding === "rn";
}

function add(reader: InstructionReader): Compiled {
  if (!isFloat(reader)) return addInteger(reader);
  const type = reader.type(...names);
  const finish = rounded(reader, type, false);
  const odd: FloatFunction = nearest(type, finish) ? (a, b) => a + b : (a, b, _, rounding) => addToOdd(a, b, rounding);
  return floats(reader, type, 2, finish, byWidth(type, odd, (a, b, _, rounding) => add64f(a, b, rounding)));
}

function sub(reader: InstructionReader): Compiled {
  if (!isFloat(reader)) return subInteger(reader);
  const type = reader.type(...names);
  const finish = rounded(reader, type, false);
  const odd: FloatFunction = nearest(type, finish) ? (a, b) => a - b : (a, b, _, rounding) => addToOdd(a, -b, rounding);
  return floats(reader, type, 2, finish, byWidth(type, odd, (a, b, _, rounding) => add64f(a, -b, rounding)));
}

function mul(reader: InstructionReader): Compiled {
  if (!isFloat(reader)) return mulInteger(reader);
  const type = reader.type(...names);
  const finish = rounded(reader, type, false);
  return floats(reader, type, 2, finish, byWidth(type, (a, b) => a * b, (a, b, _, rounding) => mul64f(a, b, rounding)));
}

/** `fma`, and `mad` of floats, which is the same on every GPU of the last ten years. */
function fma(reader: InstructionReader): Compiled {
  if (!isFloat(reader)) return madInteger(reader);
  const type = reader.type(...names);
  const finish = rounded(reader, type, true);
  const relu = type.bits === 16 || type.kind === "packed" ? reader.flag("relu") : false;
  return floats(reader, type, 3, { ...finish, relu }, byWidth(type, fmaToOdd, fma64));
}

function div(reader: InstructionReader): Compiled {
  if (!isFloat(reader)) return divInteger(reader, reader.type("u16", "s16", "u32", "s32", "u64", "s64"));
  const approximate = reader.option("approx", "full");
  const type = reader.type("f32", "f64");
  const finish = divided(reader, type, approximate !== null);
  const odd: FloatFunction = nearest(type, finish) ? (a, b) => a / b : divideToOdd;
  const divide = byWidth(type, odd, (a, b, _, rounding) => div64f(a, b, rounding));
  return floats(reader, type, 2, { ...finish, nan: "program" }, divide);
}

function rcp(reader: InstructionReader): Compiled {
  const approximate = reader.flag("approx");
  const type = reader.type("f32", "f64");
  if (approximate && type.name === "f64") return roughDouble(reader, type, (a) => 1 / a);
  const finish = divided(reader, type, approximate);
  const odd: FloatFunction = nearest(type, finish) ? (a) => 1 / a : (a) => divideToOdd(1, a);
  return floats(reader, type, 1, finish, byWidth(type, odd, (a, _b, _c, rounding) => div64f(1, a, rounding)));
}

function sqrt(reader: InstructionReader): Compiled {
  const approximate = reader.flag("approx");
  const type = reader.type("f32", "f64");
  const finish = divided(reader, type, approximate);
  const odd: FloatFunction = nearest(type, finish) ? Math.sqrt : sqrtToOdd;
  return floats(reader, type, 1, finish, byWidth(type, odd, (a, _b, _c, rounding) => sqrt64f(a, rounding)));
}

/** Approximations of doubles: of the upper word alone, with `.ftz` always. */
function roughDouble(reader: InstructionReader, type: ScalarType, compute: (a: number) => number): Compiled {
  if (!reader.flag("ftz")) reader.fail("expected .ftz");
  reader.end(2);
  const [d, a] = [reader.result(type), reader.source(1, type)];
  return ({ regs: r }, next) => (t) => {
    const x = r.getFloat64(t + a, true);
    const value = compute(Math.abs(x) < 2 ** -1022 ? x * 0 : x);
    codecs.f64.write(r, t + d, Math.abs(value) < 2 ** -1022 ? value * 0 : value);
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
      : floats(reader, type, 1, { rounding: "rn", ...flags(reader, type) }, (a) => 1 / Math.sqrt(a));
  }
  return floats(reader, type, 1, divided(reader, type, true), (a) => 1 / Math.sqrt(a));
}

/** An approximate function of binary32, and of the 16-bit formats where they have it. */
function approximation(
  compute: (a: number) => number,
  ...types: (typeof names)[number][]
): (reader: InstructionReader) => Compiled {
  return (reader) => {
    if (!reader.flag("approx")) reader.fail("expected .approx");
    const type = reader.type("f32", ...types);
    const ftz = reader.flag("ftz");
    return floats(
      reader,
      type,
      1,
      { rounding: "rn", ftz: ftz && type.name === "f32", sat: false, relu: false },
      compute,
    );
  };
}

/**
 * `abs` and `neg` are of the sign bit alone: a NaN keeps the rest. With `.ftz`, and in binary16, an H200 gives the one
 * NaN of the format.
 */
function signBit(which: "abs" | "neg"): (reader: InstructionReader) => Compiled {
  return (reader) => {
    if (!isFloat(reader)) {
      const type = reader.type();
      return which === "abs"
        ? unarySigned(reader, type, Math.abs, (a) => a < 0n ? -a : a)
        : unarySigned(reader, type, (a) => -a, (a) => -a);
    }
    const type = reader.type(...names);
    const { codec, lanes } = codecOf(reader, type);
    const ftz = type.name !== "f64" && reader.flag("ftz");
    reader.end(2);
    if (ftz && lanes === 2) reader.fail("the modifier .ftz is not understood here");
    const [d, a] = [reader.result(type), reader.source(1, type)];
    const least = leastNormal(codec);
    const mask = lanes === 2 ? 0x80008000 : type.bits === 16 ? 0x8000 : 0x80000000;
    const flip = (word: number): number => which === "abs" ? word & ~mask : word ^ mask;
    if (type.bits === 64) {
      return ({ regs: r }, next) => (t) => {
        const [lo, hi] = [r.getInt32(t + a, true), r.getInt32(t + a + 4, true)];
        r.setInt32(t + d, lo, true);
        r.setInt32(t + d + 4, flip(hi), true);
        return next;
      };
    }
    return ({ regs: r }, next) => (t) => {
      r.setInt32(t + d, flip(type.bits === 16 ? r.getUint16(t + a, true) : r.getInt32(t + a, true)), true);
      if (ftz || type.name === "f16") {
        const value = codec.read(r, t + d);
        codec.write(r, t + d, ftz ? flush(value, least) : value);
      }
      return next;
    };
  };
}

/** The smaller or larger; -0 is smaller than 0, and a NaN gives way to a number unless `.NaN` is asked for. */
function minMax(which: "min" | "max"): (reader: InstructionReader) => Compiled {
  const pick = Math[which];
  return (reader) => {
    if (!isFloat(reader)) return minMaxInteger(reader, reader.type(), which);
    const type = reader.type(...names);
    const nan = reader.flag("NaN");
    const xorsign = reader.flag("xorsign");
    if (xorsign && !reader.flag("abs")) reader.fail("expected .xorsign.abs");
    const ftz = type.name !== "f64" && !type.name.startsWith("bf") && reader.flag("ftz");
    const numbers: FloatFunction = (a, b) => {
      if (!Number.isNaN(a) && !Number.isNaN(b)) return pick(a, b);
      return nan ? NaN : !Number.isNaN(a) ? a : b;
    };
    const finish: Finish = { rounding: "rn", ftz, sat: false, relu: false };
    if (!xorsign) return floats(reader, type, 2, finish, numbers);
    if (type.name !== "f32") reader.fail("the modifier .xorsign is understood of .f32 alone");
    const sizes: FloatFunction = (a, b, c, rounding) => numbers(Math.abs(a), Math.abs(b), c, rounding);
    const place = reader.context.frame.allocate(4);
    const [d, a, b] = [reader.result(type), reader.source(1, type), reader.source(2, type)];
    reader.end(3);
    const size = single(codecs.f32, finish, place, a, b, b, sizes);
    // The signs are those of the operands' bits, also where one is NaN.
    return inSequence(size, ({ regs: r }, next) => (t) => {
      const sign = (r.getInt32(t + a, true) ^ r.getInt32(t + b, true)) & 0x80000000;
      const bits = r.getInt32(t + place, true);
      r.setInt32(t + d, bits === NAN32 ? bits : bits ^ sign, true);
      return next;
    });
  };
}

/** Whether a number has its sign set. */
export function isNegative(value: number): boolean {
  return value < 0 || Object.is(value, -0);
}

/** The number of `b` with the sign of `a`, which PTX names first. */
function copysign(reader: InstructionReader): Compiled {
  const type = reader.type("f32", "f64");
  reader.end(3);
  const [d, a, b] = [reader.result(type), reader.source(1, type), reader.source(2, type)];
  const top = type.bits / 8 - 4;
  return ({ regs: r }, next) => (t) => {
    const sign = r.getInt32(t + a + top, true) & 0x80000000;
    const upper = (r.getInt32(t + b + top, true) & 0x7fffffff) | sign;
    const lower = r.getInt32(t + b, true);
    r.setInt32(t + d, lower, true);
    r.setInt32(t + d + top, upper, true);
    return next;
  };
}

/** Asks what kind of number it is. */
function testp(reader: InstructionReader): Compiled {
  const property = reader.choice("finite", "infinite", "number", "notanumber", "normal", "subnormal");
  const type = reader.type("f32", "f64");
  reader.end(2);
  const { codec } = codecOf(reader, type);
  const d = reader.predicate(reader.operand(0)).slot;
  const a = reader.source(1, type);
  const least = type.name === "f32" ? 2 ** -126 : 2 ** -1022;
  const test: Readonly<Record<typeof property, (x: number) => boolean>> = {
    finite: Number.isFinite,
    infinite: (x) => Math.abs(x) === Infinity,
    number: (x) => !Number.isNaN(x),
    notanumber: (x) => Number.isNaN(x),
    normal: (x) => Number.isFinite(x) && (x === 0 || Math.abs(x) >= least),
    subnormal: (x) => x !== 0 && Math.abs(x) < least,
  };
  const holds = test[property];
  return ({ regs: r }, next) => (t) => {
    r.setInt32(t + d, holds(codec.read(r, t + a)) ? 1 : 0, true);
    return next;
  };
}

/** Instructions that floats have, some of them with integers, by opcode. */
export const floatInstructions: Readonly<Record<string, (reader: InstructionReader) => Compiled>> = {
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
  abs: signBit("abs"),
  neg: signBit("neg"),
  min: minMax("min"),
  max: minMax("max"),
  copysign,
  testp,
};
