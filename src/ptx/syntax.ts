/**
 * What PTX text consists of, as the parser leaves it: nothing is resolved yet.
 *
 * @module
 */
import type { ScalarType } from "./types.ts";

/** An operand as written. */
export type Operand =
  /** A register, a variable, a special register, a label or a function; with an offset only as an address. */
  | { readonly kind: "name"; readonly name: string; readonly offset: bigint }
  | { readonly kind: "integer"; readonly value: bigint }
  /** A number with its bits as binary64, and, for `0f...`, as the binary32 that was written. */
  | { readonly kind: "float"; readonly value: number; readonly single: number | null; readonly double: bigint | null }
  | { readonly kind: "vector"; readonly items: readonly Operand[] }
  | { readonly kind: "address"; readonly base: string | null; readonly offset: bigint }
  /** `d|p`: two results. */
  | { readonly kind: "pair"; readonly first: Operand; readonly second: Operand }
  /** `!p`. */
  | { readonly kind: "not"; readonly name: string }
  /** `(a, b)` of a call. */
  | { readonly kind: "list"; readonly items: readonly Operand[] };

/** An instruction as written. */
export interface Instruction {
  readonly line: number;
  /** The predicate that decides whether it is executed. */
  readonly guard: { readonly name: string; readonly negated: boolean } | null;
  /** `add` of `add.s32`. */
  readonly opcode: string;
  /** `rn`, `f32` of `add.rn.f32`. */
  readonly modifiers: readonly string[];
  readonly operands: readonly Operand[];
}

/** Where a variable lives. */
export type StateSpace = "global" | "const" | "shared" | "local" | "param";

/** One value of an initialiser: bytes, or the address of another variable. */
export type Initial =
  | { readonly kind: "integer"; readonly value: bigint }
  | { readonly kind: "float"; readonly value: number; readonly single: number | null; readonly double: bigint | null }
  | { readonly kind: "symbol"; readonly name: string; readonly offset: bigint; readonly generic: boolean };

/** A declaration of a variable. */
export interface Variable {
  readonly line: number;
  readonly space: StateSpace;
  readonly name: string;
  readonly type: ScalarType;
  readonly align: number;
  /** Bytes; null for an array without a length, which only shared memory of the launch may be. */
  readonly size: number | null;
  readonly external: boolean;
  readonly initial: readonly Initial[];
}

/** What a body consists of. */
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

/** An entry, a function, or the declaration of one. */
export interface FunctionSyntax {
  readonly line: number;
  readonly name: string;
  readonly isEntry: boolean;
  readonly results: readonly Variable[];
  readonly params: readonly Variable[];
  /** Threads of a block at most, from `.maxntid` or `.reqntid`. */
  readonly maxThreads: number | null;
  /** Null for a declaration. */
  readonly body: readonly Statement[] | null;
}

/** A module. */
export interface ModuleSyntax {
  readonly variables: readonly Variable[];
  readonly functions: readonly FunctionSyntax[];
}
