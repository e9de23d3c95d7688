/**
 * What can go wrong: text that is not understood, and kernels that do what a GPU would stop them for.
 *
 * @module
 */

/** PTX that is not understood, found when a module is loaded. */
export class PtxError extends Error {
  override readonly name = "PtxError";
  /** Line of the text, from 1. */
  readonly line: number;

  /**
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
  /** An address that nothing lives at, or that may not be accessed so: CUDA_ERROR_ILLEGAL_ADDRESS. */
  | "illegal address"
  /** An address that is no multiple of the size of the access: CUDA_ERROR_MISALIGNED_ADDRESS. */
  | "misaligned address"
  /** A barrier, or a meeting of the threads of a warp, that not all of them can reach: a GPU would hang. */
  | "deadlock"
  /** What PTX leaves undefined and no two GPUs need agree on. */
  | "undefined behaviour"
  /** A `trap` instruction: CUDA_ERROR_LAUNCH_FAILED. */
  | "trap"
  /** Calls deeper than the stack is large. */
  | "stack overflow"
  /** More instructions than the launch allowed. */
  | "instruction limit";

/** A kernel that was stopped while it ran. What other threads had written by then stays written. */
export class PtxFault extends Error {
  override readonly name = "PtxFault";
  /** Why. */
  readonly kind: PtxFaultKind;
  /** Line of the instruction, from 1. */
  readonly line: number;

  /**
   * @param kind why
   * @param line line of the instruction, from 1
   * @param what the kernel, the thread and the circumstances
   * @param cause the error of the memory, for an illegal address that it refused
   */
  constructor(kind: PtxFaultKind, line: number, what: string, cause?: unknown) {
    super(`PTX line ${line}: ${kind}: ${what}`, cause === undefined ? undefined : { cause });
    this.kind = kind;
    this.line = line;
  }
}
