/**
 * Copies in host memory that convert the elements, by the rules of `conversion.ts`.
 *
 * Elements are brought to the memory of WebAssembly in boxes, converted there (`conversion_stage.ts`), and put where they
 * belong, by the mover of strided elements. A few that lie side by side are brought with `TypedArray.set`: for them no
 * plan has to be made, or found.
 *
 * @module
 */
import { StridedLayout } from "../layout/mod.ts";
import type { MoveAxis } from "../native/mod.ts";
import type { Conversion } from "./conversion.ts";
import { type ConversionPlan, isRun, planConversion } from "./conversion_plan.ts";
import { type ConversionStage, stageOf } from "./conversion_stage.ts";
import type { HostArray } from "./host_copy.ts";
import { addressOf, carryOut, carryOutAt, checkSpan, type HostPlace, type ReadyPlan } from "./host_move.ts";
import { prepareRun, prepareStrided } from "./move_strided.ts";

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
  const isDense = source.layout.isContiguousC && destination.layout.isContiguousC;
  if (isDense && !stage.isFar(volume)) convertRun(stage, from, to, volume);
  else convertBoxes(readyFor(source.layout, destination.layout, stage), from, to);
}

/** Where the first element lies. */
function placeOf({ bytes, offset, layout, ptr }: HostArray): HostPlace {
  return { bytes, offset: offset + layout.sliceOffsetInBytes, ptr };
}

// law copy/convertRun: copy/conversion
function convertRun(stage: ConversionStage, from: HostPlace, to: HostPlace, count: number): void {
  const { fromBytes, toBytes, most } = stage;
  checkSpan({ start: 0, end: count * fromBytes }, from);
  checkSpan({ start: 0, end: count * toBytes }, to);
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
  /** Null if the elements lie side by side, and are best brought by the runtime. */
  readonly gather: ReadyPlan | null;
  readonly scatter: ReadyPlan | null;
}

/** What was planned last for each destination: copies are often repeated, and planning costs as much as a small one. */
const ready = new WeakMap<StridedLayout, ReadyConversion>();

// law copy/readyFor: copy/conversion
function readyFor(source: StridedLayout, destination: StridedLayout, stage: ConversionStage): ReadyConversion {
  let known = ready.get(destination);
  if (known?.source !== source || known.stage !== stage) {
    known = { source, stage, plan: planFor(source, destination, stage), boxes: new Map() };
    ready.set(destination, known);
  }
  return known;
}

function planFor(source: StridedLayout, destination: StridedLayout, stage: ConversionStage): ConversionPlan {
  const { fromBytes, toBytes } = stage;
  const axes = destination.shape.map((extent, axis) => ({
    extent,
    to: (destination.strides[axis] ?? 0) * toBytes,
    from: (source.strides[axis] ?? 0) * fromBytes,
  }));
  return planConversion(axes, { to: toBytes, from: fromBytes }, stage.mostOf(destination.volume));
}

// law copy/convertBoxes: copy/conversion
function convertBoxes(conversion: ReadyConversion, from: HostPlace, to: HostPlace): void {
  const { stage, plan: { axes, box, toOffset, fromOffset, ...spans } } = conversion;
  checkSpan(spans.from, from);
  checkSpan(spans.to, to);
  const [source, destination, memory] = [sideOf(from), sideOf(to), sideOf({ bytes: stage.memory() })];
  const convert = ({ count, gather, scatter }: ReadyBox, fromAt: number, toAt: number): void => {
    if (gather === null) stage.takeRun(source.bytes, fromAt, count);
    else move(gather, memory, 0, source, fromAt);
    stage.convert(count);
    if (scatter === null) stage.giveRun(destination.bytes, toAt, count);
    else move(scatter, destination, toAt, memory, stage.outputAt);
  };
  const walk = (axis: number, fromAt: number, toAt: number, ended: number): void => {
    const { extent, from: fromStep, to: toStep } = axes[axis] as MoveAxis; // there is one more than is walked along
    const length = box[axis] ?? 1;
    const isLast = axis === axes.length - 1;
    const whole = isLast ? boxFor(conversion, ended) : null;
    let start = 0;
    for (; start + length <= extent; start += length) {
      const [fromHere, toHere] = [fromAt + start * fromStep, toAt + start * toStep];
      if (whole === null) walk(axis + 1, fromHere, toHere, ended);
      else convert(whole, fromHere, toHere);
    }
    if (start === extent) return;
    const [fromHere, toHere, endedHere] = [fromAt + start * fromStep, toAt + start * toStep, ended | 1 << axis];
    if (isLast) convert(boxFor(conversion, endedHere), fromHere, toHere);
    else walk(axis + 1, fromHere, toHere, endedHere);
  };
  walk(0, from.offset + fromOffset, to.offset + toOffset, 0);
}

/** Memory, and the address of its first byte; null if it has none that stays. */
interface Side {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly address: number | null;
}

function sideOf({ bytes, ptr }: Omit<HostPlace, "offset">): Side {
  return { bytes, address: addressOf({ bytes, offset: 0, ptr }) };
}

/** The same for each box: so nothing is made, nor asked twice. */
function move({ plan, prepared }: ReadyPlan, to: Side, toAt: number, from: Side, fromAt: number): void {
  if (prepared !== null && to.address !== null && from.address !== null) {
    carryOutAt(plan, prepared, to.address + toAt, from.address + fromAt);
  } else {
    carryOut({ plan, prepared: null }, { bytes: to.bytes, offset: toAt }, { bytes: from.bytes, offset: fromAt });
  }
}

function boxFor({ boxes, plan: { axes, box }, stage }: ReadyConversion, ended: number): ReadyBox {
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
  const ready = {
    count,
    gather: isRun(axes, shape, "from", fromBytes)
      ? runOf(count * fromBytes)
      : prepareStrided(dense(fromBytes), fromSteps, shape, fromBytes),
    scatter: isRun(axes, shape, "to", toBytes)
      ? runOf(count * toBytes)
      : prepareStrided(toSteps, dense(toBytes), shape, toBytes),
  };
  boxes.set(ended, ready);
  return ready;
}

function runOf(bytes: number): ReadyPlan | null {
  return bytes % 16 === 0 ? prepareRun(bytes) : null;
}

/** What {@linkcode convertHost} does, in words. */
export function explainHostConversion(
  source: StridedLayout,
  destination: StridedLayout,
  conversion: Conversion,
): string {
  const { volume } = destination;
  if (volume === 0) return "nothing to copy";
  const types = `${conversion.from.name} to ${conversion.to.name}, by the host`;
  const stage = stageOf(conversion);
  const { axes, box } = planFor(source, destination, stage);
  const ways = [
    isRun(axes, box, "from", stage.fromBytes) ? [] : ["gathered"],
    isRun(axes, box, "to", stage.toBytes) ? [] : ["scattered"],
  ].flat();
  return [`${box.join(" x ")} elements at a time, ${types}`, ...ways].join(", ");
}
