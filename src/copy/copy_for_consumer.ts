/**
 * Fresh copies for a consumer: in C order, where it needs them, and in memory that outlives the Worker that made them.
 *
 * @module
 */
import type { CudaStream } from "../device/mod.ts";
import { StridedLayout } from "../layout/mod.ts";
import { HostMemoryResource, type MemoryResource, PinnedMemoryResource } from "../memory/mod.ts";
import { canReach, hostWaitsForCopy } from "../order/mod.ts";
import { type ArrayParts, byteCount } from "./array_parts.ts";
import { copyElements } from "./copy.ts";

// law copy/withLastingCopies: order/worker_end
/**
 * Calls a function with copies of arrays whose memory ends with this Worker: an export, which pins the copies for as
 * long as consumers need them, even after the Worker has ended.
 *
 * @param use receives a function that maps an array to its read-only copy, and any other array to itself
 */
export function withLastingCopies<T>(
  arrays: readonly ArrayParts[],
  use: (lasting: (array: ArrayParts) => ArrayParts) => T,
): T {
  const copies = new Map<ArrayParts, ArrayParts>();
  try {
    for (const array of arrays) copies.set(array, { ...copyToHost(array), readonly: true });
    return use((array) => copies.get(array) ?? array);
  } finally {
    for (const { buffer } of copies.values()) buffer.close();
  }
}

// law copy/copyToHost: dlpack/copy_for_consumer
/**
 * A copy in host memory, complete on return.
 *
 * @returns parts with their own buffer, which the caller closes
 */
export function copyToHost(array: ArrayParts): ArrayParts {
  const { device, stream } = array.buffer;
  const order = device === null ? null : stream ?? device.defaultStream;
  const copied = copyInto(array, new HostMemoryResource(), order);
  hostWaitsForCopy(order); // a consumer on the host has no stream that could wait
  return copied;
}

// law copy/copyToDevice: dlpack/copy_for_consumer
/**
 * A copy in memory of a stream's device, ready for the stream's next work.
 *
 * @param home the stream, which becomes the home of the copy
 * @returns parts with their own buffer, which the caller closes
 */
export function copyToDevice(array: ArrayParts, home: CudaStream): ArrayParts {
  const { device, stream } = array.buffer;
  if (device !== null && device !== home.device && !canReach(home.device, array.buffer, device)) {
    // Neither device can copy alone: the copy goes through the host, which waits for neither.
    const staged = copyInto(array, new PinnedMemoryResource(device), stream ?? device.defaultStream);
    using _memory = staged.buffer; // its free waits for the second copy
    return copyInto(staged, home.device.memory, home);
  }
  const copied = copyInto(array, home.device.memory, home);
  if (device === null) hostWaitsForCopy(home); // host memory may change as soon as this returns
  return copied;
}

/** A copy in memory of a resource, made on a stream, which becomes its home stream if it can have one. */
function copyInto(array: ArrayParts, resource: MemoryResource, stream: CudaStream | null): ArrayParts {
  void array.buffer.ptr; // a closed buffer must fail before anything is allocated
  const { dtype } = array;
  const options = stream === null ? {} : { stream };
  const buffer = resource.allocate(byteCount(array), options);
  try {
    const layout = StridedLayout.dense(array.layout.shape, dtype.itemsize);
    const copied = { buffer, offset: 0, layout, dtype, readonly: false };
    copyElements(array, copied, options);
    return copied;
  } catch (error) {
    buffer.close();
    throw error;
  }
}
