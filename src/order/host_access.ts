/**
 * Host accesses to elements, as the checker observes them.
 *
 * @module
 */
import { isHostObserved, noteHostAccess } from "../driver/mod.ts";
import { bytesBefore, bytesFrom } from "../layout/mod.ts";
import type { OrderedElements } from "./ordered_memory.ts";

/**
 * Notes that the host is about to read or write elements of host memory. Non-contiguous elements are not noted: the
 * bytes between them may be in use.
 *
 * @param call the call that accesses them, as a report names it
 */
export function noteElementAccess({ buffer, offset, layout }: OrderedElements, writes: boolean, call: string): void {
  if (!isHostObserved() || layout.volume === 0 || !layout.isContiguousAny) return;
  const before = bytesBefore(layout);
  noteHostAccess(buffer.ptr + BigInt(offset - before), before + bytesFrom(layout), writes, call);
}
