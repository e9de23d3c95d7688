/**
 * Fills of contiguous elements and of rectangles.
 *
 * @module
 */
import type { DriverGroups } from "../../driver/mod.ts";
import type { StreamClock } from "../vector_clocks.ts";
import type { CheckerState } from "../checker_state.ts";
import type { PendingCall } from "../pending_call.ts";
import type { CheckedCalls } from "../checked_driver.ts";

/** The calls for contiguous elements. */
export function fillCalls(checker: CheckerState, inner: DriverGroups["fill"]): CheckedCalls<"fill"> {
  const run = (call: string, stream: StreamClock | null, to: bigint, n: bigint, width: number): PendingCall =>
    checker.pendingCall(call, stream).writes(to, Number(n) * width);
  const now = (call: string, to: bigint, n: bigint, width: number, perform: () => number): number => {
    const pending = run(call, checker.legacy(), to, n, width);
    const code = perform();
    if (code === 0) finish(checker, pending, true);
    return code;
  };
  // Written out, without a closure: these are the calls of hot loops.
  const later = (pending: PendingCall, code: number): number => {
    if (code === 0) finish(checker, pending, false);
    return code;
  };
  return {
    cuMemsetD8_v2: (to, value, n) => now("cuMemsetD8_v2", to, n, 1, () => inner.cuMemsetD8_v2(to, value, n)),
    cuMemsetD16_v2: (to, value, n) => now("cuMemsetD16_v2", to, n, 2, () => inner.cuMemsetD16_v2(to, value, n)),
    cuMemsetD32_v2: (to, value, n) => now("cuMemsetD32_v2", to, n, 4, () => inner.cuMemsetD32_v2(to, value, n)),
    cuMemsetD8Async(to, value, n, stream) {
      const pending = run("cuMemsetD8Async", checker.stream(stream, "cuMemsetD8Async"), to, n, 1);
      return later(pending, inner.cuMemsetD8Async(to, value, n, stream));
    },
    cuMemsetD16Async(to, value, n, stream) {
      const pending = run("cuMemsetD16Async", checker.stream(stream, "cuMemsetD16Async"), to, n, 2);
      return later(pending, inner.cuMemsetD16Async(to, value, n, stream));
    },
    cuMemsetD32Async(to, value, n, stream) {
      const pending = run("cuMemsetD32Async", checker.stream(stream, "cuMemsetD32Async"), to, n, 4);
      return later(pending, inner.cuMemsetD32Async(to, value, n, stream));
    },
  };
}

/** The calls for rectangles. */
export function fillPitchedCalls(
  checker: CheckerState,
  inner: DriverGroups["fillPitched"],
): CheckedCalls<"fillPitched"> {
  const fill = (
    call: string,
    stream: StreamClock | null,
    to: bigint,
    pitch: bigint,
    width: bigint,
    height: bigint,
    perform: () => number,
    synchronous: boolean,
  ): number => {
    const [step, rows] = [Number(pitch), Number(height)];
    const all = { address: to, width: Number(width), pitch: step, height: rows, slicePitch: step * rows, depth: 1 };
    const pending = checker.pendingCall(call, stream).rows(all, true);
    const code = perform();
    if (code === 0) finish(checker, pending, synchronous);
    return code;
  };
  return {
    cuMemsetD2D8_v2(to, pitch, value, w, h) {
      const perform = () => inner.cuMemsetD2D8_v2(to, pitch, value, w, h);
      return fill("cuMemsetD2D8_v2", checker.legacy(), to, pitch, w, h, perform, true);
    },
    cuMemsetD2D16_v2(to, pitch, value, w, h) {
      const perform = () => inner.cuMemsetD2D16_v2(to, pitch, value, w, h);
      return fill("cuMemsetD2D16_v2", checker.legacy(), to, pitch, 2n * w, h, perform, true);
    },
    cuMemsetD2D32_v2(to, pitch, value, w, h) {
      const perform = () => inner.cuMemsetD2D32_v2(to, pitch, value, w, h);
      return fill("cuMemsetD2D32_v2", checker.legacy(), to, pitch, 4n * w, h, perform, true);
    },
    cuMemsetD2D8Async(to, pitch, value, w, h, stream) {
      const call = "cuMemsetD2D8Async";
      const perform = () => inner.cuMemsetD2D8Async(to, pitch, value, w, h, stream);
      return fill(call, checker.stream(stream, call), to, pitch, w, h, perform, false);
    },
    cuMemsetD2D16Async(to, pitch, value, w, h, stream) {
      const call = "cuMemsetD2D16Async";
      const perform = () => inner.cuMemsetD2D16Async(to, pitch, value, w, h, stream);
      return fill(call, checker.stream(stream, call), to, pitch, 2n * w, h, perform, false);
    },
    cuMemsetD2D32Async(to, pitch, value, w, h, stream) {
      const call = "cuMemsetD2D32Async";
      const perform = () => inner.cuMemsetD2D32Async(to, pitch, value, w, h, stream);
      return fill(call, checker.stream(stream, call), to, pitch, 4n * w, h, perform, false);
    },
  };
}

// law checker/finish: checker/lifetime
/** The host waits for a fill only if it fills host memory in a call that is not asynchronous. */
function finish(checker: CheckerState, pending: PendingCall, synchronous: boolean): void {
  pending.accepted();
  const { stream, call, touches: [touch] } = pending;
  if (stream === null || touch === undefined || stream.capture !== null) return;
  const allocation = checker.memory.find(touch.start);
  if (allocation === undefined) return;
  const isOnHost = allocation.isPinned || allocation.kind === "managed";
  if ((synchronous && isOnHost) || allocation.syncMemops) checker.hostWaitsFor([stream], call);
}
