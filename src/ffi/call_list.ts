/**
 * Lists of C calls that a native thread makes one after the other: machine code goes through them, so that no JavaScript
 * runs on that thread.
 *
 * @module
 */
import { allocate } from "./arena.ts";
import { libc } from "./libc.ts";
import { executable } from "./machine_code.ts";
import { ffiPort } from "./port.ts";
import { littleEndian } from "./struct.ts";

/** A C function and what it is called with: at most four arguments, integers or pointers. Its result is ignored. */
export type NativeCall = readonly [address: bigint, ...args: bigint[]];

/** Of an entry: the address of the function, and four arguments. */
const entryBytes = 40;

let runner: bigint | null | undefined;

/**
 * The address of `void *run(void *list)`, which makes the calls of a list: what a thread is started with.
 *
 * @returns null where the system refuses executable memory
 */
export function callListRunner(): bigint | null {
  if (runner === undefined) {
    const code = ffiPort().platform.arch === "aarch64" ? aarch64Runner() : x8664Runner();
    runner = executable([code])?.[0] ?? null;
  }
  return runner;
}

/** Writes calls down in native memory, which is the caller's to free. */
export function writeCallList(calls: readonly NativeCall[]): bigint {
  const address = allocate((calls.length + 1) * entryBytes);
  const entries = new DataView(ffiPort().memory(address, (calls.length + 1) * entryBytes));
  calls.forEach((call, i) => {
    call.forEach((word, n) => entries.setBigUint64(i * entryBytes + n * 8, word, littleEndian));
  });
  return address;
}

/** Ends a list after so many calls. No thread may be going through it. */
export function cutCallList(list: bigint, calls: number): void {
  new DataView(ffiPort().memory(list + BigInt(calls * entryBytes), 8)).setBigUint64(0, 0n, littleEndian);
}

/** Frees a list. */
export function freeCallList(list: bigint): void {
  libc().loading.free(list);
}

/** x86-64, System V: the list's address arrives in rdi. */
export function x8664Runner(): Uint8Array<ArrayBuffer> {
  return new Uint8Array([
    0x53, // push rbx: the stack is aligned for calls now
    ...[0x48, 0x89, 0xfb], // mov rbx, rdi
    ...[0x48, 0x8b, 0x03], // again: mov rax, [rbx]
    ...[0x48, 0x85, 0xc0], // test rax, rax
    ...[0x74, 0x18], // jz over
    ...[0x48, 0x8b, 0x7b, 0x08], // mov rdi, [rbx + 8]
    ...[0x48, 0x8b, 0x73, 0x10], // mov rsi, [rbx + 16]
    ...[0x48, 0x8b, 0x53, 0x18], // mov rdx, [rbx + 24]
    ...[0x48, 0x8b, 0x4b, 0x20], // mov rcx, [rbx + 32]
    ...[0xff, 0xd0], // call rax
    ...[0x48, 0x83, 0xc3, entryBytes], // add rbx, 40
    ...[0xeb, 0xe0], // jmp again
    ...[0x31, 0xc0], // over: xor eax, eax
    0x5b, // pop rbx
    0xc3, // ret
  ]);
}

/** arm64, AAPCS64: the list's address arrives in x0. */
export function aarch64Runner(): Uint8Array<ArrayBuffer> {
  const words = [
    0xa9bf7bf3, // stp x19, x30, [sp, #-16]!
    0xaa0003f3, // mov x19, x0
    0xf9400268, // again: ldr x8, [x19]
    0xb40000c8, // cbz x8, over
    0xa9408660, // ldp x0, x1, [x19, #8]
    0xa9418e62, // ldp x2, x3, [x19, #24]
    0xd63f0100, // blr x8
    0x91000273 | entryBytes << 10, // add x19, x19, #40
    0x17fffffa, // b again
    0xd2800000, // over: mov x0, #0
    0xa8c17bf3, // ldp x19, x30, [sp], #16
    0xd65f03c0, // ret
  ];
  const code = new DataView(new ArrayBuffer(words.length * 4));
  words.forEach((word, i) => code.setUint32(i * 4, word, littleEndian));
  return new Uint8Array(code.buffer);
}
