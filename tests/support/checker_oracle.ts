/**
 * Random programs, right and wrong, and the judge of both: every piece of work is a node of a graph, every rule of CUDA
 * an edge, and two accesses are ordered if there is a path. No clocks, no pruning, no optimization.
 *
 * @module
 */
import { CU_STREAM } from "../../bindings/cuda_types.ts";
import { observerOf } from "../../src/driver/observer.ts";
import type { CudaDriver } from "../../src/driver/driver.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import type { NullDriver } from "./null_driver.ts";
import { fc } from "./property.ts";
import { laneKinds as programLanes } from "./stream_lanes.ts";
import type { Program } from "./driver_programs.ts";

/** Streams of a device. Programs destroy and recreate the last. */
export const laneKinds = ["legacy", "blocking", "free", "thread", "renewed"] as const;

/** The random part of a step. Its meaning depends on what exists when its turn comes. */
export interface Choice {
  readonly kind: (typeof kinds)[number];
  readonly lane: number;
  readonly other: number;
  readonly buffer: number;
  readonly second: number;
  readonly from: number;
  readonly length: number;
}

const kinds = [
  "fill",
  "fill",
  "columns",
  "copy",
  "record",
  "record",
  "wait",
  "wait",
  "order",
  "order",
  "order",
  "order past it",
  "context record",
  "context wait",
  "synchronize",
  "synchronize event",
  "query",
  "synchronize context",
  "fill now",
  "upload now",
  "upload",
  "download",
  "download now",
  "allocate",
  "free",
  "free now",
  "renew",
  "launch",
] as const;

/** Choices for a program. */
export const choices: fc.Arbitrary<Choice[]> = fc.array(
  fc.record({
    kind: fc.constantFrom(...kinds),
    lane: fc.nat(1000),
    other: fc.nat(1000),
    buffer: fc.nat(1000),
    second: fc.nat(1000),
    from: fc.nat(3),
    length: fc.integer({ min: 1, max: 4 }),
  }),
  { minLength: 4, maxLength: 32, size: "max" },
);

/** Bytes of a buffer: four quarters, which accesses touch one or several of. */
export const bufferBytes = 64;
const quarter = bufferBytes / 4;

/** Kinds of streams. A `renewed` one is a blocking one. */
export type LaneKind = (typeof laneKinds)[number];

/** An access to bytes. */
interface Touch {
  /** The life (one allocation) of the memory. */
  readonly life: number;
  readonly from: number;
  readonly to: number;
  readonly writes: boolean;
}

/** Work, and all that is ordered before it. */
interface Node {
  readonly step: number;
  readonly before: bigint;
  readonly touches: readonly Touch[];
}

/** Bytes of a life that two nodes touch with no path between them. */
export interface Verdict {
  /** The step at which the conflict shows. */
  readonly step: number;
  readonly overlaps: readonly { readonly life: number; readonly from: number; readonly to: number }[];
}

/** The graph of a program so far. */
export class Judge {
  readonly #nodes: Node[] = [];
  /** The last node of each lane, as a set. */
  readonly #tails = new Map<number, bigint>();
  /** What streams that wait for a lane implicitly wait for, as a set. */
  readonly #handed = new Map<number, bigint>();
  readonly #gates = new Map<number, bigint>();
  readonly #left = new Map<number, bigint>();
  readonly #kinds: readonly LaneKind[];
  #host = 0n;

  /** @param kinds of the streams of every device */
  constructor(kinds: readonly LaneKind[]) {
    this.#kinds = kinds;
  }

  #lanesOf(device: number): number[] {
    return this.#kinds.map((_, i) => device * this.#kinds.length + i);
  }

  /** The device of a lane. */
  deviceOf(lane: number): number {
    return Math.floor(lane / this.#kinds.length);
  }

  #kindOf(lane: number): LaneKind {
    return this.#kinds[lane % this.#kinds.length] ?? "free";
  }

  #isBlocking(lane: number): boolean {
    return this.#kindOf(lane) !== "free" && this.#kindOf(lane) !== "legacy";
  }

  /** A set of nodes together with all nodes before them. */
  #closure(set: bigint): bigint {
    let all = set;
    this.#nodes.forEach(({ before }, i) => {
      if ((set >> BigInt(i)) & 1n) all |= before;
    });
    return all;
  }

  #add(step: number, edges: bigint, touches: readonly Touch[]): bigint {
    this.#nodes.push({ step, before: this.#closure(edges), touches });
    return 1n << BigInt(this.#nodes.length - 1);
  }

  #tail(lane: number): bigint {
    return this.#tails.get(lane) ?? 0n;
  }

  /** Appends work to a stream. */
  enqueue(step: number, lane: number, touches: readonly Touch[] = [], edges = 0n): bigint {
    const device = this.deviceOf(lane);
    let all = edges | this.#tail(lane) | this.#host | (this.#gates.get(device) ?? 0n);
    const kind = this.#kindOf(lane);
    if (kind === "legacy") all |= this.#left.get(device) ?? 0n; // a destroyed stream was a blocking one
    for (const other of this.#lanesOf(device)) {
      if (kind === "legacy" && this.#isBlocking(other)) all |= this.#tail(other);
      if (this.#isBlocking(lane) && this.#kindOf(other) === "legacy") all |= this.#handed.get(other) ?? 0n;
    }
    const node = this.#add(step, all, touches);
    this.#tails.set(lane, node);
    this.#handed.set(lane, node);
    return node;
  }

  /**
   * Allocates on a stream. Memory of the legacy default stream is available to streams that wait for it implicitly; but
   * these are not ordered after what the allocation is ordered after.
   */
  allocate(step: number, lane: number, touches: readonly Touch[]): void {
    if (this.#kindOf(lane) !== "legacy") return void this.enqueue(step, lane, touches);
    const there = this.#add(step, this.#handed.get(lane) ?? 0n, touches);
    this.enqueue(step, lane, [], there);
    this.#handed.set(lane, there);
  }

  /** The last work of a stream, as a set. For the legacy stream: also that of the streams that wait for it. */
  awaited(lane: number): bigint {
    const device = this.deviceOf(lane);
    if (this.#kindOf(lane) !== "legacy") return this.#tail(lane);
    const others = this.#lanesOf(device).filter((one) => this.#isBlocking(one));
    return others.reduce((all, one) => all | this.#tail(one), this.#tail(lane) | (this.#left.get(device) ?? 0n));
  }

  /** All work of a device. A destroyed stream has left its work in `left`. */
  all(device: number): bigint {
    return this.#lanesOf(device).reduce((all, lane) => all | this.#tail(lane), this.#left.get(device) ?? 0n);
  }

  /** Destroys a stream, and replaces it with another. */
  renew(lane: number): void {
    const device = this.deviceOf(lane);
    this.#left.set(device, (this.#left.get(device) ?? 0n) | this.#tail(lane));
    this.#tails.set(lane, 0n);
  }

  /** Records that the host has waited. */
  hostWaits(set: bigint): void {
    this.#host |= set;
  }

  /** Makes all later work of a device wait. */
  gate(device: number, set: bigint): void {
    this.#gates.set(device, (this.#gates.get(device) ?? 0n) | set);
  }

  /** Records accesses by the host itself. */
  byHost(step: number, touches: readonly Touch[]): void {
    this.#host |= this.#add(step, this.#host, touches); // complete when the call returns
  }

  /** The first step that collides with an earlier one and is not ordered after it. */
  verdict(): Verdict | null {
    for (const [at, later] of this.#nodes.entries()) {
      const before = later.before;
      const overlaps = this.#nodes.slice(0, at).flatMap((earlier, i) =>
        (before >> BigInt(i)) & 1n ? [] : collisions(earlier, later)
      );
      if (overlaps.length > 0) {
        const same = this.#nodes.filter(({ step }) => step === later.step); // an upload touches bytes in two nodes
        if (same.length === 1) return { step: later.step, overlaps };
        return { step: later.step, overlaps: same.flatMap((one) => this.#collisionsOf(one)) };
      }
    }
    return null;
  }

  #collisionsOf(later: Node): ReturnType<typeof collisions> {
    const at = this.#nodes.indexOf(later);
    return this.#nodes.slice(0, at).flatMap((earlier, i) =>
      (later.before >> BigInt(i)) & 1n ? [] : collisions(earlier, later)
    );
  }
}

function collisions(one: Node, other: Node): { life: number; from: number; to: number }[] {
  return one.touches.flatMap((a) =>
    other.touches.flatMap((b) => {
      const [from, to] = [Math.max(a.from, b.from), Math.min(a.to, b.to)];
      return a.life === b.life && (a.writes || b.writes) && from < to ? [{ life: a.life, from, to }] : [];
    })
  );
}

interface Buffer {
  readonly life: number;
  readonly address: bigint;
  readonly device: number;
}

/**
 * The graph's verdict on a program of `programs.ts`, without one of its `order` steps.
 *
 * @param without number of the `order` step that is left out, or null
 */
export function judge({ devices, steps }: Program, without: number | null): Verdict | null {
  const graph = new Judge(programLanes);
  let orders = 0;
  const whole = (buffer: number, writes: boolean): Touch => ({ life: buffer, from: 0, to: 1, writes });
  for (const [at, step] of steps.entries()) {
    switch (step.do) {
      case "allocate":
      case "fill":
      case "upload":
      case "free":
        if (step.lane === null) throw new TypeError("A program for resources is not judged");
        if (step.do === "allocate") graph.allocate(at, step.lane, [whole(step.buffer, true)]);
        else graph.enqueue(at, step.lane, [whole(step.buffer, true)]);
        break;
      case "copy":
        graph.enqueue(at, step.lane, [whole(step.from, false), whole(step.to, true)]);
        break;
      case "download":
        graph.enqueue(at, step.lane, [whole(step.buffer, false)]);
        break;
      case "synchronize":
        graph.hostWaits(graph.awaited(step.lane));
        break;
      case "order": {
        if (orders++ === without) break;
        const before = graph.deviceOf(step.before);
        const mark = step.how === "context" ? graph.all(before) : graph.enqueue(at, step.before);
        graph.enqueue(at, step.after, [], mark);
      }
    }
  }
  // In the end the host waits for every device, and frees what is left on the default stream of its device.
  for (let device = 0; device < devices; device++) graph.hostWaits(graph.all(device));
  return graph.verdict();
}

/** A program as it runs: the calls go to a driver, and are reported to the judge. */
export class Session {
  readonly judge = new Judge(laneKinds);
  /** The current step. */
  step = 0;
  /** Addresses of memory, by its life. */
  readonly addresses = new Map<number, bigint>();
  readonly #driver: CudaDriver;
  readonly #null: NullDriver;
  readonly #devices: number;
  readonly #arena = new NativeArena();
  readonly #out = this.#arena.out("ptr");
  readonly #streams: bigint[] = [];
  readonly #events: bigint[] = [];
  readonly #recorded = new Map<number, bigint>();
  readonly #buffers: Buffer[] = [];
  /** Freed memory, with the stream that may reuse it. */
  readonly #freed: { readonly address: bigint; readonly lane: number }[] = [];
  readonly #host: bigint;
  readonly #graphs: { readonly handle: bigint; readonly touches: readonly Touch[]; last: bigint }[] = [];
  #lives = 0;

  constructor(driver: CudaDriver, made: NullDriver, devices: number) {
    this.#driver = driver;
    this.#null = made;
    this.#devices = devices;
    for (let device = 0; device < devices; device++) {
      driver.context.cuDevicePrimaryCtxRetain(this.#out.$address, device);
      this.#use(device);
      for (const kind of laneKinds) {
        this.#streams.push(kind === "legacy" ? 0n : kind === "thread" ? 2n : this.#makeStream(kind));
        driver.event.cuEventCreate(this.#out.$address, 2);
        this.#events.push(this.#out.value);
      }
    }
    this.#use(0);
    driver.memory.cuMemAlloc_v2(this.#out.$address, BigInt(bufferBytes));
    this.#keep(this.#out.value, 0);
    this.#host = 0x7000_0000_0000n; // pageable: the driver knows nothing of it
    this.#lives++; // its life
    this.addresses.set(1, this.#host);
    this.#capture();
  }

  #makeStream(kind: (typeof laneKinds)[number]): bigint {
    const flags = kind === "free" ? CU_STREAM.NON_BLOCKING : CU_STREAM.DEFAULT;
    this.#driver.stream.cuStreamCreate(this.#out.$address, flags);
    return this.#out.value;
  }

  #use(device: number): void {
    this.#driver.context.cuCtxSetCurrent(0x1000n + BigInt(device));
  }

  #keep(address: bigint, device: number): Buffer {
    const buffer = { life: this.#lives++, address, device };
    this.addresses.set(buffer.life, address);
    this.#buffers.push(buffer);
    return buffer;
  }

  /** A graph that fills the first buffer's first half with two nodes and copies it to the second half. */
  #capture(): void {
    const { capture, fill, copy, graph } = this.#driver;
    const [stream = 0n, buffer] = [this.#streams[2], this.#buffers[0]];
    if (buffer === undefined) return;
    const half = BigInt(bufferBytes / 2);
    capture.cuStreamBeginCapture_v2(stream, 0);
    fill.cuMemsetD8Async(buffer.address, 1, half, stream);
    copy.cuMemcpyDtoDAsync_v2(buffer.address + half, buffer.address, half, stream);
    capture.cuStreamEndCapture(stream, this.#out.$address);
    graph.cuGraphInstantiateWithFlags(this.#out.$address, this.#out.value, 0n);
    const [first, rest] = [{ from: 0, to: bufferBytes / 2 }, { from: bufferBytes / 2, to: bufferBytes }];
    const { life } = buffer;
    const touches = [{ life, ...first, writes: true }, { life, ...first, writes: false }, {
      life,
      ...rest,
      writes: true,
    }];
    this.#graphs.push({ handle: this.#out.value, touches, last: 0n });
  }

  /** Performs one step. A report thrown by a checker ends it midway. */
  perform(choice: Choice): void {
    const { judge, step } = this;
    const { kind } = choice;
    const lane = choice.lane % (this.#devices * laneKinds.length);
    const other = choice.other % (this.#devices * laneKinds.length);
    const device = judge.deviceOf(lane);
    const stream = this.#streams[lane] ?? 0n;
    const buffer = this.#buffers[choice.buffer % this.#buffers.length];
    const second = this.#buffers[choice.second % this.#buffers.length];
    const event = this.#events[other] ?? 0n;
    const { fill, fillPitched, copy, event: events, stream: streams, context, memory, pool, graph } = this.#driver;
    if (buffer === undefined || second === undefined) return;
    const from = choice.from * quarter;
    const to = Math.min(bufferBytes, from + choice.length * quarter);
    const size = BigInt(to - from);
    const at = ({ address }: Buffer) => address + BigInt(from);
    const touch = ({ life }: Buffer, writes: boolean): Touch => ({ life, from, to, writes });
    const legacy = device * laneKinds.length;
    this.#use(device);
    switch (kind) {
      case "fill":
        judge.enqueue(step, lane, [touch(buffer, true)]);
        fill.cuMemsetD8Async(at(buffer), 1, size, stream);
        break;
      case "columns": { // two of every four bytes, from an even column: half of the programs interleave
        const x = choice.length % 2 * 2;
        const touches = Array.from({ length: 16 }, (_, row) => 4 * row + x)
          .map((start) => ({ life: buffer.life, from: start, to: start + 2, writes: true }));
        judge.enqueue(step, lane, touches);
        fillPitched.cuMemsetD2D8Async(buffer.address + BigInt(x), 4n, 1, 2n, 16n, stream);
        break;
      }
      case "copy":
        judge.enqueue(step, lane, [touch(buffer, false), touch(second, true)]);
        copy.cuMemcpyDtoDAsync_v2(at(second), at(buffer), size, stream);
        break;
      case "record":
        this.#recorded.set(other, judge.enqueue(step, lane));
        events.cuEventRecord(event, stream);
        break;
      case "wait":
        if (this.#recorded.has(other)) judge.enqueue(step, lane, [], this.#recorded.get(other));
        streams.cuStreamWaitEvent(stream, event, 0);
        break;
      case "order": { // another stream waits for this one, so that programs are right for a while
        const mark = judge.enqueue(step, lane);
        const own = this.#events[lane] ?? 0n;
        this.#recorded.set(lane, mark);
        events.cuEventRecord(own, stream);
        this.#use(judge.deviceOf(other));
        judge.enqueue(step, other, [], mark);
        streams.cuStreamWaitEvent(this.#streams[other] ?? 0n, own, 0);
        break;
      }
      case "order past it": // by a user who calls the driver directly, and declares it
        if (judge.deviceOf(other) !== device) break;
        judge.enqueue(step, other, [], judge.enqueue(step, lane));
        observerOf(this.#driver)?.orderedElsewhere(0x1000n + BigInt(device), stream, this.#streams[other] ?? 0n);
        break;
      case "context record":
        this.#recorded.set(other, judge.all(device));
        context.cuCtxRecordEvent?.(0n, event);
        break;
      case "context wait":
        if (this.#recorded.has(other)) judge.gate(device, this.#recorded.get(other) ?? 0n);
        context.cuCtxWaitEvent?.(0n, event);
        break;
      case "synchronize":
        judge.hostWaits(judge.awaited(lane));
        streams.cuStreamSynchronize(stream);
        break;
      case "synchronize event":
        judge.hostWaits(this.#recorded.get(other) ?? 0n);
        events.cuEventSynchronize(event);
        break;
      case "query":
        this.#null.answer = choice.length % 2 === 0 ? 0 : 600; // 600: not ready, from which nothing follows
        if (this.#null.answer === 0) judge.hostWaits(judge.awaited(lane) | (this.#recorded.get(other) ?? 0n));
        streams.cuStreamQuery(stream);
        events.cuEventQuery(event);
        break;
      case "synchronize context":
        judge.hostWaits(judge.all(device));
        context.cuCtxSynchronize();
        break;
      case "fill now": // the host does not wait for device memory
        judge.enqueue(step, legacy, [touch(buffer, true)]);
        fill.cuMemsetD8_v2(at(buffer), 1, size);
        break;
      case "upload now": // what is before it in the stream is over, the source is read, the rest may take longer
        judge.hostWaits(judge.enqueue(step, legacy));
        judge.byHost(step, [{ life: 1, from, to, writes: false }]);
        judge.enqueue(step, legacy, [touch(buffer, true)]);
        copy.cuMemcpyHtoD_v2(at(buffer), this.#host + BigInt(from), size);
        break;
      case "upload": // whether the driver stages pageable memory is its own affair: nothing follows from it
        judge.enqueue(step, lane, [{ life: 1, from, to, writes: false }, touch(buffer, true)]);
        copy.cuMemcpyHtoDAsync_v2(at(buffer), this.#host + BigInt(from), size, stream);
        break;
      case "download":
        judge.enqueue(step, lane, [touch(buffer, false), { life: 1, from, to, writes: true }]);
        copy.cuMemcpyDtoHAsync_v2(this.#host + BigInt(from), at(buffer), size, stream);
        break;
      case "download now":
        judge.hostWaits(judge.enqueue(step, legacy, [touch(buffer, false), { life: 1, from, to, writes: true }]));
        copy.cuMemcpyDtoH_v2(this.#host + BigInt(from), at(buffer), size);
        break;
      case "allocate": { // the pool gives a stream what it has freed itself
        const again = this.#freed.findIndex((one) => one.lane === lane);
        this.#null.nextAddress = again < 0 ? null : this.#freed.splice(again, 1)[0]?.address ?? null;
        pool.cuMemAllocAsync(this.#out.$address, BigInt(bufferBytes), stream);
        const made = this.#keep(this.#out.value, device);
        judge.allocate(step, lane, [{ life: made.life, from: 0, to: bufferBytes, writes: true }]);
        break;
      }
      case "free":
        if (buffer.life === 0) break; // the graph uses it
        this.#buffers.splice(this.#buffers.indexOf(buffer), 1);
        this.#freed.push({ address: buffer.address, lane });
        judge.enqueue(step, lane, [{ life: buffer.life, from: 0, to: bufferBytes, writes: true }]);
        pool.cuMemFreeAsync(buffer.address, stream);
        break;
      case "free now": // memory of a pool that is freed at once must not be in use any more
        if (buffer.life === 0) break;
        this.#buffers.splice(this.#buffers.indexOf(buffer), 1);
        judge.byHost(step, [{ life: buffer.life, from: 0, to: bufferBytes, writes: true }]);
        memory.cuMemFree_v2(buffer.address);
        break;
      case "renew": {
        const renewed = legacy + laneKinds.indexOf("renewed");
        judge.renew(renewed);
        for (let i = this.#freed.length - 1; i >= 0; i--) {
          if (this.#freed[i]?.lane === renewed) this.#freed.splice(i, 1);
        }
        streams.cuStreamDestroy_v2(this.#streams[renewed] ?? 0n);
        this.#streams[renewed] = this.#makeStream("renewed");
        break;
      }
      case "launch": {
        const launched = this.#graphs[0];
        if (launched === undefined) break;
        launched.last = judge.enqueue(step, lane, launched.touches, launched.last);
        graph.cuGraphLaunch(launched.handle, stream);
      }
    }
  }

  close(): void {
    this.#arena.close();
  }
}
