/**
 * Records and waits that need the device's context to be current. They are outside `CudaStream` so that its `record`
 * and `wait` stay small enough to be inlined.
 *
 * @module
 */
import { checkCuda, NEEDS_CONTEXT } from "../driver/mod.ts";
import type { CudaEvent } from "./event.ts";
import type { CudaStream } from "./stream.ts";

// law device/recordWithin: device/stream, memory/memory_programs, sim/behaviours
/** Records an event after the first attempt failed. @param first the driver's result of that attempt */
export function recordWithin({ device, argument: stream }: CudaStream, marked: CudaEvent, first: number): void {
  const { driver } = device;
  const event = marked.argumentFor("record");
  const again = () => driver.event.cuEventRecord(event, stream);
  checkCuda(driver, "cuEventRecord", first === NEEDS_CONTEXT ? device.withContext(again) : first);
}

// law device/waitWithin: device/stream, memory/memory_programs, sim/behaviours
/** Makes a stream wait after the first attempt failed. @param first the driver's result of that attempt */
export function waitWithin({ device, argument: stream }: CudaStream, awaited: CudaEvent, first: number): void {
  const { driver } = device;
  const event = awaited.argumentFor("wait for");
  const again = () => driver.stream.cuStreamWaitEvent(stream, event, 0);
  checkCuda(driver, "cuStreamWaitEvent", first === NEEDS_CONTEXT ? device.withContext(again) : first);
}
