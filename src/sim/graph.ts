/**
 * Work that is recorded instead of run: captures of streams, and the graphs that they become.
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
  /** What it allocates or frees; null if it does neither. */
  readonly memory: GraphMemory | null;
}

/** The nodes that the next captured node depends on. */
export type CapturedPoint = readonly GraphNode[];

/** A graph. */
export interface Graph {
  readonly handle: bigint;
  readonly nodes: GraphNode[];
}

/** A graph that can be launched. */
export interface GraphExec {
  readonly handle: bigint;
  /** The graph that it was made of, or was last updated to. */
  source: Graph;
  /** Whether a launch first frees what the one before it has left allocated: AUTO_FREE_ON_LAUNCH. */
  readonly freesOnLaunch: boolean;
  /** Those of the graph that it was made of, or was last updated to. */
  nodes: readonly GraphNode[];
}

/** A capture: begun on one stream, joined by others that wait for its events. */
export interface Capture {
  readonly id: bigint;
  readonly mode: number;
  readonly origin: Stream;
  readonly graph: Graph;
  /** Streams that take part. */
  readonly streams: Set<Stream>;
  /** Whether something happened that cannot be captured. */
  invalidated: boolean;
  /** Whether cuStreamEndCapture() has been called. */
  ended: boolean;
}

/** Whether everything that a point stands for comes before another point. */
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

/** The nodes that no other of them depends on. */
export function leaves(nodes: readonly GraphNode[]): GraphNode[] {
  const inner = new Set(nodes.flatMap(({ dependencies }) => dependencies));
  return nodes.filter((node) => !inner.has(node));
}
