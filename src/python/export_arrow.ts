/**
 * Arrow arrays and streams of ours in Python, without a copy. All functions here need the interpreter's lock.
 *
 * @module
 */
import { type StridedMemoryView, viewOf } from "../view/mod.ts";
import type { ArrowArray, ArrowStreamExport } from "../arrow/mod.ts";
import { numbersOf as arrowNumbers } from "../cdata/mod.ts";
import { ExchangeError } from "../order/mod.ts";
import { bindCuda, exportArray } from "./export_array.ts";
import type { Interpreter } from "./interpreter.ts";

/**
 * A new reference to an Arrow array in Python: an `Arrow` (guest/arrow_arrays.py), or an array that has one if its
 * elements are numbers without nulls. It keeps the memory allocated until Python releases it.
 *
 * @throws {ExchangeError} for memory of a simulated device
 */
export function exportArrow(python: Interpreter, array: ArrowArray): bigint {
  const { device } = array;
  if (device !== null) bindCuda(python, device);
  const numbers = numbersOf(array);
  const make = () => {
    const { schema, array: pointer } = array.toArrowDevice().take();
    python.hasExports = true;
    return python.callHelper("Arrow", [python.integer(schema), python.integer(pointer)]);
  };
  return numbers === null ? make() : exportArray(python, numbers, make);
}

// law python/numbersOf: python/arrow_capsules
/**
 * The elements of an array as a view; null if they are no numbers or have nulls. Indices of a dictionary do not count.
 */
function numbersOf(array: ArrowArray): StridedMemoryView | null {
  if (array.type.kind === "dictionary") return null;
  try {
    return viewOf(arrowNumbers(array));
  } catch (error) {
    if (error instanceof ExchangeError) return null;
    throw error;
  }
}

/** A new reference to an object that will own a stream in Python. It is empty until {@linkcode exportStream}. */
export function emptyStream(python: Interpreter, stream: ArrowStreamExport): bigint {
  return python.callHelper(stream.isDevice ? "DeviceStream" : "HostStream", []);
}

/** Moves a stream into its object in Python, where it is read once. */
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
