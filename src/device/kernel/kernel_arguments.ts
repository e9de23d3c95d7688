/**
 * The arguments of a kernel, as passed by the caller and as read by the driver.
 *
 * @module
 */
import { NativeArena } from "../../ffi/mod.ts";
import {
  DType,
  type DTypeName,
  type ElementValue,
  type Scalar,
  type ScalarName,
  type WritableOf,
} from "../../layout/mod.ts";
import type { CudaDevice } from "../device.ts";
import { checkReachable, type KernelMemory } from "./kernel_memory.ts";

/**
 * An argument: memory (a buffer, a view, anything with an address), an address or 64-bit integer as bigint, or a value
 * with its type, because JavaScript numbers do not imply a C type: `["float32", 2.5]`, and for C++'s `float4`
 * `["float32x4", [1, 2, 3, 4]]`.
 */
export type KernelArg =
  | bigint
  | KernelMemory
  | { readonly [Name in ScalarName]: readonly [dtype: Name, value: WritableOf<Name>] }[ScalarName]
  | readonly [dtype: `${ScalarName}x1`, lane: Scalar]
  | readonly [dtype: `${ScalarName}x${number}`, lanes: readonly Scalar[]]
  | readonly [dtype: DType, value: ElementValue];

/** Size in bytes of the widest argument passed by value. */
const slotBytes = 16;

/** Memory for arguments, which the driver copies during the call. */
export class ArgumentSlots {
  /** The number of slots. */
  readonly capacity: number;
  /** Address of the array of pointers to the slots. */
  readonly pointers: bigint;
  readonly #arena = new NativeArena();
  readonly #values: DataView;

  constructor(capacity: number) {
    const values = this.#arena.bytes(capacity * slotBytes, slotBytes);
    const pointers = this.#arena.bytes(capacity * 8);
    const list = new DataView(pointers.bytes.buffer, pointers.bytes.byteOffset);
    for (let i = 0; i < capacity; i++) list.setBigUint64(8 * i, values.address + BigInt(i * slotBytes), true);
    this.capacity = capacity;
    this.pointers = pointers.address;
    this.#values = new DataView(values.bytes.buffer, values.bytes.byteOffset, values.bytes.byteLength);
  }

  // law device/ArgumentSlots.write: device/kernel/kernel, device/kernel/kernel_arguments, sim/behaviours
  /**
   * Writes an argument.
   *
   * @param device where the kernel runs: it must be able to reach memory arguments
   * @returns its size in bytes
   * @throws {TypeError} whose message begins with what was expected, or {RangeError}, if it cannot be passed
   */
  write(index: number, arg: KernelArg, device: CudaDevice): number {
    const values = this.#values;
    const at = index * slotBytes;
    if (typeof arg === "bigint") {
      const word = BigInt.asUintN(64, arg);
      if (word !== arg && BigInt.asIntN(64, arg) !== arg) throw new RangeError(`${arg} does not fit in 64 bits`);
      values.setBigUint64(at, word, true);
      return 8;
    }
    if (isTyped(arg)) return writeTyped(values, at, arg[0], arg[1]);
    const ptr = typeof arg === "object" && arg !== null ? arg.ptr : undefined;
    if (typeof ptr !== "bigint") {
      throw new TypeError(
        `expected memory, a bigint, or a number with its type such as ["float32", 1], got ${describe(arg)}`,
      );
    }
    checkReachable(arg, device);
    values.setBigUint64(at, ptr, true);
    return 8;
  }

  /** Frees the slots. */
  close(): void {
    this.#arena.close();
  }
}

// law device/writeTyped: device/kernel/kernel, device/kernel/kernel_arguments, sim/behaviours
/** Writes a value. @returns its size in bytes */
function writeTyped(values: DataView, at: number, name: DTypeName | DType, value: ElementValue): number {
  // Fast path for the most common types, without looking up the dtype and its writer.
  if (typeof value === "number") {
    if (name === "float32") {
      values.setFloat32(at, value, true);
      return 4;
    }
    if (name === "int32" && value === (value | 0)) {
      values.setInt32(at, value, true);
      return 4;
    }
  }
  const dtype = DType.from(name);
  if (dtype.itemsize > slotBytes) throw new TypeError(`${dtype.name} is too large to be passed by value`);
  dtype.write(values, at, value);
  return dtype.itemsize;
}

/** Whether a valid argument is memory. */
export function isMemory(arg: KernelArg): arg is KernelMemory {
  return typeof arg === "object" && !isTyped(arg);
}

function isTyped(arg: KernelArg): arg is Extract<KernelArg, readonly unknown[]> {
  return Array.isArray(arg) && arg.length === 2 && (typeof arg[0] === "string" || arg[0] instanceof DType);
}

/** The kind of a value that is not a valid argument, for a message. */
function describe(value: unknown): string {
  if (ArrayBuffer.isView(value)) return "a JavaScript array: copy it to the device first";
  return value === null ? "null" : typeof value;
}
