/**
 * The vocabulary in which the tables of this folder describe C. Types only: nothing here exists at run time.
 *
 * `src/ffi/` maps the words to TypeScript: 64-bit values, pointers and handles are passed as bigint, the one type that
 * both runtimes pass fast and exactly; everything narrower is passed as number.
 *
 * @module
 */

/** A C type as an argument, a result or a struct field. `size` is `size_t`; `ptr` is any pointer or opaque handle. */
export type CScalar =
  | "i8"
  | "u8"
  | "i16"
  | "u16"
  | "i32"
  | "u32"
  | "i64"
  | "u64"
  | "f32"
  | "f64"
  | "size"
  | "ptr";

/**
 * An argument: a scalar; or `buffer`, a pointer to const memory for which the caller may pass JavaScript memory of at
 * least one byte, or null, and which C may use only during the call; or `memory`, a pointer for which the caller passes
 * JavaScript memory of at least one byte, of any kind, which C may read or write for as long as the caller keeps it:
 * its address never becomes a bigint; or `struct64`, a struct of 64 bytes passed by value, without floating-point
 * members (`CUipcMemHandle`), for which exactly 64 bytes are passed; or `handle`, an opaque handle or a constant
 * address, in a function called so often that the conversion would be measurable: it is passed as is, or as prepared by
 * `src/ffi/`.
 */
export type Argument = CScalar | "buffer" | "memory" | "struct64" | "handle";

/** One C function. */
export interface FunctionDescription {
  /** Types of the parameters, in order. */
  readonly args: readonly Argument[];
  /** Type of the result. */
  readonly returns: CScalar | "void";
  /** True if older versions of the library lack it: the bound function is then `null`. */
  readonly optional?: true;
}

/** A library's functions, in groups: the first call of any member binds its whole group, and no other. */
export interface SymbolTable {
  /** The functions of a group, by name. */
  readonly [group: string]: { readonly [symbol: string]: FunctionDescription };
}

/** A field of a struct: a scalar, a struct by value, or `[element, count]` for an array by value. */
export type Field = CScalar | StructDescription | readonly [element: CScalar | StructDescription, count: number];

/** A C struct: its fields in the order of the header. Offsets and size follow from the natural alignment of C. */
export interface StructDescription {
  readonly [field: string]: Field;
}
