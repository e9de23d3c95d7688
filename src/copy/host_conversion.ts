/**
 * Copies in host memory that convert the elements, by the rules of `conversion.ts`.
 *
 * Contiguous elements are converted in place, if there is machine code for it (`native_conversion.ts`). Others are
 * gathered into WebAssembly memory in boxes, converted there (`conversion_stage.ts`), and scattered to their
 * destination by the mover of strided elements. A few contiguous ones are copied with `TypedArray.set`, which needs no
 * plan to be made or looked up.
 *
 * @module
 */
import type { StridedLayout } from "../layout/mod.ts";
import type { Conversion } from "./conversion.ts";
import { convertBoxes, type ReadyConversion, readyConversion } from "./conversion_boxes.ts";
import { type ConversionPlan, isRun, planConversion } from "./conversion_plan.ts";
import { type ConversionStage, stageOf } from "./conversion_stage.ts";
import type { HostArray } from "./host_copy.ts";
import { checkSpan } from "./host_move.ts";
import { convertInPlace, threadsOf } from "./native_conversion.ts";

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
  if (isDense(source.layout, destination.layout)) {
    if (volume <= stage.most) return convertRun(stage, source, destination, volume);
    if (natively && convertInPlace(stage, source, destination)) return;
  }
  convertBoxes(readyFor(source.layout, destination.layout, stage), source, destination);
}

function isDense(source: StridedLayout, destination: StridedLayout): boolean {
  return source.isContiguousC && destination.isContiguousC;
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

/** The last plan for each destination: copies are often repeated, and planning costs as much as a small copy. */
const planned = new WeakMap<StridedLayout, { readonly source: StridedLayout; readonly ready: ReadyConversion }>();

// law copy/readyFor: copy/host_conversion
function readyFor(source: StridedLayout, destination: StridedLayout, stage: ConversionStage): ReadyConversion {
  const known = planned.get(destination);
  if (known?.source === source && known.ready.stage === stage) return known.ready;
  const ready = readyConversion(planFor(source, destination, stage), stage, stage.isFar(destination.volume));
  planned.set(destination, { source, ready });
  return ready;
}

function planFor(source: StridedLayout, destination: StridedLayout, stage: ConversionStage): ConversionPlan {
  const { fromBytes, toBytes } = stage;
  const axes = destination.shape.map((extent, axis) => ({
    extent,
    to: (destination.strides[axis] ?? 0) * toBytes,
    from: (source.strides[axis] ?? 0) * fromBytes,
  }));
  const first = { to: destination.sliceOffsetInBytes, from: source.sliceOffsetInBytes };
  return planConversion(axes, { to: toBytes, from: fromBytes }, stage.mostOf(destination.volume), first);
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
  if (isDense(source, destination) && volume > stage.most && stage.native() !== null) {
    const threads = threadsOf(stage, volume);
    return `${what}, by machine code${threads < 2 ? "" : ` on ${threads} threads`}`;
  }
  const { axes, box } = planFor(source, destination, stage);
  const isWhole = axes.every(({ extent }, axis) => extent === box[axis]);
  return [
    [what, "by vectors"],
    isWhole ? [] : [`${box.join(" x ")} at a time`],
    isRun(axes, box, "from", stage.fromBytes) ? [] : ["gathered"],
    isRun(axes, box, "to", stage.toBytes) ? [] : ["scattered"],
  ].flat().join(", ");
}
