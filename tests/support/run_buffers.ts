/**
 * Random programs, run through memory resources and buffers, and what must hold for every free: it is on the buffer's
 * home stream, or after that stream's work where the driver frees at once, never twice, never before the buffer is
 * closed, and the host does not wait.
 *
 * @module
 */
import type { AllocateOptions } from "../../src/public/cuda.ts";
import {
  type Cuda,
  type CudaDevice,
  type CudaEvent,
  CudaStream,
  DeviceMemoryResource,
  HostMemoryResource,
  ManagedMemoryResource,
  MemoryBuffer,
  MemoryResource,
  PinnedMemoryResource,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { checkCuda } from "../../src/driver/driver.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { drainFrees } from "../../src/order/deferred_free.ts";
import { MemoryPool } from "../../src/memory/memory_pool.ts";
import { deviceOf, laneKinds } from "./stream_lanes.ts";
import { bufferBytes, type Program, type Resource, type Step, uploaded } from "./driver_programs.ts";
import { Raw } from "./raw_driver.ts";
import { intercept } from "./intercept.ts";

/** How a program is run. */
export interface RunOptions {
  /** Index of an `order` step to skip, from 0. */
  readonly without?: number;
  /** Whether host memory is page-locked. Default true. */
  readonly pinned?: boolean;
  /** Which of the 24 orders of closing streams, resources, buffers and the Cuda itself to use at the end. Default 0. */
  readonly ending?: number;
  /** Whether buffers to be dropped are dropped rather than closed: the collector frees them later. Default false. */
  readonly dropping?: boolean;
}

/** The outcome of a run. */
export interface Outcome {
  /** What the downloads returned. */
  readonly bytes: readonly (readonly number[])[];
  /** Problems with frees so far; frees of dropped buffers come later. */
  readonly problems: readonly string[];
  /** Buffers that the collector has to free. */
  readonly dropped: number;
  /** Frees the marks, and stops intercepting the driver's calls. */
  readonly release: () => void;
}

/** Runs a program; closes everything, the Cuda included. */
export function runBuffers(cuda: Cuda, program: Program, options: RunOptions = {}): Outcome {
  const run = new Run(cuda, program, options);
  for (const step of program.steps) run.take(step);
  return run.end(options.ending ?? 0);
}

/** A user-defined resource: allocates from the current pool through the driver's own calls. */
class CustomMemoryResource extends MemoryResource {
  override readonly isDeviceAccessible = true;
  override readonly isHostAccessible = false;
  readonly #pool: MemoryPool;

  constructor(device: CudaDevice) {
    super();
    this.#pool = MemoryPool.current(device);
  }

  override allocate(bytes: number, { stream }: AllocateOptions = {}): MemoryBuffer {
    const { device } = this.#pool;
    if (stream === undefined) throw new TypeError("expected a stream");
    using arena = new NativeArena();
    const out = arena.out("ptr");
    const { pool } = device.driver;
    const take = () => pool.cuMemAllocFromPoolAsync(out.$address, BigInt(bytes), this.#pool.handle, stream.handle);
    checkCuda(device.driver, "cuMemAllocFromPoolAsync", stream.device.withContext(take));
    return MemoryBuffer.fromAllocation({ ptr: out.value, size: bytes, device, stream, free: freeCustom });
  }
}

function freeCustom(ptr: bigint, stream: CudaStream | null): void {
  if (stream === null) throw new TypeError("expected a stream");
  const { driver } = stream.device;
  stream.device.withContext(() => checkCuda(driver, "cuMemFreeAsync", driver.pool.cuMemFreeAsync(ptr, stream.handle)));
}

/** A free that is due. */
interface Due {
  readonly lane: number | null;
  /** Whether the driver frees in stream order, rather than at once. */
  readonly isPooled: boolean;
  /** Index of a byte of page-locked memory that the home stream sets once it has passed all uses. */
  readonly mark: number;
}

class Run {
  readonly #cuda: Cuda;
  readonly #options: RunOptions;
  readonly #streams: CudaStream[] = [];
  readonly #handles: bigint[];
  readonly #events: CudaEvent[] = [];
  readonly #resources: Map<Resource, MemoryResource>[];
  readonly #buffers = new Map<number, MemoryBuffer>();
  readonly #made: Extract<Step, { do: "allocate" }>[] = [];
  /** Page-locked bytes; they must outlive buffers that the collector frees, because those frees read them. */
  readonly #marks: Uint8Array;
  readonly #markAt: bigint;
  readonly #marked: MemoryBuffer;
  readonly #slots: MemoryBuffer[];
  readonly #uploads = new Map<number, MemoryBuffer>();
  readonly #due = new Map<bigint, Due>();
  readonly #problems: string[] = [];
  readonly #closing = new DisposableStack();
  #marksUsed = 0;
  #orders = 0;
  #dropped = 0;
  #mustNotWait = false;
  #isClosing = false;

  constructor(cuda: Cuda, { devices, steps, downloads }: Program, options: RunOptions) {
    this.#cuda = cuda;
    this.#options = options;
    for (let lane = 0; lane < devices * laneKinds.length; lane++) {
      const device = cuda.device(deviceOf(lane));
      const kind = laneKinds[lane % laneKinds.length];
      if (kind === "legacy") this.#streams.push(device.defaultStream);
      else if (kind === "thread") this.#streams.push(CudaStream.fromHandle(device, 2n));
      else this.#streams.push(device.createStream({ nonBlocking: kind === "free" }));
      this.#events.push(device.createEvent());
    }
    this.#handles = this.#streams.map(({ handle }) => handle);
    this.#resources = cuda.devices.slice(0, devices).map((device) =>
      new Map<Resource, MemoryResource>([
        ["current", new DeviceMemoryResource(device)],
        ["own", new DeviceMemoryResource(device, { maxSize: 2 ** 26 })],
        ["synchronous", new SynchronousMemoryResource(device)],
        ["pinned", new PinnedMemoryResource(device)],
        ["managed", new ManagedMemoryResource(device)],
        ["host", new HostMemoryResource()],
        ["custom", new CustomMemoryResource(device)],
      ])
    );
    const pinned = new PinnedMemoryResource(cuda.device(0));
    this.#marked = pinned.allocate(Math.max(1, steps.length));
    this.#marks = this.#marked.bytes().fill(0);
    this.#markAt = this.#marked.ptr;
    const host = options.pinned ?? true ? pinned : new HostMemoryResource();
    this.#slots = Array.from({ length: downloads }, () => {
      const slot = host.allocate(bufferBytes);
      slot.bytes().fill(0xee);
      return slot;
    });
    for (const step of steps) {
      if (step.do !== "upload" || this.#uploads.has(step.slot)) continue;
      const slot = host.allocate(bufferBytes);
      slot.bytes().set(uploaded(step.slot));
      this.#uploads.set(step.slot, slot);
    }
    this.#watch();
  }

  take(step: Step): void {
    switch (step.do) {
      case "allocate": {
        const stream = step.lane === null ? {} : { stream: this.#stream(step.lane) };
        this.#buffers.set(step.buffer, this.#resource(step.device, step.resource).allocate(bufferBytes, stream));
        this.#made[step.buffer] = step;
        return;
      }
      case "fill":
        return this.#buffer(step.buffer).fill(step.value, { stream: this.#stream(step.lane) });
      case "poke":
        return this.#buffer(step.buffer).fill(step.value);
      case "upload": {
        const slot = this.#uploads.get(step.slot);
        if (slot !== undefined) this.#buffer(step.buffer).copyFrom(slot, { stream: this.#stream(step.lane) });
        return;
      }
      case "copy": {
        const [from, to] = [this.#buffer(step.from), this.#buffer(step.to)];
        const stream = this.#stream(step.lane);
        return step.peer ? from.copyTo(to, { stream }) : to.copyFrom(from, { stream });
      }
      case "download": {
        const slot = this.#slots[step.slot];
        if (slot !== undefined) this.#buffer(step.buffer).copyTo(slot, { stream: this.#stream(step.lane) });
        return;
      }
      case "home":
        return this.#quietly(() => this.#buffer(step.buffer).setHomeStream(this.#stream(step.lane)));
      case "free":
        return this.#free(step);
      case "synchronize":
        return this.#stream(step.lane).synchronize();
      case "peers": {
        const resource = this.#resource(step.owner, step.isOwnPool ? "own" : "current");
        if (resource instanceof DeviceMemoryResource) resource.peerAccessibleBy = step.peers;
        return;
      }
      case "order":
        return this.#orders++ === this.#options.without ? undefined : this.#order(step);
    }
  }

  /** Waits for everything, reads what was downloaded, and closes everything. */
  end(ending: number): Outcome {
    for (const device of this.#cuda.devices) device.synchronize();
    const bytes = this.#slots.map((slot) => Array.from(slot.bytes()));
    const resources = this.#resources.flatMap((one) => [...one.values()]);
    for (const one of resources) if (one instanceof DeviceMemoryResource) one.peerAccessibleBy = [];
    const closers = [
      () => this.#streams.forEach((one) => one.close()),
      () => resources.forEach((one) => one instanceof DeviceMemoryResource && one.close()),
      () => this.#closeBuffers(),
      () => {
        this.#isClosing = true;
        this.#cuda.close();
      },
    ];
    for (const event of this.#events) event.close();
    for (let left = closers.length; left > 0; left--) {
      this.#quietly(() => closers.splice(ending % left, 1)[0]?.());
      ending = Math.floor(ending / left);
    }
    drainFrees();
    const isOver = this.#dropped === 0;
    if (isOver) this.#closeMarks();
    for (const [ptr, { isPooled }] of this.#due) {
      if (isOver) this.#problems.push(`${isPooled ? "pooled" : "other"} memory at ${ptr} was closed and never freed`);
    }
    const release = () => {
      this.#closeMarks();
      this.#closing.dispose();
    };
    return { bytes, problems: this.#problems, dropped: this.#dropped, release };
  }

  /**
   * Frees the marks once all streams have passed what sets them. The Cuda is closed by then, but a context may be
   * retained elsewhere: a mark set later would be written into memory that the driver may have reused. libcuda crashed
   * twice on two devices before this wait was added; that this was the cause is believed, not proven. Devices other
   * than the program's are left alone: creating a context on each takes half a second.
   */
  #closeMarks(): void {
    new Raw(this.#cuda.driver, this.#resources.length).close(); // waits for their contexts
    this.#marked.close();
  }

  #closeBuffers(): void {
    for (const [id, buffer] of this.#buffers) {
      const stream = buffer.stream;
      this.#expect(id, buffer, stream === null ? null : this.#laneOf(stream));
      buffer.close();
    }
    this.#buffers.clear();
    for (const slot of [...this.#slots, ...this.#uploads.values()]) slot.close();
  }

  #free({ buffer: id, lane, how }: Extract<Step, { do: "free" }>): void {
    const buffer = this.#buffer(id);
    this.#buffers.delete(id);
    const isDropped = how === "drop" && this.#options.dropping === true;
    if (how === "close on" && lane !== null) {
      this.#expect(id, buffer, lane, false); // the home stream comes first: closing orders the two
      return this.#quietly(() => buffer.close(this.#stream(lane)));
    }
    this.#expect(id, buffer, lane);
    if (isDropped) this.#dropped++;
    else this.#quietly(() => buffer.close());
  }

  #laneOf(home: CudaStream): number {
    return this.#streams.findIndex(({ orSuccessor }) => orSuccessor === home);
  }

  /** Records an expected free, and makes the home stream set a mark once it has passed all work enqueued so far. */
  #expect(id: number, buffer: MemoryBuffer, lane: number | null, isHome = true): void {
    const resource = this.#made[id]?.resource;
    if (resource === undefined || resource === "host") return; // freed by libc
    const mark = this.#marksUsed++;
    this.#due.set(buffer.ptr, { lane, isPooled: ["current", "own", "custom"].includes(resource), mark });
    const home = isHome ? lane : buffer.stream === null ? null : this.#laneOf(buffer.stream);
    if (home === null) {
      this.#marks[mark] = 1;
      return;
    }
    const { driver } = this.#cuda;
    const set = () => driver.fill.cuMemsetD8Async(this.#markAt + BigInt(mark), 1, 1n, this.#handles[home] ?? 0n);
    checkCuda(driver, "cuMemsetD8Async", this.#stream(home).device.withContext(set));
  }

  /** Intercepts every free, and every call that makes the host wait. */
  #watch(): void {
    const { driver } = this.#cuda;
    const due = this.#due;
    const problems = this.#problems;
    const marks = this.#marks;
    const streams = this.#streams.map(({ device }, lane) => ({ device: device.ordinal, handle: this.#handles[lane] }));
    const arena = this.#closing.use(new NativeArena());
    const current = arena.out("i32");
    const freed = (ptr: bigint, handle: bigint | null) => {
      const one = due.get(ptr);
      if (one === undefined) return; // a slot
      due.delete(ptr);
      if (one.isPooled !== (handle !== null)) problems.push(`memory at ${ptr} was freed in the wrong way`);
      if (handle === null) {
        if (marks[one.mark] !== 1) problems.push(`memory at ${ptr} was freed before its home stream had passed it`);
        return;
      }
      const home = streams[one.lane ?? -1];
      driver.context.cuCtxGetDevice(current.$address);
      const isDefault = handle <= 2n; // its device is the current one; any other stream has its own
      const seen = `stream ${handle}${isDefault ? ` of device ${current.value}` : ""}`;
      const expected = `stream ${home?.handle}${isDefault ? ` of device ${home?.device}` : ""}`;
      if (seen !== expected) problems.push(`memory at ${ptr} was freed on ${seen}, expected ${expected}`);
    };
    const waits = (call: string) => {
      if (this.#mustNotWait) problems.push(`${call} was called to free memory`);
    };
    const restorers = [
      intercept(driver, "pool", ({ cuMemFreeAsync }) => ({
        cuMemFreeAsync: (ptr, stream) => (freed(ptr, stream), cuMemFreeAsync(ptr, stream)),
      })),
      intercept(driver, "memory", ({ cuMemFree_v2 }) => ({
        cuMemFree_v2: (ptr) => (freed(ptr, null), cuMemFree_v2(ptr)),
      })),
      intercept(driver, "hostMemory", ({ cuMemFreeHost }) => ({
        cuMemFreeHost: (ptr) => (freed(ptr, null), cuMemFreeHost(ptr)),
      })),
      intercept(driver, "stream", ({ cuStreamSynchronize }) => ({
        cuStreamSynchronize: (stream) => (waits("cuStreamSynchronize"), cuStreamSynchronize(stream)),
      })),
      intercept(driver, "event", ({ cuEventSynchronize }) => ({
        cuEventSynchronize: (event) => (waits("cuEventSynchronize"), cuEventSynchronize(event)),
      })),
      intercept(driver, "context", ({ cuCtxSynchronize }) => ({
        // Once the Cuda is closed, contexts are destroyed with their last user, and frees on other devices' streams
        // must have completed by then.
        cuCtxSynchronize: () => (this.#isClosing || waits("cuCtxSynchronize"), cuCtxSynchronize()),
      })),
    ];
    for (const restore of restorers) this.#closing.defer(restore);
  }

  #order({ before, after, how }: Extract<Step, { do: "order" }>): void {
    const [first, second] = [this.#stream(before), this.#stream(after)];
    const event = this.#events[before];
    const { cuCtxRecordEvent } = this.#cuda.driver.context;
    if (how === "new event" || event === undefined) return second.wait(first);
    if (how === "context" && cuCtxRecordEvent !== null) return this.#waitForContexts(second);
    first.record(event);
    second.wait(event);
  }

  /** Waits for all contexts: an event of one misses what the driver does through another. */
  #waitForContexts(stream: CudaStream): void {
    for (const device of this.#cuda.devices.slice(0, this.#resources.length)) {
      using event = device.createEvent();
      device.recordContext(event);
      stream.wait(event);
    }
  }

  #quietly(work: () => void): void {
    this.#mustNotWait = true;
    work();
    this.#mustNotWait = false;
  }

  #stream(lane: number): CudaStream {
    return given(this.#streams[lane], "stream");
  }

  #buffer(id: number): MemoryBuffer {
    return given(this.#buffers.get(id), "buffer");
  }

  #resource(device: number, kind: Resource): MemoryResource {
    return given(this.#resources[device]?.get(kind), "resource");
  }
}

function given<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new TypeError(`the program speaks of a ${what} that is not there`);
  return value;
}
