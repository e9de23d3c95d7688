/**
 * Host accesses to elements, as the checker observes them.
 *
 * @module
 */
import { isHostObserved, noteHostAccess } from "../driver/mod.ts";
import type { OrderedElements } from "./ordered_memory.ts";

/**
 * Notes that the host is about to read or write elements of host memory. Non-contiguous elements are not noted: the
 * bytes between them may be in use.
 *
 * @param call the call that accesses them, as a report names it
 */
export function noteElementAccess({ buffer, offset, layout }: OrderedElements, writes: boolean, call: string): void {
  if (!isHostObserved() || layout.volume === 0 || !layout.isContiguousAny) return;
  const { minOffset: min, maxOffset: max, itemsize } = layout;
  const start = Math.floor(offset + min * itemsize);
  noteHostAccess(buffer.ptr + BigInt(start), Math.ceil(offset + (max + 1) * itemsize) - start, writes, call);
}
