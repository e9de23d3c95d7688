/**
 * Plans Arrow streams of device arrays: arrays that a consumer requests one by one, or not at all.
 *
 * @module
 */
import { join } from "../stream_lanes.ts";
import type { ReleasedBy } from "./mod.ts";
import type { Dice } from "./dice.ts";
import { Exchanges } from "./exchanges.ts";
import { type ExportHolder, isForeignArray, type StreamHolder } from "./model.ts";

/** Streams, and everything else that is handed over. */
export class ArrowStreams extends Exchanges {
  /** Streams that their consumers have not released. */
  protected openStreams(): StreamHolder[] {
    return this.holders.streams.filter(({ isReleased }) => !isReleased);
  }

  protected exportStream(dice: Dice): void {
    const first = dice.of(this.open().filter((one) => one.home !== null && !isForeignArray(one)));
    if (first === undefined) return;
    const others = this.beside(first);
    const arrays = [first, ...others.slice(0, dice.below(3))];
    const items = arrays.map((array) => {
      const ready: number[] = [];
      if (array.home !== null) join(ready, this.order.held(array.home));
      const item = this.addExport(array, this.partOf(array, dice, true), "arrow", null, ready, true);
      return Object.assign(item, { state: "queued", hasSchema: false } satisfies Partial<ExportHolder>);
    });
    const id = this.holders.streams.length;
    this.holders.streams.push({ id, items, isTaken: false, isReleased: false, isOver: false });
    const parts = items.map(({ id, of, part }) => ({ export: id, array: of.id, part }));
    this.push({ do: "stream", stream: id, items: parts });
  }

  protected next(stream: StreamHolder | undefined): void {
    const item = stream?.items.find(({ state }) => state === "queued");
    if (stream === undefined || item === undefined) return;
    stream.isTaken = true;
    item.state = "taken";
    this.push({ do: "next", stream: stream.id, export: item.id });
  }

  protected releaseStream(stream: StreamHolder | undefined, dice: Dice): void {
    if (stream === undefined) return;
    const { id, isTaken } = stream;
    const by = dice.below(64) === 0 ? "thread" : dice.of<ReleasedBy>(isTaken ? ["call"] : ["close", "call"]) ?? "call";
    stream.isReleased = true;
    if (by !== "close") stream.isTaken = true;
    this.push({ do: "release stream", stream: id, by });
  }
}
