/**
 * Compiles a function of a module: resolves names, lays out the frame, lowers each instruction.
 *
 * @module
 */
import { addressInstructions } from "./instructions/addressing.ts";
import { atomicInstructions } from "./instructions/atomics.ts";
import { barrierInstructions } from "./instructions/barriers.ts";
import { bitInstructions } from "./instructions/bits.ts";
import { branchInstructions } from "./instructions/branches.ts";
import { compareInstructions } from "./instructions/compare.ts";
import { convertInstructions } from "./instructions/convert.ts";
import { PtxError } from "./error.ts";
import type { Compiled } from "./execution_state.ts";
import { floatArithmeticInstructions } from "./instructions/float_arithmetic.ts";
import { exactFloatInstructions } from "./instructions/float_exact.ts";
import { Frame } from "./frame.ts";
import { integerArithmeticInstructions } from "./instructions/integer_arithmetic.ts";
import { loadStoreInstructions } from "./instructions/load_store.ts";
import {
  type CallSignature,
  type InstructionContext,
  InstructionReader,
  type Label,
  type Lowering,
  type Meaning,
} from "./operands.ts";
import type { FunctionSyntax, Instruction, Statement, Variable } from "./syntax.ts";
import { registerBytes, type ScalarType } from "./types.ts";
import { warpInstructions } from "./instructions/warp.ts";

const instructions: ReadonlyMap<string, Lowering> = new Map(
  [
    integerArithmeticInstructions,
    bitInstructions,
    floatArithmeticInstructions,
    exactFloatInstructions,
    compareInstructions,
    convertInstructions,
    addressInstructions,
    loadStoreInstructions,
    atomicInstructions,
    branchInstructions,
    barrierInstructions,
    warpInstructions,
  ].flatMap((table) => Object.entries(table)),
);

/** Every supported opcode. */
export const opcodes: ReadonlySet<string> = new Set(instructions.keys());

/** A parameter or result: its offset in the launch's parameters, or in the local memory of the call. */
export interface Parameter {
  readonly offset: number;
  readonly size: number;
}

/** A compiled function. */
export interface LoweredFunction {
  readonly name: string;
  readonly line: number;
  readonly isEntry: boolean;
  readonly code: readonly Compiled[];
  readonly frame: Frame;
  /** Local memory of a call in bytes. */
  readonly localBytes: number;
  /** Its alignment in bytes, at least 16. */
  readonly localAlign: number;
  readonly params: readonly Parameter[];
  readonly results: readonly Parameter[];
  readonly calls: readonly CallSignature[];
  readonly maxThreads: number | null;
  /** The function's own shared variables, by the name that its frame uses. */
  readonly shared: ReadonlyMap<string, Variable>;
}

/** Names declared in a block and in its enclosing blocks. */
class Scope {
  readonly #names = new Map<string, Meaning>();
  /** `%r<5>` declares %r0 to %r4; each gets its slot on first use. */
  readonly #ranges: { readonly prefix: string; readonly count: number; readonly type: ScalarType }[] = [];
  readonly #outer: Scope | null;
  readonly #frame: Frame;
  readonly #module: (name: string) => Meaning | null;

  constructor(outer: Scope | null, frame: Frame, module: (name: string) => Meaning | null) {
    this.#outer = outer;
    this.#frame = frame;
    this.#module = module;
  }

  declare(name: string, meaning: Meaning, line: number): void {
    if (this.#names.has(name)) throw new PtxError(line, `${name} is declared twice`);
    this.#names.set(name, meaning);
  }

  registers(prefix: string, count: number, type: ScalarType): void {
    this.#ranges.push({ prefix, count, type });
  }

  resolve(name: string): Meaning | null {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    for (const { prefix, count, type } of this.#ranges) {
      if (!name.startsWith(prefix)) continue;
      const digits = name.slice(prefix.length);
      if (!/^(0|[1-9][0-9]*)$/.test(digits) || Number(digits) >= count) continue;
      const register: Meaning = { kind: "register", type, slot: this.#frame.allocate(registerBytes(type)) };
      this.#names.set(name, register);
      return register;
    }
    return this.#outer === null ? this.#module(name) : this.#outer.resolve(name);
  }
}

/** Rounds up to a multiple of the alignment. */
export function alignUp(offset: number, align: number): number {
  return Math.ceil(offset / align) * align;
}

/** Compiles one function. */
class FunctionLowering {
  readonly #syntax: FunctionSyntax;
  readonly #module: (name: string) => Meaning | null;
  readonly #frame = new Frame();
  readonly #code: Compiled[] = [];
  readonly #calls: CallSignature[] = [];
  readonly #shared = new Map<string, Variable>();
  #localBytes = 0;
  #localAlign = 16;

  constructor(syntax: FunctionSyntax, module: (name: string) => Meaning | null) {
    this.#syntax = syntax;
    this.#module = module;
  }

  lower(body: readonly Statement[]): LoweredFunction {
    const { name, line, isEntry, maxThreads } = this.#syntax;
    const scope = new Scope(null, this.#frame, this.#module);
    let paramBytes = 0;
    const declare = (variable: Variable): Parameter => {
      const { size } = variable;
      if (size === null) throw new PtxError(variable.line, `the parameter ${variable.name} has no size`);
      if (!isEntry) return { size, offset: this.#local(scope, variable) };
      const offset = alignUp(paramBytes, variable.align);
      paramBytes = offset + size;
      scope.declare(variable.name, { kind: "param", offset, size }, variable.line);
      return { offset, size };
    };
    const results = this.#syntax.results.map(declare);
    const params = this.#syntax.params.map(declare);
    this.#block(body, scope);
    // The end of a body is a return.
    this.#instruction({ line, guard: null, opcode: "ret", modifiers: [], operands: [] }, scope);
    return {
      name,
      line,
      isEntry,
      maxThreads,
      code: this.#code,
      frame: this.#frame,
      localBytes: this.#localBytes,
      localAlign: this.#localAlign,
      params,
      results,
      calls: this.#calls,
      shared: this.#shared,
    };
  }

  /** Assigns a variable its offset in the local memory of a call. */
  #local(scope: Scope, variable: Variable): number {
    const { name, size, align, line, space } = variable;
    if (size === null) throw new PtxError(line, `the variable ${name} has no size`);
    if (variable.initial.length > 0) {
      throw new PtxError(line, `the variable ${name} of .${space} cannot be initialised`);
    }
    this.#localAlign = Math.max(this.#localAlign, align);
    const offset = alignUp(this.#localBytes, align);
    this.#localBytes = offset + size;
    scope.declare(name, { kind: "local", offset, size, space: space === "param" ? "param" : "local" }, line);
    return offset;
  }

  #block(statements: readonly Statement[], scope: Scope): void {
    // Labels are declared before the jumps to them are compiled.
    const labels = new Map<string, Label>();
    for (const statement of statements) {
      if (statement.kind !== "label") continue;
      const label: Label = { pc: -1 };
      labels.set(statement.name, label);
      scope.declare(statement.name, { kind: "label", label }, statement.line);
    }
    for (const statement of statements) {
      if (statement.kind !== "targets") continue;
      const targets = statement.labels.map((name) => {
        const meaning = scope.resolve(name);
        if (meaning?.kind !== "label") throw new PtxError(statement.line, `${name} is not a label`);
        return meaning.label;
      });
      scope.declare(statement.name, { kind: "targets", labels: targets }, statement.line);
    }
    for (const statement of statements) {
      switch (statement.kind) {
        case "label": {
          const label = labels.get(statement.name);
          if (label !== undefined) label.pc = this.#code.length;
          break;
        }
        case "targets":
          break;
        case "block":
          this.#block(statement.statements, new Scope(scope, this.#frame, this.#module));
          break;
        case "registers":
          this.#registers(statement, scope);
          break;
        case "variable":
          this.#variable(statement.variable, scope);
          break;
        case "instruction":
          this.#instruction(statement.instruction, scope);
      }
    }
  }

  #registers(statement: Statement & { kind: "registers" }, scope: Scope): void {
    const { name, count, type, line } = statement;
    if (count !== null) return scope.registers(name, count, type);
    scope.declare(name, { kind: "register", type, slot: this.#frame.allocate(registerBytes(type)) }, line);
  }

  #variable(variable: Variable, scope: Scope): void {
    const { space, name, line } = variable;
    if (space === "local" || space === "param") {
      this.#local(scope, variable);
    } else if (space === "shared") {
      const unique = `${this.#syntax.name}::${this.#shared.size}::${name}`;
      this.#shared.set(unique, variable);
      scope.declare(name, { kind: "shared", name: unique }, line);
    } else {
      throw new PtxError(line, `a variable of .${space} inside a function is not supported`);
    }
  }

  #instruction(instruction: Instruction, scope: Scope): void {
    const context: InstructionContext = {
      frame: this.#frame,
      name: this.#syntax.name,
      isEntry: this.#syntax.isEntry,
      resolve: (name) => scope.resolve(name),
      calls: (call) => this.#calls.push(call),
    };
    const reader = new InstructionReader(instruction, context);
    const lower = instructions.get(instruction.opcode);
    const compiled = lower === undefined ? reader.fail("this instruction is not understood") : lower(reader);
    const { guard } = instruction;
    if (guard === null) {
      this.#code.push(compiled);
      return;
    }
    const { slot } = reader.predicate({ kind: "name", name: guard.name, offset: 0n });
    this.#code.push(guarded(compiled, slot, guard.negated));
  }
}

/** Wraps an instruction that executes only if its predicate holds. */
function guarded(compiled: Compiled, slot: number, negated: boolean): Compiled {
  return (state, next, base) => {
    const { regs: r } = state;
    const op = compiled(state, next, base);
    if (negated) return (t) => r.getInt32(t + slot, true) === 0 ? op(t) : next;
    return (t) => r.getInt32(t + slot, true) !== 0 ? op(t) : next;
  };
}

/**
 * Compiles a function that has a body.
 *
 * @param module resolves a name at module scope, or returns null
 * @throws {PtxError} for anything that is not supported
 */
export function lowerFunction(
  syntax: FunctionSyntax,
  body: readonly Statement[],
  module: (name: string) => Meaning | null,
): LoweredFunction {
  return new FunctionLowering(syntax, module).lower(body);
}
