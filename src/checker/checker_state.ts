/**
 * What the checker does with every call: place it in the order, and compare what it touches with earlier accesses.
 *
 * @module
 */
import { quoted } from "../layout/mod.ts";
import type { Access } from "./access_history.ts";
import { type CheckedGraph, type Node, overlap, type Touch, unorderedNodes } from "./capture.ts";
import { KernelRecording } from "./journal.ts";
import type { KernelParam } from "./kernel_params.ts";
import { hex } from "./messages.ts";
import { Allocation, type Freed, type MemoryKind } from "./known_memory.ts";
import type { Clock, StreamClock } from "./vector_clocks.ts";
import type { CausalityCall } from "./report.ts";
import { type CallSite, currentSite, framesOf } from "./call_site.ts";
import { StreamState } from "./stream_state.ts";
import { PendingCall } from "./pending_call.ts";

const nothing: readonly number[] = [];

/** Memory that was exported through a checked driver of this process, by the driver's name for it. */
const exports = new Map<string, WeakRef<Allocation>>();

/** The state of a checker. */
export class CheckerState extends StreamState {
  /** Graphs by handle. */
  readonly graphs: Map<bigint, CheckedGraph> = new Map();
  /** Executable graphs, by handle. */
  readonly graphExecs: Map<bigint, CheckedGraph> = new Map();
  /** What is known about kernels, by handle. */
  readonly kernels: Map<bigint, readonly KernelParam[]> = new Map();

  /** A call that is about to be made, whose accesses are yet to be added. */
  pendingCall(call: string, stream: StreamClock | null): PendingCall {
    return new PendingCall(this, call, stream);
  }

  /** Adds work without accesses to a stream. @returns its number in the timeline */
  mark(stream: StreamClock, kind: "work" | "record" | "wait", call: string, after: number | null = null): number {
    const from: number[] = [];
    this.order.advance(stream, from);
    if (after !== null) from.push(after);
    stream.last = this.timeline.add(stream.name, kind, call, from);
    return stream.last;
  }

  /**
   * Enqueues work that touches memory.
   *
   * @param site where the call was made, if already known
   * @param recording records what its kernels touch
   */
  enqueue(
    stream: StreamClock,
    call: string,
    touches: readonly Touch[],
    site: CallSite | null = null,
    recording: KernelRecording | null = null,
  ): void {
    if (stream.capture !== null) return this.#captureWork(stream, call, touches);
    const seq = this.mark(stream, "work", call);
    const tick = this.order.step(stream);
    const [first] = touches;
    if (first === undefined && recording === null) return;
    const made = site ?? stream.sites.of(call, first?.start ?? 0, first === undefined ? 0 : first.end - first.start);
    const { journal } = this;
    const at = journal?.next() ?? 0;
    const clock = journal === null ? stream.clock : [...stream.clock];
    if (recording !== null) {
      const access = { stream, tick, seq, kind: "kernel", writes: null, call, site: made, start: 0, end: 0 } as const;
      journal?.launched(recording, access, clock, at);
    }
    let found: { readonly access: Access; readonly conflict: Access } | null = null;
    for (const { start, end, kind, writes } of touches) {
      const access = { stream, tick, seq, kind, writes, call, site: made, start, end };
      const conflict = this.#touch(access, clock, at);
      if (conflict !== null) found ??= { access, conflict };
    }
    if (found !== null) {
      this.reporter.race(found.conflict, found.access, this.describeMemory(found.access, found.conflict));
    }
  }

  #touch(access: Access, clock: Clock, at: number): Access | null {
    const { start, end, kind } = access;
    if (kind === "kernel") {
      const allocation = this.memory.find(start);
      if (allocation === undefined) return null;
      if (this.options.kernels !== "whole") return allocation.touchByKernel(access, clock, this.order);
      const whole = { ...access, writes: access.writes ?? true };
      return allocation.touch(whole, allocation.start, allocation.end, clock, this.order);
    }
    this.#note(access, start, end, clock, at);
    return this.memory.touch(access, start, end, clock, this.order);
  }

  #note(access: Access, start: number, end: number, clock: readonly number[], at: number): void {
    if (this.journal === null) return;
    for (const { allocation, from, to } of this.memory.at(start, end)) {
      this.journal.note(access, allocation, from, to, clock, at);
    }
  }

  /** A recording of kernels that a call is about to launch; null if the driver does not let them be observed. */
  newRecording(kernels: number): KernelRecording | null {
    return this.journal === null || kernels === 0 ? null : new KernelRecording(kernels);
  }

  /** Makes a call that launches kernels, recording what they touch. */
  observed(recording: KernelRecording | null, call: () => number): number {
    return recording === null || this.observe === null ? call() : this.observe(recording, call);
  }

  /** Reports the races of kernels that have run since the last call. */
  reportKernelRaces(): void {
    const { journal, isLost } = this;
    if (journal === null || journal.isIdle) return;
    if (isLost) return journal.forget();
    for (const { kernel, other, isFirst, allocation } of journal.takeRaces((address) => this.memory.find(address))) {
      const memory = nameOf(allocation);
      if (!("tick" in other)) this.reporter.raceWithHost(kernel, other, memory);
      else if (isFirst) this.reporter.race(kernel, other, memory);
      else this.reporter.race(other, kernel, memory);
    }
  }

  #captureWork(stream: StreamClock, call: string, touches: readonly Touch[]): void {
    const { capture } = stream;
    if (capture === null) return;
    const node: Node = { stream, call, site: currentSite(), touches, after: capture.after };
    capture.of.nodes.push(node);
    stream.capture = { of: capture.of, after: [node] };
  }

  // law checker/CheckerState.launchGraph: checker/checker, checker/pending_call, checker/schedule
  /** Enqueues all work of a graph, which counts as one piece of work. */
  launchGraph(stream: StreamClock, call: string, graph: CheckedGraph, recording: KernelRecording | null): void {
    if (graph.isEmpty) return;
    this.order.advance(stream, null);
    this.order.wait(stream, graph.last);
    if (!graph.examined) this.#examine(graph);
    const touches = graph.nodes.flatMap((node) => node.touches);
    this.enqueue(stream, call, touches, null, recording);
    graph.last = [...stream.clock];
  }

  /** Compares the nodes of a graph with each other, once. */
  #examine(graph: CheckedGraph): void {
    graph.examined = true;
    const found = unorderedNodes(graph, this.options.kernels === "whole");
    if (found === null) return;
    const { first, second, one, other } = found;
    const side = ({ stream, call, site }: Node, { start, end, kind, writes }: Touch): Access => (
      { stream, tick: 0, seq: 0, kind, writes, call, site, start, end }
    );
    const [a, b] = [side(first, one), side(second, other)];
    this.reporter.race(a, b, this.describeMemory(b, a), "captured");
  }

  /** Notes that the host reads or writes memory during the call. */
  touchByHost(call: string, start: number, end: number, writes: boolean): void {
    const { journal, memory, order } = this;
    const does = writes ? "writes" : "reads";
    if (journal?.knowsKernels) {
      const address = BigInt(start);
      let side: CausalityCall | null = null; // not described unless the memory is known: that takes a stack trace
      for (const { allocation, from, to } of memory.at(start, end)) {
        side ??= { ...this.describeCall(call), does, address, bytes: end - start };
        journal.noteHost(side, allocation, from, to, writes);
      }
    }
    const conflict = memory.conflictWithHost(writes, start, end, order);
    if (conflict !== null) this.#raceWithHost(conflict, call, does, start, end, memory.find(start));
    this.reportKernelRaces();
  }

  #raceWithHost(
    conflict: Access,
    call: string,
    does: "reads" | "writes" | "frees",
    start: number,
    end: number,
    allocation: Allocation | undefined,
  ): void {
    const side = { does, address: BigInt(start), bytes: end - start } as const;
    this.reporter.raceWithHost(conflict, { ...this.describeCall(call), ...side }, nameOf(allocation));
  }

  /** Notes that the host waits for the work in a clock. */
  hostWaits(clock: readonly number[], call: string, after: readonly number[]): void {
    this.order.hostWaits(clock);
    this.order.lastWait = this.timeline.add("host", "host", call, after);
  }

  /** Notes that the host waits for streams. */
  hostWaitsFor(streams: Iterable<StreamClock>, call: string): void {
    const after: number[] = [];
    for (const stream of streams) {
      this.order.hostWaits(stream.clock);
      if (stream.last > 0) after.push(stream.last);
    }
    this.hostWaits(nothing, call, after);
  }

  // -- Memory --

  // law checker/CheckerState.allocated: checker/checker
  /** Notes that memory is allocated: immediately, or, on a stream, in stream order. */
  allocated(address: bigint, bytes: number, kind: MemoryKind, call: string, stream: StreamClock | null): void {
    const start = Number(address);
    if (address === 0n || bytes === 0 || !Number.isSafeInteger(start + bytes)) return;
    const context = stream?.context ?? this.current();
    const site = stream === null ? currentSite() : stream.sites.of(call, bytes, bytes);
    const allocation = new Allocation(start, bytes, kind, context, call, site, this.journal?.next() ?? 0);
    this.memory.allocate(allocation);
    this.lifetimes.forgetClosed(start);
    if (stream === null) return;
    const implicit = this.order.implicitClockOf(stream);
    const seq = this.mark(stream, "work", call);
    const tick = this.order.step(stream);
    if (implicit !== null) {
      implicit[stream.index] = tick;
      stream.implicitClock = implicit;
    }
    const { end } = allocation;
    const access = { stream, tick, seq, kind: "allocation", writes: true, call, site, start, end } as const;
    if (this.journal !== null) this.#note(access, start, end, [...stream.clock], this.journal.next());
    allocation.touch(access, start, end, stream.clock, this.order);
  }

  /** Notes that memory is exported to other processes. @param name the driver's name for it there */
  exported(address: bigint, name: string): void {
    const allocation = this.memory.find(Number(address));
    if (allocation !== undefined) exports.set(name, new WeakRef(allocation));
  }

  // law checker/CheckerState.imported: checker/copies
  /** Notes that memory of another process is mapped, perhaps once more. @param name the driver's name for it */
  imported(address: bigint, call: string, name: string): void {
    const before = this.memory.find(Number(address));
    if (before?.kind === "imported") {
      before.opened++;
      return;
    }
    const { cuMemGetAddressRange_v2 } = this.inner.pointer;
    const { address: out, view } = this.reader;
    if (cuMemGetAddressRange_v2(out, out + 8n, address) !== 0) return;
    this.allocated(address, Number(view.getBigUint64(8, true)), "imported", call, null);
    const [allocation, origin] = [this.memory.find(Number(address)), exports.get(name)?.deref()];
    if (allocation !== undefined && origin?.freed === null) allocation.origin = origin;
  }

  /** Notes that memory is freed in stream order. */
  freeInOrder(stream: StreamClock, call: string, allocation: Allocation): void {
    const { start, end } = allocation;
    const site = stream.sites.of(call, end - start, end - start); // by size: addresses come and go
    try {
      this.enqueue(stream, call, [{ start, end, kind: "free", writes: true }], site);
    } finally {
      this.freed(allocation, call, stream.name, site, stream.last);
    }
  }

  // law checker/CheckerState.freeByHost: checker/checker, checker/pending_call
  /** Notes that memory is freed immediately: the host must have waited for all uses of it. */
  freeByHost(call: string, allocation: Allocation): void {
    const { start, end } = allocation;
    const conflict = allocation.conflict(true, start, end, this.order.host);
    if (this.journal?.knowsKernels) {
      const side = { ...this.describeCall(call), does: "frees", address: BigInt(start), bytes: end - start } as const;
      this.journal.noteHost(side, allocation, start, end, true);
    }
    this.freed(allocation, call, "host", currentSite(), 0);
    if (conflict !== null) this.#raceWithHost(conflict, call, "frees", start, end, allocation);
  }

  /** Remembers memory that a call has freed. */
  freed(allocation: Allocation, call: string, stream: string, site: CallSite, seq: number): void {
    // Freed host memory returns to the system, which may have allocated it again: using it does not prove a mistake.
    const { start, end } = allocation;
    this.lifetimes.forgetClosed(start);
    this.journal?.freed(allocation);
    if (allocation.kind === "registered") this.memory.forget(allocation);
    else this.memory.free({ start, end, allocation, call, stream, site, seq });
  }

  /** The memory that a call is about to free. Reports it if it is already freed. */
  allocationToFree(stream: StreamClock | null, address: bigint, call: string): Allocation | null {
    const start = Number(address);
    if (address === 0n || !Number.isSafeInteger(start)) return null;
    const allocation = this.memory.find(start);
    if (allocation !== undefined) return allocation.start === start ? allocation : null;
    const freed = this.memory.freedAt(start);
    if (freed !== undefined && freed.start === start && !this.#isAnothers(freed)) {
      this.#reportFreed(freed, {
        ...this.describeCall(call, stream),
        does: "frees",
        address,
        bytes: freed.end - start,
      });
    }
    return null;
  }

  /**
   * Reports a copy that reads bytes that it also writes: CUDA leaves the result undefined. A copy of bytes onto
   * themselves is allowed, as it changes nothing.
   */
  checkOverlap(stream: StreamClock, call: string, touches: readonly Touch[]): void {
    const found = overlap(touches);
    if (found === null) return;
    const start = Math.max(found.read.start, found.write.start);
    const count = Math.min(found.read.end, found.write.end) - start;
    const use = this.describeCall(call, stream);
    const side = ({ start, end }: Touch, does: "reads" | "writes") => (
      { ...use, does, address: BigInt(start), bytes: end - start } as const
    );
    const [reads, writes] = [side(found.read, "reads"), side(found.write, "writes")];
    this.reporter.overlap(reads, writes, start, count, nameOf(this.memory.find(start)));
  }

  // law checker/CheckerState.checkNotFreed: checker/copies
  /** Reports freed bytes that a call is about to use. */
  checkNotFreed(
    stream: StreamClock | null,
    start: number,
    end: number,
    call: string,
    does: "reads" | "writes" | "uses",
  ): void {
    const allocation = this.memory.find(start);
    const exporters = allocation?.origin?.freed;
    const freed = allocation === undefined ? this.memory.freedAt(start) : exporters;
    if (!freed || freed.allocation.isOfHost || (freed !== exporters && this.#isAnothers(freed))) return;
    this.#reportFreed(freed, { ...this.describeCall(call, stream), does, address: BigInt(start), bytes: end - start });
  }

  /** Reports freed memory that a graph is about to use. */
  checkGraphNotFreed(stream: StreamClock | null, { nodes }: CheckedGraph, call: string): void {
    for (const { touches } of nodes) {
      for (const { start, end, writes } of touches) {
        this.checkNotFreed(stream, start, end, call, writes === true ? "writes" : "reads");
      }
    }
  }

  #reportFreed({ allocation, call, stream, site, seq }: Freed, use: CausalityCall): void {
    const bytes = allocation.end - allocation.start;
    const first = { does: "frees", call, stream, address: BigInt(allocation.start), bytes, seq } as const;
    this.reporter.freed({ ...first, stack: framesOf(site) }, use, nameOf(allocation));
  }

  /** Whether the driver knows the address again, because another library has since allocated it. */
  #isAnothers(freed: Freed): boolean {
    const { cuMemGetAddressRange_v2 } = this.inner.pointer;
    const { address } = this.reader;
    if (cuMemGetAddressRange_v2(address, address + 8n, BigInt(freed.start)) !== 0) return false;
    this.memory.forget(freed);
    return true;
  }

  /** The memory that two accesses share, in words. */
  describeMemory({ start }: Access, other: Access): string {
    return nameOf(this.memory.find(Math.max(start, other.start)) ?? this.memory.freedAt(start)?.allocation);
  }
}

function nameOf(allocation: Allocation | undefined): string {
  if (allocation === undefined) return "memory that the driver did not allocate";
  const { kind, start, end, call, name } = allocation;
  return `the ${end - start} of ${kind} memory${quoted(name)} at ${hex(start)} (${call})`;
}
