/**
 * A capture: the work of a stream is recorded into a graph instead of being run.
 *
 * @module
 */
import { CU_STREAM_CAPTURE_MODE } from "../../../bindings/cuda_types.ts";
import { NativeArena, reportUncaught, runAll } from "../../ffi/mod.ts";
import { checkMade, checkOptions, type OptionNames, showAs, showGiven } from "../../layout/mod.ts";
import { beginCapture, captureOf, endCapture } from "./active_captures.ts";
import { checkCuda, type CudaDriver } from "../../driver/mod.ts";
import type { CudaEvent } from "../event.ts";
import { CudaGraph } from "./graph.ts";
import { type GraphResource, GraphResources } from "./graph_resources.ts";
import type { CudaStream } from "../stream.ts";

/** Options of {@linkcode CudaStream.capture} and {@linkcode CudaStream.beginCapture}. */
export interface CaptureOptions {
  /**
   * Where calls that could escape the capture (waits, queries, immediate allocation) are refused: `global`: in the
   * whole process, other libraries included; `thread-local`: on this thread, where all of Causeway runs; `relaxed`:
   * only calls that concern the captured streams themselves. Default `thread-local`.
   */
  readonly mode?: "global" | "thread-local" | "relaxed";
}

const captureOptionNames: OptionNames<CaptureOptions> = { mode: true };

const modes = {
  "global": CU_STREAM_CAPTURE_MODE.GLOBAL,
  "thread-local": CU_STREAM_CAPTURE_MODE.THREAD_LOCAL,
  "relaxed": CU_STREAM_CAPTURE_MODE.RELAXED,
} as const;

/**
 * A capture in progress. End it to get the graph; closing it without ending discards the captured work.
 *
 * No memory is freed until it ends: buffers closed or collected meanwhile are freed afterwards.
 *
 * @example
 * ```ts
 * import { Cuda, DeviceMemoryResource } from "@causeway/causeway";
 *
 * using cuda = Cuda.simulate();
 * using stream = cuda.device(0).createStream();
 * using buffer = new DeviceMemoryResource(cuda.device(0)).allocate(64, { stream });
 * using capture = stream.beginCapture();
 * buffer.fill(7, { stream });
 * using graph = capture.end();
 * console.log(graph.nodes[0]?.kind); // MEMSET
 * ```
 */
export class StreamCapture {
  /** The stream that it began on. */
  readonly stream: CudaStream;
  /** Participating streams of its driver, by `name`. They are retained, so that none is destroyed meanwhile. */
  readonly #streams = new Map<string, CudaStream>();
  /** Events last recorded on a participating stream. */
  readonly #events = new Set<bigint>();
  readonly #resources: GraphResource[] = [];
  #ended = false;

  // law device/StreamCapture.constructor: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  /** Begins. Use {@linkcode CudaStream.capture} or {@linkcode CudaStream.beginCapture}. */
  constructor(stream: CudaStream, options: CaptureOptions) {
    checkMade(options, "StreamCapture", "stream.beginCapture()");
    checkOptions(options, captureOptionNames);
    const { mode = "thread-local" } = options;
    const { device } = stream;
    const handle = stream.handleFor("capture");
    const code = modes[mode];
    if (code === undefined) {
      throw new TypeError(`Cannot capture in mode ${mode}: expected "global", "thread-local" or "relaxed"`);
    }
    if (stream.isLegacy) {
      throw new TypeError("Cannot capture the default stream, which waits for others: use one of createStream()");
    }
    if (captureOf(stream) !== null) {
      throw new TypeError(
        "Cannot capture a stream that takes part in a capture already: enqueue the work there, or end that one first",
      );
    }
    const { driver } = device;
    this.stream = stream;
    this.#add(stream);
    try {
      const begin = () => driver.capture.cuStreamBeginCapture_v2(handle, code);
      checkCuda(driver, "cuStreamBeginCapture_v2", stream.enqueue(begin));
    } catch (error) {
      stream.release();
      throw error;
    }
    beginCapture(this);
  }

  /** Whether it has ended or was discarded. */
  get isEnded(): boolean {
    return this.#ended;
  }

  // law device/StreamCapture.includes: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  /** Whether a stream takes part: the one that the capture began on, and those that have waited for an event of it. */
  includes(stream: CudaStream): boolean {
    return this.#isOurs(stream) && this.#streams.has(name(stream));
  }

  /** Handles are only unique within one driver: two drivers may use the same ones. */
  #isOurs({ device }: CudaStream | CudaEvent): boolean {
    return device.driver === this.stream.device.driver;
  }

  // law device/StreamCapture.recorded: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  /**
   * Notes that an event was recorded. Called by streams.
   *
   * @internal
   */
  recorded(event: CudaEvent, inside: boolean): void {
    if (!this.#isOurs(event)) return;
    if (inside) this.#events.add(event.handle);
    else this.#events.delete(event.handle);
  }

  // law device/StreamCapture.forget: device/graph/active_captures
  /**
   * Notes that an event is destroyed. Called by events.
   *
   * @internal
   */
  forget(driver: CudaDriver, event: bigint): void {
    if (driver === this.stream.device.driver) this.#events.delete(event);
  }

  // law device/StreamCapture.waits: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  /**
   * Notes that a stream waits for an event. Called by streams.
   *
   * @internal
   */
  waits(stream: CudaStream, event: CudaEvent): void {
    if (this.#isOurs(stream) && this.#events.has(event.handle) && !this.includes(stream)) this.#add(stream);
  }

  // law device/StreamCapture.retain: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  /**
   * Retains a resource of captured work until its graph is gone. Called by all code that enqueues work.
   *
   * @internal
   */
  retain(used: GraphResource): void {
    this.#resources.push(used);
  }

  // law device/StreamCapture.end: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  /**
   * Ends the capture.
   *
   * @returns the graph, which the caller closes
   * @throws {TypeError} if it has already ended
   * @throws {CudaError} CUDA_ERROR_STREAM_CAPTURE_INVALIDATED after a call that could not be captured,
   *   CUDA_ERROR_STREAM_CAPTURE_UNJOINED if another stream takes part and was not waited for
   */
  end(): CudaGraph {
    if (this.#ended) throw new TypeError("Cannot end a capture twice");
    const { device } = this.stream;
    const resources = new GraphResources(device, this.#resources);
    const retained = resources.retained(); // released below if there is no graph
    try {
      const [code, handle] = this.#finish();
      checkCuda(device.driver, "cuStreamEndCapture", code);
      return new CudaGraph(device, handle, resources);
    } finally {
      retained[Symbol.dispose]();
      endCapture(this);
    }
  }

  // law device/StreamCapture.close: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  /** Discards the captured work, unless the capture has ended. Never throws, because it is called after errors. */
  close(): void {
    if (this.#ended) return;
    const { driver } = this.stream.device;
    const retained = new GraphResources(this.stream.device, this.#resources).retained();
    try {
      runAll([
        () => {
          const [, handle] = this.#finish();
          if (handle !== 0n) driver.graph.cuGraphDestroy(handle);
        },
        () => retained[Symbol.dispose](),
        () => endCapture(this),
      ]);
    } catch (error) {
      reportUncaught("discarding a capture", error);
    }
  }

  /** Discards the captured work, unless the capture has ended. */
  [Symbol.dispose](): void {
    this.close();
  }

  // law device/StreamCapture.add: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  #add(stream: CudaStream): void {
    stream.retain();
    this.#streams.set(name(stream), stream);
  }

  // law device/StreamCapture.finish: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  #finish(): [code: number, graph: bigint] {
    this.#ended = true;
    using arena = new NativeArena();
    const out = arena.out("ptr");
    const stream = this.stream.orSuccessor;
    const handle = stream.handleFor("use");
    const { capture, graph } = stream.device.driver;
    let code = 0;
    try {
      runAll([
        () => code = stream.enqueue(() => capture.cuStreamEndCapture(handle, out.$address)),
        ...[...this.#streams.values()].map((one) => () => one.release()),
      ]);
    } catch (error) {
      if (out.value !== 0n) graph.cuGraphDestroy(out.value); // a stream could not be released
      throw error;
    }
    return [code, out.value];
  }

  static {
    showAs(StreamCapture, (capture) => `of ${capture.stream}${capture.#ended ? ", ended" : ""}`);
  }
}

// law device/nameInCaptures: device/idle_streams
/**
 * A name that is unique among the streams of a driver: several objects may stand for the same stream, and default
 * streams of different devices share handles.
 */
function name(stream: CudaStream): string {
  return `${stream.device.ordinal} ${stream.handleFor("use")}`;
}

/** See {@linkcode CudaStream.capture}. */
export function captureWork(stream: CudaStream, work: () => unknown, options: CaptureOptions): CudaGraph {
  if (typeof work !== "function") {
    throw new TypeError(
      `Cannot capture: expected a function that enqueues work, capture(() => ...), got ${showGiven(work)}. ` +
        "beginCapture() needs none",
    );
  }
  using capture = new StreamCapture(stream, options);
  const result = work();
  if (result instanceof Promise) {
    result.catch(() => {}); // work that it does outside the capture fails with its own error, or not at all
    throw new TypeError("Cannot capture an asynchronous function: use beginCapture() and end()");
  }
  return capture.end();
}
