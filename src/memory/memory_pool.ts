/**
 * A pool of device memory: its handle, attributes and limits.
 *
 * @module
 */
import {
  CU_MEM_ALLOCATION_TYPE,
  CU_MEM_HANDLE_TYPE,
  CU_MEM_LOCATION_TYPE,
  CU_MEMPOOL_ATTR,
  CUmemPoolProps,
  CUresult,
} from "../../bindings/cuda_types.ts";
import { NativeArena, runAll } from "../ffi/mod.ts";
import {
  afterCaptures,
  besideAllCaptures,
  besideCaptures,
  closeIfDropped,
  type CudaDevice,
  type CudaStream,
  type DroppedState,
  isCapturing,
  ReferenceCount,
} from "../device/mod.ts";
import { checkCuda, checkRelease, type CudaDriver, observerOf } from "../driver/mod.ts";
import {
  checkBoolean,
  checkMade,
  checkOptions,
  noSize,
  type OptionNames,
  show,
  showAs,
  showBytes,
  showGiven,
} from "../layout/mod.ts";
import { freeAfterAll } from "../order/mod.ts";
import { forgetAccess, isAccessGranted } from "./peer_access.ts";
import { ProcessWide } from "./process_wide.ts";
import { FileDescriptor } from "../unix/mod.ts";

/** Options of a newly created pool. */
export interface MemoryPoolOptions {
  /** The maximum number of bytes that the pool may reserve. Default: as many as the device has. */
  readonly maxSize?: number;
  /**
   * Bytes that the pool keeps when a stream or event is synchronised, instead of returning them to the system. Default:
   * all, because returning memory and reserving it again costs milliseconds.
   */
  readonly releaseThreshold?: number;
  /** Whether the pool can be shared with other processes, by file descriptor. Default false. */
  readonly shareable?: boolean;
}

const memoryPoolOptionNames: OptionNames<MemoryPoolOptions> = {
  maxSize: true,
  releaseThreshold: true,
  shareable: true,
};

/** How much memory a pool has now, in bytes. The high marks count from the last reset. */
export interface MemoryPoolUse {
  /** Reserved from the system. */
  readonly reserved: number;
  /** The most that was ever reserved from the system. */
  readonly reservedHigh: number;
  /** Allocated by buffers. */
  readonly used: number;
  /** The most that was ever allocated. */
  readonly usedHigh: number;
}

// law memory/checkPoolOptions: memory/memory_pool, memory/memory_programs
/** Throws unless a pool's options are valid. */
export function checkPoolOptions(options: MemoryPoolOptions): void {
  checkOptions(options, memoryPoolOptionNames);
  const { maxSize = 0, releaseThreshold = 0, shareable } = options;
  checkBoolean("shareable", shareable);
  for (const size of [maxSize, releaseThreshold]) {
    if (!Number.isSafeInteger(size) || size < 0) {
      throw noSize(`limit a pool to ${show(size)} bytes`, size);
    }
  }
}

/** Every byte: a threshold that is never passed. */
const never = 0xffff_ffff_ffff_ffffn;

/** How often another process's pool is imported. */
interface Imports {
  /** Imports in use: not closed, or with buffers. */
  open: number;
  /** Imports no longer in use and not destroyed. */
  over: number;
}

/**
 * Imports by handle. The driver returns the same handle every time the process imports a pool, requires as many
 * destroys, and refuses them while any memory of the pool is imported. So none is destroyed while any is in use.
 */
const allImports = new ProcessWide<Imports>();

// law memory/countImport: memory/sharing/sharing, memory/sharing/pieces
function countImport(driver: CudaDriver, handle: bigint): Imports {
  const imports = allImports.of(driver).getOrInsertComputed(handle, () => ({ open: 0, over: 0 }));
  imports.open++;
  return imports;
}

// law memory/destroy: memory/sharing/sharing, memory/sharing/pieces
/** Destroys a pool, or all imports of one if none is in use. */
function destroy(driver: CudaDriver, handle: bigint, imports: Imports | null): void {
  if (imports === null) return destroyOnce(driver, handle, []);
  if (imports.open > 0) return;
  allImports.of(driver).delete(handle);
  // Another library of the process may hold memory of it, or a context was lost before ours was freed: then it stays.
  const once = () => destroyOnce(driver, handle, [CUresult.CUDA_ERROR_INVALID_VALUE]);
  runAll(new Array(imports.over).fill(once));
}

// law memory/afterFrees: memory/memory_programs, order/programs
/**
 * Runs `destroy` once the driver has finished with all frees of a pool. It allows the pool to be destroyed earlier, but
 * then keeps it for ever, and if the stream of such a free was destroyed meanwhile, it uses what it has freed, and
 * crashes or hangs (580 on H200s). Of a destroyed stream it learns only from an event of the context that was recorded
 * after the stream was destroyed. Once a first event has passed, so have the frees, and streams that are destroyed from
 * then on have none; the second event comes after those that were destroyed while the first was pending.
 *
 * Frees of a pool of our own in another library's contexts are done by now: see `waitIfElsewhere`.
 *
 * @param devices those on whose streams memory of the pool was freed
 */
function afterFrees(devices: readonly CudaDevice[], destroy: () => void): void {
  freeAfterAll(devices, () => freeAfterAll(devices, destroy));
}

// law memory/destroyOnce: memory/beside_captures, device/graph/active_captures, memory/memory_pool,
//   memory/memory_programs
function destroyOnce(driver: CudaDriver, handle: bigint, expected: readonly number[]): void {
  const code = besideCaptures(driver, () => driver.pool.cuMemPoolDestroy(handle));
  if (!expected.includes(code)) checkRelease(driver, "cuMemPoolDestroy", code);
}

/** The state that closes a pool which was dropped with its buffers. */
function stateOf(driver: CudaDriver, references: ReferenceCount): DroppedState {
  return {
    kind: "MemoryPool",
    driver,
    get closed() {
      return references.isClosed;
    },
    close: () => references.close(),
  };
}

// law memory/describePool: public/inspect
/** What a console shows for a pool, and for the resource that has it. */
export function describePool(pool: MemoryPool): string {
  const { device, isClosed, maxSize } = pool;
  const most = maxSize === 0 ? "" : `, at most ${showBytes(maxSize)}`;
  if (isClosed || device.isClosed) return `of ${device}${most}, closed`;
  // A query while a stream is captured would end the capture.
  if (!device.isActive || isCapturing(device.driver)) return `of ${device}${most}`;
  const { used, reserved } = pool.use;
  return `of ${device}, ${showBytes(used)} of ${showBytes(reserved)} in use${most}`;
}

/** A driver pool: a device's current one, or one of our own that `close` destroys. */
export class MemoryPool {
  /** The device whose memory it is. */
  readonly device: CudaDevice;
  /** Whether `close` destroys it. */
  readonly isOwned: boolean;
  /** Whether the pool can be shared with other processes. */
  readonly isShareable: boolean;
  /** Whether it is another process's pool, from which nothing can be allocated here. */
  readonly isImported: boolean;
  /**
   * The limit that it was made with, in bytes; 0 if it has none, or is not known to have one.
   *
   * @internal
   */
  readonly maxSize: number;
  readonly #handle: bigint;
  readonly #references: ReferenceCount;
  /** Devices on whose streams memory of a pool of our own was freed, retained until the pool is destroyed. */
  readonly #freedOn = new Map<CudaDevice, Disposable>();
  #wasExported = false;

  // law memory/MemoryPool.constructor: memory/memory_pool, memory/memory_programs, memory/beside_captures,
  //   device/graph/active_captures, device/dropped, memory/sharing/sharing
  /** @param retainedDevice retained by a pool of our own, which `close` destroys; null for any other pool */
  private constructor(
    device: CudaDevice,
    handle: bigint,
    how: "current" | "own" | "shareable" | "imported",
    retainedDevice: Disposable | null = null,
    maxSize = 0,
  ) {
    checkMade(how, "MemoryPool", "new DeviceMemoryResource(device, options).pool");
    const isOwned = retainedDevice !== null;
    this.device = device;
    this.isOwned = isOwned;
    this.isShareable = how === "shareable";
    this.isImported = how === "imported";
    this.maxSize = maxSize;
    this.#handle = handle;
    const { driver } = device;
    if (isOwned) forgetAccess(driver, handle); // an earlier pool with this handle had them
    const users = this.#freedOn;
    const imports = how === "imported" ? countImport(driver, handle) : null;
    const references = new ReferenceCount(() => { // must not reference this object, which may be dropped
      if (retainedDevice === null) return; // the device's current pool is not ours to destroy
      observerOf(driver)?.closedByUser(handle); // this may take a while
      const end = () => {
        if (imports !== null) {
          imports.open--;
          imports.over++;
        }
        using retained = new DisposableStack();
        for (const user of users.values()) retained.use(user);
        retained.use(retainedDevice);
        destroy(driver, handle, imports);
      };
      afterCaptures(driver, () => afterFrees([...users.keys()], end));
    });
    this.#references = references;
    if (isOwned) closeIfDropped(this, stateOf(driver, references));
  }

  // law memory/MemoryPool.current: memory/memory_pool, memory/memory_programs, memory/beside_captures,
  //   device/graph/active_captures
  /** The device's current pool, shared with other libraries of the process. It is not ours to destroy. */
  static current(device: CudaDevice): MemoryPool {
    using arena = new NativeArena();
    const out = arena.out("ptr");
    const { driver } = device;
    checkCuda(driver, "cuDeviceGetMemPool", driver.pool.cuDeviceGetMemPool(out.$address, device.ordinal));
    const pool = new MemoryPool(device, out.value, "current");
    // The driver's default returns all memory at every synchronisation. A value that a program has set is kept.
    besideAllCaptures(driver, () => {
      if (pool.releaseThreshold === 0) pool.#set("RELEASE_THRESHOLD", never);
    });
    return pool;
  }

  // law memory/MemoryPool.create: memory/memory_pool, memory/memory_programs, memory/beside_captures,
  //   device/graph/active_captures
  /**
   * A new pool.
   *
   * @throws {RangeError} if a size is not a safe integer of at least 0
   * @throws {CudaError} if the device does not support such pools
   */
  static create(device: CudaDevice, options: MemoryPoolOptions): MemoryPool {
    checkPoolOptions(options);
    const { maxSize = 0, releaseThreshold, shareable = false } = options;
    using arena = new NativeArena();
    const properties = arena.struct(CUmemPoolProps);
    properties.allocType = CU_MEM_ALLOCATION_TYPE.PINNED;
    properties.handleTypes = shareable ? CU_MEM_HANDLE_TYPE.POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE.NONE;
    properties.location.type = CU_MEM_LOCATION_TYPE.DEVICE;
    properties.location.id = device.ordinal;
    properties.maxSize = maxSize;
    const out = arena.out("ptr");
    const { driver } = device;
    const make = () => driver.pool.cuMemPoolCreate(out.$address, properties.$address);
    const create = () => besideCaptures(driver, make);
    const pool = device.retainFor((retained) => {
      checkCuda(driver, "cuMemPoolCreate", device.withContext(create));
      return new MemoryPool(device, out.value, shareable ? "shareable" : "own", retained, maxSize);
    });
    try {
      pool.#set("RELEASE_THRESHOLD", releaseThreshold === undefined ? never : BigInt(releaseThreshold));
    } catch (error) {
      pool.close();
      throw error;
    }
    return pool;
  }

  /**
   * Imports another process's pool.
   *
   * @param descriptor the result of `exportPool` there; the caller keeps ownership and may close it afterwards
   * @throws {CudaError} if it is not a descriptor of a pool
   * @throws {TypeError} if it is no FileDescriptor
   */
  static import(device: CudaDevice, descriptor: FileDescriptor): MemoryPool {
    if (!(descriptor instanceof FileDescriptor)) {
      throw new TypeError(
        `Cannot import a pool from ${showGiven(descriptor)}: expected a FileDescriptor of another process`,
      );
    }
    using arena = new NativeArena();
    const out = arena.out("ptr");
    const { driver } = device;
    // In C the parameter is a pointer, which carries the number of the descriptor.
    const handle = BigInt(descriptor.number);
    const type = CU_MEM_HANDLE_TYPE.POSIX_FILE_DESCRIPTOR;
    const { cuMemPoolImportFromShareableHandle } = driver.poolSharing;
    return device.retainFor((retained) => {
      const open = () => cuMemPoolImportFromShareableHandle(out.$address, handle, type, 0n);
      const code = besideCaptures(driver, () => device.withContext(open));
      checkCuda(
        driver,
        "cuMemPoolImportFromShareableHandle",
        code,
        "Is it what exportPool() of another process returned?",
      );
      return new MemoryPool(device, out.value, "imported", retained);
    });
  }

  /**
   * Makes a descriptor with which another process imports the pool.
   *
   * @throws {TypeError} if the pool was not created as shareable
   */
  export(): FileDescriptor {
    const { handle } = this;
    if (!this.isShareable) {
      throw new TypeError("Cannot export this pool to another process: create one with { shareable: true }");
    }
    using arena = new NativeArena();
    const out = arena.out("i32");
    const { driver } = this.device;
    const type = CU_MEM_HANDLE_TYPE.POSIX_FILE_DESCRIPTOR;
    const { cuMemPoolExportToShareableHandle } = driver.poolSharing;
    const code = this.device.withContext(() => cuMemPoolExportToShareableHandle(out.$address, handle, type, 0n));
    checkCuda(driver, "cuMemPoolExportToShareableHandle", code);
    this.#wasExported = true;
    return FileDescriptor.adopt(out.value);
  }

  /**
   * Exports the pool unless it was exported already: before that the driver describes none of its memory.
   *
   * @internal
   */
  ensureExported(): void {
    if (!this.#wasExported) this.export().close();
  }

  // law memory/MemoryPool.handle: memory/memory_pool, memory/memory_programs
  /**
   * `CUmemoryPool`.
   *
   * @throws {TypeError} if the pool or its Cuda is closed
   */
  get handle(): bigint {
    if (this.#references.isClosed) throw new TypeError("Cannot use a closed memory pool");
    const { device } = this;
    if (device.isGone) throw new TypeError(`Cannot use a pool of ${device}: its Cuda is closed`);
    return this.#handle;
  }

  /** The memory that the pool has reserved and uses. */
  get use(): MemoryPoolUse {
    return {
      reserved: Number(this.#get("RESERVED_MEM_CURRENT")),
      reservedHigh: Number(this.#get("RESERVED_MEM_HIGH")),
      used: Number(this.#get("USED_MEM_CURRENT")),
      usedHigh: Number(this.#get("USED_MEM_HIGH")),
    };
  }

  /** Bytes kept at a synchronisation; 2^64 (as a number) if all are kept. */
  get releaseThreshold(): number {
    return Number(this.#get("RELEASE_THRESHOLD"));
  }

  /** Resets both high marks. */
  resetHighMarks(): void {
    this.#set("RESERVED_MEM_HIGH", 0n);
    this.#set("USED_MEM_HIGH", 0n);
  }

  // law memory/MemoryPool.trim: memory/beside_captures, device/graph/active_captures, memory/memory_pool,
  //   memory/memory_programs
  /** Returns unused memory to the system, until at most `keep` bytes are left. Default 0. */
  trim(keep = 0): void {
    if (!Number.isSafeInteger(keep) || keep < 0) {
      throw noSize(`trim a pool to ${show(keep)} bytes`, keep);
    }
    const { driver } = this.device;
    const { handle } = this;
    const code = besideCaptures(driver, () => driver.pool.cuMemPoolTrimTo(handle, BigInt(keep)));
    checkCuda(driver, "cuMemPoolTrimTo", code);
  }

  /** Whether a device can use the memory, even after `close`, as long as there are buffers. Queries the driver. */
  isReachedBy(device: CudaDevice): boolean {
    return device === this.device || isAccessGranted(this.device.driver, this.#handle, device.ordinal);
  }

  /** Whether its user has closed it; buffers may still use it. */
  get isClosed(): boolean {
    return this.#references.isClosed;
  }

  // law memory/MemoryPool.retain: memory/memory_pool, memory/memory_programs
  /**
   * Retains the pool and its device until `release` is called, exactly once. Each buffer does this.
   *
   * @internal
   */
  retain(): void {
    this.device.retain();
    this.#references.retain();
  }

  // law memory/MemoryPool.release: memory/memory_pool, memory/memory_programs
  /**
   * Ends one {@linkcode MemoryPool.retain}.
   *
   * @internal
   * @param freedOn the stream on which memory of the pool was freed
   */
  release(freedOn: CudaStream | null): void {
    const user = freedOn?.device;
    if (this.isOwned && user !== undefined && !this.#freedOn.has(user)) {
      this.#freedOn.set(user, user.retained({ evenClosed: true }));
    }
    try {
      this.#references.release();
    } finally {
      this.device.release();
    }
  }

  // law memory/MemoryPool.close: memory/memory_pool, memory/memory_programs
  /** Destroys a pool of our own once none of its buffers is left. Closing twice is harmless. */
  close(): void {
    this.#references.close();
    if (!this.#references.isDestroyed) observerOf(this.device.driver)?.closedByUser(this.#handle);
  }

  // law memory/MemoryPool.get: memory/beside_captures, device/graph/active_captures
  /** The two attributes that are flags are 32 bits wide, all others 64; both fit the larger slot. */
  #get(name: keyof typeof CU_MEMPOOL_ATTR): bigint {
    using arena = new NativeArena();
    const out = arena.out("u64");
    const { driver } = this.device;
    const { handle } = this;
    const get = () => driver.pool.cuMemPoolGetAttribute(handle, CU_MEMPOOL_ATTR[name], out.$address);
    const code = besideCaptures(driver, get);
    checkCuda(driver, "cuMemPoolGetAttribute", code);
    return out.value;
  }

  // law memory/MemoryPool.set: memory/beside_captures, device/graph/active_captures
  #set(name: keyof typeof CU_MEMPOOL_ATTR, value: bigint): void {
    using arena = new NativeArena();
    const slot = arena.out("u64");
    slot.value = value;
    const { driver } = this.device;
    const { handle } = this;
    const set = () => driver.pool.cuMemPoolSetAttribute(handle, CU_MEMPOOL_ATTR[name], slot.$address);
    const code = besideCaptures(driver, set);
    checkCuda(driver, "cuMemPoolSetAttribute", code);
  }

  static {
    showAs(MemoryPool, describePool);
  }
}
