/**
 * A driver called as C would call it, for tests that run the same calls on the simulator and on libcuda.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import {
  CU_MEM_ACCESS_FLAGS_PROT,
  CU_MEM_ALLOCATION_TYPE,
  CU_MEM_LOCATION_TYPE,
  CUmemAccessDesc,
  CUmemPoolProps,
} from "../../bindings/cuda_types.ts";
import { type CudaDriver, resultName } from "../../src/driver/driver.ts";
import { NativeArena, type Out } from "../../src/ffi/arena.ts";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";

/** Host memory that a test has allocated. */
export interface HostBytes {
  readonly address: bigint;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** A driver, the primary contexts of its devices, and what has to be released. */
export class Raw {
  readonly driver: CudaDriver;
  /** Primary contexts by device. */
  readonly contexts: readonly bigint[];
  readonly arena: NativeArena = new NativeArena();
  readonly #word: Out<"ptr"> = this.arena.out("ptr");
  readonly #int: Out<"i32"> = this.arena.out("i32");
  readonly #closing = new DisposableStack();

  /** Initialises the driver and retains the primary contexts of its first devices. */
  constructor(driver: CudaDriver, devices = 1) {
    this.driver = driver;
    this.ok(driver.opening.cuInit(0));
    this.contexts = Array.from({ length: devices }, (_, device) => {
      this.ok(driver.context.cuDevicePrimaryCtxRetain(this.#word.$address, device));
      this.onClose(() => driver.context.cuDevicePrimaryCtxRelease_v2(device));
      return this.#word.value;
    });
  }

  /** Fails unless a call succeeded. */
  ok(code: number): void {
    assertEquals(resultName(code), "CUDA_SUCCESS");
  }

  /** The handle or pointer that a call leaves in its first parameter. */
  word(call: (out: bigint) => number): bigint {
    this.ok(call(this.#word.$address));
    return this.#word.value;
  }

  /** The int that a call leaves in its first parameter. */
  int(call: (out: bigint) => number): number {
    this.ok(call(this.#int.$address));
    return this.#int.value;
  }

  /** The context of a device. */
  context(device: number): bigint {
    return this.contexts[device] ?? 0n;
  }

  /** Makes the context of a device current. */
  use(device: number): void {
    this.ok(this.driver.context.cuCtxSetCurrent(this.context(device)));
  }

  /** A stream of the current context. */
  stream(flags: number): bigint {
    const handle = this.word((out) => this.driver.stream.cuStreamCreate(out, flags));
    this.onClose(() => this.driver.stream.cuStreamDestroy_v2(handle));
    return handle;
  }

  /** An event of the current context, without timing. */
  event(flags = 2): bigint {
    const handle = this.word((out) => this.driver.event.cuEventCreate(out, flags));
    this.onClose(() => this.driver.event.cuEventDestroy_v2(handle));
    return handle;
  }

  /** Allocates from the current pool of the current context's device, in stream order. Not freed by `close`. */
  allocate(bytes: number, stream: bigint): bigint {
    return this.word((out) => this.driver.pool.cuMemAllocAsync(out, BigInt(bytes), stream));
  }

  /** A pool of the first device. Not destroyed by `close`. */
  createPool({ handleTypes = 0, maxSize = 0 } = {}): bigint {
    const props = this.arena.struct(CUmemPoolProps);
    props.allocType = CU_MEM_ALLOCATION_TYPE.PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE.DEVICE;
    props.handleTypes = handleTypes;
    props.maxSize = maxSize;
    return this.word((out) => this.driver.pool.cuMemPoolCreate(out, props.$address));
  }

  /** Page-locked host memory. */
  pinned(bytes: number): HostBytes {
    const address = this.word((out) => this.driver.hostMemory.cuMemHostAlloc(out, BigInt(bytes), 0));
    this.onClose(() => this.driver.hostMemory.cuMemFreeHost(address));
    return { address, bytes: new Uint8Array(ffiPort().memory(address, bytes)) };
  }

  /** Host memory unknown to the driver. */
  pageable(bytes: number): HostBytes {
    const address = libc().loading.malloc(BigInt(bytes));
    this.onClose(() => libc().loading.free(address));
    return { address, bytes: new Uint8Array(ffiPort().memory(address, bytes)) };
  }

  /** Sets a device's access to the pool of another one, by default to read and write. */
  grant(pool: bigint, device: number, flags: number = CU_MEM_ACCESS_FLAGS_PROT.READWRITE): number {
    const access = this.arena.struct(CUmemAccessDesc);
    access.location.type = CU_MEM_LOCATION_TYPE.DEVICE;
    access.location.id = device;
    access.flags = flags;
    return this.driver.pool.cuMemPoolSetAccess(pool, access.$address, 1n);
  }

  /**
   * Makes a stream wait for all work of all contexts. An event of one context alone precedes work that the driver does
   * for it through another: see `tests/gpu/context_order_test.ts`.
   *
   * @returns false where the driver is older than CUDA 12.5 and cannot do it
   */
  waitForContexts(device: number, stream: bigint): boolean {
    const { context: { cuCtxRecordEvent }, event, stream: { cuStreamWaitEvent } } = this.driver;
    if (cuCtxRecordEvent === null) return false;
    this.contexts.forEach((context, one) => {
      this.use(one);
      const mark = this.word((out) => event.cuEventCreate(out, 2));
      this.ok(cuCtxRecordEvent(context, mark));
      this.use(device);
      this.ok(cuStreamWaitEvent(stream, mark, 0));
      this.ok(event.cuEventDestroy_v2(mark)); // the wait outlives it
    });
    return true;
  }

  /** The current pool of a device. */
  pool(device: number): bigint {
    return this.word((out) => this.driver.pool.cuDeviceGetMemPool(out, device));
  }

  /** Registers a callback that runs on close, before callbacks registered earlier. */
  onClose(undo: () => void): void {
    this.#closing.defer(undo);
  }

  /** Waits for all devices, then releases everything. */
  close(): void {
    for (let device = 0; device < this.contexts.length; device++) {
      this.use(device);
      this.driver.context.cuCtxSynchronize();
    }
    this.#closing.dispose();
    this.driver.context.cuCtxSetCurrent(0n);
    this.arena.close();
  }

  /** Releases everything, as `close` does. */
  [Symbol.dispose](): void {
    this.close();
  }
}
