/**
 * The shape in which the simulator's calls are written: those of one group of the symbol table, as far as simulated.
 *
 * @module
 */
import type { DriverGroups } from "../driver/driver.ts";

/** What a call does. It returns CUDA_SUCCESS unless it returns another code or throws a `Refusal`. */
type Call<F> = F extends (...args: infer A) => number ? (...args: A) => number | void : never;

/** The simulated calls of a group. */
export type CallTable<Group extends keyof DriverGroups> = {
  readonly [Name in keyof DriverGroups[Group]]?: Call<NonNullable<DriverGroups[Group][Name]>>;
};
