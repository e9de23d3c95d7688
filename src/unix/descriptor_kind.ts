/**
 * What kind of descriptor a number stands for, as the system says.
 *
 * @module
 */
import { cString, libc, NativeArena } from "../ffi/mod.ts";

/** The system's names for descriptors without a file. */
export type AnonymousKind = "[eventpoll]" | "[timerfd]";

// law unix/isOfKind: unix/socket_news, unix/set_timers
/** Whether a descriptor is open and of a kind, no matter who created it. */
export function isOfKind(fd: number, kind: AnonymousKind): boolean {
  const name = `anon_inode:${kind}`;
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(name.length + 1);
  const length = Number(libc().files.readlink(cString(`/proc/self/fd/${fd}`), address, BigInt(bytes.length)));
  return new TextDecoder().decode(bytes.subarray(0, Math.max(0, length))) === name; // -1 if there is none
}
