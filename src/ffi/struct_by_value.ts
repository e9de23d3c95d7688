/**
 * Structs of 64 bytes passed by value, as CUDA passes the handles of other processes' memory and events.
 *
 * Deno passes structs itself. Bun has no such type, so a call with a struct is lowered to one with integers, following
 * the machine's calling convention.
 *
 * @module
 */
import type { Argument, SymbolTable } from "../../bindings/abi.ts";
import { FfiError } from "./errors.ts";
import { littleEndian } from "./endian.ts";

/** Bytes of a `struct64`. */
export const structBytes = 64;

const structWords = structBytes / 8;

/** Parameters that the System V ABI for x86-64 passes in registers: integers and pointers, and floating point. */
const integerRegisters = 6;
const floatRegisters = 8;

type AnyFunction = (...values: unknown[]) => unknown;

/** A call without structs that is equivalent to a call with them. */
export interface Lowered {
  /** The parameters of the call without structs. */
  readonly args: readonly Argument[];
  /** Its values, from those of the call with structs. */
  readonly values: (given: readonly unknown[]) => unknown[];
}

/** Whether a function takes a struct by value. */
export function takesStruct(args: readonly Argument[]): boolean {
  return args.includes("struct64");
}

// law ffi/lowerStructs: ffi/struct_by_value
/**
 * Lowers a call with structs to one without.
 *
 * System V, x86-64: a struct of more than 16 bytes is of class MEMORY. The caller copies it to the stack, among the
 * integers for which no register was left, in parameter order, while its own place in the list uses no register. So a
 * call with integers only looks the same to the callee if it passes the six registers first, padded with zeros that are
 * never read, and then the contents of the stack, word by word.
 *
 * AAPCS64, arm64: a struct of more than 16 bytes is copied by the caller, and the address of the copy is passed in its
 * place.
 *
 * @throws {FfiError} for another calling convention, and for more floating-point parameters than registers
 */
export function lowerStructs(args: readonly Argument[], arch: string): Lowered {
  if (arch === "aarch64") {
    return {
      args: args.map((type) => type === "struct64" ? "buffer" : type),
      values: (given) => given.map((value, at) => args[at] === "struct64" ? bytesOf(value).slice() : value),
    };
  }
  if (arch !== "x86_64") throw new FfiError(`Cannot pass a struct by value on ${arch}: expected x86-64 or arm64`);
  return lowerToStack(args);
}

/** A parameter of the call without structs: where its value comes from, or null for one that only pads a register. */
interface Slot {
  readonly type: Argument;
  readonly from: { readonly at: number; readonly word: number | null } | null;
}

// law ffi/lowerToStack: ffi/struct_by_value
function lowerToStack(args: readonly Argument[]): Lowered {
  const registers: Slot[] = [];
  const floats: Slot[] = [];
  const stack: Slot[] = [];
  for (const [at, type] of args.entries()) {
    const whole: Slot = { type, from: { at, word: null } };
    if (type === "struct64") {
      for (let word = 0; word < structWords; word++) stack.push({ type: "u64", from: { at, word } });
    } else if (type === "f32" || type === "f64") floats.push(whole);
    else if (registers.length < integerRegisters) registers.push(whole);
    else stack.push(whole);
  }
  if (floats.length > floatRegisters) {
    throw new FfiError(`Cannot pass a struct along with ${floats.length} floating-point numbers: expected at most 8`);
  }
  while (registers.length < integerRegisters) registers.push({ type: "u64", from: null });
  const slots = [...registers, ...floats, ...stack];
  return {
    args: slots.map(({ type }) => type),
    values: (given) =>
      slots.map(({ from }) => {
        if (from === null) return 0n;
        const value = given[from.at];
        return from.word === null ? value : wordOf(bytesOf(value), from.word);
      }),
  };
}

function wordOf({ buffer, byteOffset }: Uint8Array<ArrayBuffer>, word: number): bigint {
  return new DataView(buffer, byteOffset + 8 * word).getBigUint64(0, littleEndian);
}

/** @throws {TypeError} for anything but the 64 bytes of a struct: a shorter array would be read past its end */
function bytesOf(value: unknown): Uint8Array<ArrayBuffer> {
  if (value instanceof Uint8Array && value.length === structBytes) return value as Uint8Array<ArrayBuffer>;
  const got = value instanceof Uint8Array ? `${value.length} bytes` : typeof value;
  throw new TypeError(`Cannot pass a struct by value: expected a Uint8Array of ${structBytes} bytes, got ${got}`);
}

/** Wraps a function of a runtime that passes structs itself, to check first that they are structs. */
export function checkingStructs<F>(args: readonly Argument[], fn: F): F {
  if (!takesStruct(args) || typeof fn !== "function") return fn;
  const call = fn as unknown as AnyFunction; // whatever its parameters
  const checked: AnyFunction = (...values) => {
    for (const [at, type] of args.entries()) if (type === "struct64") bytesOf(values[at]);
    return call(...values);
  };
  return checked as unknown as F; // the same parameters and the same result
}

/** Makes a function with structs from the one without, which {@linkcode lowerStructs} describes. */
export function withStructs({ values }: Lowered, fn: unknown): AnyFunction {
  const call = fn as AnyFunction; // made by the runtime from the description
  return (...given) => call(...values(given));
}

/** The functions of a group that take a struct by value. */
export function structTakers(group: SymbolTable[string]): [name: string, args: readonly Argument[]][] {
  return Object.entries(group).filter(([, { args }]) => takesStruct(args)).map(([name, { args }]) => [name, args]);
}
