/**
 * Values whose parts are separate columns: instants as days, seconds and the remainder; decimals as words.
 *
 * @module
 */
import { type DTypeOf, primitiveDType } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { VortexEncoding } from "../encoding.ts";
import { checkDigits } from "../encodings/decimal.ts";
import { isSigned, widthOf } from "../ptype.ts";
import { bitsOf, bytesOf, numbersOf, ptypeIn, ptypeOf } from "./columns.ts";
import { type Integers, joinTimesInto } from "./date_time_parts.ts";
import { joinPartsInto, type Part } from "./decimal_parts.ts";

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

interface OpenedDecimal {
  readonly dtype: DTypeOf<"decimal">;
  readonly first: EncodedNode;
  /** The unsigned parts after it. */
  readonly lower: readonly EncodedNode[];
}

/** The most parts of a decimal after the first: 256 bits in all. */
const maxLower = 3;

/** Opens a decimal from the ptype of its first part, which its metadata names, and those of the others. */
function openDecimal(node: EncodedNode, lowerCodes: readonly number[]): OpenedDecimal {
  const { dtype, length } = node;
  if (dtype.kind !== "decimal") {
    return node.fail(`${node.id} cannot have the dtype ${node.typeText}. Expected decimals`);
  }
  if (lowerCodes.length > maxLower) {
    node.fail(`${node.id} has ${lowerCodes.length} lower parts. Expected ${maxLower} at most`);
  }
  const message = node.message();
  node.expectBuffers(0);
  node.expectChildren(1 + lowerCodes.length);
  const first = node.child(0, primitiveDType(ptypeIn(node, message, 1, "a signed integer"), dtype.nullable), length);
  const lower = lowerCodes.map((code, index) =>
    node.child(index + 1, primitiveDType(ptypeOf(node, code, "an unsigned integer")), length)
  );
  return { dtype, first, lower };
}

const decodeDecimal: VortexEncoding<OpenedDecimal>["decode"] = (node, { dtype, first, lower }, context) => {
  const { length } = node;
  const array = context.primitive(first);
  const { validity } = array;
  const top: Part = { bytes: bytesOf(array), bits: bitsOf(array.dtype.ptype) };
  const base = { kind: "decimal", dtype, length, validity } as const;
  if (lower.length === 0) {
    const [bytes, width] = [bytesOf(array), widthOf(array.dtype.ptype)];
    checkDigits(bytes, width, dtype, validity, node);
    return { ...base, width, bytes };
  }
  const others = lower.map((one): Part => {
    const part = context.primitive(one);
    return { bytes: bytesOf(part), bits: bitsOf(part.dtype.ptype) };
  });
  const width = lower.length === 1 ? 16 : 32;
  const bytes = context.allocate(width * length, node);
  joinPartsInto(bytes, width, top, others);
  checkDigits(bytes, width, dtype, validity, node);
  return { ...base, width, bytes };
};

// law vortex/numeric.decimalPartsEncoding: vortex/numeric/built, vortex/numeric/malformed
/** Decimals that fit in integers of at most 64 bits. */
export const decimalPartsEncoding: VortexEncoding<OpenedDecimal> = {
  id: "vortex.decimal_byte_parts",
  open(node) {
    const count = node.message().number(2);
    if (count !== 0) node.fail(`${node.id} has ${count} lower parts. Expected none: only .v2 has them`);
    return openDecimal(node, []);
  },
  decode: decodeDecimal,
};

// law vortex/numeric.decimalPartsV2Encoding: vortex/numeric/built, vortex/numeric/malformed
/** Decimals of a signed part and up to three unsigned parts, most significant first. */
export const decimalPartsV2Encoding: VortexEncoding<OpenedDecimal> = {
  id: "vortex.decimal_byte_parts.v2",
  open: (node) => openDecimal(node, node.message().everyNumber(2)),
  decode: decodeDecimal,
};
