/**
 * Order: who must wait for whom when memory changes hands, and when memory may be freed.
 *
 * The room knows streams and devices, and of memory no more than `ordered_memory.ts` declares: a buffer is an
 * `OrderedMemory`, the elements of an array are a buffer and the layout that says where they lie (`OrderedElements`).
 * It knows no buffer's class, no view, no protocol, no Python. Whatever is handed over or comes back passes through
 * here, over any protocol, wire or library:
 *
 * - before a consumer begins (`order.ts`): `consumerWaits`, `hostWaits`, `hostWaitsToRead`, or an event, made by
 *   `recordReady` and waited for by `consumerWaitsForEvent`;
 * - while it has the memory: the memory is pinned, by a `Loan` (`loan.ts`) or by an export on the list of `exports.ts`;
 * - when it has released: `exports.ts` polls the marks that consumers leave, has `ReleaseOrder` (`order.ts`) order the
 *   home stream behind all that the consumer may have enqueued, and then ends the export, which unpins the buffer. So a
 *   free, which the buffer does on its home stream, comes after the consumer's work;
 * - before an import is returned to its producer: `hostWaitsBeforeReturn`;
 * - memory that the driver does not free in stream order is freed by `freeAfter` (`deferred_free.ts`), once the work
 *   before it is done; ordinary memory that a copy uses is pinned meanwhile (`pageable_in_use.ts`).
 *
 * Consumers release on any thread, where no JavaScript can run, so this side has to poll: `reclaim` does, before each
 * allocation, and an export does when many are live.
 *
 * @module
 */
export { canReach, hasAccess } from "./can_reach.ts";
export { freeAfter, freeAfterAll, isOver, markEnd, pollIfFew, waitForEnd, whenUnblocked } from "./deferred_free.ts";
export { ExchangeError } from "./exchange_error.ts";
export { addExport, alsoPoll, type ExportEntry, type LiveExport, pollExport, pollIfMany } from "./exports.ts";
export { noteElementAccess } from "./host_access.ts";
export { Loan } from "./loan.ts";
export {
  comeAfter,
  consumerStream,
  consumerWaits,
  consumerWaitsForEvent,
  hostReady,
  hostWaits,
  hostWaitsBeforeReturn,
  hostWaitsFor,
  hostWaitsForCopy,
  hostWaitsToRead,
  orderStreams,
  producerWaits,
  recordReady,
  ReleaseOrder,
} from "./order.ts";
export type { MemoryKind } from "./ordered_memory.ts";
export { freeSoon, pinWhileInFlight } from "./pageable_in_use.ts";
export { liveExports, reclaim } from "./reclaim.ts";
