import { compile, type Instruction, scratch } from "../../wasm/mod.ts";
import type { Bits } from "./words.ts";

/** Integers of any word size. */
export interface Integers {
  /** The words. */
  readonly bytes: Uint8Array;
  readonly bits: Bits;
  readonly isSigned: boolean;
}

/** Rows per call. */
const ROWS = 2048;
const AREA = 8 * ROWS;

const joins = new Map<string, (rows: number) => void>();

// law vortex/numeric.joinTimesInto: vortex/numeric/date_time_parts
/**
 * Computes instants from days, seconds of the day and the remainder: `days * 86400 * k + seconds * k + rest`, wrapping.
 *
 * @param out 64-bit integers, as many as each part has
 * @param perSecond units per second, k: 1 to 10^9
 */
export function joinTimesInto(
  out: Uint8Array,
  parts: readonly [Integers, Integers, Integers],
  perSecond: number,
): void {
  const key = `${parts.map(({ bits, isSigned }) => `${isSigned}${bits}`)} ${perSecond}`;
  const join = joins.getOrInsertComputed(key, () => compileJoin(parts, perSecond));
  const memory = scratch(4 * AREA);
  const rows = out.length / 8;
  for (let first = 0; first < rows; first += ROWS) {
    const count = Math.min(ROWS, rows - first);
    for (const [index, { bytes, bits }] of parts.entries()) {
      memory.set(bytes.subarray(first * bits / 8, (first + count) * bits / 8), index * AREA);
    }
    join(count);
    out.set(memory.subarray(3 * AREA, 3 * AREA + 8 * count), 8 * first);
  }
}

/** A loop over rows that adds up the rest, the seconds times k, and the days times 86400 k. */
function compileJoin(parts: readonly [Integers, Integers, Integers], perSecond: number): (rows: number) => void {
  const [rowsLeft, row, sum] = [0, 1, 2];
  const units = [86_400n * BigInt(perSecond), BigInt(perSecond), 1n];
  const terms = parts.flatMap((part, index): Instruction[] => [
    ["local.get", row],
    ["i32.const", part.bits / 8],
    ["i32.mul"],
    [loadOf(part), index * AREA],
    ["i64.const", units[index] ?? 0n],
    ["i64.mul"],
    ["local.get", sum],
    ["i64.add"],
    ["local.set", sum],
  ]);
  return compile({
    parameters: 1,
    locals: ["i32", "i64"],
    body: [
      ["loop"],
      ["i64.const", 0],
      ["local.set", sum],
      ...terms,
      ["local.get", row],
      ["i32.const", 8],
      ["i32.mul"],
      ["local.get", sum],
      ["i64.store", 3 * AREA],
      ["local.get", row],
      ["i32.const", 1],
      ["i32.add"],
      ["local.tee", row],
      ["local.get", rowsLeft],
      ["i32.lt_u"],
      ["br_if", 0],
      ["end"],
    ],
  });
}

/** A load that widens to 64 bits. */
function loadOf({ bits, isSigned }: Integers) {
  return bits === 64 ? "i64.load" : `i64.load${bits}_${isSigned ? "s" : "u"}` as const;
}
