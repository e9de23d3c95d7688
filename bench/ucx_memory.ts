/**
 * Memory that the processes of bench/ucx.ts send from and receive into.
 *
 * @module
 */
import {
  Cuda,
  ManagedMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
  SynchronousMemoryResource,
} from "../mod.ts";
import type { Job } from "./ucx_peer.ts";

/** Allocates memory of the measured kind, on the first GPU. */
export function allocator({ memory, bytes }: Pick<Job, "memory" | "bytes">): () => Uint8Array | MemoryBuffer {
  if (memory === "host") return () => new Uint8Array(bytes).fill(1);
  const device = Cuda.open().device(0);
  const stream = device.createStream();
  const resource = {
    pinned: () => new PinnedMemoryResource(device),
    managed: () => new ManagedMemoryResource(device),
    pool: () => device.memory,
    device: () => new SynchronousMemoryResource(device),
  }[memory]();
  return () => {
    const buffer = resource.allocate(bytes, { stream });
    buffer.fill(1, { stream });
    stream.synchronize();
    return buffer;
  };
}
