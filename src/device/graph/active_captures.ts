/**
 * Captures that have begun and not ended. Meanwhile the driver refuses waits, queries and immediate frees, and every
 * such attempt invalidates the capture: so background work that is due, such as frees, waits here.
 *
 * @module
 */
import { runAll } from "../../ffi/mod.ts";
import type { CudaDriver } from "../../driver/mod.ts";
import type { CudaEvent } from "../event.ts";
import type { StreamCapture } from "./capture.ts";
import type { CudaStream } from "../stream.ts";

/** Active captures: few, mostly none. An array, because iterating an empty set creates an iterator each time. */
let active: readonly StreamCapture[] = [];

let waiting: { readonly driver: CudaDriver; readonly work: () => void }[] = [];

// law device/isCapturing: device/graph/graph_resources, device/graph/graph, sim/behaviours, order/deferred_free,
//   device/failures, device/graph/active_captures, device/graph/graph_launches
/** Whether we are capturing any stream of a driver. Captures of other libraries are not known. */
export function isCapturing(driver: CudaDriver): boolean {
  return active.length > 0 && isCapturedOf(driver);
}

/**
 * Separate, like the loops below: the check is so frequent that it should be inlined, and functions with loops are not.
 */
function isCapturedOf(driver: CudaDriver): boolean {
  for (const capture of active) if (capture.stream.device.driver === driver) return true;
  return false;
}

/** The capture that a stream takes part in, or null. */
export function captureOf(stream: CudaStream): StreamCapture | null {
  for (const capture of active) if (capture.includes(stream)) return capture;
  return null;
}

// law device/afterCaptures: device/graph/graph_resources, device/graph/graph, sim/behaviours, order/deferred_free,
//   device/failures, device/graph/active_captures, device/graph/graph_launches
/** Runs work once no capture of a driver is active: now, if none is. */
export function afterCaptures(driver: CudaDriver, work: () => void): void {
  if (isCapturing(driver)) waiting.push({ driver, work });
  else work();
}

// law device/beginCapture: device/graph/graph_resources, device/graph/graph, sim/behaviours, order/deferred_free,
//   device/failures, device/graph/active_captures, device/graph/graph_launches
/** Notes that a capture has begun. */
export function beginCapture(capture: StreamCapture): void {
  active = [...active, capture];
}

// law device/endCapture: device/graph/graph_resources, device/graph/graph, sim/behaviours, order/deferred_free,
//   device/failures, device/graph/active_captures, device/graph/graph_launches
/** Notes that a capture has ended, and runs the work that waited for that. */
export function endCapture(capture: StreamCapture): void {
  active = active.filter((one) => one !== capture);
  const due = waiting.filter(({ driver }) => !isCapturing(driver));
  waiting = waiting.filter(({ driver }) => isCapturing(driver));
  runAll(due.map(({ work }) => work));
}

// law device/noteRecord: device/graph/graph_resources, device/graph/graph, sim/behaviours, order/deferred_free,
//   device/failures, device/graph/active_captures, device/graph/graph_launches
/** Notes that an event was recorded on a stream: a stream that waits for it joins the capture, if there is one. */
export function noteRecord(event: CudaEvent, stream: CudaStream): void {
  if (active.length > 0) noteRecordInCaptures(event, stream);
}

function noteRecordInCaptures(event: CudaEvent, stream: CudaStream): void {
  for (const capture of active) capture.recorded(event, capture.includes(stream));
}

// law device/noteWait: device/graph/graph_resources, device/graph/graph, sim/behaviours, order/deferred_free,
//   device/failures, device/graph/active_captures, device/graph/graph_launches
/** Notes that a stream waits for an event. */
export function noteWait(stream: CudaStream, event: CudaEvent): void {
  if (active.length > 0) noteWaitInCaptures(stream, event);
}

function noteWaitInCaptures(stream: CudaStream, event: CudaEvent): void {
  for (const capture of active) capture.waits(stream, event);
}

// law device/noteEventDestroyed: device/graph/active_captures
/** Notes that an event is destroyed: the driver may give its handle to a new one, which was recorded nowhere. */
export function noteEventDestroyed(driver: CudaDriver, handle: bigint): void {
  for (const capture of active) capture.forget(driver, handle);
}
