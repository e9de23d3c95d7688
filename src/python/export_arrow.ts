/**
 * Our Arrow arrays and streams in Python, without a copy. All functions here need the interpreter's lock.
 *
 * @module
 */
import { type StridedMemoryView, viewOf } from "../view/mod.ts";
import {
  type ArrowArray,
  type ArrowStreamExport,
  type VortexForm,
  vortexForm,
  type VortexNodeForm,
} from "../arrow/mod.ts";
import { type ArrowDeviceArray, type ArrowType, numbersOf as arrowNumbers } from "../cdata/mod.ts";
import { ExchangeError } from "../order/mod.ts";
import { bindCuda, exportArray } from "./export_array.ts";
import type { Interpreter } from "./interpreter.ts";

/**
 * A new reference to an Arrow array in Python: an `Arrow` (guest/arrow_arrays.py), or an array that holds one if its
 * elements are numbers without nulls. It keeps the memory allocated until Python releases it.
 *
 * @throws {ExchangeError} for memory of a simulated device
 */
export function exportArrow(python: Interpreter, array: ArrowArray): bigint {
  const { device } = array;
  if (device !== null) bindCuda(python, device);
  const numbers = numbersOf(array);
  // NumPy reads times at once, also those in page-locked memory, which may have yet to be written.
  const isRead = device === null && isTime(array.type);
  const make = () => ownerOf(python, isRead ? array.__arrow_c_array__() : array.toArrowDevice());
  return numbers === null ? make() : exportArray(python, numbers, make);
}

/** A new reference to an `Arrow` that owns an export. */
function ownerOf(python: Interpreter, exported: ArrowDeviceArray): bigint {
  const { schema, array } = exported.take();
  python.hasExports = true;
  return python.callHelper("Arrow", [python.integer(schema), python.integer(array)]);
}

// law python/exportVortex: vortex/core/python
/**
 * A new reference to a Vortex array in Python: a `Vortex` (guest/vortex_arrays.py), which is an Arrow array and
 * describes its nodes. It keeps the memory of both allocated until Python releases them.
 *
 * @param convert makes a new reference to nested lists of text, numbers and views
 */
export function exportVortex(python: Interpreter, array: VortexForm, convert: (value: unknown) => bigint): bigint {
  const node = convert(listOf(array[vortexForm]()));
  try {
    return python.callHelper("Vortex", [ownerOf(python, array.toArrowDevice()), python.retain(node)]);
  } finally {
    python.release(node);
  }
}

/** A node as nested lists. */
function listOf({ id, dtype, length, metadata, buffers, children }: VortexNodeForm): unknown[] {
  return [id, dtype.toHex(), length, metadata.toHex(), buffers, children.map(listOf)];
}

// law python/numbersOf: python/arrow_capsules
/**
 * The elements of an array as a view; null if they are not numbers or contain nulls. Dictionary indices do not count,
 * nor do dates and times: libraries that have both take an array of NumPy's for numbers (pandas, Polars).
 */
function numbersOf(array: ArrowArray): StridedMemoryView | null {
  if (array.type.kind === "dictionary" || isTime(array.type)) return null;
  try {
    return viewOf(arrowNumbers(array));
  } catch (error) {
    if (error instanceof ExchangeError) return null;
    throw error;
  }
}

const timeKinds: ReadonlySet<ArrowType["kind"]> = new Set(
  ["date", "time", "timestamp", "duration", "interval"] as const,
);

/** Whether the elements, also those inside lists of fixed size, are dates or times. */
function isTime(type: ArrowType): boolean {
  return type.kind === "fixed_size_list" ? isTime(type.child.type) : timeKinds.has(type.kind);
}

/** A new reference to an object that will own a stream in Python, empty until {@linkcode exportStream}. */
export function emptyStream(python: Interpreter, stream: ArrowStreamExport): bigint {
  return python.callHelper(stream.isDevice ? "DeviceStream" : "HostStream", []);
}

/** Moves a stream into its Python object, where it can be read once. */
export function exportStream(python: Interpreter, object: bigint, stream: ArrowStreamExport): void {
  const address = stream.take();
  python.hasExports = true;
  python.release(
    python.callHelper("call_method", [
      python.retain(object),
      python.retain(python.name("fill")),
      python.integer(address),
    ]),
  );
}
