/**
 * An Arrow array as the C structs describe it: a type, and buffers, children and a dictionary with the elements.
 *
 * @module
 */
import { type ArrayParts, byteCount } from "../copy/mod.ts";
import type { CudaDevice } from "../device/mod.ts";
import { countNulls } from "./bits.ts";
import type { ArrowField, ArrowType } from "./type.ts";

/** The parts of an array. An `ArrowArray` is one. */
export interface ArrowNode {
  /** Name, type, nullability and metadata. */
  readonly field: ArrowField;
  /** The type of the elements: the field's type. */
  readonly type: ArrowType;
  /** Elements. */
  readonly length: number;
  /** Elements that precede the first one in every buffer. */
  readonly offset: number;
  /** The number of nulls, counted on first use. */
  readonly nullCount: number;
  /** The number of nulls if known without counting, otherwise -1. */
  readonly knownNullCount: number;
  /** The buffers that the columnar format defines for the type, as bytes; null for an absent one. */
  readonly buffers: readonly (ArrayParts | null)[];
  /** The arrays inside a nested type. */
  readonly children: readonly ArrowNode[];
  /** The values that the indices of a dictionary-encoded array refer to, or null. */
  readonly dictionary: ArrowNode | null;
}

/**
 * The parts from which a node is made. By default there is no offset, no children and no dictionary, and the null count
 * is unknown if there is a validity bitmap.
 */
type ArrowNodeParts =
  & Pick<ArrowNode, "field" | "length" | "buffers">
  & Partial<Pick<ArrowNode, "offset" | "nullCount" | "children" | "dictionary">>;

/** An array made from its parts. */
export class ArrayNode implements ArrowNode {
  readonly field: ArrowField;
  readonly length: number;
  readonly offset: number;
  readonly buffers: readonly (ArrayParts | null)[];
  readonly children: readonly ArrowNode[];
  readonly dictionary: ArrowNode | null;
  #nullCount: number;

  /** Performs no checks: see `checkNode`. */
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

/** An array's null count if known without counting, otherwise -1. */
export function knownNulls(
  type: ArrowType,
  length: number,
  buffers: readonly (ArrayParts | null)[],
  nullCount: number | undefined,
): number {
  return type.kind === "null" ? length : nullCount ?? ((buffers[0] ?? null) === null ? 0 : -1);
}

/** The device whose memory holds the buffers, or null for host memory. */
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
