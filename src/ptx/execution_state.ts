/**
 * The state that compiled instructions work on: registers, the memory spaces, and the running thread.
 *
 * @module
 */
import { PtxFault, type PtxFaultKind } from "./error.ts";
import type { PrintTarget } from "./system_calls.ts";
import type { Thread } from "./thread.ts";

/** Device memory, as the owner of the addresses provides it. */
export interface PtxMemory {
  /**
   * Resolves an address to the bytes behind it.
   *
   * @param address of the first byte, a multiple of `bytes`
   * @param bytes 1, 2, 4, 8 or 16, or up to 32 for a vector
   * @param access what the instruction does to them; an atomic access reads and writes
   * @returns a view that contains them, and their offset in it
   * @throws for an address at which nothing is allocated, or at which this access is not allowed; the launch then ends
   *   with a PtxFault of the kind "illegal address" whose cause is the error
   */
  view(
    address: bigint,
    bytes: number,
    access: PtxAccess,
  ): { readonly bytes: DataView; readonly offset: number };
}

/** What an instruction does to memory. `volatile`: in a way that other threads may rely on, as with atomics. */
export type PtxAccess = "read" | "write" | "atomic" | "volatile read" | "volatile write";

/**
 * An instruction bound to a state.
 *
 * @returns the next instruction, or YIELDED or FRAME_CHANGED; `t` is the thread's frame
 */
export type Op = (t: number) => number;

/** A compiled instruction, not yet bound: `next` is the instruction after it, `base` the first of its function. */
export type Compiled = (state: ExecutionState, next: number, base: number) => Op;

/** Returned by an instruction after which the thread cannot continue now: it waits, or has exited. */
export const YIELDED = -1;

/** Returned by calls and returns: the thread continues at its own `pc` and in another frame. */
export const FRAME_CHANGED = -2;

/** A function of a kernel, as its callers see it. */
export interface Callee {
  /** Its first instruction. */
  readonly pc: number;
  readonly frameBytes: number;
  readonly localBytes: number;
  /** Offsets of parameters and results in its local memory. */
  readonly params: readonly number[];
  readonly results: readonly number[];
  /** Initialises the frame at the thread's base. */
  enter(state: ExecutionState, thread: Thread): void;
}

/**
 * Upper words of generic addresses into the spaces that are private to a thread, a block or a launch. No device
 * address reaches them: device addresses have at most 49 bits, on the largest systems.
 */
export const windows: { readonly shared: number; readonly local: number; readonly param: number } = {
  shared: 0x7ffe0000,
  local: 0x7fff0000,
  param: 0x7ffd0000,
};

const noBytes = new DataView(new ArrayBuffer(0));
const address = new DataView(new ArrayBuffer(8));

/** The execution state of a kernel, reused by later launches. */
export class ExecutionState {
  /** Name of the kernel, for error messages. */
  readonly kernel: string;
  /** Frames of all resident threads. Registers of up to 32 bits take a word each, smaller ones zero-extended. */
  readonly regs: DataView;
  /** Local memory of all resident threads. */
  readonly locals: DataView;
  /** Local memory of one thread, in bytes. */
  readonly localStride: number;
  /** Frames of one thread, in bytes. */
  readonly regStride: number;

  /** Device memory of this launch. */
  memory: PtxMemory = {
    view: () => {
      throw new RangeError("this launch has no memory");
    },
  };
  /** Parameters of this launch. */
  params: DataView = noBytes;
  /** Static and dynamic shared memory of a block, in bytes. */
  sharedBytes = 0;
  /** Instructions executed so far, which the clock registers count. */
  executed = 0;
  /** Receives the text that the kernel prints, as bytes. */
  print: (text: Uint8Array, to: PrintTarget) => void = () => {};
  /** Why the launch has failed, while other threads still run. */
  failure: PtxFault | null = null;
  /** Instructions that may be executed before the launch is stopped. */
  limit = Infinity;
  /** The value of registers and memory that were never written; different in each launch. */
  poison = 0;
  /** Runnable threads. */
  readonly ready: Thread[] = [];
  #thread: Thread | null = null;
  readonly #callees: ReadonlyMap<string, Callee>;

  /** The view that the last address resolved to. */
  view: DataView = noBytes;
  /** Its offset in `view`. */
  offset = 0;

  /**
   * @param kernel its name
   * @param threads maximum number of resident threads
   * @param regStride bytes for the frames of one thread
   * @param localStride bytes of local memory per thread
   * @param callees functions by name
   */
  constructor(
    kernel: string,
    threads: number,
    regStride: number,
    localStride: number,
    callees: ReadonlyMap<string, Callee>,
  ) {
    this.kernel = kernel;
    this.regs = new DataView(new ArrayBuffer(threads * regStride));
    this.locals = new DataView(new ArrayBuffer(threads * localStride));
    this.regStride = regStride;
    this.localStride = localStride;
    this.#callees = callees;
  }

  /** Looks up a function by name. */
  callee(name: string): Callee {
    const callee = this.#callees.get(name);
    if (callee === undefined) throw new Error(`${name} is not a function of the kernel ${this.kernel}`);
    return callee;
  }

  /** Whether there is a function of this name. */
  has(name: string): boolean {
    return this.#callees.has(name);
  }

  /** Prints text: one character for each byte. */
  printText(text: string, to: PrintTarget): void {
    this.print(Uint8Array.from(text, (character) => character.charCodeAt(0)), to);
  }

  /** Validates a barrier number. */
  barrier(number: number, line: number): number {
    return number < 16 ? number : this.fault("undefined behaviour", line, `barrier ${number} of 16`);
  }

  /** Validates the number of threads that a barrier specifies. */
  participants(count: number, line: number): number {
    if (count > 0 && count % 32 === 0) return count;
    return this.fault("undefined behaviour", line, `a barrier of ${count} threads, which is not a number of warps`);
  }

  /** The running thread. */
  get thread(): Thread {
    if (this.#thread === null) throw new Error("no thread is running");
    return this.#thread;
  }
  set thread(thread: Thread) {
    this.#thread = thread;
  }

  // law ptx/ExecutionState.fault: sim/output, ptx/faults
  /** Stops the launch with this fault, or with its earlier failure if it has one. */
  fault(kind: PtxFaultKind, line: number, what: string, cause?: unknown): never {
    throw this.failure ?? this.#fault(kind, line, what, cause);
  }

  // law ptx/ExecutionState.fail: sim/output, ptx/faults
  /** Fails the launch once the other threads have exited, are stuck, or have executed `more` instructions. */
  fail(kind: PtxFaultKind, line: number, what: string, more: number): void {
    this.failure ??= this.#fault(kind, line, what);
    this.limit = Math.min(this.limit, this.executed + more);
  }

  #fault(kind: PtxFaultKind, line: number, what: string, cause?: unknown): PtxFault {
    return new PtxFault(kind, line, `${what} (${this.kernel}, ${this.thread.where()})`, cause);
  }

  #aligned(lo: number, hi: number, bytes: number, line: number): void {
    if ((lo & (bytes - 1)) !== 0) {
      this.fault("misaligned address", line, `${hex(lo, hi)} is not a multiple of the ${bytes} bytes accessed`);
    }
  }

  /** Resolves an address of device memory. */
  global(lo: number, hi: number, bytes: number, access: PtxAccess, line: number): void {
    this.#aligned(lo, hi, bytes, line);
    address.setUint32(0, lo, true);
    address.setInt32(4, hi, true);
    try {
      const { bytes: view, offset } = this.memory.view(address.getBigUint64(0, true), bytes, access);
      this.view = view;
      this.offset = offset;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.fault("illegal address", line, `${access} of ${bytes} bytes at ${hex(lo, hi)}: ${why}`, error);
    }
  }

  /** Resolves an offset into the block's shared memory. */
  shared(lo: number, hi: number, bytes: number, _access: PtxAccess, line: number): void {
    this.#aligned(lo, hi, bytes, line);
    if (hi !== 0 || lo + bytes > this.sharedBytes) {
      const what = `${hex(lo, hi)} is outside the ${this.sharedBytes} bytes of shared memory`;
      this.fault("illegal address", line, what);
    }
    this.view = this.thread.block.shared;
    this.offset = lo;
  }

  /** Resolves an offset into the thread's local memory. */
  local(lo: number, hi: number, bytes: number, _access: PtxAccess, line: number): void {
    this.#aligned(lo, hi, bytes, line);
    if (hi !== 0 || lo + bytes > this.localStride) {
      this.fault("illegal address", line, `${hex(lo, hi)} is outside the ${this.localStride} bytes of local memory`);
    }
    this.view = this.locals;
    this.offset = this.thread.localStart + lo;
  }

  /** Resolves an offset into the kernel's parameters. */
  param(lo: number, hi: number, bytes: number, access: PtxAccess, line: number): void {
    this.#aligned(lo, hi, bytes, line);
    if (hi !== 0 || lo + bytes > this.params.byteLength || !access.endsWith("read")) {
      const what = `${access} at ${hex(lo, hi)} of the ${this.params.byteLength} bytes of parameters`;
      this.fault("illegal address", line, what);
    }
    this.view = this.params;
    this.offset = lo;
  }

  /** Resolves a generic address: its upper word selects the space. */
  generic(lo: number, hi: number, bytes: number, access: PtxAccess, line: number): void {
    if (hi === windows.shared) this.shared(lo, 0, bytes, access, line);
    else if (hi === windows.local) this.local(lo, 0, bytes, access, line);
    else if (hi === windows.param) this.param(lo, 0, bytes, access, line);
    else this.global(lo, hi, bytes, access, line);
  }
}

function hex(lo: number, hi: number): string {
  return `0x${((BigInt(hi >>> 0) << 32n) | BigInt(lo >>> 0)).toString(16)}`;
}
