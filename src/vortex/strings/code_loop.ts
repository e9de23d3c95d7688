/**
 * The WebAssembly loop that replaces codes with their symbols, with one load and one store per code. It stops at the
 * first error, which is then reported elsewhere.
 *
 * @module
 */
import { compile, type Instruction, scratch, type WasmFunction } from "../../wasm/mod.ts";
import type { CodedStrings } from "./codes.ts";
import { MAX_ROWS } from "./string_views.ts";

/** The most codes in a block; a row with more is not decoded here. */
const MAX_CODES = 16_384;

// Addresses in the scratch memory. The table, of variable size, comes first, then the block.
/** All literal bytes, OR-ed together. */
const SEEN = 0;
/** The end of the output. */
const OUT_END = 4;
const SIZES = 64;

/** How far decoding got. */
interface Done {
  /** The first row that was not decoded. */
  readonly row: number;
  /** Where that row begins in the output. */
  readonly at: number;
  /** All literal bytes, OR-ed together. */
  readonly seen: number;
}

/** A loop with a table in the scratch memory, which no other code may use until the last row is decoded. */
export class CodeLoop {
  readonly #strings: CodedStrings;
  readonly #codeBytes: 1 | 2;
  readonly #memory: Uint8Array<ArrayBuffer>;
  readonly #offsets: Uint32Array<ArrayBuffer>;
  readonly #lengths: Uint32Array<ArrayBuffer>;
  readonly #symbolsAt: number;
  readonly #codesAt: number;
  readonly #outAt: number;
  readonly #run: (...numbers: number[]) => number;

  constructor(strings: CodedStrings) {
    const { table: { sizes, symbols, symbolBytes, hasEscape }, codes } = strings;
    this.#strings = strings;
    this.#codeBytes = codes.BYTES_PER_ELEMENT === 1 ? 1 : 2;
    // One-byte codes are looked up without a bounds check: undefined codes have size 0.
    const count = this.#codeBytes === 1 ? 256 : sizes.length;
    this.#symbolsAt = SIZES + Math.ceil(count / 16) * 16;
    const offsetsAt = this.#symbolsAt + count * symbolBytes;
    const lengthsAt = offsetsAt + 4 * (MAX_ROWS + 1);
    this.#codesAt = lengthsAt + 4 * MAX_ROWS;
    this.#outAt = this.#codesAt + 2 * MAX_CODES;
    const memory = scratch(this.#outAt + symbolBytes * (MAX_CODES + 1));
    memory.fill(0, SIZES, this.#symbolsAt);
    memory.set(sizes, SIZES);
    memory.set(symbols, this.#symbolsAt);
    this.#memory = memory;
    this.#offsets = new Uint32Array(memory.buffer, offsetsAt, MAX_ROWS + 1);
    this.#lengths = new Uint32Array(memory.buffer, lengthsAt, MAX_ROWS);
    this.#run = hasEscape ? escaped() : wide();
  }

  // law vortex/strings/CodeLoop.run: vortex/strings/string_views, vortex/strings/built, vortex/strings/malformed
  /**
   * Decodes rows from `start` on, into `out` from `at` on, up to `end` or a row that this loop cannot decode.
   *
   * @param end at most `start + MAX_ROWS`
   */
  run(start: number, end: number, out: Uint8Array, at: number): Done {
    const { offsets, lengths, codes, table } = this.#strings;
    const memory = this.#memory;
    let seen = 0;
    let row = start;
    while (row < end) {
      const first = offsets[row] ?? 0;
      const last = this.#lastOfBlock(row, end);
      if (last === row) break;
      const stop = offsets[last] ?? 0;
      this.#offsets.set(offsets.subarray(row, last + 1));
      this.#lengths.set(lengths.subarray(row, last));
      const bytes = new Uint8Array(
        codes.buffer,
        codes.byteOffset + first * this.#codeBytes,
        (stop - first) * this.#codeBytes,
      );
      memory.set(bytes, this.#codesAt);
      const left = this.#run(
        this.#offsets.byteOffset,
        this.#lengths.byteOffset,
        last - row,
        this.#codesAt - first * this.#codeBytes, // where code 0 would be
        this.#outAt,
        this.#symbolsAt,
        table.sizes.length,
      );
      const results = new Uint32Array(memory.buffer, 0, 2);
      seen |= results[SEEN / 4] ?? 0;
      const size = (results[OUT_END / 4] ?? 0) - this.#outAt;
      out.set(memory.subarray(this.#outAt, this.#outAt + size), at);
      at += size;
      row = last - left;
      if (left > 0) break;
    }
    return { row, at, seen };
  }

  // law vortex/strings/CodeLoop.lastOfBlock: vortex/strings/string_views
  /** The end of the rows that fit in the block. */
  #lastOfBlock(row: number, end: number): number {
    const { offsets } = this.#strings;
    const most = (offsets[row] ?? 0) + MAX_CODES;
    if ((offsets[end] ?? 0) <= most) return end;
    let last = row;
    while (last < end && (offsets[last + 1] ?? 0) <= most) last++;
    return last;
  }
}

// Parameters.
const OFFSETS = 0;
const LENGTHS = 1;
const ROWS = 2;
const CODES = 3;
const OUT = 4;
const SYMBOLS = 5;
const COUNT = 6;
// Locals.
const CODE = 7;
const STOP = 8;
const SYMBOL = 9;
const SIZE = 10;
const LITERALS = 11;
/** Where the row's output begins. */
const BEGIN = 12;

let escapedLoop: ((...numbers: number[]) => number) | undefined;
let wideLoop: ((...numbers: number[]) => number) | undefined;

// law vortex/strings/escaped: vortex/strings/string_views, vortex/strings/malformed
/** One-byte codes for up to 8 bytes, with an escape. */
function escaped(): (...numbers: number[]) => number {
  return escapedLoop ??= compile(rowLoop(1, [
    ["local.get", CODE],
    ["i32.load8_u", 0],
    ["local.tee", SYMBOL],
    ["i32.load8_u", SIZES],
    ["local.tee", SIZE],
    ["if"],
    ["local.get", OUT],
    ["local.get", SYMBOLS],
    ["local.get", SYMBOL],
    ["i32.const", 3],
    ["i32.shl"],
    ["i32.add"],
    ["i64.load", 0],
    ["i64.store", 0],
    ...add(OUT, [["local.get", SIZE]]),
    ...add(CODE, [["i32.const", 1]]),
    ["else"],
    // No symbol. Labels from here: 0 is this branch, 1 the codes, 2 their end, 3 the rows, 4 any error.
    ["local.get", SYMBOL],
    ["i32.const", 255],
    ["i32.ne"],
    ["br_if", 4],
    ["local.get", CODE],
    ["i32.const", 1],
    ["i32.add"],
    ["local.get", STOP],
    ["i32.ge_u"],
    ["br_if", 4],
    ["local.get", OUT],
    ["local.get", CODE],
    ["i32.load8_u", 1],
    ["local.tee", SYMBOL],
    ["i32.store8", 0],
    ["local.get", SYMBOL],
    ["local.get", LITERALS],
    ["i32.or"],
    ["local.set", LITERALS],
    ...add(OUT, [["i32.const", 1]]),
    ...add(CODE, [["i32.const", 2]]),
    ["end"],
  ]));
}

// law vortex/strings/wide: vortex/strings/string_views, vortex/strings/malformed
/** Two-byte codes for up to 16 bytes. */
function wide(): (...numbers: number[]) => number {
  return wideLoop ??= compile(rowLoop(2, [
    ["local.get", CODE],
    ["i32.load16_u", 0],
    ["local.tee", SYMBOL],
    ["local.get", COUNT],
    ["i32.ge_u"],
    ["br_if", 3], // labels: 0 is the codes, 1 their end, 2 the rows, 3 any error
    ["local.get", OUT],
    ["local.get", SYMBOLS],
    ["local.get", SYMBOL],
    ["i32.const", 4],
    ["i32.shl"],
    ["i32.add"],
    ["v128.load", 0],
    ["v128.store", 0],
    ...add(OUT, [["local.get", SYMBOL], ["i32.load8_u", SIZES]]),
    ...add(CODE, [["i32.const", 2]]),
  ]));
}

function add(local: number, amount: readonly Instruction[]): readonly Instruction[] {
  return [["local.get", local], ...amount, ["i32.add"], ["local.set", local]];
}

// law vortex/strings/rowLoop: vortex/strings/string_views, vortex/strings/malformed
/** Decodes all rows; returns how many were not decoded. */
function rowLoop(codeBytes: 1 | 2, body: readonly Instruction[]): WasmFunction {
  /** The address of a code, whose index is loaded from `OFFSETS` + `place`. */
  const addressOf = (place: number): readonly Instruction[] => [
    ["local.get", CODES],
    ["local.get", OFFSETS],
    ["i32.load", place],
    ["i32.const", codeBytes - 1],
    ["i32.shl"],
    ["i32.add"],
  ];
  return {
    parameters: 7,
    hasResult: true,
    locals: ["i32", "i32", "i32", "i32", "i32", "i32"],
    body: [
      ["block"],
      ["loop"],
      ...addressOf(0),
      ["local.set", CODE],
      ...addressOf(4),
      ["local.set", STOP],
      ["local.get", OUT],
      ["local.set", BEGIN],
      ["block"],
      ["loop"],
      ["local.get", CODE],
      ["local.get", STOP],
      ["i32.ge_u"],
      ["br_if", 1],
      ...body,
      ["br", 0],
      ["end"],
      ["end"],
      ["local.get", OUT],
      ["local.get", BEGIN],
      ["i32.sub"],
      ["local.get", LENGTHS],
      ["i32.load", 0],
      ["i32.ne"],
      ["br_if", 1],
      ["local.get", OUT],
      ["local.set", BEGIN], // any error is in the row that begins here
      ...add(OFFSETS, [["i32.const", 4]]),
      ...add(LENGTHS, [["i32.const", 4]]),
      ...add(ROWS, [["i32.const", -1]]),
      ["local.get", ROWS],
      ["br_if", 0],
      ["end"],
      ["end"],
      ["i32.const", 0],
      ["local.get", LITERALS],
      ["i32.store", SEEN],
      ["i32.const", 0],
      ["local.get", BEGIN],
      ["i32.store", OUT_END],
      ["local.get", ROWS],
    ],
  };
}
