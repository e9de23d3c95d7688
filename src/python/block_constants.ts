/**
 * The constants that machine code programs find in their blocks of memory.
 *
 * @module
 */
import type { Interpreter } from "./interpreter.ts";

/** The functions after which fields of a block are named, and the negated addresses that values are compared with. */
export function blockConstants(python: Interpreter, block: object): Readonly<Record<string, bigint>> {
  const { none, true: yes, false: no } = python.singletons;
  const functions = Object.keys(block).filter((field) => field.startsWith("Py"));
  return {
    ...Object.fromEntries(functions.map((name) => [name, python.functionAt(name)])),
    minusFloat: -python.helper("float"),
    minusInt: -python.helper("int"),
    minusNone: -none,
    minusTrue: -yes,
    minusFalse: -no,
  };
}
