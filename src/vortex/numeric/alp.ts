import { DataError } from "./data_error.ts";
import type { Step } from "./kernel.ts";

/** The largest exponents: a float of 32 bits has ten digits of an integer at most, one of 64 eighteen. */
const most = { 32: 10, 64: 18 } as const;

// law vortex/numeric.alpStep: vortex/numeric/steps
/**
 * The step from an integer to the decimal fraction that it stands for: times 10^f, then times the float that is nearest
 * to 10^-e, which is not a division by 10^e. Of 32 bits both factors and both results are rounded to 32 bits.
 *
 * @throws {DataError} if an exponent is larger than an encoder makes it
 */
export function alpStep(bits: 32 | 64, e: number, f: number): Step {
  if (!(e <= most[bits] && f <= most[bits])) {
    throw new DataError(`Expected exponents up to ${most[bits]}, got ${e} and ${f}`);
  }
  return { kind: "alp", factors: [Number(`1e${f}`), Number(`1e-${e}`)] };
}
