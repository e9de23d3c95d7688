/**
 * Which side waits for which when memory changes hands: before a consumer begins, and before memory is returned. What
 * comes after a consumer whose stream is unknown is in `release_order.ts`.
 *
 * @module
 */
import { CU_STREAM_LEGACY, CU_STREAM_PER_THREAD } from "../../bindings/cuda_types.ts";
import type { CudaDevice, CudaEvent, CudaStream } from "../device/mod.ts";
import { isSticky } from "../driver/mod.ts";
import { noteElementAccess } from "./host_access.ts";
import type { OrderedElements, OrderedMemory } from "./ordered_memory.ts";

// law order/consumerWaits: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/**
 * Before a consumer begins: makes the consumer's stream wait for everything enqueued on the buffer's home stream. Host
 * memory needs no order.
 *
 * @param stream the consumer's stream; null if it requested no order
 */
export function consumerWaits(buffer: OrderedMemory, stream: CudaStream | null): void {
  orderStreams(buffer.stream, stream);
}

// law order/orderStreams: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/**
 * Makes everything enqueued on one stream from now on come after everything enqueued on another so far. For work of one
 * call on several streams, and where the producer's stream is known. Null: no stream, so there is nothing to order.
 */
export function orderStreams(before: CudaStream | null, after: CudaStream | null): void {
  if (before !== null && after !== null) after.wait(before);
}

// law order/consumerWaitsForEvent: arrow/array, order/programs, arrow/several_homes
/**
 * Before a consumer begins, when the producer signals by an event that the data is ready: the consumer's stream waits
 * for the event, or the host if there is no stream.
 */
export function consumerWaitsForEvent(ready: CudaEvent, stream: CudaStream | null): void {
  if (stream === null) ready.synchronize();
  else stream.wait(ready);
}

// law order/hostWaits: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/**
 * Before a consumer on the host begins, which has no stream that could wait: the host waits for everything that comes
 * before the home stream's next work. Page-locked and managed memory has a home stream; ordinary host memory is always
 * ready.
 */
export function hostWaits({ stream }: OrderedMemory): void {
  hostWaitsFor(stream);
}

// law order/hostWaitsFor: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/** As {@linkcode hostWaits}, for memory that is ordered on a stream other than its home, or on none. */
export function hostWaitsFor(stream: CudaStream | null | undefined): void {
  stream?.waitUntilReady();
}

/**
 * After a copy to or from the host was enqueued: the host waits until it is done, and everything enqueued before it on
 * the stream. It does not wait for work of other streams that the stream's next work would wait for.
 */
export function hostWaitsForCopy(stream: CudaStream | null): void {
  stream?.synchronize();
}

// law order/hostWaitsToRead: checker/copies
/**
 * As {@linkcode hostWaits}, for a consumer that may read the elements as soon as it has them: the checker finds writes
 * that are not ordered before the home stream's next work.
 *
 * @param call the call that hands them over, as a report names it
 */
export function hostWaitsToRead(elements: OrderedElements, call: string): void {
  hostWaits(elements.buffer);
  noteElementAccess(elements, false, call);
}

/**
 * As {@linkcode hostWaits}, for consumers that need not block: the promise settles when they may begin.
 *
 * @returns null if they may begin at once
 */
export function hostReady({ stream }: OrderedMemory): Promise<void> | null {
  return stream === null || stream.isReady ? null : stream.ready();
}

// law order/producerWaits: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/**
 * When a consumer that knows its producer's stream is done: the producer's next work comes after everything enqueued on
 * the consumer's stream.
 */
export function producerWaits(consumer: CudaStream, producer: CudaStream): void {
  try {
    producer.wait(consumer);
  } catch {
    waitInstead(waitForAll, consumer);
  }
}

// law order/comeAfter: memory/imported_memory, memory/sharing/sharing, memory/sharing/pieces,
//   memory/sharing/memory_channel
/**
 * Makes everything enqueued on a stream from now on come after an event, because memory is freed next: if the driver
 * refuses, the host waits. In a context that is lost or gone there is nothing left to wait for.
 */
export function comeAfter(stream: CudaStream, event: CudaEvent): void {
  try {
    stream.wait(event);
  } catch {
    waitInstead(waitForEvent, event);
  }
}

// law order/waitInstead: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/**
 * Makes the host wait for work that the driver refuses to order, for example because no event is left: memory is freed
 * next. Its error says what else is wrong. In a lost context there is nothing left to wait for. A function and its
 * argument: a closure would cost its caller an allocation every time that it is not needed.
 */
function waitInstead<T>(wait: (work: T) => void, work: T): void {
  try {
    wait(work);
  } catch (error) {
    if (!isSticky(error)) throw error;
  }
}

// law order/waitForAll: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/**
 * Waits for the work enqueued on a stream, perhaps in a context of its own, and for everything that its next work would
 * wait for.
 */
function waitForAll(stream: CudaStream): void {
  stream.synchronize();
  stream.device.synchronize();
}

function waitForEvent(event: CudaEvent): void {
  if (!event.device.isGone) event.synchronize();
}

// law order/hostWaitsBeforeReturn: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/**
 * Before foreign memory is returned to a producer that may free it at once: makes the host wait for everything that
 * comes before the stream's next work. For a blocking stream that includes work of the legacy default stream.
 */
export function hostWaitsBeforeReturn(stream: CudaStream): void {
  try {
    stream.waitUntilReady();
  } catch {
    waitInstead(waitForAll, stream);
  }
}

/** The stream that a consumer names by its handle, on the buffer's device. */
export function consumerStream(device: CudaDevice, stream: CudaStream | bigint): CudaStream {
  if (typeof stream !== "bigint") return stream;
  if (stream === CU_STREAM_LEGACY) return device.defaultStream;
  return stream === CU_STREAM_PER_THREAD ? device.perThreadStream : device.foreignStream(stream);
}

// law order/recordReady: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease,
//   arrow/several_homes
/**
 * Before a consumer that will wait for an event: records one that comes after everything enqueued on the home streams
 * of these buffers.
 *
 * @returns the event, which the caller closes; null if no buffer has a home stream
 */
export function recordReady(buffers: Iterable<OrderedMemory>): CudaEvent | null {
  const [first, ...others] = new Set([...buffers].map(({ stream }) => stream).filter((stream) => stream !== null));
  if (first === undefined) return null;
  if (others.length === 0) return first.recordNew();
  using joined = first.device.createStream(); // so that no home stream has to wait for another
  for (const stream of [first, ...others]) joined.wait(stream);
  return joined.recordNew();
}
