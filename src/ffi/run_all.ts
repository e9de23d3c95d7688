/**
 * Doing everything, whatever becomes of a part of it: what gives several things back must not stop at the first that
 * fails.
 *
 * @module
 */

/**
 * Calls all functions, also when some of them throw.
 *
 * @throws what the first of these has thrown
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
