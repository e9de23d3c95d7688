/**
 * Copies in host memory that convert the elements, by the rules of `conversion.ts`.
 *
 * Elements are brought to the memory of WebAssembly in blocks, converted there (`conversion_stage.ts`), and put where
 * they belong: with `TypedArray.set` where they lie side by side, else by the mover of strided elements.
 *
 * @module
 */
import { StridedLayout } from "../layout/mod.ts";
import type { Conversion } from "./conversion.ts";
import { type ConversionPlan, isRun, planConversion } from "./conversion_plan.ts";
import { BLOCK, type ConversionStage, stageOf } from "./conversion_stage.ts";
import type { HostArray } from "./host_copy.ts";
import { checkSpan, type HostPlace, type ReadyPlan } from "./host_move.ts";
import { movePrepared, prepareStrided } from "./move_strided.ts";

/**
 * Copies every element, converted, to its place. Both must begin at whole bytes; they must not overlap.
 *
 * @throws {RangeError} if not all elements are in the memory
 */
export function convertHost(source: HostArray, destination: HostArray, conversion: Conversion): void {
  const { volume } = destination.layout;
  if (volume === 0) return;
  const stage = stageOf(conversion);
  const [from, to] = [placeOf(source), placeOf(destination)];
  // Most arrays lie in C order: then no plan has to be made, or found.
  if (source.layout.isContiguousC && destination.layout.isContiguousC) convertRun(stage, from, to, volume);
  else convertBoxes(readyFor(source.layout, destination.layout, stage), from, to);
}

/** Where the first element lies. */
function placeOf({ bytes, offset, layout }: HostArray): HostPlace {
  return { bytes, offset: offset + layout.sliceOffsetInBytes };
}

// law copy/convertRun: copy/conversion
function convertRun(stage: ConversionStage, from: HostPlace, to: HostPlace, count: number): void {
  const { fromBytes, toBytes } = stage;
  checkSpan({ start: 0, end: count * fromBytes }, from);
  checkSpan({ start: 0, end: count * toBytes }, to);
  const most = stage.runOf(count);
  for (let done = 0; done < count; done += most) {
    const size = Math.min(most, count - done);
    stage.takeRun(from.bytes, from.offset + done * fromBytes, size);
    stage.convert(size);
    stage.giveRun(to.bytes, to.offset + done * toBytes, size);
  }
}

/** A plan with all that is needed to carry it out again and again. */
interface ReadyConversion {
  readonly source: StridedLayout;
  readonly stage: ConversionStage;
  readonly plan: ConversionPlan;
  /** By which axes they end early on, a bit for each. */
  readonly boxes: Map<number, ReadyBox>;
}

/** A box of one shape. */
interface ReadyBox {
  readonly count: number;
  /** Null if the elements lie side by side. */
  readonly gather: ReadyPlan | null;
  readonly scatter: ReadyPlan | null;
}

/** What was planned last for each destination: copies are often repeated, and planning costs as much as a small one. */
const ready = new WeakMap<StridedLayout, ReadyConversion>();

// law copy/readyFor: copy/conversion
function readyFor(source: StridedLayout, destination: StridedLayout, stage: ConversionStage): ReadyConversion {
  let known = ready.get(destination);
  if (known?.source !== source || known.stage !== stage) {
    known = { source, stage, plan: planFor(source, destination), boxes: new Map() };
    ready.set(destination, known);
  }
  return known;
}

function planFor(source: StridedLayout, destination: StridedLayout): ConversionPlan {
  const axes = destination.shape.map((extent, axis) => ({
    extent,
    to: (destination.strides[axis] ?? 0) * destination.itemsize,
    from: (source.strides[axis] ?? 0) * source.itemsize,
  }));
  return planConversion(axes, { to: destination.itemsize, from: source.itemsize }, BLOCK);
}

function convertBoxes(conversion: ReadyConversion, from: HostPlace, to: HostPlace): void {
  const { stage, plan: { axes, box, toOffset, fromOffset } } = conversion;
  const walk = (axis: number, fromAt: number, toAt: number, ended: number): void => {
    const [one, length] = [axes[axis], box[axis]];
    if (one === undefined || length === undefined) {
      return convertBox(stage, boxFor(conversion, ended), { ...from, offset: fromAt }, { ...to, offset: toAt });
    }
    for (let start = 0; start < one.extent; start += length) {
      const isShort = start + length > one.extent;
      walk(axis + 1, fromAt + start * one.from, toAt + start * one.to, isShort ? ended | 1 << axis : ended);
    }
  };
  walk(0, from.offset + fromOffset, to.offset + toOffset, 0);
}

function boxFor(
  { boxes, plan: { axes, box }, stage: { fromBytes, toBytes } }: ReadyConversion,
  ended: number,
): ReadyBox {
  return boxes.getOrInsertComputed(ended, () => {
    const shape = axes.map(({ extent }, axis) => {
      const length = box[axis] ?? 1;
      return (ended >> axis & 1) === 1 ? extent % length : length;
    });
    const [fromSteps, toSteps] = [axes.map(({ from }) => from), axes.map(({ to }) => to)];
    const dense = (size: number) => StridedLayout.dense(shape, size).stridesInBytes;
    const [isGathered, isScattered] = [!isRun(axes, shape, "from", fromBytes), !isRun(axes, shape, "to", toBytes)];
    return {
      count: shape.reduce((all, extent) => all * extent, 1),
      gather: isGathered ? prepareStrided(dense(fromBytes), fromSteps, shape, fromBytes) : null,
      scatter: isScattered ? prepareStrided(toSteps, dense(toBytes), shape, toBytes) : null,
    };
  });
}

function convertBox(stage: ConversionStage, box: ReadyBox, from: HostPlace, to: HostPlace): void {
  const { count, gather, scatter } = box;
  if (gather === null) stage.takeRun(from.bytes, from.offset, count);
  else movePrepared(gather, stage.input(), from);
  stage.convert(count);
  if (scatter === null) stage.giveRun(to.bytes, to.offset, count);
  else movePrepared(scatter, to, stage.output());
}

/** What {@linkcode convertHost} does, in words. */
export function explainHostConversion(
  source: StridedLayout,
  destination: StridedLayout,
  { from, to }: Conversion,
): string {
  if (destination.volume === 0) return "nothing to copy";
  const types = `${from.name} to ${to.name}, by the host`;
  if (source.isContiguousC && destination.isContiguousC) return `runs of up to ${BLOCK} elements, ${types}`;
  const { axes, box } = planFor(source, destination);
  const ways = [
    isRun(axes, box, "from", source.itemsize) ? [] : ["gathered"],
    isRun(axes, box, "to", destination.itemsize) ? [] : ["scattered"],
  ].flat();
  return [`boxes of up to ${box.join(" x ")} elements`, types, ...ways].join(", ");
}
