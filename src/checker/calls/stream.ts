/**
 * Streams: creating and destroying them, waiting for them, and work whose accesses are not seen.
 *
 * @module
 */
import { CU_EVENT_WAIT, CU_STREAM } from "../../../bindings/cuda_types.ts";
import type { DriverGroups } from "../../driver/mod.ts";
import type { StreamClock } from "../vector_clocks.ts";
import type { EventState } from "../stream_state.ts";
import type { CheckerState } from "../checker_state.ts";
import type { CheckedCalls } from "../checked_driver.ts";

// law checker/streamCalls: checker/checker
/** The calls of the group. */
export function streamCalls(checker: CheckerState, inner: DriverGroups["stream"]): CheckedCalls<"stream"> {
  const { order, lifetimes } = checker;
  const opened = (code: number, out: bigint, flags: number, call: string): number => {
    const context = code === 0 ? checker.current() : null;
    if (context === null) return code;
    const handle = checker.reader.word(out);
    checker.openStream(handle, context, flags);
    lifetimes.created("stream", handle, call);
    return code;
  };
  const waitedFor = (stream: StreamClock | null, call: string): void => {
    if (stream !== null) checker.hostWaitsFor(order.awaited(stream), call);
  };
  return {
    cuStreamCreate: (out, flags) => opened(inner.cuStreamCreate(out, flags), out, flags, "cuStreamCreate"),
    cuStreamCreateWithPriority(out, flags, priority) {
      const code = inner.cuStreamCreateWithPriority(out, flags, priority);
      return opened(code, out, flags & CU_STREAM.NON_BLOCKING, "cuStreamCreateWithPriority");
    },
    cuStreamDestroy_v2(handle) {
      checker.stream(handle, "cuStreamDestroy_v2");
      const code = inner.cuStreamDestroy_v2(handle);
      if (code !== 0) return code;
      checker.closeStream(handle);
      lifetimes.destroyed("stream", handle, "cuStreamDestroy_v2");
      return code;
    },
    cuStreamSynchronize(handle) {
      const stream = checker.stream(handle, "cuStreamSynchronize");
      const code = inner.cuStreamSynchronize(handle);
      if (code === 0) waitedFor(stream, "cuStreamSynchronize");
      return code;
    },
    cuStreamQuery(handle) {
      const stream = checker.stream(handle, "cuStreamQuery");
      const code = inner.cuStreamQuery(handle);
      if (code === 0) waitedFor(stream, "cuStreamQuery");
      return code;
    },
    cuStreamWaitEvent(handle, event, flags) {
      const stream = checker.stream(BigInt(handle), "cuStreamWaitEvent");
      const state = checker.event(BigInt(event), "cuStreamWaitEvent");
      const code = inner.cuStreamWaitEvent(handle, event, flags);
      if (code !== 0 || stream === null) return code;
      if (stream.capture !== null && flags === CU_EVENT_WAIT.EXTERNAL) stream.capture.of.opaque = true;
      else if (stream.capture !== null || (state !== null && state.captured !== null)) joinCapture(stream, state);
      else if (state === null || state.record !== null) {
        const { clock, seq } = state?.record ?? { clock: order.everything(), seq: null };
        checker.mark(stream, "wait", "cuStreamWaitEvent", seq);
        order.wait(stream, clock);
      }
      return code;
    },
    cuStreamAttachMemAsync(handle, address, length, flags) {
      const pending = checker.pendingCall("cuStreamAttachMemAsync", checker.stream(handle, "cuStreamAttachMemAsync"));
      const code = inner.cuStreamAttachMemAsync(handle, address, length, flags);
      if (code === 0) pending.accepted();
      return code;
    },
    cuLaunchHostFunc(handle, fn, userData) {
      const pending = checker.pendingCall("cuLaunchHostFunc", checker.stream(handle, "cuLaunchHostFunc"));
      const code = inner.cuLaunchHostFunc(handle, fn, userData);
      if (code === 0) pending.accepted();
      return code;
    },
  };
}

/** A wait inside a capture, or for an event of one: the stream joins the capture. */
function joinCapture(stream: StreamClock, state: EventState | null): void {
  const point = state?.captured ?? null;
  if (point === null) return;
  const after = [...new Set([...stream.capture?.after ?? [], ...point.after])];
  stream.capture = { of: point.of, after };
}
