/**
 * Instants as days, seconds of the day, and fractions of a second.
 *
 * @module
 */
import { type DTypeOf, primitiveDType } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { VortexEncoding } from "../encoding.ts";
import { isSigned } from "../ptype.ts";
import { compile, type Instruction, scratch } from "../../wasm/mod.ts";
import { bitsOf, bytesOf, numbersOf, ptypeIn } from "./columns.ts";
import type { Bits } from "./words.ts";

interface OpenedTimes {
  readonly dtype: DTypeOf<"extension">;
  readonly storage: DTypeOf<"primitive">;
  readonly perSecond: number;
  readonly parts: readonly [EncodedNode, EncodedNode, EncodedNode];
}

// law vortex/numeric.dateTimePartsEncoding: vortex/numeric/built, vortex/numeric/malformed
/** Units per second, by the first byte of a timestamp's metadata: nanoseconds to seconds. */
const unitsPerSecond = [1e9, 1e6, 1e3, 1];

/** Instants as days, seconds of the day, and fractions of a second. */
export const dateTimePartsEncoding: VortexEncoding<OpenedTimes> = {
  id: "vortex.datetimeparts",
  open(node) {
    const { dtype, length } = node;
    const isTimestamp = dtype.kind === "extension" && dtype.id === "vortex.timestamp";
    if (!isTimestamp || dtype.storage.kind !== "primitive" || dtype.storage.ptype !== "i64") {
      return node.fail(`${node.id} cannot have the dtype ${node.typeText}. Expected vortex.timestamp of i64`);
    }
    const unit = dtype.metadata[0];
    const perSecond = unitsPerSecond[unit ?? NaN] ?? node.fail(`A timestamp has the unit ${unit}: expected 0 to 3`);
    const message = node.message();
    const part = (index: number, nullable: boolean) =>
      node.child(index, primitiveDType(ptypeIn(node, message, index + 1, "an integer"), nullable), length);
    node.expectBuffers(0);
    node.expectChildren(3);
    const parts = [part(0, dtype.nullable), part(1, false), part(2, false)] as const;
    return { dtype, storage: dtype.storage, perSecond, parts };
  },
  decode(node, { dtype, storage, perSecond, parts }, context) {
    const { length } = node;
    const [days, seconds, rest] = [
      context.primitive(parts[0]),
      context.primitive(parts[1]),
      context.primitive(parts[2]),
    ];
    const integersOf = (array: typeof days): Integers => {
      const { ptype } = array.dtype;
      return { bytes: bytesOf(array), bits: bitsOf(ptype), isSigned: isSigned(ptype) };
    };
    const out = context.allocate(8 * length, node);
    joinTimesInto(out, [integersOf(days), integersOf(seconds), integersOf(rest)], perSecond);
    const { validity } = days;
    return { kind: "extension", dtype, length, validity, storage: numbersOf(storage, out, validity) };
  },
};

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
