/**
 * Atomic operations on memory.
 *
 * @module
 */
import type { Compiled } from "../execution_state.ts";
import { decode16, encode16, flush } from "../float_registers.ts";
import { dropHints, locator } from "./addressing.ts";
import type { InstructionReader, InstructionTable } from "../operands.ts";
import { addToOdd, bfloat16, binary16, roundTo } from "../rounding.ts";
import { isSigned, type ScalarType } from "../types.ts";

/** Computes the new value of an atomic operation from the value in memory, `b`, and for `cas` also `c`. */
type Combine = (old: bigint, b: bigint, c: bigint) => bigint;

/** Combine functions by operation; the type decides whether operands are signed. */
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

/** The types that each operation supports. */
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

/** Adds floats given as their bits. */
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
        // In device memory, unlike in shared memory, subnormals are flushed to zero.
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

/** `atom` returns the old value, `red` does not. */
function atom(reader: InstructionReader): Compiled {
  const returns = reader.instruction.opcode === "atom";
  dropHints(reader);
  reader.shorten("shared::cta");
  const space = reader.option("global", "shared") ?? "generic";
  const operation = reader.choice("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec");
  if (!returns && (operation === "exch" || operation === "cas")) reader.fail(`.${operation} is for atom only`);
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

/** Atomic operations, by opcode. */
export const atomicInstructions: InstructionTable = {
  atom,
  red: atom,
};
