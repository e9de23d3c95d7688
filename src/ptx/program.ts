/**
 * A kernel linked with all functions that it calls: where each begins, and how much memory a thread needs.
 *
 * @module
 */
import { alignUp, type LoweredFunction } from "./function.ts";
import { type Callee, type Compiled, ExecutionState, type Op } from "./execution_state.ts";
import type { Variable } from "./syntax.ts";
import type { Thread } from "./thread.ts";

/** Bytes of frames, and of local memory, that a recursive kernel gets beyond one call of each function. */
const RECURSION_BYTES = 65536;

/** The launch state that all threads share. */
export interface Uniform {
  readonly grid: readonly [number, number, number];
  readonly block: readonly [number, number, number];
  readonly dynamicSharedBytes: number;
  readonly sharedBytes: number;
  readonly globals: ReadonlyMap<string, bigint>;
  readonly poison: number;
}

/** Special registers that are uniform across a launch; the thread's own are below. */
const uniformRegisters: Readonly<Record<string, (launch: Uniform) => number>> = {
  "%ntid.x": ({ block }) => block[0],
  "%ntid.y": ({ block }) => block[1],
  "%ntid.z": ({ block }) => block[2],
  "%nctaid.x": ({ grid }) => grid[0],
  "%nctaid.y": ({ grid }) => grid[1],
  "%nctaid.z": ({ grid }) => grid[2],
  "%nwarpid": () => 64,
  "%smid": () => 0,
  "%nsmid": () => 1,
  "%dynamic_smem_size": ({ dynamicSharedBytes }) => dynamicSharedBytes,
  "%total_smem_size": ({ sharedBytes }) => sharedBytes,
};

const threadRegisters: Readonly<Record<string, (thread: Thread) => number>> = {
  "%tid.x": ({ index, block }) => index % block.shape[0],
  "%tid.y": ({ index, block }) => Math.floor(index / block.shape[0]) % block.shape[1],
  "%tid.z": ({ index, block }) => Math.floor(index / (block.shape[0] * block.shape[1])),
  "%ctaid.x": ({ block }) => block.coordinates[0],
  "%ctaid.y": ({ block }) => block.coordinates[1],
  "%ctaid.z": ({ block }) => block.coordinates[2],
  "%laneid": ({ lane }) => lane,
  "%warpid": ({ index }) => index >> 5,
  "%lanemask_eq": ({ lane }) => 1 << lane,
  "%lanemask_lt": ({ lane }) => (1 << lane) - 1,
  "%lanemask_le": ({ lane }) => (2 << lane) - 1,
  "%lanemask_ge": ({ lane }) => -1 << lane,
  "%lanemask_gt": ({ lane }) => lane === 31 ? 0 : -1 << (lane + 1),
};

/** A function laid out in a kernel. */
class PlacedFunction implements Callee {
  readonly pc: number;
  readonly frameBytes: number;
  readonly localBytes: number;
  readonly params: readonly number[];
  readonly results: readonly number[];
  /** The initial contents of a frame, except for what depends on the thread and the call. */
  readonly #template: Uint8Array<ArrayBuffer>;
  readonly #function: LoweredFunction;
  readonly #threadSlots: readonly { readonly slot: number; readonly read: (thread: Thread) => number }[];
  readonly #localSlots: readonly { readonly slot: number; readonly offset: number }[];

  constructor(lowered: LoweredFunction, pc: number, localAlign: number) {
    this.#function = lowered;
    this.pc = pc;
    this.frameBytes = lowered.frame.bytes;
    this.localBytes = alignUp(lowered.localBytes, localAlign);
    this.params = lowered.params.map(({ offset }) => offset);
    this.results = lowered.results.map(({ offset }) => offset);
    this.#template = new Uint8Array(this.frameBytes);
    const { fixups } = lowered.frame;
    this.#threadSlots = fixups.flatMap((fixup) => {
      const read = fixup.kind === "special" ? threadRegisters[fixup.name] : undefined;
      return read === undefined ? [] : [{ slot: fixup.slot, read }];
    });
    this.#localSlots = fixups.flatMap((fixup) => fixup.kind === "local" ? [fixup] : []);
  }

  /** Fills the template for a launch. */
  prepare(launch: Uniform, shared: ReadonlyMap<string, number>): void {
    const view = new DataView(this.#template.buffer);
    for (let at = 0; at < this.frameBytes; at += 4) view.setInt32(at, launch.poison, true);
    for (const [value, slot] of this.#function.frame.constants) view.setBigUint64(slot, value, true);
    for (const fixup of this.#function.frame.fixups) {
      view.setBigUint64(fixup.slot, 0n, true);
      switch (fixup.kind) {
        case "global": {
          const address = launch.globals.get(fixup.name);
          if (address === undefined) throw new RangeError(`Cannot launch: the variable ${fixup.name} has no address`);
          view.setBigUint64(fixup.slot, BigInt.asUintN(64, address + fixup.offset), true);
          break;
        }
        case "shared":
          view.setInt32(fixup.slot, (shared.get(fixup.name) ?? 0) + fixup.offset, true);
          break;
        case "special": {
          const read = uniformRegisters[fixup.name];
          if (read !== undefined) view.setInt32(fixup.slot, read(launch), true);
        }
      }
    }
  }

  enter(state: ExecutionState, thread: Thread): void {
    const { regs, locals } = state;
    const { base } = thread;
    new Uint8Array(regs.buffer).set(this.#template, base);
    for (const { slot, read } of this.#threadSlots) regs.setInt32(base + slot, read(thread), true);
    for (const { slot, offset } of this.#localSlots) regs.setInt32(base + slot, thread.localBase + offset, true);
    if (this.#function.isEntry) {
      const start = thread.localStart + thread.localBase;
      for (let at = 0; at < this.localBytes; at += 4) locals.setInt32(start + at, state.poison, true);
    }
  }
}

// law ptx/Program: ptx/threads
/** A kernel that can be bound to memory and launched. */
export class Program {
  readonly name: string;
  /** Shared memory that the kernel's own variables take, in bytes. */
  readonly staticSharedBytes: number;
  /** Offset at which the launch's dynamic shared memory begins. */
  readonly dynamicSharedStart: number;
  readonly #code: { readonly compiled: Compiled; readonly base: number }[] = [];
  readonly #placed = new Map<string, PlacedFunction>();
  readonly #shared = new Map<string, number>();
  readonly #regStride: number;
  readonly #localStride: number;
  #bound: { readonly state: ExecutionState; readonly ops: readonly Op[]; readonly threads: number } | null = null;

  /**
   * @param entry the kernel
   * @param functions all functions of the module
   * @param moduleShared shared variables at module scope
   */
  constructor(
    entry: LoweredFunction,
    functions: ReadonlyMap<string, LoweredFunction>,
    moduleShared: ReadonlyMap<string, Variable>,
  ) {
    this.name = entry.name;
    const variables = new Map<string, Variable>();
    const reached = reach(entry, functions);
    // A call's local memory follows its caller's, so all have the alignment that one needs.
    const localAlign = Math.max(...[...reached].map((lowered) => lowered.localAlign));
    for (const lowered of reached) {
      const base = this.#code.length;
      this.#placed.set(lowered.name, new PlacedFunction(lowered, base, localAlign));
      for (const compiled of lowered.code) this.#code.push({ compiled, base });
      for (const [name, variable] of lowered.shared) variables.set(name, variable);
      for (const fixup of lowered.frame.fixups) {
        if (fixup.kind !== "shared") continue;
        const variable = moduleShared.get(fixup.name);
        if (variable !== undefined) variables.set(fixup.name, variable);
      }
    }
    let bytes = 0;
    let align = 16;
    for (const [name, variable] of variables) {
      if (variable.size === null) {
        align = Math.max(align, variable.align);
        continue;
      }
      const offset = Math.ceil(bytes / variable.align) * variable.align;
      this.#shared.set(name, offset);
      bytes = offset + variable.size;
    }
    this.staticSharedBytes = bytes;
    this.dynamicSharedStart = Math.ceil(bytes / align) * align;
    for (const [name, { size }] of variables) if (size === null) this.#shared.set(name, this.dynamicSharedStart);
    const depth = deepest(entry, functions, localAlign);
    const room = (need: number): number => alignUp(need + (depth.recursive ? RECURSION_BYTES : 0), 16);
    this.#regStride = room(depth.frames);
    this.#localStride = room(depth.locals);
  }

  /** Returns the state for a launch, and the instructions bound to it. */
  bind(launch: Uniform, threads: number): { readonly state: ExecutionState; readonly ops: readonly Op[] } {
    let bound = this.#bound;
    if (bound === null || bound.threads < threads) {
      const state = new ExecutionState(this.name, threads, this.#regStride, this.#localStride, this.#placed);
      const ops = this.#code.map(({ compiled, base }, pc) => compiled(state, pc + 1, base));
      bound = { state, ops, threads };
      this.#bound = bound;
    }
    for (const placed of this.#placed.values()) placed.prepare(launch, this.#shared);
    bound.state.poison = launch.poison;
    bound.state.sharedBytes = launch.sharedBytes;
    return bound;
  }

  /** The kernel itself, where every thread begins. */
  get entry(): Callee {
    const entry = this.#placed.get(this.name);
    if (entry === undefined) throw new Error(`the kernel ${this.name} has no code`);
    return entry;
  }
}

/** The kernel, and all functions that it calls, directly or not. */
function reach(entry: LoweredFunction, functions: ReadonlyMap<string, LoweredFunction>): Set<LoweredFunction> {
  const reached = new Set([entry]);
  for (const caller of reached) {
    for (const { name } of caller.calls) {
      const callee = functions.get(name);
      if (callee !== undefined) reached.add(callee);
    }
  }
  return reached;
}

/** The memory that the deepest call chain needs, and whether any chain is recursive. */
function deepest(
  entry: LoweredFunction,
  functions: ReadonlyMap<string, LoweredFunction>,
  localAlign: number,
): { readonly frames: number; readonly locals: number; readonly recursive: boolean } {
  const open = new Set<LoweredFunction>();
  const known = new Map<LoweredFunction, { frames: number; locals: number; recursive: boolean }>();
  const visit = (lowered: LoweredFunction): { frames: number; locals: number; recursive: boolean } => {
    const before = known.get(lowered);
    if (before !== undefined) return before;
    if (open.has(lowered)) return { frames: 0, locals: 0, recursive: true };
    open.add(lowered);
    let [frames, locals, recursive] = [0, 0, false];
    for (const { name } of lowered.calls) {
      const callee = functions.get(name);
      if (callee === undefined) continue;
      const below = visit(callee);
      frames = Math.max(frames, below.frames);
      locals = Math.max(locals, below.locals);
      recursive ||= below.recursive;
    }
    open.delete(lowered);
    locals += alignUp(lowered.localBytes, localAlign);
    const need = { frames: frames + lowered.frame.bytes, locals, recursive };
    known.set(lowered, need);
    return need;
  };
  return visit(entry);
}
