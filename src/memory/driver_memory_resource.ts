/**
 * Memory that the driver allocates synchronously, outside any pool: pinned, managed and plain device memory.
 *
 * @module
 */
import { CU_DEVICE_CPU, CU_MEM_ADVISE, CU_MEM_ATTACH, CU_MEMHOSTALLOC, CUresult } from "../../bindings/cuda_types.ts";
import {
  besideCaptures,
  checkSameCuda,
  checkStream,
  CudaDevice,
  type CudaStream,
  expectDevice,
} from "../device/mod.ts";
import { checkCuda, checkRelease, CudaError } from "../driver/mod.ts";
import { describeHostMemory, NativeArena } from "../ffi/mod.ts";
import { checkOptions, isNameIn, none, show, showAs, showGiven } from "../layout/mod.ts";
import { canReach, freeAfter, freeAfterAll, type MemoryKind, reclaim } from "../order/mod.ts";
import type { BufferDescriptor } from "./buffer_descriptor.ts";
import { MemoryBuffer } from "./memory_buffer.ts";
import { allocateOptionNames, type AllocateOptions, checkSize, MemoryResource, named } from "./memory_resource.ts";
import { importBufferOptionNames, type ImportBufferOptions, importMemory } from "./import_buffer.ts";

/** The driver calls for a kind of memory. Functions without closures, so that they keep no buffer alive. */
export interface DriverCalls {
  /** The kind of memory. */
  readonly kind: MemoryKind;
  /** Allocates, and writes the address to `out`. */
  readonly acquire: (device: CudaDevice, out: bigint, bytes: bigint) => void;
  /** Frees memory. */
  readonly release: (device: CudaDevice, ptr: bigint) => void;
}

function free({ driver }: CudaDevice, ptr: bigint): void {
  checkRelease(driver, "cuMemFree_v2", driver.memory.cuMemFree_v2(ptr));
}

// law memory/pinned: memory/driver_memory_resource, memory/device_memory_resource, order/deferred_free,
//   memory/cuda_core_memory_resource, memory/memory_programs
const pinned: DriverCalls = {
  kind: "pinned",
  acquire: ({ driver }, out, bytes) => {
    checkCuda(driver, "cuMemHostAlloc", driver.hostMemory.cuMemHostAlloc(out, bytes, CU_MEMHOSTALLOC.PORTABLE));
  },
  release: ({ driver }, ptr) => checkRelease(driver, "cuMemFreeHost", driver.hostMemory.cuMemFreeHost(ptr)),
};

const managed: DriverCalls = {
  kind: "managed",
  acquire: ({ driver }, out, bytes) => {
    checkCuda(driver, "cuMemAllocManaged", driver.managedMemory.cuMemAllocManaged(out, bytes, CU_MEM_ATTACH.GLOBAL));
  },
  release: free,
};

const plain: DriverCalls = {
  kind: "device",
  acquire: ({ driver }, out, bytes) => checkCuda(driver, "cuMemAlloc_v2", driver.memory.cuMemAlloc_v2(out, bytes)),
  release: free,
};

/** Whether an error means out of memory. */
export function isOutOfMemory(error: unknown): error is CudaError {
  return error instanceof CudaError && error.code === CUresult.CUDA_ERROR_OUT_OF_MEMORY;
}

function describeDeviceMemory(device: CudaDevice): string {
  const { free, total } = device.memoryInfo();
  return `${device} uses ${total - free} and has ${free} of ${total} free`;
}

// law memory/usersOf: memory/driver_memory_resource, memory/device_memory_resource, order/deferred_free,
//   memory/cuda_core_memory_resource, memory/memory_programs
/**
 * The devices whose work may use memory of a kind: its own, and every other device that can reach it and has a context.
 */
function usersOf(device: CudaDevice, kind: MemoryKind): CudaDevice[] {
  return device.siblings.filter((one) =>
    one === device || (one.isActive && canReach(one, { kind, pool: null }, device))
  );
}

/** Memory that the driver allocates synchronously: the common base of its three kinds. */
export abstract class DriverMemoryResource extends MemoryResource {
  /** Whether kernels can use the memory. */
  override readonly isDeviceAccessible: boolean = true;
  /** The device in whose context the memory is allocated. */
  readonly device: CudaDevice;
  readonly #calls: DriverCalls;

  /** Called by the subclasses for the three kinds. */
  protected constructor(device: CudaDevice, calls: DriverCalls) {
    super();
    expectDevice(device, `Cannot make a ${new.target.name}`);
    this.device = device;
    this.#calls = calls;
  }

  // law memory/driver_memory_resource/DriverMemoryResource.allocate: memory/driver_memory_resource,
  //   memory/device_memory_resource, order/deferred_free, memory/cuda_core_memory_resource, memory/memory_programs
  /**
   * Allocates memory. It may be used at once; it is freed when the home stream has passed its last use; without a home
   * stream, when its device, and every other device that can use it, have finished everything enqueued at that time.
   *
   * @throws {CudaError} CUDA_ERROR_OUT_OF_MEMORY, with the size of the request, and the memory used and free: on the
   *   device, or on the host for pinned memory
   */
  override allocate(bytes: number, options: AllocateOptions = none): MemoryBuffer {
    checkOptions(options, allocateOptionNames);
    checkSize(bytes);
    const { device } = this;
    if (options.stream !== undefined) checkStream(options.stream, device, "Cannot allocate on a stream");
    reclaim();
    return named(device.retainFor((retained) => this.#make(bytes, options.stream ?? null, retained)), options);
  }

  // law memory/DriverMemoryResource.make: memory/driver_memory_resource, memory/device_memory_resource,
  //   order/deferred_free, memory/cuda_core_memory_resource, memory/memory_programs, memory/beside_captures
  #make(bytes: number, stream: CudaStream | null, retained: Disposable): MemoryBuffer {
    const { device } = this;
    stream?.retain(); // a closed stream must fail before anything is allocated
    try {
      const ptr = bytes === 0 ? 0n : this.#allocate(bytes);
      const { kind, release } = this.#calls;
      const free = (at: bigint, home: CudaStream | null) => {
        const freeNow = () => {
          try {
            if (at !== 0n) besideCaptures(device.driver, () => device.withContext(() => release(device, at)));
          } finally {
            retained[Symbol.dispose]();
          }
        };
        if (home === null) freeAfterAll(usersOf(device, kind), freeNow); // the driver does not promise to wait
        else freeAfter(home, freeNow);
      };
      return MemoryBuffer.fromAllocation({ ptr, size: bytes, device, kind, stream, free });
    } finally {
      stream?.release(); // the buffer retains it now
    }
  }

  // law memory/DriverMemoryResource.allocate: memory/beside_captures, memory/driver_memory_resource,
  //   memory/device_memory_resource, order/deferred_free, memory/cuda_core_memory_resource, memory/memory_programs
  #allocate(bytes: number): bigint {
    using arena = new NativeArena();
    const out = arena.out("ptr");
    const { device } = this;
    try {
      const acquire = () => this.#calls.acquire(device, out.$address, BigInt(bytes));
      besideCaptures(device.driver, () => device.withContext(acquire));
    } catch (error) {
      throw isOutOfMemory(error) ? this.#outOfMemory(error, bytes) : error;
    }
    return out.value;
  }

  #outOfMemory({ call, code, codeName }: CudaError, bytes: number): CudaError {
    const { kind } = this.#calls;
    const left = kind === "pinned" ? describeHostMemory() : describeDeviceMemory(this.device);
    return new CudaError(call, code, codeName, `${bytes} bytes of ${kind} memory were requested; ${left}`);
  }

  static {
    showAs(DriverMemoryResource, ({ device }) => `of ${device}`);
  }
}

/** Page-locked host memory: copies to and from GPUs run at full speed, and kernels can use it directly. */
export class PinnedMemoryResource extends DriverMemoryResource {
  /** Whether the host can use the memory. */
  override readonly isHostAccessible: boolean = true;

  /** A resource in the context of a device. */
  constructor(device: CudaDevice) {
    super(device, pinned);
  }
}

/** Memory that migrates automatically between host and devices, with hints about where it should be. */
export class ManagedMemoryResource extends DriverMemoryResource {
  /** Whether the host can use the memory. */
  override readonly isHostAccessible: boolean = true;

  /** A resource in the context of a device. */
  constructor(device: CudaDevice) {
    super(device, managed);
  }

  // law memory/ManagedMemoryResource.prefetch: memory/driver_memory_resource, memory/device_memory_resource,
  //   order/deferred_free, memory/cuda_core_memory_resource, memory/memory_programs
  /**
   * Enqueues the migration of a buffer to where it will be used next.
   *
   * @param to a device, or null for the host
   */
  prefetch(buffer: MemoryBuffer, to: CudaDevice | null, options: { readonly stream: CudaStream }): void {
    const { driver } = this.device;
    const { stream } = options ?? {}; // undefined in untyped code
    const { ptr, size } = this.#checkManaged(buffer, "Cannot prefetch");
    checkStream(stream, this.device, "Cannot prefetch on a stream");
    const target = ordinalOf(to, driver, "Cannot prefetch to");
    const prefetch = () => driver.managedMemory.cuMemPrefetchAsync(ptr, BigInt(size), target, stream.handleFor("use"));
    if (size > 0) checkCuda(driver, "cuMemPrefetchAsync", stream.enqueue(prefetch));
  }

  /** Throws unless a buffer is managed memory of the same Cuda. */
  #checkManaged(buffer: MemoryBuffer, doing: string): { readonly ptr: bigint; readonly size: number } {
    if (!(buffer instanceof MemoryBuffer)) {
      throw new TypeError(`${doing} ${showGiven(buffer)}: expected a MemoryBuffer`);
    }
    const { ptr, size, device, kind } = buffer;
    if (kind !== "managed" || device === null) throw new TypeError(`${doing} ${kind} memory: expected managed memory`);
    checkSameCuda({ device }, this.device, `${doing} a buffer`);
    return { ptr, size };
  }

  // law memory/ManagedMemoryResource.advise: memory/driver_memory_resource, memory/device_memory_resource,
  //   order/deferred_free, memory/cuda_core_memory_resource, memory/memory_programs
  /**
   * Advises the driver how a buffer will be used, by the advice's name in the header without the prefix
   * `CU_MEM_ADVISE_`.
   *
   * @param location the device that the advice is about, or null for the host
   */
  advise(buffer: MemoryBuffer, advice: keyof typeof CU_MEM_ADVISE, location: CudaDevice | null): void {
    const { driver } = this.device;
    const { ptr, size } = this.#checkManaged(buffer, "Cannot advise about");
    if (!isNameIn(CU_MEM_ADVISE, advice)) {
      throw new TypeError(`Cannot give the advice ${show(advice)}: expected a name of CU_MEM_ADVISE`);
    }
    const target = ordinalOf(location, driver, "Cannot advise about");
    const advise = () => driver.managedMemory.cuMemAdvise(ptr, BigInt(size), CU_MEM_ADVISE[advice], target);
    if (size > 0) checkCuda(driver, "cuMemAdvise", this.device.withContext(advise));
  }
}

// law memory/ordinalOf: memory/driver_memory_resource, memory/cuda_core_memory_resource
/** The driver's number of a device, or of the host. */
function ordinalOf(place: CudaDevice | null, driver: CudaDevice["driver"], doing: string): number {
  if (place === null) return CU_DEVICE_CPU;
  if (!(place instanceof CudaDevice)) {
    throw new TypeError(`${doing} ${showGiven(place)}: expected a CudaDevice, or null for the host`);
  }
  if (place.driver !== driver) throw new TypeError(`${doing} a device of another Cuda`);
  return place.ordinal;
}

/**
 * Device memory without a pool, for devices that have none: allocating and freeing it makes the device wait. All of it
 * can be shared with other processes.
 */
export class SynchronousMemoryResource extends DriverMemoryResource {
  /** Whether the host can use the memory. */
  override readonly isHostAccessible: boolean = false;

  /** A resource in the context of a device. */
  constructor(device: CudaDevice) {
    super(device, plain);
  }

  /**
   * Opens memory that another process allocated without a pool, from the result of `buffer.exportDescriptor()` there.
   * Closing the buffer ends the use here and frees nothing; the other process must not free the memory before that.
   *
   * @throws {TypeError} if it is not a descriptor of such memory
   * @throws {RangeError} if it is memory of another device
   * @throws {CudaError} CUDA_ERROR_INVALID_CONTEXT in the process that exported it, another code if the memory is gone
   */
  importBuffer(descriptor: BufferDescriptor, options: ImportBufferOptions = {}): MemoryBuffer {
    checkOptions(options, importBufferOptionNames);
    reclaim();
    return importMemory(this.device, descriptor, options);
  }
}
