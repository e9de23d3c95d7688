/**
 * Executable graphs.
 *
 * @module
 */
import { checkMade, showAs, showGiven } from "../../layout/mod.ts";
import { CU_GRAPH_EXEC_UPDATE, CUresult } from "../../../bindings/cuda_types.ts";
import { constantName, NativeArena } from "../../ffi/mod.ts";
import { checkSameCuda } from "../check_device.ts";
import { noStream } from "../no_stream.ts";
import { afterCaptures, captureOf } from "./active_captures.ts";
import type { CudaDevice } from "../device.ts";
import { checkCuda, checkRelease, type CudaDriver, CudaError, resultName } from "../../driver/mod.ts";
import { closeIfDropped, closeOnce, type DroppedState } from "../finalizer.ts";
import type { CudaGraph } from "./graph.ts";
import type { GraphResources } from "./graph_resources.ts";
import { besideCaptures } from "../relaxed_capture.ts";
import type { CudaStream } from "../stream.ts";

/** The state that destroys an executable which its user has dropped. */
class GraphExecState implements DroppedState {
  readonly kind = "CudaGraphExec";
  readonly driver: CudaDriver;
  /** The resources of its work. */
  resources: GraphResources;
  closed = false;
  readonly #handle: bigint;
  #retained: Disposable;

  constructor(device: CudaDevice, handle: bigint, resources: GraphResources) {
    this.driver = device.driver;
    this.#handle = handle;
    this.resources = resources;
    this.#retained = resources.retained();
  }

  // law device/GraphExecState.switchTo: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  /** Makes later launches use another graph's resources. */
  switchTo(resources: GraphResources): void {
    const before = this.#retained;
    if (resources !== this.resources) this.resources.noteLast(this);
    this.resources = resources;
    this.#retained = resources.retained();
    before[Symbol.dispose]();
  }

  // law device/GraphExecState.close: device/graph/active_captures, device/graph/graph_resources, device/graph/graph,
  //   sim/behaviours, order/deferred_free, device/failures, device/graph/graph_launches, memory/beside_captures
  close(): void {
    const { driver } = this;
    this.resources.noteLast(this);
    afterCaptures(driver, () => { // the destroy would invalidate a capture
      const code = besideCaptures(driver, () => driver.graph.cuGraphExecDestroy(this.#handle));
      this.#retained[Symbol.dispose]();
      checkRelease(driver, "cuGraphExecDestroy", code);
    });
  }
}

/** A graph that can be launched any number of times: each launch begins when the previous one has completed. */
export class CudaGraphExec {
  /** The device whose stream was captured. */
  readonly device: CudaDevice;
  readonly #handle: bigint;
  readonly #state: GraphExecState;

  // law device/CudaGraphExec.constructor: device/dropped
  private constructor(device: CudaDevice, handle: bigint, resources: GraphResources) {
    checkMade(resources, "CudaGraphExec", "graph.instantiate()");
    this.device = device;
    this.#handle = handle;
    this.#state = new GraphExecState(device, handle, resources);
    closeIfDropped(this, this.#state);
  }

  /**
   * Use {@linkcode CudaGraph.instantiate}.
   *
   * @internal
   */
  static instantiate({ device, handle, resources }: CudaGraph): CudaGraphExec {
    using arena = new NativeArena();
    const out = arena.out("ptr");
    const { driver } = device;
    const make = () => driver.graph.cuGraphInstantiateWithFlags(out.$address, handle, 0n);
    checkCuda(driver, "cuGraphInstantiateWithFlags", device.withContext(make));
    return new CudaGraphExec(device, out.value, resources);
  }

  // law device/CudaGraphExec.handle: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  /**
   * `CUgraphExec`.
   *
   * @throws {TypeError} if it is closed
   */
  get handle(): bigint {
    if (this.#state.closed) throw new TypeError("Cannot use a closed CudaGraphExec");
    return this.#handle;
  }

  /**
   * Enqueues all work of the graph on a stream.
   *
   * @throws {TypeError} if it or the stream is closed, or the stream is being captured: capture the work itself, by
   *   enqueueing it again
   */
  launch(stream: CudaStream): void {
    this.#enqueue("cuGraphLaunch", stream);
  }

  /** Enqueues the preparation of a launch, so that the first launch need not do it. */
  upload(stream: CudaStream): void {
    this.#enqueue("cuGraphUpload", stream);
  }

  /**
   * Makes later launches run another graph, which must have the same shape: the same kinds of nodes with the same edges
   * between them. Much faster than instantiating it. Launches in flight are not changed.
   *
   * @throws {CudaError} CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE if the shapes differ, with the driver's reason; nothing
   *   has changed then
   * @throws {TypeError} if it is not a graph
   */
  update(graph: CudaGraph): void {
    // Executables have handles, too, which the driver would take for graphs.
    if (graph?.resources === undefined) {
      throw new TypeError(`Cannot update: expected a CudaGraph, got ${showGiven(graph)}`);
    }
    using arena = new NativeArena();
    const [node, result] = [arena.out("ptr"), arena.out("i32")];
    const { device, handle } = this;
    const { driver } = device;
    const source = graph.handle;
    checkSameCuda(graph, device, "Cannot update to a graph");
    const code = device.withContext(() =>
      driver.graph.cuGraphExecUpdate(handle, source, node.$address, result.$address)
    );
    if (code === CUresult.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE) {
      const reason = constantName(CU_GRAPH_EXEC_UPDATE, result.value) ?? String(result.value);
      const way = `${reason}. Only a graph of the same shape fits: instantiate this one instead.`;
      throw new CudaError("cuGraphExecUpdate", code, resultName(code), way);
    }
    checkCuda(driver, "cuGraphExecUpdate", code);
    this.#state.switchTo(graph.resources);
  }

  /** Whether `close` has been called. */
  get isClosed(): boolean {
    return this.#state.closed;
  }

  // law device/CudaGraphExec.close: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  /** Destroys it. Launches in flight complete; this does not wait for them. Closing twice is harmless. */
  close(): void {
    closeOnce(this.#state);
  }

  /** Destroys it. */
  [Symbol.dispose](): void {
    this.close();
  }

  // law device/CudaGraphExec.enqueue: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  #enqueue(call: "cuGraphLaunch" | "cuGraphUpload", stream: CudaStream): void {
    const { device, handle } = this;
    const { driver } = device;
    if (stream?.handleFor === undefined) throw noStream(stream, "Cannot launch a graph");
    const on = stream.handleFor("launch a graph on");
    checkSameCuda(stream, device, "Cannot launch a graph on a stream");
    if (captureOf(stream) !== null) {
      throw new TypeError(`Cannot ${call} on a stream that is being captured: enqueue the graph's work itself`);
    }
    const launch = this.#state.resources.launchOf(this.#state); // the state, because the object may be dropped before
    launch.prepare(stream);
    try {
      checkCuda(driver, call, stream.enqueue(() => driver.graph[call](handle, on)));
    } finally {
      launch.note(stream);
    }
  }

  static {
    showAs(CudaGraphExec, (exec) => `of ${exec.device}${exec.#state.closed ? ", closed" : ""}`);
  }
}
