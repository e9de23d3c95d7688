/**
 * What can be sent and received: contiguous memory.
 *
 * @module
 */
import { UCS_MEMORY_TYPE } from "../../bindings/ucp_types.ts";
import { byteCount, copyToDevice, copyToHost } from "../copy/mod.ts";
import { ffiPort, type MemoryArgument, ownBuffer, ownOffset, resizableBufferError } from "../ffi/mod.ts";
import { checkBoolean, none } from "../layout/mod.ts";
import { captureOf, type CudaStream } from "../device/mod.ts";
import { lenderOfBytes, MemoryBuffer, noAddress } from "../memory/mod.ts";
import { type ForeignArray, StridedMemoryView } from "../view/mod.ts";
import { useGpu } from "./gpu_context.ts";
import { checkKnown, packedOn, typeOf } from "./memory_route.ts";
import type { PoolStaging, StagingPiece } from "./pool_staging.ts";
import { lengthOf, type TakenMemory as Memory } from "./taken_memory.ts";

/**
 * What can be sent: a contiguous view, a buffer, an ArrayBuffer or a view of one (a typed array, a DataView), or any
 * object that `StridedMemoryView.from` views without options, such as Python's arrays and bytes; those on a GPU if
 * Python was opened with a stream.
 *
 * UCX uses it until the operation has completed, and the program may drop it meanwhile; closing a buffer frees it only
 * then. Only an ArrayBuffer is restricted: it must not be transferred (`transfer()`, `postMessage`, `structuredClone`).
 * No runtime can keep memory that has another owner by then, so UCX keeps using it, even after its new owner frees it.
 * The operation is rejected with a TypeError if it was still in flight, and a receive that was waiting for its message
 * while the worker slept is cancelled before anything is written. Memory that was transferred before, and a resizable
 * ArrayBuffer, are refused with a TypeError at once. Use a `MemoryBuffer` if you cannot rule out a transfer.
 */
export type Sendable = StridedMemoryView | MemoryBuffer | ArrayBuffer | ArrayBufferView | ForeignArray;
/** What can be received into: the same, if writable, and like {@linkcode Sendable} not to be transferred meanwhile. */
export type Receivable = Sendable;

/** What is done with the memory, as worded in errors. */
export type Doing = "send" | "receive into" | "register";

/** How memory is taken. */
export interface TakeOptions {
  /** False refuses to send elements that are not contiguous. Default true: they are copied. */
  readonly copy?: boolean;
}

// law ucx/takeBytes: ucx/transferred, ucx/lent_memory
/** Takes JavaScript's own memory, whose `buffer` has been read: until then the engine may still move it. */
function takeBytes(
  memory: Memory,
  what: MemoryArgument | ArrayBufferView | SharedArrayBuffer,
  buffer: ArrayBufferLike,
  doing: Doing,
): null {
  if (!(buffer instanceof ArrayBuffer)) throw noAddress(doing, buffer, `Cannot ${doing} shared memory. Copy it first.`);
  if (buffer.byteLength === 0 && buffer.detached) { // first: a DataView of it would throw
    throw new TypeError(`Cannot ${doing} memory that was transferred: it has another owner now.`);
  }
  // From here on its buffer is an ArrayBuffer.
  const bytes = lengthOf(what as MemoryArgument);
  if (bytes === 0) {
    memory.address = 0n;
    memory.bytes = 0;
    memory.memoryType = UCS_MEMORY_TYPE.HOST;
    return null;
  }
  if (buffer.resizable) throw resizableBufferError();
  const lender = lenderOfBytes(buffer);
  if (lender === null) memory.useOwn(what as MemoryArgument, buffer, bytes);
  else takeLent(memory, what as MemoryArgument, buffer, bytes, lender);
  return null;
}

// law ucx/takeLent: ucx/lent_memory
/** Takes what `bytes()` of a buffer returned, which closing the buffer would free. */
function takeLent(
  memory: Memory,
  what: MemoryArgument,
  buffer: ArrayBuffer,
  bytes: number,
  lender: MemoryBuffer,
): void {
  memory.pin = lender.pinned();
  memory.address = ffiPort().addressOf(buffer) + (ArrayBuffer.isView(what) ? BigInt(ownOffset(what)) : 0n);
  memory.bytes = bytes;
  memory.memoryType = UCS_MEMORY_TYPE.HOST;
  noteOwner(memory, lender);
}

// law ucx/noteOwner: ucx/lent_memory
/** Has JavaScript's own memory watched that a buffer is over: its pin does not keep that from being transferred. */
function noteOwner(memory: Memory, { owner }: MemoryBuffer): void {
  if (memory.bytes > 0 && owner instanceof ArrayBuffer && lenderOfBytes(owner) === null) memory.lent = owner;
}

// law ucx/takeMemory: ucx/order, ucx/programs, ucx/message_memory
/**
 * Takes memory to send or to receive into, for an operation that has none: its address, its length, and a pin, so that
 * it stays even if its buffer is closed.
 *
 * @param cuda staging for large messages in pool memory; null if this UCX does not support CUDA
 * @returns the buffer, which may have a home stream to wait for: UCX knows no streams. Null for JavaScript's memory,
 *   and where UCX uses a piece of ours in place of the buffer (`memory.copy`, `memory.landing`)
 * @throws {TypeError} if it is to be received into and is not contiguous or is read-only, or it is on a GPU and this
 *   UCX was built without CUDA
 */
export function takeMemory(
  memory: Memory,
  what: Sendable | SharedArrayBuffer,
  doing: Doing,
  cuda: PoolStaging | null,
  options: TakeOptions = none,
): MemoryBuffer | null {
  if (ArrayBuffer.isView(what)) return takeBytes(memory, what, ownBuffer(what), doing);
  if (what instanceof MemoryBuffer) return takeBuffer(memory, what, what.ptr, what.size, doing, cuda);
  if (what instanceof StridedMemoryView) return takeView(memory, what, doing, cuda, options);
  if (what instanceof ArrayBuffer || what instanceof SharedArrayBuffer) return takeBytes(memory, what, what, doing);
  return takeForeign(memory, what, doing, cuda, options);
}

function takeView(
  memory: Memory,
  view: StridedMemoryView,
  doing: Doing,
  cuda: PoolStaging | null,
  { copy = true }: TakeOptions,
): MemoryBuffer | null {
  if (view.readonly && doing !== "send") throw new TypeError(`Cannot ${doing} a read-only view`);
  if (view.layout.isContiguousC) return takeBuffer(memory, view.buffer, view.ptr, view.nbytes, doing, cuda);
  checkBoolean("copy", copy);
  if (doing !== "send" || !copy) {
    const wayOut = {
      send: "Allow a copy",
      "receive into": "Receive it elsewhere, and copy",
      register: "Copy it first",
    };
    throw new TypeError(
      `Cannot ${doing} a view of shape (${view.shape.join(", ")}) with strides (${view.strides.join(", ")}): ` +
        `expected contiguous memory in C order. ${wayOut[doing]}.`,
    );
  }
  return takePacked(memory, view, cuda);
}

/** Whether taken memory is a GPU's. */
export function isOnGpu({ memoryType }: Memory): boolean {
  return memoryType !== UCS_MEMORY_TYPE.HOST;
}

function takeBuffer(
  memory: Memory,
  buffer: MemoryBuffer,
  ptr: bigint,
  bytes: number,
  doing: Doing,
  cuda: PoolStaging | null,
): MemoryBuffer | null {
  if (buffer.readonly && doing !== "send") throw new TypeError(`Cannot ${doing} read-only memory`);
  checkKnown(buffer, doing, cuda);
  const memoryType = typeOf(buffer, cuda);
  if (memoryType !== UCS_MEMORY_TYPE.HOST && buffer.device !== null) useGpu(buffer.device);
  const pin = buffer.pinned(); // first: a closed buffer is an error
  memory.pin = pin;
  memory.bytes = bytes;
  const piece = cuda === null ? null : cuda.reserve(buffer, bytes);
  if (piece !== null && buffer.stream !== null) {
    takeStaged(memory, pin, buffer.stream, ptr, piece, doing);
    return null; // the copy follows the stream's earlier work, and UCX uses other memory
  }
  noteOwner(memory, buffer);
  memory.address = ptr;
  memory.memoryType = memoryType;
  return buffer;
}

// law ucx/takeStaged: ucx/pool_staging
/**
 * Takes a piece of ours in place of pool memory, which is copied to it now, or from it when the message has arrived: on
 * the buffer's home stream, which orders the program's own work on the buffer.
 */
function takeStaged(
  memory: Memory,
  pin: Disposable,
  stream: CudaStream,
  ptr: bigint,
  piece: StagingPiece,
  doing: Doing,
): void {
  memory.pin = {
    [Symbol.dispose]: () => {
      piece.release();
      pin[Symbol.dispose]();
    },
  };
  memory.address = piece.ptr;
  memory.memoryType = UCS_MEMORY_TYPE.CUDA;
  if (doing === "send") memory.copy = piece.copy(stream, piece.ptr, ptr, memory.bytes);
  else {
    memory.landing = (bytes) => {
      if (captureOf(stream) !== null) throw landsInCapture();
      return piece.copy(stream, ptr, piece.ptr, bytes);
    };
  }
}

function landsInCapture(): TypeError {
  return new TypeError(
    "Cannot receive into memory whose home stream is being captured: the copy would become part of the graph. Let " +
      "the worker make progress before the capture, or after it.",
  );
}

// law ucx/takeForeign: ucx/order, ucx/programs, ucx/message_memory
/** Takes another library's array, through a view that is closed when UCX is done with it. */
function takeForeign(
  memory: Memory,
  what: object,
  doing: Doing,
  cuda: PoolStaging | null,
  options: TakeOptions,
): MemoryBuffer | null {
  const view = StridedMemoryView.from(what);
  try {
    const buffer = takeView(memory, view, doing, cuda, options);
    const { pin } = memory;
    memory.pin = {
      [Symbol.dispose]: () => {
        pin?.[Symbol.dispose]();
        view.close();
      },
    };
    return buffer;
  } catch (error) {
    view.close();
    throw error;
  }
}

// law ucx/takePacked: ucx/message_memory, ucx/order, ucx/gpu_behaviours
/**
 * Takes a copy of elements that are not contiguous: on a GPU at once, in stream order; on the host as soon as they are
 * ready.
 */
function takePacked(memory: Memory, view: StridedMemoryView, cuda: PoolStaging | null): MemoryBuffer | null {
  const { buffer, offset, layout, dtype } = view;
  checkKnown(buffer, "send", cuda);
  const home = packedOn(buffer, cuda);
  if (home !== null) {
    using packed = copyToDevice(view, home).buffer;
    return takeBuffer(memory, packed, packed.ptr, packed.size, "send", cuda); // which pins it
  }
  memory.pin = buffer.pinned();
  memory.bytes = byteCount(view); // known before the elements are ready
  memory.memoryType = UCS_MEMORY_TYPE.HOST;
  memory.pack = () => {
    const { pin } = memory;
    // By address, without a home stream: everything is ready by now, and there is nothing else to wait for.
    const bytes = MemoryBuffer.fromPointer(buffer.ptr, buffer.size);
    const packed = copyToHost({ offset, layout, dtype, readonly: true, buffer: bytes }).buffer;
    memory.pin = packed;
    memory.address = packed.ptr;
    memory.pack = null;
    pin?.[Symbol.dispose]();
  };
  return buffer;
}
