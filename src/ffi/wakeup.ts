/**
 * Waking the event loop from native code: a pipe, whose writing end the native side closes. No JavaScript runs on the
 * thread that does it.
 *
 * @module
 */
import { FfiError } from "./errors.ts";
import { NativeArena } from "./arena.ts";
import { libc } from "./libc.ts";
import { ffiPort } from "./port.ts";
import { cString } from "./text.ts";

/** Close on exec: a child process must not keep the pipe open (fcntl.h). */
const O_CLOEXEC = 0o2000000;

/** Something that native code will say once. */
export interface Wakeup {
  /** Address of a C function that says it: `void (*)(void *)`. Any thread may call it, once. */
  readonly callback: bigint;
  /** The argument that the function needs. */
  readonly argument: bigint;
  /** Settles when it has been said. */
  readonly said: Promise<void>;
  /** Says it from here, if native code will not. Only before native code could have. */
  cancel(): void;
}

let closeAddress = 0n;

/**
 * Makes a wakeup. It holds two file descriptors until it is said or cancelled, and keeps the process alive.
 *
 * @throws {FfiError} if there are no file descriptors left
 */
export function createWakeup(): Wakeup {
  // `int close(int fd)` called as `void f(void *fd)`: the argument arrives in the same register, the result is ignored.
  if (closeAddress === 0n) closeAddress = libc().loading.dlsym(0n, cString("close"));
  using arena = new NativeArena();
  const ends = arena.bytes(8, 4);
  if (libc().files.pipe2(ends.address, O_CLOEXEC) !== 0) {
    throw new FfiError("Cannot wait for native work: pipe2 failed. Are there too many open files?");
  }
  const [reading = -1, writing = -1] = new Int32Array(ends.bytes.buffer, ends.bytes.byteOffset, 2);
  return {
    callback: closeAddress,
    argument: BigInt(writing),
    said: ffiPort().endOfFile(reading),
    cancel: () => {
      libc().files.close(writing);
    },
  };
}
