/**
 * The CUDA driver as a value: its functions, where its library is found, and its error codes.
 *
 * @module
 */
import { cuda } from "../../bindings/cuda.ts";
import { CUresult } from "../../bindings/cuda_types.ts";
import type { LibraryDescription } from "../ffi/library.ts";
import { NativeArena } from "../ffi/arena.ts";
import { readCString } from "../ffi/text.ts";
import type { Functions } from "../ffi/types.ts";

/** An implementation of the CUDA driver's C ABI: the real library, or anything with the same functions. */
export type CudaDriver = Functions<typeof cuda>;

/** How libcuda is found. It comes with NVIDIA's driver and nothing else. */
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

  /** For implementations of the driver. */
  constructor(call: string, code: number, codeName: string, explanation: string) {
    super(`${call} failed with ${codeName} (${code})${explanation === "" ? "" : `: ${explanation}`}`);
    this.code = code;
    this.codeName = codeName;
    this.call = call;
  }
}

const names = new Map<number, string>(Object.entries(CUresult).map(([name, code]) => [code, name]));

/** The name of a `CUresult`. */
export function resultName(code: number): string {
  return names.get(code) ?? `CUresult(${code})`;
}

/**
 * Throws unless a call has succeeded.
 *
 * @param call the function's name
 * @param code what it returned
 * @throws {CudaError}
 */
export function checkCuda(driver: CudaDriver, call: string, code: number): void {
  if (code !== CUresult.CUDA_SUCCESS) throw cudaError(driver, call, code);
}

/** The error of a code, in the driver's words, and with what to do where that is known. */
export function cudaError(driver: CudaDriver, call: string, code: number): CudaError {
  using arena = new NativeArena();
  const text = arena.out("ptr");
  driver.opening.cuGetErrorString(code, text.$address); // leaves NULL for a code that it does not know
  const words = [readCString(text.value), remedies.get(code) ?? ""].filter((one) => one !== "");
  return new CudaError(call, code, resultName(code), words.join(". "));
}

/** What to do about errors that a program makes by the order of its calls. */
const remedies: ReadonlyMap<number, string> = new Map([
  [
    CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
    "While a stream is captured nothing may wait for the device, ask it, or allocate and free at once: do that before or " +
    'after the capture; what other streams need can also be let through, with { mode: "relaxed" }',
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
