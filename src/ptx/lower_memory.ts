/**
 * Moving data: between registers, and between registers and the memory spaces.
 *
 * @module
 */
import { decode16, encode16, flush } from "./float_registers.ts";
import { scalarType } from "./lower_integer.ts";
import type { Compiled, ExecutionState, PtxAccess } from "./execution_state.ts";
import { windows } from "./execution_state.ts";
import { addToOdd, bfloat16, binary16, roundTo } from "./rounding.ts";
import { copyBits } from "./op_templates.ts";
import type { InstructionReader } from "./operands.ts";
import type { Operand } from "./syntax.ts";
import { isSigned, type ScalarType } from "./types.ts";

/** Where an access goes. */
type Space = "global" | "shared" | "local" | "param" | "generic";

/** Registers that change while a thread runs. */
const clocks: ReadonlyMap<string, 32 | 64> = new Map([["%clock", 32], ["%clock64", 64], ["%globaltimer", 64]]);

const staging = new DataView(new ArrayBuffer(32));

/** One copy after another into a place of its own, then out: the parts of a vector may be what is overwritten. */
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
    case 2:
      // A register has a word, of which 16 bits leave the upper half zero; in the staging area the next part follows.
      if (to === staging) to.setInt16(target, from.getInt16(source, true), true);
      else to.setInt32(target, from.getUint16(source, true), true);
      return;
    case 4:
      return to.setInt32(target, from.getInt32(source, true), true);
    default:
      for (let i = 0; i < bytes; i += 4) to.setInt32(target + i, from.getInt32(source + i, true), true);
  }
}

function mov(reader: InstructionReader): Compiled {
  const type = reader.type();
  reader.end(2);
  const [target, source] = [reader.operand(0), reader.operand(1)];
  if (target.kind === "vector" || source.kind === "vector") {
    if (![32, 64, 128].includes(type.bits)) reader.fail(`.${type.name} is not made of parts`);
    const side = (operand: Operand, write: boolean): number[] => {
      const items = operand.kind === "vector" ? operand.items : [operand];
      if (![1, 2, 4].includes(items.length) || type.bits / items.length < 16) {
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

/** Resolves the address of an operand for the thread with the frame at `t`, into `m.view` and `m.offset`. */
type Locate = (state: ExecutionState, t: number) => void;

/** Takes the state space from the modifiers. */
function spaceOf(reader: InstructionReader): "global" | "const" | "shared" | "local" | "param" | "generic" {
  reader.drop((name) =>
    name === "shared::cta" || name === "param::entry" || name === "param::func" ? shorten(reader, name) : false
  );
  return reader.option("global", "const", "shared", "local", "param") ?? "generic";
}

/** The long names of spaces are the short ones, where there are no clusters. */
function shorten(reader: InstructionReader, name: string): boolean {
  reader.add(name.split("::")[0] ?? name);
  return true;
}

/** Compiles an address operand. */
export function locator(
  reader: InstructionReader,
  operand: Operand,
  written: "global" | "const" | "shared" | "local" | "param" | "generic",
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
    // Parameters of functions are kept where local variables are.
    if (space === "param" && !isEntry) space = "local";
  } else {
    const lives = meaning?.kind === "local"
      ? meaning.space
      : meaning?.kind === "global"
      ? meaning.space
      : meaning?.kind;
    const place = reader.address(base, 0n);
    if (place === null || lives === undefined) return reader.fail(`${base} is not declared`);
    if (written === "generic") {
      // A name where any address may be: it says itself where it is.
      space = lives === "shared" || lives === "local" ? lives : lives === "param" ? "param" : "global";
    } else if (lives !== written) reader.fail(`${base} is in .${lives}, not in .${written}`);
    if (meaning?.kind === "local") space = "local";
    slot = place;
  }
  const add = Number(offset);
  if (Math.abs(add) >= 2 ** 31) reader.fail(`the offset ${offset} has more than 32 bits`);
  // The names are looked up once: each of the machine's resolvers takes the same arguments.
  const resolve = resolvers[space];
  return (state, t) => {
    const r = state.regs;
    let lo = r.getUint32(t + slot, true) + add;
    let hi = wide ? r.getInt32(t + slot + 4, true) : 0;
    if (lo < 0) {
      lo += 4294967296;
      hi -= 1;
    } else if (lo >= 4294967296) {
      lo -= 4294967296;
      hi += 1;
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

/** Hints to caches, and orders that the interpreter's memory, which is sequentially consistent, always keeps. */
function dropHints(reader: InstructionReader): void {
  const words = [
    "weak",
    "volatile",
    "relaxed",
    "acquire",
    "release",
    "acq_rel",
    "mmio",
    "cta",
    "cluster",
    "gpu",
    "sys",
  ];
  const caches = ["ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc"];
  reader.drop((name) => words.includes(name) || caches.includes(name) || /^L[12]::(?!cache_hint)/.test(name));
}

/** Words of accesses that other threads may meanwhile make, too, by the rules of PTX's memory model. */
const strongWords: ReadonlySet<string> = new Set(["volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"]);

function isStrong({ instruction }: InstructionReader): boolean {
  return instruction.modifiers.some((name) => strongWords.has(name));
}

const memoryTypes = [8, 16, 32, 64].flatMap((bits) =>
  ["b", "u", "s", ...(bits > 8 ? ["f"] : [])].map((kind) => `${kind}${bits}`)
);

/** The registers of `{a, b}`, or of one operand. */
function vectorRegisters(reader: InstructionReader, operand: Operand): readonly Operand[] {
  const vector = reader.option("v2", "v4", "v8");
  const items = operand.kind === "vector" ? operand.items : [operand];
  const expected = vector === null ? 1 : Number(vector.slice(1));
  if (items.length !== expected) reader.fail(`expected ${expected} registers, got ${items.length}`);
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

function ld(reader: InstructionReader): Compiled {
  dropHints(reader);
  const space = spaceOf(reader);
  if (reader.instruction.opcode === "ldu" && space !== "global" && space !== "generic") {
    reader.fail(`the space .${space} is not understood here`);
  }
  const type = reader.type(...memoryTypes);
  const targets = vectorRegisters(reader, reader.operand(0));
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
  const sources = vectorRegisters(reader, reader.operand(1));
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

/** `cvta`: between generic addresses and those of a space. */
function cvta(reader: InstructionReader): Compiled {
  const back = reader.flag("to");
  const space = reader.choice("global", "const", "shared", "local", "param");
  const type = reader.type("u64");
  reader.end(2);
  const [d, a] = [reader.result(type), reader.source(1, type)];
  if (space === "global" || space === "const") return copyBits(64, d, a);
  // What is a parameter of a function lives in local memory.
  const window = windows[space === "param" && !reader.context.isEntry ? "local" : space];
  return ({ regs: r }, next) => (t) => {
    const [lo, hi] = [r.getInt32(t + a, true), r.getInt32(t + a + 4, true)];
    r.setInt32(t + d, lo, true);
    // An address that is not of the space stays wrong, and faults when it is used.
    r.setInt32(t + d + 4, back ? hi - window : hi + window, true);
    return next;
  };
}

/** Asks which space a generic address is of. */
function isspacep(reader: InstructionReader): Compiled {
  reader.drop((name) => name === "shared::cta" ? shorten(reader, name) : false);
  const space = reader.choice("global", "const", "shared", "local", "param");
  reader.end(2);
  const d = reader.to(reader.operand(0), scalarType("pred"));
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

/** What an atomic operation makes of the value in memory, `b`, and for `cas` also `c`. */
type Combine = (old: bigint, b: bigint, c: bigint) => bigint;

/** Combines by operation; the operands are signed or not, as the type says. */
const combines: Readonly<Record<string, Combine>> = {
  add: (old, b) => old + b,
  min: (old, b) => b < old ? b : old,
  max: (old, b) => b > old ? b : old,
  and: (old, b) => old & b,
  or: (old, b) => old | b,
  xor: (old, b) => old ^ b,
  exch: (_, b) => b,
  cas: (old, b, c) => old === b ? c : old,
  inc: (old, b) => old >= b ? 0n : old + 1n,
  dec: (old, b) => old === 0n || old > b ? b : old - 1n,
};

/** The types that each operation has. */
const atomicTypes: Readonly<Record<string, readonly string[]>> = {
  add: ["u32", "s32", "u64", "f32", "f64", "f16", "bf16", "f16x2", "bf16x2"],
  min: ["u32", "s32", "u64", "s64"],
  max: ["u32", "s32", "u64", "s64"],
  and: ["b32", "b64"],
  or: ["b32", "b64"],
  xor: ["b32", "b64"],
  exch: ["b32", "b64"],
  cas: ["b16", "b32", "b64"],
  inc: ["u32"],
  dec: ["u32"],
};

const float = new DataView(new ArrayBuffer(8));

/** A sum of floats as their bits. */
function addFloats(type: ScalarType, isGlobal: boolean): Combine {
  switch (type.name) {
    case "f64":
      return (old, b) => {
        float.setBigUint64(0, old);
        const x = float.getFloat64(0);
        float.setBigUint64(0, b);
        const sum = x + float.getFloat64(0);
        float.setFloat64(0, sum);
        return !Number.isNaN(sum) ? float.getBigUint64(0) : 0xfff8000000000000n;
      };
    case "f32":
      return (old, b) => {
        float.setUint32(0, Number(old));
        float.setUint32(4, Number(b));
        let [x, y] = [float.getFloat32(0), float.getFloat32(4)];
        // In device memory, unlike in shared memory, numbers too small to be normal are zero.
        if (isGlobal) [x, y] = [flush(x), flush(y)];
        const sum = Math.fround(x + y);
        float.setFloat32(0, isGlobal ? flush(sum) : sum);
        return !Number.isNaN(sum) ? BigInt(float.getUint32(0)) : 0x7fffffffn;
      };
  }
  const format = type.name.startsWith("f16") ? binary16 : bfloat16;
  const add = (old: number, b: number): number =>
    encode16(format, roundTo(format, addToOdd(decode16(format, old), decode16(format, b), "rn"), "rn"));
  if (type.bits === 16) return (old, b) => BigInt(add(Number(old), Number(b)));
  return (old, b) => {
    const [x, y] = [Number(old), Number(b)];
    return BigInt(((add(x >>> 16, y >>> 16) << 16) | add(x & 0xffff, y & 0xffff)) >>> 0);
  };
}

/** `atom` gives the old value, `red` does not. */
function atom(reader: InstructionReader): Compiled {
  const returns = reader.instruction.opcode === "atom";
  dropHints(reader);
  reader.drop((name) => name === "shared::cta" ? shorten(reader, name) : false);
  const space = reader.option("global", "shared") ?? "generic";
  const operation = reader.choice("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec");
  if (!returns && (operation === "exch" || operation === "cas")) reader.fail(`.${operation} is of atom alone`);
  const noftz = reader.flag("noftz");
  const type = reader.type(...atomicTypes[operation] ?? []);
  const isFloat = type.kind === "float" || type.kind === "packed";
  const halves = isFloat && type.bits !== 64 && type.name !== "f32";
  if (noftz !== halves) reader.fail(halves ? "expected .noftz" : "the modifier .noftz is not understood here");
  const first = returns ? 1 : 0;
  reader.end(first + (operation === "cas" ? 3 : 2));
  const d = returns ? reader.result(type) : reader.context.frame.allocate(8);
  const locate = locator(reader, reader.operand(first), space, type.bytes, "atomic");
  const b = reader.source(first + 1, type);
  const c = operation === "cas" ? reader.source(first + 2, type) : b;
  const integer = combines[operation] ?? reader.fail("no such operation");
  const [inDevice, inShared] = isFloat ? [addFloats(type, true), addFloats(type, false)] : [integer, integer];
  const read = atomicReader(type);
  const cut = (value: bigint): bigint => BigInt.asUintN(type.bits, value);
  return (state, next) => {
    const { regs: r } = state;
    return (t) => {
      locate(state, t);
      const { view, offset } = state;
      const old = read(view, offset);
      const combine = view === state.thread.block.shared ? inShared : inDevice;
      const value = cut(combine(old, read(r, t + b), read(r, t + c)));
      if (type.bits === 64) {
        view.setBigUint64(offset, value, true);
        r.setBigUint64(t + d, cut(old), true);
      } else {
        if (type.bits === 16) view.setUint16(offset, Number(value), true);
        else view.setUint32(offset, Number(value), true);
        r.setUint32(t + d, Number(cut(old)), true);
      }
      return next;
    };
  };
}

function atomicReader(type: ScalarType): (view: DataView, offset: number) => bigint {
  if (type.bits === 16) return (view, offset) => BigInt(view.getUint16(offset, true));
  if (type.bits === 32) {
    return isSigned(type)
      ? (view, offset) => BigInt(view.getInt32(offset, true))
      : (view, offset) => BigInt(view.getUint32(offset, true));
  }
  return isSigned(type)
    ? (view, offset) => view.getBigInt64(offset, true)
    : (view, offset) => view.getBigUint64(offset, true);
}

/** Instructions that only make things faster. Their operands are still looked at. */
function prefetch(reader: InstructionReader): Compiled {
  if (reader.instruction.opcode === "prefetchu") reader.choice("L1");
  else {
    reader.option("global", "local");
    reader.choice("L1", "L2", "L2::evict_last", "L2::evict_normal");
  }
  reader.end(1);
  const operand = reader.operand(0);
  if (operand.kind !== "address") reader.fail("expected an address in brackets");
  return (_, next) => () => next;
}

/** Instructions that move data, by opcode. */
export const memoryInstructions: Readonly<Record<string, (reader: InstructionReader) => Compiled>> = {
  mov,
  ld,
  ldu: ld,
  st,
  cvta,
  isspacep,
  atom,
  red: atom,
  prefetch,
  prefetchu: prefetch,
};
