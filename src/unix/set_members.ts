/**
 * Which descriptors are in a descriptor set (epoll), no matter who created either.
 *
 * @module
 */
import { readTextFile } from "../ffi/mod.ts";
import { isOfKind } from "./descriptor_kind.ts";

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
