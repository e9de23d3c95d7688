/**
 * What can be sent and received: contiguous memory.
 *
 * @module
 */
import { ffiPort } from "../ffi/mod.ts";
import { MemoryBuffer } from "../memory/mod.ts";
import { StridedMemoryView } from "../view/mod.ts";
import type { Operation } from "./operation.ts";

/** What can be sent: a contiguous view, a buffer, or bytes. */
export type Sendable = StridedMemoryView | MemoryBuffer | Uint8Array;
/** What can be received into: the same, if writable. */
export type Receivable = StridedMemoryView | MemoryBuffer | Uint8Array;

// law ucx/takeMemory: ucx/order, ucx/programs
/**
 * Takes the memory to send or to receive into, for an operation that has none: where it is, how long, and a pin, so that
 * it stays even if its buffer is closed.
 *
 * @returns the buffer, which may have a home stream to wait for: UCX knows no streams. Null for JavaScript's memory
 * @throws {TypeError} if it is not contiguous, a GPU's and this UCX was built without CUDA, or to be written and read-only
 */
export function takeMemory(
  operation: Operation,
  what: Sendable,
  doing: "send" | "receive into",
  hasCuda: boolean,
): MemoryBuffer | null {
  if (what instanceof Uint8Array) {
    const { buffer, byteLength } = what;
    if (!(buffer instanceof ArrayBuffer)) throw new TypeError(`Cannot ${doing} shared memory. Copy it first.`);
    const { byteOffset } = what;
    operation.address = byteLength === 0 ? 0n : ffiPort().addressOf(buffer);
    if (byteOffset !== 0) operation.address += BigInt(byteOffset);
    operation.bytes = byteLength;
    operation.held = buffer;
    operation.isCuda = false;
    return null;
  }
  if (what instanceof StridedMemoryView) {
    if (what.readonly && doing === "receive into") throw new TypeError("Cannot receive into a read-only view");
    if (!what.layout.isContiguousC) {
      throw new TypeError(
        `Cannot ${doing} a view of shape (${what.shape.join(", ")}) with strides (${what.strides.join(", ")}): ` +
          "expected contiguous memory in C order. Copy it first.",
      );
    }
  }
  const isCuda = what.device !== null;
  if (isCuda && !hasCuda) {
    throw new TypeError(
      `Cannot ${doing} GPU memory: this UCX was built without CUDA. Copy it to the host, or install libucx-cu13.`,
    );
  }
  const { ptr } = what;
  const [buffer, bytes] = what instanceof MemoryBuffer ? [what, what.size] : [what.buffer, what.nbytes];
  operation.held = buffer.pinned();
  operation.address = ptr;
  operation.bytes = bytes;
  operation.isCuda = isCuda;
  return buffer;
}
