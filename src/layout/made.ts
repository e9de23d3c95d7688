/**
 * Objects that programs do not make by `new`: the compiler rejects private constructors, and this check tells untyped
 * programs.
 *
 * @module
 */

// law layout/checkMade: public/new
/**
 * The first line of a constructor that only this package calls.
 *
 * @param given a parameter that only this package passes, and always passes
 * @param way what to call instead
 * @throws {TypeError} if it is missing
 */
export function checkMade(given: unknown, name: string, way: string): void {
  if (given === undefined) throw notMade(name, way);
}

/** The error of {@linkcode checkMade}, for constructors that run for each import and check inline. */
export function notMade(name: string, way: string): TypeError {
  return new TypeError(`Cannot call new ${name}(): use ${way}`);
}
