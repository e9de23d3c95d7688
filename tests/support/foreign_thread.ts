/**
 * Threads of other libraries, on which no JavaScript may run.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { NativeArena } from "../../src/ffi/arena.ts";
import { ffiPort } from "../../src/ffi/port.ts";

const threads = ffiPort().bind("libc.so.6", 0n, {
  // int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *argument);
  pthread_create: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32" },
  // int pthread_join(pthread_t thread, void **result);
  pthread_join: { args: ["u64", "ptr"], returns: "i32" },
});

/** Starts a thread that only calls a C function with one pointer. @returns what `join` needs */
export function start(callback: bigint, argument: bigint): bigint {
  using arena = new NativeArena();
  const thread = arena.out("u64");
  assertEquals(threads.pthread_create(thread.$address, 0n, callback, argument), 0);
  return thread.value;
}

/** Waits for a thread; the calling thread runs no JavaScript meanwhile. */
export function join(thread: bigint): void {
  assertEquals(threads.pthread_join(thread, 0n), 0);
}
