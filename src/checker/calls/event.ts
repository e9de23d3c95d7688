/**
 * Events: points in the order of streams.
 *
 * @module
 */
import { CU_EVENT_RECORD } from "../../../bindings/cuda_types.ts";
import type { DriverGroups } from "../../driver/driver.ts";
import type { EventState } from "../stream_state.ts";
import type { Watch } from "../checker_state.ts";
import type { Watched } from "./calls.ts";

/** The calls of the group. */
export function eventCalls(watch: Watch, inner: DriverGroups["event"]): Watched<"event"> {
  const { order, events, things } = watch;

  const recorded = (handle: bigint, stream: bigint, call: string, perform: () => number, external: boolean): number => {
    watch.event(handle, call);
    const lane = watch.lane(stream, call);
    const code = perform();
    if (code !== 0 || lane === null) return code;
    if (lane.capture !== null) {
      if (external) lane.capture.of.opaque = true;
      else events.set(handle, { record: null, captured: lane.capture });
      return code;
    }
    const seq = watch.mark(lane, "record", call);
    events.set(handle, { record: { clock: [...lane.clock], seq }, captured: null });
    return code;
  };

  /** The host knows that what an event stands for is over. */
  const passed = (state: EventState | null, call: string): void => {
    if (state === null) watch.hostWaits(order.everything(), call, []);
    else if (state.record !== null) watch.hostWaits(state.record.clock, call, [state.record.seq]);
  };

  return {
    cuEventCreate(out, flags) {
      const code = inner.cuEventCreate(out, flags);
      if (code !== 0) return code;
      const handle = watch.peek.word(out);
      events.set(handle, { record: null, captured: null });
      things.made("event", handle, "cuEventCreate");
      return code;
    },
    cuEventDestroy_v2(handle) {
      watch.event(handle, "cuEventDestroy_v2");
      const code = inner.cuEventDestroy_v2(handle);
      if (code !== 0) return code;
      watch.forgetEvent(handle); // who waits for it waits for what it stood for
      things.destroyed("event", handle, "cuEventDestroy_v2");
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
      const state = watch.event(handle, "cuEventQuery");
      const code = inner.cuEventQuery(handle);
      if (code === 0) passed(state, "cuEventQuery");
      return code;
    },
    cuEventSynchronize(handle) {
      const state = watch.event(handle, "cuEventSynchronize");
      const code = inner.cuEventSynchronize(handle);
      if (code === 0) passed(state, "cuEventSynchronize");
      return code;
    },
    cuEventElapsedTime(out, start, end) {
      const states = [watch.event(start, "cuEventElapsedTime"), watch.event(end, "cuEventElapsedTime")];
      const code = inner.cuEventElapsedTime(out, start, end);
      if (code === 0) { for (const state of states) passed(state, "cuEventElapsedTime"); }
      return code;
    },
  };
}
