/**
 * Waking the event loop from native code: the native side closes one of two connected sockets. No JavaScript runs on
 * the thread that does so.
 *
 * Each of the two descriptors has exactly one owner at any time, because a closed number may at once be another file's.
 * We own the one to listen on. We own the one to close until it is passed to native code, which owns it from then on:
 * we cannot know whether it has closed it already. So giving up the wait means shutting down our own end.
 *
 * @module
 */
import { AF, SHUT, SOCK } from "../../bindings/libc.ts";
import { attempt, cString, ffiPort, libc, NativeArena, SystemError } from "../ffi/mod.ts";

/** A signal that native code gives once. */
export interface Wakeup {
  /** Address of a C function that gives the signal: `void (*)(void *)`. Any thread may call it, once. */
  readonly callback: bigint;
  /** The argument of that function: the function that receives it owns the descriptor that it represents. */
  readonly argument: bigint;
  /** Settles when the signal was given, cancelled or abandoned. */
  readonly signalled: Promise<void>;
  /** Gives the signal from here. Only before native code has received the argument, or if it has refused it. */
  cancel(): void;
  /**
   * Settles `signalled` although native code has received the argument, still owns it and may still use it. If it never
   * does, as in a lost context, a descriptor stays open.
   */
  abandon(): void;
}

let closeAddress = 0n;

// law unix/createWakeup: unix/wakeup
/**
 * Creates a wakeup. It holds two file descriptors until it is signalled or cancelled, and keeps the process alive.
 *
 * @throws {SystemError} if there are no file descriptors left
 */
export function createWakeup(): Wakeup {
  // `int close(int fd)` called as `void f(void *fd)`: the argument arrives in the same register, the result is ignored.
  if (closeAddress === 0n) closeAddress = libc().loading.dlsym(0n, cString("close"));
  const { files, sockets } = libc();
  using arena = new NativeArena();
  const ends = arena.bytes(8, 4);
  // Not inherited by child processes: they would keep the connection open.
  const code = attempt(() => sockets.socketpair(AF.UNIX, SOCK.STREAM | SOCK.CLOEXEC, 0, ends.address));
  if (code < 0) throw new SystemError("wait for native work", "socketpair", -code, "Are there too many open files?");
  const [listening = -1, closing = -1] = new Int32Array(ends.bytes.buffer, ends.bytes.byteOffset, 2);
  let isListening = true;
  const signalled = ffiPort().endOfFile(listening).finally(() => {
    isListening = false;
    files.close(listening);
  });
  return {
    callback: closeAddress,
    argument: BigInt(closing),
    signalled,
    cancel: () => void files.close(closing),
    abandon: () => {
      if (isListening) sockets.shutdown(listening, SHUT.RDWR);
    },
  };
}
