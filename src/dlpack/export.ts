/**
 * DLPack, outwards: a view as a tensor that any library can take over.
 *
 * @module
 */
import { CU_STREAM_LEGACY } from "../../bindings/cuda_types.ts";
import { DLPACK_FLAG_BITMASK, DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION } from "../../bindings/dlpack.ts";
import { CudaStream } from "../device/stream.ts";
import { checkOptions, none } from "../layout/options.ts";
import type { MemoryBuffer } from "../memory/memory_buffer.ts";
import type { StridedMemoryView } from "../view/strided_memory_view.ts";
import { dlpackDevice, DlpackTensor, type ReleaseState, toDlpackOptionNames, type ToDlpackOptions } from "./tensor.ts";
import { copyForConsumer, isElsewhere } from "./copy_for_consumer.ts";
import { ExportedStruct, type TensorContent } from "./struct.ts";
import { ExchangeError } from "../order/exchange_error.ts";
import { addExport, type ExportEntry, pollExport, pollIfMany } from "../order/exports.ts";
import { consumerStream, consumerWaits, hostWaitsToRead, type ReleaseOrder } from "../order/order.ts";

/** A tensor that is out. */
class Export implements ReleaseState, ExportEntry {
  index = -1;
  readonly #buffer: MemoryBuffer;
  readonly #tensor: ExportedStruct;

  constructor(buffer: MemoryBuffer, content: TensorContent) {
    this.#buffer = buffer;
    this.#tensor = new ExportedStruct(content);
    buffer.pin();
    addExport(this);
  }

  /** Address of the struct. */
  get address(): bigint {
    return this.#tensor.address;
  }

  isReleased(): boolean {
    return pollExport(this);
  }

  isReleasedByConsumer(): boolean {
    return this.#tensor.isReleased;
  }

  order(order: ReleaseOrder): boolean {
    return order.add(this.#buffer);
  }

  finish(): void {
    this.#tensor.free();
    this.#buffer.unpin();
  }
}

/**
 * Exports a view.
 *
 * @throws {ExchangeError} if the old struct is wanted, which cannot say that a view is read-only or its elements padded, if
 *   host memory is to be ordered on a stream, or a copy to another device is needed and not allowed
 * @throws {TypeError} if the view's buffer is closed, or `stream` is no stream
 */
export function toDlpack(view: StridedMemoryView, options: ToDlpackOptions = none): DlpackTensor {
  checkWishes(options);
  const maxVersion = options.maxVersion ?? newest;
  const copy = options.copy ?? null;
  const versioned = maxVersion[0] >= 1;
  if (!versioned && view.dtype.dlpack.padded) {
    throw new ExchangeError(
      `Cannot export ${view.dtype.name} to a consumer of DLPack 0.x: the old struct cannot say that each element has a ` +
        "byte of its own. Export the bytes as uint8, or let the consumer pass a version of at least [1, 0].",
    );
  }
  checkStream(view, options);
  const mustMove = isElsewhere(view, options.dlDevice);
  if (mustMove && copy === false) {
    const [here, there] = [dlpackDevice(view), options.dlDevice].map((device) => `(${device?.join(", ")})`);
    throw new ExchangeError(
      `Cannot export from device ${here} to device ${there} without a copy: let the consumer allow it`,
    );
  }
  pollIfMany();
  if (view.device === null && options.stream === undefined) hostWaitsToRead(view, "toDlpack()");
  const mustOutlive = view.buffer.endsWithWorker;
  if (mustOutlive && copy === false) {
    throw new ExchangeError(
      "Cannot export the memory of a typed array from a Worker without a copy: it ends with the Worker. Let the consumer " +
        "allow a copy, or allocate with HostMemoryResource.",
    );
  }
  if (mustMove || mustOutlive || copy === true) return exportCopy(view, versioned, options);
  if (view.readonly && !versioned) {
    throw new ExchangeError(
      "Cannot export a read-only view to a consumer of DLPack 0.x: the old struct cannot say that it is read-only. " +
        "Ask for a copy, or let the consumer pass a version of at least [1, 0].",
    );
  }
  orderForConsumer(view, options.stream);
  return exportTensor(view, versioned, view.readonly ? flag.readOnly : 0);
}

const newest: readonly [major: number, minor: number] = [DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION];

function isPair(value: readonly number[]): boolean {
  return Array.isArray(value) && value.length === 2 && Number.isInteger(value[0]) && Number.isInteger(value[1]);
}

/** What consumers of other languages, and programs without types, pass by mistake. */
function checkWishes(options: ToDlpackOptions): void {
  checkOptions(options, toDlpackOptionNames);
  const { maxVersion, copy, dlDevice } = options;
  if (maxVersion !== undefined && maxVersion !== null && !isPair(maxVersion)) {
    throw new TypeError(`Cannot export for version ${String(maxVersion)} of DLPack: expected [major, minor]`);
  }
  if (copy !== undefined && copy !== null && typeof copy !== "boolean") {
    throw new TypeError(`Cannot export with copy: ${String(copy)}: expected true, false or null`);
  }
  if (dlDevice !== undefined && dlDevice !== null && !isPair(dlDevice)) {
    throw new TypeError(`Cannot export to device ${String(dlDevice)}: expected [type, number], as [1, 0] for the host`);
  }
}

/** The flags as numbers: calculating with bigints takes time. */
const flag = {
  readOnly: Number(DLPACK_FLAG_BITMASK.READ_ONLY),
  isCopied: Number(DLPACK_FLAG_BITMASK.IS_COPIED),
  isPadded: Number(DLPACK_FLAG_BITMASK.IS_SUBBYTE_TYPE_PADDED),
};

/** Exports a copy that belongs to the consumer alone. */
function exportCopy(view: StridedMemoryView, versioned: boolean, options: ToDlpackOptions): DlpackTensor {
  const copied = copyForConsumer(view, options);
  try {
    if (copied.device !== null) orderForConsumer(copied, options.stream);
    return exportTensor(copied, versioned, flag.isCopied);
  } finally {
    copied.buffer.close(); // the export has pinned it
  }
}

function orderForConsumer(view: StridedMemoryView, stream: ToDlpackOptions["stream"]): void {
  const { device } = view;
  if (device === null || stream === null || stream === -1n) return;
  consumerWaits(view.buffer, consumerStream(device, stream ?? CU_STREAM_LEGACY));
}

/** Host memory that stays on the host has no stream; with a device any goes but 0. */
function checkStream(view: StridedMemoryView, { stream, dlDevice }: ToDlpackOptions): void {
  if (stream === undefined || stream === null || stream === -1n) return;
  if (typeof stream !== "bigint" && !(stream instanceof CudaStream)) {
    throw new TypeError(
      `Cannot order a consumer on the stream ${String(stream)}: expected a CudaStream, its handle as a bigint, or null`,
    );
  }
  if (view.device === null && !isElsewhere(view, dlDevice)) {
    throw new ExchangeError("Cannot order host memory on a stream: pass no stream for a view of host memory");
  }
  if (stream === 0n) throw new ExchangeError("Cannot use stream 0: DLPack forbids it. Pass 1n for the default stream.");
}

function exportTensor(view: StridedMemoryView, isVersioned: boolean, flags: number): DlpackTensor {
  const { dtype, shape, strides, ptr: data } = view;
  const padded = dtype.dlpack.padded ? flag.isPadded : 0;
  const holder = new Export(view.buffer, {
    isVersioned,
    flags: flags | padded,
    data,
    device: dlpackDevice(view),
    dtype: dtype.dlpack,
    shape,
    strides,
  });
  return new DlpackTensor(holder.address, isVersioned ? [DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION] : null, holder);
}
