/**
 * What this package does on its own, and at its users' request, while another library captures a stream.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { CU_STREAM, CU_STREAM_CAPTURE_MODE, CU_STREAM_CAPTURE_STATUS } from "../../bindings/cuda_types.ts";
import {
  type Cuda,
  type CudaDevice,
  DeviceMemoryResource,
  ManagedMemoryResource,
  PinnedMemoryResource,
  StridedMemoryView,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { type CudaDriver, resultName } from "../../src/driver/driver.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { drainFrees } from "../../src/order/deferred_free.ts";
import { reclaim } from "../../src/order/reclaim.ts";
import { fc } from "../support/property.ts";
import { addPtx } from "./graph_behaviours.ts";

const kinds = ["pool", "own pool", "pinned", "managed", "synchronous"] as const;
const homes = ["non-blocking", "blocking", "legacy", "per-thread"] as const;
const acts = [
  ...["allocate", "close a buffer", "fill", "record", "ask an event", "wait for an event", "ask a stream"],
  ...["wait for a stream", "ask a pool", "trim a pool", "make a pool", "load code", "unload code", "destroy a graph"],
  ...["export", "release", "reclaim memory"],
] as const;

/** What another library captures, how strictly, and our steps before and meanwhile. */
export interface BesideCapture {
  readonly captured: "a non-blocking stream" | "a blocking stream";
  readonly mode: keyof typeof CU_STREAM_CAPTURE_MODE;
  readonly before: readonly Step[];
  readonly meanwhile: readonly Step[];
}

interface Step {
  readonly act: string;
  readonly kind: (typeof kinds)[number];
  readonly home: (typeof homes)[number];
  readonly at: number;
}

const step = fc.record({
  act: fc.constantFrom(...acts),
  kind: fc.constantFrom(...kinds),
  home: fc.constantFrom(...homes),
  at: fc.nat(7),
});

/** Any such case. */
export const besideCapture: fc.Arbitrary<BesideCapture> = fc.record({
  captured: fc.constantFrom("a non-blocking stream", "a blocking stream"),
  mode: fc.constantFrom("GLOBAL", "THREAD_LOCAL", "RELAXED"),
  before: fc.array(step, { maxLength: 12 }),
  meanwhile: fc.array(step, { minLength: 1, maxLength: 20 }),
});

/** Runs a case; fails if a call is refused, the capture is invalidated, or the thread's state is changed. */
export function runBesideCapture(cuda: Cuda, { captured, mode, before, meanwhile }: BesideCapture): void {
  using theirs = new TheirCapture(cuda, captured, mode);
  const ours = new Ours(cuda, captured);
  for (const one of before) ours.act(one, false);
  reclaim(); // released exports have been noticed: see below
  theirs.begin();
  for (const one of meanwhile) {
    ours.act(one, true);
    theirs.check(one.act);
  }
  theirs.end();
  ours.close();
}

/** Another library's stream, which captures next to nothing. */
class TheirCapture {
  readonly #driver: CudaDriver;
  readonly #cuda: Cuda;
  readonly #mode: number;
  readonly #stream: bigint;
  readonly #arena = new NativeArena();
  readonly #word = this.#arena.out("ptr");
  readonly #int = this.#arena.out("i32");

  constructor(cuda: Cuda, captured: BesideCapture["captured"], mode: BesideCapture["mode"]) {
    this.#cuda = cuda;
    this.#driver = cuda.driver;
    this.#mode = CU_STREAM_CAPTURE_MODE[mode];
    const flags = captured === "a blocking stream" ? CU_STREAM.DEFAULT : CU_STREAM.NON_BLOCKING;
    this.#ok(cuda.device(0).withContext(() => this.#driver.stream.cuStreamCreate(this.#word.$address, flags)));
    this.#stream = this.#word.value;
  }

  begin(): void {
    this.#ok(this.#driver.capture.cuStreamBeginCapture_v2(this.#stream, this.#mode));
  }

  check(what: string): void {
    this.#ok(this.#driver.capture.cuStreamIsCapturing(this.#stream, this.#int.$address));
    assertEquals(this.#int.value, CU_STREAM_CAPTURE_STATUS.ACTIVE, `${what} invalidates the capture`);
    this.#int.value = CU_STREAM_CAPTURE_MODE.GLOBAL;
    this.#ok(this.#driver.capture.cuThreadExchangeStreamCaptureMode(this.#int.$address));
    assertEquals(this.#int.value, CU_STREAM_CAPTURE_MODE.GLOBAL, `${what} leaves the thread in another mode`);
  }

  end(): void {
    this.#ok(this.#driver.capture.cuStreamEndCapture(this.#stream, this.#word.$address));
    this.#ok(this.#driver.graph.cuGraphDestroy(this.#word.value));
  }

  [Symbol.dispose](): void {
    this.#cuda.device(0).withContext(() => this.#driver.stream.cuStreamDestroy_v2(this.#stream));
    this.#arena.close();
  }

  #ok(code: number): void {
    assertEquals(resultName(code), "CUDA_SUCCESS");
  }
}

/** Our own objects. */
class Ours {
  readonly #isHeldUp: boolean;
  readonly #device: CudaDevice;
  readonly #streams;
  readonly #resources;
  readonly #buffers: { close(): void }[] = [];
  readonly #events;
  readonly #exports: { close(): void }[] = [];
  readonly #programs: { close(): void }[] = [];
  readonly #graphs: { close(): void }[] = [];
  readonly #closed: { close(): void }[];

  constructor(cuda: Cuda, captured: BesideCapture["captured"]) {
    const device = cuda.device(0);
    this.#device = device;
    this.#isHeldUp = captured === "a blocking stream";
    const [free, blocking] = [device.createStream(), device.createStream({ nonBlocking: false })];
    this.#streams = {
      "non-blocking": free,
      blocking,
      legacy: device.defaultStream,
      "per-thread": device.perThreadStream,
    };
    const own = new DeviceMemoryResource(device, {});
    this.#resources = {
      pool: device.memory,
      "own pool": own,
      pinned: new PinnedMemoryResource(device),
      managed: new ManagedMemoryResource(device),
      synchronous: new SynchronousMemoryResource(device),
    };
    this.#events = [free.record(), blocking.record()];
    const buffer = device.memory.allocate(16, { stream: free });
    const graph = free.capture(() => buffer.fill(1, { stream: free }));
    for (let i = 0; i < 3; i++) this.#graphs.push(graph.instantiate());
    for (let i = 0; i < 3; i++) this.#programs.push(device.loadPtx(addPtx));
    this.#closed = [...this.#events, buffer, graph, own, free, blocking];
  }

  /** @param isBeside whether a capture is active: then no call is made that the driver would have to refuse */
  act({ act, kind, home, at }: Step, isBeside: boolean): void {
    const stream = this.#streams[home];
    const isRefused = isBeside && this.#isHeldUp && home === "legacy";
    const pick = <T>(list: T[]): T | undefined => list.splice(at % Math.max(1, list.length), 1)[0];
    const event = this.#events[at % 2];
    if (act === "allocate" && !isRefused) this.#buffers.push(this.#resources[kind].allocate(64, { stream }));
    else if (act === "close a buffer") pick(this.#buffers)?.close();
    else if (act === "fill" && !isRefused) {
      const buffer = this.#resources.pool.allocate(64, { stream });
      buffer.fill(at, { stream });
      this.#buffers.push(buffer);
    } else if (act === "record" && !isRefused && event !== undefined) stream.record(event);
    else if (act === "ask an event") event?.isDone;
    else if (act === "wait for an event") event?.synchronize();
    else if (act === "ask a stream" && !isRefused) stream.isDone;
    else if (act === "wait for a stream" && !isRefused) stream.synchronize();
    else if (act === "ask a pool") this.#resources.pool.pool.use;
    else if (act === "trim a pool") this.#resources["own pool"].pool.trim();
    else if (act === "make a pool") new DeviceMemoryResource(this.#device, {}).close();
    else if (act === "load code") this.#programs.push(this.#device.loadPtx(addPtx));
    else if (act === "unload code") pick(this.#programs)?.close();
    else if (act === "destroy a graph") pick(this.#graphs)?.close();
    else if (act === "export" && !isRefused) {
      const buffer = this.#resources[kind].allocate(64, { stream });
      const view = StridedMemoryView.fromBuffer(buffer, { shape: [64], dtype: "uint8" });
      this.#exports.push(view.toDlpack(kind === "pinned" ? {} : { stream: this.#streams["non-blocking"] }));
      buffer.close();
    } else if (act === "release") {
      // Only the context knows what the consumer has done, and it cannot be queried while a stream is captured; and
      // the capture of a stream that ignores the legacy one cannot be detected.
      if (!isBeside || this.#isHeldUp) pick(this.#exports)?.close();
    } else if (act === "reclaim memory") reclaim();
  }

  close(): void {
    const all = [this.#exports, this.#buffers, this.#programs, this.#graphs, this.#closed];
    for (const one of all.flat()) one.close();
    this.#device.synchronize();
    reclaim();
    drainFrees();
  }
}
