/**
 * The basis of a program while it is planned: lanes, pools, and the order of work.
 *
 * @module
 */
import { type How, Order } from "../stream_lanes.ts";
import { deviceOfLane, isForeign, kinds, type Setting, type Step } from "./mod.ts";
import type { Access, Block } from "./model.ts";

const hows: readonly How[] = ["new event", "recorded again", "context"];

/** Lanes and pools, and the steps that order, wait and close. */
export class Ground {
  protected readonly setting: Setting;
  protected readonly lanes: readonly number[];
  protected readonly order: Order;
  protected readonly steps: Step[] = [];
  /** Lanes that occur in a step: no other is ever created. */
  readonly #mentioned = new Set<number>();
  protected readonly destroyed = new Set<number>();
  protected readonly closedPools = new Set<number>();
  /** Which devices may use a pool, by owner and by whether it is our own. */
  protected readonly peers = new Map<string, number[]>();

  constructor(setting: Setting) {
    this.setting = setting;
    this.lanes = Array.from({ length: setting.devices * kinds.length }, (_, lane) => lane);
    this.order = new Order(this.lanes.length, kinds);
  }

  protected push(step: Step): void {
    this.steps.push(step);
    if ("lane" in step && step.lane !== null) this.#mentioned.add(step.lane);
    if (step.do === "order") this.#mentioned.add(step.before).add(step.after);
  }

  /** Whether a lane has been created and not destroyed. */
  protected isThere(lane: number): boolean {
    return this.#mentioned.has(lane) && !this.destroyed.has(lane);
  }

  protected openLanes(): number[] {
    return this.lanes.filter((lane) => !this.destroyed.has(lane));
  }

  /** Devices whose own pool has been used and not closed. */
  protected openPools(): number[] {
    const devices = new Set(
      this.steps.flatMap((step) => step.do === "allocate" && step.resource === "own" ? [step.device] : []),
    );
    return [...devices].filter((one) => !this.closedPools.has(one));
  }

  /** Lanes that may use a block. */
  protected reaching({ device, resource }: Block): number[] {
    const isEverywhere = this.setting.hasPeers || resource === "pinned" || resource === "managed";
    const isFixed = resource === "own" && this.closedPools.has(device); // a closed pool grants no further access
    const peers = this.peers.get(`true ${device}`) ?? [];
    const isLetIn = (peer: number) => peer === device || (isEverywhere && (!isFixed || peers.includes(peer)));
    return this.openLanes().filter((lane) => isLetIn(deviceOfLane(lane)));
  }

  /** Lanes that may be a home: no other library destroys them. */
  protected homes(block: Block): number[] {
    return this.reaching(block).filter((lane) => !isForeign(lane));
  }

  protected grant({ device, resource }: Block, peer: number): void {
    if (peer === device || resource === "synchronous" || resource === "pinned" || resource === "managed") return;
    const isOwnPool = resource === "own";
    const key = `${isOwnPool} ${device}`;
    const peers = this.peers.get(key) ?? [];
    if (peers.includes(peer)) return;
    this.peers.set(key, [...peers, peer]);
    this.push({ do: "peers", owner: device, isOwnPool, peers: [...peers, peer] });
  }

  protected require(lane: number, accesses: readonly (Access | null)[]): void {
    for (const access of accesses) {
      if (access === null || (this.order.upcoming(lane)[access.lane] ?? 0) >= access.number) continue;
      this.orderAfter(lane, access.lane);
    }
  }

  protected orderAfter(after: number, before: number): void {
    const isGone = this.destroyed.has(before); // only its context still covers it
    if (isGone && this.setting.isOld) return this.synchronizeDevice(deviceOfLane(before));
    const chosen = hows[this.steps.length % hows.length] ?? "new event";
    const how = isGone ? "context" : this.setting.isOld && chosen === "context" ? "new event" : chosen;
    this.order.wait(after, before, how);
    this.push({ do: "order", before, after, how });
  }

  protected synchronize(lane: number | undefined): void {
    if (lane === undefined) return;
    this.push({ do: "synchronize", lane });
    this.order.synchronize(lane);
  }

  protected synchronizeAll(): void {
    for (let device = 0; device < this.setting.devices; device++) this.synchronizeDevice(device);
  }

  protected synchronizeDevice(device: number): void {
    this.push({ do: "synchronize device", device });
    for (const lane of this.lanes) {
      if (deviceOfLane(lane) === device) this.order.hostAfter(this.order.held(lane));
    }
  }

  protected destroyLane(lane: number): void {
    this.destroyed.add(lane);
    this.push({ do: "destroy", lane });
  }

  protected closePool(device: number): void {
    this.closedPools.add(device);
    this.push({ do: "close pool", device });
  }
}
