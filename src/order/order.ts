/**
 * The one place that knows who must wait for whom when memory changes hands.
 *
 * @module
 */
import { CU_STREAM_LEGACY, CU_STREAM_PER_THREAD } from "../../bindings/cuda_types.ts";
import {
  type CudaDevice,
  type CudaEvent,
  type CudaStream,
  isBlockedByCapture,
  isCapturing,
  isRefusedByCapture,
} from "../device/mod.ts";
import { isSticky } from "../driver/mod.ts";
import { canReach } from "./can_reach.ts";
import { noteElementAccess } from "./host_access.ts";
import type { OrderedElements, OrderedMemory } from "./ordered_memory.ts";

// law order/consumerWaits: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/**
 * Before a consumer begins: makes the consumer's stream wait for everything enqueued on the buffer's home stream. Host
 * memory needs no order.
 *
 * @param stream the consumer's stream; null if it asked for no order
 */
export function consumerWaits(buffer: OrderedMemory, stream: CudaStream | null): void {
  orderStreams(buffer.stream, stream);
}

// law order/orderStreams: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/**
 * Makes what is enqueued on one stream from now on come after everything that is enqueued on another one by now. For
 * work of one call on several streams, and where the producer's stream is known. Null is a stream that nothing is
 * enqueued on.
 */
export function orderStreams(first: CudaStream | null, then: CudaStream | null): void {
  if (first !== null && then !== null) then.wait(first);
}

// law order/consumerWaitsForEvent: arrow/array, order/programs, arrow/several_homes
/**
 * Before a consumer begins whose producer says by an event when the data is there: the consumer's stream waits for the
 * event, or the host if there is none.
 */
export function consumerWaitsForEvent(ready: CudaEvent, stream: CudaStream | null): void {
  if (stream === null) ready.synchronize();
  else stream.wait(ready);
}

// law order/hostWaits: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/**
 * Before a consumer on the host begins, which has no stream that could wait: the host waits for everything that comes
 * before the home stream's next work. Page-locked and managed memory has one; ordinary host memory is there at any
 * time.
 */
export function hostWaits({ stream }: OrderedMemory): void {
  hostWaitsFor(stream);
}

// law order/hostWaitsFor: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/** As {@linkcode hostWaits}, for memory that is ordered on another stream than its home, or none. */
export function hostWaitsFor(stream: CudaStream | null | undefined): void {
  stream?.waitUntilReady();
}

/**
 * After a copy to the host, or from it, was enqueued: the host waits until it is done, and all that was enqueued before
 * it on the stream. What another stream does that this one would wait for next is not waited for.
 */
export function hostWaitsForCopy(stream: CudaStream | null): void {
  stream?.synchronize();
}

// law order/hostWaitsToRead: checker/copies
/**
 * As {@linkcode hostWaits}, for a consumer who may read the elements as soon as it has them: what is not ordered before
 * the home stream's next work is found by the checker.
 *
 * @param call what hands them over, as a report names it
 */
export function hostWaitsToRead(elements: OrderedElements, call: string): void {
  hostWaits(elements.buffer);
  noteElementAccess(elements, false, call);
}

/**
 * As {@linkcode hostWaits}, for consumers that need not block: settles when they may begin.
 *
 * @returns null if they may at once
 */
export function hostReady({ stream }: OrderedMemory): Promise<void> | null {
  return stream === null || stream.isReady ? null : stream.ready();
}

// law order/producerWaits: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/**
 * When a consumer is done that knows its producer's stream: that stream's next work comes after everything that is
 * enqueued on the consumer's.
 */
export function producerWaits(consumer: CudaStream, producer: CudaStream): void {
  orderOrElse(() => producer.wait(consumer), () => waitForAll(consumer));
}

/**
 * What is ordered after consumers on unknown streams have released: the home stream waits for all the work that is
 * enqueued at this moment in the contexts of all devices that can reach the memory, the consumers' included, so that
 * whatever the home stream does next, freeing above all, comes after it. The host does not wait, unless the driver is
 * older than CUDA 12.5 and cannot do it. In a lost context there is nothing left to wait for.
 *
 * Each home stream waits once for each device, however many buffers are ordered: so all of them must have been released
 * before the first is.
 */
export class ReleaseOrder {
  /** Which devices each home stream waits for. */
  #waits: Map<CudaStream, Set<CudaDevice>> | undefined;

  // law order/ReleaseOrder.add: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
  /**
   * Orders what comes after a buffer's consumers.
   *
   * @returns false if it cannot be done now, and must be tried again: while a stream is captured, it would invalidate
   *   the capture. A capture of another library is only known of if the legacy default stream would wait for it
   */
  add(buffer: OrderedMemory): boolean {
    const { stream } = buffer;
    if (stream === null) return true;
    if (isCapturing(stream.device.driver)) return false;
    const owner = buffer.device ?? stream.device; // pinned memory is the host's, and devices use it too
    const waits = (this.#waits ??= new Map()).getOrInsertComputed(stream, noDevices);
    if (!waits.has(owner) && !waitOnce(stream, owner, waits)) return false;
    for (const peer of owner.siblings) {
      if (!waits.has(peer) && mayHaveUsed(peer, buffer, owner) && !waitOnce(stream, peer, waits)) return false;
    }
    return true;
  }
}

const noDevices = () => new Set<CudaDevice>();

// law order/waitOnce: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
function waitOnce(stream: CudaStream, device: CudaDevice, waits: Set<CudaDevice>): boolean {
  if (!waitForContext(stream, device)) return false;
  waits.add(device);
  return true;
}

// law order/waitForContext: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease,
//   memory/beside_captures, order/default_home
/**
 * Makes a stream wait for all work of a device; where the driver refuses, the host waits. As {@linkcode orderOrElse},
 * but without closures: a release should cost little more than the driver's calls. A device that is gone has no work
 * left: memory that someone else frees retains no device.
 *
 * @returns false if a capture is in the way
 */
function waitForContext(stream: CudaStream, device: CudaDevice): boolean {
  if (device.isGone) return true;
  if (
    isBlockedByCapture(device) || (stream.isLegacy && stream.device !== device && isBlockedByCapture(stream.device))
  ) return false;
  try {
    const event = device.acquireEvent();
    try {
      if (device.recordContext(event)) {
        stream.wait(event);
        return true;
      }
    } finally {
      device.releaseEvent(event);
    }
  } catch (error) {
    if (isRefusedByCapture(error)) return false;
    // Otherwise the host waits.
  }
  try {
    device.synchronize();
  } catch (error) {
    if (isRefusedByCapture(error)) return false;
    if (!isSticky(error)) throw error;
  }
  return true;
}

// law order/comeAfter: memory/imported_memory, memory/sharing/sharing, memory/sharing/pieces,
//   memory/sharing/memory_channel
/**
 * Makes what is enqueued on a stream from now on come after an event, because memory is freed next: where the driver
 * refuses, the host waits. In a context that is lost or gone there is nothing left to wait for.
 */
export function comeAfter(stream: CudaStream, event: CudaEvent): void {
  orderOrElse(() => stream.wait(event), () => event.device.isGone || event.synchronize());
}

// law order/orderOrElse: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/**
 * Orders what must be ordered, because memory is freed next. Where the driver refuses, perhaps for want of an event,
 * the host waits, and its error says what else is wrong. In a lost context there is nothing left to wait for.
 */
function orderOrElse(order: () => void, hostWaits: () => unknown): void {
  try {
    order();
  } catch {
    try {
      hostWaits();
    } catch (error) {
      if (!isSticky(error)) throw error;
    }
  }
}

// law order/waitForAll: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/**
 * Waits for what is enqueued on a stream, perhaps in a context of its own, and for all that its next work would wait
 * for.
 */
function waitForAll(stream: CudaStream): void {
  stream.synchronize();
  stream.device.synchronize();
}

// law order/mayHaveUsed: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/**
 * Whether a consumer may have used the memory on a peer of its device: one that can reach it and has a context. Work of
 * the memory's own context is waited for in any case, even if the consumer works on a peer: what the driver does for
 * that one in the memory's context, such as copying managed memory to the host, no event of the peer's context waits
 * for (`tests/gpu/context_order_test.ts`).
 */
function mayHaveUsed(peer: CudaDevice, buffer: OrderedMemory, owner: CudaDevice): boolean {
  if (peer === owner || !peer.isActive) return false;
  // What came as a device's own may be managed, which every device reaches.
  return buffer.owner !== undefined || canReach(peer, buffer, owner);
}

// law order/hostWaitsBeforeReturn: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/**
 * Before foreign memory is returned to a producer who may free it at once: makes the host wait for everything that
 * comes before the stream's next work. For a blocking stream that is more than its own: work of the legacy default
 * stream, too.
 */
export function hostWaitsBeforeReturn(stream: CudaStream): void {
  orderOrElse(() => stream.waitUntilReady(), () => waitForAll(stream));
}

/** A stream that a consumer names by its handle, on the buffer's device. */
export function consumerStream(device: CudaDevice, stream: CudaStream | bigint): CudaStream {
  if (typeof stream !== "bigint") return stream;
  if (stream === CU_STREAM_LEGACY) return device.defaultStream;
  return stream === CU_STREAM_PER_THREAD ? device.perThreadStream : device.foreignStream(stream);
}

// law order/recordReady: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease,
//   arrow/several_homes
/**
 * Before a consumer that will wait for an event: an event that comes after everything enqueued on the home streams of
 * these buffers.
 *
 * @returns the event, which the caller closes; null if no buffer has a home stream
 */
export function recordReady(buffers: Iterable<OrderedMemory>): CudaEvent | null {
  const [first, ...others] = new Set([...buffers].map(({ stream }) => stream).filter((stream) => stream !== null));
  if (first === undefined) return null;
  if (others.length === 0) return first.recordNew();
  using joined = first.device.createStream(); // so that no home stream must wait for another
  for (const stream of [first, ...others]) joined.wait(stream);
  return joined.recordNew();
}
