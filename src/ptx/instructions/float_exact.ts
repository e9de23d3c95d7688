/**
 * Float instructions whose results need no rounding: signs, minimum and maximum, and classification.
 *
 * @module
 */
import type { Compiled } from "../execution_state.ts";
import { codecOf, codecs, flush, NAN32 } from "../float_registers.ts";
import {
  type Finish,
  type FloatFunction,
  floatInstruction,
  floatTypes,
  hasFloatType,
  minNormal,
  scalar,
} from "./float_arithmetic.ts";
import { minMaxInteger, unarySigned } from "./integer_arithmetic.ts";
import { inSequence } from "./op_templates.ts";
import type { InstructionReader, InstructionTable, Lowering } from "../operands.ts";

/**
 * `abs` and `neg` affect only the sign bit: a NaN keeps its other bits. With `.ftz`, and in binary16, an H200 produces
 * the canonical NaN of the format.
 */
function signBit(which: "abs" | "neg"): Lowering {
  return (reader) => {
    if (!hasFloatType(reader)) {
      const type = reader.type("s16", "s32", "s64");
      return which === "abs"
        ? unarySigned(reader, type, Math.abs, (a) => a < 0n ? -a : a)
        : unarySigned(reader, type, (a) => -a, (a) => -a);
    }
    const type = reader.type(...floatTypes);
    const { codec, lanes } = codecOf(reader, type);
    const ftz = (type.name === "f32" || type.name === "f16") && reader.flag("ftz");
    reader.end(2);
    const [d, a] = [reader.result(type), reader.source(1, type)];
    const least = minNormal(codec);
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

/** Minimum or maximum; -0 is less than 0, and a number wins over a NaN unless `.NaN` is given. */
function minMax(which: "min" | "max"): Lowering {
  const pick = Math[which];
  return (reader) => {
    if (!hasFloatType(reader)) return minMaxInteger(reader, reader.type(), which);
    const type = reader.type(...floatTypes);
    const nan = type.name !== "f64" && reader.flag("NaN");
    const xorsign = reader.flag("xorsign");
    if (xorsign && !reader.flag("abs")) reader.fail("expected .xorsign.abs");
    const ftz = type.name !== "f64" && !type.name.startsWith("bf") && reader.flag("ftz");
    const numbers: FloatFunction = (a, b) => {
      if (!Number.isNaN(a) && !Number.isNaN(b)) return pick(a, b);
      return nan ? NaN : !Number.isNaN(a) ? a : b;
    };
    const finish: Finish = { rounding: "rn", ftz, sat: false, relu: false };
    if (!xorsign) return floatInstruction(reader, type, 2, finish, numbers);
    if (type.name !== "f32") reader.fail("the modifier .xorsign is for .f32 only");
    const sizes: FloatFunction = (a, b, c, rounding) => numbers(Math.abs(a), Math.abs(b), c, rounding);
    const place = reader.context.frame.allocate(4);
    const [d, a, b] = [reader.result(type), reader.source(1, type), reader.source(2, type)];
    reader.end(3);
    const size = scalar(codecs.f32, finish, place, a, b, b, sizes);
    // The signs come from the operands' bits, even if one is NaN.
    return inSequence(size, ({ regs: r }, next) => (t) => {
      const sign = (r.getInt32(t + a, true) ^ r.getInt32(t + b, true)) & 0x80000000;
      const bits = r.getInt32(t + place, true);
      r.setInt32(t + d, bits === NAN32 ? bits : bits ^ sign, true);
      return next;
    });
  };
}

/** The magnitude of `b` with the sign of `a`, which PTX puts first. */
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

/** Tests the class of a number. */
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

/** Instructions that do not round, by opcode; some take integers too. */
export const exactFloatInstructions: InstructionTable = {
  abs: signBit("abs"),
  neg: signBit("neg"),
  min: minMax("min"),
  max: minMax("max"),
  copysign,
  testp,
};
