/**
 * Reads Protocol Buffers messages. Unknown fields are skipped, a field with an unexpected wire type is an error, and
 * nothing outside the bytes is read.
 *
 * @module
 */
import { type Bytes, textOf, WireSource } from "./source.ts";

/** Wire types. */
const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;
const FIXED32 = 5;

/** A message: its fields in wire order. If a field occurs twice, the last one counts. */
export class ProtoMessage {
  readonly #source: WireSource;
  readonly #numbers: number[] = [];
  readonly #types: number[] = [];
  /** Where each field's value begins and ends. */
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];

  /**
   * Finds where the fields begin and end.
   *
   * @param path the node that the bytes belong to, for errors
   * @param what what the bytes are, for errors
   * @throws {VortexError} if they are not a message
   */
  constructor(bytes: Bytes, path: string, what: string) {
    const source = new WireSource(bytes, path, what, 1);
    this.#source = source;
    for (let at = 0; at < bytes.length;) {
      const [tag, start] = varintAt(source, at);
      if (typeof tag !== "number" || tag > 0xffff_ffff) return source.fail(`the field at ${at} has the number ${tag}`);
      const [number, type] = [Math.floor(tag / 8), tag % 8];
      if (number === 0) source.fail(`the field at ${at} has the number 0`);
      const [from, to] = bordersOf(source, type, start);
      if (to > bytes.length) source.fail(`field ${number} has ${to - from} bytes, more than available`);
      this.#numbers.push(number);
      this.#types.push(type);
      this.#starts.push(from);
      this.#ends.push(to);
      at = to;
    }
  }

  /** Throws an error about the message. @throws {VortexError} always */
  fail(why: string): never {
    this.#source.fail(why);
  }

  /** Whether a field is present. */
  has(field: number): boolean {
    return this.#numbers.includes(field);
  }

  /** The numbers of the fields that are present. */
  get fields(): readonly number[] {
    return this.#numbers;
  }

  #find(field: number, type: number): number {
    const index = this.#numbers.lastIndexOf(field);
    if (index >= 0 && this.#types[index] !== type) {
      this.fail(`field ${field} has the wire type ${this.#types[index]}. Expected ${type}`);
    }
    return index;
  }

  /** A raw varint of up to 64 bits: a bigint if it is greater than 2^53 - 1. */
  varint(field: number): number | bigint | null {
    const index = this.#find(field, VARINT);
    return index < 0 ? null : varintAt(this.#source, this.#starts[index] ?? 0)[0];
  }

  /** An unsigned integer up to 2^53 - 1. Returns `absent`, by default 0, if the field is absent. */
  number(field: number, absent = 0): number {
    const value = this.varint(field);
    if (value === null) return absent;
    return typeof value === "number" ? value : this.fail(`field ${field} is ${value}. Expected at most 2^53 - 1`);
  }

  /** A u32. */
  u32(field: number, absent = 0): number {
    const value = this.number(field, absent);
    return value <= 0xffff_ffff ? value : this.fail(`field ${field} is ${value}. Expected at most 2^32 - 1`);
  }

  /** A bool; null if it is absent. */
  bool(field: number): boolean | null {
    const value = this.varint(field);
    return value === null ? null : value !== 0;
  }

  /** A 32-bit field of any meaning. */
  fixed32(field: number): number | null {
    const index = this.#find(field, FIXED32);
    return index < 0 ? null : this.#source.view.getUint32(this.#starts[index] ?? 0, true);
  }

  /** A 64-bit field of any meaning. */
  fixed64(field: number): bigint | null {
    const index = this.#find(field, FIXED64);
    return index < 0 ? null : this.#source.view.getBigUint64(this.#starts[index] ?? 0, true);
  }

  /** Bytes, not copied; null if they are absent. */
  bytes(field: number): Bytes | null {
    const index = this.#find(field, LENGTH_DELIMITED);
    return index < 0 ? null : this.#source.bytes.subarray(this.#starts[index], this.#ends[index]);
  }

  /** Text; null if it is absent. */
  text(field: number): string | null {
    const bytes = this.bytes(field);
    return bytes === null ? null : textOf(bytes) ?? this.fail(`field ${field} is not UTF-8`);
  }

  /** A message; null if it is absent. */
  message(field: number): ProtoMessage | null {
    const bytes = this.bytes(field);
    return bytes === null ? null : new ProtoMessage(bytes, this.#source.path, this.#source.what);
  }

  /** Every value of a repeated field of bytes. */
  everyBytes(field: number): Bytes[] {
    const all: Bytes[] = [];
    this.#numbers.forEach((number, i) => {
      if (number !== field) return;
      if (this.#types[i] !== LENGTH_DELIMITED) this.fail(`field ${field} has the wire type ${this.#types[i]}`);
      all.push(this.#source.bytes.subarray(this.#starts[i], this.#ends[i]));
    });
    return all;
  }

  /** Every value of a repeated field of messages. */
  everyMessage(field: number): ProtoMessage[] {
    return this.everyBytes(field).map((bytes) => new ProtoMessage(bytes, this.#source.path, this.#source.what));
  }

  /** Every value of a repeated unsigned field, packed or not, each up to 2^53 - 1. */
  everyNumber(field: number): number[] {
    const all: number[] = [];
    const add = ([value, next]: readonly [number | bigint, number]): number => {
      all.push(typeof value === "number" ? value : this.fail(`field ${field} is ${value}. Expected at most 2^53 - 1`));
      return next;
    };
    this.#numbers.forEach((number, i) => {
      if (number !== field) return;
      const [start = 0, end = 0] = [this.#starts[i], this.#ends[i]];
      if (this.#types[i] === VARINT) add(varintAt(this.#source, start));
      else if (this.#types[i] !== LENGTH_DELIMITED) this.fail(`field ${field} has the wire type ${this.#types[i]}`);
      else for (let at = start; at < end;) at = add(varintAt(this.#source, at, end));
    });
    return all;
  }
}

/** Where the value of a field begins and ends. */
function bordersOf(source: WireSource, type: number, start: number): readonly [number, number] {
  switch (type) {
    case VARINT:
      return [start, varintAt(source, start)[1]];
    case FIXED64:
      return [start, start + 8];
    case FIXED32:
      return [start, start + 4];
    case LENGTH_DELIMITED: {
      const [size, from] = varintAt(source, start);
      if (typeof size !== "number") return source.fail(`the field at ${start} has ${size} bytes`);
      return [from, from + size];
    }
    default:
      return source.fail(`the field at ${start} has the wire type ${type}`);
  }
}

/** A varint of up to 64 bits, and where it ends. */
function varintAt(source: WireSource, at: number, end = source.bytes.length): readonly [number | bigint, number] {
  const { bytes } = source;
  let value = 0;
  for (let i = 0; i < 7; i++) { // 49 bits, which a number holds
    if (at + i >= end) source.fail("it ends inside a number");
    const byte = bytes[at + i] ?? 0;
    value += (byte & 0x7f) * 2 ** (7 * i);
    if (byte < 0x80) return [value, at + i + 1];
  }
  let long = BigInt(value);
  for (let i = 7; i < 10; i++) {
    if (at + i >= end) source.fail("it ends inside a number");
    const byte = bytes[at + i] ?? 0;
    if (i === 9 && byte > 1) source.fail("a number has more than 64 bits");
    long |= BigInt(byte & 0x7f) << BigInt(7 * i);
    if (byte < 0x80) return [long <= Number.MAX_SAFE_INTEGER ? Number(long) : long, at + i + 1];
  }
  return source.fail("a number has more than 10 bytes");
}
