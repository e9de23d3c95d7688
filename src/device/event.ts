/**
 * An event: a point in a stream's order.
 *
 * @module
 */
import { checkMade, showAs, showGiven } from "../layout/mod.ts";
import { CUresult } from "../../bindings/cuda_types.ts";
import { ffiPort, NativeArena } from "../ffi/mod.ts";
import { checkSameDevice } from "./check_device.ts";
import type { CudaDevice } from "./device.ts";
import { checkCuda, checkRelease, type CudaDriver, cudaError, innermost, observerOf } from "../driver/mod.ts";
import { besideCaptures } from "./relaxed_capture.ts";
import { closeIfDropped, type DroppedState, registerFinalizer } from "./finalizer.ts";
import { handleBytes, type IpcHandle, writeHandle } from "./ipc_handle.ts";
import { noteEventDestroyed } from "./graph/active_captures.ts";
import { isDoneByPoll } from "./stream_internals.ts";

/** The state that destroys an event which its user has dropped. */
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

// law device/destroy: device/check_device, device/graph/active_captures
function destroy(device: CudaDevice, handle: bigint): void {
  noteEventDestroyed(device.driver, handle);
  if (device.isGone) return; // the event was destroyed with its context
  const { driver } = device;
  checkRelease(driver, "cuEventDestroy_v2", driver.event.cuEventDestroy_v2(handle));
}

/** A CUDA event. */
export class CudaEvent {
  /** The device whose context it belongs to. */
  readonly device: CudaDevice;
  /** Whether the event can be shared with other processes, or came from one. */
  readonly isInterprocess: boolean;
  readonly #handle: bigint;
  readonly #argument: bigint | number;
  /** Whether it was created without timing, which is not known for imported events. */
  readonly #isUntimed: boolean;
  #closed = false;
  #state: EventState | null = null;

  /** Use {@linkcode CudaDevice.createEvent}. */
  constructor(device: CudaDevice, handle: bigint, isInterprocess = false, isUntimed = false) {
    checkMade(handle, "CudaEvent", "device.createEvent() or stream.record()");
    this.device = device;
    this.isInterprocess = isInterprocess;
    this.#handle = handle;
    this.#argument = ffiPort().handle(handle);
    this.#isUntimed = isUntimed;
  }

  /**
   * Makes the finalizer close the event if its user drops it. An event that is always closed needs none, which is
   * faster.
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
   * The handle in the form that the runtime passes fastest, for the driver functions that take it (`cuEventRecord`).
   *
   * @internal
   * @param doing the operation, for the error: `record`
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
  /** The handle, for calls that need no stream: handles of a destroyed context are invalid. */
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

  // law device/CudaEvent.completed: device/stream, checker/lifetime
  /**
   * Settles when the work before the event is done. Creates a stream: to wait for all work of a stream, the stream's
   * own `completed` is cheaper.
   *
   * @throws {CudaError} if the work has failed
   */
  async completed(): Promise<void> {
    using stream = this.device.createStream();
    observerOf(this.device.driver)?.closedByUser(stream.handle); // should the Cuda be closed meanwhile
    stream.wait(this);
    await stream.completed();
  }

  // law device/CudaEvent.isDone: device/stream, memory/beside_captures
  /** Whether the work before the event is done. */
  get isDone(): boolean {
    return this.#isDone(this.device.driver);
  }

  /** The same, for code that polls: see {@linkcode isDoneByPoll}. */
  get [isDoneByPoll](): boolean {
    return this.#isDone(innermost(this.device.driver));
  }

  #isDone(driver: CudaDriver): boolean {
    const handle = this.#there("ask");
    const code = besideCaptures(driver, () => driver.event.cuEventQuery(handle));
    if (code !== CUresult.CUDA_ERROR_NOT_READY) checkCuda(driver, "cuEventQuery", code);
    return code === CUresult.CUDA_SUCCESS;
  }

  // law device/CudaEvent.millisecondsSince: device/event
  /**
   * Milliseconds between two events made with `timing: true`, both recorded and done.
   *
   * @throws {TypeError} if one is not an event, is closed, of another device, or was made without timing
   * @throws {CudaError} CUDA_ERROR_INVALID_HANDLE if one was never recorded, CUDA_ERROR_NOT_READY if the work before it
   *   is not done
   */
  millisecondsSince(start: CudaEvent): number {
    if (!(start instanceof CudaEvent)) {
      throw new TypeError(`Cannot measure time: expected the CudaEvent to start from, got ${showGiven(start)}`);
    }
    const [from, to] = [start.#there("measure time from"), this.#there("measure time to")];
    checkSameDevice(start, this.device, "Cannot measure time since an event");
    if (start.#isUntimed || this.#isUntimed) throw untimed(start.#isUntimed ? "from" : "to");
    using arena = new NativeArena();
    const out = arena.out("f32");
    const { driver } = this.device;
    const elapsed = (one: bigint, other: bigint) => driver.event.cuEventElapsedTime(out.$address, one, other);
    const code = elapsed(from, to);
    if (code !== CUresult.CUDA_SUCCESS) {
      const isUnrecorded = (event: bigint) => elapsed(event, event) === CUresult.CUDA_ERROR_INVALID_HANDLE;
      throw cudaError(driver, "cuEventElapsedTime", code, noTime(code, () => [isUnrecorded(from), isUnrecorded(to)]));
    }
    return out.value;
  }

  /**
   * A handle of the event for another process, which opens it with `device.importEvent()` and may record it, wait for
   * it and query it. A wait is for what was recorded last when the wait is made: record first, and only then notify the
   * other process to wait.
   *
   * @throws {TypeError} if it was not created with `interprocess: true`
   */
  exportHandle(): IpcHandle {
    if (!this.isInterprocess) {
      throw new TypeError("Cannot export an event that is not interprocess: create it with { interprocess: true }");
    }
    using arena = new NativeArena();
    const { address, bytes } = arena.bytes(handleBytes);
    const { driver } = this.device;
    const handle = this.#open("export");
    const code = this.device.withContext(() => driver.ipc.cuIpcGetEventHandle(address, handle));
    checkCuda(driver, "cuIpcGetEventHandle", code);
    return writeHandle("event", this.device, bytes);
  }

  /** Whether `close` has been called. */
  get isClosed(): boolean {
    return this.#closed;
  }

  // law device/CudaEvent.close: device/stream, device/dropped
  /** Destroys the event; waits for it that are already enqueued remain. Closing twice is harmless. */
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

function untimed(which: "from" | "to"): TypeError {
  return new TypeError(
    `Cannot measure time ${which} an event that was created without timing: create both with ` +
      "device.createEvent({ timing: true }), and pass them to stream.record(event)",
  );
}

// law device/noTime: device/event
/**
 * Explains why there is no time between two events.
 *
 * @param unrecorded whether the first and the second were never recorded: the driver is only queried if it matters
 */
function noTime(code: number, unrecorded: () => readonly [from: boolean, to: boolean]): string {
  if (code === CUresult.CUDA_ERROR_NOT_READY) {
    return "The work before one of the two events has not completed: wait for the later one, " +
      "await event.completed(), before measuring";
  }
  if (code !== CUresult.CUDA_ERROR_INVALID_HANDLE) return "";
  const [from, to] = unrecorded();
  const which = from && to ? "Neither event was" : from ? "The first event was not" : "The second event was not";
  return !from && !to
    ? "Both events must be created with timing, and be recorded"
    : `${which} recorded, or was last recorded in a capture: call stream.record(event) before the measured work, ` +
      "and after it";
}
