/**
 * Random programs of copies, fills, allocations and frees on several streams and devices, with exactly the dependencies
 * that they need; what they must give, by doing one thing after the other; and how to run them on a driver.
 *
 * @module
 */
import { fc } from "../support/property.ts";
import { CU_MEM_ACCESS_FLAGS_PROT, CU_STREAM } from "../../bindings/cuda_types.ts";
import type { CudaDriver } from "../../src/cuda/driver.ts";
import { type HostBytes, Raw } from "./raw.ts";

/** What is random about a step; what it means depends on what is there when its turn comes. */
export interface Choice {
  readonly kind: "allocate" | "fill" | "upload" | "copy" | "download" | "free" | "synchronize";
  readonly lane: number;
  readonly a: number;
  readonly b: number;
}

/** A choice. */
export const choice: fc.Arbitrary<Choice> = fc.record({
  kind: fc.constantFrom("allocate", "fill", "upload", "copy", "copy", "download", "free", "synchronize"),
  lane: fc.nat(1000),
  a: fc.nat(1000),
  b: fc.nat(1000),
});

/** Programs for so many devices. */
export function programs(devices: number, options: PlanOptions & { maxLength?: number } = {}): fc.Arbitrary<Program> {
  const { maxLength = 24 } = options;
  return fc.array(choice, { minLength: 2, maxLength }).map((choices) => plan(choices, devices, options));
}

/** How choices become a program. */
export interface PlanOptions {
  /** Whether everything that is written is also downloaded, so that no wrong byte goes unseen. Default false. */
  readonly watched?: boolean;
}

/** One step of a program. Buffers, host slots and lanes are numbers. */
export type Step =
  | { readonly do: "allocate"; readonly buffer: number; readonly lane: number }
  | { readonly do: "fill"; readonly buffer: number; readonly lane: number; readonly value: number }
  | { readonly do: "upload"; readonly buffer: number; readonly lane: number; readonly slot: number }
  | { readonly do: "copy"; readonly from: number; readonly to: number; readonly lane: number; readonly peer: boolean }
  | { readonly do: "download"; readonly buffer: number; readonly lane: number; readonly slot: number }
  | { readonly do: "free"; readonly buffer: number; readonly lane: number }
  | { readonly do: "synchronize"; readonly lane: number }
  | { readonly do: "order"; readonly before: number; readonly after: number; readonly how: How };

/** How one stream is made to wait for another. */
export type How = "new event" | "recorded again" | "context";

/** A program. */
export interface Program {
  readonly devices: number;
  readonly steps: readonly Step[];
  /** Host slots whose contents a run returns. */
  readonly downloads: number;
}

/** Streams of a device: the legacy default stream, a blocking one, two others, the thread's default stream. */
export const laneKinds = ["legacy", "blocking", "free", "free", "thread"] as const;

/** Bytes of each buffer. Small: what matters is which bytes, not how many. */
export const bufferBytes = 64;

function deviceOf(lane: number): number {
  return Math.floor(lane / laneKinds.length);
}

function kindOf(lane: number): (typeof laneKinds)[number] {
  return laneKinds[lane % laneKinds.length] ?? "free";
}

/** Which work has happened before which, as the rules of CUDA say: a vector clock per stream, and one for the host. */
class Order {
  readonly #lanes: number[][];
  #host: number[];

  constructor(lanes: number) {
    this.#lanes = Array.from({ length: lanes }, () => new Array<number>(lanes).fill(0));
    this.#host = new Array<number>(lanes).fill(0);
  }

  /** The clock of a stream's next work, as far as what is enqueued already decides it. */
  upcoming(lane: number): readonly number[] {
    const clock = [...this.#lane(lane)];
    join(clock, this.#host);
    const blocking = kindOf(lane) === "legacy" ? ["blocking", "thread"] : kindOf(lane) === "free" ? [] : ["legacy"];
    this.#lanes.forEach((other, at) => {
      if (deviceOf(at) === deviceOf(lane) && blocking.includes(kindOf(at))) join(clock, other);
    });
    return clock;
  }

  /** Appends work to a stream; returns its number there. */
  work(lane: number): number {
    const clock = [...this.upcoming(lane)];
    const number = (clock[lane] ?? 0) + 1;
    clock[lane] = number;
    this.#lanes[lane] = clock;
    return number;
  }

  /** Makes what a stream does next wait for all that another one, or its whole context, has enqueued. */
  wait(after: number, before: number, how: How): void {
    const clock: number[] = [];
    if (how === "context") {
      this.#lanes.forEach((other, at) => deviceOf(at) === deviceOf(before) && join(clock, other));
    } else {
      this.work(before); // the record is work of the stream, with all that this means in a default stream
      join(clock, this.#lane(before));
    }
    this.work(after); // and so is the wait
    join(this.#lane(after), clock);
  }

  /**
   * The host waits for a stream: for what was enqueued there. For the legacy default stream that includes the streams
   * that its next work would wait for, but not the other way round (both seen on an H200 with driver 580).
   */
  synchronize(lane: number): void {
    join(this.#host, kindOf(lane) === "legacy" ? this.upcoming(lane) : this.#lane(lane));
  }

  #lane(lane: number): number[] {
    return this.#lanes[lane] ?? [];
  }
}

function join(clock: number[], other: readonly number[]): void {
  other.forEach((value, i) => clock[i] = Math.max(clock[i] ?? 0, value));
}

interface Access {
  readonly lane: number;
  readonly number: number;
}

/** A buffer while a program is planned. */
interface Planned {
  readonly id: number;
  readonly device: number;
  written: Access | null;
  read: Access[];
  /** Whether its bytes are known. */
  defined: boolean;
}

/**
 * Turns choices into a program. Where two steps that touch the same buffer, one of them changing it, are in no order by
 * what is there already, an `order` step is put in: so every one of them is needed.
 */
export function plan(choices: readonly Choice[], devices: number, options: PlanOptions = {}): Program {
  const { watched = false } = options;
  const lanes = devices * laneKinds.length;
  const order = new Order(lanes);
  const steps: Step[] = [];
  const live: Planned[] = [];
  let buffers = 0;
  let values = 0;
  let downloads = 0;
  const hows: readonly How[] = ["new event", "recorded again", "context"];

  const require = (lane: number, accesses: readonly (Access | null)[]): void => {
    for (const access of accesses) {
      if (access === null || (order.upcoming(lane)[access.lane] ?? 0) >= access.number) continue;
      const how = hows[steps.length % hows.length] ?? "new event";
      order.wait(lane, access.lane, how);
      steps.push({ do: "order", before: access.lane, after: lane, how });
    }
  };
  const reads = (buffer: Planned, lane: number) => require(lane, [buffer.written]);
  const writes = (buffer: Planned, lane: number) => require(lane, [buffer.written, ...buffer.read]);
  const done = (lane: number, read: Planned | null, written: Planned | null) => {
    const access = { lane, number: order.work(lane) };
    read?.read.push(access);
    if (written !== null) Object.assign(written, { written: access, read: [], defined: true });
  };
  const download = (buffer: Planned, lane: number): void => {
    reads(buffer, lane);
    steps.push({ do: "download", buffer: buffer.id, lane, slot: downloads++ });
    done(lane, buffer, null);
  };
  const fill = (buffer: Planned, lane: number) => {
    writes(buffer, lane);
    steps.push({ do: "fill", buffer: buffer.id, lane, value: ++values % 200 + 1 }); // never the simulator's poison
    done(lane, null, buffer);
  };
  const watch = (buffer: Planned, lane: number): void => {
    if (watched) download(buffer, lane);
  };
  const pick = <T>(from: readonly T[], at: number): T | undefined => from[at % Math.max(1, from.length)];

  for (const { kind, lane: laneChoice, a, b } of choices) {
    const lane = laneChoice % lanes;
    const buffer = pick(live, a);
    const defined = pick(live.filter((one) => one.defined), a);
    if (kind === "synchronize") {
      steps.push({ do: "synchronize", lane });
      order.synchronize(lane);
    } else if (kind === "allocate" || buffer === undefined) {
      const made: Planned = { id: buffers++, device: deviceOf(lane), written: null, read: [], defined: false };
      steps.push({ do: "allocate", buffer: made.id, lane });
      made.written = { lane, number: order.work(lane) };
      live.push(made);
      if (watched) fill(made, lane);
      watch(made, lane);
    } else if (kind === "fill") {
      fill(buffer, lane);
      watch(buffer, lane);
    } else if (kind === "upload") {
      writes(buffer, lane);
      steps.push({ do: "upload", buffer: buffer.id, lane, slot: ++values % 200 });
      done(lane, null, buffer);
      watch(buffer, lane);
    } else if (kind === "copy" && defined !== undefined) {
      const to = pick(live.filter((one) => one !== defined), b);
      if (to === undefined) continue;
      reads(defined, lane);
      writes(to, lane);
      steps.push({ do: "copy", from: defined.id, to: to.id, lane, peer: b % 2 === 1 });
      done(lane, defined, to);
      watch(to, lane);
    } else if (kind === "download" && defined !== undefined) download(defined, lane);
    else if (kind === "free") {
      const home = buffer.device * laneKinds.length + laneChoice % laneKinds.length;
      writes(buffer, home);
      steps.push({ do: "free", buffer: buffer.id, lane: home });
      order.work(home);
      live.splice(live.indexOf(buffer), 1);
    }
  }
  for (const buffer of live.filter((one) => one.defined)) download(buffer, buffer.written?.lane ?? 0);
  return { devices, steps, downloads };
}

/** What the downloads must contain: the steps done one after the other, on plain arrays. */
export function reference({ steps, downloads }: Program): number[][] {
  const buffers = new Map<number, number[]>();
  const slots: number[][] = Array.from({ length: downloads }, () => []);
  for (const step of steps) {
    if (step.do === "fill") buffers.set(step.buffer, new Array<number>(bufferBytes).fill(step.value));
    if (step.do === "upload") buffers.set(step.buffer, uploaded(step.slot));
    if (step.do === "copy") buffers.set(step.to, [...buffers.get(step.from) ?? []]);
    if (step.do === "download") slots[step.slot] = [...buffers.get(step.buffer) ?? []];
  }
  return slots;
}

/** What the host has in an upload slot. */
function uploaded(slot: number): number[] {
  return Array.from({ length: bufferBytes }, (_, i) => (slot + i) % 200 + 1);
}

/** How a program is run. */
export interface RunOptions {
  /** Leaves out the `order` step of this number, from 0. */
  readonly without?: number;
  /** Whether the host's memory is page-locked. Default true. */
  readonly pinned?: boolean;
}

/** Runs a program; returns what the downloads have brought. */
export function run(driver: CudaDriver, program: Program, options: RunOptions = {}): number[][] {
  const { without, pinned = true } = options;
  const { devices, steps, downloads } = program;
  using raw = new Raw(driver, devices);
  const take = (): HostBytes => pinned ? raw.pinned(bufferBytes) : raw.pageable(bufferBytes);
  const uploads = new Map<number, HostBytes>();
  for (let device = 0; device < devices; device++) {
    for (let other = 0; other < devices; other++) {
      if (other === device) continue;
      const pool = raw.pool(device);
      raw.ok(raw.grant(pool, other));
      raw.onClose(() => raw.grant(pool, other, CU_MEM_ACCESS_FLAGS_PROT.NONE)); // the pool outlives the program
    }
  }
  const handles: bigint[] = [];
  const events: bigint[] = [];
  for (let device = 0; device < devices; device++) {
    raw.use(device);
    for (const kind of laneKinds) {
      const own = kind === "blocking" ? CU_STREAM.DEFAULT : CU_STREAM.NON_BLOCKING;
      handles.push(kind === "legacy" ? 0n : kind === "thread" ? 2n : raw.stream(own));
      events.push(raw.event());
    }
  }
  raw.use(0);
  const slots = Array.from({ length: downloads }, () => {
    const slot = take();
    slot.bytes.fill(0xee);
    return slot;
  });
  for (const step of steps) {
    if (step.do !== "upload" || uploads.has(step.slot)) continue;
    const slot = take();
    slot.bytes.set(uploaded(step.slot));
    uploads.set(step.slot, slot);
  }

  const addresses = new Map<number, { readonly address: bigint; readonly device: number }>();
  const size = BigInt(bufferBytes);
  const at = (buffer: number): bigint => addresses.get(buffer)?.address ?? 0n;
  const home = (buffer: number): number => addresses.get(buffer)?.device ?? 0;
  const stream = (lane: number): bigint => handles[lane] ?? 0n;
  let orders = 0;
  for (const step of steps) {
    raw.use(deviceOf(step.do === "order" ? step.before : step.lane));
    switch (step.do) {
      case "allocate":
        addresses.set(step.buffer, {
          address: raw.allocate(bufferBytes, stream(step.lane)),
          device: deviceOf(step.lane),
        });
        break;
      case "fill":
        raw.ok(driver.fill.cuMemsetD8Async(at(step.buffer), step.value, size, stream(step.lane)));
        break;
      case "upload": {
        const source = uploads.get(step.slot)?.address ?? 0n;
        raw.ok(driver.copy.cuMemcpyHtoDAsync_v2(at(step.buffer), source, size, stream(step.lane)));
        break;
      }
      case "copy": {
        const { from, to, peer, lane } = step;
        const contexts = [raw.context(home(to)), raw.context(home(from))] as const;
        const { cuMemcpyPeerAsync, cuMemcpyAsync } = driver.copy;
        raw.ok(
          peer
            ? cuMemcpyPeerAsync(at(to), contexts[0], at(from), contexts[1], size, stream(lane))
            : cuMemcpyAsync(at(to), at(from), size, stream(lane)),
        );
        break;
      }
      case "download": {
        const target = slots[step.slot]?.address ?? 0n;
        raw.ok(driver.copy.cuMemcpyDtoHAsync_v2(target, at(step.buffer), size, stream(step.lane)));
        break;
      }
      case "free":
        raw.ok(driver.pool.cuMemFreeAsync(at(step.buffer), stream(step.lane)));
        addresses.delete(step.buffer);
        break;
      case "synchronize":
        raw.ok(driver.stream.cuStreamSynchronize(stream(step.lane)));
        break;
      case "order": {
        if (orders++ === without) break;
        const fresh = step.how === "recorded again" ? null : raw.word((out) => driver.event.cuEventCreate(out, 2));
        const event = fresh ?? events[step.before] ?? 0n;
        const { cuCtxRecordEvent } = driver.context;
        const byContext = step.how === "context" && cuCtxRecordEvent !== null;
        raw.ok(
          byContext
            ? cuCtxRecordEvent(raw.context(deviceOf(step.before)), event)
            : driver.event.cuEventRecord(event, stream(step.before)),
        );
        raw.use(deviceOf(step.after));
        raw.ok(driver.stream.cuStreamWaitEvent(stream(step.after), event, 0));
        if (fresh !== null) raw.ok(driver.event.cuEventDestroy_v2(fresh)); // the wait outlives it
      }
    }
  }
  for (let device = 0; device < devices; device++) {
    raw.use(device);
    raw.ok(driver.context.cuCtxSynchronize());
  }
  const seen = slots.map(({ bytes }) => Array.from(bytes));
  for (const { address, device } of addresses.values()) {
    raw.use(device);
    raw.ok(driver.pool.cuMemFreeAsync(address, 0n));
  }
  return seen;
}

/** How many `order` steps a program has. */
export function orders({ steps }: Program): number {
  return steps.filter((step) => step.do === "order").length;
}
