/**
 * The syntax tree of PTX text, as the parser leaves it: nothing is resolved yet.
 *
 * @module
 */
import type { ScalarType } from "./types.ts";

/** A number, with its bits as written: as binary32 for `0f...`, as binary64 for `0d...`. */
export interface Float {
  readonly kind: "float";
  readonly value: number;
  readonly single: number | null;
  readonly double: bigint | null;
}

/** An operand as written. */
export type Operand =
  /** A register, a variable, a special register, a label or a function; an offset makes it an address. */
  | { readonly kind: "name"; readonly name: string; readonly offset: bigint }
  | { readonly kind: "integer"; readonly value: bigint }
  | Float
  | { readonly kind: "vector"; readonly items: readonly Operand[] }
  | { readonly kind: "address"; readonly base: string | null; readonly offset: bigint }
  /** `d|p`: two results. */
  | { readonly kind: "pair"; readonly first: Operand; readonly second: Operand }
  /** `!p`. */
  | { readonly kind: "not"; readonly name: string }
  /** `(a, b)` in a call, `[a, {b, c}]` in an access to a texture. */
  | { readonly kind: "list"; readonly items: readonly Operand[] };

/** An instruction as written. */
export interface Instruction {
  readonly line: number;
  /** The predicate that decides whether it is executed. */
  readonly guard: { readonly name: string; readonly negated: boolean } | null;
  /** `add` in `add.s32`. */
  readonly opcode: string;
  /** `rn`, `f32` in `add.rn.f32`. */
  readonly modifiers: readonly string[];
  readonly operands: readonly Operand[];
}

/** Where a variable lives. */
export type StateSpace = "global" | "const" | "shared" | "local" | "param";

/** One value of an initialiser: bytes, or the address of another variable. */
export type Initial =
  | { readonly kind: "integer"; readonly value: bigint }
  | Float
  /** With a mask, `0xFF00(symbol)`: only that byte of the address. */
  | { readonly kind: "symbol"; readonly name: string; readonly offset: bigint; readonly mask: bigint | null };

/** A variable declaration. */
export interface Variable {
  readonly line: number;
  readonly space: StateSpace;
  readonly name: string;
  readonly type: ScalarType;
  readonly align: number;
  /** Size in bytes; null for an array without a length, allowed only for the launch's shared memory. */
  readonly size: number | null;
  readonly external: boolean;
  readonly initial: readonly Initial[];
}

/** A statement of a body. */
export type Statement =
  | { readonly kind: "instruction"; readonly instruction: Instruction }
  | { readonly kind: "variable"; readonly variable: Variable }
  /** `.reg .b32 %r<5>` has a count, `.reg .b32 temp` has none. */
  | {
    readonly kind: "registers";
    readonly line: number;
    readonly type: ScalarType;
    readonly name: string;
    readonly count: number | null;
  }
  | { readonly kind: "label"; readonly line: number; readonly name: string }
  | { readonly kind: "targets"; readonly line: number; readonly name: string; readonly labels: readonly string[] }
  | { readonly kind: "block"; readonly statements: readonly Statement[] };

/** A kernel entry or a function, defined or only declared. */
export interface FunctionSyntax {
  readonly line: number;
  readonly name: string;
  readonly isEntry: boolean;
  readonly results: readonly Variable[];
  readonly params: readonly Variable[];
  /** Maximum number of threads per block, from `.maxntid` or `.reqntid`. */
  readonly maxThreads: number | null;
  /** Null for a declaration. */
  readonly body: readonly Statement[] | null;
}

/** A module. */
export interface ModuleSyntax {
  readonly variables: readonly Variable[];
  readonly functions: readonly FunctionSyntax[];
}
