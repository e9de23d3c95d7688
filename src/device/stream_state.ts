/**
 * State shared by the objects of one stream, which destroys the stream.
 *
 * @module
 */
import { CU_STREAM_PER_THREAD } from "../../bindings/cuda_types.ts";
import { checkRelease, type CudaDriver, observerOf } from "../driver/mod.ts";
import type { CudaDevice } from "./device.ts";
import type { DroppedState } from "./finalizer.ts";
import { ReferenceCount } from "./reference_count.ts";
import type { CudaStream } from "./stream.ts";
import type { StreamInternals, StreamWatcher } from "./stream_internals.ts";

/** Makes and shuts the successor: the object that retainers of a stream continue with after its user has closed it. */
export interface Successors {
  /** Makes an object of the stream that `close` leaves open. */
  make(state: StreamState): CudaStream;
  /** Called when the stream is destroyed. */
  shut(successor: CudaStream): void;
}

/** State shared by the objects of one stream. It does not reference the user's object, which may be dropped. */
export class StreamState implements StreamInternals, DroppedState {
  readonly kind = "CudaStream";
  readonly device: CudaDevice;
  readonly handle: bigint;
  /** Whether `close` destroys it. */
  readonly isOwned: boolean;
  readonly isNonBlocking: boolean;
  /** What keeps a foreign stream alive. */
  readonly owner: unknown;
  readonly references: ReferenceCount;
  /** The name that its user gave it. */
  name: string | null = null;
  watcher: StreamWatcher | null = null;
  /**
   * Whether everything was done at the last driver query, and nothing was enqueued since. Never true for a stream on
   * which other code may enqueue.
   */
  isIdle = false;
  /** Whether its handle was ever passed to other code. */
  isShared: boolean;
  beforeClose: (() => void) | null = null;
  readonly #successors: Successors;
  #successor: CudaStream | null = null;

  // law device/StreamState.constructor: device/stream, memory/memory_programs, sim/behaviours
  /**
   * @param retainedDevice retained by a stream of our own, which `close` destroys; null for a foreign one
   * @param successors makes the object that retainers of the stream continue with
   */
  constructor(
    device: CudaDevice,
    handle: bigint,
    isNonBlocking: boolean,
    owner: unknown,
    retainedDevice: Disposable | null,
    successors: Successors,
  ) {
    this.device = device;
    this.handle = handle;
    this.isOwned = retainedDevice !== null;
    this.isShared = !this.isOwned;
    this.isNonBlocking = isNonBlocking;
    this.owner = owner;
    this.#successors = successors;
    this.references = new ReferenceCount(() => {
      if (this.#successor !== null) successors.shut(this.#successor);
      if (retainedDevice === null) return; // the owner of a foreign stream destroys it
      const { driver } = device;
      try {
        const code = device.withContext(() => driver.stream.cuStreamDestroy_v2(handle));
        checkRelease(driver, "cuStreamDestroy_v2", code);
      } finally {
        retainedDevice[Symbol.dispose]();
      }
    });
  }

  get driver(): CudaDriver {
    return this.device.driver;
  }

  /** Whether the handle stands for a default stream of the current context. */
  get isDefault(): boolean {
    return this.handle <= CU_STREAM_PER_THREAD;
  }

  get isClosedByUser(): boolean {
    return this.references.isClosed;
  }

  /** The same as `isClosedByUser`, for the finalizer. */
  get closed(): boolean {
    return this.references.isClosed;
  }

  // law device/StreamState.isHandleStable: order/pageable_in_use
  get isHandleStable(): boolean {
    return (this.isOwned || this.isDefault) && !this.isClosedByUser;
  }

  get successor(): CudaStream {
    return this.#successor ??= this.#successors.make(this);
  }

  // law device/StreamState.passed: device/idle_streams
  passed(): void {
    this.isIdle = !this.isShared;
    this.watcher?.onPassed();
  }

  // law device/StreamState.close: device/dropped, order/pageable_in_use
  close(): void {
    this.watcher?.onClosing();
    this.references.close();
    if (!this.references.isDestroyed) observerOf(this.driver)?.closedByUser(this.handle);
  }
}
