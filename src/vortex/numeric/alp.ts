import { DataError } from "./data_error.ts";
import type { Step } from "./kernel.ts";

/** The largest exponents: a 32-bit float has at most ten integer digits, a 64-bit float eighteen. */
const most = { 32: 10, 64: 18 } as const;

// law vortex/numeric.alpStep: vortex/numeric/steps
/**
 * The step from an integer to the decimal fraction it encodes: times 10^f, then times the float nearest to 10^-e, which
 * is not a division by 10^e. For 32-bit floats, both factors and both results are rounded to 32 bits.
 *
 * @throws {DataError} if an exponent is larger than any encoder writes
 */
export function alpStep(bits: 32 | 64, e: number, f: number): Step {
  if (!(e <= most[bits] && f <= most[bits])) {
    throw new DataError(`Expected exponents up to ${most[bits]}, got ${e} and ${f}`);
  }
  return { kind: "alp", factors: [Number(`1e${f}`), Number(`1e-${e}`)] };
}
