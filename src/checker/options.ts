/**
 * What can be chosen about the checker.
 *
 * @module
 */
import type { OptionNames } from "../layout/options.ts";
import type { CausalityReport } from "./report.ts";

/** Options of the causality checker. */
export interface CheckOptions {
  /**
   * What to do with a report. Default: the call that shows the program to be wrong throws a `CausalityError`. The
   * reports are kept in any case, and the same pair of places is reported once.
   */
  readonly onReport?: (report: CausalityReport) => void;
  /**
   * Whether closing the Cuda reports what was made and is still there. Default true. For programs that close their Cuda
   * before what they made through it, which is allowed: it lives until the last of that is closed.
   */
  readonly leaks?: boolean;
  /**
   * Which bytes a kernel touches of the memory that it is given. `certain`, the default: some of them, so that only what
   * touches all of them can be unordered with it: no false alarm. `whole`: all of them, and a kernel that is not known
   * to read only changes them: no miss, and an alarm where kernels share an allocation piece by piece.
   */
  readonly kernels?: "certain" | "whole";
}

/** The names of {@linkcode CheckOptions}. */
export const checkOptionNames: OptionNames<CheckOptions> = { onReport: true, leaks: true, kernels: true };
