/**
 * How work enters a simulator's queue and when it must run: what new work waits for, what happens when the host waits,
 * and what a capture forbids.
 *
 * @module
 */
import { CU_STREAM_CAPTURE_MODE, CUresult } from "../../bindings/cuda_types.ts";
import { refuse } from "./call.ts";
import type { SimulateOptions } from "./driver.ts";
import type { Capture, NodeKind } from "./graph.ts";
import { type GraphMemory, releaseUnused } from "./graph_memory.ts";
import type { Allocation, Context, LoadedModule, Stream } from "./objects.ts";
import type { Task } from "./scheduler.ts";
import { SimulatorState } from "./simulator_state.ts";

/** A simulated driver's state, and the rules that its calls share. */
export class Simulator extends SimulatorState {
  /** How often each task was queried. After a number of queries, chosen by the seed, it is forced to run. */
  readonly #queryCounts = new WeakMap<Task, number>();
  /**
   * How often tasks of each stream were found pending since one of it ran, with the same limit: a program that polls
   * may record a new event, which is a new task, for each query.
   */
  readonly #pendingCounts = new Map<number, number>();
  readonly #maxNotReady: number;

  /** Creates a simulator with idle devices. */
  constructor(options: SimulateOptions) {
    super(options);
    this.#maxNotReady = this.options.schedule === "latest" ? 3 : this.random.below(4);
  }

  /**
   * Appends work to a stream, or to its capture if the stream is being captured.
   *
   * @param kind the kind of graph node that the work becomes, or that it cannot be captured
   * @param after tasks that the work waits for, besides those implied by stream order
   * @param memory memory that it allocates or frees, as a graph node
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
      capture.of.invalidated = true;
      throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if (capture.of.invalidated) throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    const node = { handle: this.newHandle(), kind, context: stream.context, dependencies: capture.point, run, memory };
    capture.of.graph.nodes.push(node);
    stream.capture = { of: capture.of, point: [node] };
    return null;
  }

  // law sim/Simulator.enqueue: gpu/implied_order
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

  // law sim/Simulator.enqueueAllocation: checker/schedule, gpu/implied_order
  /**
   * Appends an allocation to a stream. On the legacy default stream, an allocation is not work that other streams wait
   * for: streams that follow that stream by default-stream rules can use the memory, but do not follow what the
   * allocation itself waits for (`tests/gpu/implied_order_test.ts`).
   *
   * @param after the free by the memory's previous owner
   */
  enqueueAllocation(stream: Stream, run: () => void, after: Task | null): void {
    const { context, id, implicitTail } = stream;
    if (stream !== context.legacy) return void this.enqueue(stream, run, [after]);
    const there = this.queue(context, id, run, [after, implicitTail, context.barrier]);
    this.enqueue(stream, () => {}, [there]);
    stream.implicitTail = there;
  }

  /** Queues work outside of any stream. The work is skipped if a kernel of the context has failed by then. */
  queue(context: Context, streamId: number, run: () => void, after: readonly (Task | null)[]): Task {
    const { observer } = this;
    return this.scheduler.enqueue(streamId, after, () => {
      this.clock += 0.001; // everything takes at least a microsecond
      this.runningObserver = observer;
      this.#pendingCounts.delete(streamId);
      if (context.fault === 0) run();
    });
  }

  // law sim/Simulator.hostWaits: sim/output, ptx/faults
  /** Blocks the host until tasks have run; reports a kernel that has failed by then. */
  hostWaits(context: Context, ...tasks: readonly (Task | null)[]): void {
    for (const task of tasks) this.scheduler.force(task);
    for (const pool of this.pools.values()) pool.trim(pool.settings.releaseThreshold);
    this.flush(context);
    this.refuseFault(context);
  }

  /**
   * Returns whether tasks have run, which the schedule decides: pending work may run because of the query, and is
   * forced to run after a few queries, so that polling terminates.
   */
  query(context: Context, ...tasks: readonly (Task | null)[]): number {
    const open = tasks.filter((task) => task !== null && !task.done);
    for (const task of open) {
      if (task === null) continue;
      const asked = (this.#queryCounts.get(task) ?? 0) + 1;
      const pending = (this.#pendingCounts.get(task.streamId) ?? 0) + 1;
      const isForced = Math.max(asked, pending) > this.#maxNotReady;
      this.#queryCounts.set(task, asked);
      this.#pendingCounts.set(task.streamId, pending);
      if (isForced) this.scheduler.force(task);
    }
    this.refuseFault(context);
    return open.every((task) => task?.done) ? CUresult.CUDA_SUCCESS : CUresult.CUDA_ERROR_NOT_READY;
  }

  /** The last task of each stream of a context. */
  tails(context: Context): Task[] {
    return [...context.streams].map(({ tail }) => tail).filter((tail) => tail !== null);
  }

  /** The last task of each stream of some contexts, if it has not run. */
  unfinished(contexts: Iterable<Context> = this.contexts.values()): Task[] {
    return [...contexts].flatMap((context) => this.tails(context)).filter(({ done }) => !done);
  }

  // law sim/Simulator.waitBeforeFree: sim/early_frees
  /** Runs all work of some contexts, which may use memory about to be freed, unless frees do not wait. */
  waitBeforeFree(contexts?: Iterable<Context>): void {
    if (this.options.freesWait) { for (const task of this.unfinished(contexts)) this.scheduler.force(task); }
  }

  /** Frees memory that was not allocated in stream order, though work may still use it. */
  free(allocation: Allocation): void {
    this.space.free(allocation, this.unfinished());
  }

  /**
   * Refuses a call that might wait for work that is only being captured, or bypass it. The refusal invalidates the
   * captures, unless they are relaxed.
   */
  refuseInCapture(): void {
    if (this.captureMode === CU_STREAM_CAPTURE_MODE.RELAXED) return;
    const strict = [...this.captures].filter(({ mode }) => mode !== CU_STREAM_CAPTURE_MODE.RELAXED);
    if (strict.length === 0) return;
    for (const capture of strict) capture.invalidated = true;
    throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }

  /** Refuses to wait for a stream whose work is only being captured. */
  refuseCapturing(stream: Stream): void {
    if (stream.capture === null) return;
    stream.capture.of.invalidated = true;
    throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }

  /** Activates a context. A primary context in which a kernel has failed stays lost until the process ends. */
  activate(context: Context): void {
    this.refuseFault(context);
    context.alive = true;
    context.barrier = null;
    this.contexts.set(context.handle, context);
  }

  /** Ends a capture: its streams capture nothing any more. */
  endCapture(capture: Capture): void {
    capture.ended = true;
    for (const stream of capture.streams) if (stream.capture?.of === capture) stream.capture = null;
    this.captures.delete(capture);
  }

  // law sim/Simulator.unload: sim/early_frees, sim/contexts
  /** Ends a module's handles; launches of its kernels that have not run fail. Its variables are freed by the caller. */
  unload(module: LoadedModule): void {
    this.modules.delete(module.handle);
    for (const { handle } of module.functions.values()) this.functions.delete(handle);
    module.isLoaded = false;
  }

  // law sim/Simulator.destroy: sim/contexts, sim/output, ptx/faults
  /** Destroys a context with everything that belongs to it, after running its queued work. */
  destroy(context: Context): void {
    for (const task of this.tails(context)) this.scheduler.force(task);
    this.flush(context);
    context.alive = false;
    this.contexts.delete(context.handle);
    for (const stream of context.streams) {
      if (stream.capture !== null) stream.capture.of.invalidated = true;
      stream.capture = null;
      this.streams.delete(stream.handle);
    }
    for (const capture of this.captures) if (capture.origin.context === context) this.endCapture(capture);
    for (const module of this.modules.values()) if (module.context === context) this.unload(module);
    for (const stream of [...context.streams]) {
      if (stream !== context.legacy && stream !== context.perThread) context.streams.delete(stream);
      stream.tail = null;
    }
    context.ending.clear();
    for (const { handle, context: owner } of this.events.values()) if (owner === context) this.events.delete(handle);
    for (const other of this.contexts.values()) other.peers.delete(context);
    context.peers.clear();
    this.space.freeAllOf(context, this.unfinished());
    releaseUnused(this);
  }

  /** Refuses work on the legacy stream that would wait for streams whose work is only being captured. */
  refuseImplicit(stream: Stream): void {
    const waiting = this.#capturesBehind(stream);
    if (waiting.length === 0) return;
    for (const capture of waiting) capture.invalidated = true;
    throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }

  /** Refuses the same without invalidating the captures. */
  checkImplicit(stream: Stream): void {
    if (this.#capturesBehind(stream).length > 0) throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }

  /** The captures of the streams that the legacy stream would wait for; none for any other stream. */
  #capturesBehind(stream: Stream): Capture[] {
    const { context } = stream;
    if (stream !== context.legacy) return [];
    const captures = [...context.streams].filter(({ isBlocking }) => isBlocking).map(({ capture }) => capture?.of);
    return captures.filter((capture) => capture !== undefined);
  }

  #forgetFinished({ streams, ending }: Context): void {
    for (const stream of ending) {
      if (stream.tail?.done !== false) {
        streams.delete(stream);
        ending.delete(stream);
      }
    }
  }
}
