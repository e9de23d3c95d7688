import { type Instruction, opcodes } from "./opcodes.ts";

/** The byte that encodes each value type. */
const valueTypes = { i32: 0x7f, i64: 0x7e, v128: 0x7b } as const;

/** A function on the shared memory: it takes addresses and counts, and may return one. */
export interface WasmFunction {
  /** The number of i32 parameters: locals 0, 1 and so on. */
  readonly parameters: number;
  /** Whether it returns an i32. */
  readonly hasResult?: boolean;
  /** The locals after the parameters. */
  readonly locals: readonly (keyof typeof valueTypes)[];
  /** The body, without its final `end`. */
  readonly body: readonly Instruction[];
}

/**
 * The initial pages of the memory. Engines that bounds-check addresses check only once if the offset added to the
 * address is less than that: a third of the time of a short loop.
 */
export const MIN_PAGES = 4;

/** The ids of the module sections written here. */
const section = { type: 1, import: 2, function: 3, export: 7, code: 10 } as const;

// law wasm/assemble: wasm/assemble
/**
 * Assembles a module that imports the memory `m.m` and exports one function, `f`.
 *
 * @returns the module's bytes; the engine validates every byte of them
 */
export function assemble({ parameters, hasResult = false, locals, body }: WasmFunction): Uint8Array<ArrayBuffer> {
  const declared = vectorOf(locals.map((type) => [1, valueTypes[type]]));
  const memory = [...name("m"), ...name("m"), 2, 0, MIN_PAGES];
  return moduleOf([typeOf(parameters, hasResult)], memory, 0, [...declared, ...body.flatMap(encode)]);
}

/**
 * A module that imports the table `t.t` and exports one function, `f`: it takes `parameters` numbers and a table index,
 * and calls the function at that index with the numbers.
 */
export function assembleCaller(parameters: number): Uint8Array<ArrayBuffer> {
  const numbers = Array.from({ length: parameters + 1 }, (_, local) => encode(["local.get", local]));
  const table = [...name("t"), ...name("t"), 1, FUNCTIONS, 0, 0];
  const types = [typeOf(parameters, false), typeOf(parameters + 1, false)];
  return moduleOf(types, table, 1, [...vectorOf([]), ...numbers.flat(), CALL_INDIRECT, 0, 0]);
}

/** The element type of the table: function references. */
const FUNCTIONS = 0x70;
/** Calls a function of a given type by its index in a table. */
const CALL_INDIRECT = 0x11;

function moduleOf(
  types: readonly (readonly number[])[],
  imported: readonly number[],
  type: number,
  code: readonly number[],
): Uint8Array<ArrayBuffer> {
  const body = [...code, ...encode(["end"])];
  const parts = [
    [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    sized(section.type, vectorOf(types)),
    sized(section.import, vectorOf([imported])),
    sized(section.function, vectorOf([[type]])),
    sized(section.export, vectorOf([[...name("f"), 0, 0]])),
    sized(section.code, vectorOf([[...unsigned(body.length), ...body]])),
  ];
  return new Uint8Array(parts.flat());
}

function typeOf(parameters: number, hasResult: boolean): number[] {
  const taken = Array.from({ length: parameters }, () => [valueTypes.i32]);
  return [0x60, ...vectorOf(taken), ...vectorOf(hasResult ? [[valueTypes.i32]] : [])];
}

function name(text: string): number[] {
  return [text.length, ...Array.from(text, (letter) => letter.charCodeAt(0))];
}

function sized(id: number, content: readonly number[]): number[] {
  return [id, ...unsigned(content.length), ...content];
}

function vectorOf(items: readonly (readonly number[])[]): number[] {
  return [...unsigned(items.length), ...items.flat()];
}

function encode(instruction: Instruction): number[] {
  const [name, ...values] = instruction;
  const [prefix, code, immediate] = opcodes[name];
  const opcode = prefix === "vector" ? [0xfd, ...unsigned(code)] : [code];
  switch (immediate) {
    case "none":
      return opcode;
    case "block":
      return [...opcode, 0x40];
    case "constant":
      return [...opcode, ...signed(BigInt(values[0] ?? 0))];
    case "address":
      return [...opcode, 0, ...unsigned(Number(values[0]))];
    case "vector":
      return [...opcode, ...new Uint8Array(BigUint64Array.from(values, BigInt).buffer)];
    case "index":
      return [...opcode, ...unsigned(Number(values[0]))];
    case "lanes":
      return [...opcode, ...values.map(Number)];
  }
}

/** Unsigned LEB128 of a number less than 2^32. */
function unsigned(value: number): number[] {
  const bytes = [];
  for (; value > 0x7f; value = Math.floor(value / 0x80)) bytes.push((value % 0x80) | 0x80);
  return [...bytes, value];
}

/** Signed LEB128: the last byte's bit 6 is the sign. */
function signed(value: bigint): number[] {
  const bytes = [];
  for (; value < -64n || value > 63n; value >>= 7n) bytes.push(Number(value & 0x7fn) | 0x80);
  return [...bytes, Number(value & 0x7fn)];
}
