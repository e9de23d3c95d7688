/**
 * A small assembler for our portable machine code: each operation is encoded by a table, one for x86-64 and one for
 * arm64, so that a program is written, and read, once.
 *
 * @module
 */
import { ffiPort } from "../ffi/mod.ts";
import { aarch64Vector } from "./aarch64_vectors.ts";
import { instructions, int32, mapExecutable } from "./machine_code.ts";
import type { VectorOperation, VectorSide } from "./vector_registers.ts";
import { x8664Vector } from "./x8664_vectors.ts";

/** The registers of operations. Both CPUs have others, which programs need not know about. */
export type Register = keyof typeof x8664Registers;

/** Bytes moved at a time. */
export type Unit = 1 | 2 | 4 | 8 | 16;

/** One operation. Numbers have 64 bits; offsets are multiples of 8 from 0 to 4088. */
export type Operation =
  | readonly ["label", name: string]
  /** Loads a register from memory. */
  | readonly ["get", into: Register, base: Register, offset: number]
  /** Stores a register to memory. */
  | readonly ["put", value: Register, base: Register, offset: number]
  /** Sets a register to a number from 0 to 65535. */
  | readonly ["set", into: Register, value: number]
  | readonly ["copy", into: Register, value: Register]
  | readonly ["add", into: Register, value: Register]
  /** Adds a number in memory. */
  | readonly ["addFrom", into: Register, base: Register, offset: number]
  /** Sets a register to an address: another register plus a number. */
  | readonly ["point", into: Register, base: Register, offset: number]
  /** Subtracts 1, and notes whether 0 is left. */
  | readonly ["lower", register: Register]
  /** Jumps to a label unless `lower` left 0, or `anyZero` found no lane of 0; `put` may come in between. */
  | readonly ["unlessZero", label: string]
  | readonly ["ifZero", register: Register, label: string]
  | readonly ["go", label: string]
  /** Reads `unit` bytes into the data register; they need not be aligned. */
  | readonly ["load", unit: Unit, base: Register]
  /** Writes `unit` bytes. */
  | readonly ["store", unit: Unit, base: Register]
  /** The same, at the sum of two registers. */
  | readonly ["loadAt", unit: Unit, base: Register, index: "toStep" | "fromStep"]
  | readonly ["storeAt", unit: Unit, base: Register, index: "toStep" | "fromStep"]
  /** Reads `unit` bytes, and fills the data register with copies of them. */
  | readonly ["repeat", unit: Unit, base: Register]
  /** Reads one byte into byte `place` of the data register; place 0 zeroes the others. */
  | readonly ["insert", place: number, base: Register]
  /** The same, at the sum of two registers. */
  | readonly ["insertAt", place: number, base: Register, index: "toStep" | "fromStep"]
  /** Saves the `kept` registers, as far as a function must preserve them, and the return address. */
  | readonly ["enter"]
  /** Restores them. */
  | readonly ["leave"]
  /**
   * Calls the function whose address is in memory. Its arguments are `first` to `third` and `left`, or the data
   * register, into which 16 bytes were read, if the argument is a floating-point number.
   */
  | readonly ["call", base: Register, offset: number]
  /** Sets a register to the result of a call; a floating-point result is in the data register instead. */
  | readonly ["result", into: Register]
  /** Operates on vectors: the bases of constants, input and output are `first`, `second` and `third`. */
  | readonly ["vector", operation: VectorOperation]
  | readonly ["return"];

/** System V: arguments arrive in rdi, rsi, rdx. No base is rsp or r12, which would need a longer encoding. */
const x8664Registers = {
  first: 7, // rdi
  second: 6, // rsi
  third: 2, // rdx
  left: 1, // rcx, the fourth argument
  toStep: 8,
  fromStep: 9,
  axis: 10,
  rows: 11,
  kept: 3, // rbx
  keptTo: 13,
  keptFrom: 14,
} as const;

/** AAPCS64: arguments arrive in x0 to x2; x16 is for calls. */
const aarch64Registers: { readonly [Name in Register]: number } = {
  first: 0,
  second: 1,
  third: 2,
  left: 3,
  toStep: 4,
  fromStep: 5,
  axis: 6,
  rows: 7,
  kept: 19,
  keptTo: 20,
  keptFrom: 21,
};

function sidesIn({ first, second, third }: { readonly [Name in Register]: number }): Record<VectorSide, number> {
  return { constants: first, input: second, output: third };
}

/** Encodes an operation, given the distance to its label: in bytes, from the end of the operation. */
interface Encoder {
  readonly encode: (operation: Operation, distance: number) => Uint8Array;
}

// law native/assemble: native/strided_mover
function assemble(program: readonly Operation[], { encode }: Encoder): Uint8Array<ArrayBuffer> {
  // No operation's length depends on a distance.
  const ends: number[] = [];
  let length = 0;
  for (const operation of program) ends.push(length += encode(operation, 0).length);
  const labels = new Map(program.map((operation, i) => [operation[0] === "label" ? operation[1] : null, ends[i] ?? 0]));
  const code = new Uint8Array(length);
  let at = 0;
  for (const [i, operation] of program.entries()) {
    const label = labelOf(operation);
    const bytes = encode(operation, label === null ? 0 : (labels.get(label) ?? NaN) - (ends[i] ?? 0));
    code.set(bytes, at);
    at += bytes.length;
  }
  return code;
}

function labelOf(operation: Operation): string | null {
  switch (operation[0]) {
    case "unlessZero":
    case "go":
      return operation[1];
    case "ifZero":
      return operation[2];
    default:
      return null;
  }
}

/**
 * Assembles programs into executable memory.
 *
 * @returns their addresses, or null where the system refuses executable memory, or the CPU is neither of the two
 */
export function assembleHere(programs: readonly (readonly Operation[])[]): readonly bigint[] | null {
  const { os, arch } = ffiPort().platform;
  if (os !== "linux" || arch === "other") return null;
  return mapExecutable(programs.map(arch === "aarch64" ? aarch64 : x8664));
}

/** Machine code of a program for x86-64. */
export function x8664(program: readonly Operation[]): Uint8Array<ArrayBuffer> {
  return assemble(program, { encode: x8664Operation });
}

/** Machine code of a program for arm64. */
export function aarch64(program: readonly Operation[]): Uint8Array<ArrayBuffer> {
  return assemble(program, { encode: (operation, distance) => instructions(aarch64Operation(operation, distance)) });
}

function x8664Operation(operation: Operation, distance: number): Uint8Array {
  return new Uint8Array(x8664Bytes(operation, distance));
}

// law native/x8664Operation: native/strided_mover, python/call_programs
/** A 64-bit instruction with a register operand and a memory operand, at a register plus an offset. */
function withMemory(opcode: number, register: number, base: number, offset: number): number[] {
  return [0x48 | register >> 3 << 2 | base >> 3, opcode, ...atOffset(register, base, offset)];
}

/** The operands of an instruction: a register, and memory at a register plus an offset of one or four bytes. */
function atOffset(register: number, base: number, offset: number): number[] {
  const registers = (register & 7) << 3 | base & 7;
  return offset < 128 ? [0x40 | registers, offset] : [0x80 | registers, ...int32(offset)];
}

/** A 64-bit instruction with two registers. */
function withRegister(opcode: number, register: number, other: number): number[] {
  return [0x48 | register >> 3 << 2 | other >> 3, opcode, 0xc0 | (register & 7) << 3 | other & 7];
}

/** The opcodes that move data between memory and rax or xmm0, which are both number 0. */
const x8664Loads = { 1: [0x0f, 0xb6], 2: [0x0f, 0xb7], 4: [0x8b], 8: [0x48, 0x8b], 16: [0xf3, 0x0f, 0x6f] } as const;
const x8664Stores = { 1: [0x88], 2: [0x66, 0x89], 4: [0x89], 8: [0x48, 0x89], 16: [0xf3, 0x0f, 0x7f] } as const;

/** The same at a register plus r8 or r9, which needs a prefix. */
const x8664LoadsAt = {
  ...{ 1: [0x42, 0x0f, 0xb6], 2: [0x42, 0x0f, 0xb7], 4: [0x42, 0x8b], 8: [0x4a, 0x8b] },
  16: [0xf3, 0x42, 0x0f, 0x6f],
} as const;
const x8664StoresAt = {
  ...{ 1: [0x42, 0x88], 2: [0x66, 0x42, 0x89], 4: [0x42, 0x89], 8: [0x4a, 0x89] },
  16: [0xf3, 0x42, 0x0f, 0x7f],
} as const;

/** Fills the 16 bytes of xmm0 with copies of the bytes read into rax, or into xmm0 itself. */
const x8664Repeats = {
  1: [0x69, 0xc0, 1, 1, 1, 1, 0x66, 0x0f, 0x6e, 0xc0, 0x66, 0x0f, 0x70, 0xc0, 0], // imul eax, eax, 0x1010101, as below
  2: [0x69, 0xc0, 1, 0, 1, 0, 0x66, 0x0f, 0x6e, 0xc0, 0x66, 0x0f, 0x70, 0xc0, 0], // imul eax, eax, 0x10001, as below
  4: [0x66, 0x0f, 0x6e, 0xc0, 0x66, 0x0f, 0x70, 0xc0, 0], // movd xmm0, eax; pshufd xmm0, xmm0, 0
  8: [0x66, 0x48, 0x0f, 0x6e, 0xc0, 0x66, 0x0f, 0x6c, 0xc0], // movq xmm0, rax; punpcklqdq xmm0, xmm0
  16: [],
} as const;

/** Clears the register before the first byte, so that this does not depend on the old contents. */
function emptied(place: number): readonly number[] {
  return place === 0 ? [0x66, 0x0f, 0xef, 0xc0] : []; // pxor xmm0, xmm0
}

function x8664Bytes(operation: Operation, distance: number): readonly number[] {
  const r = x8664Registers;
  switch (operation[0]) {
    case "label":
      return [];
    case "get":
      return withMemory(0x8b, r[operation[1]], r[operation[2]], operation[3]); // mov register, [base + offset]
    case "put":
      return withMemory(0x89, r[operation[1]], r[operation[2]], operation[3]); // mov [base + offset], register
    case "set":
      return [0x40 | r[operation[1]] >> 3, 0xb8 | r[operation[1]] & 7, ...int32(operation[2])]; // mov register32, imm
    case "copy":
      return withRegister(0x89, r[operation[2]], r[operation[1]]); // mov
    case "add":
      return withRegister(0x01, r[operation[2]], r[operation[1]]); // add
    case "addFrom":
      return withMemory(0x03, r[operation[1]], r[operation[2]], operation[3]); // add register, [base + offset]
    case "point":
      return withMemory(0x8d, r[operation[1]], r[operation[2]], operation[3]); // lea register, [base + offset]
    case "lower":
      return withRegister(0xff, 1, r[operation[1]]); // dec
    case "unlessZero":
      return [0x0f, 0x85, ...int32(distance)]; // jnz
    case "ifZero":
      return [...withRegister(0x85, r[operation[1]], r[operation[1]]), 0x0f, 0x84, ...int32(distance)]; // test, jz
    case "go":
      return [0xe9, ...int32(distance)]; // jmp
    case "load":
      return [...x8664Loads[operation[1]], r[operation[2]]]; // neither base is a register that needs a prefix
    case "store":
      return [...x8664Stores[operation[1]], r[operation[2]]];
    case "loadAt":
      return [...x8664LoadsAt[operation[1]], 0x04, (r[operation[3]] & 7) << 3 | r[operation[2]]];
    case "storeAt":
      return [...x8664StoresAt[operation[1]], 0x04, (r[operation[3]] & 7) << 3 | r[operation[2]]];
    case "repeat":
      return [...x8664Loads[operation[1]], r[operation[2]], ...x8664Repeats[operation[1]]];
    case "insert": // pinsrb xmm0, [base], place
      return [...emptied(operation[1]), 0x66, 0x0f, 0x3a, 0x20, r[operation[2]], operation[1]];
    case "insertAt":
      return [
        ...[...emptied(operation[1]), 0x66, 0x42, 0x0f, 0x3a, 0x20, 0x04],
        ...[(r[operation[3]] & 7) << 3 | r[operation[2]], operation[1]],
      ];
    case "enter":
      return [0x53, 0x41, 0x55, 0x41, 0x56]; // push rbx, r13, r14: this aligns the stack for calls
    case "leave":
      return [0x41, 0x5e, 0x41, 0x5d, 0x5b]; // pop r14, r13, rbx
    case "call":
      return [0xff, ...atOffset(2, r[operation[1]], operation[2])]; // call [base + offset]; as above
    case "result":
      return withRegister(0x89, 0, r[operation[1]]); // mov register, rax
    case "vector":
      return x8664Vector(operation[1], sidesIn(r));
    case "return":
      return [0xc3];
  }
}

// law native/aarch64Loads: native/strided_mover
/** Between memory and x9 or q0. */
const aarch64Loads = { 1: 0x39400009, 2: 0x79400009, 4: 0xb9400009, 8: 0xf9400009, 16: 0x3dc00000 } as const;
const aarch64Stores = { 1: 0x39000009, 2: 0x79000009, 4: 0xb9000009, 8: 0xf9000009, 16: 0x3d800000 } as const;

/** The same, at the sum of two registers. */
const aarch64LoadsAt = { 1: 0x38606809, 2: 0x78606809, 4: 0xb8606809, 8: 0xf8606809, 16: 0x3ce06800 } as const;
const aarch64StoresAt = { 1: 0x38206809, 2: 0x78206809, 4: 0xb8206809, 8: 0xf8206809, 16: 0x3ca06800 } as const;

/** Into all of v0: ld1r, and ldr for 16 bytes, which already fill it. */
const aarch64Repeats = { 1: 0x4d40c000, 2: 0x4d40c400, 4: 0x4d40c800, 8: 0x4d40cc00, 16: 0x3dc00000 } as const;

const scratch = 16;

/** ld1 {v0.b}[place], without its base. */
function lane(place: number): number {
  return 0x0d400000 | place >> 3 << 30 | (place & 7) << 10;
}

function zeroed(place: number): readonly number[] {
  return place === 0 ? [0x6f00e400] : []; // movi v0.2d, #0
}

// law native/aarch64Operation: native/strided_mover
function aarch64Operation(operation: Operation, distance: number): readonly number[] {
  const r = aarch64Registers;
  // Counted in instructions, from the branch itself. What takes `test` and a branch above is one instruction here.
  const words = distance / 4 + 1;
  switch (operation[0]) {
    case "label":
      return [];
    case "get":
      return [0xf9400000 | operation[3] / 8 << 10 | r[operation[2]] << 5 | r[operation[1]]]; // ldr
    case "put":
      return [0xf9000000 | operation[3] / 8 << 10 | r[operation[2]] << 5 | r[operation[1]]]; // str
    case "set":
      return [0xd2800000 | operation[2] << 5 | r[operation[1]]]; // movz
    case "copy":
      return [0xaa0003e0 | r[operation[2]] << 16 | r[operation[1]]]; // mov
    case "add":
      return [0x8b000000 | r[operation[2]] << 16 | r[operation[1]] << 5 | r[operation[1]]]; // add
    case "addFrom":
      return [
        0xf9400000 | operation[3] / 8 << 10 | r[operation[2]] << 5 | scratch, // ldr x16, [base, #offset]
        0x8b000000 | scratch << 16 | r[operation[1]] << 5 | r[operation[1]], // add
      ];
    case "point":
      return [0x91000000 | operation[3] << 10 | r[operation[2]] << 5 | r[operation[1]]]; // add, with a number
    case "lower":
      return [0xf1000400 | r[operation[1]] << 5 | r[operation[1]]]; // subs register, register, #1
    case "unlessZero":
      return [0x54000001 | (words & 0x7ffff) << 5]; // b.ne
    case "ifZero":
      return [0xb4000000 | (words & 0x7ffff) << 5 | r[operation[1]]]; // cbz
    case "go":
      return [0x14000000 | words & 0x3ffffff]; // b
    case "load":
      return [aarch64Loads[operation[1]] | r[operation[2]] << 5];
    case "store":
      return [aarch64Stores[operation[1]] | r[operation[2]] << 5];
    case "loadAt":
      return [aarch64LoadsAt[operation[1]] | r[operation[3]] << 16 | r[operation[2]] << 5];
    case "storeAt":
      return [aarch64StoresAt[operation[1]] | r[operation[3]] << 16 | r[operation[2]] << 5];
    case "repeat":
      return [aarch64Repeats[operation[1]] | r[operation[2]] << 5];
    case "insert":
      return [...zeroed(operation[1]), lane(operation[1]) | r[operation[2]] << 5];
    case "insertAt":
      return [
        ...zeroed(operation[1]),
        0x8b000000 | r[operation[3]] << 16 | r[operation[2]] << 5 | scratch, // add x16, base, index
        lane(operation[1]) | scratch << 5,
      ];
    case "enter":
      return [0xa9bd7bfd, 0xa90153f3, 0xf90013f5]; // stp x29, x30, [sp, #-48]!; stp x19, x20, [sp, #16]; str x21, ...
    case "leave":
      return [0xf94013f5, 0xa94153f3, 0xa8c37bfd]; // ldr x21, [sp, #32]; ldp x19, x20, ...; ldp x29, x30, [sp], #48
    case "call":
      return [
        0xf9400000 | operation[2] / 8 << 10 | r[operation[1]] << 5 | scratch, // ldr x16, [base, #offset]
        0xd63f0000 | scratch << 5, // blr x16
      ];
    case "result":
      return [0xaa0003e0 | r[operation[1]]]; // mov register, x0
    case "vector":
      return aarch64Vector(operation[1], sidesIn(r));
    case "return":
      return [0xd65f03c0];
  }
}
