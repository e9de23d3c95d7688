/**
 * Imports of Arrow streams: arrays of one schema, one by one.
 *
 * @module
 */
import { checkMade, showAs, showGiven } from "../layout/mod.ts";
import {
  ArrowArrayStream,
  ArrowDeviceArray as ArrowDeviceStruct,
  ArrowDeviceArrayStream,
  ArrowSchema,
} from "../../bindings/arrow.ts";
import { checkPlace } from "../device/mod.ts";
import { allocate, ffiPort, layoutOf, libc, NativeArena, readCString, struct } from "../ffi/mod.ts";
import { arrayOf, type ArrowArray } from "./array.ts";
import {
  ArrowDeviceArray,
  type ArrowField,
  type ArrowStreamPointer,
  fromArrowOptionNames,
  type FromArrowOptions,
  isArrowSource,
  openForeignStream,
  readSchema,
  releaseArray,
  releaseSchema,
  showType,
  takeArray,
  tooLate,
  Walk,
} from "../cdata/mod.ts";
import { ArrowStreamExport, pointerOfExport } from "./stream_export.ts";
import { callRelease } from "../native/mod.ts";
import { ExchangeError } from "../order/mod.ts";

/** A foreign stream, of either struct. */
interface ForeignStream {
  readonly address: bigint;
  readonly description: typeof ArrowArrayStream | typeof ArrowDeviceArrayStream;
}

/**
 * A stream of arrays of one schema, produced by another library. Each array outlives the stream and is closed
 * separately. The producer runs during calls of {@linkcode ArrowStream.next}, on this thread.
 *
 * @example
 * ```ts ignore
 * using stream = ArrowStream.from({ stream: address });
 * for (const batch of stream) {
 *   console.log(`${batch}`);
 *   batch.close();
 * }
 * ```
 */
export class ArrowStream implements Iterable<ArrowArray> {
  /** The field of all its arrays. */
  readonly field: ArrowField;
  readonly #stream: ForeignStream;
  readonly #options: FromArrowOptions;
  #closed = false;
  /** Whether the producer is running, which may call JavaScript, and this stream. */
  #isRunning = false;

  // law arrow/ArrowStream.constructor: arrow/stream, order/reclaim, order/programs
  private constructor(source: ForeignStream, field: ArrowField, options: FromArrowOptions) {
    checkMade(options, "ArrowStream", "ArrowStream.from(source)");
    this.#stream = source;
    this.field = field;
    this.#options = options;
    finalizer.register(this, source, this);
  }

  // law arrow/ArrowStream.from: order/refusals, python/arrow_capsules, arrow/stream
  /**
   * Imports a stream, moving its struct.
   *
   * @param source the address of a stream, an export by `exportArrowStream`, or a Python object that speaks Arrow: a
   *   table, a reader
   * @param options where the arrays will be used, as for `ArrowArray.from`
   * @throws {ExchangeError} if it was released, or does not provide its schema; the caller then still owns it
   */
  static from(source: unknown, options: FromArrowOptions = {}): ArrowStream {
    checkPlace(options, "Cannot import an Arrow stream", fromArrowOptionNames);
    const { requestedSchema = null, ...where } = options;
    const opened = source instanceof ArrowStreamExport ? null : openForeignStream(source, requestedSchema);
    if (opened === null && requestedSchema !== null) throw tooLate("stream");
    if (source instanceof ArrowStreamExport) {
      const stream = ArrowStream.#take(pointerOfExport(source), options);
      source.take(); // its struct has been moved: nothing is left to release
      return stream;
    }
    if (opened === null) return ArrowStream.#take(pointerOf(source), options);
    try {
      return ArrowStream.#take(opened.pointers, where);
    } finally {
      opened.close();
    }
  }

  // law arrow/ArrowStream.take: arrow/stream, order/reclaim, order/programs
  static #take(source: ArrowStreamPointer, options: FromArrowOptions): ArrowStream {
    const foreign: ForeignStream = "stream" in source
      ? { address: source.stream, description: ArrowArrayStream }
      : { address: source.deviceStream, description: ArrowDeviceArrayStream };
    check(foreign);
    const field = schemaOf(foreign);
    const { size } = layoutOf(foreign.description);
    const moved = { ...foreign, address: allocate(size) };
    libc().memory.memcpy(moved.address, foreign.address, BigInt(size));
    structOf(foreign).release = 0n;
    return new ArrowStream(moved, field, options);
  }

  // law arrow/ArrowStream.next: arrow/stream, order/reclaim, order/programs
  /**
   * The next array, which the caller closes; null at the end.
   *
   * @throws {ExchangeError} if the producer fails, with its message, or the array cannot be imported
   * @throws {TypeError} after `close`
   */
  next(): ArrowArray | null {
    if (this.#closed) throw new TypeError("Cannot read a closed ArrowStream");
    using arena = new NativeArena();
    const out = arena.struct(ArrowDeviceStruct); // begins with an ArrowArray
    this.#run(() => call(this.#stream, "get_next", out.$address));
    if (out.array.release === 0n) return null;
    try {
      return takeArray(
        out.$address,
        this.field,
        isDevice(this.#stream),
        this.#options,
        arrayOf,
        wasReleased,
      );
    } catch (error) {
      releaseArray(out.$address); // made for this call only
      throw error;
    }
  }

  // law arrow/ArrowStream.run: arrow/stream, python/arrow_capsules
  /**
   * Calls the producer. If it calls JavaScript, which closes the stream, that is released when the producer returns.
   */
  #run(work: () => void): void {
    if (this.#isRunning) throw new TypeError("Cannot read an ArrowStream inside its own producer");
    this.#isRunning = true;
    try {
      work();
    } finally {
      this.#isRunning = false;
      if (this.#closed) release(this.#stream);
    }
  }

  /** The remaining arrays, each of which the caller closes. */
  *[Symbol.iterator](): Iterator<ArrowArray> {
    for (let array = this.next(); array !== null; array = this.next()) yield array;
  }

  /** Whether `close` has been called. */
  get isClosed(): boolean {
    return this.#closed;
  }

  // law arrow/ArrowStream.close: arrow/stream, order/reclaim, order/programs
  /** Releases the stream. Arrays taken from it stay open. Closing twice is harmless, also inside the producer. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    finalizer.unregister(this);
    if (!this.#isRunning) release(this.#stream);
  }

  /** Releases the stream. */
  [Symbol.dispose](): void {
    this.close();
  }

  static {
    showAs(ArrowStream, (stream) => `${showType(stream.field.type)}${stream.#closed ? ", closed" : ""}`);
  }
}

const wasReleased = "It was released, and next() continues with the one after it";

function pointerOf(source: unknown): ArrowStreamPointer {
  if (typeof source === "object" && source !== null) {
    if ("stream" in source && typeof source.stream === "bigint") return { stream: source.stream };
    if ("deviceStream" in source && typeof source.deviceStream === "bigint") {
      return { deviceStream: source.deviceStream };
    }
  }
  throw new ExchangeError(
    "Cannot import an Arrow stream: expected the result of exportArrowStream(), the address of a struct as " +
      "{ stream } or { deviceStream }, or a Python object" + wayFor(source),
  );
}

/** How to handle a source that is not a stream. */
function wayFor(source: unknown): string {
  if (Array.isArray(source)) return ". exportArrowStream() makes a stream of arrays";
  if (isArrowSource(source) || source instanceof ArrowDeviceArray) return ". Import one array with ArrowArray.from()";
  return `, got ${showGiven(source)}`;
}

/** Releases streams that are collected without being closed. */
const finalizer = new FinalizationRegistry<ForeignStream>(release);

// law arrow/release: arrow/stream, order/reclaim, order/programs
function release(source: ForeignStream): void {
  callRelease(structOf(source).release, source.address);
  libc().loading.free(source.address);
}

function structOf({ address, description }: ForeignStream) {
  return description === ArrowArrayStream
    ? struct(ArrowArrayStream).at(address)
    : struct(ArrowDeviceArrayStream).at(address);
}

function isDevice({ description }: ForeignStream): boolean {
  return description === ArrowDeviceArrayStream;
}

function check(source: ForeignStream): void {
  const walk = new Walk(isDevice(source) ? "ArrowDeviceArrayStream" : "ArrowArrayStream");
  walk.enter(source.address, 0);
  const stream = structOf(source);
  if (stream.release === 0n) throw walk.refusal("is released or was moved: its release callback is NULL");
  for (const name of ["get_schema", "get_next", "get_last_error"] as const) {
    if (stream[name] === 0n) throw walk.refusal(`has no function ${name}`);
  }
}

// law arrow/schemaOf: arrow/stream, order/reclaim, order/programs
function schemaOf(source: ForeignStream): ArrowField {
  using arena = new NativeArena();
  const schema = arena.struct(ArrowSchema);
  call(source, "get_schema", schema.$address);
  try {
    return readSchema(schema.$address);
  } finally {
    releaseSchema(schema.$address);
  }
}

/** Calls one of a stream's functions, which return an errno. */
function call(source: ForeignStream, name: "get_schema" | "get_next", out: bigint): void {
  const stream = structOf(source);
  const code = functionAt(stream[name])(source.address, out);
  if (code === 0) return;
  const message = ffiPort().functionAt(stream.get_last_error, { args: ["ptr"], returns: "ptr" })(source.address);
  throw new ExchangeError(
    `Cannot read an Arrow stream: ${name} returned error number ${code}` +
      (message === 0n ? "" : `, ${readCString(message)}`),
  );
}

/** Bound functions by address, because binding is slow. */
const functions = new Map<bigint, (stream: bigint, out: bigint) => number>();

function functionAt(address: bigint): (stream: bigint, out: bigint) => number {
  return functions.getOrInsertComputed(
    address,
    () => ffiPort().functionAt(address, { args: ["ptr", "ptr"], returns: "i32" }),
  );
}
