/**
 * The contexts, streams and events that calls have named.
 *
 * @module
 */
import { quoted } from "../layout/mod.ts";
import { CU_STREAM, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD } from "../../bindings/cuda_types.ts";
import { type CudaDriver, type DriverTraits, observeKernels } from "../driver/mod.ts";
import { Journal } from "./journal.ts";
import { KnownMemory } from "./known_memory.ts";
import { hex } from "./messages.ts";
import { type ArgumentReader, argumentReader } from "./read_arguments.ts";
import type { CheckOptions } from "./checker.ts";
import { type Clock, ContextClock, type StreamClock, VectorClocks } from "./vector_clocks.ts";
import type { CausalityCall } from "./report.ts";
import { Reporter } from "./reporter.ts";
import { currentSite, framesOf } from "./call_site.ts";
import { ObjectLifetimes } from "./object_lifetimes.ts";
import { Timeline } from "./timeline.ts";

/** An event, as last recorded. */
export interface EventState {
  /** What was recorded; null if the event was never recorded, or was last recorded in a capture. */
  record: { readonly clock: Clock; readonly seq: number } | null;
  /** Where it was recorded, if that was in a capture. */
  captured: StreamClock["capture"];
}

/** What is known about a driver's contexts, streams and events: the lower half of a checker's state. */
export class StreamState {
  /** The driver that does the work. */
  readonly inner: CudaDriver;
  /** The chosen options. */
  readonly options: CheckOptions;
  /** The order of all work. */
  readonly order: VectorClocks = new VectorClocks();
  /** How the driver lets kernels be observed; null if it cannot, or if that is not wanted. */
  readonly observe: NonNullable<DriverTraits[typeof observeKernels]> | null;
  /** The accesses made while kernels are in flight, if what the kernels touch will become known. */
  readonly journal: Journal | null;
  /** What is known about memory. */
  readonly memory: KnownMemory = new KnownMemory();
  /** The last calls. */
  readonly timeline: Timeline = new Timeline();
  /** Reads what arguments point to. */
  readonly reader: ArgumentReader = argumentReader();
  /** Events that were recorded through this driver. */
  readonly events: Map<bigint, EventState> = new Map();
  /** Objects created through this driver, and which of them were destroyed. */
  readonly lifetimes: ObjectLifetimes = new ObjectLifetimes();
  /** Makes the reports. */
  readonly reporter: Reporter;
  /** Whether a context is lost: from then on nothing can be freed or destroyed, which is not the program's mistake. */
  isLost = false;
  readonly #streams = new Map<bigint, StreamClock>();
  /** The users' names for devices. */
  readonly deviceNames: Map<number, string> = new Map();
  readonly #sharedEvents = new Set<bigint>();
  readonly #contexts = new Map<bigint, ContextClock>();

  /** A checker that has seen no calls. */
  constructor(inner: CudaDriver, options: CheckOptions) {
    this.inner = inner;
    this.options = options;
    this.observe = options.kernels === "whole" ? null : inner[observeKernels] ?? null;
    this.journal = this.observe === null ? null : new Journal(this.order);
    this.reporter = new Reporter(this.timeline, options.onReport);
  }

  /** The context of a handle. */
  context(handle: bigint, device: number | null = null): ContextClock {
    return this.#contexts.getOrInsertComputed(handle, () => new ContextClock(handle, device));
  }

  /** The current context, or null. The driver is queried each time: other code changes it too. */
  current(): ContextClock | null {
    const { cuCtxGetCurrent, cuCtxGetDevice } = this.inner.context;
    const { address } = this.reader;
    if (cuCtxGetCurrent(address) !== 0) return null;
    const handle = this.reader.value;
    if (handle === 0n) return null;
    const known = this.#contexts.get(handle);
    if (known !== undefined) return known;
    const device = cuCtxGetDevice(address) === 0 ? this.reader.view.getInt32(0, true) : null;
    return this.context(handle, device);
  }

  /**
   * The stream of a handle; null if there is none, an error that the driver will return. Reports a destroyed stream.
   */
  stream(handle: bigint, call: string): StreamClock | null {
    if (handle === 0n || handle === CU_STREAM_LEGACY) return this.legacy();
    if (handle === CU_STREAM_PER_THREAD) return this.#perThread();
    const stream = this.#streams.get(handle);
    if (stream !== undefined) return stream;
    const gone = this.lifetimes.destruction("stream", handle);
    if (gone !== null) {
      this.reporter.destroyed(gone.what, gone.by, this.describeCall(call));
      return null;
    }
    return this.#openForeign(handle);
  }

  /** The legacy default stream of the current context. */
  legacy(): StreamClock | null {
    const context = this.current();
    if (context === null) return null;
    context.legacy ??= this.order.open(CU_STREAM_LEGACY, context, true, `the default stream${this.#onDevice(context)}`);
    return context.legacy;
  }

  #perThread(): StreamClock | null {
    const context = this.current();
    if (context === null) return null;
    const name = `the thread's default stream${this.#onDevice(context)}`;
    context.perThread ??= this.order.open(CU_STREAM_PER_THREAD, context, true, name);
    return context.perThread;
  }

  /** A stream made by another library. What it did so far is unknown. */
  #openForeign(handle: bigint): StreamClock | null {
    const { cuStreamGetCtx, cuStreamGetFlags } = this.inner.stream;
    const { address, view } = this.reader;
    if (cuStreamGetCtx(handle, address) !== 0) return null;
    const context = this.context(this.reader.value);
    if (cuStreamGetFlags(handle, address) !== 0) return null;
    return this.openStream(handle, context, view.getUint32(0, true));
  }

  /** Notes that other processes can record an event from now on: what precedes its recording is no longer known. */
  shareEvent(handle: bigint): void {
    this.#sharedEvents.add(handle);
  }

  /** Forgets an event that is destroyed. */
  forgetEvent(handle: bigint): void {
    this.events.delete(handle);
    this.#sharedEvents.delete(handle);
  }

  // law checker/StreamState.event: checker/lifetime
  /** An event that was recorded through this driver, or null for another library's. Reports a destroyed one. */
  event(handle: bigint, call: string): EventState | null {
    const state = this.events.get(handle);
    if (state !== undefined) return this.#sharedEvents.has(handle) ? null : state;
    const gone = this.lifetimes.destruction("event", handle);
    if (gone !== null) this.reporter.destroyed(gone.what, gone.by, this.describeCall(call));
    return null;
  }

  /** Adds a stream that exists from now on. */
  openStream(handle: bigint, context: ContextClock, flags: number): StreamClock {
    const isBlocking = (flags & CU_STREAM.NON_BLOCKING) === 0;
    const stream = this.order.open(handle, context, isBlocking, `stream ${hex(handle)}${this.#onDevice(context)}`);
    this.#streams.set(handle, stream);
    return stream;
  }

  /** Notes the user's name for a stream. */
  nameStream(handle: bigint, name: string): void {
    const stream = this.#streams.get(handle);
    if (stream !== undefined) stream.name = `stream${quoted(name)}${this.#onDevice(stream.context)}`;
    this.lifetimes.named("stream", handle, name);
  }

  /** Notes that a stream is destroyed; work enqueued on it still runs. */
  closeStream(handle: bigint): void {
    const stream = this.#streams.get(handle);
    this.#streams.delete(handle);
    if (stream !== undefined) this.order.close(stream);
  }

  /** Notes that another library has made a stream with this handle, perhaps that of a destroyed one. */
  foreignStream(handle: bigint): void {
    this.lifetimes.reuse("stream", handle);
  }

  /** Notes that a context is destroyed with everything in it. */
  closeContext(handle: bigint, call: string): void {
    const context = this.#contexts.get(handle);
    if (context === undefined) return;
    this.#contexts.delete(handle);
    const lost = [...this.#streams].filter(([, stream]) => stream.context === context);
    const by = lost.length > 0 ? this.describeCall(call) : null;
    for (const [stream] of lost) {
      this.closeStream(stream);
      if (by !== null) this.lifetimes.destroyedWithContext("stream", stream, by);
    }
    for (const known of this.memory.allocations.filter((one) => one.context === context && one.kind !== "pool")) {
      this.lifetimes.abandon(known);
      this.journal?.freed(known);
      this.memory.forget(known);
    }
    // Its streams stay in clocks: work destroyed with them has run, or never will.
    for (const stream of context.streams) {
      if (stream === context.legacy || stream === context.perThread) this.order.close(stream);
    }
  }

  /** Notes that a capture has ended, for all streams in it. */
  endCapture(of: NonNullable<StreamClock["capture"]>["of"]): void {
    for (const stream of this.order.streams) if (stream.capture?.of === of) stream.capture = null;
  }

  /** The current driver call as a report describes it: on a stream, or by the host. */
  describeCall(call: string, stream: StreamClock | null = null): CausalityCall {
    const stack = framesOf(currentSite());
    return { does: "uses", call, stream: stream?.name ?? "host", address: null, bytes: 0, stack, seq: 0 };
  }

  #onDevice({ device, handle }: ContextClock): string {
    if (device === null) return ` of context ${hex(handle)}`;
    return ` of device ${device}${quoted(this.deviceNames.get(device) ?? null)}`;
  }
}
