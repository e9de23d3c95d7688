/**
 * Which descriptors are sets (epoll), and which ones are in them, no matter who created either.
 *
 * @module
 */
import { cString, libc, NativeArena, readTextFile } from "../ffi/mod.ts";

/** The most of a set's description that is read, in bytes: of a thousand descriptors. */
const maxText = 1 << 17;

/** How many descriptors are checked for being sets: libraries create theirs early. */
const maxChecked = 1024;

/** The members of a set. */
export function membersOf(set: number): number[] {
  const text = readTextFile(`/proc/self/fdinfo/${set}`, maxText) ?? "";
  return Array.from(text.matchAll(/^tfd:\s*(\d+)/gm), ([, fd]) => Number(fd));
}

/** The sets that a descriptor is in. */
export function setsWith(fd: number): number[] {
  const sets = Array.from({ length: maxChecked }, (_, set) => set).filter((set) => isOfKind(set, "[eventpoll]"));
  return sets.filter((set) => membersOf(set).includes(fd));
}

// law unix/isOfKind: unix/socket_news, unix/set_timers
/** Whether a descriptor is open and of a kind, by the system's name for it, no matter who created it. */
export function isOfKind(fd: number, kind: "[eventpoll]" | "[timerfd]"): boolean {
  const name = `anon_inode:${kind}`;
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(name.length + 1);
  const length = Number(libc().files.readlink(cString(`/proc/self/fd/${fd}`), address, BigInt(bytes.length)));
  return new TextDecoder().decode(bytes.subarray(0, Math.max(0, length))) === name; // -1 if there is none
}
