/**
 * The shape in which the simulator's calls are written: those of one group of the symbol table, as far as simulated.
 *
 * @module
 */
import type { CudaDriver } from "../driver/driver.ts";

/** What a call does. It returns CUDA_SUCCESS unless it returns another code or throws a `Refusal`. */
type Call<F> = F extends (...args: infer A) => number ? (...args: A) => number | void : never;

/** The simulated calls of a group. */
export type Behaviour<Group extends keyof CudaDriver> = {
  readonly [Name in keyof CudaDriver[Group]]?: Call<NonNullable<CudaDriver[Group][Name]>>;
};
