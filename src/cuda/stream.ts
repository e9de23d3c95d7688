/**
 * A stream: work that the GPU does in order.
 *
 * @module
 */
import { CU_STREAM, CU_STREAM_PER_THREAD, CUresult } from "../../bindings/cuda_types.ts";
import { NativeArena } from "../ffi/arena.ts";
import { builtin } from "../ffi/builtin.ts";
import { createWakeup } from "../ffi/wakeup.ts";
import type { CudaDevice } from "./device.ts";
import { checkCuda } from "./driver.ts";
import type { CudaEvent } from "./event.ts";
import { Holders } from "./holders.ts";

/** How often to look whether a stream that is waited for has failed, in milliseconds. */
const failureCheck = 100;

/** A CUDA stream. */
export class CudaStream {
  /** The device whose context it belongs to. */
  readonly device: CudaDevice;
  /** What keeps a foreign stream alive. */
  readonly owner: unknown;
  readonly #handle: bigint;
  /** Whether the handle stands for whatever default stream the current context has. */
  readonly #isDefault: boolean;
  readonly #isOwned: boolean;
  readonly #holders: Holders;

  private constructor(device: CudaDevice, handle: bigint, owned: boolean, owner: unknown) {
    this.device = device;
    this.#handle = handle;
    this.#isDefault = handle <= CU_STREAM_PER_THREAD;
    this.#isOwned = owned;
    this.owner = owner;
    const releaseDevice = owned ? device.hold() : null;
    this.#holders = new Holders(() => {
      if (releaseDevice === null) return; // a foreign stream is someone else's to destroy
      const { driver } = device;
      device.within(() => checkCuda(driver, "cuStreamDestroy_v2", driver.stream.cuStreamDestroy_v2(handle)));
      releaseDevice();
    });
  }

  /** A stream that someone else destroys. `owner` is kept alive as long as this object. */
  static fromHandle(device: CudaDevice, handle: bigint, owner?: unknown): CudaStream {
    return new CudaStream(device, handle, false, owner);
  }

  /** A stream that `close` destroys. Used by {@linkcode CudaDevice.createStream}. */
  static adopt(device: CudaDevice, handle: bigint): CudaStream {
    return new CudaStream(device, handle, true, undefined);
  }

  /**
   * `CUstream`, the same as `cudaStream_t`.
   *
   * @throws {TypeError} if the stream is closed and gone
   */
  get handle(): bigint {
    if (this.#holders.isDestroyed) throw new TypeError("Cannot use a closed CudaStream");
    return this.#handle;
  }

  /**
   * Makes a call of the driver that names this stream. A stream that somebody has created says itself which context is
   * meant. For a default stream, and for a driver that wants a current context all the same (it then does nothing but say
   * so), the device's context is made current, which costs two calls more.
   *
   * @returns what the driver returned
   */
  enqueue(call: () => number): number {
    if (!this.#isDefault) {
      const code = call();
      if (code !== CUresult.CUDA_ERROR_INVALID_CONTEXT) return code;
    }
    return this.device.within(call);
  }

  /** Marks the present end of the stream with an event: a new one, or the given one. */
  record(event: CudaEvent = this.device.createEvent()): CudaEvent {
    const { driver } = this.device;
    const { handle } = this;
    checkCuda(driver, "cuEventRecord", this.enqueue(() => driver.event.cuEventRecord(event.handle, handle)));
    return event;
  }

  /** Makes all later work of this stream wait for an event, or for everything enqueued so far in another stream. */
  wait(other: CudaEvent | CudaStream): void {
    if (other instanceof CudaStream) {
      if (other.handle === this.handle && other.device === this.device) return;
      using event = other.record();
      this.wait(event); // the driver keeps an event that is waited for until the wait is over
      return;
    }
    const { driver } = this.device;
    const { handle } = this;
    checkCuda(
      driver,
      "cuStreamWaitEvent",
      this.enqueue(() => driver.stream.cuStreamWaitEvent(handle, other.handle, 0)),
    );
  }

  /** Blocks until everything enqueued so far is done. */
  synchronize(): void {
    const { driver } = this.device;
    const { handle } = this;
    checkCuda(driver, "cuStreamSynchronize", this.enqueue(() => driver.stream.cuStreamSynchronize(handle)));
  }

  /**
   * Settles when everything enqueued so far is done. The event loop goes on meanwhile, and no thread of the driver runs
   * JavaScript: the stream closes the end of a pipe, which the event loop sees.
   *
   * @throws {CudaError} if the work has failed
   */
  async completed(): Promise<void> {
    const { device } = this;
    const { driver } = device;
    const { handle } = this;
    const wakeup = createWakeup();
    const { callback, argument } = wakeup;
    const code = this.enqueue(() => driver.stream.cuLaunchHostFunc(handle, callback, argument));
    if (code !== CUresult.CUDA_SUCCESS) wakeup.cancel();
    // A context that has failed calls no host functions any more: without this look the wait would never end.
    const { clearInterval, setInterval } = builtin("node:timers");
    const watch = setInterval(() => this.#hasFailed() && wakeup.cancel(), failureCheck);
    try {
      await wakeup.said;
    } finally {
      clearInterval(watch);
    }
    checkCuda(driver, "cuLaunchHostFunc", code);
    if (this.#hasFailed()) checkCuda(driver, "cuStreamQuery", this.#query());
  }

  #query(): number {
    const { handle } = this;
    return this.enqueue(() => this.device.driver.stream.cuStreamQuery(handle));
  }

  #hasFailed(): boolean {
    const code = this.#query();
    return code !== CUresult.CUDA_SUCCESS && code !== CUresult.CUDA_ERROR_NOT_READY;
  }

  /** Its priority: see {@linkcode CudaDevice.priorityRange}. */
  get priority(): number {
    using arena = new NativeArena();
    const out = arena.out("i32");
    const { driver } = this.device;
    const { handle } = this;
    const code = this.enqueue(() => driver.stream.cuStreamGetPriority(handle, out.$address));
    checkCuda(driver, "cuStreamGetPriority", code);
    return out.value;
  }

  /** Whether it ignores the legacy default stream, instead of waiting for it and holding it up. */
  get isNonBlocking(): boolean {
    using arena = new NativeArena();
    const out = arena.out("u32");
    const { driver } = this.device;
    const { handle } = this;
    const code = this.enqueue(() => driver.stream.cuStreamGetFlags(handle, out.$address));
    checkCuda(driver, "cuStreamGetFlags", code);
    return (out.value & CU_STREAM.NON_BLOCKING) !== 0;
  }

  /** Whether everything enqueued so far is done. */
  get isDone(): boolean {
    const code = this.#query();
    if (code !== CUresult.CUDA_ERROR_NOT_READY) checkCuda(this.device.driver, "cuStreamQuery", code);
    return code === CUresult.CUDA_SUCCESS;
  }

  /**
   * Keeps the stream, and the context that it belongs to, until `release` is called, which must be once, even if both are
   * closed meanwhile. What a buffer does with its home stream, on which it will be freed.
   *
   * @throws {TypeError} if the stream is closed, or its Cuda
   */
  retain(): void {
    if (this.#holders.isClosed) throw new TypeError("Cannot use a closed CudaStream");
    if (!this.#isOwned) this.device.retain(); // a stream of our own holds its device anyway
    this.#holders.retain();
  }

  /** Ends one {@linkcode CudaStream.retain}. */
  release(): void {
    this.#holders.release();
    if (!this.#isOwned) this.device.release();
  }

  /**
   * Destroys the stream once no buffer has it as its home and its work is done, without waiting for either. A foreign
   * stream is left alone. Closing twice is harmless.
   */
  close(): void {
    this.#holders.close();
  }

  /** Destroys the stream once its work is done. */
  [Symbol.dispose](): void {
    this.close();
  }
}
