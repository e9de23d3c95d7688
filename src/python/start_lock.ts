/**
 * A lock that all threads of the process share, whichever runtime's Worker and whichever copy of this package they run:
 * that of C's `stdin`, which the C library creates, and which nothing else holds for longer than a call.
 *
 * @module
 */
import { cString, FfiError, ffiPort, libc, littleEndian } from "../ffi/mod.ts";

/** For how long at most another thread may hold the lock, in milliseconds. Starting Python takes 10 to 100. */
const patience = 30_000;

// law python/oneAtATime: python/open_in_workers
/**
 * Calls a function that no two threads of the process run at a time.
 *
 * @throws {FfiError} if another thread does not end it: a Worker that was terminated within it, which releases nothing
 */
export function oneAtATime<T>(act: () => T): T {
  const { loading, stdio, sockets } = libc();
  const file = new DataView(ffiPort().memory(loading.dlsym(0n, cString("stdin")), 8)).getBigUint64(0, littleEndian);
  for (const start = performance.now(); stdio.ftrylockfile(file) !== 0;) {
    if (performance.now() - start > patience) {
      throw new FfiError(
        "Cannot start Python: another thread has been starting it for 30 s. If that was a Worker which was " +
          "terminated meanwhile, start Python before any Worker does.",
      );
    }
    sockets.poll(0n, 0n, 1); // sleeps for 1 ms
  }
  try {
    return act();
  } finally {
    stdio.funlockfile(file);
  }
}
