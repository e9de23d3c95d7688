/**
 * Memory that an operation uses, as UCX wants it.
 *
 * @module
 */
import { UCS_MEMORY_TYPE } from "../../bindings/ucp_types.ts";
import { ffiPort, type MemoryArgument } from "../ffi/mod.ts";
import type { PendingCopy } from "./pending_copies.ts";

/** What keeps memory where it is. */
export interface Hold extends Disposable {
  /** Whether JavaScript has transferred some of it. */
  isTransferred?(): boolean;
}

/** Memory that was taken: where it is, how long, of which kind, and what keeps it there. */
export class TakenMemory {
  /** What UCX is told that it is: a `ucs_memory_type_t`. */
  memoryType: number = UCS_MEMORY_TYPE.HOST;
  /** Keeps the memory where it is: a pin. Null for JavaScript's own, which {@linkcode own} keeps. */
  held: Hold | null = null;
  /** Copies elements that are not contiguous to memory that is, when those elements are there; null if nothing has to. */
  pack: (() => void) | null = null;
  /** The copy to the memory that UCX has, if that is not what was given. */
  copy: PendingCopy | null = null;
  /** Copies so many bytes that have come to the memory that was given, if UCX has other. */
  landing: ((bytes: number) => PendingCopy) | null = null;
  /** Bytes, or pieces if it is a list, as UCX is told. */
  count = 0n;
  #own: MemoryArgument | null = null;
  #address = 0n;
  #bytes = 0;

  /** JavaScript's own memory, if it is that. What can be called with it need not ask for an address, a new bigint. */
  get own(): MemoryArgument | null {
    return this.#own;
  }

  // law ucx/TakenMemory.address: ucx/raw_stream, ucx/message_list
  /** @throws {TypeError} if it was transferred */
  get address(): bigint {
    const own = this.#own;
    if (own === null) return this.#address;
    if (this.isTransferred) throw transferred();
    if (!ArrayBuffer.isView(own)) return ffiPort().addressOf(own);
    return ffiPort().addressOf(own.buffer) + BigInt(own.byteOffset);
  }

  set address(address: bigint) {
    this.#own = null;
    this.#address = address;
  }

  /** The number of bytes, as it was given last. */
  get bytes(): number {
    return this.#bytes;
  }

  set bytes(bytes: number) {
    if (bytes === this.#bytes) return; // messages of one size follow each other, and a bigint costs 15 ns
    this.#bytes = bytes;
    this.count = BigInt(bytes);
  }

  /** Uses JavaScript's own memory: some, for there is no address of nothing. */
  useOwn(own: MemoryArgument): void {
    this.#own = own;
    this.bytes = own.byteLength;
    this.memoryType = UCS_MEMORY_TYPE.HOST;
  }

  // law ucx/TakenMemory.useList: ucx/message_list
  /** Uses a list of so many pieces, at an address. */
  useList(address: bigint, count: number): void {
    this.address = address;
    this.#bytes = NaN; // of another count than the next that is given
    this.count = BigInt(count);
  }

  // law ucx/TakenMemory.isTransferred: ucx/transferred
  /** Whether JavaScript has transferred it since it was taken: it is another ArrayBuffer's then, or another thread's. */
  get isTransferred(): boolean {
    const own = this.#own;
    if (own === null) return this.held?.isTransferred?.() === true;
    const buffer = ArrayBuffer.isView(own) ? own.buffer : own; // a DataView would throw
    return buffer.byteLength === 0;
  }

  // law ucx/TakenMemory.release: ucx/unclosed
  /** Lets go of the memory. */
  release(): void {
    const { held } = this;
    this.held = null;
    this.pack = null;
    this.copy = null;
    this.landing = null;
    this.#own = null;
    held?.[Symbol.dispose]();
  }
}

/** What an operation ends with whose memory was transferred. */
export function transferred(): TypeError {
  return new TypeError(
    "Expected memory that stays where it is, got an ArrayBuffer that was transferred before UCX was done with it: its " +
      "new owner may have changed what was sent, or find there what was received. Await the operation first.",
  );
}
