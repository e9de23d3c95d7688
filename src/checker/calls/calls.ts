/**
 * The shape in which the checker's calls are written: those of a group that it looks at. All others are the driver's own.
 *
 * @module
 */
import type { DriverGroups } from "../../driver/driver.ts";

/** The calls of a group that the checker looks at. */
export type CheckedCalls<Group extends keyof DriverGroups> = {
  readonly [Name in keyof DriverGroups[Group]]?: NonNullable<DriverGroups[Group][Name]>;
};

/** What an optional function answers that the driver does not have: nobody can get here, since it stays null. */
export const missing = 801; // CUDA_ERROR_NOT_SUPPORTED
