/**
 * What can go wrong: text that is not understood, and kernels that do what a GPU would stop.
 *
 * @module
 */

/**
 * PTX that the simulator does not understand, found when a module is loaded: it is the `cause` of the
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
  /** Line of the text, from 1. */
  readonly line: number;

  /**
   * For the interpreter.
   *
   * @param line line of the text, from 1
   * @param what what is there and is not understood
   */
  constructor(line: number, what: string) {
    super(`PTX line ${line}: ${what}`);
    this.line = line;
  }
}

/** Why a running kernel was stopped. */
export type PtxFaultKind =
  /** An address at which nothing is allocated, or that may not be accessed so: CUDA_ERROR_ILLEGAL_ADDRESS. */
  | "illegal address"
  /** An address that is no multiple of the size of the access: CUDA_ERROR_MISALIGNED_ADDRESS. */
  | "misaligned address"
  /** A barrier, or a collective of a warp, that not all of its threads can reach: a GPU would hang. */
  | "deadlock"
  /** What PTX leaves undefined and no two GPUs need agree on. */
  | "undefined behaviour"
  /** A `trap` instruction: CUDA_ERROR_LAUNCH_FAILED. */
  | "trap"
  /** An `assert` that does not hold: CUDA_ERROR_ASSERT. */
  | "assertion"
  /** Calls deeper than the stack is large. */
  | "stack overflow"
  /** More instructions than the launch allowed: CUDA_ERROR_LAUNCH_TIMEOUT. */
  | "instruction limit";

/**
 * A kernel that was stopped while it ran. What other threads had written by then stays written. Where a GPU reports
 * such an error, or its watchdog would end the kernel, it is the `cause` of the {@linkcode CudaError} that reports it
 * first; a deadlock, and undefined behaviour, is thrown as it is by the call that made the kernel run.
 */
export class PtxFault extends Error {
  /** `PtxFault`. */
  override readonly name: string = "PtxFault";
  /** Why. */
  readonly kind: PtxFaultKind;
  /** Line of the instruction, from 1; 0 if it is not the fault of one instruction. */
  readonly line: number;

  /**
   * For the interpreter.
   *
   * @param kind why
   * @param line line of the instruction, from 1; 0 if it is not the fault of one instruction
   * @param what the kernel, the thread and the circumstances
   * @param cause the error of the memory, for an illegal address that it refused
   */
  constructor(kind: PtxFaultKind, line: number, what: string, cause?: unknown) {
    super(`PTX${line === 0 ? "" : ` line ${line}`}: ${kind}: ${what}`, cause === undefined ? undefined : { cause });
    this.kind = kind;
    this.line = line;
  }
}
