/**
 * The state of a simulated driver, and the rules that several calls share: which context is current, which stream a
 * handle means, what new work waits for, and what happens when the host waits.
 *
 * @module
 */
import {
  CU_CTX,
  CU_STREAM,
  CU_STREAM_CAPTURE_MODE,
  CU_STREAM_LEGACY,
  CU_STREAM_PER_THREAD,
  CUresult,
} from "../../bindings/cuda_types.ts";
import type { KernelObserver } from "../driver/traits.ts";
import { checkOptions } from "../layout/options.ts";
import { Heap, Segments } from "./allocator.ts";
import { AddressSpace } from "./address_space.ts";
import { DeviceMemory } from "./device_memory.ts";
import type { Capture, Graph, GraphExec, GraphNode, NodeKind } from "./graph.ts";
import { type GraphMemory, GraphPool } from "./graph_memory.ts";
import type { Allocation, Context, Device, Event } from "./objects.ts";
import { Stream } from "./objects.ts";
import { simulateOptionNames, type SimulateOptions } from "./options.ts";
import { Output, printToProcess } from "./output.ts";
import { Pool } from "./pool.ts";
import { loadPtx } from "../ptx/mod.ts";
import { Random } from "./random.ts";
import { IntervalMap } from "./interval_map.ts";
import { refuse } from "./call_error.ts";
import { Scheduler, schedules, type Task } from "./scheduler.ts";
import type { SharedObject } from "./ipc_objects.ts";

/** The options with their defaults. */
export type ResolvedOptions = Required<SimulateOptions>;

/** A simulated driver's state. */
export class SimulatorState {
  /** What was chosen. */
  readonly options: ResolvedOptions;
  /** Chance, by the seed. */
  readonly random: Random;
  /** The queue. */
  readonly scheduler: Scheduler;
  /** The devices by ordinal. */
  readonly devices: readonly Device[];
  /** Their primary contexts, by ordinal: alive or not, they are always the same. */
  readonly primaries: readonly Context[];
  /** Memory of devices and of the host. */
  readonly space: AddressSpace;
  /** Contexts that are alive, by handle. */
  readonly contexts: Map<bigint, Context> = new Map();
  /** Streams that were created and not destroyed, by handle. */
  readonly streams: Map<bigint, Stream> = new Map();
  /** Events by handle. */
  readonly events: Map<bigint, Event> = new Map();
  /** Pools by handle. */
  readonly pools: Map<bigint, Pool> = new Map();
  /** Pools that were destroyed while their memory was allocated or on its way back: libcuda (580) keeps those for ever. */
  lostPools = 0;
  /** What other drivers may have been given, by itself: its name, and what keeps it findable. */
  readonly exports: WeakMap<object, { readonly name: string; readonly object: SharedObject }> = new WeakMap();
  /** Graphs by handle. */
  readonly graphs: Map<bigint, Graph> = new Map();
  /** The nodes of graphs by handle. */
  readonly graphNodes: Map<bigint, GraphNode> = new Map();
  /** Graphs that can be launched, by handle. */
  readonly graphExecs: Map<bigint, GraphExec> = new Map();
  /** Memory that graphs allocate, by its address: from the capture until no graph can allocate it and it is freed. */
  readonly graphMemory: Map<bigint, GraphMemory> = new Map();
  /** The last launch of each: one does not begin before the last is over. */
  readonly lastLaunch: WeakMap<GraphExec, Task> = new WeakMap();
  /** Captures that have not ended. */
  readonly captures: Set<Capture> = new Set();
  /** The stack of current contexts of the one thread there is. */
  readonly stack: Context[] = [];
  /** How the thread interacts with captures: cuThreadExchangeStreamCaptureMode(). */
  captureMode: number = CU_STREAM_CAPTURE_MODE.GLOBAL;
  /** Whether cuInit() was called. */
  initialized = false;
  /** Whether a host function is running, which may not call the driver. */
  inHostFunction = false;
  /** Why PTX was last refused with CUDA_ERROR_INVALID_PTX. */
  lastPtxError: unknown = null;
  /** Follows the kernels that are enqueued now, when they run. */
  observer: KernelObserver | null = null;
  /** Follows the kernel that is running now. */
  runningObserver: KernelObserver | null = null;
  /** Why a kernel has last failed. */
  lastKernelError: unknown = null;
  /** Simulated milliseconds since the beginning. */
  clock = 0;
  /** How often it was asked whether a task has run, and how often the answer may be no. */
  readonly #queryCounts = new WeakMap<Task, number>();
  readonly #mostNotReady: number;
  #handles = 0n;
  #streamIds = 0;
  #ids = 0n;

  /** A machine with idle devices. */
  constructor(options: SimulateOptions) {
    checkOptions(options, simulateOptionNames);
    this.options = {
      devices: 1,
      seed: 0,
      schedule: "random",
      memory: 8 * 2 ** 30,
      poolsSupported: true,
      driverVersion: 13050,
      freesWait: true,
      maxInstructions: 1e9,
      loadPtx,
      print: printToProcess,
      canAccessPeer: (device, peer) => device !== peer,
      ...options,
    };
    const { devices, memory, schedule, seed, maxInstructions } = this.options;
    for (const [name, value] of Object.entries({ devices, memory })) {
      if (!Number.isSafeInteger(value) || value < 0) {
        throw new RangeError(`Cannot simulate ${name}: ${value}: expected an integer of at least 0`);
      }
    }
    if (!schedules.has(schedule)) {
      throw new TypeError(`Cannot simulate the schedule ${schedule}: expected ${[...schedules].join(", ")}`);
    }
    if (maxInstructions !== Infinity && (!Number.isSafeInteger(maxInstructions) || maxInstructions < 1)) {
      const expected = "expected an integer of at least 1, or Infinity";
      throw new RangeError(`Cannot simulate maxInstructions: ${maxInstructions}: ${expected}`);
    }
    if (!Number.isSafeInteger(seed)) throw new RangeError(`Cannot simulate the seed ${seed}: expected an integer`);
    this.random = new Random(seed);
    this.#mostNotReady = schedule === "latest" ? 3 : this.random.below(4);
    this.scheduler = new Scheduler(schedule, new Random(seed ^ 0x5eed));
    this.devices = Array.from({ length: devices }, (_, ordinal) => this.#makeDevice(ordinal));
    this.primaries = this.devices.map((device) => this.newContext(device, true, CU_CTX.SCHED_AUTO));
    this.space = new AddressSpace(this.devices);
  }

  /** A handle that nothing else has. */
  newHandle(): bigint {
    return 0x51_0000_0000n + (this.#handles += 0x100n); // no address of anything, and easy to recognise
  }

  /** A number that nothing else has. */
  newId(): bigint {
    return ++this.#ids;
  }

  /** A context with its two default streams. */
  newContext(device: Device, isPrimary: boolean, flags: number): Context {
    const context: Context = {
      handle: this.newHandle(),
      id: this.newId(),
      device,
      isPrimary,
      flags,
      alive: false,
      fault: 0,
      legacy: this.newStream(CU_STREAM_LEGACY, CU_STREAM.DEFAULT, 0),
      perThread: this.newStream(CU_STREAM_PER_THREAD, CU_STREAM.DEFAULT, 0),
      streams: new Set(),
      barrier: null,
      peers: new Set(),
      output: new Output(),
    };
    context.legacy.attach(context);
    context.perThread.attach(context);
    return context;
  }

  /** A stream that is yet to be attached to a context. */
  newStream(handle: bigint, flags: number, priority: number): Stream {
    return new Stream(handle, ++this.#streamIds, flags, priority);
  }

  /** A new pool of a device. */
  newPool(ordinal: number, segments: Segments, isDefault: boolean, maxBytes: number): Pool {
    const pool = new Pool(this.newHandle(), ordinal, isDefault, maxBytes, segments, this.scheduler);
    this.pools.set(pool.handle, pool);
    return pool;
  }

  /** The device with this ordinal. */
  device(ordinal: number): Device {
    const device = this.devices[ordinal];
    if (device === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_DEVICE);
    return device;
  }

  /** The context that calls act on. */
  current(): Context {
    const context = this.stack.at(-1);
    if (context === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_CONTEXT);
    return this.usable(context);
  }

  /** A context, unless it is destroyed or one of its kernels has failed. */
  usable(context: Context): Context {
    if (!context.alive) throw refuse(CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED);
    this.refuseFault(context);
    return context;
  }

  /** The context of a handle. */
  context(handle: bigint): Context {
    const context = this.contexts.get(handle);
    if (context === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_CONTEXT);
    return context;
  }

  /** The stream of a handle: 0 and 1 are the legacy default stream of the current context, 2 is the thread's. */
  stream(handle: bigint): Stream {
    if (handle === 0n || handle === CU_STREAM_LEGACY) return this.current().legacy;
    if (handle === CU_STREAM_PER_THREAD) return this.current().perThread;
    const stream = this.streams.get(handle);
    if (stream === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_HANDLE);
    this.usable(stream.context);
    return stream;
  }

  /** The event of a handle. */
  event(handle: bigint): Event {
    const event = this.events.get(handle);
    if (event === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_HANDLE);
    this.usable(event.context);
    return event;
  }

  /** The pool of a handle. */
  pool(handle: bigint): Pool {
    const pool = this.pools.get(handle);
    if (pool === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
    return pool;
  }

  /**
   * Appends work to a stream; to its capture, if it is being captured.
   *
   * @param kind what it is as a node of a graph, or that it cannot be captured
   * @param after what the work waits for besides what the stream's rules say
   * @param memory what it allocates or frees, as a node of a graph
   * @returns the queued task, or null if the work was captured
   */
  submit(
    stream: Stream,
    kind: NodeKind | "uncapturable",
    run: () => void,
    after: readonly (Task | null)[] = [],
    memory: GraphMemory | null = null,
  ): Task | null {
    const { capture } = stream;
    if (capture === null) return this.enqueue(stream, run, after);
    if (kind === "uncapturable") {
      this.invalidate(capture.of);
      throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if (capture.of.invalidated) throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    const node = { handle: this.newHandle(), kind, context: stream.context, dependencies: capture.point, run, memory };
    capture.of.graph.nodes.push(node);
    stream.capture = { of: capture.of, point: [node] };
    return null;
  }

  /** Appends work to a stream that is not being captured. */
  enqueue(stream: Stream, run: () => void, after: readonly (Task | null)[] = []): Task {
    const { context } = stream;
    const waits = [...after, stream.tail, context.barrier];
    if (stream === context.legacy) {
      this.refuseImplicit(stream);
      for (const other of context.streams) if (other.isBlocking) waits.push(other.tail);
    } else if (stream.isBlocking) waits.push(context.legacy.implicitTail);
    const task = this.queue(context, stream.id, run, waits);
    stream.tail = task;
    stream.implicitTail = task;
    stream.explicitTail = task;
    this.#forgetFinished(context);
    return task;
  }

  /**
   * Appends an allocation to a stream. On the legacy default stream it is no work to others: the memory is there for those
   * that come after the stream without being told, but what the allocation comes after is not handed on by it
   * (`tests/gpu/implied_order_test.ts`).
   *
   * @param after the end of those that had the memory before
   */
  enqueueAllocation(stream: Stream, run: () => void, after: Task | null): void {
    const { context, id, implicitTail } = stream;
    if (stream !== context.legacy) return void this.enqueue(stream, run, [after]);
    const there = this.queue(context, id, run, [after, implicitTail, context.barrier]);
    this.enqueue(stream, () => {}, [there]);
    stream.implicitTail = there;
  }

  /** Queues work that stands in no stream. It does nothing if the context has failed before it runs. */
  queue(context: Context, streamId: number, run: () => void, after: readonly (Task | null)[]): Task {
    const { observer } = this;
    return this.scheduler.enqueue(streamId, after, () => {
      this.clock += 0.001; // what happens at all takes a microsecond
      this.runningObserver = observer;
      if (context.fault === 0) run();
    });
  }

  /** Waits, as the host, until a task has run; reports a kernel that has failed by then. */
  wait(context: Context, ...tasks: readonly (Task | null)[]): void {
    for (const task of tasks) this.scheduler.force(task);
    for (const pool of this.pools.values()) pool.trim(pool.settings.releaseThreshold);
    this.flush(context);
    this.refuseFault(context);
  }

  /**
   * Answers whether tasks have run, as the schedule likes: work that has not run by now may run because of the question,
   * and has run at the latest after a few of them, so that asking again and again comes to an end.
   */
  query(context: Context, ...tasks: readonly (Task | null)[]): number {
    const open = tasks.filter((task) => task !== null && !task.done);
    for (const task of open) {
      if (task === null) continue;
      const asked = (this.#queryCounts.get(task) ?? 0) + 1;
      this.#queryCounts.set(task, asked);
      if (asked > this.#mostNotReady) this.scheduler.force(task);
    }
    this.refuseFault(context);
    return open.every((task) => task?.done) ? CUresult.CUDA_SUCCESS : CUresult.CUDA_ERROR_NOT_READY;
  }

  /** Everything enqueued in a context. */
  tails(context: Context): Task[] {
    return [...context.streams].map(({ tail }) => tail).filter((tail) => tail !== null);
  }

  /** The ends of all that is queued in some contexts and has not run. */
  unfinished(contexts: Iterable<Context> = this.contexts.values()): Task[] {
    return [...contexts].flatMap((context) => this.tails(context)).filter(({ done }) => !done);
  }

  /** Lets all work of some contexts run, which may use memory that is about to go; unless frees do not wait. */
  waitBeforeFree(contexts?: Iterable<Context>): void {
    if (this.options.freesWait) { for (const task of this.unfinished(contexts)) this.scheduler.force(task); }
  }

  /** Frees memory that was not allocated in stream order, though work may still use it. */
  free(allocation: Allocation): void {
    this.space.free(allocation, this.unfinished());
  }

  /** Refuses all work of a context in which a kernel has failed. */
  refuseFault(context: Context): void {
    if (context.fault === 0) return;
    this.flush(context); // what was said before it, and an assertion that is the reason
    throw refuse(context.fault);
  }

  /** Hands the program what kernels of a context have said. */
  flush({ output }: Context): void {
    output.flush(this.options.print);
  }

  /** Ends a capture for good: what was asked for cannot be captured. */
  invalidate(capture: Capture): void {
    capture.invalidated = true;
  }

  /**
   * Refuses a call that might wait for, or act behind the back of, work that is only being captured. What is refused so
   * invalidates the captures, unless they are relaxed.
   */
  refuseInCapture(): void {
    if (this.captureMode === CU_STREAM_CAPTURE_MODE.RELAXED) return;
    const strict = [...this.captures].filter(({ mode }) => mode !== CU_STREAM_CAPTURE_MODE.RELAXED);
    if (strict.length === 0) return;
    for (const capture of strict) this.invalidate(capture);
    throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }

  /** Refuses to wait for a stream whose work is only being captured. */
  refuseCapturing(stream: Stream): void {
    if (stream.capture === null) return;
    this.invalidate(stream.capture.of);
    throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }

  /** Begins to use a context. A primary one in which a kernel has failed stays so until the process ends. */
  activate(context: Context): void {
    this.refuseFault(context);
    context.alive = true;
    context.barrier = null;
    this.contexts.set(context.handle, context);
  }

  /** Destroys a context with all that belongs to it. What is queued is done first. */
  destroy(context: Context): void {
    for (const task of this.tails(context)) this.scheduler.force(task);
    this.flush(context);
    context.alive = false;
    this.contexts.delete(context.handle);
    for (const stream of context.streams) this.streams.delete(stream.handle);
    for (const stream of [...context.streams]) {
      if (stream !== context.legacy && stream !== context.perThread) context.streams.delete(stream);
      stream.tail = null;
    }
    for (const { handle, context: owner } of this.events.values()) if (owner === context) this.events.delete(handle);
    for (const other of this.contexts.values()) other.peers.delete(context);
    context.peers.clear();
    this.space.freeAllOf(context, this.unfinished());
  }

  #makeDevice(ordinal: number): Device {
    const segments = new Segments(this.options.memory);
    const defaultPool = this.newPool(ordinal, segments, true, 0);
    return {
      ordinal,
      memory: new DeviceMemory(),
      segments,
      heap: new Heap(segments),
      mapped: new IntervalMap(),
      retained: 0,
      defaultPool,
      currentPool: defaultPool,
      graphPool: new GraphPool(segments),
    };
  }

  /** Refuses work on the legacy stream that would wait for streams whose work is only being captured. */
  refuseImplicit(stream: Stream): void {
    const waiting = this.#capturesBehind(stream);
    if (waiting.length === 0) return;
    for (const capture of waiting) this.invalidate(capture);
    throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }

  /** Says so if a stream is the legacy one and has captures to wait for, and harms nobody. */
  checkImplicit(stream: Stream): void {
    if (this.#capturesBehind(stream).length > 0) throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }

  /** The captures of the streams that the legacy one would wait for; of another stream none. */
  #capturesBehind(stream: Stream): Capture[] {
    const { context } = stream;
    if (stream !== context.legacy) return [];
    const captures = [...context.streams].filter(({ isBlocking }) => isBlocking).map(({ capture }) => capture?.of);
    return captures.filter((capture) => capture !== undefined);
  }

  #forgetFinished(context: Context): void {
    for (const stream of context.streams) {
      if (stream.destroyed && stream.tail?.done !== false) context.streams.delete(stream);
    }
  }
}
