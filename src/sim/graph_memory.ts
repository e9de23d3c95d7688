/**
 * Graph memory: its addresses belong to the graph from capture on, and each launch allocates it anew.
 *
 * @module
 */
import { CU_GRAPH_NODE_TYPE, CUresult } from "../../bindings/cuda_types.ts";
import { addressAt, offsetOf } from "./address_space.ts";
import { blockBytes, Heap, segmentBytes, Segments } from "./allocator.ts";
import { deviceSpan } from "./device_memory.ts";
import type { Graph, GraphExec } from "./graph.ts";
import type { Simulator } from "./simulator.ts";
import type { Allocation, Stream } from "./objects.ts";
import type { Pool } from "./pool.ts";
import { roundUp } from "../ffi/mod.ts";
import { refuse } from "./call.ts";
import type { Task } from "./scheduler.ts";

/**
 * Where graph addresses begin: between all other memory of the device and the aliases of other drivers' memory.
 */
const firstOffset = deviceSpan / 4;

/** Memory that a node allocates: anew in each launch, at the same address. */
export interface GraphMemory {
  readonly allocation: Allocation;
  /** The graph that allocates it. */
  readonly owner: Graph;
  /** The last graph with a node that frees it. Once its own graph frees it, no other may. */
  freedBy: Graph | null;
  /** Whether it is allocated, as the host sees it: a launch has allocated it, and no call since has freed it. */
  isLive: boolean;
  /** The last task that uses it: a launch waits for that task before it allocates the memory again. */
  last: Task | null;
  /** Device memory that backs it, from the first launch on. */
  bytes: { readonly offset: number; readonly bytes: number } | null;
}

/** A device's memory for graphs. Bytes that no graph needs any more are kept for the next graph. */
export class GraphPool {
  readonly #segments: Segments;
  readonly #addresses: Heap<Task> = new Heap(new Segments(deviceSpan / 4 - segmentBytes));
  #kept: { readonly offset: number; readonly bytes: number }[] = [];
  #used = 0;
  #reserved = 0;
  /** High-water mark of bytes that belong to graphs, since the last reset. */
  usedHigh = 0;
  /** High-water mark of bytes taken from the device, since the last reset. */
  reservedHigh = 0;

  /** @param segments the device's memory */
  constructor(segments: Segments) {
    this.#segments = segments;
  }

  /** Bytes that belong to graphs. */
  get used(): number {
    return this.#used;
  }

  /** Bytes taken from the device. */
  get reserved(): number {
    return this.#reserved;
  }

  /** Reserves addresses that no queued work uses any more. Null if none are left. */
  reserveAddresses(bytes: number): number | null {
    const block = roundUp(bytes, blockBytes);
    this.#addresses.join(({ done }) => done);
    const offset = this.#addresses.reuse(block, ({ tag }) => tag === null)?.offset ?? this.#addresses.grow(block);
    return offset === null ? null : firstOffset + offset;
  }

  // law sim/GraphPool.commit: sim/graph_memory
  /** Backs memory with bytes of the device, if it has none yet. */
  commit(memory: GraphMemory): void {
    if (memory.bytes !== null) return;
    const bytes = roundUp(memory.allocation.bytes, segmentBytes);
    const at = this.#kept.findIndex((one) => one.bytes === bytes);
    let [found] = at < 0 ? [] : this.#kept.splice(at, 1);
    if (found === undefined) {
      const offset = this.#segments.reserve(bytes);
      if (offset === null) throw refuse(CUresult.CUDA_ERROR_OUT_OF_MEMORY);
      found = { offset, bytes };
      this.#reserved += bytes;
    }
    memory.bytes = found;
    this.#used += bytes;
    this.usedHigh = Math.max(this.usedHigh, this.#used);
    this.reservedHigh = Math.max(this.reservedHigh, this.#reserved);
  }

  /** Takes back the addresses and bytes of memory whose graph is gone. */
  release({ allocation, bytes, last }: GraphMemory): void {
    const block = roundUp(allocation.bytes, blockBytes);
    const tag = last?.done === false ? last : null;
    this.#addresses.release({ offset: offsetOf(allocation.address) - firstOffset, bytes: block, tag });
    if (bytes === null) return;
    this.#used -= bytes.bytes;
    this.#kept.push(bytes);
  }

  /** Returns bytes that belong to no graph to the device. */
  trim(): void {
    for (const { offset, bytes } of this.#kept.splice(0)) {
      this.#segments.release(offset, bytes);
      this.#reserved -= bytes;
    }
  }
}

/** Captures an allocation. @returns the address; for 0 bytes it is 0, and no node is added */
export function captureAllocation(simulator: Simulator, stream: Stream, pool: Pool, size: bigint): bigint {
  const { capture, context } = stream;
  if (capture === null || capture.of.invalidated) throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  if (size === 0n) return 0n;
  const device = simulator.device(pool.ordinal);
  const offset = size > BigInt(deviceSpan) ? null : device.graphPool.reserveAddresses(Number(size));
  if (offset === null) throw refuse(CUresult.CUDA_ERROR_OUT_OF_MEMORY);
  const address = addressAt(device, offset);
  const bytes = Number(size);
  const allocation = simulator.space.add({ kind: "graph", address, bytes, context, pool, device });
  const { graph } = capture.of;
  const memory: GraphMemory = { allocation, owner: graph, freedBy: null, isLive: false, last: null, bytes: null };
  simulator.graphMemory.set(address, memory);
  simulator.submit(stream, CU_GRAPH_NODE_TYPE.MEM_ALLOC, () => map(memory), [], memory);
  return address;
}

// law sim/captureFree: sim/graph_memory
/** Captures a free of memory that a graph allocates and that no graph frees yet. */
export function captureFree(simulator: Simulator, stream: Stream, address: bigint): void {
  const { capture } = stream;
  if (capture === null || capture.of.invalidated) throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  if (address === 0n) return;
  const { graph } = capture.of;
  const memory = simulator.graphMemory.get(address);
  if (memory === undefined || memory.freedBy === memory.owner) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  const isOwner = memory.owner === graph;
  const isFreedHere = graph.nodes.some((node) => node.memory === memory && node.kind === CU_GRAPH_NODE_TYPE.MEM_FREE);
  if (isFreedHere || (isOwner && memory.freedBy !== null)) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  memory.freedBy = graph;
  simulator.submit(stream, CU_GRAPH_NODE_TYPE.MEM_FREE, () => unmap(memory), [], memory);
}

// law sim/freeGraphMemory: sim/graph_memory
/** Frees graph memory outside of graphs: in stream order, or immediately. */
export function freeGraphMemory(
  simulator: Simulator,
  { address, context }: Allocation,
  stream: Stream | null = null,
): void {
  const memory = simulator.graphMemory.get(address);
  if (memory === undefined || !memory.isLive) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  release(simulator, memory, stream ?? context.legacy, stream !== null);
  releaseUnused(simulator);
}

// law sim/release: sim/graph_memory
function release(simulator: Simulator, memory: GraphMemory, stream: Stream, inOrder: boolean): void {
  const run = () => unmap(memory);
  const { context, id } = stream;
  // Ordering the free after the launch is up to the caller; the next launch follows both.
  const free = inOrder ? simulator.enqueue(stream, run) : simulator.queue(context, id, run, []);
  if (inOrder) memory.last = simulator.queue(context, id, () => {}, [memory.last, free]);
  else simulator.scheduler.force(free);
  memory.isLive = false;
}

function map({ allocation }: GraphMemory): void {
  const { device, address, bytes } = allocation;
  device.mapped.remove(address); // an unordered free may have run too early
  device.mapped.add(address, bytes, allocation);
}

// law sim/unmap: sim/graph_memory
function unmap({ allocation }: GraphMemory): void {
  const { device, address, bytes } = allocation;
  device.mapped.remove(address);
  device.memory.poison(offsetOf(address), bytes);
}

/** Memory that the nodes of a graph allocate and free. */
function memoryOf({ nodes }: Pick<GraphExec, "nodes">): { allocated: Set<GraphMemory>; freed: Set<GraphMemory> } {
  const of = (kind: number) =>
    new Set(nodes.flatMap((node) => node.kind === kind && node.memory !== null ? [node.memory] : []));
  return { allocated: of(CU_GRAPH_NODE_TYPE.MEM_ALLOC), freed: of(CU_GRAPH_NODE_TYPE.MEM_FREE) };
}

/** Whether a graph allocates or frees. */
export function hasMemory({ nodes }: Pick<GraphExec, "nodes">): boolean {
  return nodes.some(({ memory }) => memory !== null);
}

/** Backs all memory that a graph allocates with bytes. */
export function commit(exec: GraphExec): void {
  for (const memory of memoryOf(exec).allocated) memory.allocation.device.graphPool.commit(memory);
}

// law sim/prepareLaunch: sim/graph_memory
/**
 * Prepares a launch: refuses to allocate memory that is allocated, or to free memory that is not.
 *
 * @returns the tasks that the launch must wait for, and a callback for its last task
 */
export function prepareLaunch(
  simulator: Simulator,
  exec: GraphExec,
  stream: Stream,
): { readonly after: (Task | null)[]; readonly launched: (end: Task) => void } {
  const { allocated, freed } = memoryOf(exec);
  const left = [...allocated].filter(({ isLive }) => isLive);
  if (left.length > 0 && !exec.freesOnLaunch) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  for (const memory of freed) {
    if (!memory.isLive && !allocated.has(memory)) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  }
  commit(exec);
  for (const memory of left) release(simulator, memory, stream, true);
  const all = [...allocated.union(freed)];
  return {
    after: all.map(({ last }) => last),
    launched(end) {
      for (const memory of all) {
        memory.last = end;
        memory.isLive = !freed.has(memory);
      }
    },
  };
}

// law sim/releaseUnused: sim/graph_memory
/** Releases memory that is not allocated and that no graph can allocate any more. */
export function releaseUnused(simulator: Simulator): void {
  if (simulator.graphMemory.size === 0) return;
  const owners = new Set<Graph>([...simulator.graphs.values(), ...[...simulator.captures].map(({ graph }) => graph)]);
  const executable = new Set([...simulator.graphExecs.values()].flatMap((exec) => [...memoryOf(exec).allocated]));
  for (const [address, memory] of simulator.graphMemory) {
    if (memory.isLive || owners.has(memory.owner) || executable.has(memory)) continue;
    simulator.graphMemory.delete(address);
    simulator.space.allocations.remove(address);
    memory.allocation.device.graphPool.release(memory);
  }
}
