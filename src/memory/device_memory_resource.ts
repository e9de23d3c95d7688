/**
 * Device memory from a pool, allocated and freed in stream order.
 *
 * @module
 */
import { CUresult } from "../../bindings/cuda_types.ts";
import {
  captureOf,
  checkSameDevice,
  checkStream,
  type CudaDevice,
  type CudaStream,
  expectDevice,
  relax,
  restore,
} from "../device/mod.ts";
import { checkCuda, checkRelease, CudaError, NEEDS_CONTEXT } from "../driver/mod.ts";
import type { FileDescriptor } from "../unix/mod.ts";
import { checkOptions, none, showAs } from "../layout/mod.ts";
import { reclaim, waitIfElsewhere, whenUnblocked } from "../order/mod.ts";
import { type BufferDescriptor, describerOf } from "./buffer_descriptor.ts";
import { MemoryBuffer } from "./memory_buffer.ts";
import { checkPoolOptions, describePool, MemoryPool, type MemoryPoolOptions } from "./memory_pool.ts";
import { allocateOptionNames, type AllocateOptions, checkSize, MemoryResource, named } from "./memory_resource.ts";
import { type DeviceLike, PeerAccessSet } from "./peer_access.ts";
import { importBufferOptionNames, type ImportBufferOptions, importPoolMemory } from "./import_buffer.ts";

/**
 * Allocates from a memory pool of a device, in stream order: work enqueued after the allocation may use the memory, and
 * it is freed after the work that was enqueued before the buffer was closed. The host waits only when memory of a pool
 * of its own is freed on a foreign stream of another context than the device's primary one.
 *
 * @example
 * ```ts ignore
 * using cuda = Cuda.open();
 * const pool = new DeviceMemoryResource(cuda.device(0), { maxSize: 2 ** 30 });
 * pool.peerAccessibleBy = cuda.devices; // every other GPU may use it
 * using buffer = pool.allocate(4096, { stream });
 * ```
 */
export class DeviceMemoryResource extends MemoryResource {
  /** Whether kernels can use the memory. */
  override readonly isDeviceAccessible: boolean = true;
  /** Whether the host can use the memory. */
  override readonly isHostAccessible: boolean = false;
  /** The device. */
  readonly device: CudaDevice;
  /** The pool. */
  readonly pool: MemoryPool;
  readonly #peers: PeerAccessSet;
  readonly #describe: (ptr: bigint, size: number) => BufferDescriptor;
  /** The last size as the driver takes it: a loop mostly allocates the same size, and making a bigint takes time. */
  #size = 0n;
  #bytes = 0;

  // law memory/DeviceMemoryResource.constructor: memory/device_memory_resource, order/deferred_free,
  //   memory/memory_pool, memory/cuda_core_peer_access, memory/memory_programs, sim/behaviours, device/stream
  /**
   * A resource over a device's memory.
   *
   * @param options options of a new pool, or an existing pool; default: the device's current pool
   * @throws {CudaError} CUDA_ERROR_NOT_SUPPORTED if the device has no pools: use `SynchronousMemoryResource` there
   */
  constructor(device: CudaDevice, options?: MemoryPoolOptions | MemoryPool) {
    super();
    expectDevice(device, `Cannot make a ${new.target.name}`);
    if (options !== undefined && !(options instanceof MemoryPool)) checkPoolOptions(options);
    if (options instanceof MemoryPool) checkSameDevice(options, device, "Cannot allocate from a pool");
    this.device = device;
    if (device.attribute("MEMORY_POOLS_SUPPORTED") === 0) {
      const code = CUresult.CUDA_ERROR_NOT_SUPPORTED;
      const way = `${device} has no memory pools. Use SynchronousMemoryResource there.`;
      throw new CudaError("cuMemAllocAsync", code, "CUDA_ERROR_NOT_SUPPORTED", way);
    }
    if (options instanceof MemoryPool) this.pool = options;
    else this.pool = options === undefined ? MemoryPool.current(device) : MemoryPool.create(device, options);
    this.#peers = new PeerAccessSet(this.pool);
    this.#describe = describerOf(this.pool);
  }

  // law memory/DeviceMemoryResource.importPool: memory/sharing/pieces
  /**
   * Imports another process's pool from the result of `exportPool()` there, which a `UnixSocket`, for example, carries
   * over. Nothing can be allocated from it; its buffers are imported one by one. Peers to which the other process has
   * granted access have none here: grant it anew.
   *
   * @param device the device whose memory it is, whatever its ordinal here
   * @param descriptor remains owned by the caller, and may be closed afterwards
   * @throws {CudaError} if it is not a descriptor of a pool
   */
  static importPool(device: CudaDevice, descriptor: FileDescriptor): DeviceMemoryResource {
    const pool = MemoryPool.import(device, descriptor);
    try {
      return new DeviceMemoryResource(device, pool);
    } catch (error) {
      pool.close();
      throw error;
    }
  }

  /**
   * Makes a descriptor with which another process imports the pool. A process that holds it can use all memory of the
   * pool.
   *
   * @throws {TypeError} if the pool was not created with `shareable: true`
   */
  exportPool(): FileDescriptor {
    return this.pool.export();
  }

  /**
   * Imports a buffer of another process's pool from the result of `buffer.exportDescriptor()` there. Both processes
   * share the bytes. Closing the buffer ends the use here, in the order of its home stream, and frees nothing in the
   * other process, which must not free the memory earlier: see {@linkcode MemoryBuffer.exportDescriptor} for the order
   * between the two.
   *
   * @throws {TypeError} if this pool is not imported, or the descriptor is not one of a pool's memory
   * @throws {RangeError} if it is memory of another device
   * @throws {CudaError} CUDA_ERROR_INVALID_VALUE if the memory belongs to another pool, or is freed
   */
  importBuffer(descriptor: BufferDescriptor, options: ImportBufferOptions = {}): MemoryBuffer {
    checkOptions(options, importBufferOptionNames);
    if (!this.pool.isImported) {
      throw new TypeError("Cannot import a buffer into a pool of this process: use DeviceMemoryResource.importPool()");
    }
    reclaim();
    return importPoolMemory(this.pool, descriptor, options);
  }

  /** The devices besides its own that may use this memory: a live Set over the driver. */
  get peerAccessibleBy(): PeerAccessSet {
    return this.#peers;
  }

  // law memory/DeviceMemoryResource.peerAccessibleBy: memory/device_memory_resource, order/deferred_free,
  //   memory/memory_pool, memory/cuda_core_peer_access, memory/memory_programs, sim/behaviours, device/stream
  /** Replaces the devices that may use this memory, in at most one call to the driver. */
  set peerAccessibleBy(devices: Iterable<DeviceLike>) {
    this.#peers.replace(devices);
  }

  // law memory/device_memory_resource/DeviceMemoryResource.allocate: memory/device_memory_resource,
  //   order/deferred_free, memory/memory_pool, memory/cuda_core_peer_access, memory/memory_programs, sim/behaviours,
  //   device/stream, memory/collection
  /**
   * Allocates device memory in the order of a stream (by default the default stream), on which it is also freed.
   *
   * @throws {TypeError} on a stream that is being captured
   * @throws {CudaError} CUDA_ERROR_OUT_OF_MEMORY, with the size of the request, what the pool uses, its limit, and what
   *   the device has free
   */
  override allocate(bytes: number, options: AllocateOptions = none): MemoryBuffer {
    checkOptions(options, allocateOptionNames);
    checkSize(bytes);
    if (this.pool.isImported) {
      throw new TypeError(
        "Cannot allocate from the pool of another process: allocate there, and share the buffers",
      );
    }
    const { device, pool } = this;
    const { handle } = pool; // a closed pool must fail before anything is retained
    const stream = options.stream ?? device.defaultStream;
    checkStream(stream, device, "Cannot allocate on a stream");
    reclaim();
    refuseCapture(stream, bytes);
    pool.retain();
    let buffer: MemoryBuffer;
    try {
      const ptr = bytes === 0 ? 0n : this.#allocate(bytes, handle, stream);
      buffer = MemoryBuffer.fromForeign(
        ptr,
        bytes,
        device,
        "device",
        stream,
        undefined,
        pool, // not this resource: fields that its user adds may lead to the buffer
        returnToPool,
        this.#describe,
        pool,
      );
    } catch (error) {
      pool.release(null);
      throw error;
    }
    return named(buffer, options); // a name that is refused closes it, which releases the pool
  }

  // law memory/DeviceMemoryResource.close: memory/device_memory_resource, order/deferred_free, memory/memory_pool,
  //   memory/cuda_core_peer_access, memory/memory_programs, sim/behaviours, device/stream
  /** Closes a pool of its own once its last buffer is freed; the device's pool stays open. */
  close(): void {
    this.pool.close();
  }

  /** Closes a pool of its own once its last buffer is freed. */
  [Symbol.dispose](): void {
    this.close();
  }

  // law memory/DeviceMemoryResource.allocate: memory/device_memory_resource, order/deferred_free, memory/memory_pool,
  //   memory/cuda_core_peer_access, memory/memory_programs, sim/behaviours, device/stream, memory/beside_captures
  #allocate(bytes: number, pool: bigint, stream: CudaStream): bigint {
    const { driver, outParameter } = this.device;
    const handle = stream.handleFor("use");
    if (bytes !== this.#bytes) [this.#bytes, this.#size] = [bytes, BigInt(bytes)];
    const size = this.#size;
    let code = NEEDS_CONTEXT;
    const mode = relax(driver);
    try {
      if (!stream.needsContext) code = driver.pool.cuMemAllocFromPoolAsync(outParameter.$address, size, pool, handle);
      if (code === NEEDS_CONTEXT) code = allocateWithin(stream, outParameter.$address, size, pool);
    } finally {
      restore(driver, mode);
    }
    if (code === CUresult.CUDA_ERROR_OUT_OF_MEMORY) throw this.#outOfMemory(bytes);
    checkCuda(driver, "cuMemAllocFromPoolAsync", code);
    return outParameter.value;
  }

  #outOfMemory(bytes: number): CudaError {
    const { used, reserved } = this.pool.use;
    const { free, total } = this.device.memoryInfo();
    const { maxSize } = this.pool;
    const limit = maxSize === 0 ? "" : ` of at most ${maxSize}`;
    return new CudaError(
      "cuMemAllocFromPoolAsync",
      CUresult.CUDA_ERROR_OUT_OF_MEMORY,
      "CUDA_ERROR_OUT_OF_MEMORY",
      `${bytes} bytes were requested; buffers of the pool use ${used}, the pool has reserved ${reserved}${limit}, ` +
        `${this.device} has ${free} of ${total} free`,
    );
  }

  static {
    showAs(DeviceMemoryResource, ({ pool }) => describePool(pool));
  }
}

/** Memory of a graph would exist only while the graph runs, which no buffer can know. */
function refuseCapture(stream: CudaStream, bytes: number): void {
  if (captureOf(stream) === null) return;
  throw new TypeError(
    `Cannot allocate ${bytes} bytes on a stream that is being captured: allocate before the capture`,
  );
}

// law memory/returnToPool: memory/beside_captures, memory/device_memory_resource, order/deferred_free,
//   memory/memory_pool, memory/cuda_core_peer_access, memory/memory_programs, sim/behaviours, device/stream
function returnToPool(ptr: bigint, home: CudaStream | null, pool: MemoryPool): void {
  const last = home ?? pool.device.defaultStream;
  if (last.isLegacy) whenUnblocked(last, () => returnOn(last, ptr, pool));
  else returnOn(last, ptr, pool);
}

// law memory/returnOn: memory/device_memory_resource, order/deferred_free, memory/memory_pool,
//   memory/cuda_core_peer_access, memory/memory_programs, sim/behaviours, device/stream
function returnOn(last: CudaStream, ptr: bigint, pool: MemoryPool): void {
  try {
    if (ptr !== 0n) freeInOrder(ptr, last);
    if (pool.isOwned) waitIfElsewhere(last);
  } finally {
    pool.release(last);
  }
}

// law memory/freeInOrder: memory/device_memory_resource, order/deferred_free, memory/memory_pool,
//   memory/cuda_core_peer_access, memory/memory_programs, sim/behaviours, device/stream, memory/beside_captures
/** A separate function, so that closures of its caller keep no buffer alive. */
function freeInOrder(ptr: bigint, stream: CudaStream): void {
  const { device: { driver } } = stream;
  const handle = stream.handleFor("use");
  let code = NEEDS_CONTEXT;
  const mode = relax(driver);
  try {
    if (!stream.needsContext) code = driver.pool.cuMemFreeAsync(ptr, handle);
    if (code === NEEDS_CONTEXT) code = freeWithin(stream, ptr);
  } finally {
    restore(driver, mode);
  }
  checkRelease(driver, "cuMemFreeAsync", code);
}

function allocateWithin(stream: CudaStream, out: bigint, size: bigint, pool: bigint): number {
  const { device } = stream;
  const handle = stream.handleFor("use");
  return device.withContext(() => device.driver.pool.cuMemAllocFromPoolAsync(out, size, pool, handle));
}

function freeWithin(stream: CudaStream, ptr: bigint): number {
  const { device } = stream;
  const handle = stream.handleFor("use");
  return device.withContext(() => device.driver.pool.cuMemFreeAsync(ptr, handle));
}
