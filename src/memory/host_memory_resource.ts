/**
 * Ordinary host memory, from the C allocator.
 *
 * @module
 */
import { describeHostMemory, FfiError, libc, roundUp } from "../ffi/mod.ts";
import { checkOptions, none, type OptionNames, show, showAs } from "../layout/mod.ts";
import { MemoryBuffer } from "./memory_buffer.ts";
import { reclaim } from "../order/mod.ts";
import { allocateOptionNames, type AllocateOptions, checkSize, MemoryResource, named } from "./memory_resource.ts";

/** Options of {@linkcode HostMemoryResource}. */
export interface HostMemoryOptions {
  /**
   * Alignment of every allocation in bytes, a power of two of at least 8. Default 64: a cache line, and what Arrow
   * recommends.
   */
  readonly alignment?: number;
}

const hostMemoryOptionNames: OptionNames<HostMemoryOptions> = { alignment: true };

/**
 * Allocates host memory that C can keep: unlike the memory of a typed array it never moves, and is freed when its
 * buffer is closed rather than when the garbage collector finds it.
 *
 * @example
 * ```ts ignore
 * using buffer = new HostMemoryResource().allocate(4096);
 * buffer.bytes().fill(1);
 * ```
 */
export class HostMemoryResource extends MemoryResource {
  /** Whether kernels can use the memory. */
  override readonly isDeviceAccessible: boolean = false;
  /** Whether the host can use the memory. */
  override readonly isHostAccessible: boolean = true;
  /** Alignment in bytes. */
  readonly alignment: number;

  // law memory/HostMemoryResource.constructor: memory/host_memory_resource, order/deferred_free
  /**
   * A resource with the given alignment.
   *
   * @throws {RangeError} if the alignment is not a power of two of at least 8
   */
  constructor(options: HostMemoryOptions = {}) {
    super();
    checkOptions(options, hostMemoryOptionNames);
    const { alignment = 64 } = options;
    if (!Number.isSafeInteger(alignment) || alignment < 8 || Math.log2(alignment) % 1 !== 0) {
      throw new RangeError(`Cannot align memory to ${show(alignment)} bytes: expected a power of two of at least 8`);
    }
    this.alignment = alignment;
  }

  // law memory/HostMemoryResource.allocate: memory/host_memory_resource, order/deferred_free
  /**
   * Allocates host memory. It needs no stream and has no home stream: a stream that is passed is ignored.
   *
   * @throws {FfiError} if there is not enough memory, with the size of the request, and what the host uses and has free
   */
  override allocate(bytes: number, options: AllocateOptions = none): MemoryBuffer {
    checkOptions(options, allocateOptionNames);
    checkSize(bytes);
    reclaim();
    const ptr = bytes === 0 ? 0n : align(bytes, this.alignment);
    return named(MemoryBuffer.fromAllocation({ ptr, size: bytes, device: null, stream: null, free }), options);
  }

  static {
    showAs(HostMemoryResource, ({ alignment }) => `aligned to ${alignment} bytes`);
  }
}

function free(ptr: bigint): void {
  libc().loading.free(ptr);
}

// law memory/align: memory/host_memory_resource, order/deferred_free
function align(bytes: number, alignment: number): bigint {
  const rounded = roundUp(bytes, alignment); // aligned_alloc requires a multiple
  const ptr = libc().loading.aligned_alloc(BigInt(alignment), BigInt(rounded));
  if (ptr === 0n) {
    throw new FfiError(
      `Cannot allocate ${bytes} bytes of host memory: aligned_alloc returned NULL; ${describeHostMemory()}`,
    );
  }
  return ptr;
}
