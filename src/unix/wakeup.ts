/**
 * Waking the event loop from native code: two connected sockets, of which the native side closes one. No JavaScript
 * runs on the thread that does it.
 *
 * Each of the two descriptors has one owner at every instant, because a number that is closed may be another file's at
 * once. The one to listen on is ours. The one to close is ours until native code is given it, and the native code's
 * from then on: it cannot be known from here whether that has closed it already. To give up waiting is therefore to
 * shut down our own end.
 *
 * @module
 */
import { AF, SOCK } from "../../bindings/libc.ts";
import { cString, FfiError, ffiPort, libc, NativeArena } from "../ffi/mod.ts";

/** Neither reads nor writes any more (sys/socket.h). */
const SHUT_RDWR = 2;

/** A signal that native code will give once. */
export interface Wakeup {
  /** Address of a C function that gives it: `void (*)(void *)`. Any thread may call it, once. */
  readonly callback: bigint;
  /** The argument that the function needs: the function that gets it owns the descriptor that it stands for. */
  readonly argument: bigint;
  /** Settles when the signal was given, cancelled or given up. */
  readonly signalled: Promise<void>;
  /** Gives the signal from here. Only before native code was given the argument, or if that has refused it. */
  cancel(): void;
  /**
   * Settles `signalled` although native code was given the argument, which remains its own and may still be used. If it
   * never is, as in a context that is lost, a descriptor stays open.
   */
  giveUp(): void;
}

let closeAddress = 0n;

// law unix/createWakeup: unix/wakeup
/**
 * Makes a wakeup. It holds two file descriptors until it is given or cancelled, and keeps the process alive.
 *
 * @throws {FfiError} if there are no file descriptors left
 */
export function createWakeup(): Wakeup {
  // `int close(int fd)` called as `void f(void *fd)`: the argument arrives in the same register, the result is ignored.
  if (closeAddress === 0n) closeAddress = libc().loading.dlsym(0n, cString("close"));
  const { files, sockets } = libc();
  using arena = new NativeArena();
  const ends = arena.bytes(8, 4);
  // Not inherited by child processes: they would keep the connection open.
  if (sockets.socketpair(AF.UNIX, SOCK.STREAM | SOCK.CLOEXEC, 0, ends.address) !== 0) {
    throw new FfiError("Cannot wait for native work: socketpair failed. Are there too many open files?");
  }
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
    giveUp: () => {
      if (isListening) sockets.shutdown(listening, SHUT_RDWR);
    },
  };
}
