/**
 * The part of a view that accesses its elements: reads, writes and prints them.
 *
 * @module
 */
import { type ArrayParts, fillElements, type ViewFillOptions } from "../copy/mod.ts";
import type { CudaStream } from "../device/mod.ts";
import {
  checkBoolean,
  checkOptions,
  DType,
  type DTypeLike,
  type DTypeName,
  type ElementOf,
  falseFor,
  none,
  type OneDTypeName,
  type OptionNames,
  show,
  type TypedArrayOf,
  type WritableOf,
} from "../layout/mod.ts";
import { asTypedArray, nestedArray, onlyIndex, readElement, writeElement } from "./element_access.ts";
import { hasEqualElements } from "./equality.ts";
import { jsonOf } from "./json_of.ts";
import { print } from "./print.ts";
import { ShapedArray } from "./shaped_array.ts";
import type { StridedMemoryView } from "./strided_memory_view.ts";
import { toTypedArray } from "./typed_array.ts";

/** Options of {@linkcode StridedMemoryView.asTypedArray}. */
export interface AsTypedArrayOptions {
  /** Whether the caller promises only to read the array, as a read-only view requires. Default false. */
  readonly readonly?: boolean;
}

const asTypedArrayOptionNames: OptionNames<AsTypedArrayOptions> = { readonly: true };

/** Options of {@linkcode StridedMemoryView.toTypedArray}. */
export interface ToTypedArrayOptions {
  /** The stream after whose work the elements are read. Default: the memory's home stream. */
  readonly stream?: CudaStream;
}

const toTypedArrayOptionNames: OptionNames<ToTypedArrayOptions> = { stream: true };

/**
 * The elements of a view. The host reads and writes page-locked and managed memory after waiting for the memory's home
 * stream; it cannot access device memory, and the error names what copies the elements.
 */
export abstract class ElementArray<D extends DTypeName = DTypeName> extends ShapedArray<D> {
  /** See that of {@linkcode ShapedArray}. */
  protected constructor() {
    super();
  }

  /**
   * Whether the elements are of a dtype. Narrows the type, too: after `if (view.hasDType("float32"))` the view is a
   * `StridedMemoryView<"float32">`, even if it came from a file, from Python or from a message.
   *
   * @param dtype a name, or a {@linkcode DType}
   * @throws {TypeError} if it is not a dtype
   *
   * @example
   * ```ts
   * import { StridedMemoryView } from "@causeway/causeway";
   *
   * const view: StridedMemoryView = StridedMemoryView.from(Float32Array.of(1, 2, 4) as unknown); // of some dtype
   * if (view.hasDType("float32")) {
   *   const numbers: Float32Array = view.asTypedArray(); // the compiler knows
   *   console.log(numbers); // Float32Array(3) [ 1, 2, 4 ]
   * }
   * ```
   */
  hasDType<const N extends DTypeName>(dtype: OneDTypeName<N>): this is StridedMemoryView<N>;
  /** Whether they are of a dtype known only at run time. */
  hasDType(dtype: DTypeLike): boolean;
  hasDType(dtype: DTypeLike): boolean {
    return this.dtype.equals(DType.from(dtype));
  }

  /**
   * One element of host memory: a bigint for 64-bit integers, `{ re, im }` for complex numbers, a boolean, otherwise a
   * number; an array of them for a dtype with lanes. Each call waits for the home stream, if the memory has one: for
   * many elements use `asTypedArray()` or `toArray()`.
   *
   * @param index one integer for each axis; negative ones count from the end
   * @throws {RangeError} if there are more or fewer, or one is out of range
   * @throws {TypeError} if one is not a number, for device memory, or if the buffer is closed
   *
   * @example
   * ```ts
   * import { StridedMemoryView } from "@causeway/causeway";
   *
   * const table = StridedMemoryView.fromArray([[1, 2, 3], [4, 5, 6]], "float32");
   * console.log(table.get(1, -1)); // 6
   * table.set(0.5, 0, 0);
   * console.log(`${table.sliced(0)}`); // [0.5 2.  3. ]
   * ```
   */
  get(...index: number[]): ElementOf<D> {
    return readElement(this, index, "view.get()") as ElementOf<D>; // the element type of the dtype
  }

  /**
   * Sets one element of host memory, rounded to the nearest number of its type.
   *
   * @param value of the type that `get` returns; safe integers are accepted for bigints
   * @param index as for `get`
   * @throws {RangeError} if the value is out of range, or the index as for `get`
   * @throws {TypeError} if the value is of another type, the view is read-only, or as for `get`
   */
  set(value: WritableOf<D> | ElementOf<D>, ...index: number[]): void {
    writeElement(this, value, index);
  }

  /** The only element of host memory. @throws {RangeError} if not exactly one @throws {TypeError} as `get` does */
  item(): ElementOf<D> {
    return readElement(this, onlyIndex(this), "view.item()") as ElementOf<D>; // the element type of the dtype
  }

  /**
   * The elements of host memory as JavaScript arrays, nested one level per axis. The static type is `unknown[]`,
   * because the compiler does not know the number of axes.
   *
   * @throws {TypeError} for device memory, and a view without axes, whose element `item()` returns; if the buffer is
   *   closed
   * @throws {RangeError} for 2^32 elements or more
   */
  toArray(): unknown[] {
    return nestedArray(this);
  }

  /**
   * For `JSON.stringify` and `Response.json`: the elements as `toArray()` returns them, or the single element of a view
   * without axes. JSON writes NaN and infinities as null; 64-bit integers are numbers, of at most 53 bits.
   *
   * @throws {TypeError} for device memory, and for longer integers
   */
  toJSON(): unknown {
    return jsonOf(this.shape.length === 0 ? this.item() : this.toArray());
  }

  /**
   * The memory itself as a typed array of the class `dtype.typedArray`, in C order: not a copy, so writes to either are
   * visible in both. The call waits for the memory's home stream; the caller must wait for work enqueued there later.
   * Closing the buffer empties the array.
   *
   * JavaScript has no read-only typed arrays. A read-only view returns one only to callers that promise not to write,
   * because a write would change memory that others assume constant, as Python does its `bytes`.
   *
   * @param options `readonly: true`: the array will not be written to, so a read-only view returns one, too
   * @throws {TypeError} for read-only views without that option, device memory, elements that are not contiguous in C
   *   order or not aligned, and types without a typed array class: the message says which, and what to do; if the
   *   buffer is closed
   */
  asTypedArray(options: AsTypedArrayOptions = none): TypedArrayOf<D> {
    if (options !== none) {
      checkOptions(options, asTypedArrayOptionNames);
      checkBoolean("readonly", options.readonly);
    }
    // law view/asTypedArray.readonly: view/elements
    if (this.readonly && options.readonly !== true) throw notForWriting();
    return asTypedArray(this) as TypedArrayOf<D>; // the class is `dtype.typedArray`
  }

  /**
   * Copies the elements, in C order, to a typed array of the class `dtype.typedArray`. Device memory and page-locked
   * memory are read on their home stream, without blocking the event loop.
   *
   * @param options `stream`: device memory is read there, in place of its home stream; other memory after its work, too
   * @throws {TypeError} if no typed array has elements of this type, the stream is closed or of another Cuda, or the
   *   buffer is closed
   */
  async toTypedArray(options: ToTypedArrayOptions = none): Promise<TypedArrayOf<D>> {
    if (options !== none) checkOptions(options, toTypedArrayOptionNames);
    return await toTypedArray(this, options.stream) as TypedArrayOf<D>; // the class is `dtype.typedArray`
  }

  /**
   * Writes a value to every element. On the host the fill is done on return, and the call waits for the home stream of
   * page-locked memory; on a device the fill is enqueued, after what the home stream holds and before its next work.
   *
   * @throws {TypeError} if the value is of another type, the view is read-only, or its buffer is closed
   * @throws {RangeError} if the value is out of range
   */
  fill(value: WritableOf<D> | ElementOf<D>, options: ViewFillOptions = none): void {
    fillElements(this, value, options);
  }

  /**
   * Whether the other is a view of the same shape and dtype with equal elements, wherever they are. Elements compare as
   * by `===`, so NaN equals nothing. Elements on a device are copied to the host, which waits for them.
   *
   * @throws {TypeError} for a view of another copy of this package, and if the buffer of either view is closed
   */
  equals(other: unknown): boolean {
    if (other instanceof ElementArray) return hasEqualElements(this, other);
    return falseFor(other, "StridedMemoryView.from(it)");
  }

  /**
   * The elements as NumPy prints an array: only the corners if there are more than 1000. The call waits for the home
   * stream of device memory, of which only the printed elements are copied, and of page-locked memory.
   *
   * @throws {TypeError} if the view's buffer is closed
   */
  override toString(): string {
    return print(this);
  }

  // law view/toPrimitive: view/elements
  /**
   * The view's text in a template or as a key; for a view without axes, which is a single number, its element.
   *
   * @throws {TypeError} in arithmetic and in `+`, for a view with axes: `view * 2` would not be a number
   */
  [Symbol.toPrimitive](hint: string): string | number | bigint | boolean {
    if (hint === "string") return this.toString();
    const value: unknown = this.shape.length === 0 ? this.item() : undefined;
    if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return value;
    throw noArithmetic(this);
  }
}

function notForWriting(): TypeError {
  return new TypeError(
    "Cannot expose a read-only view as a writable typed array: expected { readonly: true }, for reading only. " +
      "view.get() reads an element, and copy().asTypedArray() and `await view.toTypedArray()` are copies",
  );
}

function noArithmetic({ dtype, layout }: ArrayParts): TypeError {
  return new TypeError(
    `Cannot use a view of ${dtype} ${
      show(layout.shape)
    } as a number or append it to a string: views have no arithmetic. ` +
      "torch or NumPy in this process can compute on the same memory: torch.mul(view, 2). view.get() reads an element, " +
      "and `${view}` is the text",
  );
}
