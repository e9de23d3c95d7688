/**
 * `cvt`: converts between integers and floats of all widths, with the rounding and saturation that it specifies.
 *
 * @module
 */
import type { Compiled } from "../execution_state.ts";
import { codecOf, encode16, flush, isNegative, NAN32, saturate } from "../float_registers.ts";
import { bigReaderOf, copyBits, readerOf } from "./op_templates.ts";
import type { InstructionReader, InstructionTable } from "../operands.ts";
import { bfloat16, bigToOdd, binary16, fromBig, type Rounding, roundTo, roundToInteger } from "../rounding.ts";
import { isSigned, type ScalarType, scalarType } from "../types.ts";

const integers = ["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"];
const floats = ["f16", "bf16", "f32", "f64"];

const toInteger: Readonly<Record<"rni" | "rzi" | "rmi" | "rpi", Rounding>> = {
  rni: "rn",
  rzi: "rz",
  rmi: "rm",
  rpi: "rp",
};

/** Writes an integer into a register that may be wider than its type, sign- or zero-extended. */
function writerOf(type: ScalarType, registerBits: number): (r: DataView, slot: number, value: bigint) => void {
  const fit = (value: bigint): bigint =>
    isSigned(type) ? BigInt.asIntN(type.bits, value) : BigInt.asUintN(type.bits, value);
  if (registerBits === 64) return (r, slot, value) => r.setBigInt64(slot, BigInt.asIntN(64, fit(value)), true);
  const mask = registerBits === 16 ? 0xffff : -1;
  return (r, slot, value) => r.setInt32(slot, Number(BigInt.asIntN(32, fit(value))) & mask, true);
}

/** The smallest and largest values of an integer type. */
function limits(type: ScalarType): readonly [min: bigint, max: bigint] {
  const bits = BigInt(type.bits);
  return isSigned(type) ? [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n] : [0n, (1n << bits) - 1n];
}

/** A conversion as written: its types, slots and modifiers. */
interface Conversion {
  readonly to: ScalarType;
  readonly from: ScalarType;
  readonly d: number;
  readonly a: number;
  /** Bits of the result's register, which may be wider than its type. */
  readonly width: number;
  readonly integerRounding: keyof typeof toInteger | null;
  readonly floatRounding: Rounding | null;
  readonly ftz: boolean;
  readonly sat: boolean;
  readonly relu: boolean;
}

function cvt(reader: InstructionReader): Compiled {
  if (reader.flag("pack")) return reader.fail("the modifier .pack is not understood");
  const integerRounding = reader.option("rni", "rzi", "rmi", "rpi");
  const floatRounding = reader.option("rn", "rz", "rm", "rp", "rna");
  const [ftz, sat, relu] = [reader.flag("ftz"), reader.flag("sat"), reader.flag("relu")];
  const satfinite = reader.flag("satfinite");
  const to = reader.type();
  const from = reader.type();
  if (satfinite) reader.fail("the modifier .satfinite is not understood");
  if (ftz && from.name !== "f32" && to.name !== "f32") reader.fail("the modifier .ftz is for .f32");
  const isPair = to.name === "f16x2" || to.name === "bf16x2";
  if (isPair && (ftz || sat || integerRounding !== null)) reader.fail("pairs can only be rounded");
  if (isPair) return packed(reader, to, from, floatRounding, relu);
  reader.end(2);
  const [isToInteger, isFromInteger] = [integers.includes(to.name), integers.includes(from.name)];
  if (!isToInteger && !floats.includes(to.name)) reader.fail(`the type .${to.name} is not understood`);
  if (!isFromInteger && !floats.includes(from.name)) reader.fail(`the type .${from.name} is not understood`);
  // To and from bfloat16, unlike other types, an integer of 8 bits needs a register of 8 bits.
  const isWide = to.name !== "bf16" && from.name !== "bf16";
  if (sat && !isWide) reader.fail("the modifier .sat is not for .bf16");
  if (relu && ftz) reader.fail(".relu and .ftz exclude each other");
  const target = reader.operand(0);
  const d = reader.to(target, to, isWide);
  const width = target.kind === "name" && target.name === "_" ? 64 : reader.register(target).type.bits;
  const a = reader.source(1, from, isWide);
  const conversion = { to, from, d, a, width, integerRounding, floatRounding, ftz, sat, relu };
  if (isFromInteger) return (isToInteger ? integerToInteger : integerToFloat)(reader, conversion);
  return (isToInteger ? floatToInteger : floatToFloat)(reader, conversion);
}

function floatToInteger(reader: InstructionReader, conversion: Conversion): Compiled {
  const { to, from, d, a, width, integerRounding, floatRounding, ftz, relu } = conversion;
  if (integerRounding === null) return reader.fail("expected one of .rni, .rzi, .rmi, .rpi");
  if (floatRounding !== null || relu) reader.fail("only floats have .relu and float rounding");
  const write = writerOf(to, width);
  const { read, bits } = codecOf(reader, from).codec;
  const [min, max] = limits(to);
  const rounding = toInteger[integerRounding];
  // As PTX specifies for NaN: zero, or only the top bit set if either side has 64 bits.
  const nan = from.bits === 64 || to.bits === 64 ? 1n << BigInt(to.bits - 1) : 0n;
  return ({ regs: r }, next) => (t) => {
    const number = read(r, t + a);
    const value = roundToInteger(ftz && bits === 32 ? flush(number) : number, rounding);
    if (Number.isNaN(value)) write(r, t + d, nan);
    else if (value <= Number(min)) write(r, t + d, min);
    else if (value >= Number(max)) write(r, t + d, max);
    else write(r, t + d, BigInt(value));
    return next;
  };
}

function integerToFloat(reader: InstructionReader, conversion: Conversion): Compiled {
  const { to, from, d, a, integerRounding, floatRounding, ftz, sat, relu } = conversion;
  if (floatRounding === null) return reader.fail("expected one of .rn, .rz, .rm, .rp");
  if (integerRounding !== null || ftz || relu) reader.fail("integers have no .ftz, .relu or fractions");
  const { codec } = codecOf(reader, to);
  const read = bigReaderOf(from);
  const small = readerOf(from);
  return ({ regs: r }, next) => (t) => {
    // Integers up to 32 bits are exact as doubles; 64-bit ones become a double that can be rounded again.
    const value = from.bits < 64
      ? small(r, t + a)
      : codec.format === null
      ? fromBig(read(r, t + a), floatRounding)
      : bigToOdd(read(r, t + a));
    const rounded = codec.round(value, floatRounding);
    codec.write(r, t + d, sat ? saturate(rounded) : rounded);
    return next;
  };
}

function floatToFloat(reader: InstructionReader, conversion: Conversion): Compiled {
  const { to, from, d, a, integerRounding, floatRounding, ftz, sat, relu } = conversion;
  const isLossy = to.bits < from.bits || (to.bits === from.bits && to.name !== from.name);
  if (isLossy && floatRounding === null) reader.fail("expected one of .rn, .rz, .rm, .rp");
  if (!isLossy && floatRounding !== null) reader.fail("exact conversions are not rounded");
  if (integerRounding !== null && to.name !== from.name) reader.fail("rounding to integers requires equal types");
  if (relu && (sat || to.bits !== 16 || from.name !== "f32" || (floatRounding !== "rn" && floatRounding !== "rz"))) {
    reader.fail("the modifier .relu is not understood here");
  }
  const source = codecOf(reader, from).codec;
  const { codec } = codecOf(reader, to);
  const rounding = floatRounding ?? "rn";
  return ({ regs: r }, next) => (t) => {
    let value = source.read(r, t + a);
    if (Number.isNaN(value) && !sat) {
      convertNan(r, t + d, t + a, from, to, ftz);
      return next;
    }
    if (ftz && from.name === "f32") value = flush(value);
    if (integerRounding !== null) value = roundToInteger(value, toInteger[integerRounding]);
    // Conversion to binary64 is always exact, and from it this is the only rounding.
    value = codec.round(value, rounding);
    if (ftz && to.name === "f32") value = flush(value);
    if (sat) value = saturate(value);
    if (relu && isNegative(value)) value = 0;
    codec.write(r, t + d, value);
    return next;
  };
}

/** Fraction bits of each float type. */
const fractionBits: Readonly<Record<string, bigint>> = { f16: 10n, bf16: 7n, f32: 23n, f64: 52n };

/**
 * Converts a NaN as an H200 does: to and from binary64 it keeps its sign and the upper bits of its fraction and becomes
 * quiet, a bfloat16 is widened unchanged, and everything else becomes the canonical NaN of its format.
 */
function convertNan(r: DataView, d: number, a: number, from: ScalarType, to: ScalarType, ftz: boolean): void {
  const [given, wanted] = [fractionBits[from.name] ?? 0n, fractionBits[to.name] ?? 0n];
  if (from.name === "bf16" && to.name === "f32") return r.setInt32(d, r.getUint16(a, true) << 16, true);
  const isKept = from.name === "f64" ? to.name !== "bf16" : to.name === "f64";
  if (!isKept) return r.setInt32(d, to.bits === 32 ? NAN32 : 0x7fff, true);
  const flushed = ftz && from.name === "f32";
  const code = flushed
    ? BigInt(NAN32)
    : from.bits === 64
    ? r.getBigUint64(a, true)
    : BigInt.asUintN(from.bits, BigInt(r.getUint32(a, true)));
  const fraction = code & ((1n << given) - 1n);
  const moved = wanted > given ? fraction << (wanted - given) : fraction >> (given - wanted);
  const sign = (code >> BigInt(from.bits - 1)) << BigInt(to.bits - 1);
  const exponent = ((1n << (BigInt(to.bits - 1) - wanted)) - 1n) << wanted;
  const result = sign | exponent | moved | (1n << (wanted - 1n));
  if (to.bits === 64) r.setBigUint64(d, result, true);
  else r.setUint32(d, Number(result), true);
}

function integerToInteger(reader: InstructionReader, conversion: Conversion): Compiled {
  const { to, from, d, a, width, integerRounding, floatRounding, ftz, sat, relu } = conversion;
  if (integerRounding !== null || floatRounding !== null) reader.fail("integers are not rounded");
  if (ftz || relu) reader.fail("only floats have .ftz and .relu");
  const [[min, max], [least, most]] = [limits(to), limits(from)];
  if (sat && min <= least && most <= max) reader.fail(`.sat has no effect: .${to.name} holds every .${from.name}`);
  if (!sat && to.bits === width && from.bits >= to.bits) {
    return copyBits(to.bits, d, a); // the lower bits, whatever their sign
  }
  if (!sat && to.bits === 64 && from.bits <= 32) {
    const read = readerOf(from);
    const signed = isSigned(from);
    return ({ regs: r }, next) => (t) => {
      const value = read(r, t + a);
      r.setInt32(t + d, value, true);
      r.setInt32(t + d + 4, signed && value < 0 ? -1 : 0, true);
      return next;
    };
  }
  const read = bigReaderOf(from);
  const write = writerOf(to, width);
  return ({ regs: r }, next) => (t) => {
    const value = read(r, t + a);
    write(r, t + d, !sat ? value : value < min ? min : value > max ? max : value);
    return next;
  };
}

/** `cvt.rn.f16x2.f32 d, a, b`: a becomes the upper half. */
function packed(
  reader: InstructionReader,
  to: ScalarType,
  from: ScalarType,
  rounding: Rounding | null,
  relu: boolean,
): Compiled {
  if (from.name !== "f32") reader.fail(`the type .${from.name} is not understood here`);
  if (rounding !== "rn" && rounding !== "rz") return reader.fail("expected .rn or .rz");
  reader.end(3);
  const f32 = scalarType("f32");
  const [d, a, b] = [reader.result(to), reader.source(1, f32), reader.source(2, f32)];
  const format = to.name === "f16x2" ? binary16 : bfloat16;
  const half = (value: number): number => {
    const rounded = roundTo(format, value, rounding);
    return encode16(format, relu && isNegative(rounded) ? 0 : rounded);
  };
  return ({ regs: r }, next) => (t) => {
    const word = (half(r.getFloat32(t + a, true)) << 16) | half(r.getFloat32(t + b, true));
    r.setInt32(t + d, word, true);
    return next;
  };
}

/** Conversions, by opcode. */
export const convertInstructions: InstructionTable = { cvt };
