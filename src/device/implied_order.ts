/**
 * Implicit order: the legacy default stream and the blocking streams wait for each other, which the driver only
 * resolves when more work is enqueued.
 *
 * @module
 */
import { captureOf } from "./graph/active_captures.ts";
import type { CudaEvent } from "./event.ts";
import type { CudaStream } from "./stream.ts";

/**
 * Bytes. Driver 580 reads up to 24 KiB of page-locked host memory during the call that copies them to a device, if the
 * stream is idle. This limit is higher, to allow for future drivers: for a larger copy an event costs little.
 */
const readAtOnce = 64 * 1024;

// law device/makeOrderExplicit: gpu/implied_order, device/stream, memory/memory_programs, sim/behaviours
/**
 * Before a copy of host memory to a device on a stream: makes sure that the bytes are read when the stream reaches the
 * copy. A small copy from page-locked memory is read during the call if the stream is idle, and at that point the
 * driver does not consider the work that a default or blocking stream implicitly comes after (`docs/driver.md`); an
 * event makes the order explicit.
 */
export function makeOrderExplicit(stream: CudaStream, bytes: number): void {
  stream.handleFor("copy on");
  if (stream.isKnownNonBlocking || bytes > readAtOnce || captureOf(stream) !== null) return;
  atNext(stream, (event) => stream.wait(event));
}

// law device/atNext: device/stream, memory/memory_programs, sim/behaviours, order/order, dlpack/host_consumers
/** Calls a function with an event recorded where the stream's next work would be. */
export function atNext<T>(stream: CudaStream, use: (event: CudaEvent) => T): T {
  stream.handleFor("wait for");
  const { device } = stream;
  const event = device.acquireEvent();
  try {
    stream.record(event);
    return use(event);
  } finally {
    device.releaseEvent(event);
  }
}
