/**
 * Between Arrow arrays of numbers and strided views: the same memory, seen as the one or the other.
 *
 * @module
 */
import { DType } from "../layout/mod.ts";
import { StridedMemoryView } from "../view/strided_memory_view.ts";
import { ArrowArray } from "../arrow/array.ts";
import { checkOptions } from "./export.ts";
import { exportView } from "./export_numbers.ts";
import type { ArrowDeviceArray, FromArrowOptions, ToArrowOptions } from "./device_array.ts";
import { bitsOf } from "./buffers.ts";
import { formatOf } from "./format.ts";
import { type ArrowField, arrowField, type ArrowType } from "./type.ts";
import { importArrow } from "./import.ts";
import { ExchangeError } from "../order/exchange_error.ts";

/** The element type that the slots of an Arrow type are stored as; null if they are no numbers. */
function storedDtype(type: ArrowType): DType | null {
  switch (type.kind) {
    case "bool":
    case "int":
    case "uint":
    case "float":
    case "dictionary":
      return DType.from(formatOf(type));
    case "date":
    case "time":
    case "timestamp":
    case "duration":
      return DType.from(bitsOf(type) === 32 ? "int32" : "int64");
    case "interval":
      return type.unit === "months" ? DType.from("int32") : null;
    default:
      return null;
  }
}

/** The slots of an array as a view. See {@linkcode ArrowArray.values}. */
export function valuesView(array: ArrowArray): StridedMemoryView {
  const shape = [array.length];
  let { offset, length } = array;
  let inner = array;
  while (inner.type.kind === "fixed_size_list") {
    const [child] = inner.children;
    if (child === undefined) throw new ExchangeError("Cannot view a list without a child");
    const { size } = inner.type;
    shape.push(size);
    const first = offset * size;
    length *= size;
    offset = first + child.offset;
    inner = child;
    if (hasNulls(child) && hasNullsIn(child, first, length)) {
      throw new ExchangeError(
        "Cannot view an Arrow array of lists with nulls inside: a view has no place for them. Read it with get(), or " +
          "use the values and validity of its children.",
      );
    }
  }
  const dtype = storedDtype(inner.type);
  if (dtype === null) {
    throw new ExchangeError(
      `Cannot view an Arrow array of ${inner.type.kind}: expected numbers, times, truth values, or fixed-size lists of ` +
        "them. Read it with get(), or use its buffers.",
    );
  }
  return slots(inner.buffers[1] ?? null, dtype, shape, offset);
}

/** Whether an array that is inside another has nulls that nothing but itself tells of. */
function hasNulls(array: ArrowArray): boolean {
  if ((array.buffers[0] ?? null) === null || array.knownNullCount === 0) return false;
  return array.device !== null ? array.knownNullCount !== 0 : array.nullCount > 0;
}

/** Whether there are nulls among some of its elements; in device memory, where they cannot be looked at, there may be. */
function hasNullsIn(array: ArrowArray, first: number, length: number): boolean {
  if (array.device !== null) return length > 0;
  for (let i = first; i < first + length; i++) if (array.isNull(i)) return true;
  return false;
}

/** The validity bitmap as a view. See {@linkcode ArrowArray.validity}. */
export function validityView(array: ArrowArray): StridedMemoryView | null {
  const bitmap = array.type.kind === "null" ? null : array.buffers[0] ?? null;
  return bitmap === null ? null : slots(bitmap, DType.from("bool1_packed"), [array.length], array.offset);
}

/** Elements of a buffer of bytes, after `offset` elements, in C order. */
function slots(
  bytes: StridedMemoryView | null,
  dtype: DType,
  shape: readonly number[],
  offset: number,
): StridedMemoryView {
  if (bytes === null || shape.includes(0)) {
    const none = StridedMemoryView.fromTypedArray(new Uint8Array(0)).buffer;
    return StridedMemoryView.fromBuffer(bytes?.buffer ?? none, { shape, dtype, readonly: true });
  }
  const start = offset * dtype.itemsize;
  if (!Number.isInteger(start)) {
    throw new ExchangeError(
      `Cannot view ${dtype.name} from element ${offset} of a buffer on: a view begins at a whole byte. Read with get() or ` +
        "isNull(), or see the bytes in buffers.",
    );
  }
  const from = bytes.offset + bytes.layout.sliceOffset + start;
  return StridedMemoryView.fromBuffer(bytes.buffer, { shape, dtype, offset: from, readonly: true });
}

/**
 * A view as an Arrow array: numbers, with a fixed-size list for every axis after the first.
 *
 * @throws {ExchangeError} if Arrow cannot say what the view is; the message says what to do instead
 */
export function arrayOfView(view: StridedMemoryView): ArrowArray {
  const { dtype, layout, shape } = view;
  const refuse = (why: string): never => {
    throw new ExchangeError(`Cannot export a view of ${dtype.name} of shape (${shape.join(", ")}) to Arrow: ${why}`);
  };
  const format = dtype.arrowFormat;
  if (format === null) {
    return refuse(
      dtype.name === "bool"
        ? "its truth values are bytes, and Arrow's are bits. Write them as bits, as bool1_packed, or see the bytes as uint8."
        : `it has no such type. Convert to another one, or see the bytes as uint8, through layout.repacked(1).`,
    );
  }
  const [length] = shape;
  if (length === undefined) return refuse("Arrow has no arrays without axes. Reshape to (1).");
  if (!layout.isContiguousC) return refuse("its elements are not in C order without gaps. Copy to such memory first.");
  const size = view.nbytes;
  const bytes = StridedMemoryView.fromBuffer(view.buffer, {
    shape: [size],
    dtype: "uint8",
    offset: size === 0 ? 0 : view.offset + layout.sliceOffsetInBytes, // a view begins at a whole byte
    readonly: true,
  });
  let field: ArrowField = arrowField(format, { nullable: false });
  let array = new ArrowArray({
    field,
    length: layout.volume,
    nullCount: 0,
    buffers: [null, bytes],
  });
  for (let axis = shape.length - 1; axis > 0; axis--) {
    const extent = shape[axis] ?? 0;
    field = arrowField({ kind: "fixed_size_list", size: extent, child: { ...field, name: "item" } }, {
      nullable: false,
    });
    array = new ArrowArray({
      field,
      length: shape.slice(0, axis).reduce((product, one) => product * one, 1),
      nullCount: 0,
      buffers: [null],
      children: [array],
    });
  }
  return array;
}

/** Exports a view. See `StridedMemoryView.toArrowDevice`. */
export function viewToArrow(
  view: StridedMemoryView,
  options: ToArrowOptions,
  where: "host" | "device",
): ArrowDeviceArray {
  const isWanted = (checkOptions(options).requestedSchema ?? null) !== null;
  const exported = isWanted ? null : exportView(view, where);
  if (exported !== null) return exported;
  const array = arrayOfView(view);
  return where === "host" ? array.__arrow_c_array__(options) : array.toArrowDevice(options);
}

/** Imports an array of numbers as a view. See `StridedMemoryView.fromArrowDevice`. */
export function viewFromArrow(source: unknown, options: FromArrowOptions): StridedMemoryView {
  const array = importArrow(source, options, viewOfArrow); // throws if there are no numbers
  const { buffer, offset, layout, dtype } = array.values;
  return StridedMemoryView.fromImport(buffer, offset, layout, dtype, true, array);
}

/**
 * The elements of an array as a view of the same memory.
 *
 * @throws {ExchangeError} if they are no numbers, or a null is among them
 */
export function viewOfArrow(array: ArrowArray): StridedMemoryView {
  if (hasNulls(array)) throw nullsInView(array);
  return valuesView(array);
}

function nullsInView({ knownNullCount }: ArrowArray): ExchangeError {
  return new ExchangeError(
    `Cannot view an Arrow array with ${
      knownNullCount < 0 ? "perhaps some" : knownNullCount
    } nulls: a view has no place ` +
      "for them. Take it with ArrowArray.from(), which has its values and its validity apart.",
  );
}
