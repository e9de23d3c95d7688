/**
 * How a machine code program detects whether an attribute is unchanged.
 *
 * @module
 */
import type { Interpreter } from "./interpreter.ts";
import { Kind } from "./kinds.ts";

/** The expected attribute, in the form of the fields `minusObject` to `functionOf`. */
export type ExpectedAttribute = BigUint64Array<ArrayBuffer>;

/** Matches no attribute. */
export const nothingExpected: ExpectedAttribute = new BigUint64Array(6);

/**
 * What an attribute must be to count as unchanged: the same object, or a method of its owner with the same function.
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
      .map((name) => python.functionAt(name));
  const type = BigInt(python.typeOf(object));
  return BigUint64Array.of(0n, minus(type), minus(owner), minus(target), selfOf, functionOf);
}
