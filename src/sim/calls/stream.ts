/**
 * Streams.
 *
 * @module
 */
import { CU_EVENT_WAIT, CU_GRAPH_NODE_TYPE, CU_MEM_ATTACH, CU_STREAM, CUresult } from "../../../bindings/cuda_types.ts";
import { ffiPort } from "../../ffi/mod.ts";
import { type CallTable, checkConstant, checkFlags, refuse, unsimulated } from "../call.ts";
import type { Simulator } from "../simulator.ts";
import { writeInt, writeUint, writeWord } from "../out_parameters.ts";
import type { Event, Stream } from "../objects.ts";
import { greatestPriority } from "./context.ts";
import { taskOf } from "./event.ts";

/** `void (*CUhostFn)(void *userData)`. */
const CUhostFn = { args: ["ptr"], returns: "void" } as const;

// law sim/streamCalls: sim/refusals, sim/output, ptx/faults
/** The calls of the group. */
export function streamCalls(simulator: Simulator): CallTable<"stream"> {
  const create = (out: bigint, flags: number, priority: number): void => {
    const context = simulator.current();
    checkFlags(flags, CU_STREAM);
    const clamped = Math.min(0, Math.max(greatestPriority, priority));
    const stream = simulator.newStream(simulator.newHandle(), flags, clamped);
    writeWord(out, stream.handle);
    simulator.streams.set(stream.handle, stream.attach(context));
  };
  return {
    cuStreamCreate: (out, flags) => create(out, flags, 0),
    cuStreamCreateWithPriority: create,
    cuStreamDestroy_v2(handle) {
      const stream = simulator.stream(handle);
      if (stream === stream.context.legacy || stream === stream.context.perThread) {
        throw refuse(CUresult.CUDA_ERROR_INVALID_HANDLE);
      }
      if (stream.capture?.of.origin === stream) stream.capture.of.invalidated = true;
      simulator.streams.delete(handle);
      for (const pool of simulator.pools.values()) pool.orphan(stream, simulator.scheduler.lastId);
      const { streams, ending } = stream.context;
      if (stream.tail?.done !== false) streams.delete(stream);
      else ending.add(stream); // queued work still runs; the stream is removed after that
    },
    cuStreamSynchronize(handle) {
      const stream = simulator.stream(handle);
      simulator.refuseCapturing(stream);
      simulator.refuseImplicit(stream);
      simulator.refuseInCapture();
      simulator.hostWaits(stream.context, ...awaited(stream));
    },
    cuStreamQuery(handle) {
      const stream = simulator.stream(handle);
      simulator.refuseCapturing(stream);
      simulator.refuseImplicit(stream);
      simulator.refuseInCapture();
      return simulator.query(stream.context, ...awaited(stream));
    },
    cuStreamWaitEvent(handle, eventHandle, flags) {
      const stream = simulator.stream(BigInt(handle));
      const event = simulator.event(BigInt(eventHandle));
      if (flags === CU_EVENT_WAIT.EXTERNAL) throw unsimulated("events as nodes of graphs");
      if (flags !== CU_EVENT_WAIT.DEFAULT) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      if (stream.capture !== null || event.captured !== null) return join(stream, event);
      if (event.record === null) return; // never recorded: there is nothing to wait for
      simulator.enqueue(stream, () => {}, [taskOf(simulator, event)]);
    },
    cuStreamGetCtx: (handle, out) => writeWord(out, simulator.stream(handle).context.handle),
    cuStreamGetFlags: (handle, out) => writeUint(out, simulator.stream(handle).flags),
    cuStreamGetPriority: (handle, out) => writeInt(out, simulator.stream(handle).priority),
    cuStreamGetId: (handle, out) => writeWord(out, BigInt(simulator.stream(handle).id)),
    cuStreamGetDevice: (handle, out) => writeInt(out, simulator.stream(handle).context.device.ordinal),
    cuStreamAttachMemAsync(handle, address, length, flags) {
      const stream = simulator.stream(handle);
      const allocation = simulator.space.at(address);
      const whole = length === 0n || length === BigInt(allocation?.bytes ?? 0);
      if (allocation?.kind !== "managed" || !whole) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      checkConstant(flags, CU_MEM_ATTACH);
      simulator.submit(stream, "uncapturable", () => {}); // every device can access it anyway: only the order matters
    },
    cuLaunchHostFunc(handle, fn, userData) {
      const stream = simulator.stream(handle);
      if (fn === 0n) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      const call = ffiPort().functionAt(fn, CUhostFn);
      const task = simulator.submit(stream, CU_GRAPH_NODE_TYPE.HOST, () => {
        simulator.flush(stream.context);
        simulator.inHostFunction = true;
        try {
          call(userData);
        } finally {
          simulator.inHostFunction = false;
        }
      });
      // On a GPU, the function is called while the program waits for something else, such as a pipe that the function
      // closes. Here it is called at the latest when the program yields to its event loop.
      if (task !== null) queueMicrotask(() => simulator.scheduler.force(task));
    },
  };
}

/** The tasks to wait for when synchronizing a stream: for the legacy default stream, those of all blocking streams. */
function awaited(stream: Stream): (Stream["tail"])[] {
  const { context } = stream;
  if (stream !== context.legacy) return [stream.tail];
  return [...context.streams].filter(({ isBlocking }) => isBlocking).map(({ tail }) => tail);
}

// law sim/join: sim/refusals
/** Handles a wait in a capture, or for an event recorded in one: the stream joins the capture. */
function join(stream: Stream, event: Event): void {
  const { capture } = stream;
  if (event.captured === null) {
    if (event.record === null || capture === null) return;
    capture.of.invalidated = true;
    throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  }
  const { of, point } = event.captured;
  if (of.ended) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  if (of.invalidated) throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  if (stream === stream.context.legacy) {
    of.invalidated = true;
    throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
  if (capture !== null && capture.of !== of) {
    of.invalidated = true;
    capture.of.invalidated = true;
    throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  stream.capture = { of, point: [...new Set([...capture?.point ?? [], ...point])] };
  of.streams.add(stream);
}
