/**
 * Releases the interpreter's lock at the end of a thread. A runtime may terminate a Worker at any point, Bun even
 * within a call of Python, and then no `finally` block runs. So the C library releases the lock when the thread ends.
 *
 * @module
 */
import { cString, FfiError, ffiPort, libc, NativeArena } from "../ffi/mod.ts";
import { instructions, mapExecutable } from "../native/mod.ts";

/** What the code calls: addresses of interpreter functions. */
const lockFunctions = {
  /** `int PyGILState_Check(void)`: whether this thread holds the lock. */
  check: "ptr",
  /** `void PyGILState_Release(PyGILState_STATE)`. */
  release: "ptr",
} as const;

/**
 * `int __cxa_thread_atexit_impl(void (*)(void *), void *, void *dso)`, of glibc since 2.18: C++ uses it to destroy
 * thread-local objects.
 */
const atThreadEnd = { args: ["ptr", "ptr", "ptr"], returns: "i32" } as const;

/**
 * Arranges for the interpreter's lock to be released at the end of this thread, if the thread then holds it. Calls cost
 * no more for that.
 *
 * @param library `dlopen`'s handle of libpython
 * @param make maps code into executable memory
 * @throws {FfiError} if the system refuses machine code: a Worker that is terminated within a call would keep the lock
 *   forever
 */
export function releaseLockAtThreadEnd(library: bigint, make: typeof mapExecutable = mapExecutable): void {
  const code = make([ffiPort().platform.arch === "aarch64" ? aarch64ReleaseLock() : x8664ReleaseLock()])?.[0];
  if (code === undefined) {
    throw new FfiError(
      "Cannot use Python in a Worker: the system refuses executable memory, without which a Worker that is " +
        "terminated within a call to Python would hold the interpreter's lock forever. Use it on the main thread.",
    );
  }
  const { dlsym } = libc().loading;
  const functions = new NativeArena().struct(lockFunctions); // never freed: the thread outlives its JavaScript
  functions.check = dlsym(library, cString("PyGILState_Check"));
  functions.release = dlsym(library, cString("PyGILState_Release"));
  ffiPort().functionAt(dlsym(0n, cString("__cxa_thread_atexit_impl")), atThreadEnd)(code, functions.$address, 0n);
}

// law python/x8664ReleaseLock: python/thunks
/** x86-64, System V: the address of the two functions arrives in rdi. */
export function x8664ReleaseLock(): Uint8Array<ArrayBuffer> {
  return new Uint8Array([
    0x53, // push rbx: aligns the stack for calls
    ...[0x48, 0x89, 0xfb], // mov rbx, rdi
    ...[0xff, 0x13], // call [rbx]: PyGILState_Check
    ...[0x85, 0xc0], // test eax, eax
    ...[0x74, 0x08], // jz over
    ...[0xbf, 0x01, 0x00, 0x00, 0x00], // mov edi, PyGILState_UNLOCKED
    ...[0xff, 0x53, 0x08], // call [rbx + 8]: PyGILState_Release
    0x5b, // over: pop rbx
    0xc3, // ret
  ]);
}

// law python/aarch64ReleaseLock: python/thunks
/** arm64, AAPCS64: the address of the two functions arrives in x0. */
export function aarch64ReleaseLock(): Uint8Array<ArrayBuffer> {
  return instructions([
    0xa9be7bfd, // stp x29, x30, [sp, #-32]!
    0xf9000bf3, // str x19, [sp, #16]
    0xaa0003f3, // mov x19, x0
    0xf9400268, // ldr x8, [x19]
    0xd63f0100, // blr x8: PyGILState_Check
    0x34000080, // cbz w0, over
    0x52800020, // mov w0, PyGILState_UNLOCKED
    0xf9400668, // ldr x8, [x19, #8]
    0xd63f0100, // blr x8: PyGILState_Release
    0xf9400bf3, // over: ldr x19, [sp, #16]
    0xa8c27bfd, // ldp x29, x30, [sp], #32
    0xd65f03c0, // ret
  ]);
}
