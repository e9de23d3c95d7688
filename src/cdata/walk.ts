/**
 * Walks trees of foreign structs: checks every pointer before following it, and rejects trees that are too deep, too
 * large, or cyclic.
 *
 * @module
 */
import { ffiPort, isAddress, littleEndian } from "../ffi/mod.ts";
import { ExchangeError } from "../order/mod.ts";

/** The maximum nesting depth of an array's types. */
const maxDepth = 64;

/**
 * The maximum number of structs of an array. Real tables have thousands of columns; a corrupt count has more digits.
 */
const maxStructs = 2 ** 20;

/** One walk: what has been visited so far. */
export class Walk {
  /** The name of the structs, for messages: `ArrowSchema`. */
  readonly what: string;
  readonly #ifRefused: string;
  readonly #seen = new Set<bigint>();

  /**
   * @param what the name of the structs, for messages
   * @param ifRefused who owns them after an error, for messages
   */
  constructor(what: string, ifRefused = "It was not taken, and its producer still owns it") {
    this.what = what;
    this.#ifRefused = ifRefused;
  }

  // law cdata/Walk.enter: cdata/fuzz, view/arrow
  /**
   * Enters a struct.
   *
   * @throws {ExchangeError} if the address or the depth is invalid, or the struct was entered before
   */
  enter(address: bigint, depth: number): void {
    this.pointer(address, "address");
    if (depth > maxDepth) throw this.refusal(`is nested deeper than ${maxDepth} levels`);
    if (this.#seen.has(address)) throw this.refusal(`leads twice to the struct at address ${address}`);
    this.#seen.add(address);
    if (this.#seen.size > maxStructs) throw this.refusal(`consists of more than ${maxStructs} structs`);
  }

  // law cdata/Walk.pointer: cdata/fuzz, view/arrow, arrow/host_order
  /** Throws unless the address can be that of a struct or of an array of pointers. */
  pointer(address: bigint, name: string): void {
    if (address === 0n) throw this.refusal(`has NULL as its ${name}`);
    if (!isAddress(address)) {
      throw this.refusal(`has ${address} as its ${name}: expected an address of 64 bits`);
    }
    if (address % 8n !== 0n) throw this.refusal(`has ${address} as its ${name}: expected a multiple of 8`);
  }

  // law cdata/Walk.count: cdata/fuzz, view/arrow
  /** A count in a struct, checked to be non-negative. Beyond 2^53 it is not exact. */
  count(value: bigint, name: string): number {
    if (value >= 0n) return Number(value);
    throw this.refusal(`has ${value} as its ${name}: expected 0 or more`);
  }

  // law cdata/Walk.pointers: cdata/fuzz, view/arrow
  /** Reads an array of pointers, without checking them. */
  pointers(address: bigint, count: number, name: string): bigint[] {
    if (count === 0) return [];
    if (count > maxStructs) throw this.refusal(`has ${count} ${name}: expected at most ${maxStructs}`);
    this.pointer(address, name);
    const view = new DataView(ffiPort().memory(address, count * 8));
    return Array.from({ length: count }, (_, i) => view.getBigUint64(i * 8, littleEndian));
  }

  /** The error for a struct that cannot be imported. */
  refusal(reason: string): ExchangeError {
    return new ExchangeError(`Cannot import an ${this.what}: it ${reason}. ${this.#ifRefused}`);
  }
}
