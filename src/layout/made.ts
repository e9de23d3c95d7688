/**
 * Objects that are not made by `new`: the compiler says so of private constructors, and a program without types is
 * told here.
 *
 * @module
 */

// law layout/checkMade: public/new
/**
 * The first line of a constructor that only this package calls.
 *
 * @param given a parameter that this package always gives, and nobody else
 * @param way what to call instead
 * @throws {TypeError} if it is missing
 */
export function checkMade(given: unknown, name: string, way: string): void {
  if (given === undefined) throw notMade(name, way);
}

/** What {@linkcode checkMade} throws, for constructors that are run for each import: they look themselves. */
export function notMade(name: string, way: string): TypeError {
  return new TypeError(`Cannot call new ${name}(): use ${way}`);
}
