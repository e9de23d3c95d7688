/**
 * Copies in host memory that convert the elements, by the rules of `conversion.ts`.
 *
 * Contiguous elements are converted in place, if there is machine code for it (`native_conversion.ts`), and so are rows
 * of them (`conversion_rows.ts`). Others are gathered into WebAssembly memory in boxes, converted there
 * (`conversion_stage.ts`), and scattered to their destination by the mover of strided elements; a side on which a box
 * is contiguous is read or written where it is. Without machine code contiguous ones are copied with `TypedArray.set`
 * if they fit into one box, which needs no plan to be made or looked up.
 *
 * @module
 */
import type { StridedLayout } from "../layout/mod.ts";
import type { Conversion } from "./conversion.ts";
import { convertBoxes, type ReadyConversion, readyConversion } from "./conversion_boxes.ts";
import { type ConversionPlan, isRun, planConversion } from "./conversion_plan.ts";
import { readyRows } from "./conversion_rows.ts";
import { type ConversionStage, stageOf } from "./conversion_stage.ts";
import { firstOf, type HostArray } from "./host_copy.ts";
import { checkSpan } from "./host_move.ts";
import { convertInPlace, threadsOf } from "./native_conversion.ts";
import { PlanCache } from "./plan_cache.ts";

/**
 * Copies and converts every element. Both arrays must begin at whole bytes; they must not overlap.
 *
 * @param natively whether to use machine code, where available
 * @throws {RangeError} if not all elements are in the memory
 */
export function convertHost(
  source: HostArray,
  destination: HostArray,
  conversion: Conversion,
  natively = true,
): void {
  const { volume } = destination.layout;
  if (volume === 0) return;
  const stage = stageOf(conversion);
  if (isOneRun(source.layout, destination.layout)) {
    if (natively && convertInPlace(stage, source, destination)) return;
    if (volume <= stage.most) return convertRun(stage, source, destination, volume);
  }
  const ready = readyFor(source.layout, destination.layout, stage);
  const loop = natively ? stage.native() : null;
  convertBoxes(ready, source, destination, firstOf(source.layout, destination.layout), loop);
}

// law copy/isOneRun: copy/host_conversion
/** Whether the elements of both sides are contiguous, in the same order of the axes: the first one comes first. */
function isOneRun({ strides: from }: StridedLayout, destination: StridedLayout): boolean {
  const { shape, strides: to } = destination;
  for (let axis = 0; axis < shape.length; axis++) if (shape[axis] !== 1 && from[axis] !== to[axis]) return false;
  return destination.isContiguousAny;
}

// law copy/convertRun: copy/host_conversion
/** Converts at most as many elements as fit on the stage. */
function convertRun(stage: ConversionStage, source: HostArray, destination: HostArray, count: number): void {
  const from = source.offset + source.layout.sliceOffsetInBytes;
  const to = destination.offset + destination.layout.sliceOffsetInBytes;
  const { bytes: read } = source;
  const { bytes: written } = destination;
  checkSpan({ start: from, end: from + count * stage.fromBytes }, { bytes: read, offset: 0 });
  checkSpan({ start: to, end: to + count * stage.toBytes }, { bytes: written, offset: 0 });
  stage.takeRun(read, from, count);
  stage.convert(count);
  stage.giveRun(written, to, count);
}

const plans = new PlanCache<ReadyConversion>();

// law copy/readyFor: copy/host_conversion
function readyFor(source: StridedLayout, destination: StridedLayout, stage: ConversionStage): ReadyConversion {
  const { id } = stage;
  const known = plans.find(source, destination, id);
  if (known !== null) return known;
  const ready = readyConversion(planFor(source, destination, stage), stage, stage.isFar(destination.volume));
  plans.add(source, destination, id, ready);
  return ready;
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

/** Describes in words what {@linkcode convertHost} does. */
export function explainHostConversion(
  source: StridedLayout,
  destination: StridedLayout,
  conversion: Conversion,
): string {
  const { volume } = destination;
  if (volume === 0) return "nothing to copy";
  const { from, to } = conversion;
  const stage = stageOf(conversion);
  const what = `${volume} elements from ${from.name} to ${to.name} by the host`;
  if (isOneRun(source, destination) && volume >= stage.turn && stage.native() !== null) {
    const threads = threadsOf(stage, volume);
    return `${what}, by machine code${threads < 2 ? "" : ` on ${threads} threads`}`;
  }
  const plan = planFor(source, destination, stage);
  const { axes, box } = plan;
  if (readyRows(plan, stage) !== null && stage.native() !== null) {
    return `${what}, by machine code, in rows of ${axes.at(-1)?.extent}`;
  }
  const isWhole = axes.every(({ extent }, axis) => extent === box[axis]);
  return [
    [what, "by vectors"],
    isWhole ? [] : [`${box.join(" x ")} at a time`],
    isRun(axes, box, "from", stage.fromBytes) ? [] : ["gathered"],
    isRun(axes, box, "to", stage.toBytes) ? [] : ["scattered"],
  ].flat().join(", ");
}
