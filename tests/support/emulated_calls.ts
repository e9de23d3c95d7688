/**
 * Programs that call Python, on emulated processors of both kinds: which functions they call in which order with which
 * arguments, and what they leave in their memory. The functions are one handwritten piece of code, which logs its
 * arguments, returns the next value of a script, and clobbers every register that it may.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { aarch64, type Operation, x8664 } from "../../src/native/assembler.ts";
import { python } from "./emulator.ts";

/** Where emulate_call.py puts the memory; in it: the block, the functions, what they log and return, objects. */
export const base = 0x30_0000;
export const place = { block: 0, functions: 0x1000, log: 0x3000, script: 0xa000, objects: 0xb000, size: 0xd000 };
export const functionBytes = 0x100;

const word = (value: bigint) => [...new Uint8Array(BigUint64Array.of(BigInt.asUintN(64, value)).buffer)];
const log = BigInt(base + place.log);

/**
 * Logs {id, four arguments, a double}, and returns the next word of the script, as an integer and as a double. If it
 * `writes`, it stores the word after that where the second argument points.
 */
const functions = {
  x86_64: (id: number, writes: boolean) => [
    ...[0x48, 0xb8, ...word(log)], // movabs rax, log
    ...[0x4c, 0x8b, 0x00], // mov r8, [rax]
    ...[0x49, 0xc7, 0x00, id, 0, 0, 0], // mov qword [r8], id
    ...[0x49, 0x89, 0x78, 0x08, 0x49, 0x89, 0x70, 0x10], // mov [r8 + 8], rdi; mov [r8 + 16], rsi
    ...[0x49, 0x89, 0x50, 0x18, 0x49, 0x89, 0x48, 0x20], // mov [r8 + 24], rdx; mov [r8 + 32], rcx
    ...[0x66, 0x41, 0x0f, 0xd6, 0x40, 0x28], // movq [r8 + 40], xmm0
    ...[0x49, 0x83, 0xc0, 0x30, 0x4c, 0x89, 0x00], // add r8, 48; mov [rax], r8
    ...[0x4c, 0x8b, 0x48, 0x08], // mov r9, [rax + 8]
    ...[0x4d, 0x8b, 0x11, 0xf3, 0x41, 0x0f, 0x7e, 0x01], // mov r10, [r9]; movq xmm0, [r9]
    ...[0x4d, 0x8b, 0x59, 0x08], // mov r11, [r9 + 8]
    ...[0x49, 0x83, 0xc1, 0x10, 0x4c, 0x89, 0x48, 0x08], // add r9, 16; mov [rax + 8], r9
    ...writes ? [0x44, 0x89, 0x1e] : [], // mov [rsi], r11d
    ...[0x4c, 0x89, 0xd0], // mov rax, r10
    ...[0x48, 0xc7, 0xc7, 0xff, 0xff, 0xff, 0xff], // mov rdi, -1, and so on
    ...[0x48, 0x89, 0xfe, 0x48, 0x89, 0xfa, 0x48, 0x89, 0xf9, 0x49, 0x89, 0xf8, 0x49, 0x89, 0xf9, 0x49, 0x89, 0xfa],
    ...[0x49, 0x89, 0xfb, 0xc3], // mov r11, rdi; ret
  ],
  aarch64: (id: number, writes: boolean) => {
    const put = (register: number, at: number) => 0xf9000000 | at / 8 << 10 | 10 << 5 | register; // str, [x10, #at]
    const code = [
      0x58000009, // ldr x9, log
      0xf940012a, // ldr x10, [x9]
      0xd280000b | id << 5, // mov x11, #id
      ...[put(11, 0), put(0, 8), put(1, 16), put(2, 24), put(3, 32)],
      0xfd000000 | 5 << 10 | 10 << 5, // str d0, [x10, #40]
      0x9100c14a, // add x10, x10, #48
      0xf900012a, // str x10, [x9]
      0xf940052a, // ldr x10, [x9, #8]
      0xf940014b, // ldr x11, [x10]
      0xfd400140, // ldr d0, [x10]
      0xf940054c, // ldr x12, [x10, #8]
      0x9100414a, // add x10, x10, #16
      0xf900052a, // str x10, [x9, #8]
      ...writes ? [0xb900002c] : [], // str w12, [x1]
      0xaa0b03e0, // mov x0, x11
      ...Array.from({ length: 17 }, (_, i) => 0x92800000 | i + 1), // mov x1 to x17, #-1
      0xd65f03c0, // ret
    ];
    if (code.length % 2 === 1) code.push(0);
    code[0] = 0x58000009 | code.length << 5;
    return [...new Uint8Array(Uint32Array.from(code).buffer), ...word(log)];
  },
} as const;

const architectures = { x86_64: x8664, aarch64 } as const;

export type Architecture = keyof typeof architectures;

/** A call of one of the functions, and what it returns. */
export interface Call<Name extends string> {
  readonly name: Name;
  readonly args: readonly bigint[];
  readonly returns: readonly [result: bigint, second: bigint];
}

/** Memory that holds the functions and their return values; `set` writes a word. */
export function memoryFor<Name extends string>(
  named: readonly Name[],
  arch: Architecture,
  calls: readonly Call<Name>[],
) {
  const memory = Buffer.alloc(place.size);
  const set = (at: number, value: bigint) => memory.writeBigUInt64LE(BigInt.asUintN(64, value), at);
  const functionAt = (name: Name) => BigInt(base + place.functions + functionBytes * named.indexOf(name));
  named.forEach((name, id) =>
    memory.set(
      functions[arch](id, name === "PyLong_AsLongLongAndOverflow"),
      place.functions + functionBytes * id,
    )
  );
  set(place.log, log + 16n);
  set(place.log + 8, BigInt(base + place.script));
  calls.forEach(({ returns }, i) => returns.forEach((value, k) => set(place.script + 16 * i + 8 * k, value)));
  return { memory, set, functionAt };
}

/** What a program did. */
export interface Emulated {
  readonly returned: boolean;
  readonly preserved: boolean;
  /** The word at an offset of the memory. */
  readonly read: (at: number) => bigint;
  /** The calls it made: numbers of functions, with four arguments and a double. */
  readonly calls: readonly { readonly id: number; readonly args: readonly bigint[] }[];
}

/** Runs programs, each of which is passed the address of its block. */
export function emulate(
  arch: Architecture,
  all: readonly { readonly program: readonly Operation[]; readonly memory: Buffer }[],
): Emulated[] {
  const hex = (code: Uint8Array) => Buffer.from(code).toString("hex");
  const given = all.map(({ program, memory }) => ({
    arch,
    memory: hex(memory),
    code: hex(architectures[arch](program)),
    arguments: [base + place.block],
  }));
  const script = fileURLToPath(new URL("emulate_call.py", import.meta.url));
  const { status, stdout, stderr } = spawnSync(python, [script], {
    input: JSON.stringify(given),
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  });
  assertEquals(status, 0, stderr);
  const reports = JSON.parse(stdout) as { memory: string; returned: boolean; preserved: boolean }[];
  return reports.map(({ memory, returned, preserved }) => {
    const bytes = Buffer.from(memory, "hex");
    const read = (at: number) => bytes.readBigUInt64LE(at);
    const calls = Array.from({ length: Number(read(place.log) - log - 16n) / 48 }, (_, k) => {
      const at = place.log + 16 + 48 * k;
      return { id: Number(read(at)), args: Array.from({ length: 5 }, (_, n) => read(at + 8 + 8 * n)) };
    });
    return { returned, preserved, read, calls };
  });
}
