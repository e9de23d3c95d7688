/**
 * The median of measurements.
 *
 * @module
 */

/** The middle value, or the mean of the two in the middle; NaN if there is none. */
export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const [low = NaN, high = NaN] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return (low + high) / 2;
}
