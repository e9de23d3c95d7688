/**
 * Order, the heart: who must wait for whom when memory changes hands, and when memory may be freed.
 *
 * The room knows streams and devices, and of memory the interface `OrderedMemory` alone: no buffer's class, no view, no
 * protocol, no Python. Whatever leaves or comes back passes through here, over any protocol, wire or library:
 *
 * - before a consumer begins: `consumerWaits`, `hostWaits`, `hostWaitsToRead`, or an event by `recordReady`;
 * - while it has the memory: the memory is pinned, by a `Loan` or by an export on the list of `addExport`;
 * - when it has released: `ReleaseOrder` orders the home stream behind all that the consumer may have enqueued, then the
 *   memory is unpinned; before an import is returned to its producer, `hostWaitsBeforeReturn`;
 * - memory that the driver does not free in stream order is freed by `freeAfter`, once the work before it is done.
 *
 * Consumers release on any thread, where no JavaScript can run, so somebody has to poll: `reclaim`, before each allocation.
 *
 * @module
 */
export { canReach } from "./can_reach.ts";
export { freeAfter, freeAfterAll, isOver, markEnd, pollIfFew, waitForEnd, whenUnblocked } from "./deferred_free.ts";
export { ExchangeError } from "./exchange_error.ts";
export { addExport, alsoPoll, type ExportEntry, type LiveExport, pollExport, pollIfMany } from "./exports.ts";
export { noteElementAccess } from "./host_access.ts";
export { Loan } from "./loan.ts";
export {
  consumerStream,
  consumerWaits,
  hostReady,
  hostWaits,
  hostWaitsBeforeReturn,
  hostWaitsToRead,
  producerWaits,
  recordReady,
  ReleaseOrder,
} from "./order.ts";
export type { MemoryKind } from "./ordered_memory.ts";
export { freeSoon, pinWhileInFlight } from "./pageable_in_use.ts";
export { liveExports, reclaim } from "./reclaim.ts";
