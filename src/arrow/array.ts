/**
 * An Arrow array: a type, and buffers, children and a dictionary with the elements.
 *
 * @module
 */
import { checkMade, checkOptions, namesNear, none, show, showAs, showGiven } from "../layout/mod.ts";
import type { CudaDevice } from "../device/mod.ts";
import {
  type ArrayPlaceOptions,
  checkPlaceOfArray,
  jsonOf,
  type Place,
  placeOptionNames,
  StridedMemoryView,
  viewOf,
} from "../view/mod.ts";
import {
  type ArrowDeviceArray,
  type ArrowField,
  type ArrowNode,
  type ArrowType,
  checkNode,
  childrenOf,
  countNulls,
  deviceOf,
  exportArrow,
  type FromArrowOptions,
  hasViews,
  importArrow,
  indexOfName,
  isField,
  isNullAt,
  knownNulls,
  showType,
  type ToArrowOptions,
  validityOf,
  valuesOf,
} from "../cdata/mod.ts";
import type { ArrayParts } from "../copy/mod.ts";
import { type ArrowValue, checkCount, makeReader, type Reader } from "./element_reader.ts";
import { hostWaits } from "../order/mod.ts";

/** The parts of an array. */
export interface ArrowArrayParts {
  /** Name, type, nullability and metadata. */
  readonly field: ArrowField;
  /** Number of elements. */
  readonly length: number;
  /** Elements that precede the first one in every buffer. Default 0. */
  readonly offset?: number;
  /** Number of nulls; -1 if unknown. Default: -1 with a validity bitmap, 0 without. */
  readonly nullCount?: number;
  /**
   * The buffers that the columnar format defines for the type, as views of bytes: validity (1 bit per element, null if
   * no element is null), then values, or offsets and data. The last buffer of an array of views, with the sizes of its
   * data buffers, is in host memory even if the others are on a device.
   */
  readonly buffers: readonly (StridedMemoryView | null)[];
  /** The arrays inside a nested type. Default: none. */
  readonly children?: readonly ArrowArray[];
  /** The values that the indices of a dictionary-encoded array refer to. Default: none. */
  readonly dictionary?: ArrowArray | null;
  /** Called by `close`, to return an import. */
  readonly onClose?: () => void;
}

/**
 * An Arrow array of any type. It copies nothing, and does not own its buffers. An imported array owns the import:
 * closing it returns the memory to its producer, and ends its children and slices, too.
 *
 * Arrow data is shared between libraries and is never written to.
 *
 * @example
 * ```ts
 * import { ArrowArray, arrowField, StridedMemoryView } from "@causeway/causeway";
 *
 * const bytes = (array: Uint8Array | Int32Array) =>
 *   StridedMemoryView.fromTypedArray(new Uint8Array(array.buffer as ArrayBuffer, array.byteOffset, array.byteLength));
 * const words = new ArrowArray({
 *   field: arrowField("u"),
 *   length: 3,
 *   buffers: [
 *     bytes(Uint8Array.of(0b101)),
 *     bytes(Int32Array.of(0, 3, 3, 8)),
 *     bytes(new TextEncoder().encode("oneright")),
 *   ],
 * });
 * console.log(words.toArray()); // [ "one", null, "right" ]
 * console.log(words.nullCount); // 1
 * ```
 */
export class ArrowArray implements Iterable<ArrowValue> {
  /** Name, type, nullability and metadata. */
  readonly field: ArrowField;
  /** Number of elements. */
  readonly length: number;
  /** Elements that precede the first one in every buffer. */
  readonly offset: number;
  /** The buffers that the columnar format defines for the type, as read-only views of bytes; null for an absent one. */
  readonly buffers: readonly (StridedMemoryView | null)[];
  /** The arrays inside a nested type. This array's offset is not applied to them. */
  readonly children: readonly ArrowArray[];
  /** The values that the indices of a dictionary-encoded array refer to, or null. */
  readonly dictionary: ArrowArray | null;
  readonly #onClose: (() => void) | undefined;
  #nullCount: number;
  #isClosed = false;
  #reader: Reader | undefined;

  // law arrow/ArrowArray.constructor: view/arrow, arrow/release, arrow/array
  /**
   * An array over buffers.
   *
   * @throws {ExchangeError} if the parts do not match the type: missing or undersized buffers, or the wrong children
   * @throws {TypeError} if a part is something else entirely: a typed array where a view is expected
   */
  constructor(parts: ArrowArrayParts) {
    checkMade(parts, "ArrowArray", "ArrowArray.from(source)");
    checkParts(parts);
    const { field, length, offset = 0, buffers, children = [], dictionary = null, onClose } = parts;
    this.field = field;
    this.length = length;
    this.offset = offset;
    this.buffers = buffers;
    this.children = children;
    this.dictionary = dictionary;
    this.#onClose = onClose;
    this.#nullCount = knownNulls(field.type, length, buffers, parts.nullCount);
    checkNode(this);
  }

  /**
   * Imports an array from another library.
   *
   * @param source one of our exports, an object with `__arrow_c_device_array__` or `__arrow_c_array__`, or the
   *   addresses of the structs
   * @throws {ExchangeError} if it cannot be imported; its producer then still owns it
   */
  static from(source: unknown, options: FromArrowOptions = {}): ArrowArray {
    return importArrow(source, options, arrayOf);
  }

  /** The type of the elements. */
  get type(): ArrowType {
    return this.field.type;
  }

  /** The device whose memory holds the buffers, or null for host memory. */
  get device(): CudaDevice | null {
    return deviceOf(this);
  }

  /**
   * The number of nulls; counted on first use if the producer did not provide it.
   *
   * @throws {TypeError} if it would have to be counted in device memory, or the array is closed
   */
  get nullCount(): number {
    if (this.#nullCount < 0) this.#nullCount = countNulls(this);
    return this.#nullCount;
  }

  /** `nullCount` if known without counting, otherwise -1. */
  get knownNullCount(): number {
    return this.#nullCount;
  }

  /**
   * The slots of the elements as a view, without a copy: numbers, times as the integers in which they are stored, truth
   * values as bits (`bool1_packed`), the indices of a dictionary-encoded array, and fixed-size lists of any of these,
   * with an axis for each level. The slot of a null may have any value: see {@linkcode ArrowArray.validity}.
   *
   * @throws {ExchangeError} for elements that are not numbers, for lists with nulls inside, and for bits that begin
   *   inside a byte
   */
  get values(): StridedMemoryView {
    return viewOf(valuesOf(this));
  }

  /**
   * Which elements are not null, as a view of bits (`bool1_packed`); null without a bitmap, in which case no element is
   * null.
   *
   * @throws {ExchangeError} if the array's offset lies inside a byte of the bitmap, where no view can begin
   */
  get validity(): StridedMemoryView | null {
    return viewOrNull(validityOf(this));
  }

  // law arrow/ArrowArray.isNull: view/arrow, arrow/release, arrow/array
  /** Whether an element is null; a negative index counts from the end. */
  isNull(index: number): boolean {
    this.#checkOpen("read");
    return isNullAt(this, this.#place(index));
  }

  // law arrow/ArrowArray.get: arrow/host_order
  /**
   * The value of an element; `null` if it is null. A negative index counts from the end.
   *
   * | type | value |
   * |---|---|
   * | bool, utf8, binary | boolean, string, Uint8Array (a copy) |
   * | integers up to 32 bits, floats | number |
   * | 64-bit integers | bigint |
   * | decimal | string, exact: `"-12.50"` |
   * | date, time, timestamp, duration | number for 32 bits, bigint for 64: the count of the type's unit |
   * | interval | number of months, or an object with the parts |
   * | list, list view, fixed-size list | array of values |
   * | struct | object by field name; if names are not unique, array of `[name, value]` |
   * | map | array of `[key, value]` |
   * | dictionary | the value that the index refers to |
   * | run-end encoded | the value of the run that contains the element |
   *
   * @throws {RangeError} if there is no such element
   * @throws {TypeError} for device memory, which the host cannot read, and after `close`
   * @throws {ExchangeError} if the element's offsets, view or index point outside the array's buffers
   */
  get(index: number): ArrowValue {
    this.#checkOpen("read");
    const place = this.#place(index);
    if (isNullAt(this, place)) return null;
    if (this.#reader === undefined) this.#reader = makeReader(this);
    else this.#prepare();
    return this.#reader(this.offset + place);
  }

  /** All values as an array. See {@linkcode ArrowArray.get}. @throws {RangeError} for 2^32 or more, too */
  toArray(): ArrowValue[] {
    checkCount(this.length);
    return Array.from({ length: this.length }, (_, index) => this.get(index));
  }

  /**
   * For `JSON.stringify` and `Response.json`: the values as `toArray()` returns them. JSON writes NaN and infinities as
   * null; 64-bit integers are numbers, of at most 53 bits.
   *
   * @throws {TypeError} as `get` does, for longer integers, such as today's times in nanoseconds, and for bytes
   */
  toJSON(): unknown {
    return this.toArray().map(jsonOf);
  }

  /** Iterates over the values. */
  *[Symbol.iterator](): Iterator<ArrowValue> {
    for (let index = 0; index < this.length; index++) yield this.get(index);
  }

  // law arrow/ArrowArray.sliced: view/arrow, arrow/release, arrow/array
  /**
   * The elements from `start` up to but excluding `end`, without a copy. Closing this array ends the slice, too.
   *
   * @throws {RangeError} unless 0 <= start <= end <= length
   * @throws {TypeError} if they are not numbers
   */
  sliced(start: number, end: number = this.length): ArrowArray {
    if (!(Number.isInteger(start) && Number.isInteger(end) && 0 <= start && start <= end && end <= this.length)) {
      const range = `0 <= start <= end <= ${this.length}`;
      const message = `Cannot slice ${this.length} elements from ${show(start)} to ${show(end)}: expected ${range}`;
      throw typeof start === "number" && typeof end === "number" ? new RangeError(message) : new TypeError(message);
    }
    const { field, buffers, children, dictionary } = this;
    const nullCount = this.#nullCount === 0 ? 0 : -1;
    return new ArrowArray({
      field,
      length: end - start,
      offset: this.offset + start,
      nullCount,
      buffers,
      children,
      dictionary,
    });
  }

  // law arrow/ArrowArray.child: arrow/array
  /**
   * The child of a struct by its field's name, or of any nested array by number. A struct's has the struct's elements,
   * also of a slice; a list's has the elements of all lists.
   *
   * @throws {RangeError} if there is no such child; the message lists a struct's
   */
  child(name: string | number): ArrowArray {
    const { type, offset, length } = this;
    const fields = childrenOf(type);
    const child = this.children[typeof name === "number" ? name : indexOfName(fields, name)];
    if (child === undefined) {
      const names = type.kind === "struct" ? namesNear(name, fields.map((field) => field.name), "children") : "";
      throw new RangeError(`Cannot find child ${show(name)} of an Arrow ${type.kind}${names}`);
    }
    const isWhole = type.kind !== "struct" || (offset === 0 && child.length === length);
    return isWhole ? child : child.sliced(offset, offset + length);
  }

  /**
   * The array on a device, or in host memory: buffers that are elsewhere are copied, whole, also those of a slice;
   * closing the result frees the copies. Buffers that are there already are shared: closing this array ends them.
   *
   * @throws {TypeError} if the place is invalid, or the array is closed
   */
  to(place: Place, options: ArrayPlaceOptions = none): ArrowArray {
    checkPlaceOfArray(place);
    checkOptions(options, placeOptionNames);
    return arrayAt(this, place, options);
  }

  /**
   * Exports the array by the Arrow C device interface, without a copy. The memory stays allocated until the consumer
   * releases it. The struct's event comes after the work enqueued on the buffers' home streams.
   *
   * @throws {ExchangeError} if a requested schema is incompatible with this array's
   * @throws {TypeError} if the array is closed
   */
  toArrowDevice(options: ToArrowOptions = {}): ArrowDeviceArray {
    this.#checkOpen("export");
    return exportArrow(this, options);
  }

  /** The Arrow C device protocol, as other libraries call it. */
  __arrow_c_device_array__(options: ToArrowOptions = {}): ArrowDeviceArray {
    return this.toArrowDevice(options);
  }

  /** The Arrow C data protocol, as other libraries call it. @throws {ExchangeError} for device memory */
  __arrow_c_array__(options: ToArrowOptions = {}): ArrowDeviceArray {
    this.#checkOpen("export");
    return exportArrow(this, options, "host");
  }

  /** The values as in source code, without the middle of long arrays. */
  toString(): string {
    return `[${textsOf(this, 10).join(", ")}]`;
  }

  // law arrow/ArrowArray.close: view/arrow, arrow/release, arrow/array
  /** Returns an import to its producer. For any other array this is a no-op. Closing twice is harmless. */
  close(): void {
    if (this.#onClose === undefined) return;
    this.#isClosed = true;
    this.#onClose();
  }

  /** Returns an import to its producer. */
  [Symbol.dispose](): void {
    this.close();
  }

  // law arrow/ArrowArray.checkOpen: view/arrow
  /** An array of nulls has no buffer that would be closed. */
  #checkOpen(doing: string): void {
    if (this.#isClosed) throw new TypeError(`Cannot ${doing} a closed ArrowArray of ${this.length} elements`);
  }

  /** The place of an element, counted from the first. */
  #place(index: number): number {
    if (Number.isInteger(index)) {
      const place = index < 0 ? index + this.length : index;
      if (place >= 0 && place < this.length) return place;
    }
    throw new RangeError(`Cannot read element ${show(index)} of ${this.length}`);
  }

  // law arrow/ArrowArray.prepare: arrow/host_order
  /** Repeats the checks that a reader performs only when it is made: that the buffers are open, and written. */
  #prepare(): void {
    for (const view of this.buffers) {
      if (view === null) continue;
      void view.buffer.ptr; // throws if it is closed
      if (view.buffer.kind !== "host") hostWaits(view.buffer);
    }
  }

  static {
    showAs(ArrowArray, describeArray);
  }
}

/** Finds what an untyped program may pass instead of a part, before anything is read from it. */
function checkParts({ field, buffers, children = [], dictionary = null }: ArrowArrayParts): void {
  if (!isField(field)) throw noPart("field to be what arrowField(type) returns", field);
  if (!Array.isArray(buffers)) throw noPart("buffers to be an array of views of bytes and nulls", buffers);
  for (let i = 0; i < buffers.length; i++) {
    if (buffers[i] === null || buffers[i] instanceof StridedMemoryView) continue;
    const hint = ". StridedMemoryView.fromTypedArray(bytes) makes one";
    throw noPart(`buffers[${i}] to be null or a StridedMemoryView of bytes`, buffers[i], hint);
  }
  if (!Array.isArray(children)) throw noPart("children to be an array of ArrowArrays", children);
  for (const child of children) if (!(child instanceof ArrowArray)) throw noPart("children to be ArrowArrays", child);
  if (dictionary !== null && !(dictionary instanceof ArrowArray)) {
    throw noPart("dictionary to be null or an ArrowArray", dictionary);
  }
}

function noPart(expected: string, got: unknown, hint = ""): TypeError {
  return new TypeError(`Cannot make an Arrow array: expected ${expected}, got ${showGiven(got)}${hint}`);
}

/**
 * Makes an array from a node.
 *
 * @param onClose called by `close`
 * @throws {ExchangeError} if the parts do not match the type
 */
export function arrayOf(node: ArrowNode, onClose?: () => void): ArrowArray {
  const { field, length, offset, knownNullCount, dictionary } = node;
  const parts = {
    field,
    length,
    offset,
    nullCount: knownNullCount,
    buffers: node.buffers.map(viewOrNull),
    children: node.children.map((child) => arrayOf(child)),
    dictionary: dictionary === null ? null : arrayOf(dictionary),
  };
  return new ArrowArray(onClose === undefined ? parts : { ...parts, onClose });
}

function viewOrNull(parts: ArrayParts | null): StridedMemoryView | null {
  return parts === null ? null : viewOf(parts);
}

// law arrow/arrayAt: arrow/place
/** An array whose buffers are at a place: copies of those that are elsewhere, which closing the array frees. */
function arrayAt(array: ArrowArray, place: Place, options: ArrayPlaceOptions): ArrowArray {
  using undo = new DisposableStack(); // unless all are there
  const copies = undo.use(new DisposableStack());
  const at = (one: ArrowArray): ArrowArrayParts => {
    const { field, length, offset, knownNullCount: nullCount, buffers, children, dictionary } = one;
    const last = hasViews(field.type) ? buffers.length - 1 : -1; // whose sizes the host reads
    const copyAt = (view: StridedMemoryView, i: number) => {
      void view.buffer.ptr; // throws if it is closed
      return i === last ? view.copy() : view.to(place, options);
    };
    return {
      field,
      length,
      offset,
      nullCount,
      buffers: buffers.map((view, i) => view === null ? null : copies.use(copyAt(view, i))),
      children: children.map((child) => new ArrowArray(at(child))),
      dictionary: dictionary === null ? null : new ArrowArray(at(dictionary)),
    };
  };
  const made = new ArrowArray({ ...at(array), onClose: () => copies.dispose() });
  undo.move();
  return made;
}

// law arrow/describeArray: public/inspect
/**
 * The text for a console: the type, the length and the first elements, unless the console would have to wait for them.
 */
function describeArray(array: ArrowArray): string {
  const { length } = array;
  const head = `${showType(array.type)} (${length})`;
  const buffers = buffersOf(array);
  if (buffers.some((buffer) => buffer.isClosed)) return `${head}, closed`;
  const { device } = array;
  if (device !== null) return `${head} on ${device}`;
  if (length === 0 || buffers.some(({ kind }) => kind !== "host")) return head;
  return `${head}\n[${textsOf(array, 3).map(inShort).join(", ")}]`;
}

/** The values as in source code, of long arrays `edge` at both ends. */
function textsOf(array: ArrowArray, edge: number): string[] {
  const left = array.length - 2 * edge;
  if (left <= 0) return array.toArray().map(textOf);
  const textsFrom = (start: number) => Array.from({ length: edge }, (_, i) => textOf(array.get(start + i)));
  return [...textsFrom(0), `... ${left} more ...`, ...textsFrom(-edge)];
}

/** The buffers of an array and of everything inside it. */
function buffersOf({ buffers, children, dictionary }: ArrowArray): StridedMemoryView["buffer"][] {
  const inside = [...children, ...(dictionary === null ? [] : [dictionary])].flatMap(buffersOf);
  return [...buffers.flatMap((view) => view === null ? [] : [view.buffer]), ...inside];
}

/** A text, truncated to fit a line. */
function inShort(text: string): string {
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

/** A value as in source code. JSON cannot express NaN and infinities. */
function textOf(value: ArrowValue): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value !== "object" || value === null) return Object.is(value, -0) ? "-0" : String(value);
  if (Array.isArray(value) || value instanceof Uint8Array) return `[${Array.from(value, textOf).join(",")}]`;
  return `{${Object.entries(value).map(([name, part]) => `${JSON.stringify(name)}:${textOf(part)}`).join(",")}}`;
}
