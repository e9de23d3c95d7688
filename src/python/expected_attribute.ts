/**
 * How a program of machine code tells whether an attribute is what it was before.
 *
 * @module
 */
import { cString, libc } from "../ffi/mod.ts";
import type { Interpreter } from "./interpreter.ts";
import { Kind } from "./kinds.ts";

/** What an attribute is expected to be, as `minusObject` to `functionOf` say it. */
export type ExpectedAttribute = BigUint64Array<ArrayBuffer>;

/** What no attribute is. */
export const nothingExpected: ExpectedAttribute = new BigUint64Array(6);

/**
 * What an attribute is to be, to be the same again: the object, or a method of its owner with the same function.
 *
 * @param target the function behind the method, or 0n
 */
export function expectedAttribute(
  python: Interpreter,
  object: bigint,
  target: bigint,
  owner: bigint,
  kind: Kind,
): ExpectedAttribute {
  const minus = (address: bigint) => BigInt.asUintN(64, -address);
  if (target === 0n) return BigUint64Array.of(minus(object), 0n, 0n, 0n, 0n, 0n);
  const [selfOf = 0n, functionOf = 0n] =
    (kind === Kind.method ? ["PyMethod_Self", "PyMethod_Function"] : ["PyCFunction_GetSelf", "PyCFunction_GetFunction"])
      .map((name) => libc().loading.dlsym(python.library, cString(name)));
  const type = BigInt(python.typeOf(object));
  return BigUint64Array.of(0n, minus(type), minus(owner), minus(target), selfOf, functionOf);
}
