/**
 * Kernels: functions that a grid of threads runs.
 *
 * @module
 */
import { CU_FUNC_ATTRIBUTE, CUresult } from "../../bindings/cuda_types.ts";
import { NativeArena } from "../ffi/arena.ts";
import { DType } from "../layout/mod.ts";
import { isSameDevice } from "./belonging.ts";
import type { StreamCapture } from "./capture.ts";
import { captureOf } from "./captures.ts";
import type { CudaDevice } from "./device.ts";
import { checkCuda } from "./driver.ts";
import { checkReachable, keepMemory, type KernelMemory } from "./kernel_memory.ts";
import type { CudaStream } from "./stream.ts";

/** Extents along x, y and z; what is left out is 1. */
export type Dim3 = number | readonly [x: number, y?: number, z?: number];

/**
 * An argument: memory (a buffer, a view, anything with an address), an address or 64-bit integer as bigint, or a number
 * with its type, `["float32", 2.5]`, because JavaScript's numbers do not say how wide C's are.
 */
export type KernelArg = bigint | KernelMemory | readonly [dtype: string, value: number | bigint | boolean];

/** Where a parameter of a kernel is among its parameters, in bytes. */
export interface KernelParameter {
  /** From the beginning of the parameters. */
  readonly offset: number;
  /** How many it takes. */
  readonly size: number;
}

/** Options of {@linkcode Kernel.launch}. */
export interface LaunchOptions {
  /** Bytes of shared memory beyond what the kernel declares. Default 0. */
  readonly sharedBytes?: number;
}

/** An attribute of a kernel by its name in the header, without the prefix `CU_FUNC_ATTRIBUTE_`. */
export type KernelAttribute = keyof typeof CU_FUNC_ATTRIBUTE;

/** The widest argument that is passed by value. */
const slotBytes = 16;

/** A kernel of a {@linkcode Program}. */
export class Kernel {
  /** The device. */
  readonly device: CudaDevice;
  /** Its name. */
  readonly name: string;
  readonly #handle: bigint;
  readonly #hold: () => () => void;
  #scratch: Scratch | undefined;
  #parameters: readonly KernelParameter[] | null | undefined;
  #closed = false;

  /**
   * Use {@linkcode Program.kernel}.
   *
   * @param hold keeps the code loaded until what it returns is called
   */
  constructor(device: CudaDevice, name: string, handle: bigint, hold: () => () => void) {
    this.device = device;
    this.name = name;
    this.#handle = handle;
    this.#hold = hold;
  }

  /**
   * `CUfunction`.
   *
   * @throws {TypeError} if its program is closed
   */
  get handle(): bigint {
    if (this.#closed) throw new TypeError(`Cannot use the kernel ${this.name}: its Program is closed`);
    return this.#handle;
  }

  /** The parameters, in order; null if the driver does not tell (before CUDA 12.4). */
  get parameters(): readonly KernelParameter[] | null {
    if (this.#parameters === undefined) this.#parameters = this.device.within(() => this.#askParameters());
    return this.#parameters;
  }

  /**
   * Enqueues the kernel on a stream. The memory that it uses must stay allocated until the stream has passed it, which
   * memory freed on the same stream does by itself.
   *
   * @param grid blocks, along each axis
   * @param block threads of a block, along each axis
   * @param args one for each parameter, in order
   * @throws {RangeError} if an extent is no positive integer, or the shared memory no integer of at least 0
   * @throws {TypeError} if an argument is of no known kind or not of the parameter's size, there are too many or too few,
   *   memory is closed or out of the device's reach, or the program or the stream is closed or of another device
   * @throws {CudaError} if the driver refuses the launch
   */
  launch(stream: CudaStream, grid: Dim3, block: Dim3, args: readonly KernelArg[], options: LaunchOptions = {}): void {
    const { sharedBytes = 0 } = options;
    const { device, handle } = this;
    const [gx, gy, gz] = [extent("grid", grid, 0), extent("grid", grid, 1), extent("grid", grid, 2)];
    const [bx, by, bz] = [extent("block", block, 0), extent("block", block, 1), extent("block", block, 2)];
    checkShared(this.name, sharedBytes);
    const on = stream.handle;
    if (!isSameDevice(stream.device, device)) {
      throw new TypeError(
        `Cannot launch ${this.name} on a stream of another device: expected device ${device.ordinal}`,
      );
    }
    if (this.#scratch === undefined || this.#scratch.capacity < args.length) {
      this.#scratch?.arena.close();
      this.#scratch = makeScratch(Math.max(16, args.length));
    }
    const { values, pointers } = this.#scratch;
    const { parameters } = this;
    if (parameters !== null && parameters.length !== args.length) {
      throw new TypeError(
        `Cannot launch ${this.name}: expected ${parameters.length} arguments, one for each parameter, got ${args.length}`,
      );
    }
    let index = 0;
    for (const arg of args) {
      this.#write(values, index, arg, parameters?.[index]?.size);
      index++;
    }
    const { driver } = device;
    const code = stream.enqueue(() =>
      driver.kernel.cuLaunchKernel(handle, gx, gy, gz, bx, by, bz, sharedBytes, on, pointers, 0n)
    );
    if (code !== CUresult.CUDA_SUCCESS) checkCuda(driver, `cuLaunchKernel of ${this.name}`, code);
    const capture = captureOf(stream);
    if (capture !== null) this.#keep(args, capture);
  }

  /** An attribute of the kernel. */
  attribute(name: KernelAttribute): number {
    if (!Object.hasOwn(CU_FUNC_ATTRIBUTE, name)) {
      throw new TypeError(`Cannot ask for the attribute ${name}: expected a name of CU_FUNC_ATTRIBUTE`);
    }
    using arena = new NativeArena();
    const out = arena.out("i32");
    const { driver } = this.device;
    const get = () => driver.kernel.cuFuncGetAttribute(out.$address, CU_FUNC_ATTRIBUTE[name], this.handle);
    checkCuda(driver, "cuFuncGetAttribute", this.device.within(get));
    return out.value;
  }

  /** The size of block that keeps the device busiest, and the smallest grid of such blocks that fills it. */
  occupancy(options: LaunchOptions = {}): { readonly blockSize: number; readonly minGridSize: number } {
    checkShared(this.name, options.sharedBytes ?? 0);
    using arena = new NativeArena();
    const [grid, block] = [arena.out("i32"), arena.out("i32")];
    const { driver } = this.device;
    const shared = BigInt(options.sharedBytes ?? 0);
    const { cuOccupancyMaxPotentialBlockSize } = driver.kernel;
    const ask = () => cuOccupancyMaxPotentialBlockSize(grid.$address, block.$address, this.handle, 0n, shared, 0);
    checkCuda(driver, "cuOccupancyMaxPotentialBlockSize", this.device.within(ask));
    return { blockSize: block.value, minGridSize: grid.value };
  }

  #write(values: DataView, index: number, arg: KernelArg, expected: number | undefined): void {
    try {
      const size = write(values, index * slotBytes, arg);
      if (expected !== undefined && size !== expected) {
        throw new TypeError(`expected ${expected} bytes, which the parameter takes, got ${size}`);
      }
      if (isMemory(arg)) checkReachable(arg, this.device);
    } catch (error) {
      if (error instanceof Error) error.message = `${this.name}, argument ${index}: ${error.message}`;
      throw error;
    }
  }

  /** What a graph of this launch needs stays until the graph is gone. */
  #keep(args: readonly KernelArg[], capture: StreamCapture): void {
    capture.keep({ home: () => null, release: this.#hold() });
    for (const arg of args) if (isMemory(arg)) keepMemory(arg, capture);
  }

  #askParameters(): readonly KernelParameter[] | null {
    const { driver } = this.device;
    const { cuFuncGetParamInfo } = driver.kernel;
    if (cuFuncGetParamInfo === null) return null;
    using arena = new NativeArena();
    const [offset, size] = [arena.out("size"), arena.out("size")];
    const parameters: KernelParameter[] = [];
    for (;;) {
      const code = cuFuncGetParamInfo(this.handle, BigInt(parameters.length), offset.$address, size.$address);
      if (code === CUresult.CUDA_ERROR_INVALID_VALUE) return parameters; // there is none of this index
      checkCuda(driver, "cuFuncGetParamInfo", code);
      parameters.push({ offset: offset.value, size: size.value });
    }
  }

  /** Frees what launches have needed. Called by the program. */
  close(): void {
    this.#closed = true;
    this.#scratch?.arena.close();
    this.#scratch = undefined;
  }
}

/** Where arguments are put for the driver, which copies them during the call. */
interface Scratch {
  readonly arena: NativeArena;
  readonly capacity: number;
  readonly values: DataView;
  /** Address of the array of pointers to the values. */
  readonly pointers: bigint;
}

function makeScratch(capacity: number): Scratch {
  const arena = new NativeArena();
  const values = arena.bytes(capacity * slotBytes, slotBytes);
  const pointers = arena.bytes(capacity * 8);
  const list = new DataView(pointers.bytes.buffer, pointers.bytes.byteOffset);
  for (let i = 0; i < capacity; i++) list.setBigUint64(8 * i, values.address + BigInt(i * slotBytes), true);
  const { buffer, byteOffset, byteLength } = values.bytes;
  return { arena, capacity, values: new DataView(buffer, byteOffset, byteLength), pointers: pointers.address };
}

/** Writes an argument. @returns the bytes that it takes */
function write(values: DataView, at: number, arg: KernelArg): number {
  if (typeof arg === "bigint") {
    const word = BigInt.asUintN(64, arg);
    if (word !== arg && BigInt.asIntN(64, arg) !== arg) throw new RangeError(`${arg} does not fit 64 bits`);
    values.setBigUint64(at, word, true);
    return 8;
  }
  if (isTyped(arg)) {
    const dtype = DType.from(arg[0]);
    if (dtype.itemsize > slotBytes) throw new TypeError(`${dtype.name} is too large to be passed by value`);
    dtype.write(values, at, arg[1]);
    return dtype.itemsize;
  }
  if (isMemory(arg)) {
    values.setBigUint64(at, arg.ptr, true);
    return 8;
  }
  throw new TypeError(
    `expected memory, a bigint, or a number with its type such as ["float32", 1], got ${describe(arg)}`,
  );
}

function isMemory(arg: KernelArg): arg is KernelMemory {
  return typeof arg === "object" && arg !== null && !Array.isArray(arg) && "ptr" in arg && typeof arg.ptr === "bigint";
}

/** The kind of a value that is no argument, for a message. */
function describe(value: unknown): string {
  if (ArrayBuffer.isView(value)) return "an array of JavaScript: copy it to the device first";
  return value === null ? "null" : typeof value;
}

function checkShared(name: string, bytes: number): void {
  if (!Number.isInteger(bytes) || bytes < 0 || bytes > 0xffff_ffff) {
    throw new RangeError(
      `Cannot launch ${name} with ${bytes} bytes of shared memory: expected an integer of at least 0`,
    );
  }
}

function isTyped(arg: KernelArg): arg is readonly [dtype: string, value: number | bigint | boolean] {
  return Array.isArray(arg) && arg.length === 2 && typeof arg[0] === "string";
}

function extent(what: string, dim: Dim3, axis: 0 | 1 | 2): number {
  const value = (typeof dim === "number" ? (axis === 0 ? dim : 1) : dim[axis]) ?? 1;
  if (Number.isInteger(value) && value >= 1 && value <= 0x7fff_ffff) return value;
  const [x, y = 1, z = 1] = typeof dim === "number" ? [dim] : dim;
  throw new RangeError(`Cannot launch a ${what} of (${x}, ${y}, ${z}): expected positive integers`);
}
