/**
 * The part of a view that has to do with what the elements are: read, written and shown.
 *
 * @module
 */
import { type ArrayParts, fillElements, type ViewFillOptions } from "../copy/mod.ts";
import {
  checkOptions,
  DType,
  type DTypeLike,
  type DTypeName,
  type ElementOf,
  none,
  type OneDTypeName,
  type OptionNames,
  show,
  type TypedArrayOf,
  type WritableOf,
} from "../layout/mod.ts";
import { asTypedArray, nestedArray, onlyIndex, readElement, writeElement } from "./element_access.ts";
import { hasEqualElements } from "./equality.ts";
import { print } from "./print.ts";
import { ShapedArray } from "./shaped_array.ts";
import type { StridedMemoryView } from "./strided_memory_view.ts";
import { toTypedArray } from "./typed_array.ts";

/** Options of {@linkcode StridedMemoryView.asTypedArray}. */
export interface AsTypedArrayOptions {
  /** Whether the caller only reads the array, as is needed for a read-only view. Default false. */
  readonly readonly?: boolean;
}

const asTypedArrayOptionNames: OptionNames<AsTypedArrayOptions> = { readonly: true };

/**
 * The elements of a view. Those in page-locked and managed memory are read and written by the host when it has waited
 * for the memory's home stream; those of device memory are not, and the error names what copies them.
 */
export abstract class ElementArray<D extends DTypeName = DTypeName> extends ShapedArray<D> {
  /**
   * Whether the elements are of a dtype, for the compiler, too: behind `if (view.hasDType("float32"))` the view is a
   * `StridedMemoryView<"float32">`, also where it came from a file, from Python or from a message.
   *
   * @param dtype a name, or a {@linkcode DType}
   * @throws {TypeError} if it is none
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
  /** Whether they are of a dtype of which only the running program knows which. */
  hasDType(dtype: DTypeLike): boolean;
  hasDType(dtype: DTypeLike): boolean {
    return this.dtype.equals(DType.from(dtype));
  }

  /**
   * One element of host memory: a bigint for 64-bit integers, `{ re, im }` for complex numbers, a boolean, otherwise a
   * number; an array of them for a dtype with lanes. Each call waits for the home stream, if the memory has one: for
   * many elements take `asTypedArray()` or `toArray()`.
   *
   * @param index one integer for each axis; negative ones count from the end
   * @throws {RangeError} if there are more or fewer, or one is out of range
   * @throws {TypeError} if one is no number, for device memory, or if the buffer is closed
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
    return readElement(this, index, "view.get()") as ElementOf<D>; // what elements of the dtype are
  }

  /**
   * Sets one element of host memory, rounded to the nearest number of its type.
   *
   * @param value of the type that `get` returns; safe integers will do for bigints
   * @param index as for `get`
   * @throws {RangeError} if the value is out of range, or the index as for `get`
   * @throws {TypeError} if the value is of another type, the view is read-only, or as for `get`
   */
  set(value: WritableOf<D>, ...index: number[]): void {
    writeElement(this, value, index);
  }

  /** The only element of host memory. @throws {RangeError} if there are more or none @throws {TypeError} as `get` does */
  item(): ElementOf<D> {
    return readElement(this, onlyIndex(this), "view.item()") as ElementOf<D>; // what elements of the dtype are
  }

  /**
   * The elements of host memory as arrays of JavaScript, one inside another for each axis: to the compiler of anything,
   * because it does not know how many axes there are.
   *
   * @throws {TypeError} for device memory, and a view without axes, whose element `item()` gives
   */
  toArray(): unknown[] {
    return nestedArray(this);
  }

  /**
   * For `JSON.stringify` and `Response.json`: the elements as `toArray()` has them, or the one of a view without axes.
   * JSON writes NaN and infinities as null, and refuses the bigints of 64-bit integers.
   *
   * @throws {TypeError} for device memory
   */
  toJSON(): unknown {
    return this.shape.length === 0 ? this.item() : this.toArray();
  }

  /**
   * The memory itself as a typed array of the class `dtype.typedArray`, in C order: no copy, so that what is written to
   * either is seen in both. The call waits for the memory's home stream; what is enqueued there later is for the caller
   * to wait for. Closing the buffer empties the array.
   *
   * JavaScript has no typed arrays that cannot be written to. That of a read-only view is given to those who say that
   * they only read, because writing to it would change what others take to be constant, as Python does its `bytes`.
   *
   * @param options `readonly: true`: the array will not be written to, so that a read-only view has one, too
   * @throws {TypeError} for read-only views without that option, device memory, elements that are not contiguous in C
   *   order or not aligned, and types that no typed array has: the message says which, and what to do
   */
  asTypedArray(options: AsTypedArrayOptions = none): TypedArrayOf<D> {
    if (options !== none) checkOptions(options, asTypedArrayOptionNames);
    // law view/asTypedArray.readonly: view/elements
    if (this.readonly && options.readonly !== true) throw notForWriting();
    return asTypedArray(this) as TypedArrayOf<D>; // the class is `dtype.typedArray`
  }

  /**
   * Copies the elements, in C order, to a typed array of the class `dtype.typedArray`. Device memory and page-locked
   * memory are read on their home stream, without blocking.
   *
   * @throws {TypeError} if no typed array has elements of this type
   */
  async toTypedArray(): Promise<TypedArrayOf<D>> {
    return await toTypedArray(this) as TypedArrayOf<D>; // the class is `dtype.typedArray`
  }

  /**
   * Writes a value to every element. On the host it is done on return, which waits for the home stream of page-locked
   * memory; on a device it is enqueued, after what the home stream holds and before what it gets next.
   *
   * @throws {TypeError} if the value is of another type, the view is read-only, or its buffer is closed
   * @throws {RangeError} if the value is out of range
   */
  fill(value: WritableOf<D>, options: ViewFillOptions = none): void {
    fillElements(this, value, options);
  }

  /**
   * Whether the other is a view of the same shape and dtype with equal elements, wherever they are: as `===` says, so
   * that NaN equals nothing. Elements on a device are copied to the host, which waits for them.
   */
  equals(other: unknown): boolean {
    return other instanceof ElementArray && hasEqualElements(this, other);
  }

  /**
   * The elements as NumPy prints an array: of more than 1000 only the corners. The call waits for the home stream of
   * device memory, of which only what is printed is copied, and of page-locked memory.
   *
   * @throws {TypeError} if the view's buffer is closed
   */
  override toString(): string {
    return print(this);
  }

  // law view/toPrimitive: view/elements
  /**
   * The text of the view in a template or as a key, and of a view without axes, which is one number, its element.
   *
   * @throws {TypeError} in arithmetic and in `+`, of a view with axes: what `view * 2` would be is no number
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
    "Cannot see a read-only view as a typed array that could be written to: expected { readonly: true }, from who only " +
      "reads it. view.get() is an element, and copy().asTypedArray() and `await view.toTypedArray()` are copies",
  );
}

function noArithmetic({ dtype, layout }: ArrayParts): TypeError {
  return new TypeError(
    `Cannot take a view of ${dtype} ${
      show(layout.shape)
    } for a number or add it to a text: views have no arithmetic. ` +
      "torch or NumPy in this process have it on the same memory, as torch.mul(view, 2). view.get() is an element, and " +
      "`${view}` the text",
  );
}
