/**
 * Random programs of producers and consumers, made from random numbers. Where two uses of the same memory, one of them
 * changing it, are in no order by what the conventions promise, a step that orders them is put in, as a user would have
 * to: so nothing that a convention promises is done twice.
 *
 * @module
 */
import { type How, join, Order } from "../sim/lanes.ts";
import { fc } from "../support/property.ts";
import {
  type Convention,
  deviceOfLane,
  type Given,
  isDefault,
  isDense,
  isForeign,
  kinds,
  type Naming,
  type Part,
  type Program,
  type Protocol,
  type ReleasedBy,
  type Resource,
  type Step,
  type Via,
  whole,
} from "./programs.ts";
import {
  type Access,
  type ArrayHolder,
  type Block,
  descendsFrom,
  type ExportHolder,
  type Holder,
  Holders,
  isForeignArray,
  isPromised,
  type LoanHolder,
  type Origin,
} from "./programs_model.ts";

const choices = {
  allocate: 3,
  touch: 16,
  copy: 3,
  home: 2,
  lend: 4,
  giveBack: 4,
  export: 6,
  import: 6,
  release: 5,
  close: 5,
  look: 3,
  destroy: 1,
  synchronize: 1,
} as const;
type ChoiceKind = keyof typeof choices;
const weighted = Object.entries(choices).flatMap(([kind, weight]) =>
  new Array<ChoiceKind>(weight).fill(kind as ChoiceKind) // its own keys
);

/** A choice: what to do, and a number whose digits decide the rest, by what is there when its turn comes. */
type Choice = readonly [kind: ChoiceKind, dice: number];

const choice: fc.Arbitrary<Choice> = fc.tuple(fc.constantFrom(...weighted), fc.maxSafeNat());

/** Which programs. */
export interface ProgramsOptions {
  /** How many choices at most. Default 40. */
  readonly maxLength?: number;
  /** Where they run, if that is not to be chosen: as on GPUs, which are what they are. */
  readonly setting?: Setting;
}

/** Random programs. */
export function programs({ maxLength = 40, setting }: ProgramsOptions = {}): fc.Arbitrary<Program> {
  return fc.tuple(
    fc.integer({ min: 1, max: 3 }),
    fc.boolean(),
    fc.nat(4),
    fc.array(choice, { minLength: 1, maxLength, size: "max" }),
    fc.maxSafeNat(),
  ).map(([devices, hasPeers, age, list, ending]) => {
    const planner = new Planner(setting ?? { devices, hasPeers, isOld: age === 4 });
    for (const [kind, dice] of list) planner.take(kind, new Dice(dice));
    return planner.end(new Dice(ending));
  });
}

/** The digits of a number. */
class Dice {
  #left: number;

  constructor(number: number) {
    this.#left = number;
  }

  below(count: number): number {
    const digit = this.#left % count;
    this.#left = Math.floor(this.#left / count);
    return digit;
  }

  of<T>(from: readonly T[]): T | undefined {
    return from.length === 0 ? undefined : from[this.below(from.length)];
  }
}

/** Where a program runs. */
export type Setting = Pick<Program, "devices" | "hasPeers" | "isOld">;

const hows: readonly How[] = ["new event", "recorded again", "context"];

class Planner {
  readonly #setting: Setting;
  readonly #lanes: readonly number[];
  readonly #order: Order;
  readonly #holders: Holders;
  readonly #steps: Step[] = [];
  readonly #slots: number[] = [];
  readonly #destroyed = new Set<number>();
  readonly #closedPools = new Set<number>();
  /** Which devices may use a pool, by owner and by whether it is our own. */
  readonly #peers = new Map<string, number[]>();
  #blocks = 0;
  #values = 0;

  constructor(setting: Setting) {
    this.#setting = setting;
    this.#lanes = Array.from({ length: setting.devices * kinds.length }, (_, lane) => lane);
    this.#order = new Order(this.#lanes.length, kinds);
    this.#holders = new Holders(this.#order);
  }

  take(kind: ChoiceKind, dice: Dice): void {
    if (kind === "allocate" || this.#open().length === 0) return this.#allocate(dice);
    switch (kind) {
      case "touch":
        return this.#touch(dice);
      case "copy":
        return this.#copy(dice);
      case "home":
        return this.#home(dice);
      case "lend":
        return this.#lend(dice);
      case "giveBack":
        return this.#giveBack(dice.of(this.#holders.loans.filter(({ isOver }) => !isOver)));
      case "export":
        return this.#export(dice);
      case "import":
        return this.#import(dice);
      case "release":
        return this.#release(dice.of(this.#unreleased()), dice);
      case "close":
        return this.#close(
          dice.of(dice.below(3) > 0 ? this.#closable().filter(({ from }) => from !== null) : this.#closable()),
        );
      case "look":
        return this.#look();
      case "destroy":
        return this.#destroy(dice);
      case "synchronize":
        return this.#synchronize(dice.of(this.#openLanes()));
    }
  }

  /** Reads all that is there, and ends everything in any order. */
  end(dice: Dice): Program {
    for (const array of this.#open()) this.#read(array, this.#laneOf(array, dice));
    const isEarly = dice.below(2) === 0;
    if (dice.below(3) === 0) this.#synchronizeAll();
    let isCudaOpen = true;
    for (;;) {
      const needed = isCudaOpen ? this.#endsBeforeCuda(dice) : [];
      const others = this.#endsAnyTime(dice);
      if (isCudaOpen && needed.length === 0 && (isEarly || others.length === 0)) {
        if (others.length > 0) this.#synchronizeAll(); // nobody can order anything afterwards
        this.#steps.push({ do: "close cuda" });
        isCudaOpen = false;
        continue;
      }
      const one = dice.of(isEarly && needed.length > 0 ? needed : [...needed, ...others]);
      if (one === undefined) return { ...this.#setting, steps: this.#steps, slots: this.#slots };
      one();
    }
  }

  /** What must be ended while the Cuda is open: what a checker would take for lost, and what other libraries have made. */
  #endsBeforeCuda(dice: Dice): (() => void)[] {
    const guests = this.#holders.loans.filter(({ isOver, isLease }) => !isOver && !isLease);
    const allocated = this.#closable().filter(({ from }) => from?.kind !== "export");
    const ends = [
      ...guests.map((one) => () => this.#giveBack(one)),
      ...allocated.map((one) => () => this.#close(one)),
      ...this.#destructible().map((lane) => () => this.#destroyLane(lane)),
      ...this.#openPools().map((device) => () => this.#closePool(device)),
    ];
    const isArrayLeft = this.#holders.arrays.some((one) =>
      !one.isOver && (isForeignArray(one) || (!one.isClosed && one.from?.kind !== "export"))
    );
    const isLaneLeft = this.#openLanes().some((lane) => !isDefault(lane));
    return ends.length === 0 && (isArrayLeft || isLaneLeft) ? this.#endsAnyTime(dice) : ends;
  }

  #endsAnyTime(dice: Dice): (() => void)[] {
    const leases = this.#holders.loans.filter(({ isOver, isLease }) => !isOver && isLease);
    return [
      ...leases.map((one) => () => this.#giveBack(one)),
      ...this.#unreleased().map((one) => () => this.#release(one, dice)),
      ...this.#closable().filter(({ from }) => from?.kind === "export").map((one) => () => this.#close(one)),
      ...(this.#holders.hasUnseen ? [() => this.#look()] : []),
    ];
  }

  // What there is.

  #open(): ArrayHolder[] {
    return this.#holders.arrays.filter(({ isClosed }) => !isClosed);
  }

  #openPools(): number[] {
    return Array.from({ length: this.#setting.devices }, (_, i) => i).filter((one) => !this.#closedPools.has(one));
  }

  #unreleased(): ExportHolder[] {
    return this.#holders.exports.filter(({ state }) => state === "out" || state === "taken");
  }

  #closable(): ArrayHolder[] {
    return this.#open().filter(({ guests }) => guests === 0);
  }

  #openLanes(): number[] {
    return this.#lanes.filter((lane) => !this.#destroyed.has(lane));
  }

  /** Lanes that may use a block. */
  #reaching({ device, resource }: Block): number[] {
    const isEverywhere = this.#setting.hasPeers || resource === "pinned" || resource === "managed";
    const isFixed = resource === "own" && this.#closedPools.has(device); // a closed pool lets nobody else in
    const peers = this.#peers.get(`true ${device}`) ?? [];
    const isLetIn = (peer: number) => peer === device || (isEverywhere && (!isFixed || peers.includes(peer)));
    return this.#openLanes().filter((lane) => isLetIn(deviceOfLane(lane)));
  }

  /** Lanes that may be a home: nobody else destroys them. */
  #homes(block: Block): number[] {
    return this.#reaching(block).filter((lane) => !isForeign(lane));
  }

  #destructible(): number[] {
    const needed = new Set<number | null>();
    for (const one of this.#holders.loans) {
      if (one.isOver) continue;
      needed.add(one.producer);
      if (!one.isLease || isForeign(one.lane)) needed.add(one.lane);
    }
    for (const one of this.#holders.arrays) {
      if (one.isOver) continue;
      if (one.home !== null && (isForeign(one.home) || isForeignArray(one) || one.guests > 0)) needed.add(one.home);
      if (one.from?.kind === "interface") needed.add(one.from.producer).add(one.home);
    }
    return this.#openLanes().filter((lane) => !isDefault(lane) && !needed.has(lane));
  }

  // What is done.

  #allocate(dice: Dice): void {
    const resource = dice.of<Resource>(["current", "own", "foreign", "synchronous", "current", "pinned", "managed"]) ??
      "current";
    const device = dice.below(this.#setting.devices);
    if (resource === "own" && this.#closedPools.has(device)) return;
    const block: Block = { id: this.#blocks++, device, resource, written: null, reads: [] };
    const lane = resource === "foreign"
      ? dice.of(this.#reaching(block).filter((one) => deviceOfLane(one) === device))
      : dice.of(this.#homes(block));
    if (lane === undefined) return;
    if (resource !== "foreign") this.#holders.look(); // every allocation of ours does
    const array = this.#add(block, whole, null, lane, false);
    this.#steps.push({ do: "allocate", array: array.id, device, resource, lane });
    block.written = { lane, number: this.#order.work(lane), by: array };
    this.#fill(array, lane);
  }

  #add(block: Block, part: Part, from: Origin | null, home: number | null, isReadonly: boolean): ArrayHolder {
    const array: ArrayHolder = {
      kind: "array",
      id: this.#holders.arrays.length,
      block,
      part,
      from,
      home,
      isReadonly,
      used: new Set(),
      mark: [],
      pins: 0,
      guests: 0,
      isClosed: false,
      isOver: false,
    };
    this.#holders.arrays.push(array);
    return array;
  }

  #touch(dice: Dice): void {
    const exports = this.#unreleased();
    const loans = this.#holders.loans.filter(({ isOver, lane, block }) =>
      !isOver && this.#reaching(block).includes(lane)
    );
    const isTheirs = dice.below(3) > 0 && exports.length + loans.length > 0;
    const holder = isTheirs ? dice.of([...exports, ...loans]) : dice.of(this.#open());
    if (holder === undefined) return;
    const lane = this.#laneOf(holder, dice);
    const writes = dice.below(2) === 0 && !holder.isReadonly;
    if (writes) this.#fill(holder, lane);
    else this.#read(holder, lane);
  }

  /** Where a holder works: mostly where it was ordered, so that nothing but the promise orders it. */
  #laneOf(holder: Holder, dice: Dice): number {
    if (holder.kind === "loan") return holder.lane;
    const usual = holder.kind === "array" ? holder.home : holder.lane;
    const lanes = this.#reaching(holder.block);
    const others = dice.below(4) === 0 ? lanes : [...holder.used].filter((lane) => lanes.includes(lane));
    const isUsual = usual !== null && lanes.includes(usual) && (others.length === 0 || dice.below(3) > 0);
    // A device's legacy default stream is there, and it reaches the device's own memory.
    return isUsual ? usual : dice.of(others) ?? dice.of(lanes) ?? holder.block.device * kinds.length;
  }

  #fill(holder: Holder, lane: number): void {
    const { block, part } = holder;
    this.#begin(holder, lane, [block.written, ...block.reads]);
    const value = ++this.#values % 200 + 1; // never the poison
    this.#steps.push({ do: "fill", via: via(holder), lane, value, block: block.id, part });
    this.#wrote(holder, lane);
  }

  #read(holder: Holder, lane: number): void {
    const { block, part } = holder;
    this.#begin(holder, lane, [block.written]);
    const slot = this.#slots.push(part.rows * part.cols) - 1;
    this.#steps.push({ do: "read", via: via(holder), lane, slot, block: block.id, part });
    block.reads.push(this.#access(holder, lane));
  }

  /** Copies between two arrays, which the library orders by itself. */
  #copy(dice: Dice): void {
    const from = dice.of(this.#open());
    if (from === undefined) return;
    const fits = ({ block, part, isReadonly }: ArrayHolder) =>
      block !== from.block && !isReadonly && part.rows === from.part.rows && part.cols === from.part.cols &&
      !(block.resource === "pinned" && from.block.resource === "pinned"); // which the host copies, at once
    const to = dice.of(this.#open().filter((one) => fits(one) && !isForeignArray(one)));
    if (to === undefined || isForeignArray(from)) return;
    const there = this.#reaching(to.block);
    const lane = dice.of(this.#reaching(from.block).filter((one) => there.includes(one)));
    if (lane === undefined) return;
    const homes = [from.home, to.home].filter((home) => home !== null);
    for (const home of homes) this.#order.after(lane, this.#order.held(home));
    this.#begin(from, lane, [from.block.written]);
    this.#begin(to, lane, [to.block.written, ...to.block.reads]);
    const blocks = [from.block.id, to.block.id] as const;
    this.#steps.push({ do: "copy", from: from.id, to: to.id, lane, blocks, parts: [from.part, to.part] });
    from.block.reads.push(this.#access(from, lane));
    this.#wrote(to, lane);
    for (const home of homes) this.#order.after(home, this.#order.held(lane));
  }

  #wrote(holder: Holder, lane: number): void {
    Object.assign(holder.block, { written: this.#access(holder, lane), reads: [] });
  }

  #access(by: Holder, lane: number): Access {
    by.used.add(lane);
    if (by.kind === "export" && by.state === "out") by.state = "taken";
    return { lane, number: this.#order.work(lane), by };
  }

  /** What comes before a use: the device is let in, an Arrow array's event is waited for, and the rest is ordered. */
  #begin(holder: Holder, lane: number, accesses: readonly (Access | null)[]): void {
    this.#grant(holder.block, deviceOfLane(lane));
    if (holder.kind === "export" && holder.how === "arrow" && !holder.awaited.has(lane)) {
      holder.awaited.add(lane);
      this.#steps.push({ do: "await", export: holder.id, lane });
      this.#order.after(lane, holder.ready);
      holder.state = "taken";
    }
    this.#require(lane, accesses);
  }

  #grant({ device, resource }: Block, peer: number): void {
    if (peer === device || resource === "synchronous" || resource === "pinned" || resource === "managed") return;
    const isOwnPool = resource === "own";
    const key = `${isOwnPool} ${device}`;
    const peers = this.#peers.get(key) ?? [];
    if (peers.includes(peer)) return;
    this.#peers.set(key, [...peers, peer]);
    this.#steps.push({ do: "peers", owner: device, isOwnPool, peers: [...peers, peer] });
  }

  #require(lane: number, accesses: readonly (Access | null)[]): void {
    for (const access of accesses) {
      if (access === null || (this.#order.upcoming(lane)[access.lane] ?? 0) >= access.number) continue;
      this.#orderAfter(lane, access.lane);
    }
  }

  #orderAfter(after: number, before: number): void {
    const isGone = this.#destroyed.has(before); // only its context knows of it
    if (isGone && this.#setting.isOld) return this.#synchronizeDevice(deviceOfLane(before));
    const chosen = hows[this.#steps.length % hows.length] ?? "new event";
    const how = isGone ? "context" : this.#setting.isOld && chosen === "context" ? "new event" : chosen;
    this.#order.wait(after, before, how);
    this.#steps.push({ do: "order", before, after, how });
  }

  #synchronize(lane: number | undefined): void {
    if (lane === undefined) return;
    this.#steps.push({ do: "synchronize", lane });
    this.#order.synchronize(lane);
  }

  #synchronizeAll(): void {
    for (let device = 0; device < this.#setting.devices; device++) this.#synchronizeDevice(device);
  }

  #synchronizeDevice(device: number): void {
    this.#steps.push({ do: "synchronize device", device });
    for (const lane of this.#lanes) {
      if (deviceOfLane(lane) === device) this.#order.hostAfter(this.#order.held(lane));
    }
  }

  #home(dice: Dice): void {
    const array = dice.of(this.#open().filter((one) => one.home !== null && !isForeignArray(one)));
    if (array === undefined || array.home === null) return;
    if (array.guests > 0 && this.#destroyed.has(array.home)) return; // they still know it
    const lane = dice.of(this.#homes(array.block));
    if (lane === undefined) return;
    this.#order.after(lane, this.#order.held(array.home));
    this.#steps.push({ do: "home", array: array.id, lane });
    array.home = lane;
  }

  #lend(dice: Dice): void {
    const array = dice.of(this.#open().filter(({ home }) => home !== null));
    if (array === undefined || array.home === null) return;
    const { block, home } = array;
    const isLease = !isForeignArray(array) && (!isDescribable(array) || dice.below(2) === 0);
    const part = this.#partOf(array, dice, false);
    // A guest may work on the very stream that is named.
    const lane = !isLease && dice.below(4) === 0 && !this.#destroyed.has(home) ? home : dice.of(this.#reaching(block));
    if (lane === undefined) return;
    const id = this.#holders.loans.length;
    const { isReadonly } = array;
    const loan: LoanHolder = {
      kind: "loan",
      id,
      of: array,
      block,
      part,
      isReadonly,
      isLease,
      lane,
      producer: isLease ? null : home,
      used: new Set(),
      isOver: false,
    };
    this.#holders.loans.push(loan);
    this.#order.after(lane, this.#order.held(home));
    this.#steps.push({ do: isLease ? "lend" : "describe", loan: id, array: array.id, part, lane });
    if (isLease) array.pins++;
    else array.guests++;
  }

  #giveBack(loan: LoanHolder | undefined): void {
    if (loan === undefined) return;
    this.#steps.push({ do: "return", loan: loan.id });
    this.#holders.giveBack(loan);
  }

  #partOf({ part }: ArrayHolder, dice: Dice, mustBeDense: boolean): Part {
    const { row, rows, col, cols } = part;
    const parts: Part[] = [part, { ...part, rows: 1 }];
    if (rows > 1) {
      const half = Math.floor(rows / 2);
      parts.push({ ...part, rows: half }, { ...part, row: row + half, rows: rows - half });
    }
    if (cols > 1) parts.push({ ...part, cols: 1 }, { ...part, col: col + 1, cols: cols - 1 });
    return dice.of(parts.filter((one) => !mustBeDense || isDense(one))) ?? part;
  }

  #export(dice: Dice): void {
    const array = dice.of(this.#open().filter((one) => one.home !== null && !isForeignArray(one)));
    if (array === undefined || array.home === null) return;
    const { block, isReadonly, home } = array;
    const how = this.#conventionFor(array, dice);
    const part = this.#partOf(array, dice, how === "arrow");
    const { lane, naming } = how === "arrow" ? { lane: null, naming: "default" as const } : this.#named(block, dice);
    const ready = how === "arrow" ? [...this.#order.held(home)] : [];
    const one = this.#addExport(array, part, how, lane, ready, isReadonly || how === "arrow");
    const step = {
      do: "export",
      export: one.id,
      array: array.id,
      part,
      how,
      lane,
      naming,
      isReadonly,
      twin: null,
    } as const;
    const other = how === "arrow" && dice.below(3) === 0 ? dice.of(this.#beside(array)) : undefined;
    if (other === undefined) this.#steps.push(step);
    else {
      const twin = this.#addTwin(one, other, dice);
      this.#steps.push({ ...step, twin: { export: twin.id, array: other.id, part: twin.part } });
    }
    if (lane !== null) this.#order.after(lane, this.#order.held(home));
  }

  /** Arrays that can go out together with one: what Arrow calls their device is the same. */
  #beside(array: ArrayHolder): ArrayHolder[] {
    const place = placeOf(array);
    return this.#open().filter((one) =>
      one.block !== array.block && one.home !== null && !isForeignArray(one) && place !== null && placeOf(one) === place
    );
  }

  #addTwin(one: ExportHolder, other: ArrayHolder, dice: Dice): ExportHolder {
    if (other.home !== null) join(one.ready, this.#order.held(other.home));
    const twin = this.#addExport(other, this.#partOf(other, dice, true), "arrow", null, one.ready, true, one);
    one.twin = twin;
    return twin;
  }

  #conventionFor({ block, isReadonly }: ArrayHolder, dice: Dice): Convention {
    if (block.resource === "pinned") return "arrow"; // for DLPack it is the host's
    return dice.of<Convention>(isReadonly ? ["versioned", "arrow"] : ["versioned", "arrow", "legacy"]) ?? "versioned";
  }

  /** How a consumer names its stream. A default stream of another device has no name but itself. */
  #named(block: Block, dice: Dice): { lane: number | null; naming: Naming } {
    const lane = dice.below(5) === 0 ? null : dice.of(this.#reaching(block)) ?? null;
    if (lane === null) return { lane, naming: dice.below(2) === 0 ? "object" : "handle" };
    const isAway = isDefault(lane) && deviceOfLane(lane) !== block.device;
    const names: Naming[] = isAway ? ["object"] : ["object", "handle"];
    if (lane === block.device * kinds.length) names.push("default");
    return { lane, naming: dice.of(names) ?? "object" };
  }

  #addExport(
    of: ArrayHolder,
    part: Part,
    how: Convention,
    lane: number | null,
    ready: readonly number[],
    isReadonly: boolean,
    twin: ExportHolder | null = null,
  ): ExportHolder {
    const one: ExportHolder = {
      kind: "export",
      id: this.#holders.exports.length,
      of,
      block: of.block,
      part,
      how,
      lane,
      ready: [...ready],
      isReadonly,
      awaited: new Set(),
      used: new Set(),
      state: "out",
      mark: [],
      twin,
      isSecond: twin !== null,
      hasSchema: how === "arrow" && twin === null,
      isOver: false,
    };
    of.pins++;
    this.#holders.exports.push(one);
    return one;
  }

  #import(dice: Dice): void {
    const exports = this.#holders.exports.filter(({ state, hasSchema, how, twin }) =>
      state === "out" && (how !== "arrow" || (hasSchema && twin === null))
    );
    const from = dice.of<ExportHolder | ArrayHolder>([...exports, ...this.#open()]);
    if (from === undefined) return;
    if (from.kind === "export") this.#importExport(from, dice);
    else if (from.home !== null) this.#importFrom(from, from.home, dice);
  }

  /** Where an importer says that it will use the array: a lane of the memory's device, or none. */
  #given({ device }: Block, dice: Dice): { given: Given; lane: number | null } {
    const given = dice.of<Given>(["stream", "stream", "stream", "device", "null"]) ?? "stream";
    const lanes = this.#openLanes().filter((lane) => deviceOfLane(lane) === device);
    const lane = given === "stream" ? dice.of(lanes) ?? null : null;
    return { given: given === "stream" && lane === null ? "null" : given, lane };
  }

  #importExport(one: ExportHolder, dice: Dice): void {
    const { block, part, how } = one;
    const { given, lane } = this.#given(block, dice);
    const array = this.#add(block, part, { kind: "export", holder: one }, lane, one.isReadonly);
    this.#pushImport(array, via(one), part, how === "arrow" ? "arrow" : "dlpack", given, lane);
    this.#imported(one, given, lane);
  }

  #importFrom(of: ArrayHolder, home: number, dice: Dice): void {
    const { block, isReadonly } = of;
    const protocols: Protocol[] = block.resource === "pinned" ? ["arrow"] : ["dlpack", "arrow"];
    if (isDescribable(of)) protocols.push("interface");
    const protocol = dice.of(protocols);
    if (protocol === undefined) return;
    const part = this.#partOf(of, dice, protocol === "arrow");
    const { given, lane } = this.#given(block, dice);
    if (protocol === "interface") {
      const producer = given === "null" ? null : home;
      const array = this.#add(
        block,
        part,
        { kind: "interface", holder: of, producer },
        given === "device" ? home : lane,
        isReadonly,
      );
      of.guests++;
      this.#pushImport(array, via(of), part, protocol, given, lane);
      if (lane !== null) this.#order.after(lane, this.#order.held(home));
      return;
    }
    const isArrow = protocol === "arrow";
    const ready = this.#order.held(home);
    const legacy = block.device * kinds.length;
    const asked = given === "device" ? legacy : lane;
    const one = this.#addExport(of, part, isArrow ? "arrow" : "versioned", asked, ready, isReadonly || isArrow);
    if (!isArrow && asked !== null) this.#order.after(asked, ready);
    const array = this.#add(block, part, { kind: "export", holder: one }, lane, one.isReadonly);
    this.#pushImport(array, via(of), part, protocol, given, lane);
    this.#imported(one, given, lane);
  }

  #pushImport(
    { id, isReadonly, block: { device } }: ArrayHolder,
    from: Via,
    part: Part,
    how: Protocol,
    given: Given,
    lane: number | null,
  ): void {
    this.#steps.push({ do: "import", array: id, from, part, how, given, device, lane, isReadonly });
  }

  #imported(one: ExportHolder, given: Given, lane: number | null): void {
    one.state = "imported";
    if (one.how !== "arrow") return;
    one.hasSchema = false;
    if (lane !== null) this.#order.after(lane, one.ready);
    else if (given === "device") this.#order.hostAfter(one.ready);
  }

  #release(one: ExportHolder | undefined, dice: Dice): void {
    if (one === undefined) return;
    const id = one.id;
    if (one.hasSchema && dice.below(4) === 0 && one.state === "taken") {
      one.hasSchema = false;
      this.#steps.push({ do: "release", export: id, by: "call", what: "schema" });
      return;
    }
    const { twin } = one;
    const isTaken = one.state === "taken" || twin?.state === "taken" || twin?.state === "released";
    const isLeft = twin !== null && twin.state !== "released" && dice.below(2) === 0;
    const isByThread = dice.below(24) === 0; // a thread takes longer than the rest of most programs
    const by = isByThread ? "thread" : dice.of<ReleasedBy>(isTaken || isLeft ? ["call"] : ["close", "call"]) ?? "call";
    this.#steps.push({ do: "release", export: id, by, what: isLeft ? "all but twin" : "all" });
    one.hasSchema = false;
    this.#holders.release(one, this.#holders.enqueued(one));
    if (twin === null || twin.state === "released") return;
    twin.hasSchema = false;
    if (isLeft) twin.state = "taken";
    else this.#holders.release(twin, this.#holders.enqueued(twin));
  }

  #close(array: ArrayHolder | undefined): void {
    if (array === undefined) return;
    this.#requireBeforeClose(array);
    this.#steps.push({ do: "close", array: array.id });
    this.#holders.close(array);
  }

  /** What a user must have ordered before closing: whatever no promise of a consumer, or of an import, covers. */
  #requireBeforeClose(array: ArrayHolder): void {
    const { block, from, home } = array;
    const all = [block.written, ...block.reads].filter((one) => one !== null);
    if (from === null) {
      if (home !== null) this.#require(home, all.filter(({ by }) => !isPromised(by, array)));
      return;
    }
    const isFromForeign = from.kind === "export" && isForeignArray(from.holder.of);
    if (from.kind === "export" && !isFromForeign) return; // the release covers all that was enqueued
    const own = all.filter(({ by }) => descendsFrom(by, array) && !isPromised(by, array));
    const before = home ?? (from.kind === "interface" ? from.holder.home : null);
    if (before !== null) return this.#require(before, own);
    for (const { lane, number } of own) {
      if (this.#order.isHostAfter(lane, number)) continue;
      if (this.#destroyed.has(lane)) this.#synchronizeDevice(deviceOfLane(lane));
      else this.#synchronize(lane);
    }
  }

  #look(): void {
    this.#holders.look();
    const released = this.#holders.exports.filter(({ isOver, hasSchema }) => isOver && !hasSchema).map(({ id }) => id);
    this.#steps.push({ do: "look", live: this.#holders.live, released });
  }

  #destroy(dice: Dice): void {
    const lane = dice.of(this.#destructible());
    const device = dice.below(this.#setting.devices);
    if (dice.below(4) > 0) return lane === undefined ? undefined : this.#destroyLane(lane);
    if (!this.#closedPools.has(device)) this.#closePool(device);
  }

  #destroyLane(lane: number): void {
    this.#destroyed.add(lane);
    this.#steps.push({ do: "destroy", lane });
  }

  #closePool(device: number): void {
    this.#closedPools.add(device);
    this.#steps.push({ do: "close pool", device });
  }
}

function via({ kind, id }: Holder): Via {
  return { kind, id };
}

/** Which device Arrow says that an array is on; null if that depends on how it came in. */
function placeOf({ block: { device, resource }, home, from }: ArrayHolder): string | null {
  if (resource === "managed") return from === null ? `managed ${device}` : null;
  return resource === "pinned" ? `pinned ${home === null ? device : deviceOfLane(home)}` : `device ${device}`;
}

/** Whether the CUDA Array Interface can say where an array is, and on which stream of that device it is ordered. */
function isDescribable({ block, home }: ArrayHolder): boolean {
  return block.resource !== "pinned" && (home === null || deviceOfLane(home) === block.device);
}
