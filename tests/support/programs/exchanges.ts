/**
 * Plans how arrays change hands: leases, descriptions, exports, imports, releases, and their ends.
 *
 * @module
 */
import { join } from "../stream_lanes.ts";
import {
  type Convention,
  deviceOfLane,
  type Given,
  isDefault,
  isDense,
  kinds,
  type Naming,
  type Part,
  type Protocol,
  type ReleasedBy,
  type Via,
} from "./mod.ts";
import type { Dice } from "./dice.ts";
import {
  type ArrayHolder,
  type Block,
  descendsFrom,
  type ExportHolder,
  isForeignArray,
  isPromised,
  type LoanHolder,
} from "./model.ts";
import { Uses, via } from "./uses.ts";

/** Everything about who holds memory. */
export class Exchanges extends Uses {
  protected lend(dice: Dice): void {
    const array = dice.of(this.open().filter(({ home }) => home !== null));
    if (array === undefined || array.home === null) return;
    const { block, home } = array;
    const isLease = !isForeignArray(array) && (!isDescribable(array) || dice.below(2) === 0);
    const part = this.partOf(array, dice, false);
    // A guest may work on the very stream that the description names.
    const lane = !isLease && dice.below(4) === 0 && !this.destroyed.has(home) ? home : dice.of(this.reaching(block));
    if (lane === undefined) return;
    const id = this.holders.loans.length;
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
    this.holders.loans.push(loan);
    this.order.after(lane, this.order.held(home));
    this.push({ do: isLease ? "lend" : "describe", loan: id, array: array.id, part, lane });
    if (isLease) array.pins++;
    else array.guests++;
  }

  protected giveBack(loan: LoanHolder | undefined): void {
    if (loan === undefined) return;
    this.push({ do: "return", loan: loan.id });
    this.holders.giveBack(loan);
  }

  protected partOf({ part }: ArrayHolder, dice: Dice, mustBeDense: boolean): Part {
    const { row, rows, col, cols } = part;
    const parts: Part[] = [part, { ...part, rows: 1 }];
    if (rows > 1) {
      const half = Math.floor(rows / 2);
      parts.push({ ...part, rows: half }, { ...part, row: row + half, rows: rows - half });
    }
    if (cols > 1) parts.push({ ...part, cols: 1 }, { ...part, col: col + 1, cols: cols - 1 });
    return dice.of(parts.filter((one) => !mustBeDense || isDense(one))) ?? part;
  }

  protected export(dice: Dice): void {
    const array = dice.of(this.open().filter((one) => one.home !== null && !isForeignArray(one)));
    if (array === undefined || array.home === null) return;
    const { block, isReadonly, home } = array;
    const how = this.conventionFor(array, dice);
    const part = this.partOf(array, dice, how === "arrow");
    const { lane, naming } = how === "arrow" ? { lane: null, naming: "default" as const } : this.named(block, dice);
    const ready = how === "arrow" ? [...this.order.held(home)] : [];
    const one = this.addExport(array, part, how, lane, ready, isReadonly || how === "arrow");
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
    const other = how === "arrow" && dice.below(3) === 0 ? dice.of(this.beside(array)) : undefined;
    if (other === undefined) this.push(step);
    else {
      const twin = this.addTwin(one, other, dice);
      this.push({ ...step, twin: { export: twin.id, array: other.id, part: twin.part } });
    }
    if (lane !== null) this.order.after(lane, this.order.held(home));
  }

  /** Arrays that can be exported together with one: their Arrow device is the same. */
  protected beside(array: ArrayHolder): ArrayHolder[] {
    const place = placeOf(array);
    return this.open().filter((one) =>
      one.block !== array.block && one.home !== null && !isForeignArray(one) && place !== null && placeOf(one) === place
    );
  }

  protected addTwin(one: ExportHolder, other: ArrayHolder, dice: Dice): ExportHolder {
    if (other.home !== null) join(one.ready, this.order.held(other.home));
    const twin = this.addExport(other, this.partOf(other, dice, true), "arrow", null, one.ready, true, one);
    one.twin = twin;
    return twin;
  }

  protected conventionFor({ block, isReadonly }: ArrayHolder, dice: Dice): Convention {
    if (block.resource === "pinned") return "arrow"; // to DLPack it is host memory
    return dice.of<Convention>(isReadonly ? ["versioned", "arrow"] : ["versioned", "arrow", "legacy"]) ?? "versioned";
  }

  /** How a consumer names its stream. A default stream of another device can be named only as an object. */
  protected named(block: Block, dice: Dice): { lane: number | null; naming: Naming } {
    const lane = dice.below(5) === 0 ? null : dice.of(this.reaching(block)) ?? null;
    if (lane === null) return { lane, naming: dice.below(2) === 0 ? "object" : "handle" };
    const isAway = isDefault(lane) && deviceOfLane(lane) !== block.device;
    const names: Naming[] = isAway ? ["object"] : ["object", "handle"];
    if (lane === block.device * kinds.length) names.push("default");
    return { lane, naming: dice.of(names) ?? "object" };
  }

  protected addExport(
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
      id: this.holders.exports.length,
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
    this.holders.exports.push(one);
    return one;
  }

  protected import(dice: Dice): void {
    const exports = this.holders.exports.filter(({ state, hasSchema, how, twin }) =>
      state === "out" && (how !== "arrow" || (hasSchema && twin === null))
    );
    const from = dice.of<ExportHolder | ArrayHolder>([...exports, ...this.open()]);
    if (from === undefined) return;
    if (from.kind === "export") this.importExport(from, dice);
    else if (from.home !== null) this.importFrom(from, from.home, dice);
  }

  /** Where an importer declares that it will use the array: a lane of the memory's device, or none. */
  protected given({ device }: Block, dice: Dice): { given: Given; lane: number | null } {
    const given = dice.of<Given>(["stream", "stream", "stream", "device", "null"]) ?? "stream";
    const lanes = this.openLanes().filter((lane) => deviceOfLane(lane) === device);
    const lane = given === "stream" ? dice.of(lanes) ?? null : null;
    return { given: given === "stream" && lane === null ? "null" : given, lane };
  }

  protected importExport(one: ExportHolder, dice: Dice): void {
    const { block, part, how } = one;
    const { given, lane } = this.given(block, dice);
    const array = this.add(block, part, { kind: "export", holder: one }, lane, one.isReadonly);
    this.pushImport(array, via(one), part, how === "arrow" ? "arrow" : "dlpack", given, lane);
    this.imported(one, given, lane);
  }

  protected importFrom(of: ArrayHolder, home: number, dice: Dice): void {
    const { block, isReadonly } = of;
    const protocols: Protocol[] = block.resource === "pinned" ? ["arrow"] : ["dlpack", "arrow"];
    if (isDescribable(of)) protocols.push("interface");
    const protocol = dice.of(protocols);
    if (protocol === undefined) return;
    const part = this.partOf(of, dice, protocol === "arrow");
    const { given, lane } = this.given(block, dice);
    if (protocol === "interface") {
      const producer = given === "null" ? null : home;
      const array = this.add(
        block,
        part,
        { kind: "interface", holder: of, producer },
        given === "device" ? home : lane,
        isReadonly,
      );
      of.guests++;
      this.pushImport(array, via(of), part, protocol, given, lane);
      if (lane !== null) this.order.after(lane, this.order.held(home));
      return;
    }
    const isArrow = protocol === "arrow";
    const ready = this.order.held(home);
    const legacy = block.device * kinds.length;
    const asked = given === "device" ? legacy : lane;
    const one = this.addExport(of, part, isArrow ? "arrow" : "versioned", asked, ready, isReadonly || isArrow);
    if (!isArrow && asked !== null) this.order.after(asked, ready);
    const array = this.add(block, part, { kind: "export", holder: one }, lane, one.isReadonly);
    this.pushImport(array, via(of), part, protocol, given, lane);
    this.imported(one, given, lane);
  }

  protected pushImport(
    { id, isReadonly, block: { device } }: ArrayHolder,
    from: Via,
    part: Part,
    how: Protocol,
    given: Given,
    lane: number | null,
  ): void {
    this.push({ do: "import", array: id, from, part, how, given, device, lane, isReadonly });
  }

  protected imported(one: ExportHolder, given: Given, lane: number | null): void {
    one.state = "imported";
    if (one.how !== "arrow") return;
    one.hasSchema = false;
    if (lane !== null) this.order.after(lane, one.ready);
    else if (given === "device") this.order.hostAfter(one.ready);
  }

  protected release(one: ExportHolder | undefined, dice: Dice): void {
    if (one === undefined) return;
    const id = one.id;
    if (one.hasSchema && dice.below(4) === 0 && one.state === "taken") {
      one.hasSchema = false;
      this.push({ do: "release", export: id, by: "call", what: "schema" });
      return;
    }
    const { twin } = one;
    const isTaken = one.state === "taken" || twin?.state === "taken" || twin?.state === "released";
    const isLeft = twin !== null && twin.state !== "released" && dice.below(2) === 0;
    const isByThread = dice.below(64) === 0; // a thread takes longer than the rest of most programs
    const by = isByThread ? "thread" : dice.of<ReleasedBy>(isTaken || isLeft ? ["call"] : ["close", "call"]) ?? "call";
    this.push({ do: "release", export: id, by, what: isLeft ? "all but twin" : "all" });
    one.hasSchema = false;
    this.holders.release(one, this.holders.enqueued(one));
    if (twin === null || twin.state === "released") return;
    twin.hasSchema = false;
    if (isLeft) twin.state = "taken";
    else this.holders.release(twin, this.holders.enqueued(twin));
  }

  protected close(array: ArrayHolder | undefined): void {
    if (array === undefined) return;
    this.requireBeforeClose(array);
    this.push({ do: "close", array: array.id });
    this.holders.close(array);
  }

  /**
   * What a user must have ordered before closing: every access that no promise of a consumer, or of an import, covers.
   */
  protected requireBeforeClose(array: ArrayHolder): void {
    const { block, from, home } = array;
    const all = [block.written, ...block.reads].filter((one) => one !== null);
    if (from === null) {
      if (home !== null) this.require(home, all.filter(({ by }) => !isPromised(by, array)));
      return;
    }
    const isFromForeign = from.kind === "export" && isForeignArray(from.holder.of);
    if (from.kind === "export" && !isFromForeign) return; // the release covers all that was enqueued
    const own = all.filter(({ by }) => descendsFrom(by, array) && !isPromised(by, array));
    const before = home ?? (from.kind === "interface" ? from.holder.home : null);
    if (before !== null) return this.require(before, own);
    for (const { lane, number } of own) {
      if (this.order.isHostAfter(lane, number)) continue;
      if (this.destroyed.has(lane)) this.synchronizeDevice(deviceOfLane(lane));
      else this.synchronize(lane);
    }
  }
}

/** The device that Arrow reports for an array; null if that depends on how it was imported. */
function placeOf({ block: { device, resource }, home, from }: ArrayHolder): string | null {
  if (resource === "managed") return from === null ? `managed ${device}` : null;
  return resource === "pinned" ? `pinned ${home === null ? device : deviceOfLane(home)}` : `device ${device}`;
}

/** Whether the CUDA Array Interface can express where an array is, and on which stream of that device it is ordered. */
function isDescribable({ block, home }: ArrayHolder): boolean {
  return block.resource !== "pinned" && (home === null || deviceOfLane(home) === block.device);
}
