/**
 * The processors that this process may run on.
 *
 * @module
 */
import { errno } from "../../bindings/libc.ts";
import { attempt, libc, NativeArena, nodeBuiltin, SystemError } from "../ffi/mod.ts";

/**
 * Keeps every thread of this process, and those that they start from now on, on one processor. A runtime has more
 * threads than the one that runs JavaScript, and to the system each has its own processors.
 *
 * @throws {RangeError} if it is not a processor number
 * @throws {SystemError} EINVAL if this process has no such processor
 */
export function runOn(processor: number): void {
  if (!Number.isSafeInteger(processor) || processor < 0 || processor >= 2 ** 16) {
    throw new RangeError(`Cannot run on processor ${processor}: expected a number from 0`);
  }
  using arena = new NativeArena();
  const set = arena.bytes((Math.floor(processor / 64) + 1) * 8, 8); // a cpu_set_t may be as long as needed
  set.bytes[processor >> 3] = 1 << (processor & 7);
  const { sched_setaffinity } = libc().scheduling;
  const { readdirSync } = nodeBuiltin("node:fs");
  const done = new Set<string>();
  for (;;) { // a thread not yet handled may have started others meanwhile
    const threads = readdirSync("/proc/self/task").filter((thread) => !done.has(thread));
    if (threads.length === 0) return;
    for (const thread of threads) {
      done.add(thread);
      const code = attempt(() => sched_setaffinity(Number(thread), BigInt(set.bytes.length), set.address));
      if (code >= 0 || code === -errno.ESRCH) continue; // it has ended meanwhile
      const hint = "`nproc` says how many this process may use";
      throw new SystemError(`run on processor ${processor}`, "sched_setaffinity", -code, hint);
    }
  }
}
