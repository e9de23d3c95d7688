/**
 * Conversions between vectors of 16-bit floats and vectors of float32.
 *
 * @module
 */
import { converted, type Lanes, resized, roundableDoubles, roundableFloats } from "./number_code.ts";
import { apply, evens, paired, shifted, type Vector, type VectorLoop } from "./vector_code.ts";

/** Converts to float32, which represents each of them exactly. */
export function fromSmallFloats(loop: VectorLoop, vectors: readonly Vector[], kind: "float" | "bfloat"): Vector[] {
  const wide = resized(loop, vectors, { kind: "uint", bits: 16 }, 32);
  if (kind === "bfloat") return wide.map((vector) => shifted(32, "shl", vector, 16));
  return wide.map((vector) => fromHalf(loop, loop.keep(vector)));
}

/** Converts to 16-bit floats, rounded once. */
export function toSmallFloats(
  loop: VectorLoop,
  vectors: readonly Vector[],
  from: Lanes,
  kind: "float" | "bfloat",
): Vector[] {
  const small = roundable(loop, vectors, from)
    .map((vector) => (kind === "float" ? toHalf : toBfloat)(loop, loop.keep(vector)));
  return paired(small, (one, other) => apply("i16x8.narrow_i32x4_u", one, other));
}

/** Converts numbers to float32 that round to the same smaller floats as the numbers themselves. */
function roundable(loop: VectorLoop, vectors: readonly Vector[], from: Lanes): Vector[] {
  const isExact = from.bits < 32 || (from.kind === "float" && from.bits === 32);
  if (isExact) return converted(loop, vectors, from, { kind: "float", bits: 32 });
  if (from.bits === 32) return roundableFloats(loop, vectors, from);
  return paired(roundableDoubles(loop, vectors, from), (one, other) => odd(loop, loop.keep(one), loop.keep(other)));
}

// law copy/odd: copy/conversion_loop, copy/conversion
/**
 * Converts doubles to float32, rounded to odd: of the two floats that a double lies between, the one whose last bit is
 * set. So no double becomes a tie that was not one, and only the next rounding counts.
 */
function odd(loop: VectorLoop, one: Vector, other: Vector): Vector {
  const floats = [one, other].map((doubles) => loop.keep(apply("f32x4.demote_f64x2_zero", doubles)));
  const compared = (compare: (double: Vector, back: Vector) => Vector): Vector => {
    const masks = floats.map((float, at) => compare([one, other][at] ?? one, apply("f64x2.promote_low_f32x4", float)));
    return evens(masks, 4).flat();
  };
  const isTooLarge = compared((double, back) =>
    apply("f64x2.gt", apply("f64x2.abs", back), apply("f64x2.abs", double))
  );
  const isLossy = compared((double, back) => apply("f64x2.ne", double, back));
  const nearer = apply("i32x4.add", evens(floats, 8).flat(), isTooLarge); // all ones are -1
  return apply("v128.or", nearer, apply("v128.and", isLossy, loop.constant(32, 1n)));
}

// law copy/fromHalf: copy/conversion_loop
/** Converts the bits of float16s, in 32-bit lanes, to float32. */
function fromHalf(loop: VectorLoop, bits: Vector): Vector {
  const size = loop.keep(shifted(32, "shl", apply("v128.and", bits, loop.constant(32, 0x7fffn)), 13));
  const normal = apply("i32x4.add", size, loop.constant(32, 0x3800_0000n)); // 112 more in the exponent
  // A subnormal becomes the fraction of 2^-14, which is then subtracted.
  const least = loop.constant(32, 0x3880_0000n);
  const subnormal = apply("f32x4.sub", apply("v128.or", size, least), least);
  const isNormal = apply("i32x4.gt_s", size, loop.constant(32, 0x007f_ffffn));
  const finite = apply("v128.bitselect", normal, subnormal, isNormal);
  const isLast = apply("i32x4.gt_s", size, loop.constant(32, 0x0f7f_ffffn)); // infinity or NaN
  const special = apply("v128.and", isLast, loop.constant(32, 0x7f80_0000n));
  const sign = shifted(32, "shl", apply("v128.and", bits, loop.constant(32, 0x8000n)), 16);
  return apply("v128.or", apply("v128.or", finite, special), sign);
}

// law copy/toHalf: copy/conversion_loop
/** Converts float32s to the bits of the nearest float16s, in 32-bit lanes. */
function toHalf(loop: VectorLoop, float: Vector): Vector {
  const size = loop.keep(apply("v128.and", float, loop.constant(32, 0x7fff_ffffn)));
  const tie = apply("v128.and", shifted(32, "shr_u", size, 13), loop.constant(32, 1n));
  const rebased = apply("i32x4.add", size, loop.constant(32, 0xfffn - 0x3800_0000n));
  const rounded = shifted(32, "shr_u", apply("i32x4.add", rebased, tie), 13);
  const normal = apply("i32x4.min_s", rounded, loop.constant(32, 0x7c00n));
  // Adding 0.5 rounds a number too small for a normal exponent at its last bit.
  const half = loop.constant(32, 0x3f00_0000n);
  const subnormal = apply("i32x4.add", apply("f32x4.add", size, half), loop.constant(32, -0x3f00_0000n));
  const isNormal = apply("i32x4.gt_s", size, loop.constant(32, 0x387f_ffffn));
  const number = apply("v128.bitselect", normal, subnormal, isNormal);
  const isNaN = apply("i32x4.gt_s", size, loop.constant(32, 0x7f80_0000n));
  const quiet = apply("v128.and", isNaN, loop.constant(32, 0x0200n));
  const sign = apply("v128.and", shifted(32, "shr_u", float, 16), loop.constant(32, 0x8000n));
  return apply("v128.or", apply("v128.or", number, quiet), sign);
}

// law copy/toBfloat: copy/conversion_loop
/** Converts float32s to the bits of the nearest bfloat16s, in 32-bit lanes. */
function toBfloat(loop: VectorLoop, float: Vector): Vector {
  const tie = apply("v128.and", shifted(32, "shr_u", float, 16), loop.constant(32, 1n));
  const rounded = apply("i32x4.add", apply("i32x4.add", float, loop.constant(32, 0x7fffn)), tie);
  const isNaN = apply("f32x4.ne", float, float);
  return apply("v128.bitselect", loop.constant(32, 0x7fc0n), shifted(32, "shr_u", rounded, 16), isNaN);
}
