/**
 * Running several functions of which some may fail: what releases several resources must not stop at the first error.
 *
 * @module
 */

/**
 * Calls all functions, also when some of them throw.
 *
 * @throws the first of their errors
 */
export function runAll(functions: readonly (() => void)[]): void {
  const errors: unknown[] = [];
  for (const one of functions) {
    try {
      one();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}
