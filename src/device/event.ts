/**
 * An event: a point in a stream's order.
 *
 * @module
 */
import { checkMade, showAs } from "../layout/mod.ts";
import { CUresult } from "../../bindings/cuda_types.ts";
import { ffiPort, NativeArena } from "../ffi/mod.ts";
import { checkSameDevice } from "./check_device.ts";
import type { CudaDevice } from "./device.ts";
import { checkCuda, checkRelease, type CudaDriver } from "../driver/mod.ts";
import { besideCaptures } from "./relaxed_capture.ts";
import { closeIfDropped, type DroppedState, registerFinalizer } from "./finalizer.ts";
import { handleBytes, type IpcHandle, writeHandle } from "./ipc_handle.ts";

/** What destroys an event that its user has dropped. */
class EventState implements DroppedState {
  readonly kind = "CudaEvent";
  closed = false;
  readonly #device: CudaDevice;
  readonly #handle: bigint;

  constructor(device: CudaDevice, handle: bigint) {
    this.#device = device;
    this.#handle = handle;
  }

  get driver(): CudaDriver {
    return this.#device.driver;
  }

  // law device/EventState.close: device/dropped
  close(): void {
    destroy(this.#device, this.#handle);
  }
}

// law device/destroy: device/check_device
function destroy(device: CudaDevice, handle: bigint): void {
  if (device.isGone) return; // the event went with its context
  const { driver } = device;
  checkRelease(driver, "cuEventDestroy_v2", driver.event.cuEventDestroy_v2(handle));
}

/** A CUDA event. */
export class CudaEvent {
  /** The device whose context it belongs to. */
  readonly device: CudaDevice;
  /** Whether other processes can be given the event, or it was given by one. */
  readonly isInterprocess: boolean;
  readonly #handle: bigint;
  readonly #argument: bigint | number;
  #closed = false;
  #state: EventState | null = null;

  /** Use {@linkcode CudaDevice.createEvent}. */
  constructor(device: CudaDevice, handle: bigint, isInterprocess = false) {
    checkMade(handle, "CudaEvent", "device.createEvent() or stream.record()");
    this.device = device;
    this.isInterprocess = isInterprocess;
    this.#handle = handle;
    this.#argument = ffiPort().handle(handle);
  }

  /**
   * Has the event closed if its user drops it. An event that is closed for certain does without, which is faster.
   *
   * @internal
   */
  [registerFinalizer](): void {
    this.#state = new EventState(this.device, this.#handle);
    closeIfDropped(this, this.#state);
  }

  /**
   * `CUevent`, the same as `cudaEvent_t`.
   *
   * @throws {TypeError} if the event is closed
   */
  get handle(): bigint {
    return this.#open("use");
  }

  /**
   * The handle as the runtime passes it fastest, for the functions of the driver that take one so (`cuEventRecord`).
   *
   * @param doing what the call is about to do with the event, for the error: `record`
   * @throws {TypeError} if the event is closed
   */
  argumentFor(doing: string): bigint | number {
    if (this.#closed) this.#open(doing);
    return this.#argument;
  }

  #open(doing: string): bigint {
    if (this.#closed) throw new TypeError(`Cannot ${doing} a closed CudaEvent`);
    return this.#handle;
  }

  // law device/CudaEvent.there: device/check_device
  /** The handle, for calls that need no stream: those of a destroyed context are invalid. */
  #there(doing: string): bigint {
    const handle = this.#open(doing);
    const { device } = this;
    if (device.isGone) {
      throw new TypeError(`Cannot ${doing} a CudaEvent of ${device}: its Cuda is closed`);
    }
    return handle;
  }

  // law device/CudaEvent.synchronize: memory/beside_captures, device/stream
  /** Blocks until the work before the event is done. */
  synchronize(): void {
    const { driver } = this.device;
    const handle = this.#there("synchronize");
    checkCuda(driver, "cuEventSynchronize", besideCaptures(driver, () => driver.event.cuEventSynchronize(handle)));
  }

  // law device/CudaEvent.completed: device/stream
  /**
   * Settles when the work before the event is done. Costs a stream: to wait for all of a stream's work, its own
   * `completed` is cheaper.
   *
   * @throws {CudaError} if the work has failed
   */
  async completed(): Promise<void> {
    using stream = this.device.createStream();
    stream.wait(this);
    await stream.completed();
  }

  // law device/CudaEvent.isDone: device/stream, memory/beside_captures
  /** Whether the work before the event is done. */
  get isDone(): boolean {
    const { driver } = this.device;
    const handle = this.#there("ask");
    const code = besideCaptures(driver, () => driver.event.cuEventQuery(handle));
    if (code !== CUresult.CUDA_ERROR_NOT_READY) checkCuda(driver, "cuEventQuery", code);
    return code === CUresult.CUDA_SUCCESS;
  }

  /** Milliseconds between two events made with `timing: true`, both done. */
  millisecondsSince(start: CudaEvent): number {
    const [from, to] = [start.#there("measure time from"), this.#there("measure time to")];
    checkSameDevice(start, this.device, "Cannot measure time since an event");
    using arena = new NativeArena();
    const out = arena.out("f32");
    const { driver } = this.device;
    const code = driver.event.cuEventElapsedTime(out.$address, from, to);
    checkCuda(driver, "cuEventElapsedTime", code);
    return out.value;
  }

  /**
   * A handle of the event for another process, which opens it with `device.importEvent()` and may record it, wait for
   * it and query it. A wait is for what was recorded last when the wait is made: record first, and only then tell the
   * other process to wait.
   *
   * @throws {TypeError} if it was not created with `interprocess: true`
   */
  exportHandle(): IpcHandle {
    if (!this.isInterprocess) {
      throw new TypeError("Cannot export an event of this process alone: create it with { interprocess: true }");
    }
    using arena = new NativeArena();
    const { address, bytes } = arena.bytes(handleBytes);
    const { driver } = this.device;
    const handle = this.#open("export");
    const code = this.device.withContext(() => driver.ipc.cuIpcGetEventHandle(address, handle));
    checkCuda(driver, "cuIpcGetEventHandle", code);
    return writeHandle("event", this.device, bytes);
  }

  // law device/CudaEvent.close: device/stream, device/dropped
  /** Destroys the event; waits for it that are enqueued already are kept. Closing twice is harmless. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#state !== null) this.#state.closed = true;
    destroy(this.device, this.#handle);
  }

  /** Destroys the event. */
  [Symbol.dispose](): void {
    this.close();
  }

  static {
    showAs(
      CudaEvent,
      (event) =>
        `of ${event.device}${event.isInterprocess ? ", for other processes" : ""}${event.#closed ? ", closed" : ""}`,
    );
  }
}
