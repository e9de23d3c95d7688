/**
 * How the simulator's calls are implemented: one table for each group of the symbol table, and errors that are thrown
 * where they arise and become the return value of the call.
 *
 * @module
 */
import { CUresult } from "../../bindings/cuda_types.ts";
import type { DriverGroups } from "../driver/mod.ts";

/** Implements a call. The call returns CUDA_SUCCESS unless this returns another code or throws a `CallError`. */
type Call<F> = F extends (...args: infer A) => number ? (...args: A) => number | void : never;

/** The simulated calls of a group. */
export type CallTable<Group extends keyof DriverGroups> = {
  readonly [Name in keyof DriverGroups[Group]]?: Call<NonNullable<DriverGroups[Group][Name]>>;
};

/** A `CUresult` that the simulator knows. */
export type ResultCode = (typeof CUresult)[keyof typeof CUresult];

/** Thrown inside the simulator, and returned to the caller as a code. It never leaves the simulator. */
export class CallError extends Error {
  /** `Refusal`. */
  override readonly name: string = "Refusal";
  /** The code that the call returns. */
  readonly code: number;

  /** @param code a `CUresult` other than CUDA_SUCCESS */
  constructor(code: number) {
    super(`CUresult ${code}`);
    this.code = code;
  }
}

/** The error for what a GPU's driver supports and the simulator does not: CUDA_ERROR_NOT_SUPPORTED. */
export class UnsimulatedError extends CallError {
  /** `Unsimulated`. */
  override readonly name: string = "Unsimulated";
  /** What is not simulated. */
  readonly what: string;

  /** @param what is not simulated, as a noun */
  constructor(what: string) {
    super(CUresult.CUDA_ERROR_NOT_SUPPORTED);
    this.what = what;
  }
}

/** Makes the error for what is not simulated: `throw unsimulated("graphs in graphs")`. */
export function unsimulated(what: string): UnsimulatedError {
  return new UnsimulatedError(what);
}

/** Refuses flags other than those of `known`, with CUDA_ERROR_INVALID_VALUE. */
export function checkFlags(flags: number, known: Readonly<Record<string, number>>): void {
  const all = Object.values(known).reduce((sum, flag) => sum | flag, 0);
  if ((flags & ~all) !== 0) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
}

/** Refuses a value that is not one of `known`, with CUDA_ERROR_INVALID_VALUE. */
export function checkConstant(value: number, known: Readonly<Record<string, number>>): void {
  if (!Object.values(known).includes(value)) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
}

/** Makes the error that a call fails with: `throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE)`. */
export function refuse(code: ResultCode): CallError {
  return new CallError(code);
}
