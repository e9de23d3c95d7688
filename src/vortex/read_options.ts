/**
 * Options of whatever reads arrays.
 *
 * @module
 */
import { checkOptions, type OptionNames } from "../layout/mod.ts";
import { limitsOf, type VortexLimits } from "./limits.ts";
import { VortexSession } from "./session.ts";
import type { ArrayHome } from "./vortex_array.ts";

/** How arrays are read. */
export interface VortexReadOptions {
  /** What is known. Default: everything of this package. */
  readonly session?: VortexSession;
  /** What it may cost. See {@linkcode VortexLimits}. */
  readonly limits?: Partial<VortexLimits>;
}

const readOptionNames: OptionNames<VortexReadOptions> = { session: true, limits: true };

/** Where what is read belongs. */
export function homeOf(options: VortexReadOptions): ArrayHome {
  checkOptions(options, readOptionNames);
  return { session: options.session ?? VortexSession.default(), limits: limitsOf(options.limits) };
}
