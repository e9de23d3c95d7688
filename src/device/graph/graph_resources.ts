/**
 * What the work of a graph uses: kept until neither the graph, nor anything instantiated from it, nor a launch that is
 * under way needs it.
 *
 * @module
 */
import { reportUncaught, runAll } from "../../ffi/mod.ts";
import { afterCaptures, isCapturing } from "./active_captures.ts";
import { isSticky, observerOf } from "../../driver/mod.ts";
import type { CudaDevice } from "../device.ts";
import type { CudaEvent } from "../event.ts";
import type { CudaStream } from "../stream.ts";
import { internals } from "../stream_internals.ts";

/** Something that captured work uses. */
export interface GraphResource {
  /** The stream on which it is given back at present, if it is given back in the order of one. */
  readonly home: () => CudaStream | null;
  /** Gives it up. */
  readonly release: () => void;
}

/**
 * The last launch of an executable. Those before it are over before it begins, whatever streams they are on, so that nothing
 * need be known of them.
 */
export class LastLaunch {
  /** The stream that it is on, retained; null if that is somebody else's, who may destroy it at any time. */
  #stream: CudaStream | null = null;
  /** Marks the end of a launch on somebody else's stream. */
  #event: CudaEvent | null = null;
  /** Whether its executable is closed, so that no other launch follows. */
  isLast = false;

  /** Before a launch: what may fail, fails now. */
  prepare(stream: CudaStream): void {
    if (this.#stream === stream) return;
    if (stream[internals].isHandleStable) stream.retain();
    else if (this.#event?.device !== stream.device) {
      const event = stream.device.createEvent();
      observerOf(stream.device.driver)?.closedByUser(event.handle); // it goes with the graph
      this.#event?.close();
      this.#event = event;
    }
  }

  /** After it, or after what was prepared has failed: then it stands for a launch that there is not, and harms nobody. */
  note(stream: CudaStream): void {
    const before = this.#stream;
    if (before === stream) return;
    if (stream[internals].isHandleStable) this.#stream = stream;
    else {
      if (this.#event !== null) stream.record(this.#event);
      this.#stream = null;
    }
    before?.release();
  }

  /** What has to be over before anything is given back; null if it is. */
  get underWay(): CudaStream | CudaEvent | null {
    const mark = this.#stream?.orSuccessor ?? this.#event;
    return mark !== null && isBusy(mark) ? mark : null;
  }

  /** Gives up what it has noted. Called once. */
  release(): void {
    this.#stream?.release();
    this.#event?.close();
  }
}

/** So many executables of a graph are looked after before somebody looks which of them are closed and done. */
const few = 16;

/** All that a graph uses, and what was launched of it last. */
export class GraphResources {
  readonly #device: CudaDevice;
  readonly #used: readonly GraphResource[];
  /** By executable. */
  readonly #launches = new Map<object, LastLaunch>();
  /** How many launches there may be before it is looked which are over: twice as many as were left, so that looking is cheap. */
  #enough = few;
  readonly #releaseDevice: () => void;
  #holders = 0;

  /**
   * What a capture has found its work to use.
   *
   * @param used what is given back in the end
   */
  constructor(device: CudaDevice, used: readonly GraphResource[]) {
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

  /**
   * The last launch of an executable, to be noted.
   *
   * @param exec what is launched: its launches begin one after the other
   */
  launchOf(exec: object): LastLaunch {
    let launch = this.#launches.get(exec);
    if (launch !== undefined) return launch;
    if (this.#launches.size >= this.#enough) this.#forgetWhatIsOver();
    this.#launches.set(exec, launch = new LastLaunch());
    return launch;
  }

  /** Notes that an executable launches nothing of this any more. */
  ended(exec: object): void {
    const launch = this.#launches.get(exec);
    if (launch !== undefined) launch.isLast = true;
  }

  #forgetWhatIsOver(): void {
    if (isCapturing(this.#device.driver)) return; // nothing may be asked meanwhile
    for (const [exec, launch] of this.#launches) {
      if (!launch.isLast || launch.underWay !== null) continue;
      this.#launches.delete(exec);
      launch.release();
    }
    this.#enough = Math.max(few, 2 * this.#launches.size);
  }

  /** What has a home stream is given back there, behind the launches; the rest when these are over. */
  #release(): void {
    const launches = [...this.#launches.values()];
    const busy = launches.map((launch) => launch.underWay).filter((mark) => mark !== null);
    const later: (() => void)[] = [];
    const now: (() => void)[] = [];
    for (const { home: at, release } of this.#used) {
      const home = at(); // it may have moved since the capture
      const isOrdered = busy.length === 0 || (home !== null && busy.every((mark) => follows(home, mark)));
      (isOrdered ? now : later).push(release);
    }
    const end = [...launches.map((launch) => () => launch.release()), this.#releaseDevice];
    if (later.length === 0) return runAll([...now, ...end]);
    const over = Promise.allSettled(busy.map((mark) => mark.completed()));
    void over.then(() => runAll([...later, ...end])).catch((error) =>
      reportUncaught("giving back what a graph has used", error)
    );
    runAll(now);
  }
}

/** Whether work is under way. In a context that is lost none is any more; what cannot be said may be. */
function isBusy(mark: CudaStream | CudaEvent): boolean {
  try {
    return !mark.isDone;
  } catch (error) {
    return !isSticky(error);
  }
}

/** Lets a stream wait for a launch. @returns whether what it does from now on comes after that */
function follows(home: CudaStream, mark: CudaStream | CudaEvent): boolean {
  try {
    home.wait(mark);
    return true;
  } catch (error) {
    return isSticky(error); // in a lost context there is no other's work any more
  }
}
