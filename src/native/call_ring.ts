/**
 * A ring of C calls from which native threads take the next one available, in machine code, so that no JavaScript runs
 * on those threads. A slow thread takes fewer calls, and no thread waits for another.
 *
 * @module
 */
import type { StructDescription } from "../../bindings/abi.ts";
import { instructions, mapExecutable } from "./machine_code.ts";
import { ffiPort } from "../ffi/mod.ts";

/** A C function and its arguments: at most three, integers or pointers. Its result is ignored. */
export type NativeCall = readonly [address: bigint, ...args: bigint[]];

/** The state that the threads share. */
export const call_ring = {
  next: "u64", // entries taken so far, by all threads
  mask: "u64", // the number of entries, a power of two, less one
  entries: "ptr",
  permits: "ptr", // sem_t: one permit per entry that may be taken
  sem_wait: "ptr", // the functions' addresses
  sem_post: "ptr",
} as const satisfies StructDescription;

/** Size of an entry: the address of the function, three arguments, and the address of its round. */
export const entryBytes = 40;

/** Size of a round: the number of its unfinished calls, and a semaphore that is posted when none is left. */
export const roundBytes = 64;

/** Offset of a round's semaphore. */
export const roundSemaphore = 8n;

let taker: bigint | null | undefined;

/**
 * The address of `void *take(struct call_ring *)`, the start routine of threads. It makes calls until it takes one
 * whose function is NULL.
 *
 * @returns null where the system refuses executable memory
 */
export function callTaker(): bigint | null {
  if (taker === undefined) {
    const code = ffiPort().platform.arch === "aarch64" ? aarch64Taker() : x8664Taker();
    taker = mapExecutable([code])?.[0] ?? null;
  }
  return taker;
}

/** x86-64, System V: the ring's address arrives in rdi. */
export function x8664Taker(): Uint8Array<ArrayBuffer> {
  return new Uint8Array([
    0x53, // push rbx
    0x55, // push rbp
    ...[0x48, 0x83, 0xec, 0x08], // sub rsp, 8: this aligns the stack for calls
    ...[0x48, 0x89, 0xfb], // mov rbx, rdi
    ...[0x48, 0x8b, 0x7b, 0x18], // again: mov rdi, [rbx + 24]
    ...[0xff, 0x53, 0x20], // call [rbx + 32]: sem_wait
    ...[0x85, 0xc0], // test eax, eax
    ...[0x75, 0xf5], // jnz again: interrupted by a signal
    ...[0xb8, 0x01, 0x00, 0x00, 0x00], // mov eax, 1
    ...[0xf0, 0x48, 0x0f, 0xc1, 0x03], // lock xadd [rbx], rax
    ...[0x48, 0x23, 0x43, 0x08], // and rax, [rbx + 8]
    ...[0x48, 0x8d, 0x2c, 0x80], // lea rbp, [rax + rax * 4]
    ...[0x48, 0xc1, 0xe5, 0x03], // shl rbp, 3: entries of 40 bytes
    ...[0x48, 0x03, 0x6b, 0x10], // add rbp, [rbx + 16]
    ...[0x48, 0x8b, 0x45, 0x00], // mov rax, [rbp]
    ...[0x48, 0x85, 0xc0], // test rax, rax
    ...[0x74, 0x21], // jz over
    ...[0x48, 0x8b, 0x7d, 0x08], // mov rdi, [rbp + 8]
    ...[0x48, 0x8b, 0x75, 0x10], // mov rsi, [rbp + 16]
    ...[0x48, 0x8b, 0x55, 0x18], // mov rdx, [rbp + 24]
    ...[0xff, 0xd0], // call rax
    ...[0x48, 0x8b, 0x7d, 0x20], // mov rdi, [rbp + 32]
    ...[0xf0, 0x48, 0xff, 0x0f], // lock dec qword [rdi]
    ...[0x75, 0xba], // jnz again
    ...[0x48, 0x83, 0xc7, 0x08], // add rdi, 8
    ...[0xff, 0x53, 0x28], // call [rbx + 40]: sem_post
    ...[0xeb, 0xb1], // jmp again
    ...[0x48, 0x83, 0xc4, 0x08], // over: add rsp, 8
    0x5d, // pop rbp
    0x5b, // pop rbx
    0xc3, // ret: the thread's result is unused
  ]);
}

/** arm64, AAPCS64: the ring's address arrives in x0. */
export function aarch64Taker(): Uint8Array<ArrayBuffer> {
  return instructions([
    0xa9be7bfd, // stp x29, x30, [sp, #-32]!
    0xa90153f3, // stp x19, x20, [sp, #16]
    0xaa0003f3, // mov x19, x0
    0xa941a260, // again: ldp x0, x8, [x19, #24]
    0xd63f0100, // blr x8: sem_wait
    0x35ffffc0, // cbnz w0, again: interrupted by a signal
    0xc85ffe69, // take: ldaxr x9, [x19]
    0x9100052a, // add x10, x9, #1
    0xc80bfe6a, // stlxr w11, x10, [x19]
    0x35ffffab, // cbnz w11, take
    0xa940d26a, // ldp x10, x20, [x19, #8]
    0x8a0a0129, // and x9, x9, x10
    0x8b090929, // add x9, x9, x9, lsl #2
    0x8b090e94, // add x20, x20, x9, lsl #3: entries of 40 bytes
    0xa9400288, // ldp x8, x0, [x20]
    0xb40001a8, // cbz x8, over
    0xa9410a81, // ldp x1, x2, [x20, #16]
    0xd63f0100, // blr x8
    0xf9401280, // ldr x0, [x20, #32]
    0xc85ffc09, // done: ldaxr x9, [x0]
    0xd1000529, // sub x9, x9, #1
    0xc80bfc09, // stlxr w11, x9, [x0]
    0x35ffffab, // cbnz w11, done
    0xb5fffd89, // cbnz x9, again
    0x91002000, // add x0, x0, #8
    0xf9401668, // ldr x8, [x19, #40]
    0xd63f0100, // blr x8: sem_post
    0x17ffffe8, // b again
    0xd2800000, // over: mov x0, #0
    0xa94153f3, // ldp x19, x20, [sp, #16]
    0xa8c27bfd, // ldp x29, x30, [sp], #32
    0xd65f03c0, // ret
  ]);
}
