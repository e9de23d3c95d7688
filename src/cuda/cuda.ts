/**
 * The root of CUDA: a driver, and the devices that it offers.
 *
 * @module
 */
import { CUresult } from "../../bindings/cuda_types.ts";
import { ffiPort, isAddress, LibraryNotFoundError, NativeArena, openLibrary, runAll } from "../ffi/mod.ts";
import { checkMade, checkOptions, none, type OptionNames, show, showAs } from "../layout/mod.ts";
import { CudaDevice, type PointerAttributes, PointerQuery } from "../device/mod.ts";
import { checkCuda, type CudaDriver, CudaError, decodeVersion, libcuda, observerOf } from "../driver/mod.ts";
import { CausalityChecker, type CausalityReport, checkIsDriver, type CheckOptions } from "../checker/mod.ts";
import { DeviceMemoryResource } from "../memory/mod.ts";
import { simulateDriver, simulateOptionNames, type SimulateOptions } from "../sim/mod.ts";

/** What {@linkcode Cuda.probe} found. */
export interface CudaProbe {
  /** Whether `Cuda.open()` would succeed. */
  readonly available: boolean;
  /** Why not; empty if it would. */
  readonly reason: string;
  /** Where libcuda was searched for without success; empty if it was found. */
  readonly searched: string[];
}

/** Options of {@linkcode Cuda.device}. */
export interface DeviceOptions {
  /** The device's name in errors, reports and on the console, beside its number. Default: unchanged, at first none. */
  readonly name?: string;
}

const deviceOptionNames: OptionNames<DeviceOptions> = { name: true };

/** Whether to check, and how. */
export interface CheckedOptions {
  /**
   * Whether the driver is checked, and how. Default: as set in the environment, `CAUSEWAY_CHECK=1` for everything,
   * `CAUSEWAY_CHECK=order` for everything but leaks; otherwise, and for a driver that is passed in, unchecked.
   */
  readonly check?: boolean | CheckOptions;
}

const checkedOptionNames: OptionNames<CheckedOptions> = { check: true };

/** A function, because nothing of the simulator is used before it is needed: the package for Bun loads it then. */
const checkedSimulateOptionNames = (): OptionNames<SimulateOptions & CheckedOptions> => ({
  ...simulateOptionNames,
  ...checkedOptionNames,
});

/**
 * CUDA, opened: a driver and its devices.
 *
 * @example
 * ```ts ignore
 * using cuda = Cuda.open();
 * for (const device of cuda.devices) console.log(device.name);
 * ```
 */
export class Cuda {
  /** The driver's functions. */
  readonly driver: CudaDriver;
  /** Path of the driver's library. */
  readonly path: string;
  /** The devices, by ordinal. */
  readonly devices: readonly CudaDevice[];
  /** The newest CUDA version that the driver supports: `[13, 0]`. */
  readonly driverVersion: [major: number, minor: number];
  #pointers: PointerQuery | undefined;
  #closed = false;

  // law cuda/Cuda.constructor: device/device
  private constructor(driver: CudaDriver, path: string) {
    checkMade(path, "Cuda", "Cuda.open(), Cuda.simulate() or Cuda.over(driver)");
    using arena = new NativeArena();
    const out = arena.out("i32");
    this.driver = driver;
    this.path = path;
    const { cuInit, cuDriverGetVersion, cuDeviceGetCount } = driver.opening;
    checkCuda(driver, "cuInit", cuInit(0));
    checkCuda(driver, "cuDriverGetVersion", cuDriverGetVersion(out.$address));
    this.driverVersion = decodeVersion(out.value);
    checkCuda(driver, "cuDeviceGetCount", cuDeviceGetCount(out.$address));
    const devices: CudaDevice[] = [];
    const makeMemory = (device: CudaDevice) => new DeviceMemoryResource(device);
    for (let ordinal = 0; ordinal < out.value; ordinal++) {
      devices.push(new CudaDevice(driver, ordinal, devices, makeMemory));
    }
    this.devices = devices;
  }

  /**
   * Opens libcuda and initialises it.
   *
   * @param options whether the order of all calls is checked
   * @throws {LibraryNotFoundError} if there is no libcuda
   * @throws {CudaError} if the driver does not start: CUDA_ERROR_NO_DEVICE without a GPU
   */
  static open(options: CheckedOptions = {}): Cuda {
    checkOptions(options, checkedOptionNames);
    const { path, functions } = openLibrary(libcuda);
    return new Cuda(checkIfWanted(functions, options), path);
  }

  /**
   * A CUDA that needs no GPU: a driver in TypeScript that does queued work in any order that CUDA allows, so that a
   * missing wait shows up as wrong bytes. Its `path` is `simulated`.
   *
   * @example
   * ```ts
   * import { Cuda } from "@causeway/causeway";
   *
   * using cuda = Cuda.simulate({ devices: 2, seed: 1 });
   * console.log(cuda.devices.length); // 2
   * ```
   *
   * @throws {RangeError} if a number of devices or bytes is not an integer of at least 0, there are more than 4864
   *   devices, the number of instructions is not an integer of at least 1, or the seed is not an integer
   * @throws {TypeError} for an option of another kind, and an unknown schedule
   * @throws {CudaError} CUDA_ERROR_NO_DEVICE for no devices
   */
  static simulate(options: SimulateOptions & CheckedOptions = {}): Cuda {
    checkOptions(options, checkedSimulateOptionNames());
    const { check, ...machine } = options;
    return new Cuda(checkIfWanted(simulateDriver(machine).driver, check === undefined ? {} : { check }), "simulated");
  }

  /**
   * A CUDA over any driver: a checked one, a simulated one that a test has made, or one of your own.
   *
   * @example
   * ```ts
   * import { Cuda } from "@causeway/causeway";
   * import { simulateDriver } from "@causeway/causeway/sim";
   *
   * const simulated = simulateDriver({ seed: 7 });
   * using cuda = Cuda.over(simulated.driver);
   * console.log(cuda.path); // given
   * ```
   *
   * @param driver with the functions of libcuda, closed by the code that made it
   * @param options whether the order of all calls is checked. Default: unchecked, whatever the environment says
   * @throws {CudaError} if the driver does not start, or has no devices
   * @throws {TypeError} if it is not a driver
   */
  static over(driver: CudaDriver, options: CheckedOptions = {}): Cuda {
    checkOptions(options, checkedOptionNames);
    checkIsDriver(driver);
    return new Cuda(checkIfWanted(driver, { check: options.check ?? false }), "given");
  }

  /** Whether CUDA can be opened here, and if not, why: a missing driver or GPU does not throw. */
  static probe(): CudaProbe {
    try {
      using cuda = Cuda.open();
      return cuda.devices.length > 0
        ? { available: true, reason: "", searched: [] }
        : { available: false, reason: "The driver reports no device", searched: [] };
    } catch (error) {
      if (error instanceof LibraryNotFoundError) {
        const searched = error.attempts.map(({ path }) => path);
        return { available: false, reason: `${error.library} was not found. ${error.remedy}`, searched };
      }
      if (error instanceof CudaError) return { available: false, reason: explain(error), searched: [] };
      throw error;
    }
  }

  // law cuda/Cuda.device: device/device
  /**
   * The device with this ordinal.
   *
   * @param options `name`: its name in errors, reports and on the console from now on, beside its number
   * @throws {RangeError} if there is none
   * @throws {TypeError} for an empty name
   */
  device(ordinal: number, options: DeviceOptions = none): CudaDevice {
    checkOptions(options, deviceOptionNames);
    const device = Number.isInteger(ordinal) ? this.devices[ordinal] : undefined; // a text would name a member
    if (device === undefined) {
      throw new RangeError(`Cannot use device ${show(ordinal)}: expected 0 to ${this.devices.length - 1}`);
    }
    if (options.name !== undefined) device.label = options.name;
    return device;
  }

  // law cuda/Cuda.pointerAttributes: device/device
  /**
   * What the driver knows about an address, which may come from any library in the process: one call.
   *
   * @example
   * ```ts
   * import { Cuda, DeviceMemoryResource } from "@causeway/causeway";
   *
   * using cuda = Cuda.simulate();
   * using buffer = new DeviceMemoryResource(cuda.device(0)).allocate(64);
   * console.log(cuda.pointerAttributes(buffer.ptr).kind); // device
   * ```
   *
   * @throws {TypeError} if the Cuda is closed
   * @throws {RangeError} if the address has more than 64 bits
   */
  pointerAttributes(ptr: bigint): PointerAttributes {
    if (this.#closed) throw new TypeError("Cannot query pointer attributes of a closed Cuda");
    if (!isAddress(ptr)) throw new RangeError(`Cannot query address ${show(ptr)}: expected 64 bits`);
    this.#pointers ??= new PointerQuery(this.driver, this.devices);
    return this.#pointers.ask(ptr);
  }

  /** What the checker has reported so far, thrown or not; empty if the driver is not checked. */
  get reports(): readonly CausalityReport[] {
    return this.#checker?.reports ?? [];
  }

  /** The checker of the driver; null, without loading one, if nothing observes the driver. */
  get #checker(): CausalityChecker | null {
    return observerOf(this.driver) === null ? null : CausalityChecker.of(this.driver);
  }

  /** Whether `close` has been called: nothing new can be made with its devices. */
  get isClosed(): boolean {
    return this.#closed;
  }

  // law cuda/Cuda.close: device/device
  /**
   * Releases the devices' primary contexts. Closing twice is harmless.
   *
   * @throws {CausalityError} if the driver is checked and something made through it was not closed
   */
  close(): void {
    this.#closed = true;
    try {
      this.#checker?.close();
    } finally {
      this.#pointers?.close();
      runAll(this.devices.map((device) => () => device.close()));
    }
  }

  /** Releases the devices' primary contexts. */
  [Symbol.dispose](): void {
    this.close();
  }

  static {
    showAs(Cuda, (cuda) => {
      const [major, minor] = cuda.driverVersion;
      const devices = cuda.devices.map((device) => `\n  ${device}: ${device.name}`).join("");
      return `${major}.${minor} (${cuda.path})${cuda.#closed ? ", closed" : devices}`;
    });
  }
}

function explain(error: CudaError): string {
  switch (error.code) {
    case CUresult.CUDA_ERROR_NO_DEVICE:
      return "The driver is installed but finds no GPU (CUDA_ERROR_NO_DEVICE). Check nvidia-smi and " +
        "CUDA_VISIBLE_DEVICES.";
    case CUresult.CUDA_ERROR_STUB_LIBRARY:
      return "The libcuda found is the toolkit's stub, which is for linking only. Install NVIDIA's driver.";
    default:
      return error.message;
  }
}

/** The driver to use for these options: the given one, or a checked one over it. */
function checkIfWanted(driver: CudaDriver, { check }: CheckedOptions): CudaDriver {
  const wanted = check ?? fromEnvironment();
  return wanted === false ? driver : new CausalityChecker(driver, wanted === true ? {} : wanted).driver;
}

function fromEnvironment(): boolean | CheckOptions {
  const value = ffiPort().env("CAUSEWAY_CHECK");
  return value === "order" ? { leaks: false } : value === "1";
}
