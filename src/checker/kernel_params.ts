/**
 * What a kernel's PTX says about its parameters: where they are, and whether the kernel changes what they point to.
 *
 * @module
 */
import { roundUp } from "../ffi/mod.ts";
import { type FunctionSyntax, type Instruction, type Operand, parse, type Statement } from "../ptx/mod.ts";

/** A parameter of a kernel. */
export interface KernelParam {
  /** Its offset in the argument buffer. */
  readonly offset: number;
  /** Bytes. */
  readonly size: number;
  /** Whether the kernel may write where it points to; null if unknown. */
  readonly writes: boolean | null;
}

/** The parameters of every kernel of a module; none for text that cannot be parsed. */
export function paramsOf(ptx: string): ReadonlyMap<string, readonly KernelParam[]> {
  let functions: readonly FunctionSyntax[] = [];
  try {
    ({ functions } = parse(ptx));
  } catch {
    return new Map(); // the driver understands more PTX than the parser
  }
  return new Map(functions.filter(({ isEntry }) => isEntry).map((entry) => [entry.name, describe(entry)]));
}

function describe({ params, body }: FunctionSyntax): KernelParam[] {
  const written = body === null ? null : writtenParams(new Set(params.map(({ name }) => name)), instructions(body));
  let end = 0;
  return params.map(({ name, size, align }) => {
    const offset = roundUp(end, align);
    end = offset + (size ?? 0);
    return { offset, size: size ?? 0, writes: written?.has(name) ?? null };
  });
}

function instructions(body: readonly Statement[]): Instruction[] {
  return body.flatMap((statement) => {
    if (statement.kind === "instruction") return [statement.instruction];
    return statement.kind === "block" ? instructions(statement.statements) : [];
  });
}

const changing: ReadonlySet<string> = new Set(["st", "atom", "red"]);
// law checker/opaque: checker/pending_call
/** Instructions that could pass an address on to where it is not tracked. */
const opaque: ReadonlySet<string> = new Set([
  "call",
  "cp",
  "wmma",
  "mbarrier",
  "stmatrix",
  "sust",
  "sured",
  "prefetchu",
]);

// law checker/writtenParams: checker/pending_call
/**
 * The parameters whose value may be part of an address that is written to, or null if unknown. Values are tracked from
 * register to register, whatever the instructions do with them and in whatever order they come.
 */
function writtenParams(params: ReadonlySet<string>, body: readonly Instruction[]): ReadonlySet<string> | null {
  if (body.some(({ opcode }) => opaque.has(opcode))) return null;
  /** The parameters that a register's value may come from. */
  const sources = new Map<string, Set<string>>();
  const from = (operand: Operand): string[] =>
    namesIn(operand).flatMap((name) => params.has(name) ? [name] : [...sources.get(name) ?? []]);
  const written = new Set<string>();
  for (let changed = true; changed;) {
    changed = false;
    for (const { opcode, modifiers, operands } of body) {
      const [target, ...inputs] = operands;
      if (target === undefined) continue;
      if (changing.has(opcode)) {
        const address = opcode === "atom" ? inputs[0] : target;
        if (address !== undefined && !modifiers.includes("shared")) {
          for (const name of from(address)) written.add(name);
        }
      }
      // A loaded value does not carry the address that it was loaded from, unless the load is of the parameter itself.
      if (changing.has(opcode) || (opcode === "ld" && !modifiers.includes("param"))) continue;
      const found = inputs.flatMap(from);
      for (const register of namesIn(target)) {
        const known = sources.getOrInsertComputed(register, () => new Set());
        const before = known.size;
        for (const name of found) known.add(name);
        if (known.size > before) changed = true;
      }
    }
  }
  return written;
}

function namesIn(operand: Operand): string[] {
  switch (operand.kind) {
    case "name":
    case "not":
      return [operand.name];
    case "address":
      return operand.base === null ? [] : [operand.base];
    case "vector":
    case "list":
      return operand.items.flatMap(namesIn);
    case "pair":
      return [...namesIn(operand.first), ...namesIn(operand.second)];
    default:
      return [];
  }
}
