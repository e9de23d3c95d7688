/**
 * Carries out conversion plans box by box: each is gathered into WebAssembly memory, converted, and scattered to its
 * destination. Machine code reads and writes a side of a box where it is, if the elements are contiguous there, and
 * most rows that are contiguous on both sides without boxes (`conversion_rows.ts`).
 *
 * @module
 */
import { StridedLayout } from "../layout/mod.ts";
import { type MoveAxis, type NativeLoop, runMove } from "../native/mod.ts";
import { type ConversionPlan, isRun } from "./conversion_plan.ts";
import { convertRows, type ReadyRows, readyRows } from "./conversion_rows.ts";
import type { ConversionStage } from "./conversion_stage.ts";
import {
  addressOf,
  carryOut,
  checkSpan,
  type HostPlace,
  type ReadyMove,
  type ReadyPlan,
  readyPlan,
} from "./host_move.ts";
import { type Bytes, planHostCopy } from "./host_plan.ts";
import { convertAt } from "./native_conversion.ts";

/** A plan with everything needed to carry it out repeatedly. */
export interface ReadyConversion {
  readonly stage: ConversionStage;
  readonly plan: ConversionPlan;
  /** Whether the memory is in no near cache. */
  readonly isFar: boolean;
  /** Boxes by the axes along which they are cut short, one bit each: there are no more axes than a number has bits. */
  readonly boxes: Map<number, ReadyBox>;
  /** The only box, if all elements fit into one, and machine code gathers and scatters it in one move each. */
  readonly only: OnlyBox | null;
  /** The rows that machine code converts where they are, if all elements are in such rows. */
  readonly rows: ReadyRows | null;
}

interface OnlyBox {
  readonly count: number;
  readonly gather: ReadyMove;
  readonly scatter: ReadyMove;
}

/** A box of one shape. */
interface ReadyBox {
  readonly count: number;
  /** Whether the elements are contiguous. */
  readonly isFromRun: boolean;
  readonly isToRun: boolean;
  /** Null if the elements are contiguous, and the runtime copies them best. */
  readonly gather: ReadyPlan | null;
  readonly scatter: ReadyPlan | null;
}

/** Makes a plan ready. */
export function readyConversion(plan: ConversionPlan, stage: ConversionStage, isFar: boolean): ReadyConversion {
  const ready = { stage, plan, isFar, boxes: new Map(), only: null, rows: readyRows(plan, stage) };
  const { axes, box } = plan;
  if (axes.some(({ extent }, axis) => extent !== box[axis])) return ready;
  const { count, ...moves } = boxFor(ready, 0);
  const [gather, scatter] = [onlyMove(moves.gather), onlyMove(moves.scatter)];
  return { ...ready, only: gather === null || scatter === null ? null : { count, gather, scatter } };
}

// law copy/convertBoxes: copy/host_conversion
/**
 * Converts all elements.
 *
 * @param first bytes from both places to the first elements
 * @param loop the conversion in machine code, if any
 * @throws {RangeError} if not all elements are in the memory
 */
export function convertBoxes(
  ready: ReadyConversion,
  from: HostPlace,
  to: HostPlace,
  first: Bytes,
  loop: NativeLoop | null,
): void {
  const { stage, plan } = ready;
  checkSpan(plan.from, from, first.from);
  checkSpan(plan.to, to, first.to);
  const firstAt = { from: first.from + plan.fromOffset, to: first.to + plan.toOffset };
  if (ready.rows !== null && loop !== null && convertRows(ready.rows, loop, from, to, firstAt)) return;
  if (ready.only !== null && convertOnly(ready.only, ready, from, to, first)) return;
  const sides = { source: sideOf(from), destination: sideOf(to), memory: memoryOf(stage), loop };
  const { axes, box } = plan;
  // Along all later axes a box spans the whole extent.
  const last = Math.max(0, axes.findLastIndex(({ extent }, axis) => (box[axis] ?? 1) < extent));
  const walk = (axis: number, fromAt: number, toAt: number, ended: number): void => {
    const { extent, ...step } = axes[axis] as MoveAxis; // the walk ends before the last axis
    const length = box[axis] ?? 1;
    const steps = { from: length * step.from, to: length * step.to };
    const whole = Math.floor(extent / length);
    const rest = { fromAt: fromAt + whole * steps.from, toAt: toAt + whole * steps.to, ended: ended | 1 << axis };
    const hasRest = whole * length < extent;
    if (axis === last) {
      convertRow(stage, boxFor(ready, ended), sides, fromAt, toAt, steps, whole);
      if (hasRest) convertRow(stage, boxFor(ready, rest.ended), sides, rest.fromAt, rest.toAt, steps, 1);
      return;
    }
    for (let i = 0; i < whole; i++) walk(axis + 1, fromAt + i * steps.from, toAt + i * steps.to, ended);
    if (hasRest) walk(axis + 1, rest.fromAt, rest.toAt, rest.ended);
  };
  walk(0, firstAt.from, firstAt.to, 0);
}

/** An array's memory, and the address of the array's offset 0; 0 if it has none. */
interface Side {
  readonly place: HostPlace;
  readonly start: number;
}

interface Sides {
  readonly source: Side;
  readonly destination: Side;
  readonly memory: Side;
  readonly loop: NativeLoop | null;
}

function sideOf(place: HostPlace): Side {
  return { place, start: addressOf(place) };
}

let memory: Side | undefined;

/** The stage's memory: its address takes as long as moving a few elements, and changes only if it grows. */
function memoryOf(stage: ConversionStage): Side {
  const bytes = stage.memory();
  return memory?.place.bytes === bytes ? memory : memory = sideOf({ bytes, offset: 0 });
}

// law copy/convertOnly: copy/host_conversion
/**
 * Converts a few elements, without what many take.
 *
 * @returns false if memory has no address: then nothing was done
 */
function convertOnly(
  { count, gather: { place: take, prepared: gather }, scatter: { place: give, prepared: scatter } }: OnlyBox,
  { stage, plan }: ReadyConversion,
  from: HostPlace,
  to: HostPlace,
  first: Bytes,
): boolean {
  const source = addressOf(from);
  const destination = addressOf(to);
  const { start } = memoryOf(stage);
  if (source === 0 || destination === 0 || start === 0) return false;
  runMove(gather, start + take.toOffset, source + first.from + plan.fromOffset + take.fromOffset);
  stage.convert(count);
  const results = start + stage.outputAt + give.fromOffset;
  runMove(scatter, destination + first.to + plan.toOffset + give.toOffset, results);
  return true;
}

// law copy/convertRow: copy/host_conversion
/** Converts boxes at equal steps. */
function convertRow(
  stage: ConversionStage,
  box: ReadyBox,
  sides: Sides,
  fromAt: number,
  toAt: number,
  steps: { readonly from: number; readonly to: number },
  boxes: number,
): void {
  if (convertRuns(stage, box, sides, fromAt, toAt, steps, boxes)) return;
  const { count, gather, scatter } = box;
  const { source, destination, memory } = sides;
  const [take, give] = [onlyMove(gather), onlyMove(scatter)];
  if (take !== null && give !== null && source.start !== 0 && destination.start !== 0 && memory.start !== 0) {
    // Gather and scatter take one machine code call each: any further overhead per box would be measurable.
    const input = { to: memory.start + take.place.toOffset, from: source.start + fromAt + take.place.fromOffset };
    const output = {
      to: destination.start + toAt + give.place.toOffset,
      from: memory.start + stage.outputAt + give.place.fromOffset,
    };
    for (let i = 0; i < boxes; i++) {
      runMove(take.prepared, input.to, input.from + i * steps.from);
      stage.convert(count);
      runMove(give.prepared, output.to + i * steps.to, output.from);
    }
    return;
  }
  const [read, written, staged] = [source.place, destination.place, memory.place];
  for (let i = 0; i < boxes; i++) {
    const readAt = read.offset + fromAt + i * steps.from;
    const writtenAt = written.offset + toAt + i * steps.to;
    if (gather === null) stage.takeRun(read.bytes, readAt, count);
    else carryOut(gather, staged, { bytes: read.bytes, offset: readAt });
    stage.convert(count);
    if (scatter === null) stage.giveRun(written.bytes, writtenAt, count);
    else carryOut(scatter, { bytes: written.bytes, offset: writtenAt }, { ...staged, offset: stage.outputAt });
  }
}

// law copy/convertRuns: copy/host_conversion
/**
 * Converts boxes at equal steps, contiguous at least on one side, by machine code that reads or writes that side.
 *
 * @returns false if it cannot: then nothing was done
 */
function convertRuns(
  stage: ConversionStage,
  { count, isFromRun, isToRun, gather, scatter }: ReadyBox,
  { source, destination, memory, loop }: Sides,
  fromAt: number,
  toAt: number,
  steps: { readonly from: number; readonly to: number },
  boxes: number,
): boolean {
  if (loop === null || count < stage.turn || !(isFromRun || isToRun)) return false;
  if (source.start === 0 || destination.start === 0 || memory.start === 0) return false;
  const take = isFromRun ? null : onlyMove(gather);
  const give = isToRun ? null : onlyMove(scatter);
  if ((take === null && !isFromRun) || (give === null && !isToRun)) return false;
  for (let i = 0; i < boxes; i++) {
    const from = source.start + fromAt + i * steps.from;
    const to = destination.start + toAt + i * steps.to;
    const results = memory.start + stage.outputAt;
    if (take !== null) runMove(take.prepared, memory.start + take.place.toOffset, from + take.place.fromOffset);
    convertAt(stage, loop, count, isToRun ? to : results, isFromRun ? from : memory.start, 1);
    if (give !== null) runMove(give.prepared, to + give.place.toOffset, results + give.place.fromOffset);
  }
  return true;
}

/** The single machine code move of a plan; null if there are several, or loops make them. */
function onlyMove(ready: ReadyPlan | null): ReadyMove | null {
  const [move, another] = ready?.moves ?? [];
  return another === undefined ? move ?? null : null;
}

// law copy/boxFor: copy/host_conversion
function boxFor({ boxes, plan: { axes, box }, stage, isFar }: Omit<ReadyConversion, "only">, ended: number): ReadyBox {
  const known = boxes.get(ended);
  if (known !== undefined) return known;
  const { fromBytes, toBytes } = stage;
  const shape = axes.map(({ extent }, axis) => {
    const length = box[axis] ?? 1;
    return (ended >> axis & 1) === 1 ? extent % length : length;
  });
  const count = shape.reduce((all, extent) => all * extent, 1);
  const [fromSteps, toSteps] = [axes.map(({ from }) => from), axes.map(({ to }) => to)];
  const dense = (size: number) => StridedLayout.dense(shape, size).stridesInBytes;
  const isFromRun = isRun(axes, shape, "from", fromBytes);
  const isToRun = isRun(axes, shape, "to", toBytes);
  const made = {
    count,
    isFromRun,
    isToRun,
    gather: isFromRun
      ? prepareRun(count * fromBytes, isFar)
      : prepareStrided(dense(fromBytes), fromSteps, shape, fromBytes),
    scatter: isToRun ? prepareRun(count * toBytes, isFar) : prepareStrided(toSteps, dense(toBytes), shape, toBytes),
  };
  boxes.set(ended, made);
  return made;
}

/** Moves of elements between two arrangements, by the bytes from one element to the next along each axis. */
function prepareStrided(
  toStrides: readonly number[],
  fromStrides: readonly number[],
  shape: readonly number[],
  itemsize: number,
): ReadyPlan {
  const axes = shape.map((extent, axis) => ({ extent, to: toStrides[axis] ?? 0, from: fromStrides[axis] ?? 0 }));
  return readyPlan(planHostCopy(axes, itemsize));
}

/** Size in bytes of the largest pieces that machine code moves individually. */
const unit = 16;

/**
 * Moves of contiguous bytes.
 *
 * @param isFar whether either side is in no near cache: then the bytes are moved piece by piece, because `memcpy` takes
 *   longer at addresses that are not multiples of 32
 * @returns null if only loops could make the moves
 */
function prepareRun(bytes: number, isFar: boolean): ReadyPlan | null {
  const isInPieces = isFar && bytes % unit === 0;
  const axes = isInPieces ? [{ extent: bytes / unit, to: unit, from: unit }] : [];
  const span = { start: 0, end: bytes };
  const moves = [{ bytes: isInPieces ? unit : bytes, axes, toOffset: 0, fromOffset: 0 }];
  const ready = readyPlan({ moves, run: bytes, runs: 1, tile: null, isFree: true, to: span, from: span });
  return ready.moves === null ? null : ready;
}
