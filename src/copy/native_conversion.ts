/**
 * In-place conversions of contiguous elements by machine code, directly from source to destination.
 *
 * Copying blocks to WebAssembly memory and back takes as long as the conversion, or longer. So its loops are translated
 * for this processor where possible (`nativeLoop`), and run on the arrays themselves; large conversions are split among
 * threads, as copies are.
 *
 * @module
 */
import { type NativeLoop, prepareLoop } from "../native/mod.ts";
import type { ConversionStage } from "./conversion_stage.ts";
import type { HostArray } from "./host_copy.ts";
import { addressOf, checkSpan, type ReadyMove, runShares } from "./host_move.ts";
import { rangesOf, threadsFor } from "./host_parts.ts";

// law copy/convertInPlace: copy/native_conversion, copy/host_conversion
/**
 * Converts all elements: contiguous on both sides.
 *
 * @returns false if there is no machine code for it, there are too few elements for an iteration, or memory has no
 *   address: then nothing was done
 * @throws {RangeError} if not all elements are in the memory
 */
export function convertInPlace(stage: ConversionStage, source: HostArray, destination: HostArray): boolean {
  const { volume } = destination.layout;
  if (volume < stage.turn) return false;
  const loop = stage.native();
  if (loop === null) return false;
  const from = source.layout.sliceOffsetInBytes;
  const to = destination.layout.sliceOffsetInBytes;
  checkSpan({ start: from, end: from + volume * stage.fromBytes }, source);
  checkSpan({ start: to, end: to + volume * stage.toBytes }, destination);
  const fromStart = addressOf(source);
  const toStart = addressOf(destination);
  if (fromStart === 0 || toStart === 0) return false;
  convertAt(stage, loop, volume, toStart + to, fromStart + from);
  return true;
}

// law copy/convertAt: copy/native_conversion, copy/host_conversion
/**
 * Converts `count` elements, at least one iteration's worth, between two addresses. The remainder after the last whole
 * iteration is converted by one that ends with it, and so converts some elements twice.
 *
 * @param threads number of threads that convert
 */
export function convertAt(
  stage: ConversionStage,
  loop: NativeLoop,
  count: number,
  to: number,
  from: number,
  threads = threadsOf(stage, count),
): void {
  const { turn, fromBytes, toBytes } = stage;
  const whole = Math.floor(count / turn);
  if (threads < 2 || !convertOnThreads(stage, loop, whole, to, from, threads)) loop.run(whole, to, from);
  const last = count - turn;
  if (whole * turn < count) loop.run(1, to + last * toBytes, from + last * fromBytes);
}

/** Converts whole iterations. @returns false if there are no threads left: then nothing was done */
function convertOnThreads(
  { turn, fromBytes, toBytes }: ConversionStage,
  loop: NativeLoop,
  turns: number,
  to: number,
  from: number,
  threads: number,
): boolean {
  const shares = rangesOf(turns, threads).map(({ start, length }): ReadyMove[] => [{
    place: { fromOffset: start * turn * fromBytes, toOffset: start * turn * toBytes },
    prepared: prepareLoop(loop, length),
  }]);
  return runShares(shares, to, from);
}

/**
 * Bytes on both sides together from which several threads convert. With 64 MiB two threads took nine tenths of the time
 * of one, at half as much processor time again; with 128 MiB seven tenths, at a fifth more.
 */
const worthThreads = 128 * 2 ** 20;

// law copy/threadsOf: copy/native_conversion
/**
 * How many threads a conversion of `count` elements is worth: from that size on, as many as a copy that reads and
 * writes as much.
 */
export function threadsOf({ fromBytes, toBytes }: ConversionStage, count: number): number {
  const bytes = count * (fromBytes + toBytes);
  return bytes < worthThreads ? 1 : threadsFor({ run: bytes / 2, runs: 1, isFree: true });
}
