/**
 * Native threads that do parts of one job, in rounds, while JavaScript does something else.
 *
 * @module
 */
import { cString, FfiError, type Libc, libc, littleEndian, NativeArena } from "../ffi/mod.ts";
import { call_ring, callTaker, entryBytes, type NativeCall, roundBytes, roundSemaphore } from "./call_ring.ts";

/** At least the size of a semaphore and of a set of signals on both architectures. */
const objectBytes = 128;

/** `how` of pthread_sigmask: a set is added to what is blocked, or takes its place (signal.h). */
const SIG_BLOCK = 0;
const SIG_SETMASK = 2;

/** How much a team can have to do at a time. */
export interface TeamSize {
  readonly threads: number;
  /** Rounds that have begun and are not finished. */
  readonly rounds: number;
  /** Calls in each of them. */
  readonly calls: number;
}

type Create = Libc["threads"]["pthread_create"];

/** How many calls of a round are left, and the semaphore that is posted when none is. */
interface Round {
  readonly address: bigint;
  readonly left: DataView;
}

/** Whether native threads can be had: machine code is allowed here. */
export function canStartThreads(): boolean {
  return callTaker() !== null;
}

/**
 * A team does rounds of calls. A thread that is free takes the next call, also one of a later round that has begun: so
 * no thread waits for another, and one that the system holds up does less. The threads run C functions alone, no signal
 * handler of the runtime included, and are gone once the team is closed.
 */
export class ThreadTeam {
  readonly #arena = new NativeArena();
  readonly #threads: bigint[] = [];
  readonly #size: TeamSize;
  readonly #rounds: readonly Round[];
  readonly #entries: DataView;
  readonly #permits: bigint;
  readonly #ring: bigint;
  /** Entries of the ring that were written, rounds that have begun, and rounds that are finished. */
  #written = 0;
  #begun = 0;
  #finished = 0;
  #isClosed = false;

  private constructor(size: TeamSize) {
    this.#size = size;
    const count = 2 ** Math.ceil(Math.log2(size.rounds * size.calls + size.threads));
    const { address, bytes } = this.#arena.bytes(count * entryBytes, 64);
    this.#entries = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#permits = this.#semaphore(this.#arena.bytes(objectBytes, 64).address);
    this.#rounds = Array.from({ length: size.rounds }, () => this.#round());
    const ring = this.#arena.struct(call_ring);
    ring.mask = BigInt(count - 1);
    ring.entries = address;
    ring.permits = this.#permits;
    ring.sem_wait = addressOf("sem_wait");
    ring.sem_post = addressOf("sem_post");
    this.#ring = ring.$address;
  }

  // law native/ThreadTeam.start: native/thread_team
  /**
   * Starts threads, which wait for what to do.
   *
   * @param create starts a thread, as `pthread_create` does
   * @throws {FfiError} if the system has no threads left, or forbids machine code; none is left behind then
   */
  static start(size: TeamSize, create: Create = libc().threads.pthread_create): ThreadTeam {
    const take = callTaker();
    if (take === null) throw new FfiError("Cannot start native threads: the system refuses executable memory");
    const team = new ThreadTeam(size);
    const code = withoutSignals(team.#arena, () => team.#start(take, create));
    if (code === 0) return team;
    team.close();
    throw new FfiError(`Cannot start native threads: pthread_create returned ${code}`);
  }

  // law native/ThreadTeam.begin: native/thread_team
  /**
   * Lets the threads do the calls of a round, as soon as they are done with what they have.
   *
   * @throws {FfiError} if that are more calls or rounds than the team was made for
   */
  begin(calls: readonly NativeCall[]): void {
    const { rounds, calls: most } = this.#size;
    const inFlight = this.#begun - this.#finished;
    if (this.#isClosed || inFlight === rounds || calls.length > most) {
      throw new FfiError(
        `Cannot begin a round of ${calls.length} calls: ${
          this.#isClosed ? "the team is closed" : `${inFlight} are in flight, of ${rounds} of ${most} calls`
        }`,
      );
    }
    const { address, left } = this.#roundAt(this.#begun++);
    left.setBigUint64(0, BigInt(calls.length), littleEndian);
    for (const call of calls) this.#write(call, address);
    this.#permit(calls.length);
    if (calls.length === 0) libc().threads.sem_post(address + roundSemaphore); // there is no last call to post it
  }

  /** Waits until the earliest round that is not finished is done. Nothing if there is none. */
  finish(): void {
    if (this.#begun === this.#finished) return;
    const semaphore = this.#roundAt(this.#finished).address + roundSemaphore;
    while (libc().threads.sem_wait(semaphore) !== 0); // a signal has interrupted it
    this.#finished++;
  }

  /** Waits until everything that was begun is done. */
  finishAll(): void {
    while (this.#finished < this.#begun) this.finish();
  }

  /** Whether the team has so many threads, and can have as much to do at a time. */
  fits({ threads, rounds, calls }: TeamSize): boolean {
    return threads === this.#size.threads && rounds <= this.#size.rounds && calls <= this.#size.calls;
  }

  /** Waits until all that was begun is done, and the threads have ended. Closing twice is harmless. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const _ of this.#threads) this.#write([0n], 0n); // taken after all that was begun
    this.#permit(this.#threads.length);
    for (const thread of this.#threads) libc().threads.pthread_join(thread, 0n);
    this.#arena.close();
  }

  /** Ends the team. */
  [Symbol.dispose](): void {
    this.close();
  }

  /** @returns what the last attempt to create a thread returned */
  #start(take: bigint, create: Create): number {
    for (let i = 0; i < this.#size.threads; i++) {
      const thread = this.#arena.out("u64");
      const code = create(thread.$address, 0n, take, this.#ring);
      if (code !== 0) return code;
      this.#threads.push(thread.value);
    }
    return 0;
  }

  #write(call: NativeCall, round: bigint): void {
    const at = this.#written++ % (this.#entries.byteLength / entryBytes) * entryBytes;
    call.forEach((word, n) => this.#entries.setBigUint64(at + n * 8, word, littleEndian));
    this.#entries.setBigUint64(at + entryBytes - 8, round, littleEndian);
  }

  /** A thread that gets a permit sees what was written before. */
  #permit(calls: number): void {
    const { sem_post } = libc().threads;
    for (let i = 0; i < calls; i++) sem_post(this.#permits);
  }

  #roundAt(index: number): Round {
    const round = this.#rounds[index % this.#rounds.length];
    if (round === undefined) throw new FfiError("Cannot begin a round: the team was made for none");
    return round;
  }

  #round(): Round {
    const { address, bytes } = this.#arena.bytes(roundBytes, 64);
    this.#semaphore(address + roundSemaphore);
    return { address, left: new DataView(bytes.buffer, bytes.byteOffset, 8) };
  }

  /** glibc's semaphores hold nothing that would have to be destroyed. */
  #semaphore(address: bigint): bigint {
    libc().threads.sem_init(address, 0, 0);
    return address;
  }
}

// law native/withoutSignals: native/thread_team
/** Does something while this thread gets no signals: the threads that it starts never get any. */
function withoutSignals<T>(arena: NativeArena, work: () => T): T {
  const { sigfillset, pthread_sigmask } = libc().threads;
  const [all, before] = [arena.bytes(objectBytes, 16).address, arena.bytes(objectBytes, 16).address];
  sigfillset(all);
  pthread_sigmask(SIG_BLOCK, all, before);
  try {
    return work();
  } finally {
    pthread_sigmask(SIG_SETMASK, before, 0n);
  }
}

const addresses = new Map<string, bigint>();

function addressOf(name: string): bigint {
  return addresses.getOrInsertComputed(name, () => libc().loading.dlsym(0n, cString(name)));
}
