/**
 * Random programs of producers and consumers, made from random numbers. Where the conventions do not order two uses of
 * the same memory, one of them a write, a step that orders them is inserted, as a user would have to: so nothing that a
 * convention promises is done twice.
 *
 * @module
 */
import { fc } from "../property.ts";
import { deviceOfLane, isDefault, isForeign, type Program, type Resource, type Setting, whole } from "./mod.ts";
import { Dice } from "./dice.ts";
import { ArrowStreams } from "./arrow_streams.ts";
import { type ArrayHolder, type Block, isForeignArray } from "./model.ts";

const choices = {
  allocate: 3,
  touch: 16,
  copy: 3,
  home: 2,
  lend: 4,
  giveBack: 4,
  export: 6,
  stream: 1,
  next: 2,
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

/** A choice: what to do, and a number whose digits decide the rest, depending on the state when its turn comes. */
type Choice = readonly [kind: ChoiceKind, dice: number];

const choice: fc.Arbitrary<Choice> = fc.tuple(fc.constantFrom(...weighted), fc.maxSafeNat());

/** Which programs to make. */
export interface ProgramsOptions {
  /** Where they run, if that is given rather than chosen: as on real GPUs. */
  readonly setting?: Setting;
}

/** Random programs. */
export function programs({ setting }: ProgramsOptions = {}): fc.Arbitrary<Program> {
  return fc.tuple(
    fc.integer({ min: 1, max: 3 }),
    fc.boolean(),
    fc.nat(4),
    fc.array(choice, { minLength: 1, maxLength: 40, size: "max" }),
    fc.maxSafeNat(),
  ).map(([devices, hasPeers, age, list, ending]) => {
    const planner = new Planner(setting ?? { devices, hasPeers, isOld: age === 4 });
    for (const [kind, dice] of list) planner.take(kind, new Dice(dice));
    return planner.end(new Dice(ending));
  });
}

class Planner extends ArrowStreams {
  #blocks = 0;

  take(kind: ChoiceKind, dice: Dice): void {
    if (kind === "allocate" || this.open().length === 0) return this.#allocate(dice);
    switch (kind) {
      case "touch":
        return this.#touch(dice);
      case "copy":
        return this.#copy(dice);
      case "home":
        return this.#home(dice);
      case "lend":
        return this.lend(dice);
      case "giveBack":
        return this.giveBack(dice.of(this.holders.loans.filter(({ isOver }) => !isOver)));
      case "export":
        return this.export(dice);
      case "stream":
        return this.exportStream(dice);
      case "next":
        return this.next(dice.of(this.openStreams()));
      case "import":
        return this.import(dice);
      case "release":
        if (dice.below(8) === 0) return this.releaseStream(dice.of(this.openStreams()), dice);
        return this.release(dice.of(this.unreleased()), dice);
      case "close":
        return this.close(
          dice.of(dice.below(3) > 0 ? this.#closable().filter(({ from }) => from !== null) : this.#closable()),
        );
      case "look":
        return this.look();
      case "destroy":
        return this.#destroy(dice);
      case "synchronize":
        return this.synchronize(dice.of(this.openLanes()));
    }
  }

  /** Reads every open array, and ends everything in any order. */
  end(dice: Dice): Program {
    for (const array of this.open()) this.read(array, this.laneOf(array, dice));
    const isEarly = dice.below(2) === 0;
    if (dice.below(3) === 0) this.synchronizeAll();
    let isCudaOpen = true;
    for (;;) {
      const needed = isCudaOpen ? this.#endsBeforeCuda(dice) : [];
      const others = this.#endsAnyTime(dice);
      if (isCudaOpen && needed.length === 0 && (isEarly || others.length === 0)) {
        if (others.length > 0) this.synchronizeAll(); // nothing can be ordered afterwards
        this.push({ do: "close cuda" });
        isCudaOpen = false;
        continue;
      }
      const one = dice.of(isEarly && needed.length > 0 ? needed : [...needed, ...others]);
      if (one === undefined) return { ...this.setting, steps: this.steps, slots: this.slots };
      one();
    }
  }

  /**
   * What must be ended while the Cuda is open: what a checker would report as leaked, and what other libraries have
   * made.
   */
  #endsBeforeCuda(dice: Dice): (() => void)[] {
    const guests = this.holders.loans.filter(({ isOver, isLease }) => !isOver && !isLease);
    const allocated = this.#closable().filter(({ from }) => from?.kind !== "export");
    const ends = [
      ...guests.map((one) => () => this.giveBack(one)),
      ...allocated.map((one) => () => this.close(one)),
      ...this.#destructible().map((lane) => () => this.destroyLane(lane)),
      ...this.openPools().map((device) => () => this.closePool(device)),
    ];
    const isArrayLeft = this.holders.arrays.some((one) =>
      !one.isOver && (isForeignArray(one) || (!one.isClosed && one.from?.kind !== "export"))
    );
    const isLaneLeft = this.lanes.some((lane) => this.isThere(lane) && !isDefault(lane));
    return ends.length === 0 && (isArrayLeft || isLaneLeft) ? this.#endsAnyTime(dice) : ends;
  }

  #endsAnyTime(dice: Dice): (() => void)[] {
    const leases = this.holders.loans.filter(({ isOver, isLease }) => !isOver && isLease);
    return [
      ...leases.map((one) => () => this.giveBack(one)),
      ...this.unreleased().map((one) => () => this.release(one, dice)),
      ...this.openStreams().map((one) => () => this.releaseStream(one, dice)),
      ...this.#closable().filter(({ from }) => from?.kind === "export").map((one) => () => this.close(one)),
      ...(this.holders.hasUnseen ? [() => this.look()] : []),
    ];
  }

  #closable(): ArrayHolder[] {
    return this.open().filter(({ guests }) => guests === 0);
  }

  #destructible(): number[] {
    const needed = new Set<number | null>();
    for (const one of this.holders.loans) {
      if (one.isOver) continue;
      needed.add(one.producer);
      if (!one.isLease || isForeign(one.lane)) needed.add(one.lane);
    }
    for (const one of this.holders.arrays) {
      if (one.isOver) continue;
      if (one.home !== null && (isForeign(one.home) || isForeignArray(one) || one.guests > 0)) needed.add(one.home);
      if (one.from?.kind === "interface") needed.add(one.from.producer).add(one.home);
    }
    return this.lanes.filter((lane) => this.isThere(lane) && !isDefault(lane) && !needed.has(lane));
  }

  #allocate(dice: Dice): void {
    const resource = dice.of<Resource>(["current", "own", "foreign", "synchronous", "current", "pinned", "managed"]) ??
      "current";
    const device = dice.below(this.setting.devices);
    if (resource === "own" && this.closedPools.has(device)) return;
    const block: Block = { id: this.#blocks++, device, resource, written: null, reads: [] };
    const lane = resource === "foreign"
      ? dice.of(this.reaching(block).filter((one) => deviceOfLane(one) === device))
      : dice.of(this.homes(block));
    if (lane === undefined) return;
    if (resource !== "foreign") this.holders.look(); // every allocation of ours does
    const array = this.add(block, whole, null, lane, false);
    this.push({ do: "allocate", array: array.id, device, resource, lane });
    block.written = { lane, number: this.order.allocation(lane), by: array };
    this.fill(array, lane);
  }

  #touch(dice: Dice): void {
    const exports = this.unreleased();
    const loans = this.holders.loans.filter(({ isOver, lane, block }) =>
      !isOver && this.reaching(block).includes(lane)
    );
    const isTheirs = dice.below(3) > 0 && exports.length + loans.length > 0;
    const holder = isTheirs ? dice.of([...exports, ...loans]) : dice.of(this.open());
    if (holder === undefined) return;
    const lane = this.laneOf(holder, dice);
    const writes = dice.below(2) === 0 && !holder.isReadonly;
    if (writes) this.fill(holder, lane);
    else this.read(holder, lane);
  }

  /** Copies between two arrays; the library orders the copy itself. */
  #copy(dice: Dice): void {
    const from = dice.of(this.open());
    if (from === undefined) return;
    const fits = ({ block, part, isReadonly }: ArrayHolder) =>
      block !== from.block && !isReadonly && part.rows === from.part.rows && part.cols === from.part.cols;
    const to = dice.of(this.open().filter((one) => fits(one) && !isForeignArray(one)));
    if (to === undefined || isForeignArray(from)) return;
    const there = this.reaching(to.block);
    const lane = dice.of(this.reaching(from.block).filter((one) => there.includes(one)));
    if (lane === undefined) return;
    const homes = [from.home, to.home].filter((home) => home !== null);
    for (const home of homes) this.order.after(lane, this.order.held(home));
    this.begin(from, lane, [from.block.written]);
    this.begin(to, lane, [to.block.written, ...to.block.reads]);
    const blocks = [from.block.id, to.block.id] as const;
    this.push({ do: "copy", from: from.id, to: to.id, lane, blocks, parts: [from.part, to.part] });
    if (from.block.resource === "pinned" && to.block.resource === "pinned") {
      for (const one of [lane, ...homes]) this.order.synchronize(one);
      Object.assign(to.block, { written: null, reads: [] }); // the host copies synchronously
      return;
    }
    from.block.reads.push(this.access(from, lane));
    this.wrote(to, lane);
    for (const home of homes) this.order.after(home, this.order.held(lane));
  }

  #home(dice: Dice): void {
    const array = dice.of(this.open().filter((one) => one.home !== null && !isForeignArray(one)));
    if (array === undefined || array.home === null) return;
    if (array.guests > 0 && this.destroyed.has(array.home)) return; // they still reference it
    const lane = dice.of(this.homes(array.block));
    if (lane === undefined) return;
    this.order.after(lane, this.order.held(array.home));
    this.push({ do: "home", array: array.id, lane });
    array.home = lane;
  }

  #destroy(dice: Dice): void {
    const lane = dice.of(this.#destructible());
    const pool = dice.of(this.openPools());
    if (pool !== undefined && (lane === undefined || dice.below(4) === 0)) this.closePool(pool);
    else if (lane !== undefined) this.destroyLane(lane);
  }
}
