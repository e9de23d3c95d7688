/**
 * The words in which the tables of this folder say what C looks like. Types only: nothing here exists at run time.
 *
 * What a word means to TypeScript is decided in `src/ffi/`: 64-bit values, pointers and handles travel as bigint, the
 * one type that both runtimes pass fast and exactly; everything narrower travels as number.
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
 * An argument: a scalar; or `buffer`, a pointer to const memory for which JavaScript memory of at least one byte may be
 * passed, or null, and which C may use during the call and not after it; or `memory`, a pointer for which JavaScript's
 * own memory of at least one byte is passed, of any kind, which C goes on reading or writing as long as the caller keeps
 * it: no address of it becomes a bigint; or `struct64`, a struct of 64 bytes passed by
 * value, without floating-point members (`CUipcMemHandle`), for which exactly so many bytes are passed; or `handle`, an
 * opaque handle, or an address that stays the same, of a function that is called so often that the conversion would
 * show: it takes it as it is, or as `src/ffi/` has prepared it.
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

/** One library's functions, in groups: the first call of any member binds its whole group, and no other. */
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
