/**
 * Vectors on x86-64: SSE4.1, which engines also require for WebAssembly vectors.
 *
 * An instruction overwrites its first operand, so it gets a copy; the last two registers are for computations that take
 * several instructions.
 *
 * @module
 */
import { int32 } from "./machine_code.ts";
import type { Computation, VectorOperation, VectorSide } from "./vector_registers.ts";

/** An opcode of map 0f: its prefix, 66, f2, f3 or none, and its bytes, which begin with 38 or 3a for those maps. */
type Opcode = readonly [prefix: 0 | 0x66 | 0xf2 | 0xf3, ...code: readonly number[]];

const [second, spare] = [14, 15];

/** An instruction with two vector registers, and perhaps an immediate. */
function sse([prefix, ...code]: Opcode, register: number, other: number, ...number: readonly number[]): number[] {
  const rex = 0x40 | register >> 3 << 2 | other >> 3;
  const modes = 0xc0 | (register & 7) << 3 | other & 7;
  return [...prefix === 0 ? [] : [prefix], ...rex === 0x40 ? [] : [rex], 0x0f, ...code, modes, ...number];
}

function copied(into: number, from: number): number[] {
  return into === from ? [] : sse([0, 0x28], into, from); // movaps
}

const [and, or, xor]: readonly [Opcode, Opcode, Opcode] = [[0x66, 0xdb], [0x66, 0xeb], [0x66, 0xef]];
const equal = { 8: [0x66, 0x74], 16: [0x66, 0x75], 32: [0x66, 0x76], 64: [0x66, 0x38, 0x29] } as const;

/** Encodes a computation; `into` may be one of the operands. */
type Encoder = (into: number, one: number, other: number, last: number, count: number) => number[];

// law native/x8664Computations: native/vector_code, copy/native_conversion
/** An instruction that overwrites its first operand. */
function binary(opcode: Opcode, ...number: readonly number[]): Encoder {
  return (into, one, other) => {
    if (into !== other || into === one) return [...copied(into, one), ...sse(opcode, into, other, ...number)];
    return [...copied(spare, other), ...copied(into, one), ...sse(opcode, into, spare, ...number)];
  };
}

/** The same with swapped operands. */
function turned(encoder: Encoder): Encoder {
  return (into, one, other, last, count) => encoder(into, other, one, last, count);
}

function unary(opcode: Opcode): Encoder {
  return (into, one) => sse(opcode, into, one);
}

/** A unary operation on the upper half. */
function upper(opcode: Opcode): Encoder {
  return (into, one) => [...sse([0x66, 0x70], into, one, 0xee), ...sse(opcode, into, into)]; // pshufd
}

/** A shift by a constant; part of its opcode is in the field that otherwise names a register. */
function shifted(opcode: number, part: 2 | 4 | 6, register: number, count: number): number[] {
  return sse([0x66, opcode], part, register, count);
}

function shift(opcode: number, part: 2 | 6): Encoder {
  return (into, one, _other, _last, count) => [...copied(into, one), ...shifted(opcode, part, into, count)];
}

function differs(bits: keyof typeof equal): Encoder {
  return (into, one, other) => [
    ...binary(equal[bits])(into, one, other, 0, 0),
    ...sse(equal[8], spare, spare), // all ones
    ...sse(xor, into, spare),
  ];
}

/** Packs two vectors into one by saturating instructions: the bits to drop first become the sign, or 0. */
function evens(opcode: number, last: 2 | 4, count: number, narrow: Opcode): Encoder {
  return (into, one, other) => [
    ...copied(spare, other),
    ...copied(into, one),
    ...[into, spare].flatMap((register) => [
      ...shifted(opcode, 6, register, count),
      ...shifted(opcode, last, register, count),
    ]),
    ...sse(narrow, into, spare),
  ];
}

const encoders: { readonly [Name in Computation]: Encoder } = {
  "v128.and": binary(and),
  "v128.or": binary(or),
  "v128.xor": binary(xor),
  "v128.bitselect": (into, one, other, last) => [
    ...copied(spare, one),
    ...sse(xor, spare, other),
    ...sse(and, spare, last),
    ...sse(xor, spare, other),
    ...copied(into, spare),
  ],
  "upper half": (into, one) => sse([0x66, 0x70], into, one, 0x4e), // pshufd
  "lower halves": binary([0x66, 0x6c]), // punpcklqdq
  "evens of 4": binary([0, 0xc6], 0x88), // shufps
  "evens of 2": evens(0x72, 4, 16, [0x66, 0x6b]), // pslld, psrad, packssdw
  "evens of 1": evens(0x71, 2, 8, [0x66, 0x67]), // psllw, psrlw, packuswb
  "i8x16.min_u": binary([0x66, 0xda]),
  "i8x16.ne": differs(8),
  "i8x16.narrow_i16x8_s": binary([0x66, 0x63]),
  "i8x16.narrow_i16x8_u": binary([0x66, 0x67]),
  "i16x8.ne": differs(16),
  "i16x8.narrow_i32x4_s": binary([0x66, 0x6b]),
  "i16x8.narrow_i32x4_u": binary([0x66, 0x38, 0x2b]),
  "i16x8.extend_low_i8x16_s": unary([0x66, 0x38, 0x20]),
  "i16x8.extend_high_i8x16_s": upper([0x66, 0x38, 0x20]),
  "i16x8.extend_low_i8x16_u": unary([0x66, 0x38, 0x30]),
  "i16x8.extend_high_i8x16_u": upper([0x66, 0x38, 0x30]),
  "i16x8.shl": shift(0x71, 6),
  "i32x4.add": binary([0x66, 0xfe]),
  "i32x4.eq": binary(equal[32]),
  "i32x4.ne": differs(32),
  "i32x4.gt_s": binary([0x66, 0x66]),
  "i32x4.min_s": binary([0x66, 0x38, 0x39]),
  "i32x4.extend_low_i16x8_s": unary([0x66, 0x38, 0x23]),
  "i32x4.extend_high_i16x8_s": upper([0x66, 0x38, 0x23]),
  "i32x4.extend_low_i16x8_u": unary([0x66, 0x38, 0x33]),
  "i32x4.extend_high_i16x8_u": upper([0x66, 0x38, 0x33]),
  "i32x4.shl": shift(0x72, 6),
  "i32x4.shr_u": shift(0x72, 2),
  // cvttps2dq converts NaN and too large numbers to the least integer: NaN is replaced by 0 first, and a result whose
  // sign has changed is inverted.
  "i32x4.trunc_sat_f32x4_s": (into, one) => [
    ...copied(into, one),
    ...copied(spare, into),
    ...sse([0, 0xc2], spare, spare, 0), // cmpeqps: all ones, or 0 for NaN
    ...sse(and, into, spare),
    ...sse(xor, spare, into), // sign bit set where the number's is not
    ...sse([0xf3, 0x5b], into, into), // cvttps2dq
    ...sse(and, spare, into),
    ...shifted(0x72, 4, spare, 31), // psrad
    ...sse(xor, into, spare),
  ],
  // What exceeds 2^31 is converted by itself and added to 2^31, the least integer, which cvttps2dq makes of the number.
  "i32x4.trunc_sat_f32x4_u": (into, one) => [
    ...copied(into, one),
    ...sse(xor, second, second),
    ...sse([0, 0x5f], into, second), // maxps: 0 instead of NaN and negative numbers
    ...sse(equal[8], spare, spare), // all ones
    ...shifted(0x72, 2, spare, 1),
    ...sse([0, 0x5b], spare, spare), // cvtdq2ps: 2^31, rounded
    ...copied(second, into),
    ...sse([0, 0x5c], second, spare), // subps
    ...sse([0, 0xc2], spare, second, 2), // cmpleps: whether too much for an integer
    ...sse([0xf3, 0x5b], second, second), // cvttps2dq
    ...sse(xor, second, spare), // too much, the least integer, becomes the largest
    ...sse(xor, spare, spare),
    ...sse([0x66, 0x38, 0x3d], second, spare), // pmaxsd: 0 if the number is less than 2^31
    ...sse([0xf3, 0x5b], into, into),
    ...sse([0x66, 0xfe], into, second), // paddd
  ],
  // cvttpd2dq converts too large numbers to the least integer: the lesser of the number and the largest integer is
  // converted, or of NaN and 0, which is 0.
  "i32x4.trunc_sat_f64x2_s_zero": (into, one) => [
    ...copied(into, one),
    ...copied(second, into),
    ...sse([0x66, 0xc2], second, second, 0), // cmpeqpd: all ones, or 0 for NaN
    ...sse(equal[8], spare, spare), // all ones
    ...shifted(0x72, 2, spare, 1),
    ...sse([0xf3, 0xe6], spare, spare), // cvtdq2pd: the largest integer
    ...sse(and, spare, second),
    ...sse([0x66, 0x5d], into, spare), // minpd returns its second operand if one is NaN
    ...sse([0x66, 0xe6], into, into), // cvttpd2dq
  ],
  // The number is subtracted from the largest integer, so that one that is too large becomes the least one, as it must;
  // that integer without the sign, inverted bit by bit, is the result.
  "i32x4.trunc_sat_f64x2_u_zero": (into, one) => [
    ...copied(into, one),
    ...sse(xor, spare, spare),
    ...sse([0x66, 0x5f], into, spare), // maxpd: 0 instead of NaN and negative numbers
    ...sse([0x66, 0x3a, 0x09], into, into, 11), // roundpd, towards 0
    ...sse(equal[8], second, second), // all ones
    ...shifted(0x72, 2, second, 1),
    ...sse([0xf3, 0x7e], second, second), // movq: 0 in the upper half
    ...sse([0xf3, 0xe6], spare, second), // cvtdq2pd
    ...sse([0x66, 0x5c], spare, into), // subpd
    ...sse([0x66, 0xe6], into, spare), // cvttpd2dq
    ...sse(xor, into, second),
  ],
  "i64x2.extend_low_i32x4_s": unary([0x66, 0x38, 0x25]),
  "i64x2.extend_high_i32x4_s": upper([0x66, 0x38, 0x25]),
  "i64x2.extend_low_i32x4_u": unary([0x66, 0x38, 0x35]),
  "i64x2.extend_high_i32x4_u": upper([0x66, 0x38, 0x35]),
  "i64x2.shl": shift(0x73, 6),
  "i64x2.shr_u": shift(0x73, 2),
  "i64x2.add": binary([0x66, 0xd4]),
  "i64x2.sub": binary([0x66, 0xfb]),
  "i64x2.eq": binary(equal[64]),
  "i64x2.ne": differs(64),
  "f32x4.ne": binary([0, 0xc2], 4), // cmpneqps
  "f32x4.add": binary([0, 0x58]),
  "f32x4.sub": binary([0, 0x5c]),
  "f32x4.convert_i32x4_s": unary([0, 0x5b]),
  // As 16-bit halves, which are exact, so that only their sum is rounded. The upper half, whose top bit would be taken
  // for a sign, is halved and added twice.
  "f32x4.convert_i32x4_u": (into, one) => [
    ...copied(spare, one),
    ...shifted(0x72, 6, spare, 16),
    ...shifted(0x72, 2, spare, 16),
    ...copied(into, one),
    ...sse([0x66, 0xfa], into, spare), // psubd
    ...shifted(0x72, 2, into, 1),
    ...sse([0, 0x5b], into, into), // cvtdq2ps
    ...sse([0, 0x58], into, into), // addps
    ...sse([0, 0x5b], spare, spare),
    ...sse([0, 0x58], into, spare),
  ],
  "f32x4.demote_f64x2_zero": unary([0x66, 0x5a]),
  "f64x2.eq": binary([0x66, 0xc2], 0), // cmpeqpd
  "f64x2.ne": binary([0x66, 0xc2], 4),
  "f64x2.lt": binary([0x66, 0xc2], 1),
  "f64x2.gt": turned(binary([0x66, 0xc2], 1)),
  "f64x2.ge": turned(binary([0x66, 0xc2], 2)), // cmplepd
  "f64x2.abs": (into, one) => [
    ...copied(into, one),
    ...sse(equal[8], spare, spare), // all ones
    ...shifted(0x73, 2, spare, 1),
    ...sse(and, into, spare),
  ],
  "f64x2.floor": (into, one) => sse([0x66, 0x3a, 0x09], into, one, 9), // roundpd, down
  "f64x2.trunc": (into, one) => sse([0x66, 0x3a, 0x09], into, one, 11), // towards 0
  "f64x2.add": binary([0x66, 0x58]),
  "f64x2.sub": binary([0x66, 0x5c]),
  "f64x2.mul": binary([0x66, 0x59]),
  "f64x2.pmax": turned(binary([0x66, 0x5f])), // maxpd returns its second operand unless it is less
  "f64x2.convert_low_i32x4_s": unary([0xf3, 0xe6]),
  // The number without its lowest bit is halved and added twice, because its top bit would be taken for a sign. All of
  // it is exact.
  "f64x2.convert_low_i32x4_u": (into, one) => [
    ...copied(spare, one),
    ...shifted(0x72, 6, spare, 31),
    ...shifted(0x72, 2, spare, 31),
    ...copied(into, one),
    ...shifted(0x72, 2, into, 1),
    ...sse([0xf3, 0xe6], into, into), // cvtdq2pd
    ...sse([0x66, 0x58], into, into), // addpd
    ...sse([0xf3, 0xe6], spare, spare),
    ...sse([0x66, 0x58], into, spare),
  ],
  "f64x2.promote_low_f32x4": unary([0, 0x5a]),
};

/** The bytes of an operation; `sides` are numbers of base registers, below 8. */
export function x8664Vector(operation: VectorOperation, sides: Readonly<Record<VectorSide, number>>): number[] {
  if (operation[0] === "anyZero") {
    // pcmpeqq with 0, ptest
    return [
      ...sse(xor, spare, spare),
      ...sse(equal[64], spare, operation[1]),
      ...sse([0x66, 0x38, 0x17], spare, spare),
    ];
  }
  if (operation[0] !== "compute") {
    const [name, register, side, offset] = operation;
    const rex = 0x40 | register >> 3 << 2;
    const modes = 0x80 | (register & 7) << 3 | sides[side];
    return [...rex === 0x40 ? [] : [rex], 0x0f, name === "readVector" ? 0x10 : 0x11, modes, ...int32(offset)]; // movups
  }
  const [, name, into, [one = 0, other = 0, last = 0], count] = operation;
  return encoders[name](into, one, other, last, count);
}
