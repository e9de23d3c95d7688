/**
 * DLPack: the types of the protocol, and an exported tensor. The two directions are in `export.ts` and `import.ts`.
 *
 * @module
 */
import { DLDeviceType, DLManagedTensor, DLManagedTensorVersioned } from "../../bindings/dlpack.ts";
import type { CudaDevice, CudaStream } from "../device/mod.ts";
import { DeferredFinalizer, type FinalizerState, layoutOf, littleEndian, readForeign } from "../ffi/mod.ts";
import { checkMade, type OptionNames, showAs } from "../layout/mod.ts";
import type { MemoryBuffer } from "../memory/mod.ts";
import { callRelease } from "../native/mod.ts";
import { ExchangeError } from "../order/mod.ts";

/** Options of {@linkcode StridedMemoryView.toDlpack} and of `__dlpack__()`. */
export interface ToDlpackOptions {
  /**
   * The stream on which the consumer will use the memory: it waits for the work that the producer has enqueued. As a
   * handle (a bigint), 1n is the legacy default stream, 2n the per-thread one. `null` or -1n: no ordering. Default: the
   * legacy default stream, as DLPack specifies. Host memory takes no stream: by default the host waits for page-locked
   * memory, until its home stream has passed the work that it holds.
   */
  readonly stream?: CudaStream | bigint | null;
  /**
   * The newest version that the consumer understands. Below 1.0 the consumer gets the old struct, without flags. `null`
   * (the default): 1.3.
   */
  readonly maxVersion?: readonly [major: number, minor: number] | null;
  /** `true`: always copy; `false`: never; `null` (the default): only to reach another device. */
  readonly copy?: boolean | null;
  /**
   * Where the consumer wants the array, in the form of `__dlpack_device__()`: `[1, 0]` is the host, `[2, n]` CUDA
   * device n. `null` (the default): where it is. A copy to the host is complete on return; the consumer's stream waits
   * for a copy to a device.
   */
  readonly dlDevice?: readonly [type: number, id: number] | null;
}

/** The names of {@linkcode ToDlpackOptions}. */
export const toDlpackOptionNames: OptionNames<ToDlpackOptions> = {
  stream: true,
  maxVersion: true,
  copy: true,
  dlDevice: true,
};

/** Options of {@linkcode StridedMemoryView.fromDlpack}. */
export interface ImportOptions {
  /**
   * The stream on which the array will be used; the producer's work comes before it. Default: the default stream of
   * `device`, or the one that the producer names. `null`: no ordering, neither now nor when the array is passed on or
   * returned.
   */
  readonly stream?: CudaStream | null;
  /** The device of the array, if no stream implies it. */
  readonly device?: CudaDevice;
}

/** An object that exports itself by DLPack. */
export interface DlpackSource {
  /**
   * Exports the array: the consumer releases the tensor. A producer that makes its own structs returns the address of
   * one.
   */
  __dlpack__(options?: ToDlpackOptions): DlpackTensor | DlpackPointer;
  /** DLPack's device type and number. Without this method the memory may be anywhere. */
  __dlpack_device__?(): readonly [type: number, id: number];
}

/** Address of a struct that the caller owns: one of the two. */
export interface DlpackPointer {
  /** `DLManagedTensorVersioned *`. */
  readonly managedTensorVersioned?: bigint;
  /** `DLManagedTensor *`, from before DLPack 1.0. */
  readonly managedTensor?: bigint;
}

/** Whether an object speaks DLPack. */
export function isDlpackSource(source: unknown): source is DlpackSource {
  return typeof source === "object" && source !== null && "__dlpack__" in source &&
    typeof source.__dlpack__ === "function";
}

/** What an export knows of its consumer. */
export interface ReleaseState {
  /** Whether the consumer has called the deleter. */
  isReleased(): boolean;
}

/**
 * An exported tensor: a `DLManagedTensorVersioned *`, or the older `DLManagedTensor *`, for a consumer. Like Python's
 * capsule it is taken by exactly one consumer, which must then call the deleter once.
 */
export class DlpackTensor {
  /** Version of the struct, `null` for the old struct that has none. */
  readonly version: readonly [major: number, minor: number] | null;
  readonly #state: TensorState;

  // law dlpack/DlpackTensor.constructor: dlpack/export, dlpack/import, dlpack/programs, memory/collection
  /**
   * Wraps a tensor that a producer has made. `releaseState` reports whether it has been released; `state` replaces the
   * default state, for producers that know more than that.
   */
  constructor(
    ptr: bigint,
    version: DlpackTensor["version"],
    releaseState: ReleaseState,
    state: TensorState = new ForeignTensor(ptr, version !== null, releaseState),
  ) {
    checkMade(releaseState, "DlpackTensor", "view.toDlpack()");
    this.version = version;
    this.#state = state;
    finalizer.register(this, state);
  }

  // law dlpack/DlpackTensor.ptr: dlpack/export, dlpack/import, dlpack/programs, memory/collection
  /** Address of the struct, for inspection only. A consumer calls {@linkcode DlpackTensor.take}. */
  get ptr(): bigint {
    const { ptr, closed } = this.#state;
    if (closed) throw new ExchangeError("Cannot use this DLPack tensor: it is closed, or a consumer has taken it over");
    return ptr;
  }

  /** Whether the consumer has called the deleter, and so returned the memory. */
  get released(): boolean {
    return this.#state.isReleased();
  }

  // law dlpack/DlpackTensor.take: dlpack/export, dlpack/import, dlpack/programs, memory/collection
  /**
   * Transfers ownership of the struct to a consumer, which must call its deleter once.
   *
   * @returns address of the struct
   * @throws {ExchangeError} if it has been taken before
   */
  take(): bigint {
    const { ptr } = this;
    this.#state.closed = true;
    return ptr;
  }

  // law dlpack/DlpackTensor.close: dlpack/export, dlpack/import, dlpack/programs, memory/collection
  /** Releases the tensor if no consumer has taken it. Closing twice is harmless. */
  close(): void {
    if (this.#state.closed) return;
    this.#state.closed = true;
    this.#state.release();
  }

  /** Releases the tensor if no consumer has taken it over. */
  [Symbol.dispose](): void {
    this.close();
  }

  static {
    showAs(
      DlpackTensor,
      ({ version, released }) =>
        `${version === null ? "without a version" : version.join(".")}${released ? ", released" : ""}`,
    );
  }
}

/** A tensor's state, until a consumer has taken it. It outlives the DlpackTensor, and must not reference it. */
export interface TensorState extends FinalizerState, ReleaseState {
  /** Address of the struct. */
  readonly ptr: bigint;
  /** Whether the struct was taken or released. */
  closed: boolean;

  /** Releases the tensor, as a consumer would. */
  release(): void;
  /** Releases a collected tensor: anything that may fail is left to the next poll. */
  drop(): void;
}

/** A tensor about which nothing is known but its struct. */
class ForeignTensor implements TensorState {
  readonly ptr: bigint;
  readonly #isVersioned: boolean;
  readonly #releaseState: ReleaseState;
  closed = false;

  constructor(ptr: bigint, isVersioned: boolean, releaseState: ReleaseState) {
    this.ptr = ptr;
    this.#isVersioned = isVersioned;
    this.#releaseState = releaseState;
  }

  isReleased(): boolean {
    return this.#releaseState.isReleased();
  }

  release(): void {
    callDeleter(this.ptr, this.#isVersioned);
  }

  drop(): void {
    this.release();
  }
}

/** Releases tensors that are collected before a consumer has taken them. */
const finalizer = new DeferredFinalizer<TensorState>((state) => state.drop());

const deleterAt = {
  versioned: layoutOf(DLManagedTensorVersioned).offsets.deleter,
  legacy: layoutOf(DLManagedTensor).offsets.deleter,
};

// law dlpack/callDeleter: dlpack/export, dlpack/import, dlpack/programs, memory/collection
/** Calls the deleter in a tensor's struct, if it has one. */
export function callDeleter(ptr: bigint, versioned: boolean): void {
  const at = versioned ? deleterAt.versioned : deleterAt.legacy;
  const deleter = readForeign(ptr, at + 8).getBigUint64(at, littleEndian);
  if (deleter !== 0n) callRelease(deleter, ptr);
}

/** DLPack's device of an array. */
export function dlpackDevice(
  { buffer: { device } }: { readonly buffer: Pick<MemoryBuffer, "device"> },
): [type: number, id: number] {
  return device === null ? [DLDeviceType.kDLCPU, 0] : [DLDeviceType.kDLCUDA, device.ordinal];
}
