/**
 * Vectors on arm64, whose instructions do not change their operands.
 *
 * @module
 */
import type { Computation, VectorOperation, VectorSide } from "./vector_registers.ts";

// law native/aarch64Computations: native/vector_code, copy/native_conversion
/** Skips v8 to v15, which would have to be preserved. */
function numberOf(register: number): number {
  return register < 8 ? register : register + 8;
}

const spare = 31;

/** A general-purpose register that no operation uses otherwise. */
const general = 16;

/** Encodes a computation; `into` may be one of the operands. */
type Encoder = (into: number, one: number, other: number, last: number, count: number) => number[];

function with3(opcode: number, into: number, one: number, other: number): number {
  return opcode | other << 16 | one << 5 | into;
}

function copied(into: number, from: number): number[] {
  return into === from ? [] : [with3(0x4ea01c00, into, from, from)]; // orr
}

function binary(opcode: number): Encoder {
  return (into, one, other) => [with3(opcode, into, one, other)];
}

function unary(...opcodes: readonly number[]): Encoder {
  return (into, one) => opcodes.map((opcode, i) => with3(opcode, into, i === 0 ? one : into, 0));
}

function differs(opcode: number): Encoder {
  return (into, one, other) => [with3(opcode, into, one, other), with3(0x6e205800, into, into, 0)]; // then mvn
}

/** Narrows one vector to the lower half and, by the same instruction with one bit set, another to the upper half. */
function narrow(opcode: number): Encoder {
  return (into, one, other) => [
    with3(opcode, spare, one, 0),
    with3(opcode | 0x40000000, spare, other, 0),
    ...copied(into, spare),
  ];
}

/** @param bits of a lane; encodes bits + count for left shifts, 2 * bits - count for right shifts */
function shift(opcode: number, bits: number, sign: 1 | -1): Encoder {
  return (into, one, _other, _last, count) => {
    const number = sign === 1 ? bits + count : 2 * bits - count;
    return [with3(opcode | number << 16, into, one, 0)];
  };
}

const encoders: { readonly [Name in Computation]: Encoder } = {
  "v128.and": binary(0x4e201c00),
  "v128.or": binary(0x4ea01c00),
  "v128.xor": binary(0x6e201c00),
  "v128.bitselect": (into, one, other, last) => [
    ...copied(spare, last),
    with3(0x6e601c00, spare, one, other), // bsl
    ...copied(into, spare),
  ],
  "upper half": (into, one) => [with3(0x6e004000, into, one, one)], // ext, by 8
  "lower halves": binary(0x4ec03800), // zip1
  "evens of 4": binary(0x4e801800), // uzp1
  "evens of 2": binary(0x4e401800),
  "evens of 1": binary(0x4e001800),
  "i8x16.min_u": binary(0x6e206c00),
  "i8x16.ne": differs(0x6e208c00),
  "i8x16.narrow_i16x8_s": narrow(0x0e214800), // sqxtn
  "i8x16.narrow_i16x8_u": narrow(0x2e212800), // sqxtun
  "i16x8.ne": differs(0x6e608c00),
  "i16x8.narrow_i32x4_s": narrow(0x0e614800),
  "i16x8.narrow_i32x4_u": narrow(0x2e612800),
  "i16x8.extend_low_i8x16_s": unary(0x0f08a400), // sxtl
  "i16x8.extend_high_i8x16_s": unary(0x4f08a400),
  "i16x8.extend_low_i8x16_u": unary(0x2f08a400), // uxtl
  "i16x8.extend_high_i8x16_u": unary(0x6f08a400),
  "i16x8.shl": shift(0x4f005400, 16, 1),
  "i32x4.add": binary(0x4ea08400),
  "i32x4.eq": binary(0x6ea08c00),
  "i32x4.ne": differs(0x6ea08c00),
  "i32x4.gt_s": binary(0x4ea03400),
  "i32x4.min_s": binary(0x4ea06c00),
  "i32x4.extend_low_i16x8_s": unary(0x0f10a400),
  "i32x4.extend_high_i16x8_s": unary(0x4f10a400),
  "i32x4.extend_low_i16x8_u": unary(0x2f10a400),
  "i32x4.extend_high_i16x8_u": unary(0x6f10a400),
  "i32x4.shl": shift(0x4f005400, 32, 1),
  "i32x4.shr_u": shift(0x6f000400, 32, -1),
  "i32x4.trunc_sat_f32x4_s": unary(0x4ea1b800), // fcvtzs
  "i32x4.trunc_sat_f32x4_u": unary(0x6ea1b800), // fcvtzu
  "i32x4.trunc_sat_f64x2_s_zero": unary(0x4ee1b800, 0x0ea14800), // fcvtzs, sqxtn
  "i32x4.trunc_sat_f64x2_u_zero": unary(0x6ee1b800, 0x2ea14800), // fcvtzu, uqxtn
  "i64x2.extend_low_i32x4_s": unary(0x0f20a400),
  "i64x2.extend_high_i32x4_s": unary(0x4f20a400),
  "i64x2.extend_low_i32x4_u": unary(0x2f20a400),
  "i64x2.extend_high_i32x4_u": unary(0x6f20a400),
  "i64x2.shl": shift(0x4f005400, 64, 1),
  "i64x2.shr_u": shift(0x6f000400, 64, -1),
  "i64x2.add": binary(0x4ee08400),
  "i64x2.sub": binary(0x6ee08400),
  "i64x2.eq": binary(0x6ee08c00),
  "i64x2.ne": differs(0x6ee08c00),
  "f32x4.ne": differs(0x4e20e400), // fcmeq
  "f32x4.add": binary(0x4e20d400),
  "f32x4.sub": binary(0x4ea0d400),
  "f32x4.convert_i32x4_s": unary(0x4e21d800), // scvtf
  "f32x4.convert_i32x4_u": unary(0x6e21d800), // ucvtf
  "f32x4.demote_f64x2_zero": unary(0x0e616800), // fcvtn
  "f64x2.eq": binary(0x4e60e400),
  "f64x2.ne": differs(0x4e60e400),
  "f64x2.lt": (into, one, other) => [with3(0x6ee0e400, into, other, one)], // fcmgt
  "f64x2.gt": binary(0x6ee0e400),
  "f64x2.ge": binary(0x6e60e400),
  "f64x2.abs": unary(0x4ee0f800),
  "f64x2.floor": unary(0x4e619800), // frintm
  "f64x2.trunc": unary(0x4ee19800), // frintz
  "f64x2.add": binary(0x4e60d400),
  "f64x2.sub": binary(0x4ee0d400),
  "f64x2.mul": binary(0x6e60dc00),
  "f64x2.pmax": (into, one, other) => [
    with3(0x6ee0e400, spare, other, one), // fcmgt
    with3(0x6e601c00, spare, other, one), // bsl
    ...copied(into, spare),
  ],
  "f64x2.convert_low_i32x4_s": unary(0x0f20a400, 0x4e61d800), // sxtl, scvtf
  "f64x2.convert_low_i32x4_u": unary(0x2f20a400, 0x6e61d800), // uxtl, ucvtf
  "f64x2.promote_low_f32x4": unary(0x0e617800), // fcvtl
};

/** The instructions of an operation; `sides` are numbers of base registers. */
export function aarch64Vector(operation: VectorOperation, sides: Readonly<Record<VectorSide, number>>): number[] {
  if (operation[0] === "anyZero") {
    return [
      with3(0x4ee09800, spare, numberOf(operation[1]), 0), // cmeq with 0
      with3(0x6eb0a800, spare, spare, 0), // umaxv
      with3(0x1e260000, general, spare, 0), // fmov w16, s31
      with3(0x7100001f, 0, general, 0), // cmp w16, #0
    ];
  }
  if (operation[0] !== "compute") {
    const [name, register, side, offset] = operation;
    const opcode = name === "readVector" ? 0x3dc00000 : 0x3d800000; // ldr, str
    return [opcode | offset / 16 << 10 | sides[side] << 5 | numberOf(register)];
  }
  const [, name, into, [one = 0, other = 0, last = 0], count] = operation;
  return encoders[name](numberOf(into), numberOf(one), numberOf(other), numberOf(last), count);
}
