/**
 * PTX that converts one element, by the rules of `conversion.ts`, for every device since sm_70: bfloat16, which older
 * ones lack, is converted from float32 by hand.
 *
 * @module
 */
import { type Conversion, isInteger, type NumberType } from "./conversion.ts";
import type { PtxWriter, Register } from "./ptx_writer.ts";

/** How a word is moved between memory and registers: one register for each of its elements, or parts of elements. */
export interface Access {
  /** The type of `ld` and `st`. */
  readonly type: string;
  /** The kind of the registers. */
  readonly kind: "h" | "r" | "d";
  readonly count: 1 | 2 | 4;
}

/** How words of `bytes` bytes with elements of a type are moved: at most 16 bytes, and four numbers. */
export function accessOf(type: NumberType, bytes: number): Access {
  const { bits } = type;
  const count = bytes * 8 / bits as Access["count"]; // a power of two, as the plan has ensured
  return { type: `${count === 1 ? "" : `v${count}.`}u${bits}`, kind: kindOf(type), count };
}

function kindOf({ bits }: NumberType): Access["kind"] {
  return bits <= 16 ? "h" : bits === 32 ? "r" : "d";
}

/** A number in a register wide enough for arithmetic. */
interface Wide {
  readonly register: Register;
  readonly type: "s32" | "u32" | "s64" | "u64" | "f32" | "f64";
}

/**
 * Converts the contents of a word: adjacent elements, or the parts of a complex one.
 *
 * @param parts the loaded registers
 * @returns the registers to store
 */
export function converted(ptx: PtxWriter, conversion: Conversion, parts: readonly Register[]): Register[] {
  if (conversion.from.isComplex) return element(ptx, conversion, parts);
  return parts.flatMap((part) => element(ptx, conversion, [part]));
}

function element(ptx: PtxWriter, { from, to }: Conversion, parts: readonly Register[]): Register[] {
  const numbers = parts.map((part) => widened(ptx, from, part));
  if (to.kind === "bool") return [truth(ptx, numbers)];
  const wanted = numbers.slice(0, to.isComplex ? 2 : 1).map((number) => narrowed(ptx, to, number));
  if (to.isComplex && !from.isComplex) wanted.push(ptx.make(kindOf(to), `mov.b${to.bits} $, 0`));
  return wanted;
}

function widened(ptx: PtxWriter, { kind, bits }: NumberType, register: Register): Wide {
  switch (kind) {
    case "bool": {
      const isTrue = ptx.make("p", `setp.ne.u16 $, ${register}, 0`);
      return { register: ptx.make("r", `selp.u32 $, 1, 0, ${isTrue}`), type: "u32" };
    }
    case "bfloat": {
      const low = ptx.make("r", `cvt.u32.u16 $, ${register}`);
      return { register: ptx.make("r", `shl.b32 $, ${low}, 16`), type: "f32" };
    }
    case "float":
      if (bits === 16) return { register: ptx.make("r", `cvt.f32.f16 $, ${register}`), type: "f32" };
      return { register, type: bits === 64 ? "f64" : "f32" };
    default: {
      const [sign, wide] = [kind === "int" ? "s" : "u", bits === 64 ? 64 : 32] as const;
      const type = `${sign}${wide}` as const;
      if (bits >= 32) return { register, type };
      return { register: ptx.make("r", `cvt.${type}.${sign}${bits} $, ${register}`), type };
    }
  }
}

function isFloat({ type }: Wide): boolean {
  return type === "f32" || type === "f64";
}

// law copy/truth: copy/conversion
/** A boolean as 1 or 0 in a register. NaN, which equals nothing, is not zero. */
function truth(ptx: PtxWriter, numbers: readonly Wide[]): Register {
  const parts = numbers.map((number) => {
    const { register, type } = number;
    const zero = type === "f32" ? "0f00000000" : type === "f64" ? "0d0000000000000000" : "0";
    const isTrue = ptx.make("p", `setp.${isFloat(number) ? "neu" : "ne"}.${type} $, ${register}, ${zero}`);
    return ptx.make("h", `selp.u16 $, 1, 0, ${isTrue}`);
  });
  return parts.reduce((one, other) => ptx.make("h", `or.b16 $, ${one}, ${other}`));
}

function narrowed(ptx: PtxWriter, to: NumberType, number: Wide): Register {
  if (isInteger(to)) return isFloat(number) ? saturated(ptx, to, number) : wrapped(ptx, to, number);
  if (to.kind === "bfloat") return bfloat(ptx, oddFloat(ptx, number));
  const { register, type } = number;
  const wanted = `f${to.bits}`;
  if (type === wanted) return register;
  const isExact = wanted === "f64" && type === "f32";
  return ptx.make(kindOf(to), `cvt${isExact ? "" : ".rn"}.${wanted}.${type} $, ${register}`);
}

/** Truncates an integer to its lowest bits, or extends it. */
function wrapped(ptx: PtxWriter, to: NumberType, { register, type }: Wide): Register {
  const isLong = type === "s64" || type === "u64";
  if (to.bits === 64) return isLong ? register : ptx.make("d", `cvt.${type[0]}64.${type} $, ${register}`);
  const low = isLong ? ptx.make("r", `cvt.u32.u64 $, ${register}`) : register;
  return to.bits === 32 ? low : ptx.make("h", `cvt.u16.u32 $, ${low}`);
}

// law copy/saturated: copy/conversion
/** Truncates a float to an integer, which saturates; PTX's result for NaN depends on the type. */
function saturated(ptx: PtxWriter, to: NumberType, { register, type }: Wide): Register {
  const sign = to.kind === "int" ? "s" : "u";
  const isNumber = ptx.make("p", `setp.num.${type} $, ${register}, ${register}`);
  if (to.bits === 64) {
    const long = ptx.make("d", `cvt.rzi.${sign}64.${type} $, ${register}`);
    return ptx.make("d", `selp.b64 $, ${long}, 0, ${isNumber}`);
  }
  const whole = ptx.make("r", `cvt.rzi.${sign}32.${type} $, ${register}`);
  let fit = ptx.make("r", `selp.b32 $, ${whole}, 0, ${isNumber}`);
  if (to.bits === 32) return fit;
  const most = 2 ** (to.bits - (sign === "s" ? 1 : 0)) - 1;
  fit = ptx.make("r", `min.${sign}32 $, ${fit}, ${most}`);
  if (sign === "s") fit = ptx.make("r", `max.s32 $, ${fit}, ${-most - 1}`);
  return ptx.make("h", `cvt.u16.u32 $, ${fit}`);
}

// law copy/oddFloat: copy/conversion
/**
 * Converts a number to float32: towards zero, and with the last bit set if anything was lost. Rounded once more, to
 * less than half as many bits, it gives the same result as the number itself.
 */
function oddFloat(ptx: PtxWriter, { register, type }: Wide): Register {
  if (type === "f32") return register;
  const cut = ptx.make("r", `cvt.rz.f32.${type} $, ${register}`);
  const kind = type === "s32" || type === "u32" ? "r" : "d";
  const back = ptx.make(kind, `cvt.${type === "f64" ? "" : "rzi."}${type}.f32 $, ${cut}`);
  const isLossy = ptx.make("p", `setp.${type === "f64" ? "neu" : "ne"}.${type} $, ${back}, ${register}`);
  return ptx.make("r", `or.b32 $, ${cut}, ${ptx.make("r", `selp.u32 $, 1, 0, ${isLossy}`)}`);
}

/** The upper half of a float32, rounded to nearest, ties to even. */
function bfloat(ptx: PtxWriter, register: Register): Register {
  const upper = ptx.make("r", `shr.u32 $, ${register}, 16`);
  const isOdd = ptx.make("r", `and.b32 $, ${upper}, 1`);
  const half = ptx.make("r", `add.u32 $, ${isOdd}, 32767`);
  const rounded = ptx.make("r", `shr.u32 $, ${ptx.make("r", `add.u32 $, ${register}, ${half}`)}, 16`);
  const isNumber = ptx.make("p", `setp.num.f32 $, ${register}, ${register}`);
  return ptx.make("h", `cvt.u16.u32 $, ${ptx.make("r", `selp.b32 $, ${rounded}, ${0x7fc0}, ${isNumber}`)}`);
}
