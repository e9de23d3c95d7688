/**
 * What an array may cost, checked before the cost is incurred.
 *
 * @module
 */
import { checkOptions, type OptionNames } from "../layout/mod.ts";

/**
 * Bounds on what untrusted input can make this process do. A few bytes can claim any number of rows, and a small tree
 * can reference one of its nodes a million times.
 */
export interface VortexLimits {
  /** Nesting depth of nodes, and of dtypes. Default 64. */
  readonly depth: number;
  /** Nodes of one array, counted on every visit. Default 2^20. */
  readonly nodes: number;
  /** Total bytes that decoding one array may allocate. Default 2^32. */
  readonly bytes: number;
}

const defaults: VortexLimits = { depth: 64, nodes: 2 ** 20, bytes: 2 ** 32 };

const limitNames: OptionNames<VortexLimits> = { depth: true, nodes: true, bytes: true };

/**
 * Completes partial limits with the defaults.
 *
 * @throws {TypeError} for unknown names
 * @throws {RangeError} for a value that is not a positive integer
 */
export function limitsOf(given: Partial<VortexLimits> = {}): VortexLimits {
  checkOptions(given, limitNames);
  const limits = { ...defaults, ...given };
  for (const [name, value] of Object.entries(limits)) {
    if (!Number.isSafeInteger(value) || value < 1) {
      throw new RangeError(`Cannot limit ${name} to ${value}: expected an integer from 1 to 2^53 - 1`);
    }
  }
  return limits;
}
