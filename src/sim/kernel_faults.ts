/**
 * The driver's use of the PTX interpreter: how text becomes kernels, and which error a failed kernel maps to.
 *
 * @module
 */
import { CUresult } from "../../bindings/cuda_types.ts";
import type { KernelObserver } from "../driver/mod.ts";
import { PtxFault, type PtxMemory, type PtxModule } from "../ptx/mod.ts";
import type { ResultCode } from "./call.ts";

/**
 * Loads PTX.
 *
 * @throws {PtxError} naming what is not supported, which the driver reports as CUDA_ERROR_INVALID_PTX
 */
export type LoadPtx = (text: string) => PtxModule;

/** Wraps memory so that an observer sees every access. */
export function observedMemory(memory: PtxMemory, observer: KernelObserver): PtxMemory {
  return {
    view(address, bytes, access) {
      observer.accessed(address, bytes, access);
      return memory.view(address, bytes, access);
    },
  };
}

/** Thrown when a kernel uses an address that it may not access. */
export class IllegalAddressError extends Error {
  /** `IllegalAddressError`. */
  override readonly name: string = "IllegalAddressError";
  /** The address. */
  readonly address: bigint;

  /** For implementations of `PtxMemory`. */
  constructor(address: bigint, bytes: number, doing: string, reason: string) {
    super(`Cannot perform a ${doing} of ${bytes} bytes at 0x${address.toString(16)}: ${reason}`);
    this.address = address;
  }
}

// law sim/faultCode: sim/kernels
/**
 * The `CUresult` that the driver returns from now on, after a kernel has failed. Null for deadlocks, undefined
 * behaviour and errors of the interpreter: the call that made the work run throws those unchanged.
 */
export function faultCode(error: unknown): ResultCode | null {
  if (!(error instanceof PtxFault)) return null;
  switch (error.kind) {
    case "illegal address":
      return CUresult.CUDA_ERROR_ILLEGAL_ADDRESS;
    case "misaligned address":
      return CUresult.CUDA_ERROR_MISALIGNED_ADDRESS;
    case "assertion":
      return CUresult.CUDA_ERROR_ASSERT;
    case "trap":
    case "stack overflow":
      return CUresult.CUDA_ERROR_LAUNCH_FAILED;
    case "instruction limit":
      return CUresult.CUDA_ERROR_LAUNCH_TIMEOUT;
    default:
      return null;
  }
}
