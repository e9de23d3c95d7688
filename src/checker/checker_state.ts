/**
 * What the checker does with every call: put it into the order, and compare what it touches with what was touched before.
 *
 * @module
 */
import type { Access } from "./access_history.ts";
import { type Node, overlap, type Touch, unorderedNodes, type WatchedGraph } from "./capture.ts";
import { Recording } from "./journal.ts";
import type { KernelParam } from "./kernel_params.ts";
import { type Freed, Known, type MemoryKind } from "./known_memory.ts";
import type { Clock, Lane } from "./vector_clocks.ts";
import type { CausalityCall } from "./report.ts";
import { framesOf, here, type Site } from "./call_site.ts";
import { StreamWatch } from "./stream_state.ts";
import { Work } from "./pending_call.ts";

const nothing: readonly number[] = [];

/** Memory that was exported under the eyes of a checker of this process, by what the driver calls it. */
const exports = new Map<string, WeakRef<Known>>();

/** The state of a checker. */
export class Watch extends StreamWatch {
  /** Graphs by handle. */
  readonly graphs: Map<bigint, WatchedGraph> = new Map();
  /** Graphs that can be launched, by handle. */
  readonly graphExecs: Map<bigint, WatchedGraph> = new Map();
  /** What is known of kernels, by their handles. */
  readonly kernels: Map<bigint, readonly KernelParam[]> = new Map();

  /** Work of a call, whose bytes are yet to be said. */
  work(call: string, lane: Lane | null): Work {
    return new Work(this, call, lane);
  }

  /** Puts work without bytes into a stream: a mark of the order. Returns its number in the timeline. */
  mark(lane: Lane, kind: "work" | "record" | "wait", call: string, after: number | null = null): number {
    const from: number[] = [];
    this.order.advance(lane, from);
    if (after !== null) from.push(after);
    lane.last = this.timeline.add(lane.name, kind, call, from);
    return lane.last;
  }

  /**
   * Enqueues work that touches memory.
   *
   * @param site where the call was made, if that is known already
   * @param recording what will be known of its kernels
   */
  enqueue(
    lane: Lane,
    call: string,
    touches: readonly Touch[],
    site: Site | null = null,
    recording: Recording | null = null,
  ): void {
    if (lane.capture !== null) return this.#captureWork(lane, call, touches);
    const seq = this.mark(lane, "work", call);
    const tick = this.order.step(lane);
    const [first] = touches;
    if (first === undefined && recording === null) return;
    const made = site ?? lane.sites.of(call, first?.start ?? 0, first === undefined ? 0 : first.end - first.start);
    const { journal } = this;
    const at = journal?.next() ?? 0;
    const clock = journal === null ? lane.clock : [...lane.clock];
    if (recording !== null) {
      const access = { lane, tick, seq, kind: "kernel", writes: null, call, site: made, start: 0, end: 0 } as const;
      journal?.launched(recording, access, clock, at);
    }
    let found: { readonly access: Access; readonly conflict: Access } | null = null;
    for (const { start, end, kind, writes } of touches) {
      const access = { lane, tick, seq, kind, writes, call, site: made, start, end };
      const conflict = this.#touch(access, clock, at);
      if (conflict !== null) found ??= { access, conflict };
    }
    if (found !== null) this.reporter.race(found.conflict, found.access, this.describe(found.access, found.conflict));
  }

  #touch(access: Access, clock: Clock, at: number): Access | null {
    const { start, end, kind } = access;
    if (kind === "kernel") {
      const known = this.memory.find(start);
      if (known === undefined) return null;
      if (this.options.kernels !== "whole") return known.touchByKernel(access, clock, this.order);
      const whole = { ...access, writes: access.writes ?? true };
      return known.touch(whole, known.start, known.end, clock, this.order);
    }
    this.#note(access, start, end, clock, at);
    return this.memory.touch(access, start, end, clock, this.order);
  }

  #note(access: Access, start: number, end: number, clock: readonly number[], at: number): void {
    if (this.journal === null) return;
    for (const { known, from, to } of this.memory.at(start, end)) this.journal.note(access, known, from, to, clock, at);
  }

  /** What will be known of kernels that a call is about to launch; null: nothing, because the driver does not let them be observed. */
  record(kernels: number): Recording | null {
    return this.journal === null || kernels === 0 ? null : new Recording(kernels);
  }

  /** Makes a call that launches such kernels. */
  recorded(recording: Recording | null, call: () => number): number {
    return recording === null || this.observe === null ? call() : this.observe(recording, call);
  }

  /** Looks at what a call of the driver has brought about: kernels have run, a context is lost. */
  settle(): void {
    const { journal, isLost } = this;
    if (journal === null || journal.isIdle) return;
    if (isLost) return journal.forget();
    for (const { kernel, other, isFirst, known } of journal.settle((address) => this.memory.find(address))) {
      const memory = nameOf(known);
      if (!("tick" in other)) this.reporter.raceWithHost(kernel, other, memory);
      else if (isFirst) this.reporter.race(kernel, other, memory);
      else this.reporter.race(other, kernel, memory);
    }
  }

  #captureWork(lane: Lane, call: string, touches: readonly Touch[]): void {
    const { capture } = lane;
    if (capture === null) return;
    const node: Node = { call, site: here(), touches, after: capture.after };
    capture.of.nodes.push(node);
    lane.capture = { of: capture.of, after: [node] };
  }

  /** Enqueues all work of a graph: to everything else it is one piece. */
  launchGraph(lane: Lane, call: string, graph: WatchedGraph, recording: Recording | null): void {
    if (graph.isEmpty) return;
    this.order.advance(lane, null);
    this.order.wait(lane, graph.last);
    if (!graph.examined) this.#examine(lane, graph);
    const touches = graph.nodes.flatMap((node) => node.touches);
    this.enqueue(lane, call, touches, null, recording);
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

  /** The host reads or writes memory during the call. */
  touchByHost(call: string, start: number, end: number, writes: boolean): void {
    const { journal, memory, order } = this;
    const does = writes ? "writes" : "reads";
    if (journal?.knowsKernels) {
      const side = { ...this.useOf(call), does, address: BigInt(start), bytes: end - start } as const;
      for (const { known, from, to } of memory.at(start, end)) journal.noteHost(side, known, from, to, writes);
    }
    const conflict = memory.conflictWithHost(writes, start, end, order);
    if (conflict !== null) this.#raceWithHost(conflict, call, does, start, end, memory.find(start));
    this.settle();
  }

  #raceWithHost(
    conflict: Access,
    call: string,
    does: "reads" | "writes" | "frees",
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
    const known = new Known(start, bytes, kind, context, call, site, this.journal?.next() ?? 0);
    this.memory.allocate(known);
    this.things.forgetMemory(start);
    if (lane === null) return;
    const handed = this.order.handedBy(lane);
    const seq = this.mark(lane, "work", call);
    const tick = this.order.step(lane);
    if (handed !== null) {
      handed[lane.index] = tick;
      lane.handed = handed;
    }
    const { end } = known;
    const access = { lane, tick, seq, kind: "allocation", writes: true, call, site, start, end } as const;
    if (this.journal !== null) this.#note(access, start, end, [...lane.clock], this.journal.next());
    known.touch(access, start, end, lane.clock, this.order);
  }

  /** Memory is described for another process. @param name what the driver calls it there */
  exported(address: bigint, name: string): void {
    const known = this.memory.find(Number(address));
    if (known !== undefined) exports.set(name, new WeakRef(known));
  }

  /** Memory of another process is mapped, once more perhaps. @param name what the driver calls it */
  imported(address: bigint, call: string, name: string): void {
    const before = this.memory.find(Number(address));
    if (before?.kind === "imported") {
      before.opened++;
      return;
    }
    const { cuMemGetAddressRange_v2 } = this.inner.pointer;
    const { address: out, view } = this.peek;
    if (cuMemGetAddressRange_v2(out, out + 8n, address) !== 0) return;
    this.allocate(address, Number(view.getBigUint64(8, true)), "imported", call, null);
    const [known, origin] = [this.memory.find(Number(address)), exports.get(name)?.deref()];
    if (known !== undefined && origin?.gone === null) known.origin = origin;
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
    const { start, end } = known;
    const conflict = known.conflict(true, start, end, this.order.host);
    if (this.journal?.knowsKernels) {
      const side = { ...this.useOf(call), does: "frees", address: BigInt(start), bytes: end - start } as const;
      this.journal.noteHost(side, known, start, end, true);
    }
    this.free(known, call, "host", here(), 0);
    if (conflict !== null) this.#raceWithHost(conflict, call, "frees", start, end, known);
  }

  /** Remembers memory that a call has freed. */
  free(known: Known, call: string, lane: string, site: Site, seq: number): void {
    // Freed memory of the host goes back to the system, where anyone may get it: using it again proves nothing.
    const { start, end } = known;
    this.things.forgetMemory(start);
    this.journal?.freed(known);
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

  /**
   * Reports a copy that reads bytes which it writes: CUDA says nothing of what it does then. One of bytes to where they are is let pass:
   * they stay what they are.
   */
  copies(lane: Lane, call: string, touches: readonly Touch[]): void {
    const found = overlap(touches);
    if (found === null) return;
    const start = Math.max(found.read.start, found.write.start);
    const count = Math.min(found.read.end, found.write.end) - start;
    const use = this.useOf(call, lane);
    const side = ({ start, end }: Touch, does: "reads" | "writes") => (
      { ...use, does, address: BigInt(start), bytes: end - start } as const
    );
    const [reads, writes] = [side(found.read, "reads"), side(found.write, "writes")];
    this.reporter.overlap(reads, writes, start, count, nameOf(this.memory.find(start)));
  }

  /** Reports bytes that a call is about to use although they are freed. */
  using(lane: Lane | null, start: number, end: number, call: string, does: "reads" | "writes" | "uses"): void {
    const known = this.memory.find(start);
    const exporters = known?.origin?.gone;
    const freed = known === undefined ? this.memory.freedAt(start) : exporters;
    if (!freed || freed.known.isOfHost || (freed !== exporters && this.#isAnothers(freed))) return;
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

function nameOf(known: Known | undefined): string {
  if (known === undefined) return "memory that the driver did not allocate";
  const { kind, start, end, call } = known;
  return `the ${end - start} of ${kind} memory at 0x${start.toString(16)} (${call})`;
}
