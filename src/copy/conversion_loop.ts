/**
 * Conversion loops: WebAssembly with vectors, generated for a pair of types on first use.
 *
 * @module
 */
import { type NativeLoop, nativeLoop, type VectorLoopCode } from "../native/mod.ts";
import { enlist, type Enlisted } from "../wasm/mod.ts";
import { bytesOf, type Conversion, isInteger, type NumberType } from "./conversion.ts";
import { converted, isSmallWhole, type Lanes, resized, smallWhole } from "./number_code.ts";
import { fromSmallFloats, toSmallFloats } from "./small_float_code.ts";
import { apply, besides, differs, evens, paired, shifted, upperHalf, type Vector, VectorLoop } from "./vector_code.ts";

/**
 * A loop that takes a scratch memory address to read from, one to write to, and a number of iterations, at least one,
 * of {@linkcode TURN} numbers each.
 */
export type ConversionLoop = Enlisted;

/** How many numbers, or parts of complex ones, one iteration converts. */
export const TURN = 16;

const loops = new Map<string, ConversionLoop>();
const nativeLoops = new Map<string, NativeLoop | null>();

/** The loop of a conversion, compiled once. If both types are complex, it is the loop of their parts. */
export function loopOf(conversion: Conversion): ConversionLoop {
  return loops.getOrInsertComputed(keyOf(conversion), () => {
    const { loop, bytes } = writtenLoop(conversion);
    return enlist(loop.finished(...bytes));
  });
}

/** The same loop in machine code, which works on any memory; null if there is none for it. */
export function nativeLoopOf(conversion: Conversion): NativeLoop | null {
  return nativeLoops.getOrInsertComputed(keyOf(conversion), () => nativeLoop(vectorLoopOf(conversion)));
}

function keyOf({ from, to }: Conversion): string {
  return from.isComplex && to.isComplex ? `${from.bits} ${to.bits}` : `${from.name} ${to.name}`;
}

/** The code from which machine code is generated. Exported for the test that tries it on other processors. */
export function vectorLoopOf(conversion: Conversion): VectorLoopCode {
  const { loop, bytes } = writtenLoop(conversion);
  return loop.code(...bytes);
}

// law copy/conversionLoop: copy/conversion_loop
/** The code of a conversion, and the bytes of input and output per iteration. */
function writtenLoop({ from, to }: Conversion): { loop: VectorLoop; bytes: [input: number, output: number] } {
  if (from.isComplex && to.isComplex) {
    return writtenLoop({ from: { ...from, isComplex: false }, to: { ...to, isComplex: false } });
  }
  const loop = new VectorLoop();
  const convert = () => convertTurn(loop, { from, to });
  if (from.kind === "float" && from.bits === 64 && !from.isComplex && isInteger(to) && to.bits === 64) {
    const doubles = Array.from({ length: TURN * bytesOf(from) / 16 }, (_, at) => 16 * at);
    let areSmall = isSmallWhole(loop, loop.load(0), lanesOf(to));
    for (const at of doubles.slice(1)) {
      areSmall = loop.keep(apply("v128.and", areSmall, isSmallWhole(loop, loop.load(at), lanesOf(to))));
    }
    loop.either(areSmall, () => doubles.forEach((at) => loop.store(smallWhole(loop, loop.load(at)), at)), convert);
  } else convert();
  return { loop, bytes: [TURN * bytesOf(from), TURN * bytesOf(to)] };
}

/** Generates the code of one iteration. */
function convertTurn(loop: VectorLoop, { from, to }: Conversion): void {
  const [inputBytes, outputBytes] = [TURN * bytesOf(from), TURN * bytesOf(to)];
  // As few at a time as fill a vector with the smaller of the two types, so that few vectors are live.
  const parts = Math.min(from.bits, to.bits) / 8;
  for (let part = 0; part < parts; part++) {
    const [input, output] = [part * inputBytes / parts, part * outputBytes / parts];
    const vectors = Array.from({ length: inputBytes / parts / 16 }, (_, at) => loop.load(input + 16 * at));
    const results = to.kind === "bool" ? truths(loop, vectors, from) : numbers(loop, vectors, from, to);
    results.forEach((vector, at) => loop.store(vector, output + 16 * at));
    loop.forget();
  }
}

/** Converts elements to another type. Complex ones lose their imaginary parts; real ones get imaginary parts of 0. */
function numbers(loop: VectorLoop, vectors: readonly Vector[], from: NumberType, to: NumberType): Vector[] {
  const { values, lanes } = valuesOf(loop, from.isComplex ? evens(vectors, from.bits / 8) : vectors, from);
  const [target, small] = [lanesOf(to), smallFloat(to)];
  const results = small === null ? converted(loop, values, lanes, target) : toSmallFloats(loop, values, lanes, small);
  return to.isComplex ? withZeros(loop, results, target) : results;
}

// law copy/valuesOf: copy/conversion_loop
/** Converts elements to lanes that can be converted further: small floats to float32, booleans to 0 and 1. */
function valuesOf(loop: VectorLoop, vectors: readonly Vector[], from: NumberType): { values: Vector[]; lanes: Lanes } {
  const small = smallFloat(from);
  if (small !== null) return { values: fromSmallFloats(loop, vectors, small), lanes: { kind: "float", bits: 32 } };
  const values = from.kind === "bool"
    ? vectors.map((vector) => apply("i8x16.min_u", vector, loop.constant(8, 1n)))
    : [...vectors];
  return { values, lanes: lanesOf(from) };
}

function lanesOf({ kind, bits }: NumberType): Lanes {
  return { kind: kind === "bool" ? "uint" : kind === "bfloat" ? "float" : kind, bits };
}

/** The kind of a type that is a 16-bit float, else null. */
function smallFloat({ kind, bits }: NumberType): "float" | "bfloat" | null {
  return bits === 16 && (kind === "float" || kind === "bfloat") ? kind : null;
}

/** Interleaves real parts with imaginary parts of 0. */
function withZeros(loop: VectorLoop, parts: readonly Vector[], { bits }: Lanes): Vector[] {
  if (bits === 32) return resized(loop, parts, { kind: "uint", bits }, 64);
  return parts.flatMap((vector) => {
    const kept = loop.keep(vector);
    const zero = loop.constant(64, 0n);
    return [besides(kept, zero), besides(upperHalf(kept), zero)];
  });
}

// law copy/truths: copy/conversion_loop
/** Whether an element, or one of its parts, is not 0, as bytes. */
function truths(loop: VectorLoop, vectors: readonly Vector[], from: NumberType): Vector[] {
  const zero = loop.constant(64, 0n);
  const isNumber = (vector: Vector): Vector => {
    // For small floats only the sign is ignored; the other bits are all 0 only for zero.
    if (smallFloat(from) !== null) return differs(16, shifted(16, "shl", vector, 1), zero);
    if (from.kind !== "float") return differs(from.bits, vector, zero);
    return apply(from.bits === 32 ? "f32x4.ne" : "f64x2.ne", vector, zero);
  };
  let masks = vectors.map(isNumber);
  let bits = from.bits;
  if (from.isComplex) {
    // Both parts, of 32 bits each, are the two halves of a number.
    masks = (bits === 64 ? evens(masks, 4) : masks).map((mask) => differs(64, mask, zero));
    bits = 64;
  }
  // Narrowing preserves 0 and -1.
  if (bits === 64) masks = evens(masks, 4);
  if (bits >= 32) masks = paired(masks, (one, other) => apply("i16x8.narrow_i32x4_s", one, other));
  if (bits >= 16) masks = paired(masks, (one, other) => apply("i8x16.narrow_i16x8_s", one, other));
  return masks.map((mask) => apply("v128.and", mask, loop.constant(8, 1n)));
}
