/**
 * What the work of a graph uses: kept until neither the graph, nor anything instantiated from it, nor a launch that is
 * under way needs it.
 *
 * @module
 */
import { afterCaptures, isCapturing } from "./captures.ts";
import type { CudaDevice } from "./device.ts";
import type { CudaStream } from "./stream.ts";

/** Something that captured work uses. */
export interface Used {
  /** The stream on which it is given back, if it is given back in the order of one. */
  readonly home: CudaStream | null;
  /** Gives it back. */
  readonly release: () => void;
}

/** All that a graph uses, and the streams that it was launched on. */
export class GraphUse {
  readonly #device: CudaDevice;
  readonly #used: readonly Used[];
  /** Retained. */
  readonly #streams = new Set<CudaStream>();
  readonly #releaseDevice: () => void;
  #holders = 0;

  /**
   * What a capture has found its work to use.
   *
   * @param used what is given back in the end
   */
  constructor(device: CudaDevice, used: readonly Used[]) {
    this.#device = device;
    this.#used = used;
    this.#releaseDevice = device.keep();
  }

  /** Keeps everything until the returned function is called. */
  hold(): () => void {
    this.#holders++;
    let holding = true;
    return () => {
      if (!holding) return;
      holding = false;
      if (--this.#holders === 0) afterCaptures(this.#device.driver, () => this.#release());
    };
  }

  /** Notes that the work is about to be launched on a stream. */
  launchedOn(stream: CudaStream): void {
    if (this.#streams.has(stream)) return;
    for (const other of this.#streams) {
      // While anything is captured no stream may be asked.
      if (!other.isClosed || isCapturing(this.#device.driver) || isBusy(other)) continue;
      this.#streams.delete(other); // a closed stream whose work is done has nothing left to say
      other.release();
    }
    stream.retain();
    this.#streams.add(stream);
  }

  /** What has a home stream is given back there, behind the launches; the rest when these are over. */
  #release(): void {
    const busy = [...this.#streams].filter(isBusy);
    const others: (() => void)[] = [];
    for (const { home, release } of this.#used) {
      if (home === null) others.push(release);
      else {
        for (const stream of busy) follow(home, stream);
        release();
      }
    }
    const finish = () => {
      for (const release of others) release();
      for (const stream of this.#streams) stream.release();
      this.#releaseDevice();
    };
    if (busy.length === 0 || others.length === 0) finish();
    else void Promise.allSettled(busy.map((stream) => stream.completed())).then(finish);
  }
}

/** Whether work of a stream is under way. One whose context has failed does nothing any more. */
function isBusy(stream: CudaStream): boolean {
  try {
    return !stream.isDone;
  } catch {
    return false;
  }
}

function follow(home: CudaStream, stream: CudaStream): void {
  try {
    home.wait(stream);
  } catch {
    // The context has failed: nothing runs in it any more that could use the memory.
  }
}
