/**
 * The state of one decoding: what is left of its limits, and how encodings decode their children.
 *
 * @module
 */
import { openNode } from "./open_nodes.ts";
import { newArrayBuffer } from "../native/mod.ts";
import { validityOf } from "./bits.ts";
import type { BoolArray, CanonicalArray, PrimitiveArray } from "./canonical.ts";
import type { EncodedNode } from "./encoded_node.ts";
import { type Place, placeAt } from "./error.ts";
import type { VortexLimits } from "./limits.ts";
import { flatten } from "./ops/flatten.ts";
import { type PrimitiveValues, type PType, valuesAt, widthOf } from "./ptype.ts";
import type { VortexSession } from "./session.ts";
import type { Allocate, Bytes } from "./wire/source.ts";

/** Encodings that Arrow has too, and that an array may keep. */
export interface Kept {
  /** Whether to keep dictionaries: indices into values. */
  readonly dictionary: boolean;
  /** Whether to keep runs of one value. */
  readonly runEnd: boolean;
}

const keepNothing: Kept = { dictionary: false, runEnd: false };

/** What decoding needs besides the nodes. One per call. */
export class DecodeContext {
  /** The session, which knows the encodings. */
  readonly session: VortexSession;
  /** Limits on what decoding may cost. */
  readonly limits: VortexLimits;
  /** What `decodeKeeping` keeps. Encodings call `isKept`. */
  readonly keep: Kept;
  #kept: Kept = keepNothing;
  #left: number;

  /** Starts a decoding. @param keep what may stay encoded, where the result need not be decoded. Default: nothing */
  constructor(session: VortexSession, limits: VortexLimits, keep: Kept = keepNothing) {
    this.session = session;
    this.limits = limits;
    this.keep = keep;
    this.#left = limits.bytes;
  }

  /** Decodes a node entirely. */
  decode(node: EncodedNode): CanonicalArray {
    return this.#with(keepNothing, node);
  }

  /**
   * Decodes a node whose array the caller passes on unchanged: dictionaries and runs stay encoded if the user wants
   * that.
   */
  decodeKeeping(node: EncodedNode): CanonicalArray {
    return this.#with(this.keep, node);
  }

  #with(kept: Kept, node: EncodedNode): CanonicalArray {
    const before = this.#kept;
    this.#kept = kept;
    try {
      const { encoding, opened } = openNode(this.session, node);
      const array = encoding.decode(node, opened, this);
      if (array.length !== node.length) {
        node.fail(`${node.id} was decoded to ${array.length} elements, expected ${node.length}`);
      }
      if (array.kind === "dictionary" && !kept.dictionary) return flatten(array, this.allocator(node));
      return array.kind === "runEnd" && !kept.runEnd ? flatten(array, this.allocator(node)) : array;
    } finally {
      this.#kept = before;
    }
  }

  /** Whether the node being decoded may return a dictionary or runs. Must be called before children are decoded. */
  isKept(what: keyof Kept): boolean {
    return this.#kept[what];
  }

  /** Decodes a node whose dtype is primitive. */
  primitive(node: EncodedNode): PrimitiveArray {
    const array = this.decode(node);
    return array.kind === "primitive" ? array : node.fail(`Expected numbers, got ${array.kind}`);
  }

  /** Decodes a node whose dtype is bool. */
  bool(node: EncodedNode): BoolArray {
    const array = this.decode(node);
    return array.kind === "bool" ? array : node.fail(`Expected truth values, got ${array.kind}`);
  }

  /** Decodes a validity child: one bit per element, or null if no element is null. */
  validity(node: EncodedNode | null): Bytes | null {
    return node === null ? null : validityOf(this.bool(node), this.allocator(node));
  }

  // law vortex/DecodeContext.charge: vortex/core/ops
  /** Charges bytes about to be allocated against the limit. @throws {VortexError} if they exceed what is left of it */
  charge(bytes: number, node: Place): void {
    if (bytes > this.#left || !(bytes >= 0)) {
      node.fail(
        `Decoding would allocate ${bytes} bytes here, but ${this.#left} of the limit of ${this.limits.bytes} are ` +
          "left: raise limits.bytes, or decode fewer rows",
      );
    }
    this.#left -= bytes;
  }

  /** Allocates zeroed bytes in a separate ArrayBuffer whose size is a multiple of 8. Charged first. */
  allocate(bytes: number, node: Place): Bytes {
    const whole = Math.ceil(bytes / 8) * 8;
    this.charge(whole, node);
    return new Uint8Array(newArrayBuffer(whole), 0, bytes);
  }

  /** Allocates on behalf of a node. */
  allocator(node: Place): Allocate {
    return (bytes) => this.allocate(bytes, node);
  }

  /** Allocates zeroed numbers. Charged first. */
  allocateValues(ptype: PType, length: number, node: Place): PrimitiveValues {
    const bytes = this.allocate(length * widthOf(ptype), node);
    return valuesAt(ptype, bytes.buffer, 0, length);
  }

  /** Allocates where no node is involved: for slices, and for what is made of decoded arrays. */
  get allocateForAll(): Allocate {
    return this.allocator(placeAt("$"));
  }
}
