/**
 * Runs a kernel: decides which thread runs next, and for how long.
 *
 * CUDA guarantees no order between threads except at barriers and collectives, so the seed chooses one of many: blocks
 * in any order and a few at once; threads from first to last, from last to first or at random; each until it must wait,
 * or for only a few instructions before another gets a turn. A race-free kernel gives the same result in all of them.
 *
 * @module
 */
import { type ExecutionState, FRAME_CHANGED, type Op, type PtxMemory } from "./execution_state.ts";
import type { Program, Uniform } from "./program.ts";
import type { PrintTarget } from "./system_calls.ts";
import { Block, Thread } from "./thread.ts";

/** A launch of a kernel. */
export interface PtxLaunch {
  /** Blocks along x, y and z. */
  readonly grid: readonly [number, number, number];
  /** Threads per block along x, y and z. */
  readonly block: readonly [number, number, number];
  /** The parameters, at their offsets. */
  readonly params: Uint8Array;
  /** Shared memory beyond that of the kernel's own variables, in bytes. */
  readonly dynamicSharedBytes: number;
  /** Device memory. */
  readonly memory: PtxMemory;
  /** Addresses of the module's variables. */
  readonly globals: ReadonlyMap<string, bigint>;
  /** Selects the order of threads and blocks. Default: 0, which has no special meaning. */
  readonly seed?: number;
  /** Instructions that all threads together may execute before the launch is stopped. Default: unlimited. */
  readonly maxInstructions?: number;
  /** Receives what threads print, as bytes: `printf` to stdout, `assert` to stderr. Default: output is dropped. */
  readonly print?: (text: Uint8Array, to: PrintTarget) => void;
}

/** Pseudorandom numbers in [0, 1), the same for the same seed (mulberry32). */
function generator(seed: number): () => number {
  let word = seed | 0;
  return () => {
    word = (word + 0x6d2b79f5) | 0;
    let mixed = Math.imul(word ^ (word >>> 15), 1 | word);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** A turn long enough for a thread to reach the next barrier or its end, unless it spins on memory. */
const LONG_TURN = 20_000;

/** Maximum number of resident threads, as on a multiprocessor. */
const RESIDENT = 2048;

/** How turns are scheduled. */
interface Order {
  /** Which ready thread runs next: the last that became ready, or any. */
  readonly pick: "last" | "any";
  /** Whether the threads of a block run from last to first. */
  readonly reversed: boolean;
  /** Maximum number of instructions per turn; null for long turns. */
  readonly turn: number | null;
}

function chooseOrder(random: () => number): Order {
  const choice = Math.floor(random() * 8);
  if (choice < 2) return { pick: "last", reversed: choice === 0, turn: null };
  return { pick: "any", reversed: false, turn: choice === 2 ? null : 2 ** (choice - 1) };
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

// law ptx/permutation: ptx/kernels, ptx/threads, sim/kernels
/** A permutation of the numbers below `count`: steps by a stride coprime to it. */
function* permutation(count: number, random: () => number): Generator<number> {
  let step = 1 + Math.floor(random() * Math.min(count, 1 << 20));
  while (greatestCommonDivisor(step, count) !== 1) step--;
  let at = Math.floor(random() * count);
  for (let i = 0; i < count; i++) {
    yield at;
    at = (at + step) % count;
  }
}

/** Runs a thread until it yields or its turn ends. @returns whether it can continue */
function turn(state: ExecutionState, ops: readonly Op[], thread: Thread, instructions: number): boolean {
  state.thread = thread;
  let { pc, base } = thread;
  let left = instructions;
  while (left > 0) {
    const op = ops[pc];
    if (op === undefined) throw new Error(`there is no instruction ${pc}`);
    left--;
    const next = op(base);
    if (next >= 0) {
      pc = next;
    } else if (next === FRAME_CHANGED) {
      pc = thread.pc;
      base = thread.base;
    } else {
      state.executed += instructions - left;
      return false;
    }
  }
  thread.pc = pc;
  state.executed += instructions;
  return true;
}

/** A running launch. */
class Execution {
  readonly #state: ExecutionState;
  readonly #ops: readonly Op[];
  readonly #program: Program;
  readonly #launch: PtxLaunch;
  readonly #random: () => number;
  readonly #order: Order;
  readonly #threads: number;
  readonly #blocks: Generator<number>;
  readonly #resident: Block[] = [];
  /** Parts of the state's memory that no block occupies. */
  readonly #places: number[];
  readonly #placeOf = new Map<Block, number>();

  // law ptx/Execution.constructor: sim/output, ptx/faults
  constructor(program: Program, launch: PtxLaunch) {
    const { grid, block, dynamicSharedBytes, globals } = launch;
    this.#program = program;
    this.#launch = launch;
    this.#random = generator(launch.seed ?? 0);
    this.#order = chooseOrder(this.#random);
    this.#threads = block[0] * block[1] * block[2];
    const count = grid[0] * grid[1] * grid[2];
    const most = Math.max(1, Math.min(count, Math.floor(RESIDENT / this.#threads), 4));
    const atOnce = 1 + Math.floor(this.#random() * most);
    const uniform: Uniform = {
      grid,
      block,
      dynamicSharedBytes,
      sharedBytes: dynamicSharedBytes === 0
        ? program.staticSharedBytes
        : program.dynamicSharedStart + dynamicSharedBytes,
      globals,
      poison: Math.floor(this.#random() * 4294967296) | 0,
    };
    const { state, ops } = program.bind(uniform, atOnce * this.#threads);
    this.#state = state;
    this.#ops = ops;
    this.#places = Array.from({ length: atOnce }, (_, i) => i);
    this.#blocks = permutation(count, this.#random);
    state.ready.length = 0;
    state.executed = 0;
    state.limit = launch.maxInstructions ?? Infinity;
    state.failure = null;
    state.print = launch.print ?? (() => {});
    state.memory = launch.memory;
    state.params = new DataView(launch.params.buffer, launch.params.byteOffset, launch.params.byteLength);
  }

  // law ptx/Execution.run: sim/kernels, sim/output, ptx/faults
  run(): void {
    const { ready } = this.#state;
    for (;;) {
      while (this.#places.length > 0 && this.#begin());
      const thread = this.#next();
      if (thread === null) {
        const [block] = this.#resident;
        if (block !== undefined) return this.#deadlock(block);
        if (this.#state.failure !== null) throw this.#state.failure;
        return;
      }
      const left = this.#state.limit - this.#state.executed;
      if (left <= 0) this.#exhausted(thread, this.#state.limit);
      const length = this.#order.turn === null ? LONG_TURN : 1 + Math.floor(this.#random() * this.#order.turn);
      if (turn(this.#state, this.#ops, thread, Math.min(length, left))) {
        // Other threads get a turn before this one runs again.
        if (this.#order.pick === "last") ready.unshift(thread);
        else ready.push(thread);
      } else if (thread.block.live === 0) {
        this.#end(thread.block);
      }
    }
  }

  /** Takes a ready thread. */
  #next(): Thread | null {
    const { ready } = this.#state;
    const last = ready.pop();
    if (last === undefined) return null;
    if (this.#order.pick === "last") return last;
    const at = Math.floor(this.#random() * (ready.length + 1));
    const other = ready[at];
    if (other === undefined) return last;
    ready[at] = last;
    return other;
  }

  /** Starts the next block, if there is one. */
  #begin(): boolean {
    const next = this.#blocks.next();
    if (next.done === true) return false;
    const place = this.#places.pop();
    if (place === undefined) throw new Error("there is no room for another block");
    const { grid, block: shape } = this.#launch;
    const [x, y] = grid;
    const index = next.value;
    const coordinates = [index % x, Math.floor(index / x) % y, Math.floor(index / (x * y))] as const;
    const state = this.#state;
    const shared = new Int32Array(Math.ceil(state.sharedBytes / 4)).fill(state.poison);
    const block = new Block(state, coordinates, shape, new DataView(shared.buffer, 0, state.sharedBytes));
    const { entry } = this.#program;
    for (let i = 0; i < this.#threads; i++) {
      const slot = place * this.#threads + i;
      const thread = new Thread(block, i, { regStart: slot * state.regStride, localStart: slot * state.localStride });
      thread.pc = entry.pc;
      entry.enter(state, thread);
      block.threads.push(thread);
    }
    block.live = this.#threads;
    state.ready.push(...(this.#order.reversed ? block.threads : block.threads.toReversed()));
    this.#resident.push(block);
    this.#placeOf.set(block, place);
    return true;
  }

  #end(block: Block): void {
    const place = this.#placeOf.get(block);
    if (place === undefined) return;
    this.#placeOf.delete(block);
    this.#places.push(place);
    this.#resident.splice(this.#resident.indexOf(block), 1);
  }

  #exhausted(thread: Thread, most: number): never {
    this.#state.thread = thread;
    const what =
      `the kernel ${this.#state.kernel} has not ended after ${most} instructions in all its threads: it spins, ` +
      "or waits for something only the host or other work can do; if it needs that many, raise maxInstructions";
    return this.#state.fault("instruction limit", 0, what);
  }

  #deadlock(block: Block): never {
    const [first] = block.threads.filter(({ state }) => state === "waiting");
    if (first !== undefined) this.#state.thread = first;
    const { line, what } = block.stuck();
    return this.#state.fault("deadlock", line, what);
  }
}

/** Runs all threads of a launch to completion. */
export function execute(program: Program, launch: PtxLaunch): void {
  new Execution(program, launch).run();
}
