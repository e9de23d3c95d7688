/**
 * Resources that a graph's work uses: retained until neither the graph, nor an executable of it, nor a launch in flight
 * needs them.
 *
 * @module
 */
import { reportUncaught } from "../../ffi/mod.ts";
import { afterCaptures, isCapturing } from "./active_captures.ts";
import { isSticky, observerOf } from "../../driver/mod.ts";
import type { CudaDevice } from "../device.ts";
import type { CudaEvent } from "../event.ts";
import { ReferenceCount } from "../reference_count.ts";
import type { CudaStream } from "../stream.ts";
import { internals } from "../stream_internals.ts";

/** A resource that captured work uses. */
export interface GraphResource {
  /** The stream in whose order it is currently released; null if in none. */
  readonly home: () => CudaStream | null;
  /** Disposed once. */
  readonly retained: Disposable;
}

/**
 * The last launch of an executable. Earlier launches have completed before it begins, on whatever streams, so they need
 * not be noted.
 */
class LastLaunch implements Disposable {
  /**
   * The stream of the launch, retained, but not the user's object; null if it is foreign, and may be destroyed at any
   * time.
   */
  #stream: CudaStream | null = null;
  /** Marks the end of a launch on a foreign stream. */
  #event: CudaEvent | null = null;
  /** Whether its executable is closed, so that no other launch follows. */
  isLast = false;

  // law device/LastLaunch.prepare: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  /** Called before a launch: anything that may fail, fails now. */
  prepare(stream: CudaStream): void {
    const { successor, isHandleStable } = stream[internals];
    if (this.#stream === successor) return;
    if (isHandleStable) stream.retain();
    else if (this.#event?.device !== stream.device) {
      const event = stream.device.makeEvent(); // of a closed Cuda, too: what is open goes on
      observerOf(stream.device.driver)?.closedByUser(event.handle); // destroyed with the graph
      this.#event?.close();
      this.#event = event;
    }
  }

  // law device/LastLaunch.note: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  /** Called after a launch, even a failed one: noting a launch that never happened is harmless. */
  note(stream: CudaStream): void {
    const { successor, isHandleStable } = stream[internals];
    const before = this.#stream;
    if (before === successor) return;
    if (isHandleStable) this.#stream = successor;
    else {
      if (this.#event !== null) stream.record(this.#event);
      this.#stream = null;
    }
    before?.release();
  }

  /** The work that must complete before anything is released; null if it has. */
  get inFlight(): CudaStream | CudaEvent | null {
    const mark = this.#stream ?? this.#event;
    return mark !== null && isBusy(mark) ? mark : null;
  }

  // law device/LastLaunch.Symbol.dispose: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  /** Releases the stream or event. Called once. */
  [Symbol.dispose](): void {
    this.#stream?.release();
    this.#event?.close();
  }
}

/** How many executables of a graph are noted before closed and completed ones are looked for. */
const minNoted = 16;

/** All resources that a graph uses, and its last launches. */
export class GraphResources {
  readonly #device: CudaDevice;
  readonly #resources: readonly GraphResource[];
  /** Last launches by executable. */
  readonly #launches = new Map<object, LastLaunch>();
  /** How many launches may be noted before completed ones are dropped: twice as many as were left last time. */
  #enough = minNoted;
  readonly #retainedDevice: Disposable;
  readonly #references: ReferenceCount;

  // law device/GraphResources.constructor: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  /**
   * Holds the resources that captured work uses.
   *
   * @param resources released at the end
   */
  constructor(device: CudaDevice, resources: readonly GraphResource[]) {
    this.#device = device;
    this.#resources = resources;
    this.#retainedDevice = device.retained({ evenClosed: true });
    this.#references = new ReferenceCount(() => afterCaptures(device.driver, () => this.#release()));
  }

  // law device/GraphResources.retained: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  /** Retains all resources until the result is disposed. They are released once they are no longer retained. */
  retained(): Disposable {
    const retained = this.#references.retained();
    this.#references.close(); // so that the last release destroys it
    return retained;
  }

  // law device/GraphResources.launchOf: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  /**
   * The record of an executable's last launch.
   *
   * @param exec the executable: its launches run one after the other
   */
  launchOf(exec: object): LastLaunch {
    let launch = this.#launches.get(exec);
    if (launch !== undefined) return launch;
    if (this.#launches.size >= this.#enough) this.#forgetFinished();
    this.#launches.set(exec, launch = new LastLaunch());
    return launch;
  }

  // law device/GraphResources.noteLast: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  /** Notes that an executable will not launch this work again. */
  noteLast(exec: object): void {
    const launch = this.#launches.get(exec);
    if (launch !== undefined) launch.isLast = true;
  }

  // law device/GraphResources.forgetFinished: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  #forgetFinished(): void {
    if (isCapturing(this.#device.driver)) return; // no stream may be queried meanwhile
    for (const [exec, launch] of this.#launches) {
      if (!launch.isLast || launch.inFlight !== null) continue;
      this.#launches.delete(exec);
      launch[Symbol.dispose]();
    }
    this.#enough = Math.max(minNoted, 2 * this.#launches.size);
  }

  // law device/GraphResources.release: device/graph/graph_resources, device/graph/graph, sim/behaviours,
  //   order/deferred_free, device/failures, device/graph/active_captures, device/graph/graph_launches
  /** Releases resources with a home stream there, behind the launches; the rest once the launches have completed. */
  #release(): void {
    const launches = [...this.#launches.values()];
    const inFlight = launches.map((launch) => launch.inFlight).filter((mark) => mark !== null);
    const end = new DisposableStack(); // disposes in reverse order: the device comes last
    end.use(this.#retainedDevice);
    for (const launch of launches) end.use(launch);
    const now = new DisposableStack();
    let mustWait = false;
    for (const { home: at, retained } of this.#resources) {
      const home = at(); // it may have changed since the capture
      const isOrdered = inFlight.length === 0 || (home !== null && inFlight.every((mark) => follows(home, mark)));
      (isOrdered ? now : end).use(retained);
      mustWait ||= !isOrdered;
    }
    if (mustWait) {
      const over = Promise.allSettled(inFlight.map((mark) => mark.completed()));
      void over.then(() => end.dispose()).catch((error) => reportUncaught("releasing a graph's resources", error));
      return now.dispose();
    }
    end.use(now);
    end.dispose();
  }
}

// law device/isBusy: device/graph/graph_resources, device/graph/graph, sim/behaviours, order/deferred_free,
//   device/failures, device/graph/active_captures, device/graph/graph_launches
/** Whether work is in flight. In a lost context none is; if the driver cannot say, it may be. */
function isBusy(mark: CudaStream | CudaEvent): boolean {
  try {
    return !mark.isDone;
  } catch (error) {
    return !isSticky(error);
  }
}

/** Makes a stream wait for a launch. @returns whether its later work comes after the launch */
function follows(home: CudaStream, mark: CudaStream | CudaEvent): boolean {
  try {
    home.wait(mark);
    return true;
  } catch (error) {
    return isSticky(error); // in a lost context there is no work to come after
  }
}
