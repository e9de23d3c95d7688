/**
 * Imports by the C structs ArrowArray and ArrowDeviceArray: foreign structs as an array, and the memory returned once.
 *
 * @module
 */
import {
  ARROW_DEVICE,
  ArrowArray as ArrowArrayStruct,
  ArrowDeviceArray as ArrowDeviceStruct,
} from "../../bindings/arrow.ts";
import { allocate, libc, runAll, struct } from "../ffi/mod.ts";
import { checkPlace, type CudaStream } from "../device/mod.ts";
import { MemoryBuffer } from "../memory/mod.ts";
import { DType, StridedLayout } from "../layout/mod.ts";
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
import { readSchema } from "./schema_import.ts";
import { openForeignArray } from "./foreign.ts";
import type { ArrowField } from "./type.ts";
import { Walk } from "./walk.ts";
import { ExchangeError, hostWaitsBeforeReturn } from "../order/mod.ts";

/**
 * Makes what an import is seen as. It is called before anything is taken: what it throws leaves everything as it was.
 *
 * @param node the array, of which nothing is checked but the sizes of its buffers: see `checkTree`
 * @param close ends the import
 */
export type MakeImported<T> = (node: ArrowNode, close: () => void) => T;

/**
 * Takes an array over. See `ArrowArray.from`.
 *
 * @throws {ExchangeError} if it cannot be honoured; structs passed in are then still the caller's
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
  if (isArrowDeviceSource(source)) return takeOwn(source.__arrow_c_device_array__({ requestedSchema }), where, make);
  if (isArrowSource(source)) return takeOwn(source.__arrow_c_array__({ requestedSchema }), where, make);
  if (requestedSchema !== null) throw tooLate("array");
  if (source instanceof ArrowDeviceArray) return takeExport(source, options, make);
  if (isPointers(source)) {
    const { schema, deviceArray, array = 0n } = source;
    return takeStructs(schema, deviceArray ?? array, deviceArray !== undefined, options, make);
  }
  throw new ExchangeError(
    "Cannot import an Arrow array: expected an object of Python, or one with __arrow_c_device_array__() or __arrow_c_array__(), or the " +
      "addresses { schema, array } or { schema, deviceArray }" + wayOf(source),
  );
}

/** What to do with what is no array, but gives some. */
function wayOf(source: unknown): string {
  if (typeof source !== "object" || source === null) return "";
  if ("stream" in source || "deviceStream" in source) return ". A stream is taken by ArrowStream.from()";
  return "data" in source ? ". Vectors and tables of apache-arrow are taken by fromApacheArrow()" : "";
}

/** The error of a schema that is requested of structs which are made already. */
export function tooLate(what: "array" | "stream"): ExchangeError {
  return new ExchangeError(
    `Cannot request a schema of an Arrow ${what} whose structs are made already: pass its producer, or no requestedSchema`,
  );
}

function isPointers(source: unknown): source is ArrowPointers {
  if (typeof source !== "object" || source === null || !("schema" in source)) return false;
  const address = "deviceArray" in source ? source.deviceArray : "array" in source ? source.array : undefined;
  return typeof source.schema === "bigint" && typeof address === "bigint";
}

/** Takes what a producer has made for this import alone. */
function takeOwn<T>(exported: unknown, options: FromArrowOptions, make: MakeImported<T>): T {
  if (!(exported instanceof ArrowDeviceArray)) return takeMade(exported, options, make);
  try {
    return takeExport(exported, options, make);
  } catch (error) {
    exported.close();
    throw error;
  }
}

/** Takes structs of a producer's own, which it has made for this import alone. */
function takeMade<T>(made: unknown, options: FromArrowOptions, make: MakeImported<T>): T {
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

function takeExport<T>(exported: ArrowDeviceArray, options: FromArrowOptions, make: MakeImported<T>): T {
  const taken = takeStructs(exported.schemaPtr, exported.ptr, true, options, make);
  exported.take(); // both are moved by now: nothing is left to be released
  return taken;
}

function takeStructs<T>(
  schema: bigint,
  array: bigint,
  isDevice: boolean,
  options: FromArrowOptions,
  make: MakeImported<T>,
): T {
  const field = readSchema(schema);
  const taken = takeArray(array, field, isDevice, options, make);
  releaseSchema(schema); // all that it says is in `field`
  return taken;
}

/**
 * Takes an array of a known type over: its content is moved out of the struct, which is then released as far as its owner
 * can see.
 *
 * @param isDevice whether the struct is an ArrowDeviceArray
 * @param ifRefused where the array is after an error, for messages. Default: still its producer's
 * @throws {ExchangeError} if it cannot be honoured; the struct is then as it was
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
  const held = new Import();
  try {
    const made = make(build(raw, location, held), () => held.close());
    held.adopt(moveOut(address)); // the last step: whatever fails before it leaves the struct as it was
    return made;
  } catch (error) {
    held.close(); // releases nothing yet
    throw error;
  }
}

const host: Location = { type: ARROW_DEVICE.CPU, kind: "host", device: null, stream: null, event: 0n };

/** Moves a struct's content into memory of ours, as the specification says. */
function moveOut(address: bigint): bigint {
  const { size } = struct(ArrowArrayStruct);
  const copy = allocate(size);
  libc().memory.memcpy(copy, address, BigInt(size));
  struct(ArrowArrayStruct).at(address).release = 0n;
  return copy;
}

/** An array that was taken over: released when the last of its buffers is free. */
class Import {
  readonly #buffers: MemoryBuffer[] = [];
  readonly #shared: Shared = { moved: 0n, users: 0, streams: new Map() };

  constructor() {
    this.buffer({ ptr: 0n, size: 0, isHost: true }, host); // so that an array without buffers is held like the others
  }

  /** A buffer of the array. */
  buffer({ ptr, size, isHost }: RawBuffer, location: Location): MemoryBuffer {
    const { kind, device, stream } = isHost ? host : location;
    const owner = this.#shared;
    const at = size === 0 ? 0n : ptr;
    const buffer = MemoryBuffer.fromForeign(at, size, device, kind, stream, owner, owner, release);
    this.#shared.users++;
    this.#buffers.push(buffer);
    return buffer;
  }

  /** Says what is to be released: the struct that the array was moved to. */
  adopt(moved: bigint): void {
    this.#shared.moved = moved;
  }

  /** Closes all buffers. */
  close(): void {
    for (const buffer of this.#buffers) buffer.close();
  }
}

/** What the last buffer needs to release the array, and nothing that leads back to the buffers. */
interface Shared {
  moved: bigint;
  users: number;
  /** Those that the buffers were used on, retained. */
  readonly streams: Map<CudaStream, Disposable>;
}

/** What ends the use of a buffer of an import. */
function release(_: bigint, stream: CudaStream | null, shared: Shared): void {
  const { streams, moved } = shared;
  // Retained, because the next buffer may be closed long after the stream's last user has gone.
  if (stream !== null && !streams.has(stream)) streams.set(stream, stream.retained());
  if (--shared.users > 0) return;
  const orders = moved === 0n ? [] : [...streams.keys()].map((one) => () => hostWaitsBeforeReturn(one.orSuccessor));
  const give = () => {
    if (moved === 0n) return;
    releaseArray(moved);
    libc().loading.free(moved);
  };
  using retained = new DisposableStack();
  for (const one of streams.values()) retained.use(one);
  runAll([...orders, give]);
}

function build(raw: RawArray, location: Location, held: Import): ArrowNode {
  const { field, length, offset, nullCount } = raw;
  const children = raw.children.map((child) => build(child, location, held));
  const dictionary = raw.dictionary === null ? null : build(raw.dictionary, location, held);
  const buffers = raw.buffers.map((buffer) => {
    if (buffer === null) return null;
    const layout = StridedLayout.dense([buffer.size], 1);
    return { buffer: held.buffer(buffer, location), offset: 0, layout, dtype: bytes, readonly: true };
  });
  return new ArrayNode({ field, length, offset, nullCount, buffers, children, dictionary });
}

const bytes = DType.from("uint8");
