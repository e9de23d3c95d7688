/**
 * ArrowArray and ArrowDeviceArray, inwards: foreign structs as an array, and the memory given back once.
 *
 * @module
 */
import {
  ARROW_DEVICE,
  ArrowArray as ArrowArrayStruct,
  ArrowDeviceArray as ArrowDeviceStruct,
} from "../../bindings/arrow.ts";
import { runAll } from "../ffi/run_all.ts";
import { checkPlace } from "../device/check_device.ts";
import type { CudaStream } from "../device/stream.ts";
import { allocate } from "../ffi/arena.ts";
import { libc } from "../ffi/libc.ts";
import { struct } from "../ffi/struct.ts";
import { MemoryBuffer } from "../memory/memory_buffer.ts";
import { StridedMemoryView } from "../view/strided_memory_view.ts";
import { ArrowArray } from "../arrow/array.ts";
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
import type { ArrowStreamPointer } from "../arrow/stream.ts";
import type { ArrowField } from "./type.ts";
import { Walk } from "./walk.ts";
import { ExchangeError } from "../order/exchange_error.ts";
import { hostWaitsBeforeReturn } from "../order/order.ts";

/** Structs that a foreign object has handed over. */
export interface OpenedArrow<Pointers> {
  /** Where they are. */
  readonly pointers: Pointers;
  /** Lets go of what held them. */
  readonly close: () => void;
}

/** A kind of foreign object that hands Arrow's structs over. Both methods return null for objects of another kind. */
export interface ForeignArrow {
  /** The structs of an array. @param requested the field that is wanted; null: any */
  openArray(source: object, requested: ArrowField | null): OpenedArrow<ArrowPointers> | null;
  /** The struct of a stream. @param requested the field that is wanted; null: any */
  openStream(source: object, requested: ArrowField | null): OpenedArrow<ArrowStreamPointer> | null;
}

const kinds: ForeignArrow[] = [];

/** Plugs a kind of foreign object in. */
export function provideForeignArrow(kind: ForeignArrow): void {
  kinds.push(kind);
}

/** What the first kind that knows an object makes of it; null if none does. */
export function openForeign<Pointers>(
  source: unknown,
  open: (kind: ForeignArrow, source: object) => OpenedArrow<Pointers> | null,
): OpenedArrow<Pointers> | null {
  if ((typeof source !== "object" && typeof source !== "function") || source === null) return null;
  for (const kind of kinds) {
    const opened = open(kind, source);
    if (opened !== null) return opened;
  }
  return null;
}

/** Looks at an array before it is taken, and throws if it is not wanted. */
export type Accept = (array: ArrowArray) => void;

/**
 * Takes an array over. See {@linkcode ArrowArray.from}.
 *
 * @param accept called before anything is taken; what it throws leaves everything as it was
 * @throws {ExchangeError} if it cannot be honoured; structs passed in are then still the caller's
 */
export function importArrow(source: unknown, options: FromArrowOptions, accept: Accept = () => {}): ArrowArray {
  checkPlace(options, "Cannot import an Arrow array", fromArrowOptionNames);
  const { requestedSchema = null, ...where } = options;
  const opened = openForeign(source, (kind, object) => kind.openArray(object, requestedSchema));
  if (opened !== null) {
    try {
      return importArrow(opened.pointers, where, accept);
    } finally {
      opened.close();
    }
  }
  if (isArrowDeviceSource(source)) return takeOwn(source.__arrow_c_device_array__({ requestedSchema }), where, accept);
  if (isArrowSource(source)) return takeOwn(source.__arrow_c_array__({ requestedSchema }), where, accept);
  if (requestedSchema !== null) throw tooLate("array");
  if (source instanceof ArrowDeviceArray) return takeExport(source, options, accept);
  if (isPointers(source)) {
    const { schema, deviceArray, array = 0n } = source;
    return takeStructs(schema, deviceArray ?? array, deviceArray !== undefined, options, accept);
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
function takeOwn(exported: unknown, options: FromArrowOptions, accept: Accept): ArrowArray {
  if (!(exported instanceof ArrowDeviceArray)) return takeMade(exported, options, accept);
  try {
    return takeExport(exported, options, accept);
  } catch (error) {
    exported.close();
    throw error;
  }
}

/** Takes structs of a producer's own, which it has made for this import alone. */
function takeMade(made: unknown, options: FromArrowOptions, accept: Accept): ArrowArray {
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
    return takeStructs(schema, address, deviceArray !== undefined, options, accept);
  } catch (error) {
    releaseSchema(schema);
    releaseArray(address);
    throw error;
  }
}

function takeExport(exported: ArrowDeviceArray, options: FromArrowOptions, accept: Accept): ArrowArray {
  const taken = takeStructs(exported.schemaPtr, exported.ptr, true, options, accept);
  exported.take(); // both are moved by now: nothing is left to be released
  return taken;
}

function takeStructs(
  schema: bigint,
  array: bigint,
  isDevice: boolean,
  options: FromArrowOptions,
  accept: Accept,
): ArrowArray {
  const field = readSchema(schema);
  const taken = takeArray(array, field, isDevice, options, accept);
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
export function takeArray(
  address: bigint,
  field: ArrowField,
  isDevice: boolean,
  options: FromArrowOptions,
  accept: Accept,
  ifRefused?: string,
): ArrowArray {
  const walk = new Walk(isDevice ? "ArrowDeviceArray" : "ArrowArray", ifRefused);
  walk.pointer(address, "address");
  const location = isDevice ? readLocation(struct(ArrowDeviceStruct).at(address), options, walk) : host;
  waitFor(location, options);
  const raw = readArray(address, field, integerReader(location), walk);
  const held = new Import();
  try {
    const root = build(raw, location, held, () => held.close());
    accept(root);
    held.adopt(moveOut(address)); // the last step: whatever fails before it leaves the struct as it was
    return root;
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
  /** Those that the buffers were used on, and what ends their being kept. */
  readonly streams: Map<CudaStream, () => void>;
}

/** What ends the use of a buffer of an import. */
function release(_: bigint, stream: CudaStream | null, shared: Shared): void {
  const { streams, moved } = shared;
  // Kept, because the next buffer may be closed long after the stream's last user has gone.
  if (stream !== null && !streams.has(stream)) streams.set(stream, stream.keep());
  if (--shared.users > 0) return;
  const orders = moved === 0n ? [] : [...streams.keys()].map((one) => () => hostWaitsBeforeReturn(one.orSuccessor));
  const give = () => {
    if (moved === 0n) return;
    releaseArray(moved);
    libc().loading.free(moved);
  };
  runAll([...orders, give, ...streams.values()]);
}

function build(raw: RawArray, location: Location, held: Import, onClose?: () => void): ArrowArray {
  const { field, length, offset, nullCount } = raw;
  const children = raw.children.map((child) => build(child, location, held));
  const dictionary = raw.dictionary === null ? null : build(raw.dictionary, location, held);
  const buffers = raw.buffers.map((buffer) => {
    if (buffer === null) return null;
    const shape = [buffer.size];
    return StridedMemoryView.fromBuffer(held.buffer(buffer, location), { shape, dtype: "uint8", readonly: true });
  });
  const parts = { field, length, offset, nullCount, buffers, children, dictionary };
  return new ArrowArray(onClose === undefined ? parts : { ...parts, onClose });
}
