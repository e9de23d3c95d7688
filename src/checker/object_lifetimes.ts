/**
 * What a program makes and has to destroy: streams, events, pools and graphs; and memory whose context is gone.
 *
 * @module
 */
import type { Known } from "./known_memory.ts";
import type { CausalityCall } from "./report.ts";
import type { LeakedObject } from "./report.ts";
import { framesOf, type Site, Sites } from "./call_site.ts";

/** A kind of thing. */
export type ThingKind = "stream" | "event" | "pool" | "graph" | "executable graph";

interface Made {
  readonly kind: ThingKind;
  readonly handle: bigint;
  readonly call: string;
  readonly site: Site;
}

/** Something that is gone. */
export interface Gone {
  /** In words: `stream 0x51`. */
  readonly what: string;
  /** What has destroyed it. */
  readonly by: CausalityCall;
}

/** More things that are gone are not remembered: the oldest are forgotten. */
const mostGone = 4096;

/** Things by kind and handle. */
export class Things {
  readonly #made = new Map<ThingKind, Map<bigint, Made>>();
  readonly #gone = new Map<
    ThingKind,
    Map<bigint, { readonly call: string; readonly site: Site | null; readonly by: CausalityCall | null }>
  >();
  readonly #abandoned: Known[] = [];
  readonly #sites = new Sites();
  /** What was closed by its user and lives on for somebody else, by handle or address. */
  readonly #closed = new Set<bigint>();

  /** Something was made. */
  made(kind: ThingKind, handle: bigint, call: string): void {
    of(this.#made, kind).set(handle, { kind, handle, call, site: this.#sites.of(call, 0, 0) });
    this.revive(kind, handle);
  }

  /** Something was closed by its user, though somebody else still needs it. */
  letGo(handle: bigint): void {
    this.#closed.add(handle);
  }

  /** Memory begins or ends its life. */
  forgetMemory(address: number): void {
    if (this.#closed.size > 0) this.#closed.delete(BigInt(address));
  }

  /** Something was destroyed by a call. */
  destroyed(kind: ThingKind, handle: bigint, call: string): void {
    this.#closed.delete(handle);
    of(this.#made, kind).delete(handle);
    this.#remember(kind, handle, { call, site: this.#sites.of(call, 0, 0), by: null });
  }

  /** Something went down with its context: it was not destroyed, so it counts as left, too. */
  lost(kind: ThingKind, handle: bigint, by: CausalityCall): void {
    this.#remember(kind, handle, { call: by.call, site: null, by });
  }

  /** A handle is used again, by somebody else. */
  revive(kind: ThingKind, handle: bigint): void {
    this.#gone.get(kind)?.delete(handle);
  }

  /** How something went, if it is gone. */
  gone(kind: ThingKind, handle: bigint): Gone | null {
    const found = this.#gone.get(kind)?.get(handle);
    if (found === undefined) return null;
    const what = `${kind} 0x${handle.toString(16)}`;
    const { call, site, by } = found;
    const destroyed = { does: "destroys", lane: "host", address: null, bytes: 0, seq: 0 } as const;
    return { what, by: by ?? { ...destroyed, call, stack: site === null ? [] : framesOf(site) } };
  }

  /** Memory is gone with its context, and nobody has freed it. */
  abandon(known: Known): void {
    this.#abandoned.push(known);
  }

  /** What is left, memory included. */
  left(memory: readonly Known[]): LeakedObject[] {
    const isLeft = (handle: bigint) => !this.#closed.has(handle);
    const made = [...this.#made.values()].flatMap((kind) => [...kind.values()]).filter(({ handle }) => isLeft(handle));
    const things = made.map(({ kind, handle, call, site }) => ({
      what: kind,
      handle,
      made: { does: "creates", call, lane: "host", address: null, bytes: 0, stack: framesOf(site), seq: 0 },
    } as const));
    const there = [...memory, ...this.#abandoned].filter(({ start }) => isLeft(BigInt(start)));
    const blocks = there.map(({ start, end, kind, call, site }) => ({
      what: `${end - start} bytes of ${kind} memory`,
      handle: BigInt(start),
      made: {
        ...{ does: "allocates", call, lane: "host", address: BigInt(start), bytes: end - start } as const,
        stack: framesOf(site),
        seq: 0,
      },
    }));
    return [...blocks, ...things];
  }

  #remember(
    kind: ThingKind,
    handle: bigint,
    how: { readonly call: string; readonly site: Site | null; readonly by: CausalityCall | null },
  ): void {
    const gone = of(this.#gone, kind);
    gone.delete(handle);
    gone.set(handle, how);
    if (gone.size <= mostGone) return;
    const [oldest] = gone.keys();
    if (oldest !== undefined) gone.delete(oldest);
  }
}

function of<T>(maps: Map<ThingKind, Map<bigint, T>>, kind: ThingKind): Map<bigint, T> {
  let map = maps.get(kind);
  if (map === undefined) maps.set(kind, map = new Map());
  return map;
}
