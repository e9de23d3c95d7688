/**
 * The objects that a driver's handles stand for.
 *
 * @module
 */
import { CU_STREAM } from "../../bindings/cuda_types.ts";
import type { Heap, Segments } from "./allocator.ts";
import type { DeviceMemory } from "./device_memory.ts";
import type { Capture, CapturedPoint } from "./graph.ts";
import type { GraphPool } from "./graph_memory.ts";
import type { Simulator } from "./simulator.ts";
import type { Output } from "./output.ts";
import type { PtxKernel, PtxModule } from "../ptx/mod.ts";
import type { Pool } from "./pool.ts";
import type { IntervalMap } from "./interval_map.ts";
import type { ResultCode } from "./call.ts";
import type { Task } from "./scheduler.ts";

/** A device. */
export interface Device {
  readonly ordinal: number;
  readonly memory: DeviceMemory;
  readonly segments: Segments;
  /** Memory that is allocated at once and not in stream order. */
  readonly heap: Heap<never>;
  /** What is allocated as the device sees it: from when an allocation runs until a free has run. */
  readonly mapped: IntervalMap<Allocation>;
  /** How often the primary context was retained and not released. */
  retained: number;
  readonly defaultPool: Pool;
  currentPool: Pool;
  /** Memory that graphs allocate. */
  readonly graphPool: GraphPool;
}

/** A context: what streams, events and memory belong to. */
export interface Context {
  readonly handle: bigint;
  readonly id: bigint;
  readonly device: Device;
  readonly isPrimary: boolean;
  flags: number;
  alive: boolean;
  /** What every call returns from now on, because a kernel has failed; CUDA_SUCCESS as long as none has. */
  fault: ResultCode;
  readonly legacy: Stream;
  readonly perThread: Stream;
  /** All streams, the two default ones and destroyed ones with queued work included. */
  readonly streams: Set<Stream>;
  /** What all work that is enqueued from now on waits for: cuCtxWaitEvent(). */
  barrier: Task | null;
  /** Contexts whose memory may be accessed from this one. */
  readonly peers: Set<Context>;
  /** What its kernels have printed. */
  readonly output: Output;
}

/** A stream. */
export class Stream {
  /** Its handle; those of the default streams are the same in every context. */
  readonly handle: bigint;
  /** A number that no other stream has. */
  readonly id: number;
  /** `CU_STREAM`. */
  readonly flags: number;
  /** Lower runs sooner; it makes no order. */
  readonly priority: number;
  /** The task that was enqueued last. */
  tail: Task | null = null;
  /**
   * The task that other streams wait for when they follow this one by the rules of default streams: the one that was
   * enqueued last, except that an allocation on the legacy default stream does not count.
   */
  implicitTail: Task | null = null;
  /** The last task that the driver checks before it reads host memory during a call. */
  explicitTail: Task | null = null;
  /** Whether cuStreamDestroy_v2() was called: what is queued still runs. */
  destroyed = false;
  /** The capture that it takes part in, and its last nodes there. */
  capture: { readonly of: Capture; readonly point: CapturedPoint } | null = null;
  #context: Context | undefined;

  /** A stream that is yet to be attached. */
  constructor(handle: bigint, lane: number, flags: number, priority: number) {
    this.handle = handle;
    this.id = lane;
    this.flags = flags;
    this.priority = priority;
  }

  /** The context that it belongs to. */
  get context(): Context {
    if (this.#context === undefined) throw new TypeError("Cannot use a stream that belongs to no context yet");
    return this.#context;
  }

  /** Makes it a stream of a context. Apart from the constructor because a context is made with two streams. */
  attach(context: Context): this {
    this.#context = context;
    context.streams.add(this);
    return this;
  }

  /** Whether it and the legacy default stream wait for each other. */
  get isBlocking(): boolean {
    return (this.flags & CU_STREAM.NON_BLOCKING) === 0;
  }
}

/** The last record of an event. */
export interface EventRecord {
  /** The driver in which it was recorded: an event for several processes may be recorded in another one. */
  readonly simulator: Simulator;
  readonly task: Task;
  /** Simulated milliseconds at which the task ran. */
  time: number;
}

/** An event. */
export interface Event {
  readonly handle: bigint;
  readonly context: Context;
  readonly flags: number;
  /** Null: never recorded, or last recorded in a capture. */
  record: EventRecord | null;
  /** Where the record is kept: other drivers that have opened the event keep it in the same place. */
  readonly shared: { record: EventRecord | null };
  /** Where it was recorded, if that was in a capture. */
  captured: { readonly of: Capture; readonly point: CapturedPoint } | null;
}

/** Memory that the driver knows. */
export interface Allocation {
  readonly address: bigint;
  /** Bytes, as asked for. */
  readonly bytes: number;
  /**
   * `device`: cuMemAlloc_v2() and the variables of modules; `pool`: in stream order; `graph`: by a node of a graph;
   * `pinned` and `registered`: memory of the host that the device reaches too; `managed`: the same, and it belongs to
   * the device; `opened`: memory of another driver, by cuIpcOpenMemHandle_v2().
   */
  readonly kind: "device" | "pool" | "graph" | "pinned" | "registered" | "managed" | "opened";
  readonly device: Device;
  readonly context: Context;
  readonly pool: Pool | null;
  /** A number that no other allocation has or had. */
  readonly id: bigint;
  /** Whether memory operations on it wait for each other: CU_POINTER_ATTRIBUTE_SYNC_MEMOPS. */
  syncMemops: boolean;
  /** How host memory was allocated or registered, or how managed memory is attached. */
  readonly flags: number;
}

/** A module: a program and its variables in the memory of a context. */
export interface LoadedModule {
  readonly handle: bigint;
  readonly context: Context;
  readonly program: PtxModule;
  readonly variables: ReadonlyMap<string, Allocation>;
  readonly functions: Map<string, LoadedFunction>;
  /** Whether the code is still there. */
  isLoaded: boolean;
}

/** A kernel of a module. */
export interface LoadedFunction {
  readonly handle: bigint;
  readonly name: string;
  readonly module: LoadedModule;
  readonly entry: PtxKernel;
  /** Bytes of dynamic shared memory that launches may ask for. */
  maxDynamicShared: number;
}
