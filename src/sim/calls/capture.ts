/**
 * Captures and graphs.
 *
 * @module
 */
import {
  CU_GRAPH_DEBUG_DOT_FLAGS,
  CU_GRAPH_EXEC_UPDATE,
  CU_GRAPH_MEM_ATTR,
  CU_GRAPH_NODE_TYPE,
  CU_STREAM_CAPTURE_MODE,
  CU_STREAM_CAPTURE_STATUS,
  CUDA_GRAPH_INSTANTIATE_FLAG,
  CUresult,
} from "../../../bindings/cuda_types.ts";
import { readField, writeTextFile } from "../../ffi/mod.ts";
import { type CallTable, checkConstant, refuse, unsimulated } from "../call.ts";
import { type Capture, type Graph, type GraphExec, type GraphNode, isJoined, leaves } from "../graph.ts";
import { commit, hasMemory, prepareLaunch, releaseUnused } from "../graph_memory.ts";
import type { Simulator } from "../simulator.ts";
import { nativeView, readInt, readWord, writeInt, writeWord } from "../out_parameters.ts";
import type { Stream } from "../objects.ts";
import type { Task } from "../scheduler.ts";

/** The driver of an H200 accepts one more thread capture mode than the header names. */
const maxMode = 3;

// law sim/captureCalls: sim/graph_memory
/** The calls for captures. */
export function captureCalls(simulator: Simulator): CallTable<"capture"> {
  return {
    cuStreamBeginCapture_v2(handle, mode) {
      const stream = simulator.stream(handle);
      checkConstant(mode, CU_STREAM_CAPTURE_MODE);
      if (stream === stream.context.legacy) throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
      if (stream.capture !== null) throw refuse(CUresult.CUDA_ERROR_ILLEGAL_STATE);
      const graph: Graph = { handle: simulator.newHandle(), nodes: [] };
      const capture: Capture = {
        id: simulator.newId(),
        mode,
        origin: stream,
        graph,
        streams: new Set([stream]),
        invalidated: false,
        ended: false,
      };
      simulator.captures.add(capture);
      stream.capture = { of: capture, point: [] };
    },
    cuStreamEndCapture(handle, out) {
      const stream = simulator.stream(handle);
      if (stream.capture === null) throw refuse(CUresult.CUDA_ERROR_ILLEGAL_STATE);
      const { of, point } = stream.capture;
      if (of.origin !== stream) {
        of.invalidated = true;
        throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
      }
      const joined = [...of.streams].every(({ capture }) => capture?.of !== of || isJoined(capture.point, point));
      simulator.endCapture(of);
      writeWord(out, 0n);
      if (of.invalidated || !joined) {
        releaseUnused(simulator);
        const { CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CUDA_ERROR_STREAM_CAPTURE_UNJOINED } = CUresult;
        throw refuse(of.invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
      }
      simulator.graphs.set(of.graph.handle, of.graph);
      for (const node of of.graph.nodes) simulator.graphNodes.set(node.handle, node);
      writeWord(out, of.graph.handle);
    },
    cuStreamIsCapturing(handle, out) {
      const stream = simulator.stream(handle);
      simulator.checkImplicit(stream);
      writeInt(out, status(stream));
    },
    cuStreamGetCaptureInfo_v2(handle, statusOut, idOut, graphOut, dependenciesOut, countOut) {
      const stream = simulator.stream(handle);
      if (dependenciesOut !== 0n) throw unsimulated("the list of dependencies");
      simulator.checkImplicit(stream);
      writeInt(statusOut, status(stream));
      if (stream.capture === null) return;
      const { of, point } = stream.capture;
      if (idOut !== 0n) writeWord(idOut, of.id);
      if (graphOut !== 0n) writeWord(graphOut, of.graph.handle);
      if (countOut !== 0n) writeWord(countOut, BigInt(point.length));
    },
    cuThreadExchangeStreamCaptureMode(argument) {
      const inout = BigInt(argument);
      const mode = readInt(inout);
      if (mode < 0 || mode > maxMode) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      writeInt(inout, simulator.captureMode);
      simulator.captureMode = mode;
    },
  };
}

function status({ capture }: Stream): number {
  if (capture === null) return CU_STREAM_CAPTURE_STATUS.NONE;
  return capture.of.invalidated ? CU_STREAM_CAPTURE_STATUS.INVALIDATED : CU_STREAM_CAPTURE_STATUS.ACTIVE;
}

// law sim/graphCalls: sim/graph_memory
/** The calls for graphs. */
export function graphCalls(simulator: Simulator): CallTable<"graph"> {
  const graph = (handle: bigint): Graph => {
    const found = simulator.graphs.get(handle);
    if (found === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
    return found;
  };
  const exec = (handle: bigint): GraphExec => {
    const found = simulator.graphExecs.get(handle);
    if (found === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
    return found;
  };
  return {
    cuGraphCreate(out, flags) {
      if (flags !== 0) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      const made: Graph = { handle: simulator.newHandle(), nodes: [] };
      writeWord(out, made.handle);
      simulator.graphs.set(made.handle, made);
    },
    cuGraphGetNodes(handle, nodes, count) {
      const all = graph(handle).nodes.map((node) => node.handle);
      if (nodes === 0n) return writeWord(count, BigInt(all.length));
      writeWord(count, BigInt(writeList(nodes, readWord(count), all)));
    },
    cuGraphGetEdges(handle, from, to, count) {
      const edges = graph(handle).nodes.flatMap((node) => node.dependencies.map((before) => [before, node] as const));
      if ((from === 0n) !== (to === 0n)) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      if (from === 0n) return writeWord(count, BigInt(edges.length));
      const room = readWord(count);
      writeList(from, room, edges.map(([before]) => before.handle));
      writeWord(count, BigInt(writeList(to, room, edges.map(([, after]) => after.handle))));
    },
    cuGraphNodeGetType(handle, out) {
      const node = simulator.graphNodes.get(handle);
      if (node === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      writeInt(out, node.kind);
    },
    cuGraphDebugDotPrint(handle, path, flags) {
      const { nodes } = graph(handle);
      if (path === null) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      if (flags !== 0 && flags !== CU_GRAPH_DEBUG_DOT_FLAGS.VERBOSE) throw unsimulated("flags other than VERBOSE");
      if (!writeTextFile(readField(path), dot(nodes))) throw refuse(CUresult.CUDA_ERROR_OPERATING_SYSTEM);
    },
    cuGraphInstantiateWithFlags(out, handle, flags) {
      const source = graph(handle);
      if (flags > 15n) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      const isTaken = [...simulator.graphExecs.values()].some((one) => one.source === source);
      if (hasMemory(source) && isTaken) throw refuse(CUresult.CUDA_ERROR_NOT_SUPPORTED);
      const freesOnLaunch = (flags & CUDA_GRAPH_INSTANTIATE_FLAG.AUTO_FREE_ON_LAUNCH) !== 0n;
      const made: GraphExec = { handle: simulator.newHandle(), nodes: [...source.nodes], source, freesOnLaunch };
      writeWord(out, made.handle);
      simulator.graphExecs.set(made.handle, made);
    },
    cuGraphExecUpdate(handle, graphHandle, errorNode, result) {
      const updated = exec(handle);
      const source = graph(graphHandle);
      const { nodes } = source;
      if (source !== updated.source && (hasMemory(source) || hasMemory(updated))) {
        throw unsimulated("updates to other graphs that allocate or free");
      }
      const refusal = difference(updated.nodes, nodes);
      if (errorNode !== 0n) writeWord(errorNode, refusal?.node?.handle ?? 0n);
      writeInt(result, refusal?.why ?? CU_GRAPH_EXEC_UPDATE.SUCCESS);
      if (refusal !== null) throw refuse(CUresult.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
      updated.nodes = [...nodes]; // queued launches keep the previous nodes
      updated.source = source;
    },
    cuGraphUpload(handle, stream) {
      const uploaded = exec(handle);
      simulator.submit(simulator.stream(stream), "uncapturable", () => {});
      commit(uploaded);
    },
    cuGraphLaunch(handle, streamHandle) {
      const launched = exec(handle);
      const stream = simulator.stream(streamHandle);
      simulator.refuseCapturing(stream);
      launch(simulator, launched, stream);
    },
    cuGraphExecDestroy(handle) {
      exec(handle);
      simulator.refuseInCapture();
      simulator.graphExecs.delete(handle); // queued launches still run
      releaseUnused(simulator);
    },
    cuGraphDestroy(handle) {
      for (const node of graph(handle).nodes) simulator.graphNodes.delete(node.handle);
      simulator.graphs.delete(handle);
      releaseUnused(simulator);
    },
    cuDeviceGraphMemTrim(ordinal) {
      simulator.device(ordinal).graphPool.trim();
    },
    cuDeviceGetGraphMemAttribute(ordinal, attribute, out) {
      const { graphPool } = simulator.device(ordinal);
      switch (attribute) {
        case CU_GRAPH_MEM_ATTR.USED_MEM_CURRENT:
          return writeWord(out, BigInt(graphPool.used));
        case CU_GRAPH_MEM_ATTR.USED_MEM_HIGH:
          return writeWord(out, BigInt(graphPool.usedHigh));
        case CU_GRAPH_MEM_ATTR.RESERVED_MEM_CURRENT:
          return writeWord(out, BigInt(graphPool.reserved));
        case CU_GRAPH_MEM_ATTR.RESERVED_MEM_HIGH:
          return writeWord(out, BigInt(graphPool.reservedHigh));
        default:
          throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      }
    },
    cuDeviceSetGraphMemAttribute(ordinal, attribute, value) {
      const { graphPool } = simulator.device(ordinal);
      if (readWord(value) !== 0n) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE); // it can only be reset
      if (attribute === CU_GRAPH_MEM_ATTR.USED_MEM_HIGH) graphPool.usedHigh = graphPool.used;
      else if (attribute === CU_GRAPH_MEM_ATTR.RESERVED_MEM_HIGH) graphPool.reservedHigh = graphPool.reserved;
      else throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
    },
  };
}

/** Writes as many handles as fit, and NULL into the remaining room. @returns how many were written */
function writeList(at: bigint, room: bigint, handles: readonly bigint[]): number {
  nativeView(at, Number(room) * 8);
  for (let i = 0n; i < room; i++) writeWord(at + i * 8n, handles[Number(i)] ?? 0n);
  return Math.min(handles.length, Number(room));
}

/** Why one set of nodes cannot replace another: an updated graph keeps its shape. */
function difference(
  before: readonly GraphNode[],
  after: readonly GraphNode[],
): { readonly why: number; readonly node: GraphNode | null } | null {
  if (before.length !== after.length) return { why: CU_GRAPH_EXEC_UPDATE.ERROR_TOPOLOGY_CHANGED, node: null };
  const edges = (nodes: readonly GraphNode[], of: GraphNode) =>
    of.dependencies.map((one) => nodes.indexOf(one)).sort((a, b) => a - b).join();
  for (const [i, node] of after.entries()) {
    const old = before[i];
    if (old === undefined || edges(before, old) !== edges(after, node)) {
      return { why: CU_GRAPH_EXEC_UPDATE.ERROR_TOPOLOGY_CHANGED, node };
    }
    if (old.kind !== node.kind) return { why: CU_GRAPH_EXEC_UPDATE.ERROR_NODE_TYPE_CHANGED, node };
  }
  return null;
}

/** Formats a graph in Graphviz's DOT language. */
function dot(nodes: readonly GraphNode[]): string {
  const name = (node: GraphNode) => `"graph_node_${nodes.indexOf(node)}"`;
  const kinds = Object.entries(CU_GRAPH_NODE_TYPE);
  const labels = nodes.map((node) => `${name(node)}[label="${kinds.find(([, kind]) => kind === node.kind)?.[0]}"];`);
  const edges = nodes.flatMap((node) => node.dependencies.map((before) => `${name(before)} -> ${name(node)};`));
  return `digraph dot {\n${[...labels, ...edges].join("\n")}\n}\n`;
}

// law sim/launch: gpu/implied_order
/** Queues a graph's nodes between two tasks of the stream: one that the nodes wait for, and one that waits for them. */
function launch(simulator: Simulator, exec: GraphExec, stream: Stream): void {
  simulator.refuseImplicit(stream);
  if (exec.nodes.length === 0) return; // it is not work, and orders nothing (`tests/gpu/implied_order_test.ts`)
  const { after, launched } = prepareLaunch(simulator, exec, stream);
  const before = simulator.enqueue(stream, () => {}, [simulator.lastLaunch.get(exec) ?? null, ...after]);
  const tasks = new Map<GraphNode, Task>();
  for (const node of exec.nodes) { // in capture order: every node after its dependencies
    const waits = node.dependencies.map((one) => tasks.get(one) ?? null);
    tasks.set(node, simulator.queue(node.context, simulator.newStreamId(), node.run, [before, ...waits]));
  }
  const ends = leaves(exec.nodes).map((node) => tasks.get(node) ?? null);
  const end = simulator.enqueue(stream, () => {}, ends);
  simulator.lastLaunch.set(exec, end);
  launched(end);
}
