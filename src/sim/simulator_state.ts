/**
 * The state of a simulated driver: its options, and the objects behind its handles.
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
import type { KernelObserver } from "../driver/mod.ts";
import { checkBoolean, show } from "../layout/mod.ts";
import { Heap, Segments } from "./allocator.ts";
import { AddressSpace } from "./address_space.ts";
import { DeviceMemory, maxSpans, takeSpans } from "./device_memory.ts";
import type { Capture, Graph, GraphExec, GraphNode } from "./graph.ts";
import { type GraphMemory, GraphPool } from "./graph_memory.ts";
import { type Context, type Device, type Event, type LoadedFunction, type LoadedModule, Stream } from "./objects.ts";
import type { SimulateOptions } from "./driver.ts";
import { Output, printToProcess } from "./output.ts";
import { Pool } from "./pool.ts";
import { loadPtx } from "../ptx/mod.ts";
import { Random } from "./random.ts";
import { IntervalMap } from "./interval_map.ts";
import { refuse } from "./call.ts";
import { Scheduler, schedules, type Task } from "./scheduler.ts";
import type { SharedObject } from "./ipc_objects.ts";

/** A simulated driver's options, tables of objects, and clock. */
export class SimulatorState {
  /** The options, with defaults applied. */
  readonly options: Required<SimulateOptions>;
  /** Random choices, determined by the seed. */
  readonly random: Random;
  /** The queue of work. */
  readonly scheduler: Scheduler;
  /** The devices by ordinal. */
  readonly devices: readonly Device[];
  /** The devices' primary contexts, by ordinal: always the same objects, alive or not. */
  readonly primaries: readonly Context[];
  /** Device and host memory. */
  readonly space: AddressSpace;
  /** Live contexts, by handle. */
  readonly contexts: Map<bigint, Context> = new Map();
  /** Streams created and not destroyed, by handle. */
  readonly streams: Map<bigint, Stream> = new Map();
  /** Events by handle. */
  readonly events: Map<bigint, Event> = new Map();
  /** Pools by handle. */
  readonly pools: Map<bigint, Pool> = new Map();
  /**
   * Pools that were destroyed while their memory was still allocated or a free was pending: libcuda (580) keeps those
   * forever, and crashes or hangs later if the stream of such a free is destroyed.
   */
  lostPools = 0;
  /** Objects that other drivers may have opened: their names, and the references that keep them alive. */
  readonly exports: WeakMap<object, { readonly name: string; readonly object: SharedObject }> = new WeakMap();
  /** Graphs by handle. */
  readonly graphs: Map<bigint, Graph> = new Map();
  /** Graph nodes by handle. */
  readonly graphNodes: Map<bigint, GraphNode> = new Map();
  /** Executable graphs by handle. */
  readonly graphExecs: Map<bigint, GraphExec> = new Map();
  /** Graph memory by address: from the capture until no graph can allocate it and it is freed. */
  readonly graphMemory: Map<bigint, GraphMemory> = new Map();
  /** Loaded modules by handle. */
  readonly modules: Map<bigint, LoadedModule> = new Map();
  /** Module kernels that were looked up, by handle. */
  readonly functions: Map<bigint, LoadedFunction> = new Map();
  /** The last launch of each executable graph: a launch does not begin before the previous one has completed. */
  readonly lastLaunch: WeakMap<GraphExec, Task> = new WeakMap();
  /** Captures that have not ended. */
  readonly captures: Set<Capture> = new Set();
  /** The stack of current contexts: there is only one thread. */
  readonly stack: Context[] = [];
  /** How the thread interacts with captures: cuThreadExchangeStreamCaptureMode(). */
  captureMode: number = CU_STREAM_CAPTURE_MODE.GLOBAL;
  /** Whether cuInit() was called. */
  initialized = false;
  /** Whether a host function is running, which may not call the driver. */
  inHostFunction = false;
  /** Why PTX was last refused with CUDA_ERROR_INVALID_PTX. */
  lastPtxError: unknown = null;
  /** Observes the kernels that are enqueued now, when they run. */
  observer: KernelObserver | null = null;
  /** Observes the running kernel. */
  runningObserver: KernelObserver | null = null;
  /** Why a kernel last failed. */
  lastKernelError: unknown = null;
  /** Simulated time since the start, in milliseconds. */
  clock = 0;
  #handles = 0n;
  #streamIds = 0;
  #ids = 0n;

  /** Creates the state of idle devices. */
  constructor(options: SimulateOptions) {
    this.options = resolve(options);
    const { devices, schedule, seed } = this.options;
    this.random = new Random(seed);
    this.scheduler = new Scheduler(schedule, new Random(seed ^ 0x5eed));
    const firstSpan = takeSpans(devices);
    this.devices = Array.from({ length: devices }, (_, ordinal) => this.#makeDevice(ordinal, firstSpan + ordinal));
    this.primaries = this.devices.map((device) => this.newContext(device, true, CU_CTX.SCHED_AUTO));
    this.space = new AddressSpace(this.devices);
  }

  /** A unique handle. */
  newHandle(): bigint {
    return 0x51_0000_0000n + (this.#handles += 0x100n); // not an address of anything, and easy to recognise
  }

  /** A unique number. */
  newId(): bigint {
    return ++this.#ids;
  }

  /** Creates a context with its two default streams. */
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
      ending: new Set(),
      barrier: null,
      seen: 0,
      peers: new Set(),
      output: new Output(),
    };
    context.legacy.attach(context);
    context.perThread.attach(context);
    return context;
  }

  /** The number of a new stream, or of one branch of a graph's launch, which is scheduled as a stream is. */
  newStreamId(): number {
    return ++this.#streamIds;
  }

  /** Creates a stream that is not yet attached to a context. */
  newStream(handle: bigint, flags: number, priority: number): Stream {
    return new Stream(handle, this.newStreamId(), flags, priority);
  }

  /** Creates a pool of a device. */
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

  /** Returns a context, unless it is destroyed or one of its kernels has failed. */
  usable(context: Context): Context {
    if (!context.alive) throw refuse(CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED);
    this.refuseFault(context);
    return context;
  }

  /** The context of a handle: a destroyed one is unknown, and so is NULL. */
  context(handle: bigint): Context {
    const context = this.contexts.get(handle);
    if (context === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_CONTEXT);
    return context;
  }

  /** The stream of a handle: 0 and 1 are the legacy default stream of the current context, 2 is the per-thread one. */
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

  // law sim/SimulatorState.refuseFault: sim/output, ptx/faults
  /** Refuses all work of a context in which a kernel has failed. */
  refuseFault(context: Context): void {
    if (context.fault === 0) return;
    this.flush(context); // output from before the failure, and the text of a failed assertion
    throw refuse(context.fault);
  }

  /** Passes on what a context's kernels have printed. */
  flush({ output }: Context): void {
    output.flush(this.options.print);
  }

  #makeDevice(ordinal: number, span: number): Device {
    const segments = new Segments(this.options.memory);
    const defaultPool = this.newPool(ordinal, segments, true, 0);
    return {
      ordinal,
      span,
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
}

/** Applies the defaults, and refuses values that cannot be simulated. */
function resolve(options: SimulateOptions): Required<SimulateOptions> {
  const resolved: Required<SimulateOptions> = {
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
    ...Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)),
  };
  const { devices, memory, driverVersion, schedule, seed, maxInstructions } = resolved;
  const { poolsSupported, freesWait, print, canAccessPeer } = resolved;
  for (const [name, value] of Object.entries({ devices, memory })) {
    if (!Number.isSafeInteger(value) || value < 0) throw cannot(`${name}: `, value, "an integer of at least 0");
  }
  if (devices > maxSpans) throw cannot("devices: ", devices, `at most ${maxSpans}, for which there are addresses`);
  if (!Number.isSafeInteger(driverVersion) || driverVersion < 11000) {
    throw cannot("driverVersion: ", driverVersion, "a version such as 13000");
  }
  checkBoolean("poolsSupported", poolsSupported);
  checkBoolean("freesWait", freesWait);
  for (const [name, value] of Object.entries({ print, canAccessPeer })) {
    if (typeof value !== "function") {
      throw new TypeError(`Cannot simulate ${name}: ${show(value)}: expected a function`);
    }
  }
  if (!schedules.has(schedule)) {
    throw new TypeError(`Cannot simulate the schedule ${show(schedule)}: expected ${[...schedules].join(", ")}`);
  }
  if (maxInstructions !== Infinity && (!Number.isSafeInteger(maxInstructions) || maxInstructions < 1)) {
    throw cannot("maxInstructions: ", maxInstructions, "an integer of at least 1, or Infinity");
  }
  if (!Number.isSafeInteger(seed)) throw cannot("the seed ", seed, "an integer");
  return resolved;
}

/** The error for an option: a TypeError for anything but a number. @param what it, as it stands before its value */
function cannot(what: string, value: unknown, expected: string): Error {
  const message = `Cannot simulate ${what}${show(value)}: expected ${expected}`;
  return typeof value === "number" ? new RangeError(message) : new TypeError(message);
}
