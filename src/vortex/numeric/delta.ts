/**
 * Differences from the previous word of the lane, in blocks of 1024 that are transposed.
 *
 * @module
 */
import { type DTypeOf, withNullable } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { VortexEncoding } from "../encoding.ts";
import { DataError, inNode } from "../error.ts";
import { bitsOf, blockOffset, bytesOf, integerDType, numbersOf } from "./columns.ts";
import { BLOCK, firstOfRow, transposition } from "./fastlanes.ts";
import { type Bits, smallWords, words32 } from "./words.ts";

interface OpenedDelta {
  readonly dtype: DTypeOf<"primitive">;
  readonly offset: number;
  readonly bases: EncodedNode;
  readonly deltas: EncodedNode;
  readonly validity: EncodedNode | null;
}

// law vortex/numeric.deltaEncoding: vortex/numeric/built, vortex/numeric/malformed
/** Differences from the previous word in the lane, in blocks of 1024. */
export const deltaEncoding: VortexEncoding<OpenedDelta> = {
  id: "fastlanes.delta",
  open(node) {
    const dtype = integerDType(node);
    const message = node.message();
    const [count, offset] = [message.number(1), blockOffset(node, message, 2)];
    if (count % 1024 !== 0 || count < offset + node.length) {
      node.fail(
        `${node.id} has ${count} differences for ${node.length} rows at offset ${offset}. Expected blocks of 1024`,
      );
    }
    node.expectBuffers(0);
    const plain = withNullable(dtype, false);
    const lanes = 1024 / bitsOf(dtype.ptype);
    const [bases, deltas] = [node.child(0, plain, count / 1024 * lanes), node.child(1, plain, count)];
    return { dtype, offset, bases, deltas, validity: node.validityChild(2) };
  },
  decode(node, { dtype, offset, bases, deltas, validity }, context) {
    const bits = bitsOf(dtype.ptype);
    const [from, differences] = [context.primitive(bases), context.primitive(deltas)];
    const out = context.allocate(node.length * bits / 8, node);
    inNode(node, () => deltaInto(out, bytesOf(differences), bytesOf(from), { bits, offset }));
    return numbersOf(dtype, out, context.validity(validity));
  },
};

// law vortex/numeric.deltaInto: vortex/numeric/delta
/**
 * Adds up differences in each lane of each transposed block, wrapping.
 *
 * @param out receives the words from `offset` on, as many as fit
 * @param deltas whole blocks of 1024 words
 * @param bases the initial word of each lane of each block: 1024 / bits words per block
 */
export function deltaInto(
  out: Uint8Array,
  deltas: Uint8Array,
  bases: Uint8Array,
  { bits, offset }: { readonly bits: Bits; readonly offset: number },
): void {
  const block = BLOCK * bits / 8;
  const blocks = deltas.length / block;
  if (!Number.isInteger(blocks) || bases.length !== 128 * blocks) {
    throw new DataError(
      `Expected 128 bytes of bases for each ${block} of deltas, got ${bases.length} for ${deltas.length}`,
    );
  }
  const skipped = offset * bits / 8;
  if (skipped + out.length > deltas.length) {
    throw new DataError(`Expected deltas for ${out.length * 8 / bits} words at offset ${offset}, got ${blocks} blocks`);
  }
  const decoded = new Uint8Array(block);
  const decode = bits === 64 ? decode64 : decodeSmall;
  for (let first = 0; first < skipped + out.length; first += block) {
    const base = first / block * 128;
    decode(decoded, deltas.subarray(first, first + block), bases.subarray(base, base + 128), bits);
    const start = Math.max(first, skipped);
    const end = Math.min(first + block, skipped + out.length);
    if (start < end) out.set(decoded.subarray(start - first, end - first), start - skipped);
  }
}

/** Decodes a block of words small enough for JavaScript to add. */
function decodeSmall(out: Uint8Array, deltas: Uint8Array, bases: Uint8Array, bits: Bits): void {
  const [to, from, sums] = [smallWords(out, bits), smallWords(deltas, bits), smallWords(bases.slice(), bits)];
  for (let row = 0; row < bits; row++) {
    const first = firstOfRow(row);
    for (let lane = 0; lane < sums.length; lane++) {
      const sum = (sums[lane] ?? 0) + (from[first + lane] ?? 0) | 0;
      sums[lane] = sum; // truncated to the word size
      to[transposition[first + lane] ?? 0] = sum;
    }
  }
}

/** Decodes a block of 64-bit words as halves, with a carry. */
function decode64(out: Uint8Array, deltas: Uint8Array, bases: Uint8Array): void {
  const [to, from, sums] = [words32(out), words32(deltas), words32(bases.slice())];
  for (let row = 0; row < 64; row++) {
    const first = firstOfRow(row);
    for (let lane = 0; lane < 16; lane++) {
      const [base, delta] = [sums[2 * lane] ?? 0, from[2 * (first + lane)] ?? 0];
      const low = base + delta | 0;
      const carry = low >>> 0 < base >>> 0 ? 1 : 0;
      const high = (sums[2 * lane + 1] ?? 0) + (from[2 * (first + lane) + 1] ?? 0) + carry | 0;
      const place = 2 * (transposition[first + lane] ?? 0);
      sums[2 * lane] = to[place] = low;
      sums[2 * lane + 1] = to[place + 1] = high;
    }
  }
}
