/**
 * Errors: PTX text that is not supported, and kernels that do something a GPU would stop.
 *
 * @module
 */

/**
 * PTX that the simulator does not support, detected when a module is loaded: the `cause` of the
 * {@linkcode CudaError} with which `device.loadPtx()` fails.
 *
 * @example
 * ```ts
 * import { Cuda, CudaError } from "@causeway/causeway";
 * import { PtxError } from "@causeway/causeway/sim";
 *
 * using cuda = Cuda.simulate();
 * try {
 *   cuda.device(0).loadPtx(".version 8.0\n.target sm_90\n.visible .entry f() { frobnicate.b32; }");
 * } catch (error) {
 *   const { cause } = error as CudaError;
 *   console.log(cause instanceof PtxError && cause.line); // 3
 * }
 * ```
 */
export class PtxError extends Error {
  /** `PtxError`. */
  override readonly name: string = "PtxError";
  /** Line in the text, from 1. */
  readonly line: number;

  /**
   * For the interpreter.
   *
   * @param line line in the text, from 1
   * @param what what is on the line and is not supported
   */
  constructor(line: number, what: string) {
    super(`PTX line ${line}: ${what}`);
    this.line = line;
  }
}

/** Why a running kernel was stopped. */
export type PtxFaultKind =
  /** An address at which nothing is allocated, or the access is not allowed: CUDA_ERROR_ILLEGAL_ADDRESS. */
  | "illegal address"
  /** An address that is not a multiple of the access size: CUDA_ERROR_MISALIGNED_ADDRESS. */
  | "misaligned address"
  /** A barrier or warp collective that not all of its threads can reach: a GPU would hang. */
  | "deadlock"
  /** Behaviour that PTX leaves undefined, and on which no two GPUs need agree. */
  | "undefined behaviour"
  /** A `trap` instruction: CUDA_ERROR_LAUNCH_FAILED. */
  | "trap"
  /** An `assert` that does not hold: CUDA_ERROR_ASSERT. */
  | "assertion"
  /** A call chain deeper than the stack. */
  | "stack overflow"
  /** More instructions than the launch allowed: CUDA_ERROR_LAUNCH_TIMEOUT. */
  | "instruction limit";

/**
 * A kernel that was stopped while it ran. Writes that other threads made by then remain. If a GPU reports such an
 * error, or its watchdog would kill the kernel, the fault is the `cause` of the {@linkcode CudaError} that reports it
 * first; a deadlock or undefined behaviour is thrown unwrapped by the call that made the kernel run.
 */
export class PtxFault extends Error {
  /** `PtxFault`. */
  override readonly name: string = "PtxFault";
  /** Why the kernel was stopped. */
  readonly kind: PtxFaultKind;
  /** Line of the instruction, from 1; 0 if no single instruction is at fault. */
  readonly line: number;

  /**
   * For the interpreter.
   *
   * @param kind why the kernel was stopped
   * @param line line of the instruction, from 1; 0 if no single instruction is at fault
   * @param what the kernel, the thread and the circumstances
   * @param cause the error that the memory threw, for an illegal address
   */
  constructor(kind: PtxFaultKind, line: number, what: string, cause?: unknown) {
    super(`PTX${line === 0 ? "" : ` line ${line}`}: ${kind}: ${what}`, cause === undefined ? undefined : { cause });
    this.kind = kind;
    this.line = line;
  }
}
