/**
 * Arrays in new memory, from JavaScript values.
 *
 * @module
 */
import { type ArrayParts, byteCount, fillElements, type MakeArray } from "../copy/mod.ts";
import type { CudaStream } from "../device/mod.ts";
import {
  checkOptions,
  DType,
  type DTypeLike,
  type ElementValue,
  none,
  type OptionNames,
  type Shape,
  show,
  StridedLayout,
} from "../layout/mod.ts";
import { dtypeOfNested, dtypeOfValue, flatValues, shapeOf } from "./nested_values.ts";
import type { MemoryResource } from "../memory/mod.ts";
import { allocateAt, allocateIn, checkPlaceOfArray, copyOf, newArray, noStreamOfHost, type Place } from "./place.ts";

/** Element type and place of a new array. */
export interface CreateOptions<T extends DTypeLike = DTypeLike> {
  /** Element type. Default: that of the values, and float64 for numbers. */
  readonly dtype?: T;
  /** Where the array is. Default: where `memory` allocates, otherwise `"host"`. */
  readonly device?: Place;
  /**
   * The resource that allocates the array's memory: page-locked memory, managed memory, a custom pool. Default: the
   * device's pool, and on the host an ArrayBuffer.
   */
  readonly memory?: MemoryResource;
  /** The home stream of device memory and of page-locked memory. Default: the device's default stream. */
  readonly stream?: CudaStream;
}

const createOptionNames: OptionNames<CreateOptions> = { dtype: true, device: true, memory: true, stream: true };

/** Options, or a dtype alone. */
type Given = DTypeLike | CreateOptions | undefined;

/** The options, resolved. */
interface Wanted {
  readonly dtype: DType;
  readonly device: Place | undefined;
  readonly memory: MemoryResource | undefined;
  readonly stream: CudaStream | undefined;
}

// law view/wanted: view/create
/** @param otherwise returns the dtype if none is given */
function wanted(given: Given, otherwise: () => DType): Wanted {
  if (typeof given === "string" || given instanceof DType) return wanted({ dtype: given }, otherwise);
  const options: CreateOptions = given ?? none;
  checkOptions(options, createOptionNames);
  const { dtype: named, device, memory, stream } = options;
  const dtype = named === undefined ? otherwise() : DType.from(named);
  if (device !== undefined) checkPlaceOfArray(device);
  if (stream !== undefined && memory === undefined && (device ?? "host") === "host") throw noStreamOfHost();
  return { dtype, device, memory, stream };
}

const FLOAT64 = (): DType => DType.from("float64");

// law view/zeros: view/create
/** See `StridedMemoryView.zeros`. */
export function zeros<T>(shape: Shape, given: Given, make: MakeArray<T>): T {
  if (typeof shape === "number") throw notAShape(shape, given);
  const what = wanted(given, FLOAT64);
  return create(shape, what, make, ({ buffer }, stream) => {
    if (stream !== null) buffer.fill(0, { stream });
    else if (what.memory !== undefined) buffer.fill(0); // a new ArrayBuffer is all zeros
  });
}

/**
 * An untyped program passes the extents one by one: zeros(2, 3). That 3 is not options, but the shape is the real
 * error.
 */
function notAShape(extent: number, next: unknown): TypeError {
  const extents = typeof next === "number" ? `${extent}, ${next}` : extent;
  return new TypeError(`Expected shape to be an array, got ${extent}: write [${extents}]`);
}

/** See `StridedMemoryView.full`. */
export function full<T>(shape: Shape, value: ElementValue, given: Given, make: MakeArray<T>): T {
  const what = wanted(given, () => dtypeOfValue(value));
  return create(shape, what, make, (array, stream) => fillElements(array, value, stream === null ? none : { stream }));
}

// law view/create: view/create
/** An array in new memory where it is wanted. */
function create<T>(
  shape: Shape,
  { dtype, device, memory, stream }: Wanted,
  make: MakeArray<T>,
  fill: (array: ArrayParts, stream: CudaStream | null) => void,
): T {
  const layout = StridedLayout.dense(shape, dtype.itemsize);
  const bytes = byteCount({ layout });
  const buffer = memory === undefined
    ? allocateAt(device ?? "host", bytes, stream ?? null)
    : allocateIn(memory, bytes, stream, device);
  return newArray(buffer, layout, dtype, make, (array) => fill(array, buffer.stream));
}

// law view/range: view/create
/** See `StridedMemoryView.arange`. Takes its arguments as passed. */
export function arange<T>(given: readonly (RangeBound | Given)[], make: MakeArray<T>): T {
  const bounds = given.filter(isBound);
  const [options, ...more] = given.slice(bounds.length);
  if (bounds.length === 0 || bounds.length > 3 || more.length > 0 || isBound(options)) {
    throw new TypeError(
      `Expected arange(stop), arange(start, stop) or arange(start, stop, step), and options, got ${show(given)}`,
    );
  }
  const what = wanted(options, () => dtypeOfValue(bounds[0]));
  if (bounds.every((bound) => typeof bound === "bigint")) return written(bigints(bounds), what, make);
  if (bounds.every((bound) => typeof bound === "number")) return written(numbers(bounds), what, make);
  throw new TypeError(`Expected numbers or bigints, got both: arange(${bounds.map(show).join(", ")})`);
}

/** Start, stop or step of a range. */
export type RangeBound = number | bigint;

function isBound(value: unknown): value is RangeBound {
  return typeof value === "number" || typeof value === "bigint";
}

/** Values by position. Those of a range are computed when they are written: a list of them would take more memory. */
interface Values {
  readonly length: number;
  at(position: number): unknown;
}

function numbers(bounds: readonly number[]): Values {
  const [start = 0, stop = 0, step = 1] = bounds.length === 1 ? [0, ...bounds] : bounds;
  const count = Math.max(0, Math.ceil((stop - start) / step));
  if (!Number.isSafeInteger(count)) {
    throw new RangeError(`Expected finite bounds and a step that is not 0, got arange(${start}, ${stop}, ${step})`);
  }
  return { length: checkedCount(count, [start, stop, step]), at: (position) => start + position * step };
}

function bigints(bounds: readonly bigint[]): Values {
  const [start = 0n, stop = 0n, step = 1n] = bounds.length === 1 ? [0n, ...bounds] : bounds;
  if (step === 0n) throw new RangeError("Expected a step that is not 0, got 0n");
  const count = (stop - start + step - (step > 0n ? 1n : -1n)) / step; // rounded up
  const length = checkedCount(count > 0n ? Number(count) : 0, [start, stop, step]);
  return { length, at: (position) => start + BigInt(position) * step };
}

function checkedCount(count: number, bounds: readonly RangeBound[]): number {
  if (count < 2 ** 32) return count;
  throw new RangeError(
    `Expected a range of fewer than 2^32 numbers, got ${count}: arange(${bounds.map(show).join(", ")})`,
  );
}

/** See `StridedMemoryView.fromArray`. */
export function fromNested<T>(nested: unknown, given: Given, make: MakeArray<T>): T {
  const shape = shapeOf(nested); // throws for an array that contains itself
  const values = flatValues(nested, shape);
  const what = wanted(given, () => dtypeOfNested(nested));
  const { lanes } = what.dtype;
  if (lanes === 1) return writtenAs(shape, values, what, make);
  // The innermost arrays are the lanes of the elements.
  if (shape.at(-1) !== lanes) {
    throw new RangeError(`Expected arrays of ${lanes} for the elements of ${what.dtype}, got ${show(shape.at(-1))}`);
  }
  const elements = Array.from({ length: values.length / lanes }, (_, at) => values.slice(at * lanes, (at + 1) * lanes));
  return writtenAs(shape.slice(0, -1), elements, what, make);
}

function written<T>(values: Values, what: Wanted, make: MakeArray<T>): T {
  return writtenAs([values.length], values, what, make);
}

// law view/writtenAs: view/create
/** An array of values in C order: written by the host, and copied if it belongs elsewhere. */
function writtenAs<T>(shape: Shape, values: Values, what: Wanted, make: MakeArray<T>): T {
  const { dtype, device = "host", memory, stream } = what;
  const onHost = <A>(makeIt: MakeArray<A>) =>
    create(shape, { dtype, device: "host", memory: undefined, stream: undefined }, makeIt, ({ buffer }) => {
      const bytes = buffer.bytes();
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      for (let i = 0; i < values.length; i++) {
        dtype.write(view, i * dtype.itemsize, values.at(i) as ElementValue); // reports what is wrong with another value
      }
    });
  if (device === "host" && memory === undefined) return onHost(make);
  const parts = onHost((buffer, offset, layout, type, readonly) => ({ buffer, offset, layout, dtype: type, readonly }));
  return copyOf(parts, {
    ...what.device === undefined ? none : { device },
    ...memory === undefined ? none : { memory },
    ...stream === undefined ? none : { stream },
  }, make);
}
