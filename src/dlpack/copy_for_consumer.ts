/**
 * DLPack's copies: an array made anew for its consumer, on the device where it wants it.
 *
 * @module
 */
import { DLDeviceType } from "../../bindings/dlpack.ts";
import type { CudaDevice } from "../device/device.ts";
import { CudaStream } from "../device/stream.ts";
import { PinnedMemoryResource } from "../memory/driver_memory_resource.ts";
import { canReach } from "../order/can_reach.ts";
import { HostMemoryResource } from "../memory/host_memory_resource.ts";
import type { MemoryResource } from "../memory/memory_resource.ts";
import { StridedMemoryView } from "../view/strided_memory_view.ts";
import { dlpackDevice, type ToDlpackOptions } from "./tensor.ts";
import { ExchangeError } from "../order/exchange_error.ts";

/** Whether a consumer wants an array elsewhere than it is. */
export function isElsewhere(view: StridedMemoryView, wanted: ToDlpackOptions["dlDevice"]): boolean {
  if (wanted === undefined || wanted === null) return false;
  const [type, id] = dlpackDevice(view);
  return wanted[0] !== type || wanted[1] !== id;
}

/**
 * A copy in C order. On a device it is ready for what its home stream does next; on the host it is there on return.
 *
 * @returns a view of a buffer of its own, which the caller closes
 * @throws {ExchangeError} for a device that cannot be reached
 */
export function copyForConsumer(view: StridedMemoryView, { dlDevice, stream }: ToDlpackOptions): StridedMemoryView {
  const [type, id] = dlDevice ?? dlpackDevice(view);
  if (type === DLDeviceType.kDLCPU && id === 0) return copyToHost(view);
  if (type === DLDeviceType.kDLCUDA) return copyToDevice(view, homeOn(deviceOf(view, id, stream), view, stream));
  throw new ExchangeError(
    `Cannot export to device ${id} of DLPack type ${type}: expected the host (1, 0) or a CUDA device (2, n)`,
  );
}

/**
 * Does something with copies of views whose memory ends with this Worker: an export, which pins the copies for as long as
 * consumers want them, wherever the Worker is then.
 *
 * @param use is given what stands for a view: its copy, read-only, or any other view itself
 */
export function withLastingCopies<T>(
  views: readonly StridedMemoryView[],
  use: (lasting: (view: StridedMemoryView) => StridedMemoryView) => T,
): T {
  const copies = new Map<StridedMemoryView, StridedMemoryView>();
  try {
    for (const view of views) {
      const { buffer, shape, dtype } = copyToHost(view);
      copies.set(view, StridedMemoryView.fromBuffer(buffer, { shape, dtype, readonly: true }));
    }
    return use((view) => copies.get(view) ?? view);
  } finally {
    for (const { buffer } of copies.values()) buffer.close();
  }
}

function copyToHost(view: StridedMemoryView): StridedMemoryView {
  const { device } = view;
  const order = device === null ? null : view.stream ?? device.defaultStream;
  const copied = copyInto(view, new HostMemoryResource(), order);
  order?.synchronize(); // a consumer on the host has no stream that could wait
  return copied;
}

function copyToDevice(view: StridedMemoryView, home: CudaStream): StridedMemoryView {
  const { device } = view;
  if (device !== null && device !== home.device && !canReach(home.device, view.buffer, device)) {
    // Neither device can do it alone: by way of the host, which waits for neither.
    const staged = copyInto(view, new PinnedMemoryResource(device), view.stream ?? device.defaultStream);
    using _memory = staged.buffer; // its free waits for the second copy
    return copyInto(staged, home.device.memory, home);
  }
  const copied = copyInto(view, home.device.memory, home);
  if (device === null) home.synchronize(); // what is on the host may change as soon as this returns
  return copied;
}

/** A copy in memory of a resource, made on a stream, which is its home if it can have one. */
function copyInto(view: StridedMemoryView, resource: MemoryResource, stream: CudaStream | null): StridedMemoryView {
  void view.ptr; // before anything is allocated: a closed buffer has no bytes to give
  const options = stream === null ? {} : { stream };
  const buffer = resource.allocate(view.nbytes, options);
  try {
    const copied = StridedMemoryView.fromBuffer(buffer, { shape: view.shape, dtype: view.dtype });
    copied.copyFrom(view, options);
    return copied;
  } catch (error) {
    buffer.close();
    throw error;
  }
}

function deviceOf({ device }: StridedMemoryView, id: number, stream: ToDlpackOptions["stream"]): CudaDevice {
  const known = device ?? (stream instanceof CudaStream ? stream.device : null);
  if (known === null) {
    throw new ExchangeError(
      `Cannot export host memory to CUDA device ${id}: pass a CudaStream of that device as stream, or copy it there first`,
    );
  }
  const found = known.ordinal === id ? known : known.siblings[id];
  if (found !== undefined) return found;
  throw new ExchangeError(`Cannot export to CUDA device ${id}: expected 0 to ${known.siblings.length - 1}`);
}

/** A stream of ours, which lives as long as the copy: a consumer may destroy its own at any time. */
function homeOn(device: CudaDevice, view: StridedMemoryView, stream: ToDlpackOptions["stream"]): CudaStream {
  if (view.stream?.device === device) return view.stream;
  return stream instanceof CudaStream && stream.device === device ? stream : device.defaultStream;
}
