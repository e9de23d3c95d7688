/**
 * What an array may cost, checked before it is paid.
 *
 * @module
 */
import { checkOptions, type OptionNames } from "../layout/mod.ts";

/**
 * Bounds on what input of unknown origin can make this process do. A few bytes can claim any number of rows, and a
 * small tree can name one of its nodes a million times.
 */
export interface VortexLimits {
  /** Nested nodes, and nested dtypes. Default 64. */
  readonly depth: number;
  /** Nodes of one array, counted as often as they are visited. Default 2^20. */
  readonly nodes: number;
  /** Bytes that decoding one array may allocate in all. Default 2^32. */
  readonly bytes: number;
}

const defaults: VortexLimits = { depth: 64, nodes: 2 ** 20, bytes: 2 ** 32 };

const limitNames: OptionNames<VortexLimits> = { depth: true, nodes: true, bytes: true };

/**
 * Limits where some are given.
 *
 * @throws {TypeError} for unknown names
 * @throws {RangeError} for what is no natural number
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
