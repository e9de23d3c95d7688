/**
 * Work that is recorded instead of run: stream captures, and the graphs that they produce.
 *
 * @module
 */
import type { CU_GRAPH_NODE_TYPE } from "../../bindings/cuda_types.ts";
import type { GraphMemory } from "./graph_memory.ts";
import type { Context, Stream } from "./objects.ts";

/** What a node does: `CU_GRAPH_NODE_TYPE`. */
export type NodeKind = (typeof CU_GRAPH_NODE_TYPE)[keyof typeof CU_GRAPH_NODE_TYPE];

/** A node of a graph: a piece of work. */
export interface GraphNode {
  readonly handle: bigint;
  readonly kind: NodeKind;
  readonly context: Context;
  readonly dependencies: readonly GraphNode[];
  readonly run: () => void;
  /** Memory that the node allocates or frees; null if it does neither. */
  readonly memory: GraphMemory | null;
}

/** The nodes that the next captured node depends on. */
export type CapturedPoint = readonly GraphNode[];

/** A graph. */
export interface Graph {
  readonly handle: bigint;
  readonly nodes: GraphNode[];
}

/** An executable graph. */
export interface GraphExec {
  readonly handle: bigint;
  /** The graph that it was instantiated from, or last updated to. */
  source: Graph;
  /** Whether a launch first frees what the previous one left allocated: AUTO_FREE_ON_LAUNCH. */
  readonly freesOnLaunch: boolean;
  /** The nodes of `source` at that time. */
  nodes: readonly GraphNode[];
}

/** A capture: begun on one stream, and joined by other streams that wait for its events. */
export interface Capture {
  readonly id: bigint;
  readonly mode: number;
  readonly origin: Stream;
  readonly graph: Graph;
  /** Participating streams. */
  readonly streams: Set<Stream>;
  /** Whether a call was made that cannot be captured. */
  invalidated: boolean;
  /** Whether it has ended: by cuStreamEndCapture(), or with its context. */
  ended: boolean;
}

/** Whether all nodes of a point precede another point. */
export function isJoined(point: CapturedPoint, into: CapturedPoint): boolean {
  const reached = new Set<GraphNode>();
  const open = [...into];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (reached.has(node)) continue;
    reached.add(node);
    open.push(...node.dependencies);
  }
  return point.every((node) => reached.has(node));
}

/** The nodes that no other of the nodes depends on. */
export function leaves(nodes: readonly GraphNode[]): GraphNode[] {
  const inner = new Set(nodes.flatMap(({ dependencies }) => dependencies));
  return nodes.filter((node) => !inner.has(node));
}
