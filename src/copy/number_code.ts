/**
 * Converts vectors of numbers to other types, by the rules of `conversion.ts`: integers of 8 to 64 bits, float32 and
 * float64. Floats smaller than float32 are in `small_float_code.ts`.
 *
 * @module
 */
import {
  apply,
  evens,
  type LaneBits,
  paired,
  shifted,
  upperHalf,
  type Vector,
  type VectorLoop,
} from "./vector_code.ts";

/** The type of numbers in lanes. */
export interface Lanes {
  readonly kind: "int" | "uint" | "float";
  readonly bits: LaneBits;
}

/** Converts numbers of one type to another. */
export function converted(loop: VectorLoop, vectors: readonly Vector[], from: Lanes, to: Lanes): Vector[] {
  if (from.kind !== "float") {
    return to.kind === "float" ? floatsOf(loop, vectors, from, to.bits) : resized(loop, vectors, from, to.bits);
  }
  if (to.kind !== "float") return wholes(loop, vectors, from.bits, to);
  if (from.bits === to.bits) return [...vectors];
  return to.bits === 64 ? promoted(loop, vectors) : demoted(vectors);
}

/** Widens integers, or truncates them to their lowest bits. */
export function resized(loop: VectorLoop, vectors: readonly Vector[], { kind, bits }: Lanes, to: LaneBits): Vector[] {
  if (bits > to) return resized(loop, evens(vectors, bits / 16), { kind, bits: (bits / 2) as LaneBits }, to);
  if (bits === to) return [...vectors];
  const sign = kind === "int" ? "s" : "u";
  const wider = vectors.flatMap((vector) => {
    const kept = loop.keep(vector);
    switch (bits) {
      case 8:
        return [apply(`i16x8.extend_low_i8x16_${sign}`, kept), apply(`i16x8.extend_high_i8x16_${sign}`, kept)];
      case 16:
        return [apply(`i32x4.extend_low_i16x8_${sign}`, kept), apply(`i32x4.extend_high_i16x8_${sign}`, kept)];
      default:
        return [apply(`i64x2.extend_low_i32x4_${sign}`, kept), apply(`i64x2.extend_high_i32x4_${sign}`, kept)];
    }
  });
  return resized(loop, wider, { kind, bits: (bits * 2) as LaneBits }, to);
}

// law copy/floatsOf: copy/conversion_loop
/** Converts integers to floats, rounded once. */
function floatsOf(loop: VectorLoop, vectors: readonly Vector[], from: Lanes, to: LaneBits): Vector[] {
  if (from.bits === 64) {
    if (to === 64) return vectors.map((vector) => longToDouble(loop, vector, from));
    return demoted(roundableDoubles(loop, vectors, from));
  }
  // Integers of fewer than 32 bits fit a signed integer of 32 bits, whether signed or not.
  const sign = from.kind === "uint" && from.bits === 32 ? "u" : "s";
  const whole = resized(loop, vectors, from, 32);
  if (to === 32) return whole.map((vector) => apply(`f32x4.convert_i32x4_${sign}`, vector));
  return halves(loop, whole).map((vector) => apply(`f64x2.convert_low_i32x4_${sign}`, vector));
}

/** Each vector twice: unchanged, and with its upper half moved to the lower. */
function halves(loop: VectorLoop, vectors: readonly Vector[]): Vector[] {
  return vectors.flatMap((vector) => {
    const kept = loop.keep(vector);
    return [kept, upperHalf(kept)];
  });
}

/** Converts floats to doubles. */
function promoted(loop: VectorLoop, vectors: readonly Vector[]): Vector[] {
  return halves(loop, vectors).map((vector) => apply("f64x2.promote_low_f32x4", vector));
}

/** Converts doubles to the nearest floats. */
function demoted(vectors: readonly Vector[]): Vector[] {
  return evens(vectors.map((vector) => apply("f32x4.demote_f64x2_zero", vector)), 8);
}

/** Converts 64-bit numbers to doubles that round to the same smaller floats as the numbers. */
export function roundableDoubles(loop: VectorLoop, vectors: readonly Vector[], from: Lanes): Vector[] {
  const numbers = from.kind === "float" ? vectors : vectors.map((vector) => withoutTies(loop, vector, from));
  return converted(loop, numbers, from, { kind: "float", bits: 64 });
}

/** Converts 32-bit integers to floats that round to the same 16-bit floats as the integers. */
export function roundableFloats(loop: VectorLoop, vectors: readonly Vector[], from: Lanes): Vector[] {
  const numbers = vectors.map((vector) => withoutTies(loop, vector, from));
  return converted(loop, numbers, from, { kind: "float", bits: 32 });
}

// law copy/longToDouble: copy/conversion_loop
/**
 * Converts 64-bit integers to doubles. The lower word becomes the lowest bits of 2^52; the upper one, biased by its
 * minimum, those of 2^84: two exact doubles. Subtracting their combined excess from the larger one is exact, too, so
 * their sum is rounded once.
 */
function longToDouble(loop: VectorLoop, vector: Vector, { kind }: Lanes): Vector {
  const kept = loop.keep(vector);
  const low = apply("v128.and", kept, loop.constant(64, 0xffff_ffffn));
  const high = shifted(64, "shr_u", kept, 32);
  const [start, excess] = kind === "int"
    ? [0x4530_0000_8000_0000n, 0x4530_0000_8010_0000n]
    : [0x4530_0000_0000_0000n, 0x4530_0000_0010_0000n];
  return apply(
    "f64x2.add",
    apply("f64x2.sub", apply("v128.xor", high, loop.constant(64, start)), loop.constant(64, excess)),
    apply("v128.or", low, loop.constant(64, 0x4330_0000_0000_0000n)),
  );
}

// law copy/withoutTies: copy/conversion_loop
/**
 * Maps integers of 64 or 32 bits to integers that are exact as floats of the same width, and round to the same smaller
 * float as the originals. Small integers are exact. The lowest bits of large ones, as many as do not fit the float, are
 * far below the precision of a smaller float: one bit above them records whether any was set.
 */
function withoutTies(loop: VectorLoop, vector: Vector, { kind, bits }: Lanes): Vector {
  const [lane, shape, room] = bits === 64 ? [64, "i64x2", 53] as const : [32, "i32x4", 24] as const;
  const kept = loop.keep(vector);
  const most = 2n ** BigInt(lane - room) - 1n;
  const lowest = loop.constant(lane, most);
  const carried = apply(`${shape}.add`, apply("v128.and", kept, lowest), lowest);
  const marked = apply("v128.and", apply("v128.or", kept, carried), loop.constant(lane, ~most));
  const size = kind === "int" ? apply(`${shape}.add`, kept, loop.constant(lane, 2n ** BigInt(room - 1))) : kept;
  const isSmall = apply(`${shape}.eq`, shifted(lane, "shr_u", size, room), loop.constant(lane, 0n));
  return apply("v128.bitselect", kept, marked, isSmall);
}

// law copy/wholes: copy/conversion_loop
/** Truncates floats to integers, which saturate. */
function wholes(loop: VectorLoop, vectors: readonly Vector[], from: LaneBits, to: Lanes): Vector[] {
  if (to.bits === 64) {
    const doubles = from === 64 ? vectors : promoted(loop, vectors);
    return doubles.map((vector) => longWholes(loop, vector, to.kind === "int" ? "int" : "uint"));
  }
  const sign = to.kind === "uint" && to.bits === 32 ? "u" : "s";
  const whole = from === 32
    ? vectors.map((vector) => apply(`i32x4.trunc_sat_f32x4_${sign}`, vector))
    : evens(vectors.map((vector) => apply(`i32x4.trunc_sat_f64x2_${sign}_zero`, vector)), 8);
  if (to.bits === 32) return whole;
  // Narrowing takes signed numbers, whatever it produces.
  const last = to.kind === "int" ? "s" : "u";
  const shorts = to.bits === 16 ? last : "s";
  const narrowed = paired(whole, (one, other) => apply(`i16x8.narrow_i32x4_${shorts}`, one, other));
  if (to.bits === 16) return narrowed;
  return paired(narrowed, (one, other) => apply(`i8x16.narrow_i16x8_${last}`, one, other));
}

// law copy/longWholes: copy/conversion_loop
/**
 * Converts doubles to 64-bit integers, for which there is no vector instruction. The whole number is divided by 2^32;
 * the quotient and the remainder, both exact, become the lowest bits of sufficiently large doubles.
 */
function longWholes(loop: VectorLoop, doubles: Vector, kind: "int" | "uint"): Vector {
  const given = loop.keep(doubles);
  const number = apply("v128.and", given, apply("f64x2.eq", given, given)); // 0 instead of NaN
  const [least, end, most, base] = kind === "int"
    ? [-(2 ** 63), 2 ** 63, 2n ** 63n - 1n, 2 ** 52 + 2 ** 51]
    : [0, 2 ** 64, -1n, 2 ** 52];
  const whole = loop.keep(apply("f64x2.trunc", apply("f64x2.pmax", number, loop.double(least))));
  const quotient = loop.keep(apply("f64x2.floor", apply("f64x2.mul", whole, loop.double(2 ** -32))));
  const rest = apply("f64x2.sub", whole, apply("f64x2.mul", quotient, loop.double(2 ** 32)));
  const high = shifted(64, "shl", apply("f64x2.add", quotient, loop.double(base)), 32);
  const one = loop.double(2 ** 52);
  const low = apply("v128.xor", apply("f64x2.add", rest, one), one);
  const isTooLarge = apply("f64x2.ge", whole, loop.double(end));
  return apply("v128.bitselect", loop.constant(64, most), apply("v128.or", high, low), isTooLarge);
}

// law copy/isSmallWhole: copy/conversion_loop
/** Whether {@linkcode smallWhole} can convert doubles to 64-bit integers. */
export function isSmallWhole(loop: VectorLoop, double: Vector, { kind }: Lanes): Vector {
  const kept = loop.keep(double);
  const isSmall = apply("f64x2.lt", apply("f64x2.abs", kept), loop.double(2 ** 51));
  return kind === "int" ? isSmall : apply("v128.and", isSmall, apply("f64x2.ge", kept, loop.double(0)));
}

// law copy/smallWhole: copy/conversion_loop
/** Converts small doubles to 64-bit integers: the whole number becomes the lowest bits of a larger double. */
export function smallWhole(loop: VectorLoop, double: Vector): Vector {
  const base = loop.double(2 ** 52 + 2 ** 51);
  return apply("i64x2.sub", apply("f64x2.add", apply("f64x2.trunc", double), base), base);
}
