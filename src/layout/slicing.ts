import { NEW_AXIS, placeNewAxes } from "./axes.ts";
import { showAs } from "./inspect.ts";
import { at, MAX_SPAN_IN_BYTES, type Shape } from "./shape.ts";
import { formatShape, notInteger, show } from "./show.ts";

/**
 * A part of one axis: every `step`-th element from `start` up to but excluding `stop`. Made by {@linkcode slice}.
 *
 * `null` means "from the end at which the step starts" and "to the end at which it arrives". Negative positions count
 * from the back, and positions beyond the axis are clamped to it, as in Python.
 */
export class Slice {
  /** The first position, or null. */
  readonly start: number | null;
  /** The position to stop before, or null. */
  readonly stop: number | null;
  /** Distance from one element to the next; negative to walk backwards, never zero. */
  readonly step: number;

  /** Use {@linkcode slice}. */
  constructor(start: number | null, stop: number | null, step: number) {
    if (start !== null && !Number.isSafeInteger(start)) throw badBound("start", start);
    if (stop !== null && !Number.isSafeInteger(stop)) throw badBound("stop", stop);
    if (!Number.isSafeInteger(step)) throw badBound("step", step);
    if (step === 0) throw new RangeError("Expected the step of a slice to be a non-zero integer, got 0");
    this.start = start;
    this.stop = stop;
    this.step = step;
  }

  /** As Python writes it: `1:10:2`. */
  toString(): string {
    const { start, stop, step } = this;
    return `${start ?? ""}:${stop ?? ""}${step === 1 ? "" : `:${step}`}`;
  }

  static {
    showAs(Slice, String, "fields");
  }
}

/**
 * A slice of one axis, with Python's meaning of `start:stop:step`.
 *
 * With one argument it is `start:`, as `Array.prototype.slice` has it (Python's `slice(n)` would be `:n`).
 *
 * @param start first position; null or omitted: the end at which the step starts
 * @param stop position to stop before; null or omitted: through to the other end
 * @param step distance between elements, 1 if null or omitted; negative to walk backwards
 * @throws {TypeError} if an argument is neither a number nor null
 * @throws {RangeError} if a position is not a safe integer, or the step is 0
 *
 * @example
 * ```ts
 * import { slice, StridedLayout } from "@causeway/causeway/layout";
 *
 * const layout = StridedLayout.dense([10], 4);
 * layout.sliced(slice(2)).shape; // [8]
 * layout.sliced(slice(null, -1)).shape; // [9]
 * layout.sliced(slice(null, null, -2)).strides; // [-2]
 * layout.sliced(slice(null, null, -2)).sliceOffset; // 9
 * ```
 */
export function slice(start?: number | null, stop?: number | null, step?: number | null): Slice {
  return new Slice(start ?? null, stop ?? null, step ?? 1);
}

function badBound(name: string, value: unknown): Error {
  const message = `Expected the ${name} of a slice to be ${
    name === "step" ? "a non-zero" : "an"
  } integer or null, got ${show(value)}`;
  return typeof value === "number" ? new RangeError(message) : new TypeError(message);
}

/**
 * Selects a part of one axis: a position (which drops the axis), a {@linkcode Slice}, `null` (a new axis of extent 1),
 * or `"..."` (all the axes that no other item addresses; at most once, and implied at the end).
 */
export type SliceItem = number | Slice | null | "...";

/**
 * The number of axes that slicing with these items leaves.
 *
 * @throws {TypeError} if an item is of another kind
 * @throws {RangeError} if there are more items than axes, or more than one ellipsis
 */
export function slicedNdim(shape: Shape, items: readonly SliceItem[]): number {
  let selected = 0;
  let dropped = 0;
  let added = 0;
  let ellipses = 0;
  for (let place = 0; place < items.length; place++) {
    const item = items[place];
    if (typeof item === "number") {
      selected++;
      dropped++;
    } else if (item instanceof Slice) selected++;
    else if (item === null) added++;
    else if (item === "...") ellipses++;
    else {
      throw new TypeError(
        `Expected an index to be an integer, slice(), null or "...", got ${show(item)} at position ${place}`,
      );
    }
  }
  if (selected > shape.length) {
    throw new RangeError(
      `Expected at most ${shape.length} indices for shape ${formatShape(shape)}, got ${selected}`,
    );
  }
  if (ellipses > 1) throw new RangeError(`Expected at most one "...", got ${ellipses}`);
  return shape.length - dropped + added;
}

/**
 * Fills in the extents and strides after slicing. If no element is left, all strides are 0.
 *
 * @param shape the current extents
 * @param strides the current strides
 * @param items as {@linkcode slicedNdim} accepted them
 * @param newShape receives the extents; of the length that `slicedNdim` returned
 * @param newStrides receives the strides; of the same length
 * @param itemsize bytes per element
 * @returns by how many elements the first element moves
 * @throws {TypeError | RangeError} if an index is not an integer, or out of range
 */
export function sliceInto(
  shape: Shape,
  strides: readonly number[],
  items: readonly SliceItem[],
  newShape: number[],
  newStrides: number[],
  itemsize: number,
): number {
  let offset = 0;
  let axis = 0;
  let made = 0;
  let hasNewAxes = false;
  for (let place = 0; place < items.length; place++) {
    const item = items[place];
    if (typeof item === "number") {
      offset += position(item, axis, at(shape, axis)) * at(strides, axis);
      axis++;
    } else if (item instanceof Slice) {
      const extent = at(shape, axis);
      const stride = at(strides, axis);
      const { step } = item;
      let first = 0;
      let count = extent;
      if (step !== 1 || item.start !== null || item.stop !== null) {
        first = firstPosition(item, extent);
        const end = endPosition(item, extent);
        const distance = step > 0 ? end - first : first - end;
        count = distance > 0 ? Math.floor((distance - 1) / Math.abs(step)) + 1 : 0;
      }
      newShape[made] = count;
      newStrides[made] = steppedStride(stride, step, itemsize);
      made++;
      if (count > 0) offset += first * stride;
      axis++;
    } else if (item === null) {
      newShape[made++] = NEW_AXIS;
      hasNewAxes = true;
    } else {
      // The ellipsis: the axes that the remaining items leave.
      let after = 0;
      for (let rest = place + 1; rest < items.length; rest++) if (items[rest] !== null) after++;
      for (const end = shape.length - after; axis < end; axis++, made++) {
        newShape[made] = at(shape, axis);
        newStrides[made] = at(strides, axis);
      }
    }
  }
  for (; axis < shape.length; axis++, made++) {
    newShape[made] = at(shape, axis);
    newStrides[made] = at(strides, axis);
  }
  for (let i = 0; i < made; i++) {
    if (at(newShape, i) === 0) {
      newStrides.fill(0);
      break;
    }
  }
  if (hasNewAxes) placeNewAxes(newShape, newStrides);
  return offset;
}

/**
 * Converts a position counted from either end to one from the front.
 *
 * @throws {TypeError | RangeError} if it is not an integer, or out of range
 */
export function position(index: number, axis: number, extent: number): number {
  if (!Number.isSafeInteger(index)) throw notInteger(`index of axis ${axis}`, "an integer", index);
  const fromFront = index < 0 ? index + extent : index;
  if (fromFront < 0 || fromFront >= extent) {
    throw new RangeError(`Index ${index} is out of range for axis ${axis} with extent ${extent}`);
  }
  return fromFront;
}

function firstPosition({ start, step }: Slice, extent: number): number {
  if (start === null) return step > 0 ? 0 : extent - 1;
  return clamp(start, step, extent);
}

function endPosition({ stop, step }: Slice, extent: number): number {
  if (stop === null) return step > 0 ? extent : -1;
  return clamp(stop, step, extent);
}

/** Clamps a bound to the axis, or to the position just beyond the end at which a walk with this step stops. */
function clamp(bound: number, step: number, extent: number): number {
  const fromFront = bound < 0 ? bound + extent : bound;
  return step > 0 ? Math.min(Math.max(fromFront, 0), extent) : Math.min(Math.max(fromFront, -1), extent - 1);
}

// law layout/steppedStride: layout/cloned
/**
 * The stride between elements that are `step` apart.
 *
 * A step beyond the end of the axis leaves at most one element, whose stride may be anything: so if the product would
 * be more bytes than a layout may span, the old stride stays.
 */
function steppedStride(stride: number, step: number, itemsize: number): number {
  if (step === 1) return stride;
  const product = stride * step;
  // Adding 0 turns the -0 of a broadcast axis walked backwards into 0.
  return Math.abs(product) * Math.max(itemsize, 1) <= MAX_SPAN_IN_BYTES ? product + 0 : stride;
}

/** The error for an offset that lies inside a byte. */
export function beginsInsideByte(itemsize: number, offset: number): RangeError {
  const bits = itemsize * 8;
  let perByte = 1;
  while ((perByte * bits) % 8 !== 0) perByte++;
  return new RangeError(
    `Cannot slice a packed layout of ${bits}-bit elements at element ${offset}: it lies inside a byte. ` +
      `Slice at a multiple of ${perByte}; get() and toArray() read single elements`,
  );
}
