/**
 * What a stream implicitly comes after: the legacy default stream and the blocking streams wait for each other,
 * and the driver finds out only when more work is enqueued.
 *
 * @module
 */
import { captureOf } from "./graph/active_captures.ts";
import type { CudaEvent } from "./event.ts";
import type { CudaStream } from "./stream.ts";

/**
 * Bytes. Driver 580 reads up to 24 KiB of page-locked host memory during the call that copies them to a device, if the
 * stream is idle. This is more, for drivers to come: for a larger copy an event costs little.
 */
const readAtOnce = 64 * 1024;

// law device/makeOrderExplicit: gpu/implied_order, device/stream, memory/memory_programs, sim/behaviours
/**
 * Before so many bytes of the host's memory go to a device on a stream: makes sure that they are read when the stream
 * comes to it. A small copy from page-locked memory is read during the call if the stream is idle, and of what a
 * default or blocking stream implicitly comes after the driver knows nothing then (`docs/driver.md`); an event makes it
 * explicit.
 */
export function makeOrderExplicit(stream: CudaStream, bytes: number): void {
  stream.handleFor("copy on");
  if (stream.isKnownNonBlocking || bytes > readAtOnce || captureOf(stream) !== null) return;
  atNext(stream, (event) => stream.wait(event));
}

// law device/atNext: device/stream, memory/memory_programs, sim/behaviours, order/order, dlpack/host_consumers
/** Uses an event in the place of a stream's next work. */
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
