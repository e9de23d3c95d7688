/**
 * Native threads that do parts of one job, in rounds, while JavaScript does something else between the rounds.
 *
 * @module
 */
import { NativeArena } from "./arena.ts";
import { callListRunner, cutCallList, freeCallList, type NativeCall, writeCallList } from "./call_list.ts";
import { FfiError } from "./errors.ts";
import { libc } from "./libc.ts";
import { cString } from "./text.ts";

/** At least the size of a barrier, a mutex and a set of signals on both architectures. */
const objectBytes = 128;

/** `how` of pthread_sigmask: the signals of the set are blocked (signal.h). */
const SIG_BLOCK = 0n;

/** What is called before the first round: three times, and the first round begins. */
const opening = 3;

/** Addresses of functions that the threads call themselves. */
interface Addresses {
  readonly lock: bigint;
  readonly unlock: bigint;
  readonly wait: bigint;
  readonly mask: bigint;
}

let addresses: Addresses | undefined;

function addressOf(name: string): bigint {
  return libc().loading.dlsym(0n, cString(name));
}

function found(): Addresses {
  addresses ??= {
    lock: addressOf("pthread_mutex_lock"),
    unlock: addressOf("pthread_mutex_unlock"),
    wait: addressOf("pthread_barrier_wait"),
    mask: addressOf("pthread_sigmask"),
  };
  return addresses;
}

/** Whether native threads can be had: machine code is allowed here. */
export function canHaveTeams(): boolean {
  return callListRunner() !== null;
}

/**
 * A team goes through its rounds in step with JavaScript: `next` waits until everybody is done with a round, and lets
 * them begin the one after it. The threads run C functions alone, no signal handler of the runtime included, and are gone
 * once the team is closed.
 */
export class NativeTeam {
  readonly #arena = new NativeArena();
  readonly #barrier: bigint;
  readonly #threads: bigint[] = [];
  readonly #lists: bigint[] = [];
  #left: number;

  private constructor(rounds: number) {
    this.#left = rounds + 1;
    this.#barrier = this.#arena.bytes(objectBytes, 16).address;
  }

  /**
   * Starts a thread for every lane.
   *
   * @param lanes for every thread, what it calls in each round; null for nothing
   * @param create starts a thread, as `pthread_create` does
   * @throws {FfiError} if the system has no threads left, or forbids machine code; none runs then
   */
  static start(
    lanes: readonly (readonly (NativeCall | null)[])[],
    create = libc().threads.pthread_create,
  ): NativeTeam {
    const run = callListRunner();
    if (run === null) throw new FfiError("Cannot start native threads: the system refuses executable memory");
    const team = new NativeTeam(lanes[0]?.length ?? 0);
    const { threads } = libc();
    const arena = team.#arena;
    const gate = arena.bytes(objectBytes, 16).address; // zeroes are an open mutex
    const signals = arena.bytes(objectBytes, 16).address;
    threads.sigfillset(signals);
    threads.pthread_barrier_init(team.#barrier, 0n, lanes.length + 1);
    threads.pthread_mutex_lock(gate); // nobody begins before it is known that everybody is there
    const { lock, unlock, wait, mask } = found();
    let code = 0;
    for (const lane of lanes) {
      const rounds = lane.flatMap((call): NativeCall[] => [[wait, team.#barrier], ...(call === null ? [] : [call])]);
      const list = writeCallList([[mask, SIG_BLOCK, signals, 0n], [lock, gate], [unlock, gate], ...rounds, [
        wait,
        team.#barrier,
      ]]);
      team.#lists.push(list);
      const thread = arena.out("u64");
      code = create(thread.$address, 0n, run, list);
      if (code !== 0) break;
      team.#threads.push(thread.value);
    }
    if (code !== 0) {
      for (const list of team.#lists) cutCallList(list, opening);
      team.#left = 0;
    }
    threads.pthread_mutex_unlock(gate);
    if (code === 0) return team;
    team.close();
    throw new FfiError(`Cannot start native threads: pthread_create returned ${code}`);
  }

  /** Waits until the round is done, and lets the next one begin; at first, lets the first begin. */
  next(): void {
    if (this.#left === 0) throw new FfiError("Cannot begin another round: the team has done them all");
    this.#left--;
    libc().threads.pthread_barrier_wait(this.#barrier);
  }

  /** Does the rounds that are left, and waits for the threads to end. Closing twice is harmless. */
  close(): void {
    while (this.#left > 0) this.next();
    const { threads } = libc();
    if (this.#lists.length === 0) return;
    for (const thread of this.#threads) threads.pthread_join(thread, 0n);
    threads.pthread_barrier_destroy(this.#barrier);
    for (const list of this.#lists.splice(0)) freeCallList(list);
    this.#arena.close();
  }

  /** Ends the team. */
  [Symbol.dispose](): void {
    this.close();
  }
}
