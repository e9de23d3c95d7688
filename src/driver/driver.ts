/**
 * The CUDA driver as a value: its functions, where its library is found, and its error codes.
 *
 * @module
 */
import { cuda } from "../../bindings/cuda.ts";
import { CUresult } from "../../bindings/cuda_types.ts";
import { constantName, type Functions, type LibraryDescription, NativeArena, readCString } from "../ffi/mod.ts";
import { cause as causeOf, type DriverTraits } from "./traits.ts";

/** What a call returns if no context is current and its arguments, a default stream for example, do not imply one. */
export const NEEDS_CONTEXT: number = CUresult.CUDA_ERROR_INVALID_CONTEXT;

/** The functions of libcuda, group by group. */
export type DriverGroups = Functions<typeof cuda>;

/**
 * An implementation of the CUDA driver's C ABI: the real library, or anything with the same functions.
 *
 * @internal its members, which are the functions of libcuda, group by group
 */
export type CudaDriver = DriverGroups & DriverTraits;

/** How libcuda is found. It comes only with NVIDIA's driver. */
export const libcuda: LibraryDescription<typeof cuda> = {
  name: "libcuda",
  symbols: cuda,
  override: "CAUSEWAY_LIBCUDA",
  sonames: ["libcuda.so.1"],
  homes: ["CUDA_HOME", "CUDA_PATH"],
  folders: ["/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/usr/local/cuda/compat"],
  remedy: "Install NVIDIA's driver (libcuda.so.1 is part of it), or run in a container started with --gpus all.",
};

/** A call into the CUDA driver failed. */
export class CudaError extends Error {
  /** `CudaError`. */
  override readonly name: string = "CudaError";
  /** The driver's own code, a `CUresult`. */
  readonly code: number;
  /** Its name in the header, for example `CUDA_ERROR_OUT_OF_MEMORY`. */
  readonly codeName: string;
  /** The function that returned it. */
  readonly call: string;
  /**
   * Whether the device's context is lost with everything in it: from now on every call returns the same error, until
   * the process ends. The `cause` is the first such error, if this is a later one; in the simulator the cause of the
   * first says what the kernel did. Closing what is left then has no effect, and does not throw.
   */
  readonly isSticky: boolean;

  /** For implementations of the driver. */
  constructor(call: string, code: number, codeName: string, explanation: string, options?: ErrorOptions) {
    super(`${call} failed with ${codeName} (${code})${explanation === "" ? "" : `: ${explanation}`}`, options);
    this.code = code;
    this.codeName = codeName;
    this.call = call;
    this.isSticky = lost.has(code);
  }
}

/** The errors for which the header says that the process must be terminated and relaunched. */
const lost: ReadonlySet<number> = new Set([
  CUresult.CUDA_ERROR_CONTAINED,
  CUresult.CUDA_ERROR_ILLEGAL_ADDRESS,
  CUresult.CUDA_ERROR_LAUNCH_TIMEOUT,
  CUresult.CUDA_ERROR_ASSERT,
  CUresult.CUDA_ERROR_HARDWARE_STACK_ERROR,
  CUresult.CUDA_ERROR_ILLEGAL_INSTRUCTION,
  CUresult.CUDA_ERROR_MISALIGNED_ADDRESS,
  CUresult.CUDA_ERROR_INVALID_ADDRESS_SPACE,
  CUresult.CUDA_ERROR_INVALID_PC,
  CUresult.CUDA_ERROR_LAUNCH_FAILED,
  CUresult.CUDA_ERROR_TENSOR_MEMORY_LEAK,
  CUresult.CUDA_ERROR_MPS_CLIENT_TERMINATED,
  CUresult.CUDA_ERROR_EXTERNAL_DEVICE,
]);

/**
 * The first error of each sticky code. The devices of a driver share it: the code does not say which of them is lost.
 */
const firstSeen = new WeakMap<CudaDriver, Map<number, CudaError>>();

/** The name of a `CUresult`. */
export function resultName(code: number): string {
  return constantName(CUresult, code) ?? `CUresult(${code})`;
}

// law driver/checkCuda: driver/errors
/**
 * Throws unless a call succeeded.
 *
 * @param call the function's name
 * @param code what it returned
 * @param why as for {@linkcode cudaError}
 * @throws {CudaError}
 */
export function checkCuda(driver: CudaDriver, call: string, code: number, why = ""): void {
  if (code !== CUresult.CUDA_SUCCESS) throw cudaError(driver, call, code, why);
}

/**
 * The error for a code, in the driver's words, with a remedy if one is known.
 *
 * @param why what the caller knows about the reason: sentences without the final full stop
 */
export function cudaError(driver: CudaDriver, call: string, code: number, why = ""): CudaError {
  using arena = new NativeArena();
  const text = arena.out("ptr");
  driver.opening.cuGetErrorString(code, text.$address); // leaves NULL for a code that it does not know
  const words = [readCString(text.value), remedies.get(code) ?? "", why].filter((one) => one !== "");
  return lost.has(code)
    ? stickyError(driver, call, code, words)
    : new CudaError(call, code, resultName(code), words.join(". "));
}

// law driver/stickyError: driver/advice, driver/errors
function stickyError(driver: CudaDriver, call: string, code: number, words: readonly string[]): CudaError {
  const seen = firstSeen.getOrInsertComputed(driver, () => new Map());
  const first = seen.get(code);
  const history = first === undefined
    ? "This call is the first to report it; the work that failed was enqueued earlier"
    : `It was first reported by ${first.call}: see the cause`;
  const known = driver[causeOf]?.(code); // the simulator knows what the kernel did
  const reason = known instanceof Error ? [known.message] : [];
  const explanation = [...words, ...reason, history, known === undefined ? `${advice}; ${search}` : advice].join(". ");
  const cause = first ?? known;
  const error = new CudaError(call, code, resultName(code), explanation, cause === undefined ? undefined : { cause });
  if (first === undefined) seen.set(code, error);
  return error;
}

const advice =
  "The context is lost: every later call on the device fails like this one, and its memory can no longer " +
  "be read. Restart the process";

const search = "to find the cause, run it under compute-sanitizer or on Cuda.simulate()";

// law driver/checkRelease: driver/errors
/**
 * Throws unless a call that frees or releases something succeeded. In a lost context there is nothing left to free, and
 * the error that reported the loss has already been thrown: a later close must not hide it.
 *
 * @throws {CudaError}
 */
export function checkRelease(driver: CudaDriver, call: string, code: number): void {
  if (code !== CUresult.CUDA_SUCCESS && !lost.has(code) && !gone.has(code)) throw cudaError(driver, call, code);
}

/** Nothing is left to free, either, when another library has destroyed the context, or the process is exiting. */
const gone: ReadonlySet<number> = new Set([
  CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED,
  CUresult.CUDA_ERROR_DEINITIALIZED,
]);

/** Whether an error says that a context is lost. */
export function isSticky(error: unknown): boolean {
  return error instanceof CudaError && error.isSticky;
}

/** Whether a result code says that a context is lost. */
export function isStickyCode(code: number): boolean {
  return lost.has(code);
}

/** Remedies for errors that the order of a program's calls causes. */
const remedies: ReadonlyMap<number, string> = new Map([
  [
    CUresult.CUDA_ERROR_NO_DEVICE,
    "Check nvidia-smi and CUDA_VISIBLE_DEVICES; Cuda.simulate() is a CUDA that needs no GPU",
  ],
  [
    CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
    "While a stream is being captured, nothing may wait for the device, query it, or allocate and free at once: do " +
    'that before or after the capture, or allow it for other streams with { mode: "relaxed" }',
  ],
  [
    CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
    "Something before this could not be captured, and its own error did not end the capture",
  ],
  [CUresult.CUDA_ERROR_STREAM_CAPTURE_MERGE, "End one of the two captures first"],
  [
    CUresult.CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
    "Let the stream that the capture began on wait for every stream that has joined: stream.wait(other)",
  ],
  [CUresult.CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "Wait for work from before the capture before the capture begins"],
  [
    CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
    "The default stream waits for every stream that was made with { nonBlocking: false }: capture another one",
  ],
  [CUresult.CUDA_ERROR_CAPTURED_EVENT, "Only a stream can wait for an event that was recorded in a capture"],
]);

/** CUDA writes 13.0 as 13000. */
export function decodeVersion(version: number): [major: number, minor: number] {
  return [Math.floor(version / 1000), Math.floor((version % 1000) / 10)];
}
