/**
 * What can be sent and received: contiguous memory.
 *
 * @module
 */
import { UCS_MEMORY_TYPE } from "../../bindings/ucp_types.ts";
import { byteCount, copyToDevice, copyToHost } from "../copy/mod.ts";
import { type MemoryArgument, resizableBufferError } from "../ffi/mod.ts";
import { none } from "../layout/mod.ts";
import { captureOf, type CudaStream } from "../device/mod.ts";
import { MemoryBuffer } from "../memory/mod.ts";
import { StridedMemoryView } from "../view/mod.ts";
import type { PoolStaging, StagingPiece } from "./pool_staging.ts";
import type { TakenMemory as Memory } from "./taken_memory.ts";

/**
 * What can be sent: a contiguous view, a buffer, an ArrayBuffer or a view of one (a typed array, a DataView), or any
 * object that `StridedMemoryView.from` views as host memory, such as Python's arrays and bytes.
 *
 * UCX has it until the operation has ended, and the program may drop it meanwhile; closing a buffer frees it only then.
 * An ArrayBuffer alone must not be transferred (`transfer()`, `postMessage`, `structuredClone`): no runtime lets anybody
 * keep memory that is another's by then, so UCX goes on with it, also when its new owner frees it. The operation is
 * rejected with a TypeError if UCX was still at it, and a receive that has waited for its message while the worker slept
 * is taken back before anything is written. Memory that was transferred before, and a resizable ArrayBuffer, are refused
 * with a TypeError at once. Use a `MemoryBuffer` where you cannot know.
 */
export type Sendable = StridedMemoryView | MemoryBuffer | ArrayBuffer | ArrayBufferView | object;
/** What can be received into: the same, if writable, and as {@linkcode Sendable} not to be transferred meanwhile. */
export type Receivable = Sendable;

/** What is to become of the memory, as errors say it. */
export type Doing = "send" | "receive into";

/** How memory is taken. */
export interface TakeOptions {
  /** False refuses elements to send that are not contiguous. Default true: they are copied. */
  readonly copy?: boolean;
}

// law ucx/takeBytes: ucx/transferred
/** Takes JavaScript's own memory, which has been asked for its `buffer`: before, the engine may still move it. */
function takeBytes(
  memory: Memory,
  what: MemoryArgument | ArrayBufferView | SharedArrayBuffer,
  buffer: ArrayBufferLike,
  doing: Doing,
): null {
  if (!(buffer instanceof ArrayBuffer)) throw new TypeError(`Cannot ${doing} shared memory. Copy it first.`);
  if (buffer.byteLength === 0 && buffer.detached) { // first: a DataView of it would throw
    throw new TypeError(`Cannot ${doing} memory that was transferred: it is another's now.`);
  }
  if (what.byteLength === 0) {
    memory.address = 0n;
    memory.bytes = 0;
    memory.memoryType = UCS_MEMORY_TYPE.HOST;
    return null;
  }
  if (buffer.resizable) throw resizableBufferError();
  memory.useOwn(what as MemoryArgument); // whose buffer is an ArrayBuffer
  return null;
}

// law ucx/takeMemory: ucx/order, ucx/programs, ucx/message_memory
/**
 * Takes memory to send or to receive into, for who has none: where it is, how long, and a pin, so
 * that it stays even if its buffer is closed.
 *
 * @param cuda what large messages of a pool's memory go through; null if this UCX knows no CUDA
 * @returns the buffer, which may have a home stream to wait for: UCX knows no streams. Null for JavaScript's memory,
 *   and where UCX has a piece of ours in place of the buffer (`memory.copy`, `memory.landing`)
 * @throws {TypeError} if it is to be received into and not contiguous or read-only, or a GPU's and this UCX was built
 *   without CUDA
 */
export function takeMemory(
  memory: Memory,
  what: Sendable,
  doing: Doing,
  cuda: PoolStaging | null,
  options: TakeOptions = none,
): MemoryBuffer | null {
  if (ArrayBuffer.isView(what)) return takeBytes(memory, what, what.buffer, doing);
  if (what instanceof MemoryBuffer) return takeBuffer(memory, what, what.ptr, what.size, doing, cuda);
  if (what instanceof StridedMemoryView) return takeView(memory, what, doing, cuda, options);
  if (what instanceof ArrayBuffer || isShared(what)) return takeBytes(memory, what, what, doing);
  return takeForeign(memory, what, doing, cuda, options);
}

function isShared(what: object): what is SharedArrayBuffer {
  return typeof SharedArrayBuffer === "function" && what instanceof SharedArrayBuffer;
}

function takeView(
  memory: Memory,
  view: StridedMemoryView,
  doing: Doing,
  cuda: PoolStaging | null,
  { copy = true }: TakeOptions,
): MemoryBuffer | null {
  if (view.readonly && doing === "receive into") throw new TypeError("Cannot receive into a read-only view");
  if (view.layout.isContiguousC) return takeBuffer(memory, view.buffer, view.ptr, view.nbytes, doing, cuda);
  if (doing === "receive into" || !copy) {
    throw new TypeError(
      `Cannot ${doing} a view of shape (${view.shape.join(", ")}) with strides (${view.strides.join(", ")}): ` +
        `expected contiguous memory in C order. ${
          doing === "send" ? "Allow a copy" : "Receive it elsewhere, and copy"
        }.`,
    );
  }
  return takePacked(memory, view, cuda);
}

/**
 * What UCX is told that a buffer is, so that it need not find out. To a UCX that knows no CUDA managed memory is the
 * host's.
 */
function typeOf({ kind, pool }: MemoryBuffer, doing: Doing, cuda: PoolStaging | null): number {
  if (kind === "device") {
    if (cuda === null) throw noCuda(doing);
    // Other processes cannot map a pool's memory. UCX takes such memory for managed, too, and goes through its own.
    return pool === null ? UCS_MEMORY_TYPE.CUDA : UCS_MEMORY_TYPE.CUDA_MANAGED;
  }
  return kind === "managed" && cuda !== null ? UCS_MEMORY_TYPE.CUDA_MANAGED : UCS_MEMORY_TYPE.HOST;
}

/** Whether memory that was taken is a GPU's. */
export function isOnGpu({ memoryType }: Memory): boolean {
  return memoryType !== UCS_MEMORY_TYPE.HOST;
}

function noCuda(doing: Doing): TypeError {
  return new TypeError(
    `Cannot ${doing} GPU memory: this UCX was built without CUDA, finds no GPU, or is kept from CUDA by UCX_TLS. ` +
      "Copy it to the host, or install libucx-cu13.",
  );
}

function takeBuffer(
  memory: Memory,
  buffer: MemoryBuffer,
  ptr: bigint,
  bytes: number,
  doing: Doing,
  cuda: PoolStaging | null,
): MemoryBuffer | null {
  const memoryType = typeOf(buffer, doing, cuda);
  // UCX copies in the context that it finds current when it makes progress, and before 1.19 fails where it finds none.
  if (memoryType !== UCS_MEMORY_TYPE.HOST) buffer.device?.ensureCurrent();
  const pin = buffer.pinned(); // first: a closed buffer is an error
  memory.held = pin;
  memory.bytes = bytes;
  const piece = cuda === null ? null : cuda.lend(buffer, bytes);
  if (piece !== null && buffer.stream !== null) {
    takeStaged(memory, pin, buffer.stream, ptr, piece, doing);
    return null; // what its stream has to do comes before the copy, and UCX has other memory
  }
  memory.address = ptr;
  memory.memoryType = memoryType;
  return buffer;
}

// law ucx/takeStaged: ucx/pool_staging
/**
 * Takes a piece of ours in place of a pool's memory, which is copied to it now, or from it when the message is there:
 * on the buffer's home stream, which is what the program's own work on it is ordered by.
 */
function takeStaged(
  memory: Memory,
  pin: Disposable,
  stream: CudaStream,
  ptr: bigint,
  piece: StagingPiece,
  doing: Doing,
): void {
  memory.held = {
    [Symbol.dispose]: () => {
      piece.giveBack();
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
    "Cannot receive into memory whose home stream is being captured: the copy would be one of the graph. Let the worker " +
      "make progress before the capture, or after it.",
  );
}

// law ucx/takeForeign: ucx/order, ucx/programs, ucx/message_memory
/** Takes another library's array, by a view that is closed when UCX is done with it. */
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
    const { held } = memory;
    memory.held = {
      [Symbol.dispose]: () => {
        held?.[Symbol.dispose]();
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
/** Takes a copy of elements that are not contiguous: on a GPU at once, in order; on the host as soon as they are there. */
function takePacked(memory: Memory, view: StridedMemoryView, cuda: PoolStaging | null): MemoryBuffer | null {
  const { buffer, offset, layout, dtype } = view;
  if (buffer.kind === "device" && cuda === null) throw noCuda("send");
  // Managed memory is the host's, too: a UCX without CUDA gets its copy there.
  if (buffer.device !== null && cuda !== null) {
    using packed = copyToDevice(view, buffer.stream ?? buffer.device.defaultStream).buffer;
    return takeBuffer(memory, packed, packed.ptr, packed.size, "send", cuda); // which pins it
  }
  memory.held = buffer.pinned();
  memory.bytes = byteCount(view); // known before the elements are there
  memory.memoryType = UCS_MEMORY_TYPE.HOST;
  memory.pack = () => {
    const { held } = memory;
    // By an address without a home stream: all is there by now, and nothing else is to be waited for.
    const bytes = MemoryBuffer.fromPointer(buffer.ptr, buffer.size);
    const packed = copyToHost({ offset, layout, dtype, readonly: true, buffer: bytes }).buffer;
    memory.held = packed;
    memory.address = packed.ptr;
    memory.pack = null;
    held?.[Symbol.dispose]();
  };
  return buffer;
}
