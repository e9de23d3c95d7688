/**
 * The objects behind a driver's handles.
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
  /** The number of the span of addresses that its memory has. */
  readonly span: number;
  readonly memory: DeviceMemory;
  readonly segments: Segments;
  /** Memory allocated immediately, not in stream order. */
  readonly heap: Heap<never>;
  /** Allocations as the device sees them: each from when its allocation runs until its free has run. */
  readonly mapped: IntervalMap<Allocation>;
  /** How often the primary context was retained and not yet released. */
  retained: number;
  readonly defaultPool: Pool;
  currentPool: Pool;
  /** Memory that graphs allocate. */
  readonly graphPool: GraphPool;
}

/** A context: the owner of streams, events and memory. */
export interface Context {
  readonly handle: bigint;
  readonly id: bigint;
  readonly device: Device;
  readonly isPrimary: boolean;
  flags: number;
  alive: boolean;
  /** The code that every call returns once a kernel has failed; CUDA_SUCCESS as long as none has. */
  fault: ResultCode;
  readonly legacy: Stream;
  readonly perThread: Stream;
  /** All streams, including the two default ones and destroyed ones with queued work. */
  readonly streams: Set<Stream>;
  /** Those of them that are destroyed: they are removed once their work has run. */
  readonly ending: Set<Stream>;
  /** The task that all work enqueued from now on waits for: cuCtxWaitEvent(). */
  barrier: Task | null;
  /** A task's number: streams that were destroyed before it was enqueued are over, as far as libcuda knows. */
  seen: number;
  /** Contexts whose memory may be accessed from this one. */
  readonly peers: Set<Context>;
  /** Text that its kernels have printed. */
  readonly output: Output;
}

/** A stream. */
export class Stream {
  /** Its handle; those of the default streams are the same in every context. */
  readonly handle: bigint;
  /** A unique number. */
  readonly id: number;
  /** `CU_STREAM`. */
  readonly flags: number;
  /** Lower runs sooner; it guarantees no order. */
  readonly priority: number;
  /** The task enqueued last. */
  tail: Task | null = null;
  /**
   * The task that other streams wait for when they follow this one by default-stream rules: the one enqueued last,
   * except that an allocation on the legacy default stream does not count.
   */
  implicitTail: Task | null = null;
  /** The last task that the driver checks before it reads host memory during a call. */
  explicitTail: Task | null = null;
  /** The capture that the stream participates in, and its last nodes there. */
  capture: { readonly of: Capture; readonly point: CapturedPoint } | null = null;
  #context: Context | undefined;

  /** Creates a stream that is not yet attached to a context. */
  constructor(handle: bigint, id: number, flags: number, priority: number) {
    this.handle = handle;
    this.id = id;
    this.flags = flags;
    this.priority = priority;
  }

  /** The context that the stream belongs to. */
  get context(): Context {
    if (this.#context === undefined) throw new TypeError("Cannot use a stream that belongs to no context yet");
    return this.#context;
  }

  /** Attaches it to a context. Separate from the constructor because a context is created with two streams. */
  attach(context: Context): this {
    this.#context = context;
    context.streams.add(this);
    return this;
  }

  /** Whether this stream and the legacy default stream wait for each other. */
  get isBlocking(): boolean {
    return (this.flags & CU_STREAM.NON_BLOCKING) === 0;
  }
}

/** The last record of an event. */
export interface EventRecord {
  /** The driver that recorded the event: an interprocess event may be recorded by another driver. */
  readonly simulator: Simulator;
  readonly task: Task;
  /** Whether it marks the end of all work of the context, rather than of a stream. */
  readonly ofContext: boolean;
  /** Simulated time at which the task ran, in milliseconds. */
  time: number;
}

/** An event. */
export interface Event {
  readonly handle: bigint;
  readonly context: Context;
  readonly flags: number;
  /** Null: never recorded, or last recorded in a capture. */
  record: EventRecord | null;
  /** Holds the record: other drivers that have opened the event share this object. */
  readonly shared: { record: EventRecord | null };
  /** Where the event was recorded, if in a capture. */
  captured: { readonly of: Capture; readonly point: CapturedPoint } | null;
}

/** Memory known to the driver. */
export interface Allocation {
  readonly address: bigint;
  /** Size in bytes, as requested. */
  readonly bytes: number;
  /**
   * `device`: from cuMemAlloc_v2(); `variable`: of a module; `pool`: stream-ordered; `graph`: allocated by a graph
   * node; `pinned` and `registered`: host memory that the device can access too; `managed`: the same, but it belongs to
   * the device; `opened`: another driver's memory, from cuIpcOpenMemHandle_v2().
   */
  readonly kind: "device" | "variable" | "pool" | "graph" | "pinned" | "registered" | "managed" | "opened";
  readonly device: Device;
  readonly context: Context;
  readonly pool: Pool | null;
  /** A number that is never reused for another allocation. */
  readonly id: bigint;
  /** Whether memory operations on it are always synchronous: CU_POINTER_ATTRIBUTE_SYNC_MEMOPS. */
  syncMemops: boolean;
  /** Flags with which host memory was allocated or registered, or managed memory is attached. */
  readonly flags: number;
}

/** A module: a program and its variables in the memory of a context. */
export interface LoadedModule {
  readonly handle: bigint;
  readonly context: Context;
  readonly program: PtxModule;
  readonly variables: ReadonlyMap<string, Allocation>;
  readonly functions: Map<string, LoadedFunction>;
  /** Whether the code has not been unloaded. */
  isLoaded: boolean;
}

/** A kernel of a module. */
export interface LoadedFunction {
  readonly handle: bigint;
  readonly name: string;
  readonly module: LoadedModule;
  readonly entry: PtxKernel;
  /** Bytes of dynamic shared memory that launches may request. */
  maxDynamicShared: number;
}
