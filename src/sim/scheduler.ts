/**
 * Decides when queued work runs: never before its dependencies, otherwise as the schedule chooses.
 *
 * @module
 */
import type { Random } from "./random.ts";

/**
 * How the order is chosen among all orders that CUDA allows.
 *
 * - `latest`: nothing runs until it is forced, and then only with what it needs, newest first.
 * - `random`: depending on the seed, work runs early or late, and unrelated work runs along with forced work.
 * - `round-robin`: each stream in turn runs one task, even when nothing is forced: like a lightly loaded GPU.
 */
export type Schedule = "random" | "latest" | "round-robin";

/** All schedules. */
export const schedules: ReadonlySet<Schedule> = new Set(["random", "latest", "round-robin"]);

/** A piece of work in the queue. */
export interface Task {
  /** Increases with every task of a scheduler. */
  readonly id: number;
  /** The stream that the task belongs to, for the round-robin schedule. */
  readonly streamId: number;
  /** Whether it has run. */
  readonly done: boolean;
}

interface Queued extends Task {
  done: boolean;
  run: () => void;
  /** Tasks that must run before it; cleared once it has run, so that history can be garbage-collected. */
  dependencies: readonly Queued[];
  /** Number of dependencies that have not run. */
  missing: number;
  dependents: Queued[];
  /** Its index in the list of ready tasks, or -1. */
  position: number;
}

/** Maximum number of queued tasks: beyond it, as with a real queue, the caller waits for the oldest. */
const capacity = 4096;

/** Runs tasks in an order that respects their dependencies. */
export class Scheduler {
  readonly #schedule: Schedule;
  readonly #random: Random;
  /** How eager the random schedule is: the chance that one more ready task runs when a call is made. */
  readonly #eagerness: number;
  readonly #ready: Queued[] = [];
  #lastId = 0;
  #lastStreamId = 0;
  #queued = 0;

  /** Creates a scheduler with an empty queue. */
  constructor(schedule: Schedule, random: Random) {
    this.#schedule = schedule;
    this.#random = random;
    this.#eagerness = [0, 0.1, 0.5, 0.9][random.below(4)] ?? 0;
  }

  /** The number of the task that was enqueued last. */
  get lastId(): number {
    return this.#lastId;
  }

  /** Tasks that have not run. */
  get queued(): number {
    return this.#queued;
  }

  // law sim/Scheduler.enqueue: sim/memory
  /** Queues a task that may run once all its dependencies have. */
  enqueue(streamId: number, dependencies: Iterable<Task | null>, run: () => void): Task {
    const waited = new Set<Queued>();
    for (const task of dependencies) if (task !== null && !task.done) waited.add(task as Queued); // made only here
    const task: Queued = {
      id: ++this.#lastId,
      streamId,
      done: false,
      run,
      dependencies: [...waited],
      missing: waited.size,
      dependents: [],
      position: -1,
    };
    for (const dependency of waited) dependency.dependents.push(task);
    this.#queued++;
    if (task.missing === 0) this.#makeReady(task);
    while (this.#queued > capacity && this.#stepOldest());
    return task;
  }

  /** Runs what the schedule runs on each driver call: nothing, or some of the ready tasks. */
  progress(): void {
    if (this.#schedule === "round-robin") this.#stepInTurn();
    else if (this.#schedule === "random") {
      while (this.#random.chance(this.#eagerness) && this.#stepAny());
    }
  }

  /** Runs a task, after all its dependencies. */
  force(task: Task | null): void {
    if (task === null || task.done) return;
    const target = task as Queued; // made only by `enqueue`
    switch (this.#schedule) {
      case "latest":
        return this.#runNeeded(target);
      case "round-robin":
        while (!target.done && this.#stepInTurn());
        return;
      case "random":
        while (!target.done && this.#random.chance(0.9) && this.#stepAny());
        return this.#runNeeded(target);
    }
  }

  /** Runs everything in the queue. */
  forceAll(): void {
    switch (this.#schedule) {
      case "latest":
        while (this.#stepNewest());
        return;
      case "round-robin":
        while (this.#stepInTurn());
        return;
      case "random":
        while (this.#stepAny());
    }
  }

  /** Whether `later` cannot run before `earlier` has. */
  follows(later: Task | null, earlier: Task): boolean {
    if (earlier.done || later === earlier) return true;
    const seen = new Set<Queued>();
    const open = later === null ? [] : [later as Queued]; // made only by `enqueue`
    for (let task = open.pop(); task !== undefined; task = open.pop()) {
      if (task === earlier) return true;
      if (seen.has(task) || task.id < earlier.id) continue; // a task depends on older ones only
      seen.add(task);
      open.push(...task.dependencies);
    }
    return false;
  }

  /** Runs a task and all its dependencies: of several that could run, the newest first. */
  #runNeeded(target: Queued): void {
    const stack = [target];
    for (let task = stack.at(-1); task !== undefined; task = stack.at(-1)) {
      if (task.done) stack.pop();
      else if (task.missing === 0) this.#run(task);
      else stack.push(...task.dependencies.filter((one) => !one.done).sort((a, b) => a.id - b.id));
    }
  }

  #stepAny(): boolean {
    return this.#step(this.#ready[this.#random.below(this.#ready.length)]);
  }

  #stepNewest(): boolean {
    return this.#step(this.#best((a, b) => a.id > b.id));
  }

  #stepOldest(): boolean {
    return this.#step(this.#best((a, b) => a.id < b.id));
  }

  /** Runs a task of the next stream that has a ready one, counting from the stream that ran last. */
  #stepInTurn(): boolean {
    // Streams that have had their turn come last.
    const distance = ({ streamId }: Task) => streamId > this.#lastStreamId ? streamId : streamId + 2 ** 32;
    const next = this.#best((a, b) => distance(a) < distance(b) || (a.streamId === b.streamId && a.id < b.id));
    if (next !== undefined) this.#lastStreamId = next.streamId;
    return this.#step(next);
  }

  #best(better: (a: Queued, b: Queued) => boolean): Queued | undefined {
    let best: Queued | undefined;
    for (const task of this.#ready) if (best === undefined || better(task, best)) best = task;
    return best;
  }

  #step(task: Queued | undefined): boolean {
    if (task === undefined) return false;
    this.#run(task);
    return true;
  }

  #run(task: Queued): void {
    this.#leaveReady(task);
    try {
      task.run();
    } finally {
      task.done = true;
      task.run = nothing; // lets its captures be collected
      task.dependencies = [];
      this.#queued--;
      for (const dependent of task.dependents.splice(0)) if (--dependent.missing === 0) this.#makeReady(dependent);
    }
  }

  #makeReady(task: Queued): void {
    task.position = this.#ready.push(task) - 1;
  }

  #leaveReady(task: Queued): void {
    const last = this.#ready.pop();
    if (last === undefined || last === task) return;
    this.#ready[task.position] = last;
    last.position = task.position;
  }
}

function nothing(): void {}
