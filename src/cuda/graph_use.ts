/**
 * What the work of a graph uses: kept until neither the graph, nor anything instantiated from it, nor a launch that is
 * under way needs it.
 *
 * @module
 */
import { unheard } from "../ffi/unheard.ts";
import { allOf } from "./all_of.ts";
import { afterCaptures, isCapturing } from "./captures.ts";
import type { CudaDevice } from "./device.ts";
import { isSticky } from "./driver.ts";
import { type CudaStream, isLeft } from "./stream.ts";

/** Something that captured work uses. */
export interface Used {
  /** The stream on which it is given back at present, if it is given back in the order of one. */
  readonly home: () => CudaStream | null;
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
      if (!isLeft(other) || isCapturing(this.#device.driver) || isBusy(other.held)) continue;
      this.#streams.delete(other); // a closed stream whose work is done has nothing left to say
      other.release();
    }
    stream.retain();
    this.#streams.add(stream);
  }

  /** What has a home stream is given back there, behind the launches; the rest when these are over. */
  #release(): void {
    const busy = [...this.#streams].map((stream) => stream.held).filter(isBusy);
    const later: (() => void)[] = [];
    const now: (() => void)[] = [];
    for (const { home: at, release } of this.#used) {
      const home = at(); // it may have moved since the capture
      const isOrdered = busy.length === 0 || (home !== null && busy.every((stream) => follows(home, stream)));
      (isOrdered ? now : later).push(release);
    }
    const end = [...[...this.#streams].map((stream) => () => stream.release()), this.#releaseDevice];
    if (later.length === 0) return allOf([...now, ...end]);
    const over = Promise.allSettled(busy.map((stream) => stream.completed()));
    void over.then(() => allOf([...later, ...end])).catch((error) =>
      unheard("giving back what a graph has used", error)
    );
    allOf(now);
  }
}

/** Whether work of a stream is under way. One whose context is lost does nothing any more; one that cannot say may. */
function isBusy(stream: CudaStream): boolean {
  try {
    return !stream.isDone;
  } catch (error) {
    return !isSticky(error);
  }
}

/** Lets a stream wait for another. @returns whether what it does from now on comes after the other's work */
function follows(home: CudaStream, stream: CudaStream): boolean {
  try {
    home.wait(stream);
    return true;
  } catch (error) {
    return isSticky(error); // in a lost context there is no other's work any more
  }
}
