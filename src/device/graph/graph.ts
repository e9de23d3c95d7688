/**
 * Graphs: work captured from streams.
 *
 * @module
 */
import { CU_GRAPH_DEBUG_DOT_FLAGS, CU_GRAPH_NODE_TYPE } from "../../../bindings/cuda_types.ts";
import { cString, NativeArena } from "../../ffi/mod.ts";
import { checkBoolean, checkMade, checkOptions, showAs } from "../../layout/mod.ts";
import type { CudaDevice } from "../device.ts";
import { checkCuda, checkRelease } from "../../driver/mod.ts";
import { closeIfDropped, closeOnce, type DroppedState } from "../finalizer.ts";
import { CudaGraphExec } from "./graph_exec.ts";
import type { GraphResources } from "./graph_resources.ts";
import { writtenFile } from "./written_file.ts";

/** Options of {@linkcode CudaGraph.toDot}. */
const dotOptionNames = { verbose: true } as const;

/** What a node does, by the name in the header without the prefix `CU_GRAPH_NODE_TYPE_`: `KERNEL`, `MEMCPY`. */
export type CudaGraphNodeKind = keyof typeof CU_GRAPH_NODE_TYPE;

/** A node of a graph: a piece of work. */
export interface CudaGraphNode {
  /** `CUgraphNode`, valid as long as its graph. */
  readonly handle: bigint;
  /** What it does; null for a kind of a newer driver that this package does not know. */
  readonly kind: CudaGraphNodeKind | null;
}

const kinds: ReadonlyMap<number, CudaGraphNodeKind> = new Map(
  // Object.entries() loses the type of the keys.
  Object.entries(CU_GRAPH_NODE_TYPE).map(([kind, code]) => [code, kind as CudaGraphNodeKind]),
);

/**
 * Work that was captured from a stream and has not run. Instantiate it to launch it any number of times.
 *
 * The graph retains the resources of its work, as far as Causeway has enqueued it: buffers and views stay allocated and
 * programs loaded, even if they are closed meanwhile, until the graph and all its instances are closed and their
 * launches have completed. The caller must keep memory passed as bigint addresses alive, as well as events and host
 * memory of typed arrays that were not passed as a buffer.
 *
 * @example
 * ```ts
 * import { Cuda, DeviceMemoryResource, PinnedMemoryResource } from "@causeway/causeway";
 *
 * using cuda = Cuda.simulate();
 * const device = cuda.device(0);
 * using stream = device.createStream();
 * using buffer = new DeviceMemoryResource(device).allocate(4, { stream });
 * using host = new PinnedMemoryResource(device).allocate(4);
 * using graph = stream.capture(() => {
 *   buffer.fill(7, { stream });
 *   buffer.copyTo(host, { stream });
 * });
 * using exec = graph.instantiate();
 * exec.launch(stream);
 * stream.synchronize();
 * console.log(host.bytes()[3]); // 7
 * ```
 */
export class CudaGraph {
  /** The device whose stream was captured. */
  readonly device: CudaDevice;
  readonly #handle: bigint;
  readonly #resources: GraphResources;
  readonly #state: GraphState;

  // law device/CudaGraph.constructor: device/dropped
  /** Use {@linkcode CudaStream.capture}. */
  constructor(device: CudaDevice, handle: bigint, resources: GraphResources) {
    checkMade(resources, "CudaGraph", "stream.capture(work)");
    this.device = device;
    this.#handle = handle;
    this.#resources = resources;
    this.#state = {
      kind: "CudaGraph",
      driver: device.driver,
      closed: false,
      close: destroyer(device, handle, resources.retained()),
    };
    closeIfDropped(this, this.#state);
  }

  /**
   * `CUgraph`.
   *
   * @throws {TypeError} if the graph is closed
   */
  get handle(): bigint {
    if (this.#state.closed) throw new TypeError("Cannot use a closed CudaGraph");
    return this.#handle;
  }

  /**
   * The resources of its work. For {@linkcode CudaGraphExec}.
   *
   * @internal
   */
  get resources(): GraphResources {
    return this.#resources;
  }

  /** The nodes. */
  get nodes(): readonly CudaGraphNode[] {
    using arena = new NativeArena();
    const kind = arena.out("i32");
    const { driver } = this.device;
    return this.#handles(arena).map((handle) => {
      checkCuda(driver, "cuGraphNodeGetType", driver.graph.cuGraphNodeGetType(handle, kind.$address));
      return { handle, kind: kinds.get(kind.value) ?? null };
    });
  }

  /** The dependencies between nodes, as indexes into `nodes`. */
  get edges(): readonly (readonly [before: number, after: number])[] {
    using arena = new NativeArena();
    const count = arena.out("size");
    const { driver } = this.device;
    const ask = (from: bigint, to: bigint) =>
      checkCuda(driver, "cuGraphGetEdges", driver.graph.cuGraphGetEdges(this.handle, from, to, count.$address));
    ask(0n, 0n);
    if (count.value === 0) return [];
    const [from, to] = [handleList(arena, count.value), handleList(arena, count.value)];
    ask(from.address, to.address);
    const indexes = new Map(this.#handles(arena).map((handle, i) => [handle, i]));
    const index = (handle: bigint) => indexes.get(handle) ?? -1;
    const befores = from.read();
    return to.read().map((after, i) => [index(befores[i] ?? 0n), index(after)] as const);
  }

  /**
   * The graph in the Graphviz language, as the driver draws it. The driver only writes files: this one is in memory, in
   * no folder, with its name in `/proc`. In Deno `--allow-ffi` is enough.
   *
   * @param options `verbose`: with everything that the driver knows about each node. Default false
   * @throws {CudaError} CUDA_ERROR_OPERATING_SYSTEM if there is no `/proc`
   */
  toDot(options: { readonly verbose?: boolean } = {}): string {
    checkOptions(options, dotOptionNames);
    const { verbose = false } = options;
    checkBoolean("verbose", verbose);
    const { handle } = this;
    const { driver } = this.device;
    const flags = verbose ? CU_GRAPH_DEBUG_DOT_FLAGS.VERBOSE : 0;
    return writtenFile("draw a graph", (file) => {
      const code = driver.graph.cuGraphDebugDotPrint(handle, cString(file), flags);
      checkCuda(driver, "cuGraphDebugDotPrint", code);
    });
  }

  /**
   * Makes an executable of the graph, which stays valid when this graph is closed.
   *
   * @returns the executable, which the caller closes
   */
  instantiate(): CudaGraphExec {
    return CudaGraphExec.instantiate(this);
  }

  /** Whether `close` has been called. */
  get isClosed(): boolean {
    return this.#state.closed;
  }

  // law device/CudaGraph.close: device/graph/graph
  /** Destroys the graph. Its executables stay. Closing twice is harmless. */
  close(): void {
    closeOnce(this.#state);
  }

  /** Destroys the graph. */
  [Symbol.dispose](): void {
    this.close();
  }

  #handles(arena: NativeArena): readonly bigint[] {
    const count = arena.out("size");
    const { driver } = this.device;
    const ask = (at: bigint) =>
      checkCuda(driver, "cuGraphGetNodes", driver.graph.cuGraphGetNodes(this.handle, at, count.$address));
    ask(0n);
    if (count.value === 0) return [];
    const list = handleList(arena, count.value);
    ask(list.address);
    return list.read();
  }

  static {
    showAs(
      CudaGraph,
      (graph) =>
        graph.#state.closed ? `of ${graph.device}, closed` : `of ${graph.device}: ${describeNodes(graph.nodes)}`,
    );
  }
}

/** The state that destroys a graph which its user has dropped. */
interface GraphState extends DroppedState {
  closed: boolean;
}

/** A separate function, so that its closure does not reference the graph. */
function destroyer({ driver }: CudaDevice, handle: bigint, retained: Disposable): () => void {
  return () => {
    const code = driver.graph.cuGraphDestroy(handle);
    retained[Symbol.dispose]();
    checkRelease(driver, "cuGraphDestroy", code);
  };
}

/** Space for handles that the driver writes. */
function handleList(arena: NativeArena, count: number): { readonly address: bigint; readonly read: () => bigint[] } {
  const { address, bytes } = arena.bytes(8 * count, 8);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { address, read: () => Array.from({ length: count }, (_, i) => view.getBigUint64(8 * i, true)) };
}

/** The number of nodes of each kind: `3 nodes (2 kernel, 1 memcpy)`. */
function describeNodes(nodes: readonly CudaGraphNode[]): string {
  const counts = new Map<string, number>();
  for (const { kind } of nodes) counts.set(kind ?? "other", (counts.get(kind ?? "other") ?? 0) + 1);
  const kinds = [...counts].map(([kind, count]) => `${count} ${kind}`).join(", ");
  return `${nodes.length} node${nodes.length === 1 ? "" : "s"}${kinds === "" ? "" : ` (${kinds})`}`;
}
