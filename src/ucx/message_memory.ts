/**
 * What can be sent and received: contiguous memory.
 *
 * @module
 */
import { ffiPort } from "../ffi/mod.ts";
import { MemoryBuffer } from "../memory/mod.ts";
import { StridedMemoryView } from "../view/mod.ts";
import type { Operation } from "./operation.ts";

/**
 * What can be sent: a contiguous view, a buffer, an ArrayBuffer or a view of one (a typed array, a DataView), or any
 * object that `StridedMemoryView.from` views as host memory, such as Python's arrays and bytes.
 */
export type Sendable = StridedMemoryView | MemoryBuffer | ArrayBuffer | ArrayBufferView | object;
/** What can be received into: the same, if writable. */
export type Receivable = Sendable;

/** What is to become of the memory, as errors say it. */
type Doing = "send" | "receive into";

// law ucx/takeMemory: ucx/order, ucx/programs, ucx/message_memory
/**
 * Takes the memory to send or to receive into, for an operation that has none: where it is, how long, and a pin, so
 * that it stays even if its buffer is closed.
 *
 * @returns the buffer, which may have a home stream to wait for: UCX knows no streams. Null for JavaScript's memory
 * @throws {TypeError} if it is not contiguous, a GPU's and this UCX was built without CUDA, or to be written and
 *   read-only
 */
export function takeMemory(
  operation: Operation,
  what: Sendable,
  doing: Doing,
  hasCuda: boolean,
): MemoryBuffer | null {
  if (ArrayBuffer.isView(what)) return takeBytes(operation, what.buffer, what.byteOffset, what.byteLength, doing);
  if (what instanceof MemoryBuffer) return takeBuffer(operation, what, what.ptr, what.size, doing, hasCuda);
  if (what instanceof StridedMemoryView) return takeView(operation, what, doing, hasCuda);
  if (what instanceof ArrayBuffer || isShared(what)) return takeBytes(operation, what, 0, what.byteLength, doing);
  return takeForeign(operation, what, doing, hasCuda);
}

function isShared(what: object): what is SharedArrayBuffer {
  return typeof SharedArrayBuffer === "function" && what instanceof SharedArrayBuffer;
}

/** Takes JavaScript's own memory. */
function takeBytes(operation: Operation, buffer: ArrayBufferLike, offset: number, bytes: number, doing: Doing): null {
  if (!(buffer instanceof ArrayBuffer)) throw new TypeError(`Cannot ${doing} shared memory. Copy it first.`);
  operation.address = bytes === 0 ? 0n : ffiPort().addressOf(buffer);
  if (offset !== 0) operation.address += BigInt(offset);
  operation.bytes = bytes;
  operation.held = buffer;
  operation.isCuda = false;
  return null;
}

function takeView(operation: Operation, view: StridedMemoryView, doing: Doing, hasCuda: boolean): MemoryBuffer {
  if (view.readonly && doing === "receive into") throw new TypeError("Cannot receive into a read-only view");
  if (!view.layout.isContiguousC) {
    throw new TypeError(
      `Cannot ${doing} a view of shape (${view.shape.join(", ")}) with strides (${view.strides.join(", ")}): ` +
        "expected contiguous memory in C order. Copy it first.",
    );
  }
  return takeBuffer(operation, view.buffer, view.ptr, view.nbytes, doing, hasCuda);
}

function takeBuffer(
  operation: Operation,
  buffer: MemoryBuffer,
  ptr: bigint,
  bytes: number,
  doing: Doing,
  hasCuda: boolean,
): MemoryBuffer {
  const isCuda = buffer.device !== null;
  if (isCuda && !hasCuda) {
    throw new TypeError(
      `Cannot ${doing} GPU memory: this UCX was built without CUDA. Copy it to the host, or install libucx-cu13.`,
    );
  }
  operation.held = buffer.pinned();
  operation.address = ptr;
  operation.bytes = bytes;
  operation.isCuda = isCuda;
  return buffer;
}

/** Takes another library's array, by a view that is closed when UCX is done with it. */
function takeForeign(operation: Operation, what: object, doing: Doing, hasCuda: boolean): MemoryBuffer {
  const view = StridedMemoryView.from(what);
  try {
    const buffer = takeView(operation, view, doing, hasCuda);
    const pin = operation.held as Disposable; // of the buffer
    operation.held = {
      [Symbol.dispose]: () => {
        pin[Symbol.dispose]();
        view.close();
      },
    };
    return buffer;
  } catch (error) {
    view.close();
    throw error;
  }
}
