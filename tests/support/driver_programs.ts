/**
 * Random programs of copies, fills, allocations and frees on several streams and devices, with exactly the dependencies
 * that they need; and the results they must give, computed one step after the other.
 *
 * Two modules run them: `run_raw_driver.ts` through driver calls, and `run_buffers.ts` through memory resources and
 * buffers.
 *
 * @module
 */
import { fc } from "./property.ts";
import { deviceOf, type How, laneKinds, Order } from "./stream_lanes.ts";

/** The random part of a step; its meaning depends on the state when its turn comes. */
export interface Choice {
  readonly kind: ChoiceKind;
  readonly lane: number;
  readonly a: number;
  readonly b: number;
}

type ChoiceKind =
  | "allocate"
  | "fill"
  | "upload"
  | "copy"
  | "download"
  | "free"
  | "synchronize"
  | "home"
  | "poke"
  | "revoke";

const driverChoices: readonly ChoiceKind[] = [
  "allocate",
  "fill",
  "upload",
  "copy",
  "copy",
  "download",
  "free",
  "synchronize",
];

/** Programs for a number of devices. */
export function programs(devices: number, options: PlanOptions & { maxLength?: number } = {}): fc.Arbitrary<Program> {
  const { maxLength = 24, resources = ["driver"] } = options;
  const kinds = resources.includes("driver") ? driverChoices : [...driverChoices, "home", "poke", "revoke"] as const;
  const choice: fc.Arbitrary<Choice> = fc.record({
    kind: fc.constantFrom(...kinds),
    lane: fc.nat(1000),
    a: fc.nat(1000),
    b: fc.nat(1000),
  });
  // With resources, frees are the point, and they come late.
  const size = resources.includes("driver") ? "small" : "max";
  return fc.array(choice, { minLength: 2, maxLength, size }).map((choices) => plan(choices, devices, options));
}

/** How choices are turned into a program. */
export interface PlanOptions {
  /** Whether everything that is written is also downloaded, so that no wrong byte goes unnoticed. Default false. */
  readonly watched?: boolean;
  /** Where memory comes from. Default: `driver`, cuMemAllocAsync itself. */
  readonly resources?: readonly Resource[];
  /** Whether memory may have its home on streams of other devices, too. Default false. */
  readonly abroad?: boolean;
  /** Whether streams may be ordered by events of whole contexts, too. Default true. */
  readonly contexts?: boolean;
}

/**
 * Where memory comes from: the driver's own call; the device's current pool, or one of our own; synchronous;
 * page-locked, managed or ordinary host memory; a resource written by the test.
 */
export type Resource = "driver" | "current" | "own" | "synchronous" | "pinned" | "managed" | "host" | "custom";

/** All but the driver. */
export const resources: readonly Resource[] = [
  "current",
  "own",
  "synchronous",
  "pinned",
  "managed",
  "host",
  "custom",
];

/** How memory is freed: on its home stream, on another one, or by dropping the last reference to the buffer. */
export type Ending = "close" | "close on" | "drop";

/** One step of a program. Buffers, host slots and lanes are numbers. `lane` null: no stream. */
export type Step =
  | {
    readonly do: "allocate";
    readonly buffer: number;
    readonly device: number;
    readonly resource: Resource;
    readonly lane: number | null;
  }
  | { readonly do: "fill"; readonly buffer: number; readonly lane: number; readonly value: number }
  | { readonly do: "poke"; readonly buffer: number; readonly value: number }
  | { readonly do: "upload"; readonly buffer: number; readonly lane: number; readonly slot: number }
  | { readonly do: "copy"; readonly from: number; readonly to: number; readonly lane: number; readonly peer: boolean }
  | { readonly do: "download"; readonly buffer: number; readonly lane: number; readonly slot: number }
  | { readonly do: "home"; readonly buffer: number; readonly lane: number }
  | { readonly do: "free"; readonly buffer: number; readonly lane: number | null; readonly how: Ending }
  | { readonly do: "synchronize"; readonly lane: number }
  | { readonly do: "peers"; readonly owner: number; readonly isOwnPool: boolean; readonly peers: readonly number[] }
  | { readonly do: "order"; readonly before: number; readonly after: number; readonly how: How };

/** A program. */
export interface Program {
  readonly devices: number;
  readonly steps: readonly Step[];
  /** Host slots whose contents a run returns. */
  readonly downloads: number;
}

/** Bytes of each buffer. Small: what matters is which bytes, not how many. */
export const bufferBytes = 64;

interface Access {
  readonly lane: number;
  readonly number: number;
}

/** A buffer while a program is planned. */
interface Planned {
  readonly id: number;
  readonly device: number;
  readonly resource: Resource;
  /** The lane on which it is freed; null if on none. */
  home: number | null;
  written: Access | null;
  read: Access[];
  /** Whether its bytes are known. */
  defined: boolean;
}

const hows: readonly How[] = ["new event", "recorded again"];
const howsWithContexts: readonly How[] = [...hows, "context"];

/**
 * Turns choices into a program. Where two steps that touch the same buffer, one of them writing it, are not ordered
 * yet, an `order` step is inserted: so every `order` step is needed.
 */
export function plan(choices: readonly Choice[], devices: number, options: PlanOptions = {}): Program {
  const planner = new Planner(devices, options);
  for (const choice of choices) planner.take(choice);
  return planner.end();
}

class Planner {
  readonly #devices: number;
  readonly #options: PlanOptions;
  readonly #order: Order;
  readonly #steps: Step[] = [];
  readonly #live: Planned[] = [];
  /** Which devices may use a pool, by owner and by whether it is our own. */
  readonly #peers = new Map<string, Set<number>>();
  #buffers = 0;
  #values = 0;
  #downloads = 0;

  constructor(devices: number, options: PlanOptions) {
    this.#devices = devices;
    this.#options = options;
    this.#order = new Order(devices * laneKinds.length);
  }

  take({ kind, lane: laneChoice, a, b }: Choice): void {
    const lane = laneChoice % (this.#devices * laneKinds.length);
    const buffer = pick(this.#live.filter((one) => reaches(one, lane)), a);
    const defined = pick(this.#live.filter((one) => one.defined && reaches(one, lane)), a);
    if (kind === "synchronize") return this.#synchronize(lane);
    if (kind === "revoke") return this.#revoke(a, b);
    if (kind === "allocate" || buffer === undefined) return this.#allocate(lane, a, b);
    switch (kind) {
      case "fill":
        this.#fill(buffer, lane);
        return this.#watch(buffer, lane);
      case "poke":
        if (!["pinned", "managed", "host"].includes(buffer.resource)) return;
        this.#byHost(buffer);
        this.#steps.push({ do: "poke", buffer: buffer.id, value: ++this.#values % 200 + 1 });
        Object.assign(buffer, { written: null, read: [], defined: true });
        return this.#watch(buffer, lane);
      case "upload":
        if (buffer.resource === "host") this.#byHost(buffer);
        this.#writes(buffer, lane);
        this.#steps.push({ do: "upload", buffer: buffer.id, lane, slot: ++this.#values % 200 });
        if (buffer.resource === "host") this.#synchronize(lane); // complete already, unless the slot is page-locked
        this.#done(lane, null, buffer);
        return this.#watch(buffer, lane);
      case "copy": {
        const to = pick(this.#live.filter((one) => one !== defined && reaches(one, lane)), b);
        if (to === undefined || defined === undefined) return;
        // Pageable memory may be read before the call returns; a copy between two such buffers has completed by then.
        if (defined.resource === "host") this.#byHost(defined);
        if (defined.resource === "host" && to.resource === "host") this.#byHost(to);
        this.#reads(defined, lane);
        this.#writes(to, lane);
        this.#steps.push({ do: "copy", from: defined.id, to: to.id, lane, peer: b % 2 === 1 });
        this.#done(lane, defined, to);
        return this.#watch(to, lane);
      }
      case "download":
        return defined === undefined ? undefined : this.#download(defined, lane);
      case "home":
        return this.#rehome(buffer, this.#homeFor(buffer.device, laneChoice));
      case "free":
        return this.#free(buffer, laneChoice, b);
    }
  }

  end(): Program {
    for (const one of this.#live.filter(({ defined }) => defined)) {
      this.#download(one, one.written?.lane ?? one.device * laneKinds.length);
    }
    return { devices: this.#devices, steps: this.#steps, downloads: this.#downloads };
  }

  /** A lane of a device, or of any. */
  #homeFor(device: number, choice: number): number {
    const lanes = this.#devices * laneKinds.length;
    return this.#options.abroad === true ? choice % lanes : device * laneKinds.length + choice % laneKinds.length;
  }

  #allocate(lane: number, a: number, b: number): void {
    const resource = pick<Resource>(this.#options.resources ?? ["driver"], b) ?? "driver";
    const device = this.#options.abroad === true ? a % this.#devices : deviceOf(lane);
    const isPooled = poolOf(resource) !== null;
    const home = resource === "host" || (!isPooled && a % 3 === 0) ? null : lane;
    const id = this.#buffers++;
    const made: Planned = { id, device, resource, home, written: null, read: [], defined: false };
    this.#steps.push({ do: "allocate", buffer: id, device, resource, lane: home });
    if (isPooled) made.written = { lane, number: this.#order.allocation(lane) };
    this.#live.push(made);
    if (this.#options.watched !== true) return;
    const near = reaches(made, lane) ? lane : device * laneKinds.length;
    this.#fill(made, near);
    this.#watch(made, near);
  }

  #free(buffer: Planned, laneChoice: number, b: number): void {
    const { resource, home } = buffer;
    if (resource === "driver") {
      const lane = this.#homeFor(buffer.device, laneChoice);
      this.#writes(buffer, lane);
      this.#steps.push({ do: "free", buffer: buffer.id, lane, how: "close on" });
      this.#order.work(lane);
    } else if (home === null) {
      this.#byHost(buffer); // it is freed at once
      this.#steps.push({ do: "free", buffer: buffer.id, lane: null, how: b % 2 === 0 ? "close" : "drop" });
    } else {
      const how = pick<Ending>(["close", "close on", "drop"], b) ?? "close";
      const lane = how === "close on" ? this.#homeFor(buffer.device, laneChoice) : home;
      this.#writes(buffer, home);
      if (lane !== home) this.#order.wait(lane, home, "new event"); // closing on another stream orders it
      this.#steps.push({ do: "free", buffer: buffer.id, lane, how });
      this.#order.work(lane);
    }
    this.#live.splice(this.#live.indexOf(buffer), 1);
  }

  /** Moves the home. The new home waits for the old one: the buffer itself orders them. */
  #rehome(buffer: Planned, lane: number): void {
    if (buffer.resource === "driver" || buffer.home === null) return;
    if (lane !== buffer.home) this.#order.wait(lane, buffer.home, "new event");
    this.#steps.push({ do: "home", buffer: buffer.id, lane });
    buffer.home = lane;
  }

  #fill(buffer: Planned, lane: number): void {
    if (buffer.resource === "host") this.#byHost(buffer); // done synchronously, whatever the stream
    this.#writes(buffer, lane);
    this.#steps.push({ do: "fill", buffer: buffer.id, lane, value: ++this.#values % 200 + 1 }); // never the poison
    this.#done(lane, null, buffer);
  }

  #download(buffer: Planned, lane: number): void {
    if (buffer.resource === "host") this.#byHost(buffer);
    this.#reads(buffer, lane);
    this.#steps.push({ do: "download", buffer: buffer.id, lane, slot: this.#downloads++ });
    if (buffer.resource === "host") this.#synchronize(lane);
    this.#done(lane, buffer, null);
  }

  #watch(buffer: Planned, lane: number): void {
    if (this.#options.watched === true) this.#download(buffer, lane);
  }

  #synchronize(lane: number): void {
    this.#steps.push({ do: "synchronize", lane });
    this.#order.synchronize(lane);
  }

  /** Makes the host wait until nothing uses a buffer any more. */
  #byHost({ written, read }: Planned): void {
    for (const access of [written, ...read]) {
      if (access !== null && !this.#order.isHostAfter(access.lane, access.number)) this.#synchronize(access.lane);
    }
  }

  /** Revokes access to a pool, after everything that may use it. */
  #revoke(a: number, b: number): void {
    const owner = a % this.#devices;
    const pool = b % 2 === 1 ? "own" : "current";
    const granted = this.#peers.get(`${pool} ${owner}`) ?? new Set();
    if (granted.size === 0) return;
    for (let lane = 0; lane < this.#devices * laneKinds.length; lane++) this.#synchronize(lane);
    this.#setPeers(owner, pool, [...granted].slice(1));
  }

  #setPeers(owner: number, pool: "own" | "current", peers: readonly number[]): void {
    this.#peers.set(`${pool} ${owner}`, new Set(peers));
    this.#steps.push({ do: "peers", owner, isOwnPool: pool === "own", peers });
  }

  /** Gives a lane's device access to the pool that a buffer comes from. */
  #grant({ device, resource }: Planned, lane: number): void {
    const pool = poolOf(resource);
    const peer = deviceOf(lane);
    if (pool === null || pool === "driver" || peer === device) return;
    const granted = this.#peers.get(`${pool} ${device}`) ?? new Set();
    if (!granted.has(peer)) this.#setPeers(device, pool, [...granted, peer]);
  }

  #require(lane: number, accesses: readonly (Access | null)[]): void {
    for (const access of accesses) {
      if (access === null || (this.#order.upcoming(lane)[access.lane] ?? 0) >= access.number) continue;
      const some = this.#options.contexts === false ? hows : howsWithContexts;
      const how = some[this.#steps.length % some.length] ?? "new event";
      this.#order.wait(lane, access.lane, how);
      this.#steps.push({ do: "order", before: access.lane, after: lane, how });
    }
  }

  #reads(buffer: Planned, lane: number): void {
    this.#grant(buffer, lane);
    this.#require(lane, [buffer.written]);
  }

  #writes(buffer: Planned, lane: number): void {
    this.#grant(buffer, lane);
    this.#require(lane, [buffer.written, ...buffer.read]);
  }

  #done(lane: number, read: Planned | null, written: Planned | null): void {
    // Between host buffers everything has completed on return: there is no work in the stream to order by.
    const isOver = [read, written].every((one) => one === null || one.resource === "host");
    const access = isOver ? null : { lane, number: this.#order.work(lane) };
    if (access !== null) read?.read.push(access);
    if (written !== null) Object.assign(written, { written: access, read: [], defined: true });
  }
}

/** The pool that a resource allocates from, or null if it has none. */
function poolOf(resource: Resource): "driver" | "own" | "current" | null {
  if (resource === "driver" || resource === "own") return resource;
  return resource === "current" || resource === "custom" ? "current" : null;
}

/** Whether work of a lane can be given access to a buffer. Synchronous memory can be used by its own device only. */
function reaches({ resource, device }: Planned, lane: number): boolean {
  return resource !== "synchronous" || device === deviceOf(lane);
}

function pick<T>(from: readonly T[], at: number): T | undefined {
  return from[at % Math.max(1, from.length)];
}

/** What the downloads must contain: the steps run one after the other, on plain arrays. */
export function reference({ steps, downloads }: Program): number[][] {
  const buffers = new Map<number, number[]>();
  const slots: number[][] = Array.from({ length: downloads }, () => []);
  for (const step of steps) {
    if (step.do === "fill" || step.do === "poke") {
      buffers.set(step.buffer, new Array<number>(bufferBytes).fill(step.value));
    }
    if (step.do === "upload") buffers.set(step.buffer, uploaded(step.slot));
    if (step.do === "copy") buffers.set(step.to, [...buffers.get(step.from) ?? []]);
    if (step.do === "download") slots[step.slot] = [...buffers.get(step.buffer) ?? []];
  }
  return slots;
}

/** The host's data in an upload slot. */
export function uploaded(slot: number): number[] {
  return Array.from({ length: bufferBytes }, (_, i) => (slot + i) % 200 + 1);
}

/** How many `order` steps a program has. */
export function orders({ steps }: Program): number {
  return steps.filter((step) => step.do === "order").length;
}
