/**
 * Names of a C library's constants, for errors.
 *
 * @module
 */

/** The name of the constant with this value, if there is one. No table is kept: errors are rare, and tables load. */
export function constantName(constants: Readonly<Record<string, number>>, value: number): string | undefined {
  return Object.keys(constants).find((name) => constants[name] === value);
}
