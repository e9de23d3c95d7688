/**
 * Plans uses of memory: what must come before each is ordered already, or is inserted.
 *
 * @module
 */
import { deviceOfLane, kinds, type Part, type Setting, type Via } from "./mod.ts";
import type { Dice } from "./dice.ts";
import { Ground } from "./ground.ts";
import {
  type Access,
  type ArrayHolder,
  type Block,
  type ExportHolder,
  type Holder,
  Holders,
  type Origin,
} from "./model.ts";

/** Fills and reads by holders of memory. */
export class Uses extends Ground {
  protected readonly holders: Holders;
  protected readonly slots: number[] = [];
  #values = 0;

  constructor(setting: Setting) {
    super(setting);
    this.holders = new Holders(this.order);
  }

  protected open(): ArrayHolder[] {
    return this.holders.arrays.filter(({ isClosed }) => !isClosed);
  }

  protected unreleased(): ExportHolder[] {
    return this.holders.exports.filter(({ state }) => state === "out" || state === "taken");
  }

  protected add(block: Block, part: Part, from: Origin | null, home: number | null, isReadonly: boolean): ArrayHolder {
    const array: ArrayHolder = {
      kind: "array",
      id: this.holders.arrays.length,
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
    this.holders.arrays.push(array);
    return array;
  }

  /** The lane where a holder works: mostly where it was ordered, so that nothing but the promise orders it. */
  protected laneOf(holder: Holder, dice: Dice): number {
    if (holder.kind === "loan") return holder.lane;
    const usual = holder.kind === "array" ? holder.home : holder.lane;
    const lanes = this.reaching(holder.block);
    const others = dice.below(4) === 0 ? lanes : [...holder.used].filter((lane) => lanes.includes(lane));
    const isUsual = usual !== null && lanes.includes(usual) && (others.length === 0 || dice.below(3) > 0);
    // A device's legacy default stream always exists, and reaches the device's own memory.
    return isUsual ? usual : dice.of(others) ?? dice.of(lanes) ?? holder.block.device * kinds.length;
  }

  protected fill(holder: Holder, lane: number): void {
    const { block, part } = holder;
    this.begin(holder, lane, [block.written, ...block.reads]);
    const value = ++this.#values % 200 + 1; // never the poison
    this.push({ do: "fill", via: via(holder), lane, value, block: block.id, part });
    this.wrote(holder, lane);
  }

  protected read(holder: Holder, lane: number): void {
    const { block, part } = holder;
    this.begin(holder, lane, [block.written]);
    const slot = this.slots.push(part.rows * part.cols) - 1;
    this.push({ do: "read", via: via(holder), lane, slot, block: block.id, part });
    block.reads.push(this.access(holder, lane));
  }

  protected wrote(holder: Holder, lane: number): void {
    Object.assign(holder.block, { written: this.access(holder, lane), reads: [] });
  }

  protected access(by: Holder, lane: number): Access {
    by.used.add(lane);
    if (by.kind === "export" && by.state === "out") by.state = "taken";
    return { lane, number: this.order.work(lane), by };
  }

  /** Precedes a use: grants the device access, waits for an Arrow array's event, and orders the rest. */
  protected begin(holder: Holder, lane: number, accesses: readonly (Access | null)[]): void {
    this.grant(holder.block, deviceOfLane(lane));
    if (holder.kind === "export" && holder.how === "arrow" && !holder.awaited.has(lane)) {
      holder.awaited.add(lane);
      this.push({ do: "await", export: holder.id, lane });
      this.order.after(lane, holder.ready);
      holder.state = "taken";
    }
    this.require(lane, accesses);
  }

  protected look(): void {
    this.holders.look();
    const released = this.holders.exports.filter(({ isOver, hasSchema }) => isOver && !hasSchema).map(({ id }) => id);
    const streams = this.holders.streams.filter(({ isOver }) => isOver).map(({ id }) => id);
    this.push({ do: "look", live: this.holders.live, released, streams });
  }
}

/** A holder as steps name it. */
export function via({ kind, id }: Holder): Via {
  return { kind, id };
}
