/**
 * What can be sent and received: contiguous memory.
 *
 * @module
 */
import { hostReady } from "../order/mod.ts";
import { ffiPort } from "../ffi/mod.ts";
import { MemoryBuffer } from "../memory/mod.ts";
import { StridedMemoryView } from "../view/mod.ts";

/** What can be sent: a contiguous view, a buffer, or bytes. */
export type Sendable = StridedMemoryView | MemoryBuffer | Uint8Array;
/** What can be received into: the same, if writable. */
export type Receivable = StridedMemoryView | MemoryBuffer | Uint8Array;

/** Memory as UCX wants it. */
export interface MessageMemory {
  readonly address: bigint;
  /** Bytes. */
  readonly length: number;
  /** Whether it is a GPU's. */
  readonly cuda: boolean;
  /**
   * Settles when UCX, which knows no streams, may have it: when all is there that the home stream's next work would
   * find. Null if it may at once.
   */
  readonly ready: Promise<void> | null;
  /** Unpins it. Until then it stays where it is, even if its buffer is closed. */
  readonly release: () => void;
}

/**
 * The memory to send from.
 *
 * @throws {TypeError} if it is not contiguous, or a GPU's and this UCX was built without CUDA
 */
export function sendMemory(what: Sendable, hasCuda: boolean): MessageMemory {
  return memoryOf(what, "send", hasCuda);
}

/**
 * The memory to receive into.
 *
 * @throws {TypeError} if it is read-only, not contiguous, or a GPU's and this UCX was built without CUDA
 */
export function receiveMemory(into: Receivable, hasCuda: boolean): MessageMemory {
  if (into instanceof StridedMemoryView && into.readonly) throw new TypeError("Cannot receive into a read-only view");
  return memoryOf(into, "receive into", hasCuda);
}

// law ucx/memoryOf: ucx/order
function memoryOf(what: Sendable, doing: string, hasCuda: boolean): MessageMemory {
  if (what instanceof Uint8Array) {
    const { buffer, byteOffset, byteLength: length } = what;
    if (!(buffer instanceof ArrayBuffer)) throw new TypeError(`Cannot ${doing} shared memory. Copy it first.`);
    const address = length === 0 ? 0n : ffiPort().addressOf(buffer) + BigInt(byteOffset);
    return { address, length, cuda: false, ready: null, release: keepReachable(buffer) };
  }
  const cuda = what.device !== null;
  if (cuda && !hasCuda) {
    throw new TypeError(
      `Cannot ${doing} GPU memory: this UCX was built without CUDA. Copy it to the host, or install libucx-cu13.`,
    );
  }
  if (what instanceof StridedMemoryView && !what.layout.isContiguousC) {
    throw new TypeError(
      `Cannot ${doing} a view of shape (${what.shape.join(", ")}) with strides (${what.strides.join(", ")}): ` +
        "expected contiguous memory in C order. Copy it first.",
    );
  }
  const { ptr: address } = what;
  const [buffer, length] = what instanceof MemoryBuffer ? [what, what.size] : [what.buffer, what.nbytes];
  const pin = buffer.pinned();
  return { address, length, cuda, ready: hostReady(buffer), release: () => pin[Symbol.dispose]() };
}

/** Keeps an ArrayBuffer from being collected until it is released. */
function keepReachable(buffer: ArrayBuffer): () => void {
  const held = new Set([buffer]);
  return () => held.clear();
}
