/**
 * Streams: making and destroying them, waiting for them, and work that touches no memory that is seen.
 *
 * @module
 */
import { CU_EVENT_WAIT, CU_STREAM } from "../../../bindings/cuda_types.ts";
import type { DriverGroups } from "../../driver/driver.ts";
import type { Lane } from "../vector_clocks.ts";
import type { EventState } from "../stream_state.ts";
import type { Watch } from "../checker_state.ts";
import type { Watched } from "./calls.ts";

/** The calls of the group. */
export function streamCalls(watch: Watch, inner: DriverGroups["stream"]): Watched<"stream"> {
  const { order, things } = watch;
  const opened = (code: number, out: bigint, flags: number, call: string): number => {
    const context = code === 0 ? watch.current() : null;
    if (context === null) return code;
    const handle = watch.peek.word(out);
    watch.openStream(handle, context, flags);
    things.made("stream", handle, call);
    return code;
  };
  const waitedFor = (lane: Lane | null, call: string): void => {
    if (lane !== null) watch.hostWaitsFor(order.awaited(lane), call);
  };
  return {
    cuStreamCreate: (out, flags) => opened(inner.cuStreamCreate(out, flags), out, flags, "cuStreamCreate"),
    cuStreamCreateWithPriority(out, flags, priority) {
      const code = inner.cuStreamCreateWithPriority(out, flags, priority);
      return opened(code, out, flags & CU_STREAM.NON_BLOCKING, "cuStreamCreateWithPriority");
    },
    cuStreamDestroy_v2(handle) {
      watch.lane(handle, "cuStreamDestroy_v2");
      const code = inner.cuStreamDestroy_v2(handle);
      if (code !== 0) return code;
      watch.closeStream(handle);
      things.destroyed("stream", handle, "cuStreamDestroy_v2");
      return code;
    },
    cuStreamSynchronize(handle) {
      const lane = watch.lane(handle, "cuStreamSynchronize");
      const code = inner.cuStreamSynchronize(handle);
      if (code === 0) waitedFor(lane, "cuStreamSynchronize");
      return code;
    },
    cuStreamQuery(handle) {
      const lane = watch.lane(handle, "cuStreamQuery");
      const code = inner.cuStreamQuery(handle);
      if (code === 0) waitedFor(lane, "cuStreamQuery");
      return code;
    },
    cuStreamWaitEvent(handle, event, flags) {
      const lane = watch.lane(BigInt(handle), "cuStreamWaitEvent");
      const state = watch.event(BigInt(event), "cuStreamWaitEvent");
      const code = inner.cuStreamWaitEvent(handle, event, flags);
      if (code !== 0 || lane === null) return code;
      if (lane.capture !== null && flags === CU_EVENT_WAIT.EXTERNAL) lane.capture.of.opaque = true;
      else if (lane.capture !== null || (state !== null && state.captured !== null)) joinCapture(lane, state);
      else if (state === null || state.record !== null) {
        const { clock, seq } = state?.record ?? { clock: order.everything(), seq: null };
        watch.mark(lane, "wait", "cuStreamWaitEvent", seq);
        order.wait(lane, clock);
      }
      return code;
    },
    cuStreamAttachMemAsync(handle, address, length, flags) {
      const work = watch.work("cuStreamAttachMemAsync", watch.lane(handle, "cuStreamAttachMemAsync"));
      const code = inner.cuStreamAttachMemAsync(handle, address, length, flags);
      if (code === 0) work.done();
      return code;
    },
    cuLaunchHostFunc(handle, fn, userData) {
      const work = watch.work("cuLaunchHostFunc", watch.lane(handle, "cuLaunchHostFunc"));
      const code = inner.cuLaunchHostFunc(handle, fn, userData);
      if (code === 0) work.done();
      return code;
    },
  };
}

/** A wait inside a capture, or for an event of one: the stream joins the capture. */
function joinCapture(lane: Lane, state: EventState | null): void {
  const point = state?.captured ?? null;
  if (point === null) return;
  const after = [...new Set([...lane.capture?.after ?? [], ...point.after])];
  lane.capture = { of: point.of, after };
}
