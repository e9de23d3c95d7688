/**
 * Contexts: operations on all streams of one, and their destruction.
 *
 * @module
 */
import { CUresult } from "../../../bindings/cuda_types.ts";
import type { DriverGroups } from "../../driver/mod.ts";
import { type Clock, join } from "../vector_clocks.ts";
import type { CheckerState } from "../checker_state.ts";
import type { CheckedCalls } from "../checked_driver.ts";

// law checker/contextCalls: checker/checker
/** The calls of the group. */
export function contextCalls(checker: CheckerState, inner: DriverGroups["context"]): CheckedCalls<"context"> {
  const { order, events, timeline } = checker;
  /** Handles of primary contexts, by device. */
  const primaries = new Map<number, bigint>();
  const given = (handle: bigint) => handle === 0n ? checker.current() : checker.context(handle);
  return {
    cuDevicePrimaryCtxRetain(out, device) {
      const code = inner.cuDevicePrimaryCtxRetain(out, device);
      if (code === 0) primaries.set(device, checker.context(checker.reader.word(out), device).handle);
      return code;
    },
    cuDevicePrimaryCtxRelease_v2(device) {
      const handle = primaries.get(device);
      const code = inner.cuDevicePrimaryCtxRelease_v2(device);
      if (code === 0 && handle !== undefined && !isActive(checker, inner, device)) {
        checker.closeContext(handle, "cuDevicePrimaryCtxRelease_v2");
      }
      return code;
    },
    cuCtxCreate_v2(out, flags, device) {
      const code = inner.cuCtxCreate_v2(out, flags, device);
      if (code === 0) checker.context(checker.reader.word(out), device);
      return code;
    },
    cuCtxDestroy_v2(handle) {
      const code = inner.cuCtxDestroy_v2(handle);
      if (code === 0) checker.closeContext(handle, "cuCtxDestroy_v2");
      return code;
    },
    cuCtxSynchronize() {
      const code = inner.cuCtxSynchronize();
      const context = code === 0 ? checker.current() : null;
      if (context !== null) checker.hostWaitsFor(context.streams, "cuCtxSynchronize");
      return code;
    },
    cuCtxRecordEvent(handle, event) {
      const code = inner.cuCtxRecordEvent?.(handle, event) ?? CUresult.CUDA_ERROR_NOT_SUPPORTED;
      const context = code === 0 ? given(handle) : null;
      if (context === null) return code;
      const clock: Clock = [];
      const after: number[] = [];
      for (const stream of context.streams) {
        join(clock, stream.clock);
        if (stream.last > 0) after.push(stream.last);
      }
      const seq = timeline.add(
        `all of ${context.device === null ? "the context" : `device ${context.device}`}`,
        "record",
        "cuCtxRecordEvent",
        after,
      );
      events.set(event, { record: { clock, seq }, captured: null });
      return code;
    },
    cuCtxWaitEvent(handle, event) {
      const code = inner.cuCtxWaitEvent?.(handle, event) ?? CUresult.CUDA_ERROR_NOT_SUPPORTED;
      const context = code === 0 ? given(handle) : null;
      if (context === null) return code;
      const state = checker.event(event, "cuCtxWaitEvent");
      const clock = state === null ? order.everything() : state.record?.clock;
      if (clock !== undefined) order.waitInContext(context, clock);
      return code;
    },
  };
}

function isActive(checker: CheckerState, inner: DriverGroups["context"], device: number): boolean {
  const { address, view } = checker.reader;
  return inner.cuDevicePrimaryCtxGetState(device, address, address + 8n) === 0 && view.getInt32(8, true) !== 0;
}
