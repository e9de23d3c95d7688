/**
 * In-place conversions of contiguous elements by machine code, directly from source to destination.
 *
 * Copying blocks to WebAssembly memory and back takes as long as the conversion, or longer. So its loops are translated
 * for this processor where possible (`nativeLoop`), and run on the arrays themselves; large conversions are split among
 * threads, as copies are.
 *
 * @module
 */
import type { StridedLayout } from "../layout/mod.ts";
import { type NativeLoop, prepareLoop } from "../native/mod.ts";
import type { ConversionStage } from "./conversion_stage.ts";
import type { HostArray } from "./host_copy.ts";
import { addressOf, checkSpan, type ReadyMove, runAt } from "./host_move.ts";
import { rangesOf, threadsFor } from "./host_parts.ts";

/** A prepared conversion of a number of elements. */
interface ReadyRun {
  readonly stage: ConversionStage;
  readonly moves: readonly ReadyMove[];
  readonly shares: readonly (readonly ReadyMove[])[] | null;
}

/** The last prepared conversion for each destination. */
const prepared = new WeakMap<StridedLayout, ReadyRun>();

// law copy/convertInPlace: copy/native_conversion, copy/host_conversion
/**
 * Converts all elements: contiguous on both sides, and at least one iteration's worth.
 *
 * @returns false if there is no machine code for it, or memory has no address: then nothing was done
 * @throws {RangeError} if not all elements are in the memory
 */
export function convertInPlace(stage: ConversionStage, source: HostArray, destination: HostArray): boolean {
  const loop = stage.native();
  if (loop === null) return false;
  const { volume } = destination.layout;
  const [from, to] = [source.layout.sliceOffsetInBytes, destination.layout.sliceOffsetInBytes];
  checkSpan({ start: from, end: from + volume * stage.fromBytes }, source);
  checkSpan({ start: to, end: to + volume * stage.toBytes }, destination);
  const [fromStart, toStart] = [addressOf(source), addressOf(destination)];
  if (fromStart === 0 || toStart === 0) return false;
  const known = prepared.get(destination.layout);
  const ready = known?.stage === stage ? known : readyRun(stage, loop, volume);
  if (ready !== known) prepared.set(destination.layout, ready);
  runAt(ready, toStart + to, fromStart + from);
  return true;
}

// law copy/readyRun: copy/native_conversion, copy/host_conversion
/**
 * Prepares the conversion of `count` elements, at least one iteration's worth. The remainder after the last whole
 * iteration is converted by one that ends with it, and so converts some elements twice.
 *
 * @param threads number of threads that convert
 */
export function readyRun(
  stage: ConversionStage,
  loop: NativeLoop,
  count: number,
  threads = threadsOf(stage, count),
): ReadyRun {
  const { turn, fromBytes, toBytes } = stage;
  const move = (first: number, turns: number): ReadyMove => ({
    place: { fromOffset: first * fromBytes, toOffset: first * toBytes },
    prepared: prepareLoop(loop, turns),
  });
  const whole = Math.floor(count / turn);
  const rest = whole * turn < count ? [move(count - turn, 1)] : [];
  const moves = rangesOf(whole, threads).map(({ start, length }) => move(start * turn, length));
  if (threads < 2) return { stage, moves: [...moves, ...rest], shares: null };
  return { stage, moves: [...moves, ...rest], shares: moves.map((one, i) => i === 0 ? [one, ...rest] : [one]) };
}

/**
 * Bytes on both sides together from which several threads convert. With 64 MiB two threads took nine tenths of the time
 * of one, at half as much processor time again; with 128 MiB seven tenths, at a fifth more.
 */
const worthThreads = 128 * 2 ** 20;

/**
 * How many threads a conversion of `count` elements is worth: from that size on, as many as a copy that reads and
 * writes as much.
 */
export function threadsOf({ fromBytes, toBytes }: ConversionStage, count: number): number {
  const bytes = count * (fromBytes + toBytes);
  return bytes < worthThreads ? 1 : threadsFor({ run: bytes / 2, runs: 1, isFree: true });
}
