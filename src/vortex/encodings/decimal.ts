/**
 * Decimals: integers of 1 to 32 bytes.
 *
 * @module
 */
import { isValid } from "../bits.ts";
import type { DTypeOf } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { VortexEncoding } from "../encoding.ts";
import type { Bytes } from "../wire/source.ts";
import { signedOf } from "../wire/scalar.ts";
import { dtypeOf } from "./null_bool_primitive.ts";

/** The size of an integer in bytes, by its type code. */
const widths = [1, 2, 4, 8, 16, 32] as const;

interface OpenedDecimal {
  readonly dtype: DTypeOf<"decimal">;
  readonly width: number;
  readonly validity: EncodedNode | null;
}

/** Signed integers of equal width. */
export const decimalEncoding: VortexEncoding<OpenedDecimal> = {
  id: "vortex.decimal",
  open(node) {
    const dtype = dtypeOf(node, "decimal");
    const code = node.message().u32(1);
    const width = widths[code] ?? node.fail(`The type of the decimals' integers is ${code}. Expected 0 to 5`);
    node.expectBuffers(1);
    node.expectSize(0, width * node.length, width * node.length);
    return { dtype, width, validity: node.validityChild(0) };
  },
  decode(node, { dtype, width, validity: validityNode }, context) {
    const { length } = node;
    const bytes = node.buffer(0);
    const validity = context.validity(validityNode);
    checkDigits(bytes, width, dtype, validity, node);
    return { kind: "decimal", dtype, length, validity, width, bytes };
  },
};

// law vortex/checkDigits: vortex/core/contradictions
/** @throws {VortexError} if a decimal has more digits than its precision */
export function checkDigits(
  bytes: Bytes,
  width: number,
  { precision }: DTypeOf<"decimal">,
  validity: Bytes | null,
  node: EncodedNode,
): void {
  const limit = 10n ** BigInt(precision);
  if (limit > 1n << BigInt(8 * width - 1)) return; // no integer of this width has that many
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const length = bytes.length / width;
  const fail = (i: number): never => node.fail(`Element ${i} has more than the ${precision} digits of its decimal`);
  const isNull = (i: number): boolean => !isValid(validity, i);
  if (width <= 4) {
    const most = Number(limit);
    for (let i = 0; i < length; i++) {
      const value = width === 4
        ? view.getInt32(4 * i, true)
        : width === 2
        ? view.getInt16(2 * i, true)
        : view.getInt8(i);
      if (Math.abs(value) >= most && !isNull(i)) fail(i);
    }
    return;
  }
  const most = Number(limit); // rounded: values near the limit are compared exactly
  for (let i = 0; i < length; i++) {
    const at = width * i;
    // The highest word is signed, the others are unsigned.
    let value = view.getInt32(at + width - 4, true);
    for (let j = width - 8; j >= 0; j -= 4) value = value * 2 ** 32 + view.getUint32(at + j, true);
    if (Math.abs(value) < most * 0.999 || isNull(i)) continue;
    const exact = signedOf(bytes.subarray(at, at + width));
    if (exact >= limit || exact <= -limit) fail(i);
  }
}
