/**
 * Addressing: which state space an access targets, and where in it.
 *
 * @module
 */
import { type Compiled, type ExecutionState, type PtxAccess, windows } from "../execution_state.ts";
import { copyBits } from "./op_templates.ts";
import type { InstructionReader, InstructionTable } from "../operands.ts";
import type { Operand, StateSpace } from "../syntax.ts";
import { pred, scalarType } from "../types.ts";

/** The space that an access names. */
export type WrittenSpace = StateSpace | "generic";

/** The space that an access targets: constants have addresses of device memory. */
type Space = Exclude<WrittenSpace, "const">;

/** Takes the state space from the modifiers. */
export function spaceOf(reader: InstructionReader): WrittenSpace {
  reader.shorten("shared::cta", "param::entry", "param::func");
  return reader.option("global", "const", "shared", "local", "param") ?? "generic";
}

/** Resolves the address of an operand for the thread with the frame at `t`, into `m.view` and `m.offset`. */
type Locate = (state: ExecutionState, t: number) => void;

// law ptx/locator: ptx/threads
/** Compiles an address operand. */
export function locator(
  reader: InstructionReader,
  operand: Operand,
  written: WrittenSpace,
  bytes: number,
  access: PtxAccess,
): Locate {
  if (operand.kind !== "address") return reader.fail("expected an address in brackets");
  const { line } = reader;
  const { frame, isEntry } = reader.context;
  const { base } = operand;
  let { offset } = operand;
  let space: Space = written === "const" ? "global" : written;
  let slot: number;
  let wide = true;
  const meaning = base === null ? null : reader.context.resolve(base);
  if (base === null) {
    slot = frame.constant(offset);
    offset = 0n;
  } else if (meaning?.kind === "register") {
    if (meaning.type.bits !== 64 && meaning.type.bits !== 32) reader.fail(`${base} has ${meaning.type.bits} bits`);
    slot = meaning.slot;
    wide = meaning.type.bits === 64;
    // Function parameters live in local memory.
    if (space === "param" && !isEntry) space = "local";
  } else {
    const lives = meaning?.kind === "local" || meaning?.kind === "global" ? meaning.space : meaning?.kind;
    const place = reader.address(base, 0n);
    if (place === null || lives === undefined) return reader.fail(`${base} is not declared`);
    if (written === "generic") {
      // A variable name where a generic address is allowed: the variable determines the space.
      space = lives === "shared" || lives === "local" || lives === "param" ? lives : "global";
    } else if (lives !== written) reader.fail(`${base} is in .${lives}, not in .${written}`);
    if (meaning?.kind === "local") space = "local";
    slot = place;
  }
  const add = Number(offset);
  if (Math.abs(add) >= 2 ** 31) reader.fail(`the offset ${offset} has more than 32 bits`);
  // The resolver is selected once: all take the same arguments.
  const resolve = resolvers[space];
  // The memory of a block or thread has addresses of 32 bits, which wrap: a compiler may move part of one that is
  // computed in 32 bits to the offset, and leave less than zero in the register.
  const carries = wide || space === "global" || space === "generic";
  return (state, t) => {
    const r = state.regs;
    let lo = r.getUint32(t + slot, true) + add;
    let hi = wide ? r.getInt32(t + slot + 4, true) : 0;
    if (lo < 0) {
      lo += 4294967296;
      hi -= 1;
    } else if (lo >= 4294967296) {
      lo -= 4294967296;
      if (carries) hi += 1;
    }
    resolve(state, lo, hi, bytes, access, line);
  };
}

const resolvers: Readonly<
  Record<Space, (state: ExecutionState, lo: number, hi: number, bytes: number, access: PtxAccess, line: number) => void>
> = {
  global: (state, lo, hi, bytes, access, line) => state.global(lo, hi, bytes, access, line),
  shared: (state, lo, hi, bytes, access, line) => state.shared(lo, hi, bytes, access, line),
  local: (state, lo, hi, bytes, access, line) => state.local(lo, hi, bytes, access, line),
  param: (state, lo, hi, bytes, access, line) => state.param(lo, hi, bytes, access, line),
  generic: (state, lo, hi, bytes, access, line) => state.generic(lo, hi, bytes, access, line),
};

/** Memory orders with their scopes, and caches. */
const hints = new Set([
  ...["weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "cta", "cluster", "gpu", "sys"],
  ...["ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc"],
]);

/**
 * Drops cache hints, and memory orders, which the interpreter's sequentially consistent memory always satisfies.
 */
export function dropHints(reader: InstructionReader): void {
  reader.drop((name) => hints.has(name) || /^L[12]::(?!cache_hint)/.test(name));
}

/** `cvta`: converts between generic addresses and those of a space. */
function cvta(reader: InstructionReader): Compiled {
  const back = reader.flag("to");
  const space = reader.choice("global", "const", "shared", "local", "param");
  const type = reader.type("u64");
  reader.end(2);
  const [d, a] = [reader.result(type), reader.source(1, type)];
  if (space === "global" || space === "const") return copyBits(64, d, a);
  // A function parameter lives in local memory.
  const window = windows[space === "param" && !reader.context.isEntry ? "local" : space];
  return ({ regs: r }, next) => (t) => {
    const [lo, hi] = [r.getInt32(t + a, true), r.getInt32(t + a + 4, true)];
    r.setInt32(t + d, lo, true);
    // An address outside the space stays wrong, and faults when used.
    r.setInt32(t + d + 4, back ? hi - window : hi + window, true);
    return next;
  };
}

/** Whether a generic address lies in a space. */
function isspacep(reader: InstructionReader): Compiled {
  reader.shorten("shared::cta");
  const space = reader.choice("global", "const", "shared", "local", "param");
  reader.end(2);
  const d = reader.result(pred);
  const a = reader.source(1, scalarType("u64"));
  if (space === "const") reader.fail("constants have the addresses of device memory");
  const others: number[] = Object.values(windows);
  return ({ regs: r }, next) => (t) => {
    const hi = r.getInt32(t + a + 4, true);
    const is = space === "global" ? !others.includes(hi) : hi === windows[space];
    r.setInt32(t + d, is ? 1 : 0, true);
    return next;
  };
}

/** Instructions on addresses, by opcode. */
export const addressInstructions: InstructionTable = {
  cvta,
  isspacep,
};
