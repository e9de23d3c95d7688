/**
 * Objects that a program creates and must destroy: streams, events, pools and graphs; and memory whose context is gone.
 *
 * @module
 */
import { quoted } from "../layout/mod.ts";
import type { Allocation } from "./known_memory.ts";
import { hex } from "./messages.ts";
import type { CausalityCall, LeakedObject } from "./report.ts";
import { type CallSite, CallSites, framesOf } from "./call_site.ts";

/** Kinds of objects. */
export type ObjectKind = "stream" | "event" | "pool" | "graph" | "executable graph";

interface Created {
  readonly kind: ObjectKind;
  readonly handle: bigint;
  readonly call: string;
  readonly site: CallSite;
  /** The user's name for it. */
  name: string | null;
}

/** How an object was destroyed. */
export interface Destroyed {
  /** In words: `stream 0x51`. */
  readonly what: string;
  /** The call that destroyed it. */
  readonly by: CausalityCall;
}

/** The most destroyed objects that are remembered: beyond this, the oldest are forgotten. */
const maxDestroyed = 4096;

/** Objects by kind and handle: which exist, and which were destroyed. */
export class ObjectLifetimes {
  readonly #made = new Map<ObjectKind, Map<bigint, Created>>();
  readonly #gone = new Map<
    ObjectKind,
    Map<bigint, { readonly call: string; readonly site: CallSite | null; readonly by: CausalityCall | null }>
  >();
  readonly #abandoned: Allocation[] = [];
  readonly #sites = new CallSites();
  /** Objects that their user has closed and others still retain, by handle or address. */
  readonly #closed = new Set<bigint>();

  /** Notes that an object was created. */
  created(kind: ObjectKind, handle: bigint, call: string): void {
    of(this.#made, kind).set(handle, { kind, handle, call, site: this.#sites.of(call, 0, 0), name: null });
    this.reuse(kind, handle);
  }

  /** Notes the user's name for an object. */
  named(kind: ObjectKind, handle: bigint, name: string): void {
    const made = this.#made.get(kind)?.get(handle);
    if (made !== undefined) made.name = name;
  }

  /** Notes that an object was closed by its user, though others still retain it. */
  closedByUser(handle: bigint): void {
    this.#closed.add(handle);
  }

  // law checker/ObjectLifetimes.forgetClosed: checker/lifetime
  /** Forgets that memory was closed by its user: it was freed, or its address was allocated anew. */
  forgetClosed(address: number): void {
    if (this.#closed.size > 0) this.#closed.delete(BigInt(address));
  }

  /** Notes that an object was destroyed by a call. */
  destroyed(kind: ObjectKind, handle: bigint, call: string): void {
    this.#closed.delete(handle);
    of(this.#made, kind).delete(handle);
    this.#remember(kind, handle, { call, site: this.#sites.of(call, 0, 0), by: null });
  }

  /** Notes that an object was lost with its context: it was not destroyed, so it still counts as a leak. */
  destroyedWithContext(kind: ObjectKind, handle: bigint, by: CausalityCall): void {
    this.#remember(kind, handle, { call: by.call, site: null, by });
  }

  /** Notes that a handle is in use again, perhaps by another library. */
  reuse(kind: ObjectKind, handle: bigint): void {
    this.#gone.get(kind)?.delete(handle);
  }

  /** How an object was destroyed, or null if it was not. */
  destruction(kind: ObjectKind, handle: bigint): Destroyed | null {
    const found = this.#gone.get(kind)?.get(handle);
    if (found === undefined) return null;
    const what = `${kind} ${hex(handle)}`;
    const { call, site, by } = found;
    const destroyed = { does: "destroys", stream: "host", address: null, bytes: 0, seq: 0 } as const;
    return { what, by: by ?? { ...destroyed, call, stack: site === null ? [] : framesOf(site) } };
  }

  /** Notes that memory was lost with its context without having been freed. */
  abandon(allocation: Allocation): void {
    this.#abandoned.push(allocation);
  }

  // law checker/ObjectLifetimes.leaks: checker/lifetime
  /** The leaked objects, memory included. */
  leaks(memory: readonly Allocation[]): LeakedObject[] {
    const isLeaked = (handle: bigint) => !this.#closed.has(handle);
    const made = [...this.#made.values()].flatMap((kind) => [...kind.values()]).filter(({ handle }) =>
      isLeaked(handle)
    );
    const objects = made.map(({ kind, handle, call, site, name }) => ({
      what: `${kind}${quoted(name)}`,
      handle,
      made: { does: "creates", call, stream: "host", address: null, bytes: 0, stack: framesOf(site), seq: 0 },
    } as const));
    const unfreed = [...memory, ...this.#abandoned].filter(({ start }) => isLeaked(BigInt(start)));
    const blocks = unfreed.map(({ start, end, kind, call, site, name }) => ({
      what: `${end - start} bytes of ${kind} memory${quoted(name)}`,
      handle: BigInt(start),
      made: {
        ...{ does: "allocates", call, stream: "host", address: BigInt(start), bytes: end - start } as const,
        stack: framesOf(site),
        seq: 0,
      },
    }));
    return [...blocks, ...objects];
  }

  #remember(
    kind: ObjectKind,
    handle: bigint,
    how: { readonly call: string; readonly site: CallSite | null; readonly by: CausalityCall | null },
  ): void {
    const gone = of(this.#gone, kind);
    gone.delete(handle);
    gone.set(handle, how);
    if (gone.size <= maxDestroyed) return;
    const [oldest] = gone.keys();
    if (oldest !== undefined) gone.delete(oldest);
  }
}

function of<T>(maps: Map<ObjectKind, Map<bigint, T>>, kind: ObjectKind): Map<bigint, T> {
  return maps.getOrInsertComputed(kind, () => new Map());
}
