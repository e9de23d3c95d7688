/**
 * The primary context of a device: the one that every other library in the process uses, too.
 *
 * @module
 */
import { CUresult } from "../../bindings/cuda_types.ts";
import { checkCuda, type CudaDriver, innermost } from "../driver/mod.ts";
import type { NativeArena } from "../ffi/mod.ts";

/**
 * How many of this thread count on a context that was made current here, by driver and context: several `Cuda`s have
 * the same primary contexts.
 */
const users = new WeakMap<CudaDriver, Map<bigint, number>>();

/** Our reference to a device's primary context: retained on first use, and released once. */
export class PrimaryContext {
  readonly #driver: CudaDriver;
  readonly #device: number;
  readonly #out;
  readonly #int;
  #handle = 0n;
  /** Whether it is among the {@linkcode users}. */
  #isUser = false;

  /**
   * @param device the driver's handle: `CUdevice`
   * @param arena holds space for results as long as the context is used
   */
  constructor(driver: CudaDriver, device: number, arena: NativeArena) {
    this.#driver = driver;
    this.#device = device;
    this.#out = arena.out("ptr");
    this.#int = arena.out("i32");
  }

  /** Whether it is retained here. */
  get isRetained(): boolean {
    return this.#handle !== 0n;
  }

  // law device/PrimaryContext.isActive: device/device, memory/memory_programs
  /** Whether the context is in use in this process, by us or another library. Does not retain it. */
  get isActive(): boolean {
    if (this.#handle !== 0n) return true;
    checkCuda(this.#driver, "cuDevicePrimaryCtxGetState", this.#getState());
    return this.#int.value !== 0;
  }

  // law device/PrimaryContext.isAlive: device/device
  /** Whether the driver knows of it: a context that is retained here may have been destroyed by another library. */
  get isAlive(): boolean {
    return this.#getState() === CUresult.CUDA_SUCCESS && this.#int.value !== 0;
  }

  /** Asks whether it is active. */
  #getState(): number {
    // The flags go to eight bytes that are never read: every release of an export makes this query, and must not
    // allocate.
    return this.#driver.context.cuDevicePrimaryCtxGetState(this.#device, this.#out.$address, this.#int.$address);
  }

  // law device/PrimaryContext.handle: device/device, memory/memory_programs
  /** `CUcontext`, which is retained on first use. */
  get handle(): bigint {
    if (this.#handle === 0n) this.#retain();
    return this.#handle;
  }

  #retain(): void {
    const { cuDevicePrimaryCtxRetain } = this.#driver.context;
    const code = cuDevicePrimaryCtxRetain(this.#out.$address, this.#device);
    checkCuda(this.#driver, "cuDevicePrimaryCtxRetain", code);
    this.#handle = this.#out.value;
  }

  // law device/PrimaryContext.ensureCurrent: device/device
  /** Makes it current in this thread if no context is, until {@linkcode PrimaryContext.release}. */
  ensureCurrent(): void {
    const { handle } = this;
    const { cuCtxGetCurrent, cuCtxSetCurrent } = this.#driver.context;
    checkCuda(this.#driver, "cuCtxGetCurrent", cuCtxGetCurrent(this.#out.$address));
    const current = this.#out.value;
    if (current !== 0n && (current !== handle || this.#isUser)) return;
    const counts = users.getOrInsertComputed(innermost(this.#driver), () => new Map());
    const count = counts.get(handle) ?? 0;
    if (current === 0n) checkCuda(this.#driver, "cuCtxSetCurrent", cuCtxSetCurrent(handle));
    else if (count === 0) return; // another library has made it current
    if (!this.#isUser) counts.set(handle, count + 1);
    this.#isUser = true;
  }

  // law device/PrimaryContext.release: device/device, memory/memory_programs, device/context
  /**
   * Releases it if it is retained here: it must not be used afterwards. If it was made current here, and no other user
   * is left, it is no longer current: while a destroyed context is, the driver crashes in some calls, among them one
   * that UCX 1.21 makes when it is opened.
   */
  release(): void {
    if (this.#handle === 0n) return;
    if (this.#isLastUser()) this.#leaveThread();
    this.#driver.context.cuDevicePrimaryCtxRelease_v2(this.#device);
  }

  /** Takes it from this thread's contexts. It is below others if its Cuda is closed while theirs are current. */
  #leaveThread(): void {
    const { cuCtxPopCurrent_v2, cuCtxPushCurrent_v2 } = this.#driver.context;
    const above: bigint[] = [];
    while (cuCtxPopCurrent_v2(this.#out.$address) === CUresult.CUDA_SUCCESS && this.#out.value !== this.#handle) {
      above.push(this.#out.value);
    }
    for (const context of above.reverse()) cuCtxPushCurrent_v2(context);
  }

  /** Removes it from the users. */
  #isLastUser(): boolean {
    if (!this.#isUser) return false;
    this.#isUser = false;
    const counts = users.get(innermost(this.#driver));
    const left = (counts?.get(this.#handle) ?? 0) - 1;
    counts?.set(this.#handle, left);
    return left === 0;
  }
}
