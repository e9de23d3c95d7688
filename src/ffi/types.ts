/**
 * From the tables of `bindings/` to TypeScript: the function types of a library are derived from its symbol table, so
 * that a table and its callers cannot disagree.
 *
 * @module
 */
import type { Argument, CScalar, FunctionDescription, SymbolTable } from "../../bindings/abi.ts";

/** The JavaScript value of a C scalar: bigint for 64-bit values, pointers and handles, number for the rest. */
export type ScalarValue<S extends CScalar> = S extends "i64" | "u64" | "size" | "ptr" ? bigint : number;

/** What a `buffer` argument accepts: JavaScript memory that C uses only during the call, or null. */
export type BufferArgument = Uint8Array<ArrayBuffer> | null;

/** What a `memory` argument accepts: JavaScript's own memory, not shared and of fixed length. */
export type MemoryArgument = ArrayBuffer | ArrayBufferView<ArrayBuffer>;

/** What a `struct64` argument accepts: the 64 bytes of the struct, which are copied. */
export type StructArgument = Uint8Array<ArrayBuffer>;

/**
 * What a `handle` argument accepts: a handle, or the result of `FfiPort.handle` for one. A function that is not native
 * converts it back with `BigInt()`.
 */
export type HandleArgument = bigint | number;

/** The JavaScript value of one argument. */
export type ArgumentValue<A extends Argument> = A extends "buffer" ? BufferArgument
  : A extends "memory" ? MemoryArgument
  : A extends "struct64" ? StructArgument
  : A extends "handle" ? HandleArgument
  : A extends CScalar ? ScalarValue<A>
  : never;

/** The JavaScript values of an argument list. */
export type ArgumentValues<A extends readonly Argument[]> = { -readonly [I in keyof A]: ArgumentValue<A[I]> };

/** The JavaScript value of a result. */
export type ResultValue<R extends CScalar | "void"> = R extends CScalar ? ScalarValue<R> : void;

/** A C function, callable; `null` is added for a symbol that not every version of the library has. */
export type NativeFunction<D extends FunctionDescription> =
  | ((...args: ArgumentValues<D["args"]>) => ResultValue<D["returns"]>)
  | (D extends { readonly optional: true } ? null : never);

/** All functions of one group of a table. */
export type FunctionGroup<G extends SymbolTable[string]> = { readonly [Name in keyof G]: NativeFunction<G[Name]> };

/**
 * All functions of a library, in the groups of its table: `driver.stream.cuStreamSynchronize(handle)`. A library, a
 * simulator and a checker can all be values of this type.
 */
export type Functions<T extends SymbolTable> = { readonly [Group in keyof T]: FunctionGroup<T[Group]> };

/** The signature of a C callback made from a JavaScript function. */
export interface CallbackDescription {
  /** Types of the parameters, in order. */
  readonly args: readonly CScalar[];
  /** Type of the result. */
  readonly returns: CScalar | "void";
}

/** The JavaScript function behind a C callback. */
export type CallbackFunction<D extends CallbackDescription> = (
  ...args: ArgumentValues<D["args"]>
) => ResultValue<D["returns"]>;
