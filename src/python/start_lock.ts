/**
 * A lock that all threads of the process share, whichever runtime's Worker and whichever copy of this package they run:
 * the name of a local socket that is not a file. The kernel gives it to one, and takes it back when that is closed.
 *
 * @module
 */
import { AF, errno, SOCK, sockaddr_un } from "../../bindings/libc.ts";
import { attempt, FfiError, layoutOf, libc, NativeArena } from "../ffi/mod.ts";

/** For how long at most another thread may hold the lock, in milliseconds. Starting Python takes 10 to 100. */
const patience = 30_000;

// law python/oneAtATime: python/open_in_workers
/**
 * Calls a function that no two threads of the process run at a time. Where there are no such sockets it is just called.
 *
 * @param name of the lock
 * @throws {FfiError} if another thread does not end it: a Worker that was terminated within it
 */
export function oneAtATime<T>(name: string, act: () => T, most: number = patience): T {
  const { sockets, files } = libc();
  const socket = attempt(() => sockets.socket(AF.UNIX, SOCK.STREAM | SOCK.CLOEXEC, 0));
  if (socket < 0) return act();
  try {
    using arena = new NativeArena();
    const text = new TextEncoder().encode(`\0causeway-${name}-${sockets.getpid()}`); // NUL: a name, and not a file's
    const socketName = arena.struct(sockaddr_un);
    socketName.sun_family = AF.UNIX;
    socketName.sun_path.set(text);
    const length = layoutOf(sockaddr_un).offsets.sun_path + text.length;
    const start = performance.now();
    while (attempt(() => sockets.bind(socket, socketName.$address, length)) === -errno.EADDRINUSE) {
      if (performance.now() - start > most) throw notReleased(name);
      sockets.poll(0n, 0n, 1); // sleeps for 1 ms
    }
    return act();
  } finally {
    files.close(socket);
  }
}

function notReleased(name: string): FfiError {
  return new FfiError(
    `Cannot start ${name}: another thread has been starting it for 30 s. If that was a Worker which was terminated ` +
      `meanwhile, start ${name} before any Worker does.`,
  );
}
