/**
 * Buffers of all kinds, and a way to fill and to read them that does not use layouts.
 *
 * @module
 */
import {
  type Cuda,
  type CudaDevice,
  DeviceMemoryResource,
  HostMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
} from "../../mod.ts";

/** Where memory is. */
export type Where = "device" | "pinned" | "host";

/** Memory of the first device and of the host. */
export interface Room {
  readonly device: CudaDevice;
  /** A new buffer with these bytes. */
  allocate(where: Where, bytes: Uint8Array): MemoryBuffer;
  /** The bytes of a buffer. */
  read(buffer: MemoryBuffer): Uint8Array;
}

/** The memory of the first device and of the host. */
export function room(cuda: Cuda): Room {
  const device = cuda.device(0);
  const home = device.createStream();
  const pinned = new PinnedMemoryResource(device);
  const resources = { device: new DeviceMemoryResource(device), pinned, host: new HostMemoryResource() };
  return {
    device,
    allocate(where, bytes) {
      const buffer = resources[where].allocate(bytes.length, { stream: home });
      using staging = pinned.allocate(bytes.length);
      staging.bytes().set(bytes);
      buffer.copyFrom(staging, { stream: home });
      home.synchronize();
      return buffer;
    },
    read(buffer) {
      using staging = pinned.allocate(buffer.size);
      staging.copyFrom(buffer, { stream: home });
      home.synchronize();
      return staging.bytes().slice();
    },
  };
}

/** The bytes of a buffer, after the work enqueued on its home stream. */
export function readBuffer(buffer: MemoryBuffer, cuda: Cuda): Uint8Array {
  const device = cuda.device(buffer.device?.ordinal ?? 0);
  using stream = device.createStream();
  using sink = new HostMemoryResource().allocate(buffer.size);
  if (buffer.stream !== null) stream.wait(buffer.stream);
  buffer.copyTo(sink, { stream });
  stream.synchronize();
  return sink.bytes().slice();
}
