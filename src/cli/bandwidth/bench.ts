/**
 * What bandwidths are measured with: on each device two streams and two buffers; on the host two pairs of buffers.
 *
 * @module
 */
import type { Cuda } from "../../cuda/mod.ts";
import type { CudaDevice, CudaStream } from "../../device/mod.ts";
import {
  DeviceMemoryResource,
  HostMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
  SynchronousMemoryResource,
} from "../../memory/mod.ts";
import { StridedMemoryView } from "../../view/mod.ts";
import { showBytes } from "../../layout/mod.ts";
import { CannotError } from "../open_cuda.ts";
import { copyByKernel, loadCopyKernel } from "./copy_kernel.ts";

/** Memory to copy from, and memory to copy to. */
export interface Place {
  readonly source: MemoryBuffer;
  readonly destination: MemoryBuffer;
  /** The byte that fills the source. */
  readonly mark: number;
}

/** A device with its place. */
export interface Seat extends Place {
  readonly device: CudaDevice;
  /** For the measured copies. */
  readonly stream: CudaStream;
  /** For simultaneous copies. */
  readonly second: CudaStream;
  /** Enqueues a copy by the device's multiprocessors. */
  copyByKernel(stream: CudaStream, to: MemoryBuffer, from: MemoryBuffer): void;
  /** Whether kernels of this device can access the memory of another seat. */
  reaches(other: Seat): boolean;
}

/** All places of the machine. */
export class Bench implements Disposable {
  /** Bytes of every buffer. */
  readonly size: number;
  readonly seats: readonly Seat[];
  /** Page-locked memory of the host. */
  readonly pinned: Place;
  /** Ordinary memory of the host. */
  readonly pageable: Place;
  readonly #stack: DisposableStack;

  /**
   * Allocates two buffers of this size on each device, and four on the host.
   *
   * @throws {CannotError} if a device has too little free memory
   */
  constructor(cuda: Cuda, size: number) {
    using stack = new DisposableStack();
    this.size = size;
    const [first] = cuda.devices;
    if (first === undefined) throw new CannotError("The driver reports no device.");
    for (const device of cuda.devices) {
      const { free } = device.memoryInfo();
      if (free < 2 * size) {
        throw new CannotError(
          `Device ${device.ordinal} has ${showBytes(free)} free: two buffers of ${showBytes(size)} do not fit. ` +
            "Measure with a smaller --size.",
        );
      }
    }
    this.seats = cuda.devices.map((device) => takeSeat(device, size, stack));
    this.pinned = placeOf(new PinnedMemoryResource(first), size, 0xd1, stack);
    this.pageable = placeOf(new HostMemoryResource(), size, 0xd2, stack);
    for (const { device } of this.seats) device.synchronize();
    this.#stack = stack.move();
  }

  /** Frees all memory. */
  [Symbol.dispose](): void {
    this.#stack.dispose();
  }
}

function takeSeat(device: CudaDevice, size: number, stack: DisposableStack): Seat {
  const stream = stack.use(device.createStream());
  const second = stack.use(device.createStream());
  const hasPools = hasPoolsOf(device);
  const peers = device.siblings.filter((one) => one !== device && hasPools && one.canAccessPeer(device));
  let resource: DeviceMemoryResource | SynchronousMemoryResource;
  if (hasPools) {
    resource = stack.use(new DeviceMemoryResource(device, {}));
    resource.peerAccessibleBy = peers;
  } else {
    resource = new SynchronousMemoryResource(device);
  }
  const mark = 0x10 + device.ordinal;
  const source = stack.use(resource.allocate(size, { stream }));
  const destination = stack.use(resource.allocate(size, { stream }));
  source.fill(mark, { stream });
  destination.fill(0, { stream });
  let program: ReturnType<typeof loadCopyKernel> | undefined;
  stack.defer(() => program?.close());
  return {
    device,
    stream,
    second,
    source,
    destination,
    mark,
    copyByKernel: (on, to, from) => {
      program ??= loadCopyKernel(device);
      copyByKernel(program.kernel, on, to, from);
    },
    // The other pool grants access: memory without a pool is accessible only to its own device.
    reaches: (other) => other.device !== device && device.canAccessPeer(other.device) && hasPoolsOf(other.device),
  };
}

function hasPoolsOf(device: CudaDevice): boolean {
  return device.attribute("MEMORY_POOLS_SUPPORTED") !== 0;
}

function placeOf(
  resource: PinnedMemoryResource | HostMemoryResource,
  size: number,
  mark: number,
  stack: DisposableStack,
): Place {
  const source = stack.use(resource.allocate(size));
  const destination = stack.use(resource.allocate(size));
  source.fill(mark); // also faults the pages in
  destination.fill(0);
  return { source, destination, mark };
}

/** Whether a buffer is full of a byte, judged by its beginning, middle and end. All work on it must have completed. */
export async function isFullOf(mark: number, buffer: MemoryBuffer): Promise<boolean> {
  const some = Math.min(64, buffer.size);
  for (const offset of [0, Math.floor((buffer.size - some) / 2), buffer.size - some]) {
    const part = StridedMemoryView.fromBuffer(buffer, { shape: [some], dtype: "uint8", offset });
    const bytes = await part.toTypedArray();
    if (!Array.from(bytes, Number).every((byte) => byte === mark)) return false;
  }
  return true;
}
