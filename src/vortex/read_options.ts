/**
 * Options of everything that reads arrays.
 *
 * @module
 */
import { ffiPort } from "../ffi/mod.ts";
import { checkOptions, type OptionNames } from "../layout/mod.ts";
import { limitsOf, type VortexLimits } from "./limits.ts";
import { VortexSession } from "./session.ts";
import type { ArrayHome } from "./vortex_array.ts";

/** How arrays are read. */
export interface VortexReadOptions {
  /** The session that knows encodings and extensions. Default: all those of this package. */
  readonly session?: VortexSession;
  /** Limits on what reading may cost. See {@linkcode VortexLimits}. */
  readonly limits?: Partial<VortexLimits>;
}

const readOptionNames: OptionNames<VortexReadOptions> = { session: true, limits: true };

// law vortex/homeOf: ffi/oldest_runtimes
/**
 * The session and limits that arrays read with these options belong to.
 *
 * @throws {FfiError} in any other runtime than Deno and Bun, and in one that is too old
 */
export function homeOf(options: VortexReadOptions): ArrayHome {
  checkOptions(options, readOptionNames);
  ffiPort(); // in a runtime that is too old nothing else would say so: reading needs no native code
  return { session: options.session ?? VortexSession.default(), limits: limitsOf(options.limits) };
}
