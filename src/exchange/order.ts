/**
 * The one place that knows who must wait for whom when memory changes hands.
 *
 * @module
 */
import type { CudaDevice } from "../cuda/device.ts";
import { checkCuda } from "../cuda/driver.ts";
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
 * After a consumer on an unknown stream has released: makes the home stream wait for all the work that the device's
 * context holds at this moment, the consumer's included, so that whatever the home stream does next, freeing above all,
 * comes after it. The host does not wait, unless the driver is older than CUDA 12.4 and cannot do it.
 */
export function orderRelease(buffer: MemoryBuffer): void {
  const { device, stream } = buffer;
  if (device === null || stream === null) return;
  const { driver } = device;
  const { cuCtxRecordEvent } = driver.context;
  if (cuCtxRecordEvent === null) return device.synchronize();
  using event = device.createEvent();
  checkCuda(driver, "cuCtxRecordEvent", cuCtxRecordEvent(device.context, event.handle));
  stream.wait(event);
}

/** A stream that a consumer names by its handle, on the buffer's device. */
export function consumerStream(device: CudaDevice, stream: CudaStream | bigint): CudaStream {
  return typeof stream === "bigint" ? CudaStream.fromHandle(device, stream) : stream;
}
