/**
 * The streams of a program, and work on them through the driver's own calls, as another library would do it.
 *
 * @module
 */
import { CU_STREAM } from "../../../bindings/cuda_types.ts";
import { type Cuda, CudaStream } from "../../../mod.ts";
import type { CudaDriver } from "../../../src/driver/driver.ts";
import type { How } from "../stream_lanes.ts";
import { Raw } from "../raw_driver.ts";
import { deviceOfLane, isForeign, kinds } from "./mod.ts";

/** A contiguous run of bytes. */
export interface Run {
  readonly ptr: bigint;
  readonly bytes: number;
}

/** Lanes by number: created on first use. */
export class Streams {
  readonly raw: Raw;
  readonly #cuda: Cuda;
  readonly #driver: CudaDriver;
  readonly #streams = new Map<number, CudaStream>();
  readonly #events = new Map<number, bigint>();
  readonly #destroyed = new Set<number>();

  constructor(cuda: Cuda, devices: number) {
    this.#cuda = cuda;
    this.#driver = cuda.driver;
    this.raw = new Raw(cuda.driver, devices);
  }

  /** A lane as an object. */
  stream(lane: number): CudaStream {
    let known = this.#streams.get(lane);
    if (known === undefined) {
      known = this.#make(lane);
      this.#streams.set(lane, known);
    }
    return known;
  }

  /** A lane's handle, valid in the driver as long as the stream is held. */
  handle(lane: number): bigint {
    return this.stream(lane).orSuccessor.handle;
  }

  #make(lane: number): CudaStream {
    const device = this.#cuda.device(deviceOfLane(lane));
    if (isForeign(lane)) {
      this.use(lane);
      const handle = this.raw.word((out) => this.#driver.stream.cuStreamCreate(out, CU_STREAM.NON_BLOCKING));
      return CudaStream.fromHandle(device, handle);
    }
    switch (kinds[lane % kinds.length]) {
      case "legacy":
        return device.defaultStream;
      case "thread":
        return device.perThreadStream;
      case "blocking":
        return device.createStream({ nonBlocking: false });
      default:
        return device.createStream();
    }
  }

  /** Ends a lane: its owner closes or destroys it, whatever is enqueued on it. */
  destroy(lane: number): void {
    const stream = this.#streams.get(lane);
    this.#destroyed.add(lane);
    if (stream === undefined) return;
    if (isForeign(lane)) this.raw.ok(this.#driver.stream.cuStreamDestroy_v2(stream.handle));
    else stream.close();
  }

  /** Makes the context of a lane's device current. */
  use(lane: number): void {
    this.raw.use(deviceOfLane(lane));
  }

  /** Fills bytes. */
  fill(lane: number, runs: readonly Run[], value: number): void {
    const handle = this.handle(lane);
    this.use(lane);
    for (const { ptr, bytes } of runs) {
      this.raw.ok(this.#driver.fill.cuMemsetD8Async(ptr, value, BigInt(bytes), handle));
    }
  }

  /** Copies bytes to one address, back to back. */
  read(lane: number, runs: readonly Run[], to: bigint): void {
    const handle = this.handle(lane);
    this.use(lane);
    let at = to;
    for (const { ptr, bytes } of runs) {
      this.raw.ok(this.#driver.copy.cuMemcpyAsync(at, ptr, BigInt(bytes), handle));
      at += BigInt(bytes);
    }
  }

  /** Makes the stream `after`, named by its handle on a device, wait for `before`. */
  order(before: Named, after: Named, how: How = "new event", kept = 0n): void {
    const { event } = this.#driver;
    this.raw.use(before.device);
    const mark = how === "recorded again" ? kept : this.event(before.device);
    this.raw.ok(event.cuEventRecord(mark, before.handle));
    this.wait(after, mark);
    if (mark !== kept) this.raw.ok(event.cuEventDestroy_v2(mark)); // the wait outlives it
  }

  /** Makes a stream wait for an event. */
  wait({ device, handle }: Named, event: bigint): void {
    this.raw.use(device);
    this.raw.ok(this.#driver.stream.cuStreamWaitEvent(handle, event, 0));
  }

  /** Makes a lane wait for another one. */
  orderLanes(before: number, after: number, how: How): void {
    if (how === "context") {
      const { device, handle } = this.named(after);
      if (this.raw.waitForContexts(device, handle)) return;
      const handleBefore = this.#destroyed.has(before) ? 0n : this.handle(before);
      return this.order({ device: deviceOfLane(before), handle: handleBefore }, this.named(after), how);
    }
    let kept = this.#events.get(before);
    if (kept === undefined && how === "recorded again") {
      kept = this.event(deviceOfLane(before));
      this.#events.set(before, kept);
    }
    this.order(this.named(before), this.named(after), how, kept);
  }

  /** An event that the caller destroys. */
  event(device: number): bigint {
    this.raw.use(device);
    return this.raw.word((out) => this.#driver.event.cuEventCreate(out, 2));
  }

  /** A lane as its owner names it to others. */
  named(lane: number): Named {
    return { device: deviceOfLane(lane), handle: this.handle(lane) };
  }

  /** Destroys events and closes the raw driver: streams are destroyed one by one. */
  close(): void {
    for (const event of this.#events.values()) this.raw.ok(this.#driver.event.cuEventDestroy_v2(event));
    this.raw.close();
  }
}

/** A stream by its handle, which may denote another stream on another device. */
export interface Named {
  readonly device: number;
  readonly handle: bigint;
}

/** The contiguous pieces of a matrix of bytes. */
export function runsOf(ptr: bigint, shape: readonly number[], strides: readonly number[]): Run[] {
  const [rows = 1, cols = 1] = shape;
  const [step = 0] = strides;
  return Array.from({ length: rows }, (_, row) => ({ ptr: ptr + BigInt(row * step), bytes: cols }));
}
