/**
 * Writes the few Protocol Buffers messages that metadata consists of.
 *
 * @module
 */
import type { Bytes } from "./source.ts";

/** A field: its number, and an unsigned integer up to 2^53 - 1, or bytes. */
export type ProtoField = readonly [field: number, value: number | Uint8Array];

/** A message of fields, in their order. Numbers that are 0 are omitted, as by every writer. */
export function protoOf(fields: readonly ProtoField[]): Bytes {
  const out: number[] = [];
  for (const [field, value] of fields) {
    if (typeof value !== "number") {
      varint(out, 8 * field + 2);
      varint(out, value.length);
      for (const byte of value) out.push(byte); // too many to be arguments of one call
    } else if (value !== 0) {
      varint(out, 8 * field);
      varint(out, value);
    }
  }
  return Uint8Array.from(out);
}

function varint(out: number[], value: number): void {
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) out.push(rest % 128 + 128);
  out.push(rest);
}
