/**
 * The work of one call: the bytes that it touches are checked before the driver is called, and noted once the driver
 * has accepted the call.
 *
 * @module
 */
import type { Touch } from "./capture.ts";
import type { KernelRecording } from "./journal.ts";
import type { StreamClock } from "./vector_clocks.ts";
import type { CheckerState } from "./checker_state.ts";

/** The most rows of a rectangle or a box that are tracked one by one. The rest is not tracked. */
const maxRows = 1024;

/** Rows of equal length. */
export interface Rows {
  /** Address of the first byte of the first row. */
  readonly address: bigint;
  /** Bytes of a row. */
  readonly width: number;
  /** Bytes from one row to the next. */
  readonly pitch: number;
  /** Rows of a slice. */
  readonly height: number;
  /** Bytes from one slice to the next. */
  readonly slicePitch: number;
  /** Slices. */
  readonly depth: number;
}

/** Work that is about to be enqueued. */
export class PendingCall {
  /** The stream; null if the call names none that exists. */
  readonly stream: StreamClock | null;
  /** The driver's function. */
  readonly call: string;
  /** What it touches. */
  readonly touches: Touch[] = [];
  readonly #checker: CheckerState;
  /** Whether it touches no bytes: the driver enqueues nothing for such a copy or fill. */
  #touchesNone = false;

  /** Use {@linkcode CheckerState.pendingCall}. */
  constructor(checker: CheckerState, call: string, stream: StreamClock | null) {
    this.#checker = checker;
    this.call = call;
    this.stream = stream;
  }

  /** Adds bytes that the work reads. Reports them if they are freed. */
  reads(address: bigint, bytes: bigint | number): this {
    return this.#touch(address, Number(bytes), false);
  }

  /** Adds bytes that the work writes. Reports them if they are freed. */
  writes(address: bigint, bytes: bigint | number): this {
    return this.#touch(address, Number(bytes), true);
  }

  // law checker/PendingCall.rows: checker/checker
  /** Adds rows that the work reads or writes; those without gaps between them count as one. */
  rows({ address, width, pitch, height, slicePitch, depth }: Rows, writes: boolean): this {
    if (width === 0 || height === 0 || depth === 0) {
      this.#touchesNone = true;
      return this;
    }
    const isSolid = pitch === width || height === 1;
    if (isSolid && (depth === 1 || slicePitch === width * height)) {
      return this.#touch(address, width * height * depth, writes);
    }
    let left = maxRows;
    for (let z = 0; z < depth && left > 0; z++) {
      const slice = address + BigInt(z * slicePitch);
      if (isSolid) this.#touch(slice, width * height, writes);
      else for (let y = 0; y < height && left > 0; y++, left--) this.#touch(slice + BigInt(y * pitch), width, writes);
      left--;
    }
    return this;
  }

  /** Adds memory that is passed to a kernel. */
  usesInKernel(start: number, writes: boolean | null): void {
    this.#checker.checkNotFreed(this.stream, start, start + 1, this.call, "uses");
    const known = this.#checker.memory.find(start);
    if (known !== undefined) this.touches.push({ start: known.start, end: known.end, kind: "kernel", writes });
  }

  /** Whether it is a copy or a fill of no bytes, for which the driver enqueues nothing. */
  get isNothing(): boolean {
    return this.#touchesNone && this.touches.length === 0;
  }

  // law checker/PendingCall.accepted: checker/schedule
  /**
   * Notes that the driver has accepted the call: the work is enqueued, or captured.
   *
   * @param recording what its kernels will touch
   */
  accepted(recording: KernelRecording | null = null): void {
    if (this.isNothing) return;
    if (this.stream !== null) this.#checker.enqueue(this.stream, this.call, this.touches, null, recording);
  }

  #touch(address: bigint, bytes: number, writes: boolean): this {
    if (bytes === 0) this.#touchesNone = true;
    const start = Number(address);
    if (bytes === 0 || address === 0n || !Number.isSafeInteger(start + bytes)) return this;
    this.#checker.checkNotFreed(this.stream, start, start + bytes, this.call, writes ? "writes" : "reads");
    this.touches.push({ start, end: start + bytes, kind: writes ? "write" : "read", writes });
    return this;
  }
}
