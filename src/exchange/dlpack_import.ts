/**
 * DLPack, inwards: a tensor of any library as a view.
 *
 * @module
 */
import {
  DLDeviceType,
  DLManagedTensor,
  DLManagedTensorVersioned,
  DLPACK_FLAG_BITMASK,
  DLPACK_MAJOR_VERSION,
  DLPACK_MINOR_VERSION,
  type DLTensor,
} from "../../bindings/dlpack.ts";
import type { CudaDevice } from "../cuda/device.ts";
import { ffiPort } from "../ffi/port.ts";
import { struct, type StructView } from "../ffi/struct.ts";
import { DType, MAX_NDIM, StridedLayout } from "../layout/mod.ts";
import { type Allocation, MemoryBuffer } from "../memory/memory_buffer.ts";
import { StridedMemoryView } from "../view/strided_memory_view.ts";
import {
  callDeleter,
  type DlpackSource,
  DlpackTensor,
  type ImportOptions,
  isDlpackSource,
  type ToDlpackOptions,
} from "./dlpack.ts";
import { ExchangeError } from "./error.ts";
import { extentOf } from "./extent.ts";

/**
 * Takes a tensor over.
 *
 * @param source a tensor, or an object with `__dlpack__()`
 * @throws {ExchangeError} if it cannot be honoured; a tensor passed in is then still the caller's
 */
export function fromDlpack(source: unknown, options: ImportOptions = {}): StridedMemoryView {
  if (source instanceof DlpackTensor) return take(source, options);
  if (!isDlpackSource(source)) {
    throw new ExchangeError("Cannot import by DLPack: expected an object with a method __dlpack__()");
  }
  const maxVersion = [DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION] as const;
  const tensor: unknown = source.__dlpack__({ maxVersion, ...streamFor(source, options) });
  if (!(tensor instanceof DlpackTensor)) {
    throw new ExchangeError("Cannot import by DLPack: __dlpack__() did not return a DlpackTensor");
  }
  try {
    return take(tensor, options);
  } catch (error) {
    tensor.close(); // made for this import alone
    throw error;
  }
}

/** The stream to name to a producer: none for memory of the host, which it would have to refuse. */
function streamFor(source: DlpackSource, { stream }: ImportOptions): ToDlpackOptions {
  const [type] = source.__dlpack_device__?.() ?? [];
  const isOnHost = type === DLDeviceType.kDLCPU || type === DLDeviceType.kDLCUDAHost;
  return isOnHost || stream === undefined ? {} : { stream };
}

function take(tensor: DlpackTensor, options: ImportOptions): StridedMemoryView {
  if (tensor.ptr === 0n) throw new ExchangeError("Cannot import a DLPack tensor: its address is NULL");
  const versioned = tensor.version !== null;
  const { dl_tensor, flags } = versioned ? readVersioned(tensor.ptr) : readLegacy(tensor.ptr);
  const dtype = readDtype(dl_tensor, flags);
  const device = readDevice(dl_tensor, options);
  const layout = readLayout(dl_tensor, dtype);
  const data = dl_tensor.data === 0n ? 0n : dl_tensor.data + dl_tensor.byte_offset;
  const { ptr, size, offset } = extentOf(layout, data, "a DLPack tensor");
  const buffer = MemoryBuffer.fromAllocation({
    ptr,
    size,
    device,
    stream: device === null ? null : options.stream ?? null,
    owner: tensor,
    free: giveBack(tensor.take(), versioned),
  });
  return StridedMemoryView.fromImport({
    buffer,
    offset,
    layout,
    dtype,
    readonly: (flags & DLPACK_FLAG_BITMASK.READ_ONLY) !== 0n,
    onClose: () => buffer.close(),
  });
}

/** What frees an import. A function of its own, so that it shares no scope with the buffer, which it must not keep alive. */
function giveBack(tensor: bigint, versioned: boolean): Allocation["free"] {
  return (_, stream) => {
    stream?.synchronize(); // a deleter may free at once: what was enqueued here must be done
    callDeleter(tensor, versioned);
  };
}

interface Read {
  readonly dl_tensor: StructView<typeof DLTensor>;
  readonly flags: bigint;
}

function readVersioned(ptr: bigint): Read {
  const { version, flags, dl_tensor } = struct(DLManagedTensorVersioned).at(ptr);
  if (version.major !== DLPACK_MAJOR_VERSION) {
    throw new ExchangeError(
      `Cannot import a tensor of DLPack ${version.major}.${version.minor}: expected ${DLPACK_MAJOR_VERSION}.x`,
    );
  }
  return { dl_tensor, flags };
}

function readLegacy(ptr: bigint): Read {
  return { dl_tensor: struct(DLManagedTensor).at(ptr).dl_tensor, flags: 0n };
}

function readDtype({ dtype: { code, bits, lanes } }: StructView<typeof DLTensor>, flags: bigint): DType {
  const padded = (flags & DLPACK_FLAG_BITMASK.IS_SUBBYTE_TYPE_PADDED) !== 0n;
  try {
    return DType.from({ code, bits, lanes, padded });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ExchangeError(`Cannot import a DLPack tensor: ${why}`, { cause: error });
  }
}

function readLayout(tensor: StructView<typeof DLTensor>, dtype: DType): StridedLayout {
  const { ndim } = tensor;
  if (ndim < 0 || ndim > MAX_NDIM) {
    throw new ExchangeError(`Cannot import a DLPack tensor of ${ndim} dimensions: expected 0 to ${MAX_NDIM}`);
  }
  if (ndim > 0 && tensor.shape === 0n) {
    throw new ExchangeError(`Cannot import a DLPack tensor of ${ndim} dimensions: its shape pointer is NULL`);
  }
  const shape = readNumbers(tensor.shape, ndim, "extent");
  const strides = ndim > 0 && tensor.strides === 0n ? null : readNumbers(tensor.strides, ndim, "stride");
  try {
    return new StridedLayout(shape, strides, dtype.itemsize);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ExchangeError(`Cannot import a DLPack tensor: ${why}`, { cause: error });
  }
}

function readNumbers(address: bigint, count: number, what: string): number[] {
  if (count === 0) return [];
  const values = new DataView(ffiPort().memory(address, count * 8));
  return Array.from({ length: count }, (_, i) => {
    const value = Number(values.getBigInt64(i * 8, true));
    if (Number.isSafeInteger(value)) return value;
    throw new ExchangeError(`Cannot import a DLPack tensor: its ${what} ${i} is ${value}, beyond 2^53`);
  });
}

function readDevice(tensor: StructView<typeof DLTensor>, options: ImportOptions): CudaDevice | null {
  const { device_type, device_id } = tensor.device;
  switch (device_type) {
    case DLDeviceType.kDLCPU:
    case DLDeviceType.kDLCUDAHost:
      return null;
    case DLDeviceType.kDLCUDA:
    case DLDeviceType.kDLCUDAManaged: {
      const device = options.stream?.device ?? options.device;
      if (device === undefined) {
        throw new ExchangeError(
          `Cannot import memory of CUDA device ${device_id}: pass { stream } to say where it will be used, or { device }`,
        );
      }
      if (device.ordinal !== device_id) {
        throw new ExchangeError(`Cannot import memory of CUDA device ${device_id} for device ${device.ordinal}`);
      }
      return device;
    }
    default:
      throw new ExchangeError(
        `Cannot import memory of DLPack device type ${device_type}: expected CPU (1) or CUDA (2)`,
      );
  }
}
