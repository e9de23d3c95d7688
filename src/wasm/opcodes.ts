/**
 * The WebAssembly instructions that functions here use, by their names in the specification.
 *
 * Each has its opcode and its immediate. Add a row when a function needs it: the table is the assembler.
 *
 * @module
 */

/** The immediate that follows an opcode. */
type Immediate =
  /** Nothing. */
  | "none"
  /** The index of a local or lane, or the depth of a label: unsigned LEB128. */
  | "index"
  /** Signed LEB128, from a number or, beyond 53 bits, a bigint. */
  | "constant"
  /** The type of a block without parameters or results. */
  | "block"
  /** An alignment, which is a hint and here always one byte, and an offset in bytes that is added to the address. */
  | "address"
  /** Two 64-bit words, the lower one first. */
  | "vector"
  /** 16 bytes, each the index of a byte in the two operands. */
  | "lanes";

type Opcode = readonly [prefix: "scalar" | "vector", code: number, immediate: Immediate];

const scalar = <const I extends Immediate>(code: number, immediate: I) => ["scalar", code, immediate] as const;
const vector = <const I extends Immediate>(code: number, immediate: I) => ["vector", code, immediate] as const;

/** Opcodes by name; vector opcodes follow a prefix. */
export const opcodes = {
  "block": scalar(0x02, "block"),
  "loop": scalar(0x03, "block"),
  "if": scalar(0x04, "block"),
  "else": scalar(0x05, "none"),
  "end": scalar(0x0b, "none"),
  "br": scalar(0x0c, "index"),
  "br_if": scalar(0x0d, "index"),
  "return": scalar(0x0f, "none"),
  "local.get": scalar(0x20, "index"),
  "local.set": scalar(0x21, "index"),
  "local.tee": scalar(0x22, "index"),

  "i32.load": scalar(0x28, "address"),
  "i64.load": scalar(0x29, "address"),
  "i32.load8_u": scalar(0x2d, "address"),
  "i32.load16_u": scalar(0x2f, "address"),
  "i64.load8_s": scalar(0x30, "address"),
  "i64.load8_u": scalar(0x31, "address"),
  "i64.load16_s": scalar(0x32, "address"),
  "i64.load16_u": scalar(0x33, "address"),
  "i64.load32_s": scalar(0x34, "address"),
  "i64.load32_u": scalar(0x35, "address"),
  "i32.store": scalar(0x36, "address"),
  "i64.store": scalar(0x37, "address"),
  "i32.store8": scalar(0x3a, "address"),

  "i32.const": scalar(0x41, "constant"),
  "i64.const": scalar(0x42, "constant"),
  "i32.ne": scalar(0x47, "none"),
  "i32.lt_u": scalar(0x49, "none"),
  "i32.ge_u": scalar(0x4f, "none"),
  "i32.add": scalar(0x6a, "none"),
  "i32.sub": scalar(0x6b, "none"),
  "i32.mul": scalar(0x6c, "none"),
  "i32.or": scalar(0x72, "none"),
  "i32.shl": scalar(0x74, "none"),
  "i64.add": scalar(0x7c, "none"),
  "i64.mul": scalar(0x7e, "none"),

  "v128.load": vector(0, "address"),
  "v128.load8_splat": vector(7, "address"),
  "v128.load16_splat": vector(8, "address"),
  "v128.load32_splat": vector(9, "address"),
  "v128.load64_splat": vector(10, "address"),
  "v128.store": vector(11, "address"),
  "v128.const": vector(12, "vector"),
  "i8x16.shuffle": vector(13, "lanes"),
  "i8x16.ne": vector(36, "none"),
  "i16x8.ne": vector(46, "none"),
  "i32x4.eq": vector(55, "none"),
  "i32x4.ne": vector(56, "none"),
  "i32x4.gt_s": vector(59, "none"),
  "f32x4.ne": vector(66, "none"),
  "f64x2.eq": vector(71, "none"),
  "f64x2.ne": vector(72, "none"),
  "f64x2.lt": vector(73, "none"),
  "f64x2.gt": vector(74, "none"),
  "f64x2.ge": vector(76, "none"),
  "v128.and": vector(78, "none"),
  "v128.or": vector(80, "none"),
  "v128.xor": vector(81, "none"),
  "v128.bitselect": vector(82, "none"),
  "f32x4.demote_f64x2_zero": vector(94, "none"),
  "f64x2.promote_low_f32x4": vector(95, "none"),
  "i8x16.neg": vector(97, "none"),
  "i8x16.narrow_i16x8_s": vector(101, "none"),
  "i8x16.narrow_i16x8_u": vector(102, "none"),
  "i8x16.add": vector(110, "none"),
  "f64x2.floor": vector(117, "none"),
  "i8x16.min_u": vector(119, "none"),
  "f64x2.trunc": vector(122, "none"),
  "i16x8.neg": vector(129, "none"),
  "i16x8.narrow_i32x4_s": vector(133, "none"),
  "i16x8.narrow_i32x4_u": vector(134, "none"),
  "i16x8.extend_low_i8x16_s": vector(135, "none"),
  "i16x8.extend_high_i8x16_s": vector(136, "none"),
  "i16x8.extend_low_i8x16_u": vector(137, "none"),
  "i16x8.extend_high_i8x16_u": vector(138, "none"),
  "i16x8.shl": vector(139, "none"),
  "i16x8.shr_u": vector(141, "none"),
  "i16x8.add": vector(142, "none"),
  "i32x4.neg": vector(161, "none"),
  "i32x4.extend_low_i16x8_s": vector(167, "none"),
  "i32x4.extend_high_i16x8_s": vector(168, "none"),
  "i32x4.extend_low_i16x8_u": vector(169, "none"),
  "i32x4.extend_high_i16x8_u": vector(170, "none"),
  "i32x4.shl": vector(171, "none"),
  "i32x4.shr_u": vector(173, "none"),
  "i32x4.add": vector(174, "none"),
  "i32x4.min_s": vector(182, "none"),
  "i64x2.neg": vector(193, "none"),
  "i64x2.extend_low_i32x4_s": vector(199, "none"),
  "i64x2.extend_high_i32x4_s": vector(200, "none"),
  "i64x2.extend_low_i32x4_u": vector(201, "none"),
  "i64x2.extend_high_i32x4_u": vector(202, "none"),
  "i64x2.all_true": vector(195, "none"),
  "i64x2.shl": vector(203, "none"),
  "i64x2.shr_u": vector(205, "none"),
  "i64x2.add": vector(206, "none"),
  "i64x2.sub": vector(209, "none"),
  "i64x2.eq": vector(214, "none"),
  "i64x2.ne": vector(215, "none"),
  "f32x4.add": vector(228, "none"),
  "f32x4.sub": vector(229, "none"),
  "f32x4.mul": vector(230, "none"),
  "f64x2.abs": vector(236, "none"),
  "f64x2.add": vector(240, "none"),
  "f64x2.sub": vector(241, "none"),
  "f64x2.mul": vector(242, "none"),
  "f64x2.pmax": vector(247, "none"),
  "i32x4.trunc_sat_f32x4_s": vector(248, "none"),
  "i32x4.trunc_sat_f32x4_u": vector(249, "none"),
  "f32x4.convert_i32x4_s": vector(250, "none"),
  "f32x4.convert_i32x4_u": vector(251, "none"),
  "i32x4.trunc_sat_f64x2_s_zero": vector(252, "none"),
  "i32x4.trunc_sat_f64x2_u_zero": vector(253, "none"),
  "f64x2.convert_low_i32x4_s": vector(254, "none"),
  "f64x2.convert_low_i32x4_u": vector(255, "none"),
} as const satisfies Readonly<Record<string, Opcode>>;

type Opcodes = typeof opcodes;
type Takes<I extends Immediate> = { [Name in keyof Opcodes]: Opcodes[Name][2] extends I ? Name : never }[keyof Opcodes];

/** An instruction with its immediates. */
export type Instruction =
  | readonly [name: Takes<"none" | "block">]
  | readonly [name: Takes<"index" | "address">, value: number]
  | readonly [name: Takes<"constant">, value: number | bigint]
  | readonly [name: Takes<"vector">, low: bigint, high: bigint]
  | readonly [name: Takes<"lanes">, ...lanes: readonly number[]];
