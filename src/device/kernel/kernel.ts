/**
 * Kernels: functions that a grid of threads runs.
 *
 * @module
 */
import { CU_FUNC_ATTRIBUTE, CUresult } from "../../../bindings/cuda_types.ts";
import { NativeArena } from "../../ffi/mod.ts";
import {
  checkMade,
  checkOptions,
  isNameIn,
  none,
  type OptionNames,
  show,
  showAs,
  showGiven,
} from "../../layout/mod.ts";
import { isSameDevice } from "../check_device.ts";
import { noStream } from "../no_stream.ts";
import type { StreamCapture } from "../graph/capture.ts";
import { captureOf } from "../graph/active_captures.ts";
import type { CudaDevice } from "../device.ts";
import { checkCuda, NEEDS_CONTEXT } from "../../driver/mod.ts";
import { ArgumentSlots, isMemory, type KernelArg } from "./kernel_arguments.ts";
import { launchError, type LaunchShape } from "./explain_launch.ts";
import { pinWithCapture } from "./kernel_memory.ts";
import type { CudaStream } from "../stream.ts";

/** Extents along x, y and z; omitted ones are 1. */
export type Dim3 = number | readonly [x: number, y?: number, z?: number];

/** Position and size of one of a kernel's parameters, in bytes. */
export interface KernelParameter {
  /** Offset from the start of the parameters. */
  readonly offset: number;
  /** Size of the parameter. */
  readonly size: number;
}

/** Options of {@linkcode Kernel.launch}. */
export interface LaunchOptions {
  /**
   * Bytes of shared memory beyond what the kernel declares: up to the device's limit per block, even if that is more
   * than the 48 KiB that every device has. Default 0.
   */
  readonly sharedBytes?: number;
}

const launchOptionNames: OptionNames<LaunchOptions> = { sharedBytes: true };

/** The parameters of a launch, for errors about wrong arguments. */
const launchParameters = "stream, grid, block, args";

/** An attribute of a kernel by its name in the header, without the prefix `CU_FUNC_ATTRIBUTE_`. */
export type KernelAttribute = keyof typeof CU_FUNC_ATTRIBUTE;

/** A kernel of a {@linkcode Program}. */
export class Kernel {
  /** The device. */
  readonly device: CudaDevice;
  /** Its name. */
  readonly name: string;
  readonly #handle: bigint;
  readonly #retainCode: () => Disposable;
  /** The slots of all kernels of the program, which closes them if they are dropped with it. */
  readonly #allSlots: Set<ArgumentSlots>;
  #slots: ArgumentSlots | undefined;
  #sizes: readonly number[] | null | undefined;
  #parameters: readonly KernelParameter[] | null | undefined;
  /** Bytes of shared memory that a launch may request, as far as the driver was asked. */
  #sharedMost = 0;
  /** Whether arguments are being written to the slots. */
  #isWriting = false;
  #closed = false;

  /**
   * Use {@linkcode Program.kernel}.
   *
   * @param retainCode keeps the code loaded until its result is disposed
   * @param allSlots gets the memory for arguments as long as it is not freed
   */
  constructor(
    device: CudaDevice,
    name: string,
    handle: bigint,
    retainCode: () => Disposable,
    allSlots: Set<ArgumentSlots>,
  ) {
    checkMade(retainCode, "Kernel", "program.kernel(name)");
    this.device = device;
    this.name = name;
    this.#handle = handle;
    this.#retainCode = retainCode;
    this.#allSlots = allSlots;
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

  /** The parameters, in order; null if the driver does not report them (before CUDA 12.4). */
  get parameters(): readonly KernelParameter[] | null {
    if (this.#parameters === undefined) this.#parameters = this.device.withContext(() => this.#askParameters());
    return this.#parameters;
  }

  // law device/Kernel.launch: device/kernel/kernel, device/kernel/kernel_arguments, device/stream, cuda/bad_input
  /**
   * Enqueues the kernel on a stream. The memory that it uses must stay allocated until the stream has passed it; memory
   * freed on the same stream always does.
   *
   * @param grid number of blocks along each axis
   * @param block threads per block along each axis
   * @param args one for each parameter, in order
   * @throws {RangeError} if an extent is not a positive integer, or the shared memory not an integer of at least 0, or
   *   more than the device has per block
   * @throws {TypeError} if an argument is of an unknown kind or not of the parameter's size, there are too many or too
   *   few, memory is closed or not accessible to the device, or the program or the stream is closed or of another
   *   device
   * @throws {CudaError} if the driver refuses the launch
   */
  launch(stream: CudaStream, grid: Dim3, block: Dim3, args: readonly KernelArg[], options: LaunchOptions = none): void {
    checkOptions(options, launchOptionNames);
    const { sharedBytes = 0 } = options;
    const { device } = this;
    void this.handle; // throws if it is closed
    checkShared(this.name, sharedBytes);
    if (sharedBytes > this.#sharedMost) this.#allowShared(sharedBytes);
    if (stream?.handleFor === undefined) {
      throw noStream(stream, `Cannot launch ${this.name} by launch(${launchParameters})`);
    }
    if (!isSameDevice(stream.device, device)) {
      void stream.handleFor("launch a kernel on"); // throws if it is closed
      throw new TypeError(
        `Cannot launch ${this.name} on a stream of another device: expected ${device}`,
      );
    }
    const sizes = this.#parameterSizes();
    if (sizes === null ? !Array.isArray(args) : sizes.length !== args?.length) {
      throw noArguments(this.name, args, sizes);
    }
    const gx = extent("grid", grid, 0);
    const gy = extent("grid", grid, 1);
    const gz = extent("grid", grid, 2);
    const bx = extent("block", block, 0);
    const by = extent("block", block, 1);
    const bz = extent("block", block, 2);
    const slots = this.#slotsFor(args.length);
    this.#write(slots, args, sizes);
    const { handle } = this; // again: what reads the arguments may run the program's own code
    const on = stream.handleFor("launch a kernel on");
    const { pointers } = slots;
    const { driver } = device;
    let code = NEEDS_CONTEXT;
    if (!stream.needsContext) {
      code = driver.kernel.cuLaunchKernel(handle, gx, gy, gz, bx, by, bz, sharedBytes, on, pointers, 0n);
    }
    if (code === NEEDS_CONTEXT) code = this.#launchWithin([gx, gy, gz, bx, by, bz], sharedBytes, on, pointers);
    if (code !== CUresult.CUDA_SUCCESS) throw launchError(this, code, [gx, gy, gz, bx, by, bz], sharedBytes);
    const capture = captureOf(stream);
    if (capture !== null) this.#retain(args, capture);
  }

  /** An attribute of the kernel. */
  attribute(name: KernelAttribute): number {
    if (!isNameIn(CU_FUNC_ATTRIBUTE, name)) {
      throw new TypeError(`Cannot query the attribute ${show(name)}: expected a name of CU_FUNC_ATTRIBUTE`);
    }
    using arena = new NativeArena();
    const out = arena.out("i32");
    const { driver } = this.device;
    const get = () => driver.kernel.cuFuncGetAttribute(out.$address, CU_FUNC_ATTRIBUTE[name], this.handle);
    checkCuda(driver, "cuFuncGetAttribute", this.device.withContext(get));
    return out.value;
  }

  /** The block size that gives the best occupancy, and the smallest grid of such blocks that fills the device. */
  occupancy(options: LaunchOptions = none): { readonly blockSize: number; readonly minGridSize: number } {
    checkOptions(options, launchOptionNames);
    const { sharedBytes = 0 } = options;
    checkShared(this.name, sharedBytes);
    if (sharedBytes > this.#sharedMost) this.#allowShared(sharedBytes);
    using arena = new NativeArena();
    const [grid, block] = [arena.out("i32"), arena.out("i32")];
    const { driver } = this.device;
    const shared = BigInt(sharedBytes);
    const { cuOccupancyMaxPotentialBlockSize } = driver.kernel;
    const ask = () => cuOccupancyMaxPotentialBlockSize(grid.$address, block.$address, this.handle, 0n, shared, 0);
    checkCuda(driver, "cuOccupancyMaxPotentialBlockSize", this.device.withContext(ask));
    return { blockSize: block.value, minGridSize: grid.value };
  }

  // law device/Kernel.allowShared: device/kernel/kernel
  /** The driver allows launches of a kernel 48 KiB of shared memory; more must be requested beforehand, once. */
  #allowShared(bytes: number): void {
    const { device, name, handle } = this;
    const allowed = this.attribute("MAX_DYNAMIC_SHARED_SIZE_BYTES");
    if (bytes <= allowed) return void (this.#sharedMost = allowed);
    const most = device.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN") - this.attribute("SHARED_SIZE_BYTES");
    if (bytes > most) {
      throw new RangeError(
        `Cannot launch ${name} with ${bytes} bytes of shared memory: ${device} allows a block at most ${most} beyond ` +
          "what the kernel declares. Use less, or device memory",
      );
    }
    const { driver } = device;
    const { MAX_DYNAMIC_SHARED_SIZE_BYTES } = CU_FUNC_ATTRIBUTE;
    const set = () => driver.kernel.cuFuncSetAttribute(handle, MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
    checkCuda(driver, `cuFuncSetAttribute of ${name}`, device.withContext(set));
    this.#sharedMost = bytes;
  }

  // law device/Kernel.write: device/kernel/kernel, device/kernel/kernel_arguments, device/stream
  #write(slots: ArgumentSlots, args: readonly KernelArg[], sizes: readonly number[] | null): void {
    let index = 0;
    this.#isWriting = true;
    try {
      for (; index < args.length; index++) {
        const size = slots.write(index, args[index] as KernelArg, this.device); // as: holes are refused as undefined
        const expected = sizes?.[index] ?? size;
        if (size === expected) continue;
        throw new TypeError(`expected ${expected} bytes, the parameter's size, got ${size}`);
      }
    } catch (error) {
      if (error instanceof Error) error.message = `${this.name}, argument ${index}: ${error.message}`;
      throw error;
    } finally {
      this.#isWriting = false;
      if (this.#closed) this.close(); // now that nothing is written
    }
  }

  // law device/Kernel.slotsFor: device/kernel/kernel, device/kernel/kernel_arguments, device/stream
  #slotsFor(count: number): ArgumentSlots {
    if (this.#isWriting) {
      throw new TypeError(`Cannot launch ${this.name} while the arguments of a launch of it are read`);
    }
    if (this.#slots !== undefined && this.#slots.capacity >= count) return this.#slots;
    this.#closeSlots();
    this.#slots = new ArgumentSlots(Math.max(16, count));
    this.#allSlots.add(this.#slots);
    return this.#slots;
  }

  #closeSlots(): void {
    if (this.#slots === undefined) return;
    this.#allSlots.delete(this.#slots);
    this.#slots.close();
    this.#slots = undefined;
  }

  #launchWithin(shape: LaunchShape, sharedBytes: number, stream: bigint, pointers: bigint): number {
    const { driver } = this.device;
    return this.device.withContext(() =>
      driver.kernel.cuLaunchKernel(this.handle, ...shape, sharedBytes, stream, pointers, 0n)
    );
  }

  /** Size of each parameter in bytes. */
  #parameterSizes(): readonly number[] | null {
    if (this.#sizes === undefined) this.#sizes = this.parameters?.map(({ size }) => size) ?? null;
    return this.#sizes;
  }

  /** Keeps the resources of this launch until the graph is gone. */
  #retain(args: readonly KernelArg[], capture: StreamCapture): void {
    capture.retain({ home: () => null, retained: this.#retainCode() });
    for (const arg of args) if (isMemory(arg)) pinWithCapture(arg, capture);
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
      if (code === CUresult.CUDA_ERROR_INVALID_VALUE) return parameters; // no parameter has this index
      checkCuda(driver, "cuFuncGetParamInfo", code);
      parameters.push({ offset: offset.value, size: size.value });
    }
  }

  /** Frees the memory used by launches. Called by the program. */
  close(): void {
    this.#closed = true;
    if (!this.#isWriting) this.#closeSlots();
  }

  static {
    showAs(Kernel, (kernel) => {
      if (kernel.#closed) return `${kernel.name} of ${kernel.device}, closed`;
      const { parameters } = kernel;
      const sizes = parameters === null ? "" : `(${parameters.map(({ size }) => `${size} bytes`).join(", ")})`;
      return `${kernel.name}${sizes} of ${kernel.device}`;
    });
  }
}

/** The error for arguments that are not an array, or are too many or too few. */
function noArguments(name: string, args: unknown, sizes: readonly number[] | null): TypeError {
  if (Array.isArray(args) && sizes !== null) {
    return new TypeError(
      `Cannot launch ${name}: expected ${sizes.length} arguments, one for each parameter, got ${args.length}`,
    );
  }
  const count = sizes === null ? "" : `, one for each of ${sizes.length} parameters`;
  return new TypeError(
    `Cannot launch ${name} by launch(${launchParameters}): expected an array of arguments${count}, got ${
      showGiven(args)
    }`,
  );
}

function checkShared(name: string, bytes: number): void {
  if (!Number.isInteger(bytes) || bytes < 0 || bytes > 0xffff_ffff) {
    throw new RangeError(
      `Cannot launch ${name} with ${show(bytes)} bytes of shared memory: expected an integer from 0 to 2^32 - 1`,
    );
  }
}

// law device/extent: device/kernel/kernel, device/kernel/kernel_arguments, device/stream, cuda/bad_input
function extent(what: string, dim: Dim3, axis: 0 | 1 | 2): number {
  const first = axis === 0;
  const given = typeof dim !== "object" ? (first ? dim : 1) : dim?.length > 3 ? NaN : dim?.[axis];
  const value = given === undefined ? (first ? NaN : 1) : given;
  if (Number.isInteger(value) && value >= 1 && value <= 0x7fff_ffff) return value;
  throw new RangeError(`Cannot launch a ${what} of ${show(dim)}: expected one to three positive integers below 2^31`);
}
