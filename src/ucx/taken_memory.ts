/**
 * Memory that an operation uses, in UCX's terms.
 *
 * @module
 */
import { UCS_MEMORY_TYPE } from "../../bindings/ucp_types.ts";
import { ffiPort, type MemoryArgument, ownLength, ownOffset, ownSize } from "../ffi/mod.ts";
import type { BufferInUse, BuffersInUse } from "./buffers_in_use.ts";
import type { PendingCopy } from "./pending_copies.ts";

/** Keeps memory in place. */
export interface Pin extends Disposable {
  /** What it consists of, if that is several pieces. */
  readonly pieces?: readonly TakenMemory[];
}

/** Taken memory: its address, its size, its kind, and what keeps it in place. */
export class TakenMemory {
  /** The type passed to UCX: a `ucs_memory_type_t`. */
  memoryType: number = UCS_MEMORY_TYPE.HOST;
  /** Keeps the memory in place: a pin. Null for JavaScript's own, which {@linkcode own} keeps. */
  pin: Pin | null = null;
  /** Copies elements that are not contiguous to memory that is, once they are ready; null if not needed. */
  pack: (() => void) | null = null;
  /** The copy to the memory that UCX uses, if that is not the memory given. */
  copy: PendingCopy | null = null;
  /** Copies `bytes` received bytes to the memory given, if UCX uses other memory. */
  landing: ((bytes: number) => PendingCopy) | null = null;
  /** JavaScript's own memory, whatever it was given as: a buffer's pin does not keep it from being transferred. */
  lent: ArrayBuffer | null = null;
  /** The count passed to UCX: bytes, or pieces if it is a list. */
  count = 0n;
  #own: MemoryArgument | null = null;
  #watched: BufferInUse | null = null;
  #address = 0n;
  #bytes = 0;

  /**
   * JavaScript's own memory, if it was given as such. Functions that accept it need no address, which would be a new
   * bigint.
   */
  get own(): MemoryArgument | null {
    return this.#own;
  }

  // law ucx/TakenMemory.address: ucx/raw_stream, ucx/message_list
  /** @throws {TypeError} if it was transferred */
  get address(): bigint {
    const own = this.#own;
    if (own === null || this.lent === null) return this.#address;
    if (this.isTransferred) throw transferred();
    return ffiPort().addressOf(this.lent) + (ArrayBuffer.isView(own) ? BigInt(ownOffset(own)) : 0n);
  }

  set address(address: bigint) {
    this.#own = null;
    this.#address = address;
  }

  /** The number of bytes, as last set. */
  get bytes(): number {
    return this.#bytes;
  }

  set bytes(bytes: number) {
    if (bytes === this.#bytes) return; // messages of one size often follow each other, and a bigint costs 15 ns
    this.#bytes = bytes;
    this.count = BigInt(bytes);
  }

  /** Uses JavaScript's own memory, of `bytes` bytes in `buffer`: not 0, since empty memory has no address. */
  useOwn(own: MemoryArgument, buffer: ArrayBuffer, bytes: number): void {
    this.#own = own;
    this.lent = buffer;
    this.bytes = bytes;
    this.memoryType = UCS_MEMORY_TYPE.HOST;
  }

  // law ucx/TakenMemory.useList: ucx/message_list
  /** Uses a list of `count` pieces, at an address. */
  useList(address: bigint, count: number): void {
    this.address = address;
    this.#bytes = NaN; // differs from whatever is set next
    this.count = BigInt(count);
  }

  // law ucx/TakenMemory.isTransferred: ucx/transferred, ucx/lent_memory
  /**
   * Whether JavaScript has transferred it since it was taken: it then belongs to another ArrayBuffer, or another
   * thread.
   */
  get isTransferred(): boolean {
    if (this.lent !== null) return this.lent.byteLength === 0;
    return this.pin?.pieces?.some(({ isTransferred }) => isTransferred) === true;
  }

  // law ucx/TakenMemory.watch: ucx/buffers_in_use, ucx/transferred, ucx/lent_memory
  /** Has `buffers` watch the JavaScript memory in it, if there is any, until it is released. */
  watch(buffers: BuffersInUse): void {
    if (this.lent !== null) this.#watched ??= buffers.use(this.lent);
    else this.pin?.pieces?.forEach((piece) => piece.watch(buffers));
  }

  // law ucx/TakenMemory.release: ucx/unclosed, ucx/lent_memory
  /** Releases the memory. */
  release(): void {
    const { pin } = this;
    const watched = this.#watched;
    this.#watched = null;
    watched?.among.free(watched);
    this.pin = null;
    this.pack = null;
    this.copy = null;
    this.landing = null;
    this.lent = null;
    this.#own = null;
    pin?.[Symbol.dispose]();
  }
}

/** Bytes of JavaScript's own memory. */
export function lengthOf(own: MemoryArgument): number {
  return ArrayBuffer.isView(own) ? ownLength(own) : ownSize(own);
}

/** The error of an operation whose memory was transferred. */
export function transferred(): TypeError {
  return new TypeError(
    "Expected memory that stays where it is, got an ArrayBuffer that was transferred before UCX was done with it: its " +
      "new owner may have changed what was sent, or find there what was received. Await the operation first.",
  );
}
