/**
 * Events: points in stream order.
 *
 * @module
 */
import { CU_EVENT, CU_EVENT_RECORD, CUresult } from "../../../bindings/cuda_types.ts";
import { type CallTable, checkFlags, refuse, unsimulated } from "../call.ts";
import type { Simulator } from "../simulator.ts";
import { nativeView, writeFloat, writeWord } from "../out_parameters.ts";
import type { Event, EventRecord } from "../objects.ts";
import type { Task } from "../scheduler.ts";

/**
 * Records an event as a task that `enqueue` queues. A wait that was already enqueued still waits for the earlier
 * record.
 *
 * @param ofContext whether it marks the end of all work of the context
 */
export function recordTask(
  simulator: Simulator,
  event: Event,
  enqueue: (run: () => void) => Task,
  ofContext = false,
): void {
  let time = Number.NaN;
  let record: EventRecord | null = null;
  const task = enqueue(() => {
    time = simulator.clock;
    if (record !== null) record.time = time;
  });
  record = { simulator, task, ofContext, time }; // an eager schedule may already have run the task
  event.record = record;
  event.captured = null;
}

/**
 * The task that a driver's work waits on to wait for an event: a task of this driver, wherever the event was recorded.
 */
export function taskOf(simulator: Simulator, { record }: Event): Task | null {
  if (record === null || record.task.done) return null;
  if (record.simulator === simulator) return record.task;
  // Work of another process: whatever waits for it forces it to run.
  return simulator.scheduler.enqueue(0, [], () => record.simulator.scheduler.force(record.task));
}

/** Creates an event; an interprocess event keeps its record where all processes see it. */
export function newEvent(
  simulator: Simulator,
  context: Event["context"],
  flags: number,
  shared: Event["shared"] = { record: null },
): Event {
  const event: Event = {
    handle: simulator.newHandle(),
    context,
    flags,
    shared,
    get record() {
      return shared.record;
    },
    set record(record) {
      shared.record = record;
    },
    captured: null,
  };
  simulator.events.set(event.handle, event);
  return event;
}

// law sim/noteSeen: sim/pools
/** Notes that the host has seen an event pass: of a context, it tells libcuda about the streams destroyed before it. */
function noteSeen(simulator: Simulator, { context, record }: Event): void {
  if (record?.simulator === simulator && record.ofContext) context.seen = Math.max(context.seen, record.task.id);
}

/** Refuses to wait for an event recorded in a capture, and invalidates the capture. */
function refuseCaptured({ captured }: Event): void {
  if (captured === null) return;
  captured.of.invalidated = true;
  throw refuse(CUresult.CUDA_ERROR_CAPTURED_EVENT);
}

// law sim/eventCalls: sim/refusals, gpu/implied_order
/** The calls of the group. */
export function eventCalls(simulator: Simulator): CallTable<"event"> {
  const record = (handle: bigint, streamHandle: bigint): void => {
    const event = simulator.event(handle);
    const stream = simulator.stream(streamHandle);
    if (event.context !== stream.context) throw refuse(CUresult.CUDA_ERROR_INVALID_HANDLE);
    if (stream.capture === null) {
      const { explicitTail } = stream;
      recordTask(simulator, event, (run) => simulator.enqueue(stream, run));
      if (stream !== stream.context.legacy) stream.explicitTail = explicitTail;
      return;
    }
    if (stream.capture.of.invalidated) throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    event.captured = stream.capture;
    event.record = null;
  };
  return {
    cuEventCreate(out, flags) {
      const context = simulator.current();
      checkFlags(flags, CU_EVENT);
      const isTimed = (flags & CU_EVENT.DISABLE_TIMING) === 0;
      if ((flags & CU_EVENT.INTERPROCESS) !== 0 && isTimed) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      nativeView(out, 8);
      writeWord(out, newEvent(simulator, context, flags).handle);
    },
    cuEventDestroy_v2(handle) {
      simulator.event(handle);
      simulator.events.delete(handle); // enqueued waits depend on its task
    },
    cuEventRecord: (handle, stream) => record(BigInt(handle), BigInt(stream)),
    cuEventRecordWithFlags(handle, stream, flags) {
      if (flags === CU_EVENT_RECORD.EXTERNAL) throw unsimulated("events as nodes of graphs");
      if (flags !== CU_EVENT_RECORD.DEFAULT) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      record(handle, stream);
    },
    cuEventQuery(handle) {
      const event = simulator.event(handle);
      refuseCaptured(event);
      simulator.refuseInCapture();
      if (event.record === null) return;
      const code = event.record.simulator.query(event.context, event.record.task);
      if (code === CUresult.CUDA_SUCCESS) noteSeen(simulator, event);
      return code;
    },
    cuEventSynchronize(handle) {
      const event = simulator.event(handle);
      refuseCaptured(event);
      simulator.refuseInCapture();
      simulator.hostWaits(event.context, taskOf(simulator, event));
      noteSeen(simulator, event);
    },
    cuEventElapsedTime(out, startHandle, endHandle) {
      const [start, end] = [simulator.event(startHandle), simulator.event(endHandle)];
      const timed = [start, end].every(({ flags }) => (flags & CU_EVENT.DISABLE_TIMING) === 0);
      if (!timed || start.context !== end.context || start.record === null || end.record === null) {
        throw refuse(CUresult.CUDA_ERROR_INVALID_HANDLE);
      }
      if (!start.record.task.done || !end.record.task.done) return CUresult.CUDA_ERROR_NOT_READY;
      writeFloat(out, end.record.time - start.record.time);
      return CUresult.CUDA_SUCCESS;
    },
  };
}
