import { showAs } from "./inspect.ts";
import { show } from "./shape.ts";

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
