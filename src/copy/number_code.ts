/**
 * What becomes of vectors of numbers when their type changes, by the rules of `conversion.ts`: of integers of 8 to 64
 * bits, float32 and float64. What is smaller than a float32 is in `small_float_code.ts`.
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

/** What lanes hold. */
export interface Lanes {
  readonly kind: "int" | "uint" | "float";
  readonly bits: LaneBits;
}

/** Numbers of one type, as numbers of another. */
export function converted(loop: VectorLoop, vectors: readonly Vector[], from: Lanes, to: Lanes): Vector[] {
  if (from.kind !== "float") {
    return to.kind === "float" ? floatsOf(loop, vectors, from, to.bits) : resized(loop, vectors, from, to.bits);
  }
  if (to.kind !== "float") return wholes(loop, vectors, from.bits, to);
  if (from.bits === to.bits) return [...vectors];
  return to.bits === 64 ? promoted(loop, vectors) : demoted(vectors);
}

/** Integers that get more bits, or lose all but their lowest. */
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
/** Integers as floats, rounded once. */
function floatsOf(loop: VectorLoop, vectors: readonly Vector[], from: Lanes, to: LaneBits): Vector[] {
  if (from.bits === 64) {
    if (to === 64) return vectors.map((vector) => longToDouble(loop, vector, from));
    return demoted(roundableDoubles(loop, vectors, from));
  }
  // What has fewer than 32 bits is positive with them, whether it has a sign or not.
  const sign = from.kind === "uint" && from.bits === 32 ? "u" : "s";
  const whole = resized(loop, vectors, from, 32);
  if (to === 32) return whole.map((vector) => apply(`f32x4.convert_i32x4_${sign}`, vector));
  return halves(loop, whole).map((vector) => apply(`f64x2.convert_low_i32x4_${sign}`, vector));
}

/** Each vector twice: as it is and with its upper half below. */
function halves(loop: VectorLoop, vectors: readonly Vector[]): Vector[] {
  return vectors.flatMap((vector) => {
    const kept = loop.keep(vector);
    return [kept, upperHalf(kept)];
  });
}

/** Floats as doubles. */
function promoted(loop: VectorLoop, vectors: readonly Vector[]): Vector[] {
  return halves(loop, vectors).map((vector) => apply("f64x2.promote_low_f32x4", vector));
}

/** Doubles as the nearest floats. */
function demoted(vectors: readonly Vector[]): Vector[] {
  return evens(vectors.map((vector) => apply("f32x4.demote_f64x2_zero", vector)), 8);
}

/** Doubles that become the same smaller floats as numbers of 64 bits. */
export function roundableDoubles(loop: VectorLoop, vectors: readonly Vector[], from: Lanes): Vector[] {
  const numbers = from.kind === "float" ? vectors : vectors.map((vector) => withoutTies(loop, vector, from));
  return converted(loop, numbers, from, { kind: "float", bits: 64 });
}

/** Floats that become the same floats of 16 bits as integers of 32 bits. */
export function roundableFloats(loop: VectorLoop, vectors: readonly Vector[], from: Lanes): Vector[] {
  const numbers = vectors.map((vector) => withoutTies(loop, vector, from));
  return converted(loop, numbers, from, { kind: "float", bits: 32 });
}

// law copy/longToDouble: copy/conversion_loop
/**
 * Integers of 64 bits as doubles. The lower word becomes the lowest bits of 2^52, the upper one, counted from its least,
 * those of 2^84: two doubles that are exact, as is what is left when what they have too much is taken off the larger
 * one. So their sum is rounded once.
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
 * Integers of 64 or 32 bits that are exact as floats of as many, and become the same smaller float as what they are made
 * of. What is small is exact. Of what is large the lowest bits, as many as the float has no room for, are far below all
 * that a smaller float can tell apart: one bit above them says whether any was set.
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
/** Floats without their fractions, or the nearest integers that there are. */
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
  // Narrowing takes numbers with a sign, whatever it makes of them.
  const last = to.kind === "int" ? "s" : "u";
  const shorts = to.bits === 16 ? last : "s";
  const narrowed = paired(whole, (one, other) => apply(`i16x8.narrow_i32x4_${shorts}`, one, other));
  if (to.bits === 16) return narrowed;
  return paired(narrowed, (one, other) => apply(`i8x16.narrow_i16x8_${last}`, one, other));
}

// law copy/longWholes: copy/conversion_loop
/**
 * Doubles as integers of 64 bits, for which vectors have no instruction. The whole number is divided by 2^32, and the
 * quotient and what is left, both exact, become the lowest bits of doubles that are large enough for it.
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
/** Whether doubles can be made integers of 64 bits by {@linkcode smallWhole}. */
export function isSmallWhole(loop: VectorLoop, double: Vector, { kind }: Lanes): Vector {
  const isSmall = apply("f64x2.lt", apply("f64x2.abs", double), loop.double(2 ** 51));
  return kind === "int" ? isSmall : apply("v128.and", isSmall, apply("f64x2.ge", double, loop.double(0)));
}

// law copy/smallWhole: copy/conversion_loop
/** Small doubles as integers of 64 bits: the whole number becomes the lowest bits of a larger one. */
export function smallWhole(loop: VectorLoop, double: Vector): Vector {
  const base = loop.double(2 ** 52 + 2 ** 51);
  return apply("i64x2.sub", apply("f64x2.add", apply("f64x2.trunc", double), base), base);
}
