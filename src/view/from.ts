/**
 * Views of arrays of any kind: the protocols, and the order in which they are tried.
 *
 * @module
 */
import { ArrowDeviceArray, importNumbers, isArrowDeviceSource, isArrowSource } from "../cdata/mod.ts";
import type { ArrayParts, MakeArray } from "../copy/mod.ts";
import { isSameDevice } from "../device/mod.ts";
import {
  DlpackTensor,
  fromArrayInterface,
  fromCudaArrayInterface,
  fromDlpack,
  hasInterface,
  type ImportOptions,
  isDlpackSource,
} from "../dlpack/mod.ts";
import { isOfOtherCopy, showGiven, type TypedArray } from "../layout/mod.ts";
import type { StridedMemoryView } from "./strided_memory_view.ts";

/** The method by which a foreign object, such as a Python object, makes a view of itself. */
export const arraySource: unique symbol = Symbol("arraySource");

/** An object that makes a view of itself. */
interface ArraySource {
  /** Views the object without copying it. */
  [arraySource](options: ImportOptions): StridedMemoryView;
}

/**
 * Another library's array, as far as the compiler can tell: an object with a member of a protocol that
 * {@linkcode StridedMemoryView.from} knows, an export of this package, or any `PyObject`. For a value whose type says
 * less pass `StridedMemoryView.from(value)`.
 */
export type ForeignArray =
  | DlpackTensor
  | ArrowDeviceArray
  | { readonly __dlpack__: unknown }
  | { readonly __cuda_array_interface__: unknown }
  | { readonly __array_interface__: unknown }
  | { readonly __arrow_c_device_array__: unknown }
  | { readonly __arrow_c_array__: unknown }
  | { $get(name: string): unknown };

/** A protocol by which arrays are imported. */
interface Protocol {
  /** The member by which an object speaks the protocol. What an export of ours returns does without. */
  readonly name: string;
  speaks(source: object): boolean;
  take(source: object, options: ImportOptions, make: MakeArray<StridedMemoryView>): StridedMemoryView;
}

/** The protocols, in the order tried. */
const protocols: readonly Protocol[] = [
  {
    name: "__dlpack__",
    speaks: (source) => isDlpackSource(source) || source instanceof DlpackTensor,
    take: fromDlpack,
  },
  {
    name: "__cuda_array_interface__",
    speaks: (source) => hasInterface(source, "__cuda_array_interface__"),
    take: fromCudaArrayInterface,
  },
  {
    name: "__array_interface__",
    speaks: (source) => hasInterface(source, "__array_interface__"),
    take: (source, _, make) => fromArrayInterface(source, make),
  },
  {
    name: "__arrow_c_device_array__",
    speaks: (source) => isArrowDeviceSource(source) || source instanceof ArrowDeviceArray,
    take: importNumbers,
  },
  { name: "__arrow_c_array__", speaks: isArrowSource, take: importNumbers },
];

function isOwnSource(source: object): source is ArraySource {
  return arraySource in source;
}

/** Whether a value is an object of Python's, which is a function here and looks as if it spoke Python's protocols. */
export function isPythons(source: unknown): source is ArraySource {
  return typeof source === "function" && isOwnSource(source);
}

// law view/isObject: public/two_copies
/** Whether a value may speak a protocol: no Python object of another copy of this package, which seems to speak all. */
function isObject(source: unknown): source is object {
  return (typeof source === "object" && source !== null) || (typeof source === "function" && !isOfOtherCopy(source));
}

/** Whether an object speaks a protocol, judging by its members. */
export function isArraySource(source: unknown): boolean {
  return isObject(source) && (isOwnSource(source) || protocols.some(({ speaks }) => speaks(source)));
}

/** Whether a value is a typed array: an ArrayBuffer view other than a DataView. */
export function isTypedArray(source: unknown): source is TypedArray {
  return ArrayBuffer.isView(source) && !(source instanceof DataView);
}

/**
 * Views an array that is not a view yet. See `StridedMemoryView.from`.
 *
 * @throws {TypeError} if it is not an array
 */
export function fromArray(
  source: unknown,
  options: ImportOptions,
  make: MakeArray<StridedMemoryView>,
): StridedMemoryView {
  if (isObject(source)) {
    if (isOwnSource(source)) return source[arraySource](options);
    const protocol = protocols.find(({ speaks }) => speaks(source));
    if (protocol !== undefined) return protocol.take(source, options, make);
  }
  const names = protocols.map(({ name }) => name).join(", ");
  throw new TypeError(
    `Cannot view ${describe(source)}: expected a typed array or an object with one of ${names}${wayOut(source)}`,
  );
}

// law view/wayOut: view/no_array
/** How to make an array of a value commonly mistaken for one: the end of a sentence, or nothing. */
export function wayOut(source: unknown): string {
  if (Array.isArray(source)) return ". StridedMemoryView.fromArray() copies nested arrays of numbers";
  if (typeof source === "string") return ". new TextEncoder().encode(text) encodes a string as bytes";
  if (isDescription(source)) return ". Pass the object that it describes, or { __cuda_array_interface__: it }";
  if (source instanceof ArrayBuffer) return ". new Uint8Array(buffer) shows the bytes of an ArrayBuffer";
  if (source instanceof DataView) {
    return ". new Uint8Array(it.buffer, it.byteOffset, it.byteLength) shows the bytes of a DataView";
  }
  if (!isObject(source) || !("data" in source)) return "";
  // The data of an image, of a tensor, of ndarray and zarrita is a typed array, that of apache-arrow is in chunks.
  return "getChild" in source
    ? ". Import vectors and tables of apache-arrow with fromApacheArrow()"
    : ". StridedMemoryView.from(it.data) views its data, if that is a typed array";
}

/** Whether a value is what `__cuda_array_interface__` returns, or `__array_interface__`. */
function isDescription(source: unknown): boolean {
  return isObject(source) && "typestr" in source && "data" in source && "version" in source;
}

/**
 * Whether a consumer can use an array as is: host memory anywhere, device memory only on its own stream.
 *
 * @throws {TypeError} if the memory belongs to another device
 */
export function isUsableAt({ buffer }: ArrayParts, options: ImportOptions): boolean {
  const { stream = null, device } = options;
  if (device !== undefined && buffer.device !== null && !isSameDevice(device, buffer.device)) {
    throw new TypeError(
      `Cannot view memory of ${buffer.device} as memory of ${device}: copy it there`,
    );
  }
  return buffer.device === null || stream === null || stream === buffer.stream;
}

/** A value that is not an array, in a word or two: a string may be very long. */
export function describe(value: unknown): string {
  if (value === null || typeof value !== "object" || isOfOtherCopy(value)) return showGiven(value);
  const name: unknown = value.constructor?.name; // "" for a generator
  return typeof name === "string" && name !== "" ? name : showGiven(value);
}
