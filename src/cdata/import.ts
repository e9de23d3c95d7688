/**
 * Imports of the C structs ArrowArray and ArrowDeviceArray: foreign structs as an array, whose memory is returned once.
 *
 * @module
 */
import { ArrowArray as ArrowArrayStruct, ArrowDeviceArray as ArrowDeviceStruct } from "../../bindings/arrow.ts";
import { allocate, libc, runAll, struct } from "../ffi/mod.ts";
import { checkPlace, type CudaStream } from "../device/mod.ts";
import { MemoryBuffer } from "../memory/mod.ts";
import { DType, isOfOtherCopy, show, StridedLayout } from "../layout/mod.ts";
import { ArrayNode, type ArrowNode } from "./array_node.ts";
import { type RawArray, type RawBuffer, readArray } from "./array_import.ts";
import {
  ArrowDeviceArray,
  type ArrowPointers,
  fromArrowOptionNames,
  type FromArrowOptions,
  isArrowDeviceSource,
  isArrowSource,
  releaseArray,
  releaseSchema,
} from "./device_array.ts";
import { integerReader, type Location, readLocation, waitFor } from "./location.ts";
import { readSchema } from "./schema.ts";
import { openForeignArray } from "./foreign.ts";
import type { ArrowField } from "./type.ts";
import { Walk } from "./walk.ts";
import { ExchangeError, hostWaitsBeforeReturn } from "../order/mod.ts";

/**
 * Makes the result of an import. Called before anything is taken: if it throws, nothing changes.
 *
 * @param node the array; only the sizes of its buffers are checked: see `checkTree`
 * @param close ends the import
 */
type MakeImported<T> = (node: ArrowNode, close: () => void) => T;

// law cdata/importArrow: order/refusals, python/arrow_capsules
/**
 * Imports an array. See `ArrowArray.from`.
 *
 * @throws {ExchangeError} if it cannot be imported; the caller then still owns structs that it passed in
 */
export function importArrow<T>(source: unknown, options: FromArrowOptions, make: MakeImported<T>): T {
  checkPlace(options, "Cannot import an Arrow array", fromArrowOptionNames);
  const { requestedSchema = null, ...where } = options;
  const opened = openForeignArray(source, requestedSchema);
  if (opened !== null) {
    try {
      return importArrow(opened.pointers, where, make);
    } finally {
      opened.close();
    }
  }
  if (isArrowDeviceSource(source)) {
    return takeFromProducer(source.__arrow_c_device_array__({ requestedSchema }), where, make);
  }
  if (isArrowSource(source)) return takeFromProducer(source.__arrow_c_array__({ requestedSchema }), where, make);
  if (requestedSchema !== null) throw tooLate("array");
  if (source instanceof ArrowDeviceArray) return takeExport(source, options, make);
  if (isPointers(source)) {
    const { schema, deviceArray, array = 0n } = source;
    return takeStructs(schema, deviceArray ?? array, deviceArray !== undefined, options, make);
  }
  throw new ExchangeError(
    "Cannot import an Arrow array: expected a Python object, an object with __arrow_c_device_array__() or " +
      "__arrow_c_array__(), or the addresses { schema, array } or { schema, deviceArray }" + importerOf(source),
  );
}

/** How to import a source that is no Arrow array, but has elements or arrays. */
function importerOf(source: unknown): string {
  if (isOfOtherCopy(source)) {
    return `, got ${show(source)}. Pass an array or a view itself, or what take() of its export returns`;
  }
  if (typeof source !== "object" || source === null) return "";
  if (ArrayBuffer.isView(source)) return ". Import a typed array with ArrowArray.from(StridedMemoryView.from(array))";
  if (Array.isArray(source)) {
    return ". Import numbers with ArrowArray.from(StridedMemoryView.fromArray(numbers)), and other values with " +
      "fromApacheArrow(), from a vector of apache-arrow";
  }
  const isExport = "isDevice" in source && "take" in source; // of exportArrowStream(), in a room above
  if (isExport || "stream" in source || "deviceStream" in source) return ". Import a stream with ArrowStream.from()";
  return "data" in source ? ". Import vectors and tables of apache-arrow with fromApacheArrow()" : "";
}

/** The error for requesting a schema for structs that exist already. */
export function tooLate(what: "array" | "stream"): ExchangeError {
  return new ExchangeError(
    `Cannot request a schema of an Arrow ${what} whose structs already exist: pass its producer, or no requestedSchema`,
  );
}

function isPointers(source: unknown): source is ArrowPointers {
  if (typeof source !== "object" || source === null || !("schema" in source)) return false;
  const address = "deviceArray" in source ? source.deviceArray : "array" in source ? source.array : undefined;
  return typeof source.schema === "bigint" && typeof address === "bigint";
}

// law cdata/takeFromProducer: order/refusals, order/reclaim, arrow/release, view/arrow, arrow/array,
//   device/late_streams, order/programs
/** Imports an export that a producer has made for this import. */
function takeFromProducer<T>(exported: unknown, options: FromArrowOptions, make: MakeImported<T>): T {
  if (!(exported instanceof ArrowDeviceArray)) return takeFreshStructs(exported, options, make);
  try {
    return takeExport(exported, options, make);
  } catch (error) {
    exported.close();
    throw error;
  }
}

// law cdata/takeFreshStructs: order/refusals, order/reclaim, arrow/release, view/arrow, arrow/array,
//   device/late_streams, order/programs, public/two_copies
/** Imports structs that a producer has made for this import, and releases them if that fails. */
function takeFreshStructs<T>(exported: unknown, options: FromArrowOptions, make: MakeImported<T>): T {
  const made: unknown = isOfOtherCopy(exported) ? (exported as ArrowDeviceArray).take() : exported; // known members
  if (!isPointers(made)) {
    throw new ExchangeError(
      "Cannot import an Arrow array: its producer returned neither an ArrowDeviceArray nor the addresses " +
        "{ schema, array } or { schema, deviceArray }",
    );
  }
  const { schema, deviceArray, array = 0n } = made;
  const address = deviceArray ?? array;
  new Walk("ArrowSchema").pointer(schema, "address");
  new Walk("ArrowArray").pointer(address, "address");
  try {
    return takeStructs(schema, address, deviceArray !== undefined, options, make);
  } catch (error) {
    releaseSchema(schema);
    releaseArray(address);
    throw error;
  }
}

// law cdata/takeExport: order/refusals, order/reclaim, arrow/release, view/arrow, arrow/array, device/late_streams,
//   order/programs
function takeExport<T>(exported: ArrowDeviceArray, options: FromArrowOptions, make: MakeImported<T>): T {
  const taken = takeStructs(exported.schemaPtr, exported.ptr, true, options, make);
  exported.take(); // both have been moved: nothing is left to release
  return taken;
}

// law cdata/takeStructs: order/refusals, order/reclaim, arrow/release, view/arrow, arrow/array, device/late_streams,
//   order/programs
function takeStructs<T>(
  schema: bigint,
  array: bigint,
  isDevice: boolean,
  options: FromArrowOptions,
  make: MakeImported<T>,
): T {
  const field = readSchema(schema);
  const taken = takeArray(array, field, isDevice, options, make);
  releaseSchema(schema); // `field` is a complete copy
  return taken;
}

// law cdata/takeArray: order/refusals, order/reclaim, arrow/release, view/arrow, arrow/array, device/late_streams,
//   order/programs
/**
 * Imports an array of a known type: moves the content out of the struct, which its owner then sees as released.
 *
 * @param isDevice whether the struct is an ArrowDeviceArray
 * @param ifRefused who owns the array after an error, for messages. Default: its producer
 * @throws {ExchangeError} if it cannot be imported; the struct is then unchanged
 */
export function takeArray<T>(
  address: bigint,
  field: ArrowField,
  isDevice: boolean,
  options: FromArrowOptions,
  make: MakeImported<T>,
  ifRefused?: string,
): T {
  const walk = new Walk(isDevice ? "ArrowDeviceArray" : "ArrowArray", ifRefused);
  walk.pointer(address, "address");
  const location = isDevice ? readLocation(struct(ArrowDeviceStruct).at(address), options, walk) : host;
  waitFor(location, options);
  const raw = readArray(address, field, integerReader(location), walk);
  const imported = new Import();
  try {
    const made = make(nodeOf(raw, location, imported), () => imported.close());
    imported.adopt(moveOut(address)); // last: an earlier failure leaves the struct unchanged
    return made;
  } catch (error) {
    imported.close(); // releases nothing yet
    throw error;
  }
}

const host: Location = { kind: "host", device: null, stream: null, event: 0n };

// law cdata/moveOut: order/refusals, order/reclaim, arrow/release, view/arrow, arrow/array, device/late_streams,
//   order/programs
/** Moves a struct's content into our memory, as the specification defines. */
function moveOut(address: bigint): bigint {
  const { size } = struct(ArrowArrayStruct);
  const copy = allocate(size);
  libc().memory.memcpy(copy, address, BigInt(size));
  struct(ArrowArrayStruct).at(address).release = 0n;
  return copy;
}

/** An imported array, which is released when the last of its buffers is freed. */
class Import {
  readonly #buffers: MemoryBuffer[] = [];
  readonly #state: ImportState = { moved: 0n, users: 0, streams: new Map() };

  constructor() {
    // so that even an array without buffers is released by one
    this.addBuffer({ ptr: 0n, size: 0, isHost: true }, host);
  }

  /** Adds a buffer of the array. */
  addBuffer({ ptr, size, isHost }: RawBuffer, location: Location): MemoryBuffer {
    const { kind, device, stream } = isHost ? host : location;
    const owner = this.#state;
    const at = size === 0 ? 0n : ptr;
    const buffer = MemoryBuffer.fromForeign(at, size, device, kind, stream, owner, owner, returnToProducer)
      .protect(); // Arrow's data are never written to
    this.#state.users++;
    this.#buffers.push(buffer);
    return buffer;
  }

  /** Takes ownership of the struct to which the array was moved. */
  adopt(moved: bigint): void {
    this.#state.moved = moved;
  }

  /** Closes all buffers. */
  close(): void {
    for (const buffer of this.#buffers) buffer.close();
  }
}

/** The state that the last buffer needs to release the array. It must not reference the buffers. */
interface ImportState {
  moved: bigint;
  users: number;
  /** The streams on which the buffers were used, retained. */
  readonly streams: Map<CudaStream, Disposable>;
}

// law cdata/returnToProducer: order/refusals, order/reclaim, arrow/release, view/arrow, arrow/array,
//   device/late_streams, order/programs
/** Called when a buffer of an import is freed. */
function returnToProducer(_: bigint, stream: CudaStream | null, shared: ImportState): void {
  const { streams, moved } = shared;
  // Retained, because the next buffer may be closed long after the stream's last user has gone.
  if (stream !== null) streams.getOrInsertComputed(stream, () => stream.retained());
  if (--shared.users > 0) return;
  const orders = moved === 0n ? [] : [...streams.keys()].map((one) => () => hostWaitsBeforeReturn(one.orSuccessor));
  const give = () => {
    if (moved === 0n) return;
    releaseArray(moved);
    libc().loading.free(moved);
  };
  runAll([...orders, give, ...[...streams.values()].map((one) => () => one[Symbol.dispose]())]);
}

function nodeOf(raw: RawArray, location: Location, imported: Import): ArrowNode {
  const { field, length, offset, nullCount } = raw;
  const children = raw.children.map((child) => nodeOf(child, location, imported));
  const dictionary = raw.dictionary === null ? null : nodeOf(raw.dictionary, location, imported);
  const buffers = raw.buffers.map((buffer) => {
    if (buffer === null) return null;
    const layout = StridedLayout.dense([buffer.size], 1);
    return { buffer: imported.addBuffer(buffer, location), offset: 0, layout, dtype: bytes, readonly: true };
  });
  return new ArrayNode({ field, length, offset, nullCount, buffers, children, dictionary });
}

const bytes = DType.from("uint8");
