/**
 * Programs: CUDA C++ or PTX, loaded into a device's context.
 *
 * @module
 */
import { CU_JIT, CUresult } from "../../../bindings/cuda_types.ts";
import { cString, NativeArena, readField, reportUncaught } from "../../ffi/mod.ts";
import { checkMade, checkOptions, type OptionNames, showAs, showGiven } from "../../layout/mod.ts";
import { cached } from "./code_cache.ts";
import { compilerVersion, compileSource, withLines } from "./compiler.ts";
import { afterCaptures } from "../graph/active_captures.ts";
import type { CudaDevice } from "../device.ts";
import {
  cause as causeOf,
  checkCuda,
  checkRelease,
  type CudaDriver,
  CudaError,
  cudaError,
  resultName,
} from "../../driver/mod.ts";
import { besideCaptures } from "../relaxed_capture.ts";
import { closeIfDropped, type DroppedState } from "../finalizer.ts";
import { ReferenceCount } from "../reference_count.ts";
import { Kernel } from "./kernel.ts";
import type { ArgumentSlots } from "./kernel_arguments.ts";

/** Options of {@linkcode CudaDevice.compile}. */
export interface CompileOptions {
  /** Name of the source in messages. Default `program.cu`. */
  readonly name?: string;
  /** Further options of NVRTC, for example `["--use_fast_math"]`. */
  readonly options?: readonly string[];
}

const compileOptionNames: OptionNames<CompileOptions> = { name: true, options: true };

/** Code loaded into a device's context, which contains kernels. */
export class Program {
  /** The device. */
  readonly device: CudaDevice;
  readonly #handle: bigint;
  readonly #references: ReferenceCount;
  readonly #kernels = new Map<string, Kernel>();
  /** Memory of its kernels for arguments. */
  readonly #slots = new Set<ArgumentSlots>();

  // law device/Program.constructor: device/dropped, sim/kernels, device/kernel/kernel, sim/behaviours
  private constructor(device: CudaDevice, code: Uint8Array<ArrayBuffer>) {
    checkMade(code, "Program", "device.compile(source) or device.loadPtx(text)");
    this.device = device;
    [this.#handle, this.#references] = device.retainFor((retained) => {
      const handle = load(device, code);
      return [handle, new ReferenceCount(() => unload(device, handle, retained))];
    });
    closeIfDropped(this, stateOf(device, this.#references, this.#slots));
  }

  /** Compiles CUDA C++ for a device. Use {@linkcode CudaDevice.compile}. */
  static compile(device: CudaDevice, source: string, given: CompileOptions): Program {
    checkText(source, "compile", "CUDA C++");
    checkOptions(given, compileOptionNames);
    const { name = "program.cu", options = [] } = given;
    const [major, minor] = device.computeCapability;
    const compiler = compilerVersion();
    // A driver accepts PTX up to its own CUDA version; it also accepts machine code from newer compilers.
    const target = isNewer(compiler, device.driverVersion) ? "cubin" : "ptx";
    const architecture = `--gpu-architecture=${target === "ptx" ? "compute" : "sm"}_${major}${minor}`;
    const all = [architecture, ...options];
    const key = [name, source, ...all, target, compiler.join("."), device.driverVersion.join(".")];
    const make = () => compileSource({ name, source, options: all, target });
    return new Program(device, isSelfContained(source, options) ? cached(key, make) : make());
  }

  /**
   * Loads PTX, which the driver compiles. Use {@linkcode CudaDevice.loadPtx}.
   *
   * @throws {CudaError} CUDA_ERROR_INVALID_PTX, CUDA_ERROR_UNSUPPORTED_PTX_VERSION or CUDA_ERROR_INVALID_IMAGE with the
   *   messages of the driver's compiler and the lines that they refer to; the simulator's error has the
   *   {@linkcode PtxError} as its cause
   */
  static fromPtx(device: CudaDevice, ptx: string): Program {
    checkText(ptx, "load", "PTX");
    return new Program(device, cString(ptx));
  }

  // law device/Program.kernel: sim/kernels, device/kernel/kernel, sim/behaviours, driver/advice
  /**
   * A kernel of the program.
   *
   * @param name the name in the driver: declare kernels `extern "C"` to keep their names
   * @throws {CudaError} CUDA_ERROR_NOT_FOUND if there is none
   */
  kernel(name: string): Kernel {
    if (this.#references.isClosed) throw new TypeError("Cannot use a closed Program");
    let kernel = this.#kernels.get(name);
    if (kernel === undefined) {
      if (typeof name !== "string") {
        throw new TypeError(`Cannot find a kernel: expected its name, a string, got ${showGiven(name)}`);
      }
      using arena = new NativeArena();
      const out = arena.out("ptr");
      const { driver } = this.device;
      const text = cString(name);
      const find = () => driver.module.cuModuleGetFunction(out.$address, this.#handle, text);
      const code = this.device.withContext(find);
      if (code === CUresult.CUDA_ERROR_NOT_FOUND) throw notFound(name);
      checkCuda(driver, `cuModuleGetFunction of ${name}`, code);
      kernel = new Kernel(this.device, name, out.value, () => this.#references.retained(), this.#slots);
      this.#kernels.set(name, kernel);
    }
    return kernel;
  }

  /** Whether `close` has been called: none of its kernels can be launched any more. */
  get isClosed(): boolean {
    return this.#references.isClosed;
  }

  // law device/Program.close: sim/kernels, device/kernel/kernel, sim/behaviours
  /**
   * Unloads the code once no graph needs it. None of its kernels may still be running, and none can be launched any
   * more. Closing twice is harmless.
   */
  close(): void {
    for (const kernel of this.#kernels.values()) kernel.close();
    this.#references.close();
  }

  /** Unloads the code. */
  [Symbol.dispose](): void {
    this.close();
  }

  static {
    showAs(Program, (program) => {
      const names = [...program.#kernels.keys()];
      const kernels = names.length === 0 ? ", no kernel asked for yet" : `, kernels ${names.join(", ")}`;
      return `of ${program.device}${kernels}${program.#references.isClosed ? ", closed" : ""}`;
    });
  }
}

/** Untyped code may pass bytes, or the promise of a file's contents. */
function checkText(text: string, doing: string, language: string): void {
  if (typeof text === "string") return;
  throw new TypeError(`Cannot ${doing} a program: expected ${language}, as a string, got ${showGiven(text)}`);
}

// law device/unload: sim/kernels, device/kernel/kernel, sim/behaviours, memory/beside_captures
function unload(device: CudaDevice, handle: bigint, retained: Disposable): void {
  const { driver } = device;
  // The driver cannot unload while a stream is captured: that would invalidate the capture.
  afterCaptures(driver, () => {
    try {
      const take = () => device.withContext(() => driver.module.cuModuleUnload(handle));
      checkRelease(driver, "cuModuleUnload", besideCaptures(driver, take));
    } finally {
      retained[Symbol.dispose]();
    }
  });
}

// law device/stateOf: device/dropped
/** The state that unloads a program which was dropped with its kernels. One of them may be running, on any stream. */
function stateOf(device: CudaDevice, references: ReferenceCount, slots: Iterable<ArgumentSlots>): DroppedState {
  return {
    kind: "Program",
    driver: device.driver,
    get closed() {
      return references.isClosed;
    },
    close() {
      for (const one of slots) one.close(); // the driver has copied what it was passed
      const end = atRest(device).finally(() => references.close());
      end.catch((error) => reportUncaught("unloading a Program that was collected", error));
    },
  };
}

// law device/atRest: device/dropped
/** Settles when everything enqueued on the device is done; if no event can mark that, the host waits. */
async function atRest(device: CudaDevice): Promise<void> {
  using event = device.makeEvent();
  try {
    if (device.recordContext(event)) return await event.completed();
  } catch {
    // The host waits below: the Cuda may be closed.
  }
  device.synchronize();
}

/** The error if a program has no kernel of this name. */
function notFound(name: string): CudaError {
  const code = CUresult.CUDA_ERROR_NOT_FOUND;
  return new CudaError(
    `cuModuleGetFunction of ${name}`,
    code,
    resultName(code),
    "the program has no kernel of this name. C++ mangles names with types and namespaces: declare " +
      'it `extern "C" __global__`, which keeps its name, or use the name after .entry in the PTX',
  );
}

/** Size in bytes of the compiler log that is kept. */
const logBytes = 8192;

/** Loads code into a device's context. @returns `CUmodule` */
function load(device: CudaDevice, code: Uint8Array<ArrayBuffer>): bigint {
  using arena = new NativeArena();
  const out = arena.out("ptr");
  const image = arena.bytes(code.length, 16);
  image.bytes.set(code);
  const log = arena.bytes(logBytes);
  const [options, values] = [arena.bytes(8, 4), arena.bytes(16, 8)];
  const asked = new DataView(options.bytes.buffer, options.bytes.byteOffset);
  asked.setInt32(0, CU_JIT.ERROR_LOG_BUFFER, true);
  asked.setInt32(4, CU_JIT.ERROR_LOG_BUFFER_SIZE_BYTES, true);
  const given = new DataView(values.bytes.buffer, values.bytes.byteOffset);
  given.setBigUint64(0, log.address, true);
  given.setBigUint64(8, BigInt(logBytes), true); // the value itself, in place of a pointer
  const { driver } = device;
  const result = device.withContext(() =>
    driver.module.cuModuleLoadDataEx(out.$address, image.address, 2, options.address, values.address)
  );
  if (result !== CUresult.CUDA_SUCCESS) throw loadError(driver, result, readField(log.bytes), code);
  return out.value;
}

/** The driver's error, with its compiler's messages and the lines of the PTX that they refer to. */
function loadError(driver: CudaDriver, code: number, log: string, image: Uint8Array<ArrayBuffer>): CudaError {
  const error = cudaError(driver, "cuModuleLoadDataEx", code);
  const cause = error.cause ?? driver[causeOf]?.(code);
  const way = code === CUresult.CUDA_ERROR_INVALID_IMAGE && image[0] !== firstOfElf && !beginsAsPtx(readField(image))
    ? "The text does not begin as PTX does, with .version: device.compile(source) takes CUDA C++; for a file, pass " +
      "its text, not its name"
    : "";
  if (log === "") return way === "" ? error : cudaError(driver, error.call, code, way);
  const said = withLines(log.trimEnd(), readField(image), /\bline (\d+);/);
  const options = cause === undefined ? undefined : { cause };
  const explanation = `the compiler in the driver said:\n${said}${way === "" ? "" : `\n${way}`}`;
  return new CudaError(error.call, code, error.codeName, explanation, options);
}

/** First byte of machine code, which is in ELF format. */
const firstOfElf = 0x7f;

function beginsAsPtx(text: string): boolean {
  return /^(?:\s|\/\/[^\n]*\n|\/\*[^]*?\*\/)*\./.test(text);
}

function isNewer(one: readonly [number, number], other: readonly [number, number]): boolean {
  return one[0] !== other[0] ? one[0] > other[0] : one[1] > other[1];
}

/** Line continuations, which the compiler splices. */
const splice = /(\\|\?\?\/)\r?\n/g;

/** Dependencies that the source text does not show: the clock, and the token-pasting operator. */
const hidden = /__DATE__|__TIME|##|%:%:|\?\?=/;

// law device/looksAround: device/kernel/compiler
/** Matches sources that depend on files: they contain the name of a directive, which no macro can replace. */
const looksAround = /include|embed|import/;

/** Options that neither read nor write a file; `-I` alone reads nothing. */
const selfContained = new RegExp(
  "^(-D.+|-U.+|-I.+|--(define-macro|undefine-macro|include-path|gpu-architecture|std|maxrregcount|ftz|prec-sqrt|" +
    "prec-div|fmad|extra-device-vectorization|split-compile|diag-(error|suppress|warn))=.*|" +
    "-(arch|std|diag-(error|suppress|warn))=.*|--use_fast_math|-use_fast_math|--device-as-default-execution-space|" +
    "-default-device|--relocatable-device-code=.*|-rdc=.*|-[dl]c|--minimal|-minimal|--disable-warnings|-w|" +
    "--restrict|-restrict)$",
);

// law device/isSelfContained: device/kernel/compiler
/**
 * Whether code depends only on its source and options, so that they can be its cache key. NVRTC does not say which
 * files it has read: a source that might read one is compiled each time, as is one with an option not known here.
 */
function isSelfContained(source: string, options: readonly string[]): boolean {
  const text = source.replace(splice, "");
  if (looksAround.test(text) || hidden.test(text)) return false;
  return options.every((option) => selfContained.test(option) && !hidden.test(option));
}
