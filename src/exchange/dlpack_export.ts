/**
 * DLPack, outwards: a view as a tensor that any library can take over.
 *
 * @module
 */
import { CU_STREAM_LEGACY } from "../../bindings/cuda_types.ts";
import {
  DLManagedTensor,
  DLManagedTensorVersioned,
  DLPACK_FLAG_BITMASK,
  DLPACK_MAJOR_VERSION,
  DLPACK_MINOR_VERSION,
  type DLTensor,
} from "../../bindings/dlpack.ts";
import { allocate } from "../ffi/arena.ts";
import { libc } from "../ffi/libc.ts";
import { ffiPort } from "../ffi/port.ts";
import { releaseThunks } from "../ffi/release_thunk.ts";
import { layoutOf, struct, type StructView } from "../ffi/struct.ts";
import { HostMemoryResource } from "../memory/host_memory_resource.ts";
import type { MemoryBuffer } from "../memory/memory_buffer.ts";
import { StridedMemoryView } from "../view/strided_memory_view.ts";
import { dlpackDevice, DlpackTensor, type TensorHolder, type ToDlpackOptions } from "./dlpack.ts";
import { ExchangeError } from "./error.ts";
import { addExport, lookIfMany, removeExport } from "./live_exports.ts";
import { consumerStream, orderConsumer, orderRelease } from "./order.ts";

/** A tensor that is out. It lies in one block of C memory: the struct, a release counter, the shape, the strides. */
class Export implements TensorHolder {
  readonly #block: bigint;
  readonly #counter: DataView;
  readonly #buffer: MemoryBuffer;
  readonly #unpin: () => void;
  #finished = false;

  constructor(block: bigint, counter: DataView, buffer: MemoryBuffer) {
    this.#block = block;
    this.#counter = counter;
    this.#buffer = buffer;
    this.#unpin = buffer.pin();
    addExport(this);
  }

  /** Looks whether the consumer has released, and if so gives the memory back: in order, once. */
  isReleased(): boolean {
    if (!this.#finished && this.#counter.getInt32(0, true) > 0) {
      this.#finished = true;
      removeExport(this);
      libc().loading.free(this.#block);
      orderRelease(this.#buffer);
      this.#unpin();
    }
    return this.#finished;
  }
}

const counterBytes = 8;

/**
 * Exports a view.
 *
 * @throws {ExchangeError} if the old struct is wanted, which cannot say that a view is read-only or its elements padded, if
 *   host memory is to be ordered on a stream, or a copy of device memory or of packed elements is asked for
 * @throws {TypeError} if the view's buffer is closed
 */
export function toDlpack(view: StridedMemoryView, options: ToDlpackOptions = {}): DlpackTensor {
  const { maxVersion = [DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION], copy = null } = options;
  const versioned = maxVersion[0] >= 1;
  if (!versioned && view.dtype.dlpack.padded) {
    throw new ExchangeError(
      `Cannot export ${view.dtype.name} to a consumer of DLPack 0.x: the old struct cannot say that each element has a ` +
        "byte of its own. Export the bytes as uint8, or let the consumer pass a version of at least [1, 0].",
    );
  }
  if (copy === true) return exportCopy(view, versioned, options.stream);
  if (view.readonly && !versioned) {
    throw new ExchangeError(
      "Cannot export a read-only view to a consumer of DLPack 0.x: the old struct cannot say that it is read-only. " +
        "Ask for a copy, or let the consumer pass a version of at least [1, 0].",
    );
  }
  lookIfMany();
  orderForConsumer(view, options.stream);
  return exportTensor(view, versioned, view.readonly ? DLPACK_FLAG_BITMASK.READ_ONLY : 0n);
}

/** Exports a copy that belongs to the consumer alone. */
function exportCopy(view: StridedMemoryView, versioned: boolean, stream: ToDlpackOptions["stream"]): DlpackTensor {
  if (view.device !== null) throw new ExchangeError("Cannot export a copy of device memory: copy it yourself first");
  if (view.dtype.isPacked) throw new ExchangeError(`Cannot export a copy of ${view.dtype.name}: export it without one`);
  orderForConsumer(view, stream);
  const buffer = new HostMemoryResource().allocate(view.nbytes);
  try {
    const copied = StridedMemoryView.fromBuffer(buffer, { shape: view.shape, dtype: view.dtype });
    copied.copyFrom(view);
    return exportTensor(copied, versioned, DLPACK_FLAG_BITMASK.IS_COPIED);
  } finally {
    buffer.close(); // the export has pinned it
  }
}

function orderForConsumer(view: StridedMemoryView, stream: ToDlpackOptions["stream"]): void {
  const { device } = view;
  if (device === null) {
    if (stream !== undefined && stream !== null && stream !== -1n) {
      throw new ExchangeError("Cannot order host memory on a stream: pass no stream for a view of host memory");
    }
    return;
  }
  if (stream === 0n) throw new ExchangeError("Cannot use stream 0: DLPack forbids it. Pass 1n for the default stream.");
  if (stream === null || stream === -1n) return;
  orderConsumer(view.buffer, consumerStream(device, stream ?? CU_STREAM_LEGACY));
}

function exportTensor(view: StridedMemoryView, versioned: boolean, flags: bigint): DlpackTensor {
  const description = versioned ? DLManagedTensorVersioned : DLManagedTensor;
  const head = layoutOf(description).size;
  const { ndim } = view.layout;
  const data = view.ptr; // before anything is allocated: a closed buffer has none to give
  const block = allocate(head + counterBytes + 2 * 8 * ndim);
  const memory = ffiPort().memory(block, head + counterBytes + 2 * 8 * ndim);
  const counter = block + BigInt(head);
  const { address } = releaseThunks();
  if (versioned) {
    const managed = struct(DLManagedTensorVersioned).over(memory, block);
    managed.version.major = DLPACK_MAJOR_VERSION;
    managed.version.minor = DLPACK_MINOR_VERSION;
    managed.flags = flags |
      (view.dtype.dlpack.padded ? DLPACK_FLAG_BITMASK.IS_SUBBYTE_TYPE_PADDED : 0n);
    managed.manager_ctx = counter;
    managed.deleter = address.DLManagedTensorVersioned;
    writeTensor(managed.dl_tensor, view, data, memory, counter);
  } else {
    const managed = struct(DLManagedTensor).over(memory, block);
    managed.manager_ctx = counter;
    managed.deleter = address.DLManagedTensor;
    writeTensor(managed.dl_tensor, view, data, memory, counter);
  }
  const holder = new Export(block, new DataView(memory, head, counterBytes), view.buffer);
  return new DlpackTensor(block, versioned ? [DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION] : null, holder);
}

function writeTensor(
  tensor: StructView<typeof DLTensor>,
  view: StridedMemoryView,
  data: bigint,
  memory: ArrayBuffer,
  counter: bigint,
): void {
  const { dtype, shape, strides } = view;
  const { ndim } = view.layout;
  const shapeAt = counter + BigInt(counterBytes);
  const numbers = new DataView(memory, memory.byteLength - 2 * 8 * ndim);
  for (let axis = 0; axis < ndim; axis++) {
    numbers.setBigInt64(axis * 8, BigInt(shape[axis] ?? 0), true);
    numbers.setBigInt64((ndim + axis) * 8, BigInt(strides[axis] ?? 0), true);
  }
  const [type, id] = dlpackDevice(view);
  tensor.data = data;
  tensor.device.device_type = type;
  tensor.device.device_id = id;
  tensor.ndim = ndim;
  tensor.dtype.code = dtype.dlpack.code;
  tensor.dtype.bits = dtype.dlpack.bits;
  tensor.dtype.lanes = dtype.dlpack.lanes;
  // Always explicit strides: NULL has been illegal since DLPack 1.2. A scalar has neither shape nor strides.
  tensor.shape = ndim === 0 ? 0n : shapeAt;
  tensor.strides = ndim === 0 ? 0n : shapeAt + BigInt(8 * ndim);
  tensor.byte_offset = 0n;
}
