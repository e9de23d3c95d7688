/**
 * Writes flatbuffers, from the inside out: what a table refers to is written before it, and lies after it.
 *
 * @module
 */
import type { Bytes } from "./source.ts";

/** A written object: where it begins, in bytes from the end of the finished buffer. */
export interface Written {
  readonly end: number;
}

/** A field of a table. Null means absent. */
export type FlatField =
  | { readonly u8: number }
  | { readonly bool: boolean }
  | { readonly u16: number }
  | { readonly u32: number }
  | { readonly u64: number }
  | Written
  | null;

/** Writes one buffer. It grows downwards, so that every offset is positive, as the format requires. */
export class FlatWriter {
  #bytes: Bytes = new Uint8Array(256);
  #view = new DataView(this.#bytes.buffer);
  /** Bytes written so far, at the end. */
  #used = 0;

  /** Makes room for `size` bytes, such that `#used` is then a multiple of `align`. */
  #reserve(size: number, align: number): number {
    const used = Math.ceil((this.#used + size) / align) * align;
    if (used > this.#bytes.length) {
      const grown = new Uint8Array(2 * used);
      grown.set(this.#bytes.subarray(this.#bytes.length - this.#used), grown.length - this.#used);
      this.#bytes = grown;
      this.#view = new DataView(grown.buffer);
    }
    this.#used = used;
    return this.#bytes.length - used;
  }

  /** A vector with `bytes` bytes of elements: the count, then what `fill` writes. */
  #vector(count: number, bytes: number, align: number, fill: (at: number) => void): Written {
    // The elements begin at a multiple of their alignment, the count before them need not.
    const padding = (align - (this.#used + bytes) % align) % align;
    const at = this.#reserve(4 + bytes + padding, 4);
    this.#view.setUint32(at, count, true);
    fill(at + 4);
    return { end: this.#used };
  }

  /** A vector of bytes. */
  bytes(bytes: Uint8Array): Written {
    return this.#vector(bytes.length, bytes.length, 4, (at) => this.#bytes.set(bytes, at));
  }

  /** Text, followed by the zero byte. */
  text(text: string): Written {
    const bytes = new TextEncoder().encode(text);
    return this.#vector(bytes.length, bytes.length + 1, 4, (at) => this.#bytes.set(bytes, at));
  }

  /** A vector of u16. */
  u16s(values: readonly number[]): Written {
    return this.#vector(values.length, 2 * values.length, 4, (at) => {
      values.forEach((value, i) => this.#view.setUint16(at + 2 * i, value, true));
    });
  }

  /** A vector of 8-byte structs, aligned to 4. */
  structs(structs: readonly Uint8Array[]): Written {
    return this.#vector(structs.length, 8 * structs.length, 4, (at) => {
      structs.forEach((one, i) => this.#bytes.set(one, at + 8 * i));
    });
  }

  /** A vector of tables or texts. */
  offsets(written: readonly Written[]): Written {
    return this.#vector(written.length, 4 * written.length, 4, (at) => {
      written.forEach(({ end }, i) => this.#offset(at + 4 * i, end));
    });
  }

  #offset(at: number, end: number): void {
    this.#view.setUint32(at, this.#bytes.length - at - end, true);
  }

  /** A table with its fields by slot. */
  table(fields: readonly FlatField[]): Written {
    let size = 4;
    // By decreasing width, so that no field needs padding; the table itself begins at a multiple of 8 if one needs it.
    const places = new Map<number, number>();
    const align = fields.some((field) => widthOf(field) === 8) ? 8 : 4;
    for (const width of [8, 4, 2, 1]) {
      fields.forEach((field, slot) => {
        if (widthOf(field) !== width) return;
        size = Math.ceil(size / width) * width;
        places.set(slot, size);
        size += width;
      });
    }
    const at = this.#reserve(size, align);
    const end = this.#used;
    const vtableSize = 4 + 2 * fields.length;
    fields.forEach((field, slot) => {
      const place = at + (places.get(slot) ?? 0);
      if (field === null) return;
      if ("u8" in field) this.#view.setUint8(place, field.u8);
      else if ("bool" in field) this.#view.setUint8(place, Number(field.bool));
      else if ("u16" in field) this.#view.setUint16(place, field.u16, true);
      else if ("u32" in field) this.#view.setUint32(place, field.u32, true);
      else if ("u64" in field) this.#view.setBigUint64(place, BigInt(field.u64), true);
      else this.#offset(place, field.end);
    });
    const vtable = this.#reserve(vtableSize, 2);
    this.#view.setUint16(vtable, vtableSize, true);
    this.#view.setUint16(vtable + 2, size, true);
    fields.forEach((_, slot) => this.#view.setUint16(vtable + 4 + 2 * slot, places.get(slot) ?? 0, true));
    this.#view.setInt32(this.#bytes.length - end, this.#used - end, true);
    return { end };
  }

  /** The finished buffer, whose root is a table. Its size is a multiple of 8. */
  finish(root: Written): Bytes {
    const at = this.#reserve(4, 8);
    this.#offset(at, root.end);
    return this.#bytes.slice(at);
  }
}

function widthOf(field: FlatField): number {
  if (field === null) return 0;
  if ("u8" in field || "bool" in field) return 1;
  if ("u16" in field) return 2;
  return "u64" in field ? 8 : 4;
}
