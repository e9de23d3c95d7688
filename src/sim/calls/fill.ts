/**
 * Fills of runs of elements and of rectangles.
 *
 * @module
 */
import { CU_GRAPH_NODE_TYPE, CUresult } from "../../../bindings/cuda_types.ts";
import { littleEndian } from "../../ffi/mod.ts";
import { isOnHost, isReachable } from "../address_space.ts";
import { type CallTable, refuse } from "../call.ts";
import type { Simulator } from "../simulator.ts";
import type { Stream } from "../objects.ts";
import { count } from "./copy.ts";

/** The calls for runs of elements. */
export function fillCalls(simulator: Simulator): CallTable<"fill"> {
  const now = (): Stream => simulator.current().legacy;
  const sync = (pattern: Uint8Array, to: bigint, n: bigint) => fill(simulator, now(), pattern, { to, n }, true);
  const async = (pattern: Uint8Array, to: bigint, n: bigint, stream: bigint) =>
    fill(simulator, simulator.stream(stream), pattern, { to, n }, false);
  return {
    cuMemsetD8_v2: (to, value, n) => sync(pattern(1, value), to, n),
    cuMemsetD16_v2: (to, value, n) => sync(pattern(2, value), to, n),
    cuMemsetD32_v2: (to, value, n) => sync(pattern(4, value), to, n),
    cuMemsetD8Async: (to, value, n, stream) => async(pattern(1, value), to, n, stream),
    cuMemsetD16Async: (to, value, n, stream) => async(pattern(2, value), to, n, stream),
    cuMemsetD32Async: (to, value, n, stream) => async(pattern(4, value), to, n, stream),
  };
}

/** The calls for rectangles. */
export function fillPitchedCalls(simulator: Simulator): CallTable<"fillPitched"> {
  const now = (): Stream => simulator.current().legacy;
  const sync = (pattern: Uint8Array, to: bigint, pitch: bigint, width: bigint, height: bigint) =>
    fill(simulator, now(), pattern, { to, n: width, pitch, height }, true);
  const async = (pattern: Uint8Array, to: bigint, pitch: bigint, width: bigint, height: bigint, stream: bigint) =>
    fill(simulator, simulator.stream(stream), pattern, { to, n: width, pitch, height }, false);
  return {
    cuMemsetD2D8_v2: (to, pitch, value, w, h) => sync(pattern(1, value), to, pitch, w, h),
    cuMemsetD2D16_v2: (to, pitch, value, w, h) => sync(pattern(2, value), to, pitch, w, h),
    cuMemsetD2D32_v2: (to, pitch, value, w, h) => sync(pattern(4, value), to, pitch, w, h),
    cuMemsetD2D8Async: (to, pitch, value, w, h, stream) => async(pattern(1, value), to, pitch, w, h, stream),
    cuMemsetD2D16Async: (to, pitch, value, w, h, stream) => async(pattern(2, value), to, pitch, w, h, stream),
    cuMemsetD2D32Async: (to, pitch, value, w, h, stream) => async(pattern(4, value), to, pitch, w, h, stream),
  };
}

/** The memory to fill: `n` elements in each of `height` rows. */
interface Target {
  readonly to: bigint;
  readonly n: bigint;
  readonly pitch?: bigint;
  readonly height?: bigint;
}

function pattern(bytes: 1 | 2 | 4, value: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(bytes));
  if (bytes === 1) view.setUint8(0, value);
  else if (bytes === 2) view.setUint16(0, value, littleEndian);
  else view.setUint32(0, value, littleEndian);
  return new Uint8Array(view.buffer);
}

// law sim/fill: sim/memory
/** Enqueues a fill. The host waits for it if a synchronous call fills host memory, or SYNC_MEMOPS is set. */
function fill(
  simulator: Simulator,
  stream: Stream,
  pattern: Uint8Array,
  target: Target,
  synchronous: boolean,
): void {
  const elements = count(target.n);
  const rows = count(target.height ?? 1n);
  if (elements === 0 || rows === 0) return;
  const width = elements * pattern.length;
  const pitch = rows === 1 ? BigInt(width) : target.pitch ?? 0n;
  const misaligned = [target.to, pitch].some((value) => value % BigInt(pattern.length) !== 0n);
  if (misaligned || pitch < BigInt(width)) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  const allocation = simulator.space.range(target.to, count(pitch) * (rows - 1) + width);
  if (allocation === null || !isReachable(allocation, stream.context)) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  const task = simulator.submit(stream, CU_GRAPH_NODE_TYPE.MEMSET, () => {
    simulator.clock += rows * width * 1e-8; // milliseconds at 100 GB/s
    if (simulator.space.isUnregistered(allocation)) return; // the target no longer exists
    for (let row = 0n; row < BigInt(rows); row++) simulator.space.fill(target.to + row * pitch, pattern, elements);
  });
  if ((synchronous && isOnHost(allocation)) || allocation.syncMemops) simulator.hostWaits(stream.context, task);
}
