/**
 * Data movement: between registers, and between registers and the memory spaces.
 *
 * @module
 */
import type { Compiled } from "../execution_state.ts";
import { dropHints, locator, spaceOf, type WrittenSpace } from "./addressing.ts";
import { copyBits } from "./op_templates.ts";
import type { InstructionReader, InstructionTable } from "../operands.ts";
import type { Operand } from "../syntax.ts";
import { isSigned, type ScalarType, scalarType, scalarTypes } from "../types.ts";

/** Registers that change while a thread runs. */
const clocks: ReadonlyMap<string, 32 | 64> = new Map([["%clock", 32], ["%clock64", 64], ["%globaltimer", 64]]);

const staging = new DataView(new ArrayBuffer(32));

/** Copies through a staging buffer: the parts of a vector may be registers that the copy overwrites. */
function repack(total: number, targets: readonly number[], sources: readonly number[]): Compiled {
  const [into, outOf] = [total / sources.length, total / targets.length];
  return ({ regs: r }, next) => (t) => {
    sources.forEach((slot, i) => copyPart(r, t + slot, staging, i * into, into));
    targets.forEach((slot, i) => copyPart(staging, i * outOf, r, t + slot, outOf));
    return next;
  };
}

function copyPart(from: DataView, source: number, to: DataView, target: number, bytes: number): void {
  switch (bytes) {
    case 1:
      if (to === staging) to.setInt8(target, from.getInt8(source));
      else to.setInt32(target, from.getUint8(source), true);
      return;
    case 2:
      // A register is a word, and 16 bits leave its upper half zero; in the staging buffer the next part follows.
      if (to === staging) to.setInt16(target, from.getInt16(source, true), true);
      else to.setInt32(target, from.getUint16(source, true), true);
      return;
    case 4:
      return to.setInt32(target, from.getInt32(source, true), true);
    default:
      for (let i = 0; i < bytes; i += 4) to.setInt32(target + i, from.getInt32(source + i, true), true);
  }
}

/** All types but those of 8 bits, 16-bit floats and pairs, which are bits here. */
const movableTypes = [...scalarTypes.values()].filter(({ name, kind, bits }) =>
  bits !== 8 && kind !== "packed" && name !== "f16" && name !== "bf16"
);

function mov(reader: InstructionReader): Compiled {
  const type = reader.type(...movableTypes.map(({ name }) => name));
  reader.end(2);
  const [target, source] = [reader.operand(0), reader.operand(1)];
  if (target.kind === "vector" || source.kind === "vector") {
    if (type.kind !== "bits") reader.fail(`.${type.name} is not made of parts, .b${type.bits} is`);
    const side = (operand: Operand, write: boolean): number[] => {
      const items = operand.kind === "vector" ? operand.items : [operand];
      if (![1, 2, 4].includes(items.length) || type.bits / items.length < 8) {
        reader.fail(`.${type.name} is not made of ${items.length} parts`);
      }
      const part = scalarType(`b${type.bits / items.length}`);
      return items.map((item) => write ? reader.to(item, part) : reader.from(item, part));
    };
    return repack(type.bytes, side(target, true), side(source, false));
  }
  const d = reader.to(target, type);
  const clock = source.kind === "name" ? clocks.get(source.name) : undefined;
  if (clock !== undefined) {
    if (clock !== type.bits) reader.fail(`the register has ${clock} bits`);
    return (state, next) => (t) => {
      if (clock === 64) state.regs.setBigInt64(t + d, BigInt(state.executed), true);
      else state.regs.setInt32(t + d, state.executed, true);
      return next;
    };
  }
  if (type.bits === 128) return repack(16, [d], [reader.from(source, type)]);
  if (source.kind === "name" && source.name.startsWith("%") && type.bits === 64 && reader.isSpecial(source.name)) {
    reader.fail(`${source.name} has 32 bits`);
  }
  const a = reader.from(source, type, reader.isSpecial(source.kind === "name" ? source.name : ""));
  if (type.kind !== "predicate") return copyBits(type.bits, d, a);
  return ({ regs: r }, next) => (t) => {
    r.setInt32(t + d, r.getInt32(t + a, true) === 0 ? 0 : 1, true);
    return next;
  };
}

/** Modifiers of accesses that PTX's memory model lets race with accesses of other threads. */
const strongWords: ReadonlySet<string> = new Set(["volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"]);

function isStrong({ instruction }: InstructionReader): boolean {
  return instruction.modifiers.some((name) => strongWords.has(name));
}

const memoryTypes = [8, 16, 32, 64].flatMap((bits) =>
  ["b", "u", "s", ...(bits > 16 ? ["f"] : [])].map((kind) => `${kind}${bits}`)
);

/** How many bytes a load or store accesses at most. */
function mostBytes(space: WrittenSpace): number {
  return space === "global" || space === "generic" ? 32 : 16;
}

/** The registers in `{a, b}`, or the only operand, of at most `most` bytes. */
function vectorRegisters(
  reader: InstructionReader,
  operand: Operand,
  { bits, bytes }: ScalarType,
  most: number,
): readonly Operand[] {
  const vector = reader.option("v2", "v4", ...(bits === 32 ? ["v8"] : []));
  const items = operand.kind === "vector" ? operand.items : [operand];
  const expected = vector === null ? 1 : Number(vector.slice(1));
  if (items.length !== expected) reader.fail(`expected ${expected} registers, got ${items.length}`);
  if (bytes * expected > most) reader.fail(`more than ${most} bytes cannot be accessed here`);
  return items;
}

/** Reads one element into a register, which may be wider. */
type Load = (view: DataView, offset: number, r: DataView, slot: number) => void;

function loader(type: ScalarType, registerBits: number): Load {
  const signed = isSigned(type);
  switch (type.bits) {
    case 64:
      return (view, offset, r, slot) => {
        r.setInt32(slot, view.getInt32(offset, true), true);
        r.setInt32(slot + 4, view.getInt32(offset + 4, true), true);
      };
    case 32:
      if (registerBits === 32) return (view, offset, r, slot) => r.setInt32(slot, view.getInt32(offset, true), true);
  }
  const read: (view: DataView, offset: number) => number = type.bits === 8
    ? signed ? (view, offset) => view.getInt8(offset) : (view, offset) => view.getUint8(offset)
    : type.bits === 16
    ? signed ? (view, offset) => view.getInt16(offset, true) : (view, offset) => view.getUint16(offset, true)
    : signed
    ? (view, offset) => view.getInt32(offset, true)
    : (view, offset) => view.getUint32(offset, true);
  if (registerBits === 64) {
    return (view, offset, r, slot) => {
      const value = read(view, offset);
      r.setInt32(slot, value, true);
      r.setInt32(slot + 4, value < 0 ? -1 : 0, true);
    };
  }
  const mask = registerBits === 16 ? 0xffff : -1;
  return (view, offset, r, slot) => r.setInt32(slot, read(view, offset) & mask, true);
}

// law ptx/ld: checker/kernels
function ld(reader: InstructionReader): Compiled {
  dropHints(reader);
  const space = spaceOf(reader);
  if (reader.instruction.opcode === "ldu" && space !== "global" && space !== "generic") {
    reader.fail(`the space .${space} is not understood here`);
  }
  const type = reader.type(...memoryTypes);
  const most = reader.instruction.opcode === "ld" ? mostBytes(space) : 16;
  const targets = vectorRegisters(reader, reader.operand(0), type, most);
  reader.end(2);
  const locate = locator(
    reader,
    reader.operand(1),
    space,
    type.bytes * targets.length,
    isStrong(reader) ? "volatile read" : "read",
  );
  const loads = targets.map((operand): readonly [number, Load] => {
    const d = reader.to(operand, type, true);
    const isSink = operand.kind === "name" && operand.name === "_";
    return [d, loader(type, isSink ? 64 : reader.register(operand).type.bits)];
  });
  const [[d, load] = reader.fail("no register"), ...more] = loads;
  if (more.length === 0) {
    return (state, next) => {
      const { regs: r } = state;
      return (t) => {
        locate(state, t);
        load(state.view, state.offset, r, t + d);
        return next;
      };
    };
  }
  return (state, next) => (t) => {
    locate(state, t);
    const { view, offset } = state;
    loads.forEach(([slot, one], i) => one(view, offset + i * type.bytes, state.regs, t + slot));
    return next;
  };
}

/** Writes one element from a register. */
type Store = (view: DataView, offset: number, r: DataView, slot: number) => void;

function storer(type: ScalarType): Store {
  switch (type.bits) {
    case 8:
      return (view, offset, r, slot) => view.setInt8(offset, r.getInt8(slot));
    case 16:
      return (view, offset, r, slot) => view.setInt16(offset, r.getInt16(slot, true), true);
    case 32:
      return (view, offset, r, slot) => view.setInt32(offset, r.getInt32(slot, true), true);
    default:
      return (view, offset, r, slot) => {
        view.setInt32(offset, r.getInt32(slot, true), true);
        view.setInt32(offset + 4, r.getInt32(slot + 4, true), true);
      };
  }
}

function st(reader: InstructionReader): Compiled {
  dropHints(reader);
  const space = spaceOf(reader);
  if (space === "const") reader.fail("constants cannot be written");
  const type = reader.type(...memoryTypes);
  const sources = vectorRegisters(reader, reader.operand(1), type, mostBytes(space));
  reader.end(2);
  const locate = locator(
    reader,
    reader.operand(0),
    space,
    type.bytes * sources.length,
    isStrong(reader) ? "volatile write" : "write",
  );
  const slots = sources.map((operand) => reader.from(operand, type, true));
  const store = storer(type);
  const [a = 0] = slots;
  if (slots.length === 1) {
    return (state, next) => {
      const { regs: r } = state;
      return (t) => {
        locate(state, t);
        store(state.view, state.offset, r, t + a);
        return next;
      };
    };
  }
  return (state, next) => (t) => {
    locate(state, t);
    const { view, offset } = state;
    slots.forEach((slot, i) => store(view, offset + i * type.bytes, state.regs, t + slot));
    return next;
  };
}

/** Instructions that only affect speed. Their operands are still checked. */
function prefetch(reader: InstructionReader): Compiled {
  if (reader.instruction.opcode === "prefetchu") reader.choice("L1");
  else {
    const isLocal = reader.option("global", "local") === "local";
    reader.choice("L1", "L2", ...(isLocal ? [] : ["L2::evict_last", "L2::evict_normal"]));
  }
  reader.end(1);
  const operand = reader.operand(0);
  if (operand.kind !== "address") reader.fail("expected an address in brackets");
  return (_, next) => () => next;
}

/** Instructions that move data, by opcode. */
export const loadStoreInstructions: InstructionTable = {
  mov,
  ld,
  ldu: ld,
  st,
  prefetch,
  prefetchu: prefetch,
};
