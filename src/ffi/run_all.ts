/**
 * Running several functions, some of which may fail: releasing several resources must not stop at the first error.
 *
 * @module
 */

/**
 * Calls all functions, even if some of them throw.
 *
 * @throws the first of their errors
 */
export function runAll(functions: readonly (() => void)[]): void {
  throwFirst(failuresOf(functions, (one) => one()));
}

/** Calls a function with each item, even if some of the calls throw. @returns the errors */
export function failuresOf<T>(items: Iterable<T>, work: (item: T) => void): unknown[] {
  const errors: unknown[] = [];
  for (const item of items) {
    try {
      work(item);
    } catch (error) {
      errors.push(error);
    }
  }
  return errors;
}

/** Throws the first of these errors, if there is one. */
export function throwFirst(errors: readonly unknown[]): void {
  if (errors.length > 0) throw errors[0];
}
