/**
 * GPUs for tests that need them.
 *
 * @module
 */
import { Cuda, Ucx } from "../../mod.ts";
import { libcudart } from "../../src/driver/libraries.ts";
import { LibraryNotFoundError } from "../../src/ffi/errors.ts";
import { openLibrary } from "../../src/ffi/library.ts";

/** What is missing to run a test on `count` GPUs, or null. */
export function missingGpus(count = 1): string | null {
  const { available, reason } = Cuda.probe();
  if (!available) return `no GPU: ${reason.split(". ")[0]}. Run on a machine with an NVIDIA GPU`;
  using cuda = Cuda.open();
  return cuda.devices.length >= count ? null : `needs ${count} GPUs, this machine has ${cuda.devices.length}`;
}

/** What is missing to run a test that also needs the CUDA runtime, or null. */
export function missingCudart(): string | null {
  try {
    openLibrary(libcudart);
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return `no libcudart: ${error.remedy.split(". ")[0]}`;
    throw error;
  }
  return missingGpus();
}

/** What is missing for UCX to transfer the memory of `gpus` GPUs, or null. */
export function missingUcxCuda(gpus: number): string | null {
  const missing = missingGpus(gpus);
  if (missing !== null) return missing;
  try {
    using ucx = Ucx.open();
    if (ucx.hasCuda) return null;
    return `UCX ${ucx.version} (${ucx.path}) cannot use CUDA here: CAUSEWAY_LIBUCP=libucp.so.0 of the wheel libucx-cu13`;
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return `no libucp: ${error.remedy.split(". ")[0]}`;
    throw error;
  }
}
