/**
 * The timer by which UCX wakes a sleeping worker, once a second, to check whether its peers live.
 *
 * A worker need not be woken if the system reports the end of each of its peers at once: by the descriptor of a process
 * or by the socket of a connection within this machine. So its timer is stopped while that is so. UCX checks all the
 * same whenever the worker is awake: it looks at the clock.
 *
 * @module
 */
import { type StoppedTimers, stopTimers } from "../unix/mod.ts";

/** UCX makes the timer once a connection is set up, which can take a few wakeups. */
const maxLooks = 3;

/** Stops and restarts the timer of one worker. */
export class KeepaliveTimer {
  /** The worker's descriptor, an epoll set that UCX owns; null if it has none. */
  readonly #descriptor: () => number | null;
  #stopped: StoppedTimers | null = null;
  /** How often to look for a timer yet. */
  #looks = maxLooks;

  constructor(descriptor: () => number | null) {
    this.#descriptor = descriptor;
  }

  /** Whether {@linkcode stop} would look for the timer. */
  get mayLook(): boolean {
    return this.#looks > 0;
  }

  // law ucx/KeepaliveTimer.stop: ucx/keepalive_timer
  /** Stops the timer. Looks for it a few times at most, until {@linkcode restart} is called. */
  stop(): void {
    if (this.#looks === 0) return;
    this.#looks--;
    const set = this.#descriptor();
    if (set === null) return;
    const stopped = stopTimers(set);
    if (stopped.count === 0) return;
    this.#looks = 0;
    this.#stopped = stopped;
  }

  // law ucx/KeepaliveTimer.restart: ucx/keepalive_timer
  /** Lets the timer run again, until it is stopped once more. */
  restart(): void {
    this.#stopped?.restart();
    this.#stopped = null;
    this.#looks = maxLooks;
  }
}
