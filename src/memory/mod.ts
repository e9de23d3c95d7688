/**
 * Ownership of bytes: buffers, the resources that allocate them, pools and peer access. `sharing/` hands memory to
 * other processes.
 *
 * The room knows devices and the order of their work, and no layout: the contents of a buffer are known above. A
 * `MemoryResource` allocates; the `MemoryBuffer` it returns has one owner, which closes it, and a home stream on which
 * it is freed. Other users of the memory pin it. Foreign memory is a buffer, too (`fromForeign`, `fromPointer`): its
 * importer defines what frees it. Bytes are copied in runs (`copyRun`), between host and device through staging where
 * that is faster; `copy/` is built on that.
 *
 * @module
 */
export type { Allocation } from "./allocation.ts";
export type { BufferDescriptor } from "./buffer_descriptor.ts";
export { type Access, accessesBetween, planAccess, takeAccess } from "./copy_access.ts";
export { DeviceMemoryResource } from "./device_memory_resource.ts";
export {
  DriverMemoryResource,
  isOutOfMemory,
  ManagedMemoryResource,
  PinnedMemoryResource,
  SynchronousMemoryResource,
} from "./driver_memory_resource.ts";
export { addressWithin, type FromPointerOptions, noAddress } from "./foreign_memory.ts";
export { fitsArray, lenderOfBytes, partOf, placeOf } from "./host_bytes.ts";
export { type HostMemoryOptions, HostMemoryResource } from "./host_memory_resource.ts";
export type { ImportBufferOptions } from "./import_buffer.ts";
export { exactPtrOf, MemoryBuffer } from "./memory_buffer.ts";
export { MemoryPool, type MemoryPoolOptions, type MemoryPoolUse } from "./memory_pool.ts";
export { allocateFrom, type AllocateOptions, checkSize, MemoryResource } from "./memory_resource.ts";
export { type DeviceLike, PeerAccessSet } from "./peer_access.ts";
export type { Shareable, SharedResource } from "./sharing/channel_message.ts";
export { MemoryChannel, type ReceiveValueOptions } from "./sharing/memory_channel.ts";
export { copyRun, copyStaged, type Run, stagingOf } from "./staging.ts";
export type { StagingPlan } from "./staging_plan.ts";
export type { CopyOptions, FillOptions } from "./transfer.ts";
