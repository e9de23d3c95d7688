/**
 * Arrow arrays as arrays of numbers, and vice versa, in the same memory.
 *
 * @module
 */
import { type ArrayParts, byteCount, checkBounds, type MakeArray } from "../copy/mod.ts";
import { DType, StridedLayout } from "../layout/mod.ts";
import { MemoryBuffer } from "../memory/mod.ts";
import { ExchangeError, noteElementAccess } from "../order/mod.ts";
import { ArrayNode, type ArrowNode, deviceOf } from "./array_node.ts";
import { isNullAt } from "./bits.ts";
import { bitsOf } from "./buffers.ts";
import type { ArrowDeviceArray, FromArrowOptions, ToArrowOptions } from "./device_array.ts";
import { checkOptions, exportArrow } from "./export.ts";
import { exportNumbers } from "./export_numbers.ts";
import { formatOf } from "./format.ts";
import { importArrow } from "./import.ts";
import { arrowField, fieldOfLists } from "./field.ts";
import type { ArrowField, ArrowType } from "./type.ts";
import { checkTree } from "./validate.ts";

/** The element type of an Arrow type's slots; null if they are not numbers. */
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

// law cdata/valuesOf: view/arrow
/** The slots of an array. See `ArrowArray.values`. */
export function valuesOf(array: ArrowNode): ArrayParts {
  const shape = [array.length];
  let { offset, length } = array;
  let inner: ArrowNode = array;
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
        "Cannot view an Arrow array of lists with nulls inside: a view cannot express them. Read it with get(), or " +
          "use the values and validity of its children.",
      );
    }
  }
  const dtype = storedDtype(inner.type);
  if (dtype === null) {
    throw new ExchangeError(
      `Cannot view an Arrow array of ${inner.type.kind}: expected numbers, times, booleans, or fixed-size lists ` +
        "of them. Read it with get(), or use its buffers.",
    );
  }
  return slots(inner.buffers[1] ?? null, dtype, shape, offset);
}

/** Whether an array itself has, or may have, nulls. */
function hasNulls(array: ArrowNode): boolean {
  if ((array.buffers[0] ?? null) === null || array.knownNullCount === 0) return false;
  return deviceOf(array) !== null || array.nullCount > 0;
}

// law cdata/hasNullsIn: view/arrow
/** Whether any of these elements is null; in device memory, which the host cannot read, some may be. */
function hasNullsIn(array: ArrowNode, first: number, length: number): boolean {
  if (deviceOf(array) !== null) return length > 0;
  for (let i = first; i < first + length; i++) if (isNullAt(array, i)) return true;
  return false;
}

/** The validity bitmap. See `ArrowArray.validity`. */
export function validityOf(array: ArrowNode): ArrayParts | null {
  const bitmap = array.type.kind === "null" ? null : array.buffers[0] ?? null;
  return bitmap === null ? null : slots(bitmap, DType.from("bool1_packed"), [array.length], array.offset);
}

/** Elements of a byte buffer, from element `offset` on, in C order. */
function slots(bytes: ArrayParts | null, dtype: DType, shape: readonly number[], offset: number): ArrayParts {
  const layout = StridedLayout.dense(shape, dtype.itemsize);
  if (bytes === null || layout.volume === 0) {
    const buffer = bytes?.buffer ?? MemoryBuffer.fromPointer(0n, 0);
    return { buffer, offset: 0, layout, dtype, readonly: true };
  }
  const start = offset * dtype.itemsize;
  if (!Number.isInteger(start)) {
    throw new ExchangeError(
      `Cannot view ${dtype.name} starting at element ${offset} of a buffer: a view begins at a whole byte. Read with ` +
        "get() or isNull(), or read the bytes in buffers.",
    );
  }
  const from = bytes.offset + bytes.layout.sliceOffset + start;
  checkBounds(bytes.buffer, from, layout);
  return { buffer: bytes.buffer, offset: from, layout, dtype, readonly: true };
}

// law cdata/nodeOfNumbers: view/arrow
/**
 * Numbers as an Arrow array, with a fixed-size list for each axis after the first.
 *
 * @throws {ExchangeError} if Arrow cannot express them; the message says what to do instead
 */
export function nodeOfNumbers(array: ArrayParts): ArrowNode {
  const { dtype, layout, buffer } = array;
  const { shape } = layout;
  const refuse = (why: string): never => {
    throw new ExchangeError(`Cannot export a view of ${dtype.name} of shape (${shape.join(", ")}) to Arrow: ${why}`);
  };
  const format = dtype.arrowFormat;
  if (format === null) {
    return refuse(
      dtype.name === "bool"
        ? "its booleans are bytes, and Arrow's are bits. Make bits of them, by " +
          'fromArray(view.toArray(), "bool1_packed"), or view the bytes as uint8.'
        : "Arrow has no such type. Make an array of one that it has, by " +
          'fromArray(view.toArray(), "float32"), or view the bytes as uint8, through layout.repacked(1).',
    );
  }
  const [length] = shape;
  if (length === undefined) return refuse("Arrow has no arrays without axes. Reshape to (1).");
  if (!layout.isContiguousC) return refuse("its elements are not in C order without gaps. Copy to such memory first.");
  const size = byteCount(array);
  const bytes = {
    buffer,
    offset: size === 0 ? 0 : array.offset + layout.sliceOffsetInBytes, // an array begins on a byte boundary
    layout: StridedLayout.dense([size], 1),
    dtype: byte,
    readonly: true,
  };
  let field: ArrowField = arrowField(format, { nullable: false });
  let node = new ArrayNode({ field, length: layout.volume, nullCount: 0, buffers: [null, bytes] });
  for (let axis = shape.length - 1; axis > 0; axis--) {
    const extent = shape[axis] ?? 0;
    field = fieldOfLists(extent, field);
    const length = shape.slice(0, axis).reduce((product, one) => product * one, 1);
    node = new ArrayNode({ field, length, nullCount: 0, buffers: [null], children: [node] });
  }
  return node;
}

const byte = DType.from("uint8");

/** Exports numbers. See `StridedMemoryView.toArrowDevice`. */
export function numbersToArrow(array: ArrayParts, options: ToArrowOptions, where: "host" | "device"): ArrowDeviceArray {
  const hasRequestedSchema = (checkOptions(options).requestedSchema ?? null) !== null;
  const fast = hasRequestedSchema ? null : exportNumbers(array, where);
  const exported = fast ?? exportArrow(nodeOfNumbers(array), options, where);
  const { device, stream } = array.buffer;
  const isReadAtOnce = where === "host" || (device === null && stream === null); // there is no event to wait for
  try {
    if (isReadAtOnce) noteElementAccess(array, false, where === "host" ? "__arrow_c_array__()" : "toArrowDevice()");
  } catch (error) {
    exported.close();
    throw error;
  }
  return exported;
}

// law cdata/importNumbers: view/arrow
/** Imports an array of numbers. See `StridedMemoryView.fromArrowDevice`. */
export function importNumbers<T>(source: unknown, options: FromArrowOptions, make: MakeArray<T>): T {
  return importArrow(source, options, (node, close) => {
    checkTree(node);
    const { buffer, offset, layout, dtype } = numbersOf(node);
    return make(buffer, offset, layout, dtype, true, { close });
  });
}

// law cdata/numbersOf: view/arrow
/**
 * The elements of an array, in the same memory.
 *
 * @throws {ExchangeError} if they are not numbers, or any of them is null
 */
export function numbersOf(array: ArrowNode): ArrayParts {
  if (hasNulls(array)) throw nullsInView(array);
  return valuesOf(array);
}

function nullsInView({ knownNullCount }: ArrowNode): ExchangeError {
  return new ExchangeError(
    `Cannot view an Arrow array with ${
      knownNullCount < 0 ? "perhaps some" : knownNullCount
    } nulls: a view has no place ` +
      "for them. Import it with ArrowArray.from(), which keeps values and validity apart.",
  );
}
