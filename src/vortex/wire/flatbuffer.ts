/**
 * Reads flatbuffers. Every offset is checked where it is followed: nothing outside the bytes is read, whatever they
 * say.
 *
 * @module
 */
import { type Bytes, textOf, WireSource } from "./source.ts";

/** A table: fields by slot, any of which may be absent. */
export class FlatTable {
  readonly #source: WireSource;
  /** Where the table begins. */
  readonly #at: number;
  readonly #vtable: number;
  readonly #vtableSize: number;
  readonly #size: number;

  private constructor(source: WireSource, at: number) {
    source.visit();
    this.#source = source;
    this.#at = at;
    const { view } = source;
    if (at + 4 > view.byteLength) source.fail(`a table at ${at} lies outside its ${view.byteLength} bytes`);
    const vtable = at - view.getInt32(at, true);
    if (vtable < 0 || vtable + 4 > view.byteLength) source.fail(`the vtable of the table at ${at} is out of bounds`);
    this.#vtable = vtable;
    this.#vtableSize = view.getUint16(vtable, true);
    this.#size = view.getUint16(vtable + 2, true);
    if (this.#vtableSize < 4 || vtable + this.#vtableSize > view.byteLength) {
      source.fail(`the vtable of the table at ${at} has ${this.#vtableSize} bytes, more than available`);
    }
    if (this.#size < 4 || at + this.#size > view.byteLength) {
      source.fail(`the table at ${at} has ${this.#size} bytes, more than available`);
    }
  }

  /**
   * The root table.
   *
   * @param path the node that the bytes belong to, for errors
   * @param what what the bytes are, for errors
   * @param visits how many tables may be visited
   */
  static root(bytes: Bytes, path: string, what: string, visits: number): FlatTable {
    const source = new WireSource(bytes, path, what, visits);
    if (bytes.length < 4) source.fail(`it has ${bytes.length} bytes`);
    return new FlatTable(source, source.view.getUint32(0, true));
  }

  /** @throws {VortexError} always */
  fail(why: string): never {
    this.#source.fail(why);
  }

  /** The position of a field of `bytes` bytes; 0 if it is absent. */
  #field(slot: number, bytes: number): number {
    const entry = 4 + 2 * slot;
    if (entry + 2 > this.#vtableSize) return 0;
    const offset = this.#source.view.getUint16(this.#vtable + entry, true);
    if (offset === 0) return 0;
    if (offset < 4 || offset + bytes > this.#size) this.fail(`field ${slot} lies outside its table`);
    return this.#at + offset;
  }

  /** Whether a field is present. */
  has(slot: number): boolean {
    return this.#field(slot, 0) !== 0;
  }

  /** A u8; 0 if it is absent, as are all numbers. */
  u8(slot: number): number {
    const at = this.#field(slot, 1);
    return at === 0 ? 0 : this.#source.view.getUint8(at);
  }

  /** An i8. */
  i8(slot: number): number {
    const at = this.#field(slot, 1);
    return at === 0 ? 0 : this.#source.view.getInt8(at);
  }

  /** A bool. */
  bool(slot: number): boolean {
    return this.u8(slot) !== 0;
  }

  /** A u16. */
  u16(slot: number): number {
    const at = this.#field(slot, 2);
    return at === 0 ? 0 : this.#source.view.getUint16(at, true);
  }

  /** A u32. */
  u32(slot: number): number {
    const at = this.#field(slot, 4);
    return at === 0 ? 0 : this.#source.view.getUint32(at, true);
  }

  /** A u64, as a number. @throws {VortexError} beyond 2^53 - 1 */
  u64(slot: number): number {
    const at = this.#field(slot, 8);
    return at === 0 ? 0 : u64At(this.#source, at);
  }

  /** The target of an offset in a field; 0 if the field is absent. */
  #follow(slot: number): number {
    const at = this.#field(slot, 4);
    return at === 0 ? 0 : at + this.#source.view.getUint32(at, true);
  }

  /** A table, or null. */
  table(slot: number): FlatTable | null {
    const at = this.#follow(slot);
    return at === 0 ? null : new FlatTable(this.#source, at);
  }

  /** A vector: where its elements begin, and how many there are. */
  #vector(slot: number, width: number): { readonly start: number; readonly count: number } | null {
    const at = this.#follow(slot);
    if (at === 0) return null;
    const { view } = this.#source;
    if (at + 4 > view.byteLength) this.fail(`the vector in field ${slot} lies outside its ${view.byteLength} bytes`);
    const count = view.getUint32(at, true);
    const start = at + 4;
    if (start + count * width > view.byteLength) {
      this.fail(`the vector in field ${slot} has ${count} elements of ${width} bytes, more than available`);
    }
    return { start, count };
  }

  /** Number of elements of a vector; 0 if it is absent. */
  count(slot: number): number {
    return this.#vector(slot, 0)?.count ?? 0;
  }

  /** A vector of bytes, not copied; null if it is absent. */
  bytes(slot: number): Bytes | null {
    const found = this.#vector(slot, 1);
    return found === null ? null : this.#source.bytes.subarray(found.start, found.start + found.count);
  }

  /** Text, or null. @throws {VortexError} unless it is UTF-8 */
  text(slot: number): string | null {
    const bytes = this.bytes(slot);
    return bytes === null ? null : textOf(bytes) ?? this.fail(`the text in field ${slot} is not UTF-8`);
  }

  /** A vector of u16; empty if it is absent. */
  u16s(slot: number): number[] {
    const { start, count } = this.#vector(slot, 2) ?? nothing;
    return Array.from({ length: count }, (_, i) => this.#source.view.getUint16(start + 2 * i, true));
  }

  /** A vector of u32; empty if it is absent. */
  u32s(slot: number): number[] {
    const { start, count } = this.#vector(slot, 4) ?? nothing;
    return Array.from({ length: count }, (_, i) => this.#source.view.getUint32(start + 4 * i, true));
  }

  /** A vector of tables; empty if it is absent. */
  tables(slot: number): FlatTable[] {
    const { start, count } = this.#vector(slot, 4) ?? nothing;
    const tables: FlatTable[] = [];
    for (let i = 0; i < count; i++) {
      const at = start + 4 * i;
      tables.push(new FlatTable(this.#source, at + this.#source.view.getUint32(at, true)));
    }
    return tables;
  }

  /** A vector of texts; empty if it is absent. */
  texts(slot: number): string[] {
    const { start, count } = this.#vector(slot, 4) ?? nothing;
    const { view, bytes } = this.#source;
    const texts: string[] = [];
    let total = 0;
    for (let i = 0; i < count; i++) {
      const at = start + 4 * i + view.getUint32(start + 4 * i, true);
      const size = at + 4 <= view.byteLength ? view.getUint32(at, true) : 0;
      if (at + 4 + size > view.byteLength) this.fail(`text ${i} of field ${slot} is out of bounds`);
      total += size;
      // All offsets may lead to one long text.
      if (total > view.byteLength) this.fail(`the texts of field ${slot} share their bytes`);
      texts.push(textOf(bytes.subarray(at + 4, at + 4 + size)) ?? this.fail(`text ${i} of field ${slot} is not UTF-8`));
    }
    return texts;
  }

  /** A vector of structs of `width` bytes, as one view per struct; empty if it is absent. */
  structs(slot: number, width: number): DataView<ArrayBuffer>[] {
    const { start, count } = this.#vector(slot, width) ?? nothing;
    const { buffer, byteOffset } = this.#source.view;
    return Array.from({ length: count }, (_, i) => new DataView(buffer, byteOffset + start + i * width, width));
  }
}

const nothing = { start: 0, count: 0 } as const;

function u64At(source: WireSource, at: number): number {
  const value = source.view.getUint32(at, true) + source.view.getUint32(at + 4, true) * 2 ** 32;
  return Number.isSafeInteger(value) ? value : source.fail(`the number at ${at} is greater than 2^53 - 1`);
}
