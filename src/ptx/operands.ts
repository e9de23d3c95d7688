/**
 * Reads an instruction that is being compiled: its modifiers and operands, one by one. Anything left unread at the end
 * is an error, so nothing is ever ignored.
 *
 * @module
 */
import { PtxError } from "./error.ts";
import type { Compiled } from "./execution_state.ts";
import type { Frame } from "./frame.ts";
import type { Instruction, Operand } from "./syntax.ts";
import { type ScalarType, scalarTypes } from "./types.ts";

/** A jump target, relative to the start of the function; known once the function is complete. */
export interface Label {
  pc: number;
}

/** The meaning of a name. */
export type Meaning =
  | { readonly kind: "register"; readonly type: ScalarType; readonly slot: number }
  | { readonly kind: "label"; readonly label: Label }
  | { readonly kind: "targets"; readonly labels: readonly Label[] }
  /** A kernel parameter: an offset into the launch's parameters. */
  | { readonly kind: "param"; readonly offset: number; readonly size: number }
  /** A per-call variable: an offset into the call's local memory. Function parameters are here too. */
  | { readonly kind: "local"; readonly offset: number; readonly size: number; readonly space: "local" | "param" }
  | { readonly kind: "shared"; readonly name: string }
  | { readonly kind: "global"; readonly name: string; readonly space: "global" | "const" };

/** Compiles an instruction. */
export type Lowering = (reader: InstructionReader) => Compiled;

/** How instructions are compiled, by opcode. */
export type InstructionTable = Readonly<Record<string, Lowering>>;

/** The context that an instruction is compiled in. */
export interface InstructionContext {
  readonly frame: Frame;
  /** Name of the function. */
  readonly name: string;
  readonly isEntry: boolean;
  /** Resolves a name at this point, or returns null. */
  resolve(name: string): Meaning | null;
  /** Records a call. */
  calls(call: CallSignature): void;
}

/** A call, recorded to be checked against the callee's declaration. Sizes are in bytes. */
export interface CallSignature {
  readonly name: string;
  readonly line: number;
  readonly results: readonly number[];
  readonly args: readonly number[];
}

/** Special registers that are constant while a thread runs; those that change are read by `mov` alone. */
const specialRegisters: ReadonlySet<string> = new Set([
  ...["tid", "ntid", "ctaid", "nctaid"].flatMap((name) => ["x", "y", "z"].map((axis) => `%${name}.${axis}`)),
  ...["laneid", "warpid", "nwarpid", "smid", "nsmid", "dynamic_smem_size", "total_smem_size"].map((name) => `%${name}`),
  ...["eq", "le", "lt", "ge", "gt"].map((name) => `%lanemask_${name}`),
]);

const convert = new DataView(new ArrayBuffer(8));

/** The bits of a number as binary32. */
function bits32(value: number): bigint {
  convert.setFloat32(0, value);
  return BigInt(convert.getUint32(0));
}

/** The bits of a number as binary64. */
function bits64(value: number): bigint {
  convert.setFloat64(0, value);
  return convert.getBigUint64(0);
}

/** Reads the modifiers and operands of an instruction. */
export class InstructionReader {
  readonly instruction: Instruction;
  readonly context: InstructionContext;
  readonly #unread: string[];

  constructor(instruction: Instruction, context: InstructionContext) {
    this.instruction = instruction;
    this.context = context;
    this.#unread = [...instruction.modifiers];
  }

  get line(): number {
    return this.instruction.line;
  }

  /** The opcode with its modifiers, as written. */
  get text(): string {
    return [this.instruction.opcode, ...this.instruction.modifiers].join(".");
  }

  /** @throws {PtxError} that names the instruction and its line */
  fail(what: string): never {
    throw new PtxError(this.line, `${this.text}: ${what}`);
  }

  /** Takes an optional modifier. Returns whether it is present. */
  flag(name: string): boolean {
    const at = this.#unread.indexOf(name);
    if (at >= 0) this.#unread.splice(at, 1);
    return at >= 0;
  }

  /** Shortens modifiers to what precedes `::`: without clusters, the short names of spaces mean the same. */
  shorten(...names: readonly string[]): void {
    for (const name of names) if (this.flag(name)) this.#unread.push(name.split("::")[0] ?? name);
  }

  /** Whether a name denotes a special register that no declaration shadows. */
  isSpecial(name: string): boolean {
    return specialRegisters.has(name) && this.context.resolve(name) === null;
  }

  /** Takes whichever of several modifiers is present; null if none is. */
  option<const T extends string>(...names: readonly T[]): T | null {
    for (const name of names) if (this.flag(name)) return name;
    return null;
  }

  /** Takes whichever of several modifiers is present; fails if none is. */
  choice<const T extends string>(...names: readonly T[]): T {
    return this.option(...names) ?? this.fail(`expected one of ${names.map((name) => `.${name}`).join(", ")}`);
  }

  /** Takes the first modifier that is a type. */
  type(...allowed: readonly string[]): ScalarType {
    const name = this.#unread.find((one) => scalarTypes.has(one));
    const type = name === undefined ? undefined : scalarTypes.get(name);
    if (name === undefined || type === undefined) {
      const [unread] = this.#unread.slice(-1);
      this.fail(unread === undefined ? "expected a type" : `the type .${unread} is not understood`);
    }
    if (allowed.length > 0 && !allowed.includes(name)) this.fail(`the type .${name} is not understood here`);
    this.flag(name);
    return type;
  }

  /** Takes all modifiers that a test accepts, such as cache hints. */
  drop(accepts: (name: string) => boolean): void {
    for (const name of [...this.#unread]) if (accepts(name)) this.flag(name);
  }

  /** Checks that no modifier is left unread, and that the number of operands is right. */
  end(operands: number, most: number = operands): void {
    if (this.#unread.length > 0) {
      this.fail(
        `the modifier${this.#unread.length > 1 ? "s" : ""} .${this.#unread.join(", .")} ${
          this.#unread.length > 1 ? "are" : "is"
        } not understood here`,
      );
    }
    const { length } = this.instruction.operands;
    if (length < operands || length > most) {
      this.fail(`expected ${operands === most ? operands : `${operands} to ${most}`} operands, got ${length}`);
    }
  }

  /** An operand as written. */
  operand(index: number): Operand {
    return this.instruction.operands[index] ?? this.fail(`operand ${index + 1} is missing`);
  }

  /** Number of operands as written. */
  get count(): number {
    return this.instruction.operands.length;
  }

  /** The register that an operand names. */
  register(operand: Operand): { readonly type: ScalarType; readonly slot: number } {
    const meaning = operand.kind === "name" && operand.offset === 0n ? this.context.resolve(operand.name) : null;
    if (meaning?.kind !== "register") this.fail(`expected a register, got ${describe(operand)}`);
    return meaning;
  }

  /** The slot of a result. For `_`, which discards it, a slot that nothing reads. */
  to(operand: Operand, type: ScalarType, wider = false): number {
    if (operand.kind === "name" && operand.name === "_") return this.context.frame.allocate(8);
    const register = this.register(operand);
    this.#fits(register.type, type, wider, operand);
    return register.slot;
  }

  #fits(register: ScalarType, type: ScalarType, wider: boolean, operand: Operand): void {
    const predicates = Number(register.kind === "predicate") + Number(type.kind === "predicate");
    const fits = wider ? register.bits >= type.bits : register.bits === type.bits;
    if (predicates === 1 || !fits) {
      this.fail(`${describe(operand)} is a register of type .${register.name}, which does not fit .${type.name}`);
    }
  }

  /** The slot of a source operand: any register, constant, special register or address. */
  from(operand: Operand, type: ScalarType, wider = false): number {
    const { frame } = this.context;
    switch (operand.kind) {
      case "integer":
        if (type.kind === "float" && type.bits > 16) this.fail(`${operand.value} is an integer, expected a float`);
        return frame.constant(operand.value);
      case "float": {
        const { value, single, double } = operand;
        if (type.kind === "signed" || type.kind === "unsigned" || type.kind === "predicate") {
          this.fail(`${value} is a float, expected .${type.name}`);
        }
        if (type.bits === 32) return frame.constant(single === null ? bits32(value) : BigInt(single));
        if (type.bits === 64) return frame.constant(double ?? bits64(value));
        return this.fail(`a float constant cannot be .${type.name}`);
      }
      case "name": {
        const meaning = this.context.resolve(operand.name);
        if (meaning?.kind === "register" && operand.offset === 0n) {
          this.#fits(meaning.type, type, wider, operand);
          return meaning.slot;
        }
        if (operand.name === "WARP_SZ") return frame.constant(32n);
        if (specialRegisters.has(operand.name)) return frame.special(operand.name);
        const slot = this.address(operand.name, operand.offset);
        if (slot !== null && (type.bits === 64 || type.bits === 32)) return slot;
      }
    }
    return this.fail(`${describe(operand)} is not understood as an operand of type .${type.name}`);
  }

  /** A slot holding the address of a variable within its space, or null if the name is not a variable. */
  address(name: string, offset: bigint): number | null {
    const { frame } = this.context;
    const meaning = this.context.resolve(name);
    switch (meaning?.kind) {
      case "param":
        return frame.constant(BigInt(meaning.offset) + offset);
      case "local":
        return frame.local(meaning.offset + Number(offset));
      case "shared":
        return frame.shared(meaning.name, Number(offset));
      case "global":
        return frame.global(meaning.name, offset);
      default:
        return null;
    }
  }

  /** The slot of the result operand, `d`. */
  result(type: ScalarType, wider = false): number {
    return this.to(this.operand(0), type, wider);
  }

  /** The slot of a source operand, by index. */
  source(index: number, type: ScalarType, wider = false): number {
    return this.from(this.operand(index), type, wider);
  }

  /** A predicate operand that may be negated. */
  predicate(operand: Operand): { readonly slot: number; readonly negated: boolean } {
    const negated = operand.kind === "not";
    const name = operand.kind === "not" || operand.kind === "name" ? operand.name : "";
    const meaning = this.context.resolve(name);
    if (meaning?.kind !== "register" || meaning.type.kind !== "predicate") {
      this.fail(`expected a predicate, got ${describe(operand)}`);
    }
    return { slot: meaning.slot, negated };
  }

  /** The label that an operand names. */
  label(operand: Operand): Label {
    const meaning = operand.kind === "name" ? this.context.resolve(operand.name) : null;
    if (meaning?.kind !== "label") this.fail(`expected a label, got ${describe(operand)}`);
    return meaning.label;
  }
}

/** Formats an operand for an error message. */
function describe(operand: Operand): string {
  switch (operand.kind) {
    case "name":
    case "not":
      return operand.name;
    case "integer":
    case "float":
      return String(operand.value);
    case "address":
      return `[${operand.base ?? ""}${operand.offset === 0n ? "" : `+${operand.offset}`}]`;
    case "pair":
      return `${describe(operand.first)}|${describe(operand.second)}`;
    case "vector":
      return `{${operand.items.map(describe).join(", ")}}`;
    case "list":
      return `(${operand.items.map(describe).join(", ")})`;
  }
}
