/**
 * Captured work: it touches memory when its graph is launched, in the order of the graph.
 *
 * @module
 */
import type { AccessKind } from "./access_history.ts";
import type { Clock, StreamClock } from "./vector_clocks.ts";
import type { CallSite } from "./call_site.ts";

/** Bytes that work touches. */
export interface Touch {
  readonly start: number;
  /** The address after the last byte. */
  readonly end: number;
  readonly kind: AccessKind;
  /** Whether it changes them; null for a kernel if unknown. */
  readonly writes: boolean | null;
}

/** Captured work. */
export interface Node {
  /** The stream that it was captured on; the graph may be launched on another. */
  readonly stream: StreamClock;
  readonly call: string;
  readonly site: CallSite;
  readonly touches: readonly Touch[];
  readonly after: readonly Node[];
}

/** A capture that has not ended. */
export interface Capture {
  readonly nodes: Node[];
  /** Whether the program has changed dependencies in a way that is not tracked. */
  opaque: boolean;
}

/** The nodes that the next captured node of a stream depends on. */
export interface CapturedPoint {
  readonly of: Capture;
  readonly after: readonly Node[];
}

/** A graph, or an executable graph. */
export interface CheckedGraph {
  readonly nodes: readonly Node[];
  /** Whether some of its edges are unknown. */
  readonly opaque: boolean;
  /** Whether it has no nodes at all, not even untracked ones: launching it enqueues nothing and orders nothing. */
  readonly isEmpty: boolean;
  /** The last launch and everything before it: the next launch waits for it. */
  last: Clock;
  /** Whether its nodes have been compared with each other. */
  examined: boolean;
}

/** The most nodes that are compared with each other. */
const maxNodes = 2048;

// law checker/unorderedNodes: checker/pending_call
/**
 * Finds two nodes of a graph that touch the same bytes, one of them changing them, with no path between them.
 *
 * @param whole whether a kernel counts as touching all memory passed to it; if not, it certainly shares bytes only with
 *   work, other than a kernel, that touches all of that memory
 */
export function unorderedNodes(
  { nodes, opaque }: CheckedGraph,
  whole: boolean,
): { readonly first: Node; readonly second: Node; readonly one: Touch; readonly other: Touch } | null {
  if (opaque || nodes.length > maxNodes) return null;
  const ancestors = new Map<Node, Set<Node>>();
  const earlier: Node[] = [];
  for (const second of nodes) {
    const before = new Set(second.after.flatMap((node) => [node, ...ancestors.get(node) ?? []]));
    ancestors.set(second, before);
    for (const first of earlier) {
      if (before.has(first)) continue;
      for (const one of first.touches) {
        for (const other of second.touches) {
          if (doCollide(one, other, whole)) return { first, second, one, other };
        }
      }
    }
    earlier.push(second);
  }
  return null;
}

// law checker/overlap: checker/copies
/** Finds bytes that a copy both reads and writes, unless each row is copied onto itself. */
export function overlap(touches: readonly Touch[]): { readonly read: Touch; readonly write: Touch } | null {
  const side = (writes: boolean) => touches.filter((one) => one.writes === writes);
  const [reads, writes] = [side(false), side(true)];
  if (reads.every(({ start, end }, i) => start === writes[i]?.start && end === writes[i].end)) return null;
  const byStart = (a: Touch, b: Touch) => a.start - b.start;
  writes.sort(byStart);
  let at = 0;
  for (const read of reads.sort(byStart)) {
    for (let one = writes[at]; one !== undefined && one.end <= read.start; one = writes[at]) at++;
    const write = writes[at];
    if (write !== undefined && write.start < read.end) return { read, write };
  }
  return null;
}

function doCollide(one: Touch, other: Touch, whole: boolean): boolean {
  if (one.start >= other.end || other.start >= one.end) return false;
  if (whole) return one.writes !== false || other.writes !== false;
  return (one.writes === true || other.writes === true) && isAmong(one, other) && isAmong(other, one);
}

/** Whether, if a piece of work is a kernel, the bytes that it touches are certainly among those of another piece. */
function isAmong({ kind, start, end }: Touch, other: Touch): boolean {
  return kind !== "kernel" || (other.kind !== "kernel" && other.start <= start && end <= other.end);
}
