/**
 * Native threads that do parts of one job, in rounds, while JavaScript does other work.
 *
 * @module
 */
import { cString, FfiError, type Libc, libc, littleEndian, NativeArena } from "../ffi/mod.ts";
import { call_ring, callTaker, entryBytes, type NativeCall, roundBytes, roundSemaphore } from "./call_ring.ts";

/** At least the size of a semaphore, of a signal set and of a thread's attributes on both architectures. */
const objectBytes = 128;

/** `how` of pthread_sigmask: adds a set to the blocked signals, or replaces them (signal.h). */
const SIG_BLOCK = 0;
const SIG_SETMASK = 2;

/** The capacity of a team. */
export interface TeamSize {
  readonly threads: number;
  /** Rounds in flight: begun and not finished. */
  readonly rounds: number;
  /** Calls per round. */
  readonly calls: number;
}

type Create = Libc["threads"]["pthread_create"];

/** The number of unfinished calls of a round, and the semaphore that is posted when none is left. */
interface Round {
  readonly address: bigint;
  readonly left: DataView;
}

/** Whether native threads are available: machine code is allowed here. */
export function canStartThreads(): boolean {
  return callTaker() !== null;
}

/**
 * A team makes rounds of calls. An idle thread takes the next call, even one of a later round that has begun, so no
 * thread waits for another, and a thread that the system delays makes fewer calls. The threads run only C functions,
 * not even the runtime's signal handlers, and have exited once the team is closed.
 */
export class ThreadTeam {
  readonly #arena = new NativeArena();
  readonly #threads: bigint[] = [];
  readonly #size: TeamSize;
  readonly #rounds: readonly Round[];
  readonly #entries: DataView;
  readonly #permits: bigint;
  readonly #ring: bigint;
  /** Counts of ring entries written, rounds begun, and rounds finished. */
  #written = 0;
  #begun = 0;
  #finished = 0;
  #isClosed = false;
  /** What the threads do after all rounds begun if the team is ended by C calls. */
  #last: readonly NativeCall[] = [];

  // law native/ThreadTeam.constructor: native/thread_team
  private constructor(size: TeamSize) {
    this.#size = size;
    const count = 2 ** Math.ceil(Math.log2(size.rounds * size.calls + 2 * size.threads));
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
   * Starts threads, which wait for calls.
   *
   * @param create starts a thread like `pthread_create`
   * @param masking how signals are kept from them
   * @throws {FfiError} if the system has no threads left, or forbids machine code; no thread is then left behind
   */
  static start(
    size: TeamSize,
    create: Create = libc().threads.pthread_create,
    masking: Masking = newestMasking(),
  ): ThreadTeam {
    const take = callTaker();
    if (take === null) throw new FfiError("Cannot start native threads: the system refuses executable memory");
    const team = new ThreadTeam(size);
    const code = withoutSignals(team.#arena, masking, (attributes) => team.#start(take, create, attributes));
    if (code === 0) return team;
    team.close();
    throw new FfiError(`Cannot start native threads: pthread_create returned ${code}`);
  }

  // law native/ThreadTeam.begin: native/thread_team
  /**
   * Hands the threads a round of calls, which they make as soon as their current calls are done.
   *
   * @throws {FfiError} if this exceeds the team's calls or rounds
   */
  begin(calls: readonly NativeCall[]): void {
    const { rounds, calls: maxCalls } = this.#size;
    const inFlight = this.#begun - this.#finished;
    if (this.#isClosed || inFlight === rounds || calls.length > maxCalls) {
      throw new FfiError(
        `Cannot begin a round of ${calls.length} calls: ${
          this.#isClosed ? "the team is closed" : `${inFlight} are in flight, of ${rounds} of ${maxCalls} calls`
        }`,
      );
    }
    const { address, left } = this.#roundAt(this.#begun++);
    left.setBigUint64(0, BigInt(calls.length), littleEndian);
    for (const call of calls) this.#write(call, address);
    this.#writeLast();
    this.#permit(calls.length);
    if (calls.length === 0) libc().threads.sem_post(address + roundSemaphore); // no last call will post it
  }

  /** Waits for the earliest unfinished round. No-op if there is none. */
  finish(): void {
    if (this.#begun === this.#finished) return;
    const semaphore = this.#roundAt(this.#finished).address + roundSemaphore;
    while (libc().threads.sem_wait(semaphore) !== 0); // interrupted by a signal
    this.#finished++;
  }

  /** Waits for all rounds begun. */
  finishAll(): void {
    while (this.#finished < this.#begun) this.finish();
  }

  /** Whether the team has exactly that many threads, and at least that capacity. */
  fits({ threads, rounds, calls }: TeamSize): boolean {
    return threads === this.#size.threads && rounds <= this.#size.rounds && calls <= this.#size.calls;
  }

  /** Waits for all rounds begun, and for the threads to exit. Closing twice is harmless. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const _ of this.#threads) this.#write([0n], 0n); // taken after all calls begun
    this.#permit(this.#threads.length);
    for (const thread of this.#threads) libc().threads.pthread_join(thread, 0n);
    this.#arena.close();
  }

  // law native/ThreadTeam.endings: native/thread_team
  /**
   * C calls of one argument, which any thread may make once, that end the team when JavaScript's thread has ended
   * without closing it: the threads make some last calls after all rounds begun, and exit.
   *
   * @param last at most as many calls as there are threads
   */
  endings(last: readonly NativeCall[]): readonly NativeCall[] {
    this.#last = [...last, ...this.#threads.map((): NativeCall => [0n])];
    this.#writeLast();
    const [detach, post] = [addressOf("pthread_detach"), addressOf("sem_post")];
    return [
      ...this.#threads.map((thread): NativeCall => [detach, thread]),
      ...this.#last.map((): NativeCall => [post, this.#permits]),
    ];
  }

  /** Closes the team. */
  [Symbol.dispose](): void {
    this.close();
  }

  /** @returns what the last attempt to create a thread returned */
  #start(take: bigint, create: Create, attributes: bigint): number {
    for (let i = 0; i < this.#size.threads; i++) {
      const thread = this.#arena.out("u64");
      const code = create(thread.$address, attributes, take, this.#ring);
      if (code !== 0) return code;
      this.#threads.push(thread.value);
    }
    return 0;
  }

  #write(call: NativeCall, round: bigint): void {
    this.#put(this.#written++, call, round);
  }

  /** Writes the last calls where the threads find them with the next permits, unless others are written over them. */
  #writeLast(): void {
    const { address } = this.#roundAt(0); // nobody waits for it then
    this.#last.forEach((call, i) => this.#put(this.#written + i, call, address));
  }

  #put(index: number, call: NativeCall, round: bigint): void {
    const at = index % (this.#entries.byteLength / entryBytes) * entryBytes;
    call.forEach((word, n) => this.#entries.setBigUint64(at + n * 8, word, littleEndian));
    this.#entries.setBigUint64(at + entryBytes - 8, round, littleEndian);
  }

  /** A thread that gets a permit sees all entries written before it. */
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

  /** Needs no sem_destroy: glibc's semaphores hold no resources. */
  #semaphore(address: bigint): bigint {
    libc().threads.sem_init(address, 0, 0);
    return address;
  }
}

/** How signals are kept from new threads: by an attribute of theirs, or because they inherit this thread's mask. */
export type Masking = "attribute" | "inherited";

/** The C library has the attribute since glibc 2.32. */
function newestMasking(): Masking {
  return addressOf("pthread_attr_setsigmask_np") === 0n ? "inherited" : "attribute";
}

// law native/withoutSignals: native/thread_team
/**
 * Runs `work` with attributes for threads that never receive a signal.
 *
 * This thread should not block signals meanwhile: to terminate a Worker, Bun suspends its thread by a signal, and holds
 * a lock until that has arrived. If it is blocked, and the Worker then waits for the lock, both wait forever.
 */
function withoutSignals<T>(arena: NativeArena, masking: Masking, work: (attributes: bigint) => T): T {
  const { sigfillset, pthread_sigmask } = libc().threads;
  const all = arena.bytes(objectBytes, 16).address;
  const attributesOrMask = arena.bytes(objectBytes, 16).address;
  sigfillset(all);
  if (masking === "attribute") {
    const { pthread_attr_init, pthread_attr_setsigmask_np, pthread_attr_destroy } = libc().threadAttributes;
    pthread_attr_init(attributesOrMask);
    pthread_attr_setsigmask_np(attributesOrMask, all);
    try {
      return work(attributesOrMask);
    } finally {
      pthread_attr_destroy(attributesOrMask);
    }
  }
  pthread_sigmask(SIG_BLOCK, all, attributesOrMask);
  try {
    return work(0n);
  } finally {
    pthread_sigmask(SIG_SETMASK, attributesOrMask, 0n);
  }
}

const addresses = new Map<string, bigint>();

function addressOf(name: string): bigint {
  return addresses.getOrInsertComputed(name, () => libc().loading.dlsym(0n, cString(name)));
}
