/**
 * Array nodes as an encoder would write them, from the format's description of each.
 *
 * @module
 */
import type { RawNode } from "../../../src/vortex/raw_node.ts";
import type { PType } from "../../../src/vortex/ptype.ts";
import { bytesOf } from "./words.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** A field of a Protocol Buffers message: a number is a varint, bytes follow their size. */
export type Field = readonly [field: number, value: number | bigint | boolean | Bytes];

/** A message. */
export function proto(...fields: readonly Field[]): Bytes {
  return joined(...fields.map(([field, value]) => {
    const isBytes = value instanceof Uint8Array;
    const tag = varint(BigInt(field * 8 + (isBytes ? 2 : 0)));
    return isBytes ? joined(tag, varint(BigInt(value.length)), value) : joined(tag, varint(BigInt(value)));
  }));
}

/** A number in groups of seven bits, lowest first. */
export function varint(value: bigint): Bytes {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Uint8Array.from([...bytes, Number(rest)]);
}

/** Concatenates bytes. */
export function joined(...parts: readonly Bytes[]): Bytes {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** The code of a ptype. */
export function ptypeCode(ptype: PType): number {
  return ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "f32", "f64"].indexOf(ptype);
}

/** Bits of a value of a ptype. */
export function ptypeBits(ptype: PType): 8 | 16 | 32 | 64 {
  const bits = Number(ptype.slice(1));
  if (bits === 8 || bits === 16 || bits === 32 || bits === 64) return bits;
  throw new TypeError(`${ptype} has ${bits} bits`);
}

/** A node. */
export function node(
  id: string,
  metadata: Bytes,
  buffers: readonly Bytes[],
  ...children: readonly (RawNode | null)[]
): RawNode {
  return { id, metadata, buffers, children: children.filter((child) => child !== null), outer: null };
}

/** Alignments of some buffers: PyVortex assumes that all slices of a buffer have its alignment, too. */
const alignments = new WeakMap<Bytes, number>();

/** The alignment of a buffer: the size of a value for numbers, 8 for anything else. */
export function alignmentOf(bytes: Bytes): number {
  return alignments.get(bytes) ?? 8;
}

/** Bytes whose slices may begin at any multiple of an alignment. */
export function alignedTo(alignment: number, bytes: Bytes): Bytes {
  alignments.set(bytes, alignment);
  return bytes;
}

/** A node of booleans; null for no values. */
export function boolNode(values: readonly boolean[] | null): RawNode | null {
  if (values === null) return null;
  const bits = new Uint8Array(Math.ceil(values.length / 8));
  for (const [row, value] of values.entries()) {
    if (value) bits[row >> 3] = (bits[row >> 3] ?? 0) | 1 << (row & 7);
  }
  return node("vortex.bool", new Uint8Array(0), [bits]);
}

/** Words, unencoded. */
export function primitiveNode(
  words: readonly (bigint | number)[],
  ptype: PType,
  validity: readonly boolean[] | null = null,
): RawNode {
  const bytes = alignedTo(ptypeBits(ptype) / 8, bytesOf(words.map(BigInt), ptypeBits(ptype)));
  return node("vortex.primitive", new Uint8Array(0), [bytes], boolNode(validity));
}

/** A word of a ptype as a scalar; null is a null. */
export function scalarOf(word: bigint | null, ptype: PType): Bytes {
  if (word === null) return proto([1, 0]);
  const bits = ptypeBits(ptype);
  if (ptype === "f32" || ptype === "f64") {
    return joined(Uint8Array.of(ptype === "f32" ? 5 * 8 + 5 : 6 * 8 + 1), bytesOf([word], bits));
  }
  if (ptype === "f16") return proto([10, BigInt.asUintN(16, word)]);
  if (ptype.startsWith("u")) return proto([4, BigInt.asUintN(bits, word)]);
  const signed = BigInt.asIntN(bits, word);
  return proto([3, signed < 0n ? -2n * signed - 1n : 2n * signed]);
}
