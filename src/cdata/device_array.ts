/**
 * The Arrow C device interface: what an export is, and the protocol's vocabulary.
 *
 * @module
 */
import type { StructDescription } from "../../bindings/abi.ts";
import {
  ArrowArray as ArrowArrayStruct,
  ArrowDeviceArray as ArrowDeviceStruct,
  ArrowSchema,
} from "../../bindings/arrow.ts";
import type { CudaDevice, CudaStream } from "../device/mod.ts";
import {
  DeferredFinalizer,
  type FinalizerState,
  layoutOf,
  libc,
  littleEndian,
  readForeign,
  struct,
} from "../ffi/mod.ts";
import type { OptionNames } from "../layout/mod.ts";
import type { ArrowField } from "./type.ts";
import { callRelease } from "../native/mod.ts";
import { ExchangeError, type LiveExport } from "../order/mod.ts";

/** Options of `toArrowDevice`, `__arrow_c_device_array__` and `__arrow_c_array__`. */
export interface ToArrowOptions {
  /**
   * What the consumer would like to get. Nothing is converted: the array goes out as it is, under the names and metadata
   * that are wanted if its type is, and an array that could not be converted to the wanted type is refused.
   */
  readonly requestedSchema?: ArrowField | null;
}

/** The names of {@linkcode ToArrowOptions}. */
export const toArrowOptionNames: OptionNames<ToArrowOptions> = { requestedSchema: true };

/** Options of `fromArrowDevice` and `ArrowArray.from`. */
export interface FromArrowOptions {
  /**
   * The stream on which the array will be used: it is made to wait for the producer's event. `null`: no order is wanted.
   * Without a stream the host waits.
   */
  readonly stream?: CudaStream | null;
  /** The device of the array, where no stream says it. */
  readonly device?: CudaDevice;
  /**
   * What is wanted of a producer that is still to make its structs. It gives that if it can, and what it has if it cannot:
   * `field` says which.
   */
  readonly requestedSchema?: ArrowField | null;
}

/** The names of {@linkcode FromArrowOptions}. */
export const fromArrowOptionNames: OptionNames<FromArrowOptions> = {
  stream: true,
  device: true,
  requestedSchema: true,
};

/** Addresses of structs that are the caller's to give away: an array of the C data interface, or of the device interface. */
export interface ArrowPointers {
  /** `ArrowSchema *`. */
  readonly schema: bigint;
  /** `ArrowArray *`. */
  readonly array?: bigint;
  /** `ArrowDeviceArray *`. */
  readonly deviceArray?: bigint;
}

/** The address of a stream that is the caller's to give away. */
export type ArrowStreamPointer =
  | {
    /** `ArrowArrayStream *`. */
    readonly stream: bigint;
  }
  | {
    /** `ArrowDeviceArrayStream *`. */
    readonly deviceStream: bigint;
  };

/** Any object that can hand itself over by the Arrow C device interface. */
export interface ArrowDeviceSource {
  /** Hands the array over: the consumer releases it. Who makes structs of its own returns their addresses. */
  __arrow_c_device_array__(options?: ToArrowOptions): ArrowDeviceArray | ArrowPointers;
}

/** Any object that can hand itself over by the Arrow C data interface. */
export interface ArrowSource {
  /** Hands the array over: the consumer releases it. Who makes structs of its own returns their addresses. */
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

/** A struct of an export. */
export interface ExportState extends LiveExport {
  /** Where it is. */
  readonly address: bigint;
  /** Releases it as a consumer would, unless it is released or moved. */
  release(): void;
}

/** The two structs of an export. */
export interface ExportStates {
  /** What the array is. */
  readonly field: ArrowField;
  /** The ArrowDeviceArray, and all that is in it. */
  readonly array: ExportState;
  /** The ArrowSchema, and all that is in it. */
  readonly schema: ExportState;
}

/**
 * An exported array: an `ArrowDeviceArray *`, whose first member is the `ArrowArray`, and an `ArrowSchema *`, on their way
 * to a consumer. The counterpart of Python's pair of capsules: exactly one consumer may take them over, and must then
 * release each once, or move its content out of it.
 */
export class ArrowDeviceArray {
  readonly #holders: ExportStates;
  readonly #held: Untaken;

  /** Wraps structs that a producer has made. */
  constructor(holders: ExportStates) {
    this.#holders = holders;
    this.#held = { holders, closed: false };
    untaken.register(this, this.#held);
  }

  /** What the array is. */
  get field(): ArrowField {
    return this.#holders.field;
  }

  /** Address of the `ArrowDeviceArray`, to look at. To pass it on to a consumer use {@linkcode ArrowDeviceArray.take}. */
  get ptr(): bigint {
    this.#checkTaken();
    return this.#holders.array.address;
  }

  /** Address of the `ArrowSchema`, to look at. */
  get schemaPtr(): bigint {
    this.#checkTaken();
    return this.#holders.schema.address;
  }

  /** Whether the consumer has released the array, and every child that it has moved out; the memory is then the producer's again. */
  get released(): boolean {
    const { array, schema } = this.#holders;
    schema.isReleased();
    return array.isReleased();
  }

  /**
   * Gives both structs to a consumer, which must release each once.
   *
   * @returns addresses of the ArrowSchema and the ArrowDeviceArray, which begins with an ArrowArray: the same address twice,
   *   for consumers of either
   * @throws {ExchangeError} if they were given away before
   */
  take(): { readonly schema: bigint; readonly array: bigint; readonly deviceArray: bigint } {
    this.#checkTaken();
    this.#held.closed = true;
    this.#held.holders = null; // the collector may keep this for long
    const { schema, array } = this.#holders;
    return { schema: schema.address, array: array.address, deviceArray: array.address };
  }

  /**
   * Moves both structs to where a consumer wants them, as C producers fill structs that their consumers have allocated.
   * The consumer must then release each once. Whether it takes an ArrowArray or an ArrowDeviceArray is told by the name.
   *
   * @throws {ExchangeError} if they were given away before, or an address is NULL
   */
  moveTo({ schema, array, deviceArray }: ArrowPointers): void {
    const to = deviceArray ?? array ?? 0n;
    if (schema === 0n || to === 0n) throw new ExchangeError("Cannot move an Arrow array to NULL: pass both addresses");
    const taken = this.take();
    moveStruct(to, taken.array, deviceArray === undefined ? ArrowArrayStruct : ArrowDeviceStruct);
    struct(ArrowArrayStruct).at(taken.array).release = 0n;
    moveStruct(schema, taken.schema, ArrowSchema);
    struct(ArrowSchema).at(taken.schema).release = 0n;
  }

  /** Releases both structs if no consumer has taken them over. Closing twice is harmless. */
  close(): void {
    if (this.#held.closed) return;
    this.take();
    releaseBoth(this.#holders);
  }

  /** Releases both structs if no consumer has taken them over. */
  [Symbol.dispose](): void {
    this.close();
  }

  #checkTaken(): void {
    if (this.#held.closed) throw new ExchangeError("Cannot use this Arrow array: a consumer has already taken it over");
  }
}

function moveStruct(to: bigint, from: bigint, description: StructDescription): void {
  libc().memory.memcpy(to, from, BigInt(struct(description).size));
}

/** An array on its way; it is closed when a consumer has taken it over. */
interface Untaken extends FinalizerState {
  holders: ExportStates | null;
  closed: boolean;
}

/** Arrays that were dropped before anybody took them over are released all the same. */
const untaken = new DeferredFinalizer<Untaken>(({ holders }) => {
  if (holders !== null) releaseBoth(holders);
});

function releaseBoth({ schema, array }: ExportStates): void {
  schema.release();
  array.release();
}

const releaseAt = {
  schema: layoutOf(ArrowSchema).offsets.release,
  array: layoutOf(ArrowArrayStruct).offsets.release,
};

/** Calls the release callback of a schema, unless it is released or moved. */
export function releaseSchema(address: bigint): void {
  const release = readForeign(address, releaseAt.schema + 8).getBigUint64(releaseAt.schema, littleEndian);
  if (release !== 0n) callRelease(release, address);
}

/** Calls the release callback of an array, unless it is released or moved. */
export function releaseArray(address: bigint): void {
  const release = readForeign(address, releaseAt.array + 8).getBigUint64(releaseAt.array, littleEndian);
  if (release !== 0n) callRelease(release, address);
}
