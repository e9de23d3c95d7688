/**
 * Exports of Arrow streams: arrays of one schema for a consumer that requests them one by one, from any thread.
 *
 * The arrays are exported before the stream: the request for the next one is machine code that moves a struct, because
 * no JavaScript can run on the consumer's thread.
 *
 * @module
 */
import {
  ARROW_DEVICE,
  ArrowArray as ArrowArrayStruct,
  ArrowArrayStream,
  ArrowDeviceArray as ArrowDeviceStruct,
  ArrowDeviceArrayStream,
  ArrowSchema,
} from "../../bindings/arrow.ts";
import { cString, layoutOf, libc, struct } from "../ffi/mod.ts";
import { callRelease, releaseThunks, StreamState, streamThunks } from "../native/mod.ts";
import { checkBoolean, checkMade, checkOptions, type OptionNames, showAs, showGiven } from "../layout/mod.ts";
import { ArrowArray } from "./array.ts";
import {
  type ArrowDeviceArray,
  type ArrowField,
  type ArrowStreamPointer,
  differenceOf,
  equalTypes,
  exportArrow,
  exportSchema,
  isField,
  releaseArray,
  releaseSchema,
  StructBlock,
} from "../cdata/mod.ts";
import { addExport, ExchangeError, type ExportEntry, pollExport } from "../order/mod.ts";

/** Options of {@linkcode exportArrowStream}. */
export interface ExportStreamOptions {
  /** The field of all arrays. Default: the first one's. */
  readonly field?: ArrowField;
  /** Whether the consumer takes an ArrowDeviceArrayStream. Default false: an ArrowArrayStream, for host memory. */
  readonly device?: boolean;
}

const exportStreamOptionNames: OptionNames<ExportStreamOptions> = { field: true, device: true };

/** How often a consumer may request the schema: each request returns a copy, which must have been made in advance. */
const schemaCopies = 8;

let pointer: (exported: ArrowStreamExport) => ArrowStreamPointer;

/**
 * The struct of an export, for an import in this program, which moves the struct and only then takes it.
 *
 * @throws {ExchangeError} if it was taken before
 */
export function pointerOfExport(exported: ArrowStreamExport): ArrowStreamPointer {
  return pointer(exported);
}

/**
 * An exported stream: an `ArrowArrayStream *`, or an `ArrowDeviceArrayStream *`, for a consumer. Exactly one consumer
 * may take it, and must then release it once; `ArrowStream.from` accepts the object itself. Arrays that the consumer
 * has not requested are released with the stream.
 */
export class ArrowStreamExport {
  readonly #stream: ExportedStream;
  #taken = false;

  // law arrow/ArrowStreamExport.constructor: arrow/stream, order/reclaim, order/programs
  /** Use {@linkcode exportArrowStream}. */
  constructor(stream: ExportedStream) {
    checkMade(stream, "ArrowStreamExport", "exportArrowStream(arrays)");
    this.#stream = stream;
    finalizer.register(this, stream, this);
  }

  /** Whether it is an ArrowDeviceArrayStream. */
  get isDevice(): boolean {
    return this.#stream.isDevice;
  }

  /** Whether a consumer has taken the stream, or it was closed. */
  get taken(): boolean {
    return this.#taken;
  }

  /** Whether the consumer has released the stream. It may still hold arrays taken from the stream. */
  get released(): boolean {
    return this.#stream.isReleased();
  }

  // law arrow/ArrowStreamExport.take: arrow/stream, order/reclaim, order/programs
  /**
   * Transfers ownership of the struct to a consumer, which must release it once.
   *
   * @returns address of the struct
   * @throws {ExchangeError} if it was taken before
   */
  take(): bigint {
    this.#checkTaken();
    this.#taken = true;
    finalizer.unregister(this);
    return this.#stream.address;
  }

  #checkTaken(): void {
    if (this.#taken) {
      throw new ExchangeError("Cannot use this Arrow stream: it is closed, or a consumer has taken it over");
    }
  }

  static {
    pointer = (exported) => {
      exported.#checkTaken();
      const { address, isDevice } = exported.#stream;
      return isDevice ? { deviceStream: address } : { stream: address };
    };
  }

  // law arrow/ArrowStreamExport.close: arrow/stream, order/reclaim, order/programs
  /** Releases the stream if no consumer has taken it. Closing twice is harmless. */
  close(): void {
    if (this.#taken) return;
    this.take();
    this.#stream.release();
  }

  /** Releases the stream if no consumer has taken it. */
  [Symbol.dispose](): void {
    this.close();
  }

  static {
    showAs(ArrowStreamExport, (stream) => {
      const state = stream.released ? ", released" : stream.#taken ? ", taken" : "";
      return `for ${stream.isDevice ? "devices" : "the host"}${state}`;
    });
  }
}

/** Releases streams that are collected before a consumer has taken them. */
const finalizer = new FinalizationRegistry<ExportedStream>((stream) => stream.release());

/** An exported stream: its struct, its state, the arrays and the copies of its schema, in one block of C memory. */
class ExportedStream implements ExportEntry {
  index = -1;
  readonly address: bigint;
  readonly isDevice: boolean;
  readonly #block: StructBlock;
  readonly #state: number;
  readonly #callback: bigint;
  readonly #itemBytes: number;

  // law arrow/ExportedStream.constructor: arrow/stream, order/reclaim, order/programs
  constructor(block: StructBlock, stream: number, state: number, isDevice: boolean) {
    this.address = block.address(stream);
    this.isDevice = isDevice;
    this.#block = block;
    this.#state = state;
    this.#callback = releaseThunks().address[isDevice ? "ArrowDeviceArrayStream" : "ArrowArrayStream"];
    this.#itemBytes = layoutOf(isDevice ? ArrowDeviceStruct : ArrowArrayStruct).size;
    addExport(this);
  }

  /** Calls the release callback, as a consumer would. */
  release(): void {
    callRelease(this.#callback, this.address);
  }

  isReleased(): boolean {
    return pollExport(this);
  }

  isReleasedByConsumer(): boolean {
    return Atomics.load(new Int32Array(this.#block.memory), this.#state / 4) !== 0;
  }

  /** The arrays are ordered on their own. */
  order(): boolean {
    return true;
  }

  // law arrow/ExportedStream.finish: arrow/stream, order/reclaim, order/programs
  /** Releases the arrays and schemas that the consumer has not taken from the stream. */
  finish(): void {
    const { next_array, end_of_arrays, next_schema, end_of_schemas } = this.#block.at(StreamState, this.#state);
    for (let at = next_array; at < end_of_arrays; at += BigInt(this.#itemBytes)) releaseArray(at);
    for (let at = next_schema; at < end_of_schemas; at += BigInt(schemaBytes)) releaseSchema(at);
    this.#block.free();
  }
}

const schemaBytes = layoutOf(ArrowSchema).size;

// law arrow/exportArrowStream: arrow/stream, order/reclaim, order/programs
/**
 * Exports arrays as a stream.
 *
 * @param arrays of equal types
 * @throws {ExchangeError} if a type differs, there is neither an array nor a field, or the arrays are in device memory
 *   without `device`, or on devices of several types
 * @throws {TypeError} if an array is closed, or is none, or the field is none
 *
 * @example
 * ```ts
 * import { ArrowArray, ArrowStream, StridedMemoryView } from "@causeway/causeway";
 * import { exportArrowStream } from "@causeway/causeway/arrow";
 *
 * const views = [[1, 2], [3]].map((values) => StridedMemoryView.fromTypedArray(Int32Array.from(values)));
 * const batches = views.map((view) => ArrowArray.from(view));
 * using exported = exportArrowStream(batches);
 * using stream = ArrowStream.from(exported); // any library in C is given exported.take()
 * for (const array of stream) {
 *   console.log(`${array}`); // [1, 2] [3]
 * }
 * ```
 */
export function exportArrowStream(arrays: Iterable<ArrowArray>, options: ExportStreamOptions = {}): ArrowStreamExport {
  checkOptions(options, exportStreamOptionNames);
  checkBoolean("device", options.device);
  const chunks = arraysOf(arrays);
  const { field = chunks[0]?.field, device = false } = options;
  if (field === undefined) throw new ExchangeError("Cannot export an Arrow stream without arrays: pass { field }");
  if (!isField(field)) {
    throw new TypeError(`Expected field to be what arrowField(type) returns, got ${showGiven(field)}`);
  }
  const other = chunks.find(({ type }) => !equalTypes(type, field.type));
  if (other !== undefined) {
    throw new ExchangeError(
      `Cannot export an Arrow stream of ${field.type.kind} with an array of ${other.type.kind}: expected equal ` +
        "types, got " + differenceOf(field.type, other.type),
    );
  }
  const made: ArrowDeviceArray[] = [];
  try {
    for (const chunk of chunks) made.push(exportArrow(chunk, {}, device ? "device" : "host"));
    const types = new Set(made.map(({ ptr }) => struct(ArrowDeviceStruct).at(ptr).device_type));
    if (types.size > 1) {
      throw new ExchangeError(
        `Cannot export an Arrow stream of arrays on devices of types ${[...types].join(" and ")}: expected one type`,
      );
    }
    const [type = ARROW_DEVICE.CPU] = types;
    return new ArrowStreamExport(writeStream(made, field, device, type));
  } catch (error) {
    for (const one of made) one.close();
    throw error;
  }
}

/** The arrays: untyped programs may pass views, or a single array, which is iterable, too. */
function arraysOf(arrays: Iterable<ArrowArray>): ArrowArray[] {
  const isIterable = typeof arrays?.[Symbol.iterator] === "function" && !(arrays instanceof ArrowArray);
  const chunks = isIterable ? [...arrays] : [];
  const wrong = chunks.findIndex((one) => !(one instanceof ArrowArray));
  if (isIterable && wrong < 0) return chunks;
  throw new TypeError(
    "Cannot export an Arrow stream: expected an iterable of ArrowArrays, such as [array], got " +
      `${isIterable ? `one with ${showGiven(chunks[wrong])}` : showGiven(arrays)}. ArrowArray.from(view) makes one ` +
      "of a view, and fromApacheArrow(table) those of a table",
  );
}

// law arrow/writeStream: arrow/stream, order/reclaim, order/programs
function writeStream(
  chunks: readonly ArrowDeviceArray[],
  field: ArrowField,
  isDevice: boolean,
  type: number,
): ExportedStream {
  const kind = isDevice ? "ArrowDeviceArrayStream" : "ArrowArrayStream";
  // First: C has no name that contains a NUL, for example. The arrays are then still their owner's.
  const own = Array.from({ length: schemaCopies }, () => exportSchema(field));
  const { size } = layoutOf(isDevice ? ArrowDeviceStruct : ArrowArrayStruct);
  const block = new StructBlock();
  const stream = block.struct(isDevice ? ArrowDeviceArrayStream : ArrowArrayStream);
  const state = block.struct(StreamState);
  const items = block.reserve(size * chunks.length);
  const schemas = block.reserve(schemaBytes * schemaCopies);
  // A consumer also requests this when it rejects an array itself, about which the stream has nothing to report.
  const error = block.bytes(cString(`no error of this stream but this one: it gives its schema ${schemaCopies} times`));
  block.allocate();
  const callback = releaseThunks().address[kind];
  const out = isDevice ? block.at(ArrowDeviceArrayStream, stream) : block.at(ArrowArrayStream, stream);
  Object.assign(out, streamThunks(kind), { release: callback, private_data: block.address(state) });
  if (isDevice) block.at(ArrowDeviceArrayStream, stream).device_type = type;
  const written = block.at(StreamState, state);
  written.next_array = block.address(items);
  written.end_of_arrays = block.address(items + size * chunks.length);
  written.next_schema = block.address(schemas);
  written.end_of_schemas = block.address(schemas + schemaBytes * schemaCopies);
  written.error = block.address(error);
  chunks.forEach((chunk, i) => {
    const { schema, array } = chunk.take();
    releaseSchema(schema); // the stream has its own
    libc().memory.memcpy(block.address(items + i * size), array, BigInt(size));
  });
  own.forEach(({ address }, i) => {
    libc().memory.memcpy(block.address(schemas + i * schemaBytes), address, BigInt(schemaBytes));
  });
  return new ExportedStream(block, stream, state, isDevice);
}
