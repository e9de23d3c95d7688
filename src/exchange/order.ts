/**
 * The one place that knows who must wait for whom when memory changes hands.
 *
 * @module
 */
import { CU_STREAM_LEGACY, CU_STREAM_PER_THREAD } from "../../bindings/cuda_types.ts";
import type { CudaDevice } from "../cuda/device.ts";
import { checkCuda, isSticky } from "../cuda/driver.ts";
import type { CudaEvent } from "../cuda/event.ts";
import { CudaStream } from "../cuda/stream.ts";
import type { MemoryBuffer } from "../memory/memory_buffer.ts";

/**
 * Before a consumer begins: makes the consumer's stream wait for everything enqueued on the buffer's home stream. Host
 * memory needs no order.
 *
 * @param stream the consumer's stream; null if it asked for no order
 */
export function orderConsumer(buffer: MemoryBuffer, stream: CudaStream | null): void {
  if (stream !== null && buffer.stream !== null) stream.wait(buffer.stream);
}

/**
 * Between two streams whose owners know each other's: makes whatever `after` does next wait for everything enqueued on
 * `before`. In this direction before a consumer begins, and in the other when it is done.
 */
export function orderStreams(before: CudaStream, after: CudaStream): void {
  after.wait(before);
}

/**
 * After a consumer on an unknown stream has released: makes the home stream wait for all the work that is enqueued at
 * this moment in the contexts of all devices that can reach the memory, the consumer's included, so that whatever the
 * home stream does next, freeing above all, comes after it. The host does not wait, unless the driver is older than
 * CUDA 12.5 and cannot do it.
 */
export function orderRelease(buffer: MemoryBuffer): void {
  const { stream } = buffer;
  if (stream === null) return;
  for (const device of devicesThatReach(buffer, stream)) waitForContext(stream, device);
}

/** As {@linkcode orderRelease} for the buffers of one consumer: each home stream waits once for each device. */
export function orderReleases(buffers: Iterable<MemoryBuffer>): void {
  const users = new Map<CudaStream, Set<CudaDevice>>();
  for (const buffer of buffers) {
    const { stream } = buffer;
    if (stream === null) continue;
    const known = users.get(stream);
    if (known === undefined) users.set(stream, new Set(devicesThatReach(buffer, stream)));
    else for (const device of devicesThatReach(buffer, stream)) known.add(device);
  }
  for (const [stream, devices] of users) for (const device of devices) waitForContext(stream, device);
}

function waitForContext(stream: CudaStream, device: CudaDevice): void {
  const { driver } = device;
  const { cuCtxRecordEvent } = driver.context;
  if (cuCtxRecordEvent === null) return device.synchronize();
  const event = device.takeEvent();
  try {
    checkCuda(driver, "cuCtxRecordEvent", cuCtxRecordEvent(device.context, event.handle));
    stream.wait(event);
  } finally {
    device.giveEvent(event);
  }
}

/** The devices on which a consumer may have used the memory: its own, and peers that can reach it and have a context. */
function devicesThatReach(buffer: MemoryBuffer, stream: CudaStream): CudaDevice[] {
  const owner = buffer.device ?? stream.device; // pinned memory is the host's, and devices use it too
  // Foreign memory that came as a device's own may be managed, which every device reaches.
  const mayReach = (peer: CudaDevice) => buffer.owner !== undefined || canReach(peer, buffer, owner);
  const others = owner.siblings.filter((peer) => peer !== owner && peer.isActive && mayReach(peer));
  return [owner, ...others];
}

/** Whether a device can read and write the memory of another one directly. */
export function canReach(peer: CudaDevice, { pool, kind }: MemoryBuffer, owner: CudaDevice): boolean {
  if (kind !== "device") return true;
  return pool === null ? peer.canAccessPeer(owner) : pool.isReachedBy(peer);
}

/**
 * Before foreign memory is given back to a producer who may free it at once: makes the host wait for everything that
 * comes before the stream's next work. For a blocking stream that is more than what it holds: work of the legacy default
 * stream, too. In a lost context there is nothing left to wait for.
 */
export function orderGiveBack(stream: CudaStream): void {
  const { device } = stream;
  try {
    const event = device.takeEvent();
    try {
      stream.record(event).synchronize();
    } finally {
      device.giveEvent(event);
    }
  } catch (error) {
    if (!isSticky(error)) throw error;
  }
}

/** A stream that a consumer names by its handle, on the buffer's device. */
export function consumerStream(device: CudaDevice, stream: CudaStream | bigint): CudaStream {
  if (typeof stream !== "bigint") return stream;
  if (stream === CU_STREAM_LEGACY) return device.defaultStream;
  return stream === CU_STREAM_PER_THREAD ? device.perThreadStream : CudaStream.fromHandle(device, stream);
}

/**
 * Before a consumer that will wait for an event: an event that comes after everything enqueued on the home streams of
 * these buffers.
 *
 * @returns the event, which the caller closes; null if no buffer has a home stream
 */
export function recordReady(buffers: Iterable<MemoryBuffer>): CudaEvent | null {
  const [first, ...others] = new Set([...buffers].map(({ stream }) => stream).filter((stream) => stream !== null));
  if (first === undefined) return null;
  if (others.length === 0) return first.record();
  using joined = first.device.createStream(); // so that no home stream must wait for another
  for (const stream of [first, ...others]) joined.wait(stream);
  return joined.record();
}
