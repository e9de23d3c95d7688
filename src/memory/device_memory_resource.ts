/**
 * Device memory, allocated and freed in the order of a stream.
 *
 * @module
 */
import type { CudaDevice } from "../cuda/device.ts";
import { checkCuda } from "../cuda/driver.ts";
import type { CudaStream } from "../cuda/stream.ts";
import { NativeArena } from "../ffi/arena.ts";
import { MemoryBuffer } from "./memory_buffer.ts";
import { reclaim } from "./reclaim.ts";
import { type AllocateOptions, checkSize, MemoryResource } from "./memory_resource.ts";

/** Allocates from a device's current memory pool, on a stream; from the driver directly where it has no pools. */
export class DeviceMemoryResource extends MemoryResource {
  /** Whether kernels can use the memory. */
  override readonly isDeviceAccessible: boolean = true;
  /** Whether the host can use the memory. */
  override readonly isHostAccessible: boolean = false;
  /** The device. */
  readonly device: CudaDevice;
  readonly #pooled: boolean;

  /** A resource over the device's current pool. */
  constructor(device: CudaDevice) {
    super();
    this.device = device;
    this.#pooled = device.attribute("MEMORY_POOLS_SUPPORTED") !== 0;
  }

  /**
   * Allocates device memory, in the order of a stream (the default stream if none is given), on which it is also freed.
   *
   * @throws {CudaError} CUDA_ERROR_OUT_OF_MEMORY
   */
  override allocate(bytes: number, options: AllocateOptions = {}): MemoryBuffer {
    checkSize(bytes);
    reclaim();
    const { device } = this;
    const stream = options.stream ?? device.defaultStream;
    const releaseDevice = device.hold();
    try {
      const ptr = bytes === 0 ? 0n : this.#allocate(bytes, stream);
      const free = (at: bigint, home: CudaStream | null) => {
        this.#free(at, home);
        releaseDevice();
      };
      return MemoryBuffer.fromAllocation({ ptr, size: bytes, device, stream, free });
    } catch (error) {
      releaseDevice();
      throw error;
    }
  }

  #allocate(bytes: number, stream: CudaStream): bigint {
    using arena = new NativeArena();
    const out = arena.out("ptr");
    const { driver } = this.device;
    this.device.within(() => {
      if (this.#pooled) {
        const code = driver.pool.cuMemAllocAsync(out.$address, BigInt(bytes), stream.handle);
        checkCuda(driver, `cuMemAllocAsync of ${bytes} bytes`, code);
      } else {checkCuda(
          driver,
          `cuMemAlloc_v2 of ${bytes} bytes`,
          driver.memory.cuMemAlloc_v2(out.$address, BigInt(bytes)),
        );}
    });
    return out.value;
  }

  #free(ptr: bigint, stream: CudaStream | null): void {
    if (ptr === 0n) return;
    const { driver, defaultStream } = this.device;
    this.device.within(() => {
      if (this.#pooled) {
        checkCuda(driver, "cuMemFreeAsync", driver.pool.cuMemFreeAsync(ptr, (stream ?? defaultStream).handle));
      } else checkCuda(driver, "cuMemFree_v2", driver.memory.cuMemFree_v2(ptr));
    });
  }
}
