/**
 * The Arrow C device interface: the types of the protocol, and an exported array.
 *
 * @module
 */
import { checkMade, none, type OptionNames, showAs } from "../layout/mod.ts";
import type { StructDescription } from "../../bindings/abi.ts";
import {
  ArrowArray as ArrowArrayStruct,
  ArrowDeviceArray as ArrowDeviceStruct,
  ArrowSchema,
} from "../../bindings/arrow.ts";
import type { CudaDevice, CudaStream } from "../device/mod.ts";
import { DeferredFinalizer, type FinalizerState, libc, littleEndian, readForeign, struct } from "../ffi/mod.ts";
import { releaseAt } from "./exported_tree.ts";
import { type ArrowField, showType } from "./type.ts";
import { callRelease } from "../native/mod.ts";
import { ExchangeError, type LiveExport } from "../order/mod.ts";

/** Options of `toArrowDevice`, `__arrow_c_device_array__` and `__arrow_c_array__`. */
export interface ToArrowOptions {
  /**
   * The schema that the consumer prefers. Nothing is converted: the array is exported as is, with the requested names
   * and metadata if the types agree; the export is refused if the array cannot be converted to the requested type.
   */
  readonly requestedSchema?: ArrowField | null;
}

/** The names of {@linkcode ToArrowOptions}. */
export const toArrowOptionNames: OptionNames<ToArrowOptions> = { requestedSchema: true };

/** Options of `fromArrowDevice` and `ArrowArray.from`. */
export interface FromArrowOptions {
  /**
   * The stream on which the array will be used, which waits for the producer's event. `null`: no ordering needed.
   * Without a stream the host waits.
   */
  readonly stream?: CudaStream | null;
  /** The device of the array, if no stream implies it. */
  readonly device?: CudaDevice;
  /**
   * The schema to request from a producer that has not made its structs yet. The producer may export another one:
   * `field` tells which.
   */
  readonly requestedSchema?: ArrowField | null;
}

/** The names of {@linkcode FromArrowOptions}. */
export const fromArrowOptionNames: OptionNames<FromArrowOptions> = {
  stream: true,
  device: true,
  requestedSchema: true,
};

/** Addresses of structs that the caller owns: an array of the C data interface, or of the device interface. */
export interface ArrowPointers {
  /** `ArrowSchema *`. */
  readonly schema: bigint;
  /** `ArrowArray *`. */
  readonly array?: bigint;
  /** `ArrowDeviceArray *`. */
  readonly deviceArray?: bigint;
}

/** The address of a stream that the caller owns. */
export type ArrowStreamPointer =
  | {
    /** `ArrowArrayStream *`. */
    readonly stream: bigint;
  }
  | {
    /** `ArrowDeviceArrayStream *`. */
    readonly deviceStream: bigint;
  };

/** An object that exports itself by the Arrow C device interface. */
export interface ArrowDeviceSource {
  /** Exports the array: the consumer releases it. A producer that makes its own structs returns their addresses. */
  __arrow_c_device_array__(options?: ToArrowOptions): ArrowDeviceArray | ArrowPointers;
}

/** An object that exports itself by the Arrow C data interface. */
export interface ArrowSource {
  /** Exports the array: the consumer releases it. A producer that makes its own structs returns their addresses. */
  __arrow_c_array__(options?: ToArrowOptions): ArrowDeviceArray | ArrowPointers;
}

/** Whether an object speaks the Arrow C device interface. */
export function isArrowDeviceSource(source: unknown): source is ArrowDeviceSource {
  return typeof source === "object" && source !== null && "__arrow_c_device_array__" in source &&
    typeof source.__arrow_c_device_array__ === "function";
}

/** Whether an object speaks the Arrow C data interface. */
export function isArrowSource(source: unknown): source is ArrowSource {
  return typeof source === "object" && source !== null && "__arrow_c_array__" in source &&
    typeof source.__arrow_c_array__ === "function";
}

/** One struct of an export. */
export interface ExportState extends LiveExport {
  /** Its address. */
  readonly address: bigint;
  /** Releases it as a consumer would, unless it was released or moved. */
  release(): void;
}

/** The two structs of an export. */
export interface ExportStates {
  /** Name, type, nullability and metadata of the array. */
  readonly field: ArrowField;
  /** The ArrowDeviceArray, with everything in it. */
  readonly array: ExportState;
  /** The ArrowSchema, with everything in it. */
  readonly schema: ExportState;
}

/**
 * An exported array: an `ArrowDeviceArray *`, whose first member is the `ArrowArray`, and an `ArrowSchema *`. Like
 * Python's pair of capsules it is taken by exactly one consumer, which must then release each struct once, or move its
 * content out.
 */
export class ArrowDeviceArray {
  readonly #structs: ExportStates;
  readonly #state: ArrayState;

  // law cdata/ArrowDeviceArray.constructor: arrow/release, order/reclaim, arrow/array, order/programs
  /** Wraps structs that a producer has made. */
  constructor(structs: ExportStates) {
    checkMade(structs, "ArrowDeviceArray", "array.toArrowDevice()");
    this.#structs = structs;
    this.#state = { structs, closed: false };
    finalizer.register(this, this.#state);
  }

  /** Name, type, nullability and metadata of the array. */
  get field(): ArrowField {
    return this.#structs.field;
  }

  /** Address of the `ArrowDeviceArray`, for inspection only. A consumer calls {@linkcode ArrowDeviceArray.take}. */
  get ptr(): bigint {
    this.#checkTaken();
    return this.#structs.array.address;
  }

  /** Address of the `ArrowSchema`, for inspection. */
  get schemaPtr(): bigint {
    this.#checkTaken();
    return this.#structs.schema.address;
  }

  /** Whether the consumer has released the array and every child that it has moved out, and so returned the memory. */
  get released(): boolean {
    const { array, schema } = this.#structs;
    schema.isReleased();
    return array.isReleased();
  }

  // law cdata/ArrowDeviceArray.take: arrow/release, order/reclaim, arrow/array, order/programs, arrow/host_order
  /**
   * Transfers ownership of both structs to a consumer, which must release each once.
   *
   * @returns addresses of the ArrowSchema and the ArrowDeviceArray, which begins with an ArrowArray: the same address
   *   twice, for consumers of either kind
   * @throws {ExchangeError} if they were taken before
   */
  take(): { readonly schema: bigint; readonly array: bigint; readonly deviceArray: bigint } {
    this.#checkTaken();
    this.#state.closed = true;
    this.#state.structs = null; // the garbage collector may keep this for long
    const { schema, array } = this.#structs;
    return { schema: schema.address, array: array.address, deviceArray: array.address };
  }

  // law cdata/ArrowDeviceArray.moveTo: arrow/release, order/reclaim, arrow/array, order/programs
  /**
   * Moves both structs to addresses that a consumer provides, as C producers fill structs allocated by their consumers.
   * The consumer must then release each once. Pass `array` for an ArrowArray, `deviceArray` for an ArrowDeviceArray.
   *
   * @throws {ExchangeError} if they were taken before, or an address is NULL
   */
  moveTo(pointers: ArrowPointers): void {
    const { schema = 0n, array, deviceArray } = pointers ?? none; // undefined in untyped code
    const to = deviceArray ?? array ?? 0n;
    if (schema === 0n || to === 0n) throw new ExchangeError("Cannot move an Arrow array to NULL: pass both addresses");
    const taken = this.take();
    moveStruct(to, taken.array, deviceArray === undefined ? ArrowArrayStruct : ArrowDeviceStruct);
    struct(ArrowArrayStruct).at(taken.array).release = 0n;
    moveStruct(schema, taken.schema, ArrowSchema);
    struct(ArrowSchema).at(taken.schema).release = 0n;
  }

  // law cdata/ArrowDeviceArray.close: arrow/release, order/reclaim, arrow/array, order/programs
  /** Releases both structs if no consumer has taken them. Closing twice is harmless. */
  close(): void {
    if (this.#state.closed) return;
    this.take();
    releaseStructs(this.#structs);
  }

  /** Releases both structs if no consumer has taken them. */
  [Symbol.dispose](): void {
    this.close();
  }

  // law cdata/ArrowDeviceArray.checkTaken: arrow/release, order/reclaim, arrow/array, order/programs
  #checkTaken(): void {
    if (this.#state.closed) {
      throw new ExchangeError("Cannot use this Arrow array: it is closed, or a consumer has taken it over");
    }
  }

  static {
    showAs(ArrowDeviceArray, (array) => {
      const state = array.released ? ", released" : array.#state.closed ? ", taken" : "";
      return `${showType(array.field.type)}${state}`;
    });
  }
}

function moveStruct(to: bigint, from: bigint, description: StructDescription): void {
  libc().memory.memcpy(to, from, BigInt(struct(description).size));
}

/** Both structs, until a consumer has taken them. */
interface ArrayState extends FinalizerState {
  structs: ExportStates | null;
  closed: boolean;
}

/** Releases arrays that are collected before a consumer has taken them. */
const finalizer = new DeferredFinalizer<ArrayState>(({ structs }) => {
  if (structs !== null) releaseStructs(structs);
});

function releaseStructs({ schema, array }: ExportStates): void {
  schema.release();
  array.release();
}

/** Calls the release callback of a schema, unless it was released or moved. */
export function releaseSchema(address: bigint): void {
  releaseStruct(address, releaseAt.ArrowSchema);
}

/** Calls the release callback of an array, unless it was released or moved. */
export function releaseArray(address: bigint): void {
  releaseStruct(address, releaseAt.ArrowArray);
}

function releaseStruct(address: bigint, at: number): void {
  const release = readForeign(address, at + 8).getBigUint64(at, littleEndian);
  if (release !== 0n) callRelease(release, address);
}
