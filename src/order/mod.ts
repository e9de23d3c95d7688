/**
 * Order: which side waits for which when memory changes hands, and when memory may be freed.
 *
 * The room knows streams and devices, and about memory no more than `ordered_memory.ts` declares: a buffer is an
 * `OrderedMemory`, the elements of an array are a buffer and the layout that says where they lie (`OrderedElements`).
 * It knows no buffer class, no view, no protocol, no Python. Every hand-over and return passes through here, over any
 * protocol, wire or library:
 *
 * - before a consumer begins (`waits.ts`): `consumerWaits`, `hostWaits`, `hostWaitsToRead`, or an event that
 *   `recordReady` makes and `consumerWaitsForEvent` waits for;
 * - while it holds the memory: the memory is pinned, by a `Loan` (`loan.ts`) or by an export on the list of
 *   `exports.ts`;
 * - when it has released: `exports.ts` polls the marks that consumers leave, has `ReleaseOrder` (`release_order.ts`)
 *   order the home stream behind everything that the consumer may have enqueued, and then ends the export, which unpins
 *   the buffer. So the free, which runs on the buffer's home stream, comes after the consumer's work;
 * - before an import is returned to its producer: `hostWaitsBeforeReturn`;
 * - a free that no event of ours can follow is awaited by `waitIfElsewhere`, before its pool is destroyed;
 * - memory that the driver does not free in stream order is freed by `freeAfter` (`deferred_free.ts`), once the work
 *   before it is done; ordinary memory that a copy uses is pinned meanwhile (`pageable_in_use.ts`).
 *
 * Consumers release on any thread, where no JavaScript can run, so this side has to poll: `reclaim` does, before each
 * allocation, and an export does when many are live.
 *
 * @module
 */
export { canReach, hasAccess } from "./can_reach.ts";
export {
  freeAfter,
  freeAfterAll,
  isOver,
  markEnd,
  pollIfFew,
  waitForEnd,
  waitIfElsewhere,
  whenUnblocked,
} from "./deferred_free.ts";
export { ExchangeError } from "./exchange_error.ts";
export { addExport, alsoPoll, type ExportEntry, type LiveExport, pollExport, pollIfMany } from "./exports.ts";
export { noteElementAccess } from "./host_access.ts";
export { Loan } from "./loan.ts";
export type { MemoryKind } from "./ordered_memory.ts";
export { noteClosed, pinWhileInFlight } from "./pageable_in_use.ts";
export { liveExports, reclaim } from "./reclaim.ts";
export { ReleaseOrder } from "./release_order.ts";
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
} from "./waits.ts";
