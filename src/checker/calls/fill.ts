/**
 * Fills of runs of elements and of rectangles.
 *
 * @module
 */
import type { DriverGroups } from "../../driver/driver.ts";
import type { Lane } from "../vector_clocks.ts";
import type { Watch } from "../checker_state.ts";
import type { Work } from "../pending_call.ts";
import type { Watched } from "./calls.ts";

/** The calls for runs of elements. */
export function fillCalls(watch: Watch, inner: DriverGroups["fill"]): Watched<"fill"> {
  const run = (call: string, lane: Lane | null, to: bigint, n: bigint, width: number): Work =>
    watch.work(call, lane).writes(to, Number(n) * width);
  const now = (call: string, to: bigint, n: bigint, width: number, perform: () => number): number => {
    const work = run(call, watch.legacy(), to, n, width);
    const code = perform();
    if (code === 0) finish(watch, work, true);
    return code;
  };
  // Written out, without a closure: these are the calls of hot loops.
  const later = (work: Work, code: number): number => {
    if (code === 0) finish(watch, work, false);
    return code;
  };
  return {
    cuMemsetD8_v2: (to, value, n) => now("cuMemsetD8_v2", to, n, 1, () => inner.cuMemsetD8_v2(to, value, n)),
    cuMemsetD16_v2: (to, value, n) => now("cuMemsetD16_v2", to, n, 2, () => inner.cuMemsetD16_v2(to, value, n)),
    cuMemsetD32_v2: (to, value, n) => now("cuMemsetD32_v2", to, n, 4, () => inner.cuMemsetD32_v2(to, value, n)),
    cuMemsetD8Async(to, value, n, stream) {
      const work = run("cuMemsetD8Async", watch.lane(stream, "cuMemsetD8Async"), to, n, 1);
      return later(work, inner.cuMemsetD8Async(to, value, n, stream));
    },
    cuMemsetD16Async(to, value, n, stream) {
      const work = run("cuMemsetD16Async", watch.lane(stream, "cuMemsetD16Async"), to, n, 2);
      return later(work, inner.cuMemsetD16Async(to, value, n, stream));
    },
    cuMemsetD32Async(to, value, n, stream) {
      const work = run("cuMemsetD32Async", watch.lane(stream, "cuMemsetD32Async"), to, n, 4);
      return later(work, inner.cuMemsetD32Async(to, value, n, stream));
    },
  };
}

/** The calls for rectangles. */
export function fillPitchedCalls(watch: Watch, inner: DriverGroups["fillPitched"]): Watched<"fillPitched"> {
  const fill = (
    call: string,
    lane: Lane | null,
    to: bigint,
    pitch: bigint,
    width: bigint,
    height: bigint,
    perform: () => number,
    synchronous: boolean,
  ): number => {
    const [step, rows] = [Number(pitch), Number(height)];
    const all = { address: to, width: Number(width), pitch: step, height: rows, slicePitch: step * rows, depth: 1 };
    const work = watch.work(call, lane).rows(all, true);
    const code = perform();
    if (code === 0) finish(watch, work, synchronous);
    return code;
  };
  return {
    cuMemsetD2D8_v2(to, pitch, value, w, h) {
      const perform = () => inner.cuMemsetD2D8_v2(to, pitch, value, w, h);
      return fill("cuMemsetD2D8_v2", watch.legacy(), to, pitch, w, h, perform, true);
    },
    cuMemsetD2D16_v2(to, pitch, value, w, h) {
      const perform = () => inner.cuMemsetD2D16_v2(to, pitch, value, w, h);
      return fill("cuMemsetD2D16_v2", watch.legacy(), to, pitch, 2n * w, h, perform, true);
    },
    cuMemsetD2D32_v2(to, pitch, value, w, h) {
      const perform = () => inner.cuMemsetD2D32_v2(to, pitch, value, w, h);
      return fill("cuMemsetD2D32_v2", watch.legacy(), to, pitch, 4n * w, h, perform, true);
    },
    cuMemsetD2D8Async(to, pitch, value, w, h, stream) {
      const call = "cuMemsetD2D8Async";
      const perform = () => inner.cuMemsetD2D8Async(to, pitch, value, w, h, stream);
      return fill(call, watch.lane(stream, call), to, pitch, w, h, perform, false);
    },
    cuMemsetD2D16Async(to, pitch, value, w, h, stream) {
      const call = "cuMemsetD2D16Async";
      const perform = () => inner.cuMemsetD2D16Async(to, pitch, value, w, h, stream);
      return fill(call, watch.lane(stream, call), to, pitch, 2n * w, h, perform, false);
    },
    cuMemsetD2D32Async(to, pitch, value, w, h, stream) {
      const call = "cuMemsetD2D32Async";
      const perform = () => inner.cuMemsetD2D32Async(to, pitch, value, w, h, stream);
      return fill(call, watch.lane(stream, call), to, pitch, 4n * w, h, perform, false);
    },
  };
}

/** The host waits for a fill only if it fills memory of the host in a call that is not asynchronous. */
function finish(watch: Watch, work: Work, synchronous: boolean): void {
  work.done();
  const { lane, call, touches: [touch] } = work;
  if (lane === null || touch === undefined || lane.capture !== null) return;
  const known = watch.memory.find(touch.start);
  if (known === undefined) return;
  const isOnHost = known.isPinned || known.kind === "managed";
  if ((synchronous && isOnHost) || known.syncMemops) watch.hostWaitsFor([lane], call);
}
