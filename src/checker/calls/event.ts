/**
 * Events: points in the order of streams.
 *
 * @module
 */
import { CU_EVENT_RECORD } from "../../../bindings/cuda_types.ts";
import type { DriverGroups } from "../../driver/mod.ts";
import type { EventState } from "../stream_state.ts";
import type { CheckerState } from "../checker_state.ts";
import type { CheckedCalls } from "../checked_driver.ts";

// law checker/eventCalls: checker/checker
/** The calls of the group. */
export function eventCalls(checker: CheckerState, inner: DriverGroups["event"]): CheckedCalls<"event"> {
  const { order, events, lifetimes } = checker;

  const recorded = (
    handle: bigint,
    streamHandle: bigint,
    call: string,
    perform: () => number,
    external: boolean,
  ): number => {
    checker.event(handle, call);
    const stream = checker.stream(streamHandle, call);
    const code = perform();
    if (code !== 0 || stream === null) return code;
    if (stream.capture !== null) {
      if (external) stream.capture.of.opaque = true;
      else events.set(handle, { record: null, captured: stream.capture });
      return code;
    }
    const seq = checker.mark(stream, "record", call);
    events.set(handle, { record: { clock: [...stream.clock], seq }, captured: null });
    return code;
  };

  /** Notes that the host knows that the work before an event has completed. */
  const passed = (state: EventState | null, call: string): void => {
    if (state === null) checker.hostWaits(order.everything(), call, []);
    else if (state.record !== null) checker.hostWaits(state.record.clock, call, [state.record.seq]);
  };

  return {
    cuEventCreate(out, flags) {
      const code = inner.cuEventCreate(out, flags);
      if (code !== 0) return code;
      const handle = checker.reader.word(out);
      events.set(handle, { record: null, captured: null });
      lifetimes.created("event", handle, "cuEventCreate");
      return code;
    },
    cuEventDestroy_v2(handle) {
      checker.event(handle, "cuEventDestroy_v2");
      const code = inner.cuEventDestroy_v2(handle);
      if (code !== 0) return code;
      checker.forgetEvent(handle); // enqueued waits still wait for what was recorded
      lifetimes.destroyed("event", handle, "cuEventDestroy_v2");
      return code;
    },
    cuEventRecord: (handle, stream) =>
      recorded(BigInt(handle), BigInt(stream), "cuEventRecord", () => inner.cuEventRecord(handle, stream), false),
    cuEventRecordWithFlags: (handle, stream, flags) =>
      recorded(
        handle,
        stream,
        "cuEventRecordWithFlags",
        () => inner.cuEventRecordWithFlags(handle, stream, flags),
        flags === CU_EVENT_RECORD.EXTERNAL,
      ),
    cuEventQuery(handle) {
      const state = checker.event(handle, "cuEventQuery");
      const code = inner.cuEventQuery(handle);
      if (code === 0) passed(state, "cuEventQuery");
      return code;
    },
    cuEventSynchronize(handle) {
      const state = checker.event(handle, "cuEventSynchronize");
      const code = inner.cuEventSynchronize(handle);
      if (code === 0) passed(state, "cuEventSynchronize");
      return code;
    },
    cuEventElapsedTime(out, start, end) {
      const states = [checker.event(start, "cuEventElapsedTime"), checker.event(end, "cuEventElapsedTime")];
      const code = inner.cuEventElapsedTime(out, start, end);
      if (code === 0) { for (const state of states) passed(state, "cuEventElapsedTime"); }
      return code;
    },
  };
}
