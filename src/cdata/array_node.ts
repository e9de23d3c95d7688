/**
 * An Arrow array as the C structs describe it: a type, and buffers, children and a dictionary with the elements.
 *
 * @module
 */
import { type ArrayParts, byteCount } from "../copy/mod.ts";
import type { CudaDevice } from "../device/mod.ts";
import { countNulls } from "./bits.ts";
import type { ArrowField, ArrowType } from "./type.ts";

/** What an array consists of. An `ArrowArray` is one. */
export interface ArrowNode {
  /** Name, type, nullability and metadata. */
  readonly field: ArrowField;
  /** What the elements are: the field's type. */
  readonly type: ArrowType;
  /** Elements. */
  readonly length: number;
  /** Elements that come before the first in every buffer. */
  readonly offset: number;
  /** How many elements are null, counted at first need. */
  readonly nullCount: number;
  /** The same as far as it is known without counting; -1 if it is not. */
  readonly knownNullCount: number;
  /** The buffers that the columnar format gives the type, as bytes; null where there is none. */
  readonly buffers: readonly (ArrayParts | null)[];
  /** The arrays inside a nested type. */
  readonly children: readonly ArrowNode[];
  /** What the indices of a dictionary-encoded array stand for, or null. */
  readonly dictionary: ArrowNode | null;
}

/**
 * What a node is made of. By default there is no offset, there are no children and no dictionary, and of the nulls
 * nothing is known if there is a validity bitmap.
 */
export type ArrowNodeParts =
  & Pick<ArrowNode, "field" | "length" | "buffers">
  & Partial<Pick<ArrowNode, "offset" | "nullCount" | "children" | "dictionary">>;

/** An array made of its parts. */
export class ArrayNode implements ArrowNode {
  readonly field: ArrowField;
  readonly length: number;
  readonly offset: number;
  readonly buffers: readonly (ArrayParts | null)[];
  readonly children: readonly ArrowNode[];
  readonly dictionary: ArrowNode | null;
  #nullCount: number;

  /** Checks nothing: see `checkNode`. */
  constructor(parts: ArrowNodeParts) {
    const { field, length, offset = 0, buffers, children = [], dictionary = null, nullCount } = parts;
    this.field = field;
    this.length = length;
    this.offset = offset;
    this.buffers = buffers;
    this.children = children;
    this.dictionary = dictionary;
    this.#nullCount = knownNulls(field.type, length, buffers, nullCount);
  }

  get type(): ArrowType {
    return this.field.type;
  }

  get nullCount(): number {
    if (this.#nullCount < 0) this.#nullCount = countNulls(this);
    return this.#nullCount;
  }

  get knownNullCount(): number {
    return this.#nullCount;
  }
}

/** An array's null count as far as it is known without counting; -1 if it is not. */
export function knownNulls(
  type: ArrowType,
  length: number,
  buffers: readonly (ArrayParts | null)[],
  nullCount: number | undefined,
): number {
  return type.kind === "null" ? length : nullCount ?? ((buffers[0] ?? null) === null ? 0 : -1);
}

/** The device whose memory the buffers are, or null for host memory. */
export function deviceOf({ buffers, children, dictionary }: ArrowNode): CudaDevice | null {
  const own = buffers.find((one) => one !== null && one.buffer.device !== null)?.buffer.device;
  if (own !== undefined) return own;
  for (const child of children) {
    const device = deviceOf(child);
    if (device !== null) return device;
  }
  return dictionary === null ? null : deviceOf(dictionary);
}

/** Bytes of a buffer; 0 if there is none. */
export function sizeOf(buffer: ArrayParts | null): number {
  return buffer === null ? 0 : byteCount(buffer);
}
