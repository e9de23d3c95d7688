/**
 * What the checker knows of a driver, and what it does with every call: find out which stream it is about, put it into
 * the order, and compare what it touches with what was touched before.
 *
 * @module
 */
import { CU_STREAM, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD } from "../../../bindings/cuda_types.ts";
import type { CudaDriver } from "../../cuda/driver.ts";
import type { Access } from "./access.ts";
import { type Node, type Touch, unorderedNodes, type WatchedGraph } from "./capture.ts";
import type { KernelParam } from "./kernel_params.ts";
import { type Freed, Known, Memory, type MemoryKind } from "./memory.ts";
import { type Peek, peek } from "./native.ts";
import { type Clock, ContextOrder, type Lane, Order } from "./order.ts";
import type { CausalityCall } from "./report.ts";
import { Reporter } from "./reporter.ts";
import type { CheckOptions } from "./options.ts";
import { framesOf, here, type Site } from "./site.ts";
import { Things } from "./things.ts";
import { Timeline } from "./timeline.ts";
import { Work } from "./work.ts";

/** An event, as last recorded. */
export interface EventState {
  /** What it stands for; null if it was never recorded, or last in a capture. */
  record: { readonly clock: Clock; readonly seq: number } | null;
  /** Where it was recorded, if that was in a capture. */
  captured: Lane["capture"];
}

const nothing: readonly number[] = [];

/** The state of a checker. */
export class Watch {
  /** The driver that does the work. */
  readonly inner: CudaDriver;
  /** What was chosen. */
  readonly options: CheckOptions;
  /** The order of all work. */
  readonly order: Order = new Order();
  /** What is known of memory. */
  readonly memory: Memory = new Memory();
  /** The last calls. */
  readonly timeline: Timeline = new Timeline();
  /** A look at native memory. */
  readonly peek: Peek = peek();
  /** Events that were recorded through this driver. */
  readonly events: Map<bigint, EventState> = new Map();
  /** Graphs by handle. */
  readonly graphs: Map<bigint, WatchedGraph> = new Map();
  /** Graphs that can be launched, by handle. */
  readonly graphExecs: Map<bigint, WatchedGraph> = new Map();
  /** What is known of kernels, by their handles. */
  readonly kernels: Map<bigint, readonly KernelParam[]> = new Map();
  /** What was made through this driver, and what of it is gone. */
  readonly things: Things = new Things();
  /** What is said to the program. */
  readonly reporter: Reporter;
  readonly #streams = new Map<bigint, Lane>();
  readonly #sharedEvents = new Set<bigint>();
  readonly #contexts = new Map<bigint, ContextOrder>();

  /** A checker that has seen nothing. */
  constructor(inner: CudaDriver, options: CheckOptions) {
    this.inner = inner;
    this.options = options;
    this.reporter = new Reporter(this.timeline, options.onReport);
  }

  // -- Contexts and streams --

  /** The context of a handle. */
  context(handle: bigint, device: number | null = null): ContextOrder {
    let context = this.#contexts.get(handle);
    if (context === undefined) this.#contexts.set(handle, context = new ContextOrder(handle, device));
    return context;
  }

  /** The context that is current, or null. The driver is asked: others change it too. */
  current(): ContextOrder | null {
    const { cuCtxGetCurrent, cuCtxGetDevice } = this.inner.context;
    const { address } = this.peek;
    if (cuCtxGetCurrent(address) !== 0) return null;
    const handle = this.peek.here;
    if (handle === 0n) return null;
    const known = this.#contexts.get(handle);
    if (known !== undefined) return known;
    const device = cuCtxGetDevice(address) === 0 ? this.peek.view.getInt32(0, true) : null;
    return this.context(handle, device);
  }

  /** The stream that a call is about; null if it is none, which the driver will say. Reports a destroyed one. */
  lane(handle: bigint, call: string): Lane | null {
    if (handle === 0n || handle === CU_STREAM_LEGACY) return this.legacy();
    if (handle === CU_STREAM_PER_THREAD) return this.#perThread();
    const lane = this.#streams.get(handle);
    if (lane !== undefined) return lane;
    const gone = this.things.gone("stream", handle);
    if (gone !== null) {
      this.reporter.destroyed(gone.what, gone.by, this.useOf(call));
      return null;
    }
    return this.#adopt(handle);
  }

  /** The legacy default stream of the current context. */
  legacy(): Lane | null {
    const context = this.current();
    if (context === null) return null;
    context.legacy ??= this.order.open(CU_STREAM_LEGACY, context, true, `the default stream${onDevice(context)}`);
    return context.legacy;
  }

  #perThread(): Lane | null {
    const context = this.current();
    if (context === null) return null;
    const name = `the thread's default stream${onDevice(context)}`;
    context.perThread ??= this.order.open(CU_STREAM_PER_THREAD, context, true, name);
    return context.perThread;
  }

  /** A stream that somebody else has made. What it did so far is not known. */
  #adopt(handle: bigint): Lane | null {
    const { cuStreamGetCtx, cuStreamGetFlags } = this.inner.stream;
    const { address, view } = this.peek;
    if (cuStreamGetCtx(handle, address) !== 0) return null;
    const context = this.context(this.peek.here);
    if (cuStreamGetFlags(handle, address) !== 0) return null;
    return this.openStream(handle, context, view.getUint32(0, true));
  }

  /** An event can be recorded by other processes from now on: what it stands for is not known any more. */
  shareEvent(handle: bigint): void {
    this.#sharedEvents.add(handle);
  }

  /** An event is destroyed. */
  forgetEvent(handle: bigint): void {
    this.events.delete(handle);
    this.#sharedEvents.delete(handle);
  }

  /** An event that was recorded through this driver, or null: somebody else's. Reports a destroyed one. */
  event(handle: bigint, call: string): EventState | null {
    const state = this.events.get(handle);
    if (state !== undefined) return this.#sharedEvents.has(handle) ? null : state;
    const gone = this.things.gone("event", handle);
    if (gone !== null) this.reporter.destroyed(gone.what, gone.by, this.useOf(call));
    return null;
  }

  /** A stream exists from now on. */
  openStream(handle: bigint, context: ContextOrder, flags: number): Lane {
    const isBlocking = (flags & CU_STREAM.NON_BLOCKING) === 0;
    const lane = this.order.open(handle, context, isBlocking, `stream 0x${handle.toString(16)}${onDevice(context)}`);
    this.#streams.set(handle, lane);
    return lane;
  }

  /** A stream is destroyed; what is enqueued there still runs. */
  closeStream(handle: bigint): void {
    const lane = this.#streams.get(handle);
    this.#streams.delete(handle);
    if (lane !== undefined) this.order.close(lane);
  }

  /** Somebody else has made a stream of this handle, perhaps where one of ours was. */
  revive(handle: bigint): void {
    this.things.revive("stream", handle);
  }

  /** A context is destroyed with all that belongs to it. */
  closeContext(handle: bigint, call: string): void {
    const context = this.#contexts.get(handle);
    if (context === undefined) return;
    this.#contexts.delete(handle);
    for (const [stream, lane] of this.#streams) {
      if (lane.context !== context) continue;
      this.closeStream(stream);
      this.things.lost("stream", stream, this.useOf(call));
    }
    for (const known of this.memory.known.filter((one) => one.context === context && one.kind !== "pool")) {
      this.things.abandon(known);
      this.memory.forget(known);
    }
    // Its lanes stay in clocks: destroyed work has happened, or never will.
    for (const lane of context.lanes) if (lane === context.legacy || lane === context.perThread) this.order.close(lane);
  }

  /** Lanes whose capture has ended. */
  endCapture(of: NonNullable<Lane["capture"]>["of"]): void {
    for (const lane of this.order.lanes) if (lane.capture?.of === of) lane.capture = null;
  }

  // -- Work --

  /** Work of a call, whose bytes are yet to be said. */
  work(call: string, lane: Lane | null): Work {
    return new Work(this, call, lane);
  }

  /** A call of the driver as a report names it, here and now: on a stream, or the host's. */
  useOf(call: string, lane: Lane | null = null): CausalityCall {
    const stack = framesOf(here());
    return { does: "uses", call, lane: lane?.name ?? "host", address: null, bytes: 0, stack, seq: 0 };
  }

  /** Puts work without bytes into a stream: a mark of the order. Returns its number in the timeline. */
  mark(lane: Lane, kind: "work" | "record" | "wait", call: string, after: number | null = null): number {
    const from: number[] = [];
    this.order.advance(lane, from);
    if (after !== null) from.push(after);
    lane.last = this.timeline.add(lane.name, kind, call, from);
    return lane.last;
  }

  /** Enqueues work that touches memory. @param site where the call was made, if that is known already */
  enqueue(lane: Lane, call: string, touches: readonly Touch[], site: Site | null = null): void {
    if (lane.capture !== null) return this.#captureWork(lane, call, touches);
    const seq = this.mark(lane, "work", call);
    const tick = this.order.step(lane);
    const [first] = touches;
    if (first === undefined) return;
    const made = site ?? lane.sites.of(call, first.start, first.end - first.start);
    let found: { readonly access: Access; readonly conflict: Access } | null = null;
    for (const { start, end, kind, writes } of touches) {
      const access = { lane, tick, seq, kind, writes, call, site: made, start, end };
      const conflict = this.#touch(access);
      if (conflict !== null) found ??= { access, conflict };
    }
    if (found !== null) this.reporter.race(found.conflict, found.access, this.describe(found.access, found.conflict));
  }

  #touch(access: Access): Access | null {
    const { lane: { clock }, start, end, kind } = access;
    if (kind === "kernel") {
      const known = this.memory.find(start);
      if (known === undefined) return null;
      if (this.options.kernels !== "whole") return known.touchByKernel(access, clock, this.order);
      const whole = { ...access, writes: access.writes ?? true };
      return known.touch(whole, known.start, known.end, clock, this.order);
    }
    return this.memory.touch(access, start, end, clock, this.order);
  }

  #captureWork(lane: Lane, call: string, touches: readonly Touch[]): void {
    const { capture } = lane;
    if (capture === null) return;
    const node: Node = { call, site: here(), touches, after: capture.after };
    capture.of.nodes.push(node);
    lane.capture = { of: capture.of, after: [node] };
  }

  /** Enqueues all work of a graph: to everything else it is one piece. */
  launchGraph(lane: Lane, call: string, graph: WatchedGraph): void {
    this.order.advance(lane, null);
    this.order.wait(lane, graph.last);
    if (!graph.examined) this.#examine(lane, graph);
    const touches = graph.nodes.flatMap((node) => node.touches);
    this.enqueue(lane, call, touches);
    graph.last = [...lane.clock];
  }

  /** Looks once for work inside a graph that is unordered with other work inside it. */
  #examine(lane: Lane, graph: WatchedGraph): void {
    graph.examined = true;
    const found = unorderedNodes(graph, this.options.kernels === "whole");
    if (found === null) return;
    const { first, second, one, other } = found;
    const side = ({ call, site }: Node, { start, end, kind, writes }: Touch): Access => (
      { lane, tick: 0, seq: 0, kind, writes, call, site, start, end }
    );
    const [a, b] = [side(first, one), side(second, other)];
    this.reporter.race(a, b, this.describe(b, a));
  }

  /** The host reads memory during the call. */
  readByHost(call: string, start: number, end: number): void {
    const conflict = this.memory.conflictWithHost(start, end, this.order);
    if (conflict !== null) this.#raceWithHost(conflict, call, "reads", start, end, this.memory.find(start));
  }

  #raceWithHost(
    conflict: Access,
    call: string,
    does: "reads" | "frees",
    start: number,
    end: number,
    known: Known | undefined,
  ): void {
    const side = { does, address: BigInt(start), bytes: end - start } as const;
    this.reporter.raceWithHost(conflict, { ...this.useOf(call), ...side }, nameOf(known));
  }

  /** The host waits for something. */
  hostWaits(clock: readonly number[], call: string, after: readonly number[]): void {
    this.order.hostWaits(clock);
    this.order.lastWait = this.timeline.add("host", "host", call, after);
  }

  /** The host waits for streams. */
  hostWaitsFor(lanes: Iterable<Lane>, call: string): void {
    const after: number[] = [];
    for (const lane of lanes) {
      this.order.hostWaits(lane.clock);
      if (lane.last > 0) after.push(lane.last);
    }
    this.hostWaits(nothing, call, after);
  }

  // -- Memory --

  /** Memory is allocated: at once, or, on a stream, in its order. */
  allocate(address: bigint, bytes: number, kind: MemoryKind, call: string, lane: Lane | null): void {
    const start = Number(address);
    if (address === 0n || bytes === 0 || !Number.isSafeInteger(start + bytes)) return;
    const context = lane?.context ?? this.current();
    const site = lane === null ? here() : lane.sites.of(call, bytes, bytes);
    const known = new Known(start, bytes, kind, context, call, site);
    this.memory.allocate(known);
    this.things.forgetMemory(start);
    if (lane === null) return;
    const seq = this.mark(lane, "work", call);
    const tick = this.order.step(lane);
    const { end } = known;
    const access = { lane, tick, seq, kind: "allocation", writes: true, call, site, start, end } as const;
    known.touch(access, start, end, lane.clock, this.order);
  }

  /** Memory of another process is mapped. */
  imported(address: bigint, call: string): void {
    const { cuMemGetAddressRange_v2 } = this.inner.pointer;
    const { address: out, view } = this.peek;
    if (cuMemGetAddressRange_v2(out, out + 8n, address) !== 0) return;
    this.allocate(address, Number(view.getBigUint64(8, true)), "imported", call, null);
  }

  /** Memory is freed in the order of a stream. */
  freeInOrder(lane: Lane, call: string, known: Known): void {
    const { start, end } = known;
    const site = lane.sites.of(call, end - start, end - start); // by size: addresses come and go
    try {
      this.enqueue(lane, call, [{ start, end, kind: "free", writes: true }], site);
    } finally {
      this.free(known, call, lane.name, site, lane.last);
    }
  }

  /** Memory is freed at once: whoever uses it must be over by what the host has waited for. */
  freeByHost(call: string, known: Known): void {
    const conflict = known.conflict(true, known.start, known.end, this.order.host);
    this.free(known, call, "host", here(), 0);
    if (conflict !== null) this.#raceWithHost(conflict, call, "frees", known.start, known.end, known);
  }

  /** Remembers memory that a call has freed. */
  free(known: Known, call: string, lane: string, site: Site, seq: number): void {
    // Freed memory of the host goes back to the system, where anyone may get it: using it again proves nothing.
    const { start, end } = known;
    this.things.forgetMemory(start);
    if (known.kind === "registered") this.memory.forget(known);
    else this.memory.free({ start, end, known, call, lane, site, seq });
  }

  /** The memory that a call is about to free; reports what is freed already. */
  freeing(lane: Lane | null, address: bigint, call: string): Known | null {
    const start = Number(address);
    if (address === 0n || !Number.isSafeInteger(start)) return null;
    const known = this.memory.find(start);
    if (known !== undefined) return known.start === start ? known : null;
    const freed = this.memory.freedAt(start);
    if (freed !== undefined && freed.start === start && !this.#isAnothers(freed)) {
      this.#reportFreed(freed, { ...this.useOf(call, lane), does: "frees", address, bytes: freed.end - start });
    }
    return null;
  }

  /** Reports bytes that a call is about to use although they are freed. */
  using(lane: Lane | null, start: number, end: number, call: string, does: "reads" | "writes" | "uses"): void {
    if (this.memory.find(start) !== undefined) return;
    const freed = this.memory.freedAt(start);
    if (freed === undefined || isOfHost(freed.known) || this.#isAnothers(freed)) return;
    this.#reportFreed(freed, { ...this.useOf(call, lane), does, address: BigInt(start), bytes: end - start });
  }

  /** Reports what a graph is about to use although it is freed. */
  usingAll(lane: Lane | null, { nodes }: WatchedGraph, call: string): void {
    for (const { touches } of nodes) {
      for (const { start, end, writes } of touches) {
        this.using(lane, start, end, call, writes === true ? "writes" : "reads");
      }
    }
  }

  #reportFreed({ known, call, lane, site, seq }: Freed, use: CausalityCall): void {
    const bytes = known.end - known.start;
    const first = { does: "frees", call, lane, address: BigInt(known.start), bytes, seq } as const;
    this.reporter.freed({ ...first, stack: framesOf(site) }, use, nameOf(known));
  }

  /** Whether the driver knows the address again: then another library has allocated it meanwhile. */
  #isAnothers(freed: Freed): boolean {
    const { cuMemGetAddressRange_v2 } = this.inner.pointer;
    const { address } = this.peek;
    if (cuMemGetAddressRange_v2(address, address + 8n, BigInt(freed.start)) !== 0) return false;
    this.memory.forget(freed);
    return true;
  }

  /** The memory that two accesses share, in words. */
  describe({ start }: Access, other: Access): string {
    return nameOf(this.memory.find(Math.max(start, other.start)) ?? this.memory.freedAt(start)?.known);
  }
}

function isOfHost({ kind }: Known): boolean {
  return kind === "pinned" || kind === "registered" || kind === "managed";
}

function nameOf(known: Known | undefined): string {
  if (known === undefined) return "memory that the driver did not allocate";
  const { kind, start, end, call } = known;
  return `the ${end - start} of ${kind} memory at 0x${start.toString(16)} (${call})`;
}

function onDevice({ device, handle }: ContextOrder): string {
  return device === null ? ` of context 0x${handle.toString(16)}` : ` of device ${device}`;
}
