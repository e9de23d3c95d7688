/**
 * Where a thread goes on, and where it waits for others.
 *
 * @module
 */
import { scalarType } from "./lower_integer.ts";
import { type Compiled, type ExecutionState, FRAME_CHANGED, type Op, YIELDED } from "./execution_state.ts";
import type { InstructionReader, Label } from "./operands.ts";
import type { Operand } from "./syntax.ts";
import { type SystemCall, systemCalls } from "./system_calls.ts";
import type { BarrierWait, WarpCollective } from "./thread.ts";

const u32 = scalarType("u32");
const pred = scalarType("pred");

function bra(reader: InstructionReader): Compiled {
  reader.flag("uni");
  reader.end(1);
  const label = reader.label(reader.operand(0));
  return (_, _next, base) => {
    const target = base + label.pc;
    return () => target;
  };
}

/** A jump through a table. */
function brx(reader: InstructionReader): Compiled {
  if (!reader.flag("idx")) reader.fail("expected .idx");
  reader.flag("uni");
  reader.end(2);
  const { line } = reader;
  const index = reader.source(0, u32);
  const table = reader.operand(1);
  const meaning = table.kind === "name" ? reader.context.resolve(table.name) : null;
  if (meaning?.kind !== "targets") return reader.fail("expected a table of .branchtargets");
  return (state, _next, base) => {
    const targets = meaning.labels.map((label: Label) => base + label.pc);
    return (t) => {
      const i = state.regs.getUint32(t + index, true);
      return targets[i] ?? state.fault("undefined behaviour", line, `entry ${i} of a table of ${targets.length}`);
    };
  };
}

function end(thread: { readonly calls: { length: number } }): boolean {
  return thread.calls.length === 0;
}

/** The end of a call, or, outside of any, of the thread. */
function ret(reader: InstructionReader): Compiled {
  reader.flag("uni");
  reader.end(0);
  return (state) => () => {
    const { thread } = state;
    const back = end(thread) ? undefined : thread.calls.pop();
    if (back === undefined) {
      thread.block.exit(thread);
      return YIELDED;
    }
    back.finish(thread.localStart + thread.localBase, thread.localStart + back.localBase);
    thread.pc = back.pc;
    thread.base = back.base;
    thread.localBase = back.localBase;
    return FRAME_CHANGED;
  };
}

function exit(reader: InstructionReader): Compiled {
  reader.end(0);
  return (state) => () => {
    state.thread.block.exit(state.thread);
    return YIELDED;
  };
}

/** The offset in local memory, and the size, of a variable that a call passes. */
function passed(reader: InstructionReader, operand: Operand): { readonly offset: number; readonly size: number } {
  const meaning = operand.kind === "name" ? reader.context.resolve(operand.name) : null;
  if (meaning?.kind !== "local" || meaning.space !== "param") {
    return reader.fail("a call passes .param variables only");
  }
  return meaning;
}

/** `call.uni (results), function, (arguments)`: values pass through .param variables, by copying. */
function call(reader: InstructionReader): Compiled {
  reader.flag("uni");
  const { line } = reader;
  const operands = [...reader.instruction.operands];
  reader.end(1, 4);
  const list = (): { offset: number; size: number }[] => {
    const [first] = operands;
    if (first?.kind !== "list") return [];
    operands.shift();
    return first.items.map((item) => passed(reader, item));
  };
  const results = list();
  const target = operands.shift();
  if (target?.kind !== "name" || target.offset !== 0n) return reader.fail("expected the name of a function");
  const { name } = target;
  if (reader.context.resolve(name) !== null) reader.fail(`calls through a register (${name}) are not supported`);
  const args = list();
  if (operands.length > 0) reader.fail("calls through a table are not supported");
  reader.context.calls({ name, line, results: results.map(({ size }) => size), args: args.map(({ size }) => size) });
  return (state, next) => {
    const system = state.has(name) ? undefined : systemCalls.get(name);
    if (system !== undefined) return callSystem(system, state, next, line, args, results);
    const callee = state.callee(name);
    const caller = state.callee(reader.context.name);
    const { regs, locals } = state;
    const bytes = new Uint8Array(locals.buffer);
    const finish = (calleeLocal: number, callerLocal: number): void =>
      results.forEach(({ offset, size }, i) => {
        const from = calleeLocal + (callee.results[i] ?? 0);
        bytes.copyWithin(callerLocal + offset, from, from + size);
      });
    return (t) => {
      const { thread } = state;
      const base = t + caller.frameBytes;
      const localBase = thread.localBase + caller.localBytes;
      if (
        base + callee.frameBytes > thread.regStart + state.regStride ||
        localBase + callee.localBytes > state.localStride ||
        base + callee.frameBytes > regs.byteLength
      ) {
        state.fault("stack overflow", line, `the call of ${name} is ${thread.calls.length + 1} calls deep`);
      }
      args.forEach(({ offset, size }, i) => {
        const from = thread.localStart + thread.localBase + offset;
        bytes.copyWithin(thread.localStart + localBase + (callee.params[i] ?? 0), from, from + size);
      });
      thread.calls.push({ pc: next, base: t, localBase: thread.localBase, finish });
      thread.base = base;
      thread.localBase = localBase;
      thread.pc = callee.pc;
      callee.enter(state, thread);
      return FRAME_CHANGED;
    };
  };
}

/** The call of a function that the driver brings along. */
function callSystem(
  system: SystemCall,
  state: ExecutionState,
  next: number,
  line: number,
  args: readonly { readonly offset: number; readonly size: number }[],
  results: readonly { readonly offset: number }[],
): Op {
  const { locals } = state;
  return () => {
    const { thread } = state;
    const start = thread.localStart + thread.localBase;
    thread.pc = next;
    const values = args.map(({ offset, size }) =>
      size === 8 ? locals.getBigUint64(start + offset, true) : BigInt(locals.getUint32(start + offset, true))
    );
    const value = system.run(state, values, line);
    if (value === null) return YIELDED;
    for (const { offset } of results) locals.setInt32(start + offset, value, true);
    return next;
  };
}

function trap(reader: InstructionReader): Compiled {
  reader.end(0);
  const { line } = reader;
  return (state) => () => state.fault("trap", line, "the kernel stopped itself");
}

/** Nothing: fences have nothing to order where memory is sequentially consistent. */
function membar(reader: InstructionReader): Compiled {
  reader.choice("cta", "gl", "sys");
  reader.end(0);
  return (_, next) => () => next;
}

/** The same with an order and a scope. */
function fence(reader: InstructionReader): Compiled {
  reader.option("sc", "acq_rel", "acquire", "release");
  reader.choice("cta", "cluster", "gpu", "sys");
  reader.end(0);
  return (_, next) => () => next;
}

/** A nap is as long as it likes. */
function nanosleep(reader: InstructionReader): Compiled {
  const type = reader.type("u32");
  reader.end(1);
  reader.source(0, type);
  return (_, next) => () => next;
}

/** `bar.sync`, `bar.arrive`, `bar.red`, and their longer names `barrier.cta...`. */
function bar(reader: InstructionReader): Compiled {
  const isShort = reader.instruction.opcode === "bar";
  if (isShort && reader.flag("warp")) return barWarp(reader); // which has no longer name
  const aligned = isShort || reader.flag("aligned");
  if (isShort) reader.flag("aligned");
  reader.flag("cta");
  const action = reader.choice("sync", "arrive", "red");
  if (action === "red") return barRed(reader, aligned);
  reader.end(action === "sync" ? 1 : 2, 2);
  const { line } = reader;
  const a = reader.source(0, u32);
  const b = reader.count === 2 ? reader.source(1, u32) : null;
  return (state, next) => {
    const { regs: r } = state;
    return (t) => {
      const { thread } = state;
      const barrier = state.barrier(r.getUint32(t + a, true), line);
      const expected = b === null ? null : state.participants(r.getUint32(t + b, true), line);
      thread.pc = next;
      if (action === "arrive") {
        thread.block.arrive(barrier, expected ?? 0, line);
        return next;
      }
      thread.block.wait(thread, {
        barrier,
        line,
        pc: aligned ? next : null,
        expected,
        predicate: false,
        receive: null,
      });
      return YIELDED;
    };
  };
}

/** A barrier that also counts, or combines, a predicate of each thread. */
function barRed(reader: InstructionReader, aligned: boolean): Compiled {
  const operation = reader.choice("popc", "and", "or");
  const type = reader.type(operation === "popc" ? "u32" : "pred");
  reader.end(3, 4);
  const { line } = reader;
  const d = reader.result(type);
  const a = reader.source(1, u32);
  const b = reader.count === 4 ? reader.source(2, u32) : null;
  const p = reader.predicate(reader.operand(reader.count - 1));
  return (state, next) => {
    const { regs: r } = state;
    return (t) => {
      const { thread } = state;
      const receive: BarrierWait["receive"] = (predicates) => {
        const count = predicates.filter(Boolean).length;
        const value = operation === "popc" ? count : operation === "or" ? count > 0 : count === predicates.length;
        r.setInt32(t + d, Number(value), true);
      };
      const predicate = (r.getInt32(t + p.slot, true) !== 0) !== p.negated;
      const barrier = state.barrier(r.getUint32(t + a, true), line);
      const expected = b === null ? null : state.participants(r.getUint32(t + b, true), line);
      thread.pc = next;
      thread.block.wait(thread, { barrier, line, pc: aligned ? next : null, expected, predicate, receive });
      return YIELDED;
    };
  };
}

/** Brings a value to the other threads of the warp, and takes what comes of all values. */
function collective(
  reader: InstructionReader,
  mask: number,
  contribute: (r: DataView, t: number) => number | bigint,
  resolve: (r: DataView, t: number, lanes: readonly (WarpCollective | null)[], lane: number, poison: number) => void,
): Compiled {
  const { line, text } = reader;
  return (state, next) => {
    const { regs: r } = state;
    return (t) => {
      const { thread } = state;
      thread.pc = next;
      thread.block.joinCollective(thread, {
        what: text,
        line,
        mask: r.getInt32(t + mask, true),
        value: contribute(r, t),
        resolve: (lanes, lane) => resolve(r, t, lanes, lane, state.poison),
      });
      return YIELDED;
    };
  };
}

function barWarp(reader: InstructionReader): Compiled {
  if (!reader.flag("sync")) reader.fail("expected .sync");
  reader.end(1);
  return collective(reader, reader.source(0, u32), () => 0, () => {});
}

/** `shfl.sync.down.b32 d|p, a, b, c, mask`: the value of another lane. */
function shfl(reader: InstructionReader): Compiled {
  if (!reader.flag("sync")) reader.fail("shuffles without .sync are gone since sm_70");
  const mode = reader.choice("up", "down", "bfly", "idx");
  const type = reader.type("b32");
  reader.end(5);
  const target = reader.operand(0);
  const [first, second] = target.kind === "pair" ? [target.first, target.second] : [target, null];
  const d = reader.to(first, type);
  const p = second === null ? null : reader.to(second, pred);
  const [a, b, c] = [reader.source(1, type), reader.source(2, u32), reader.source(3, u32)];
  return collective(reader, reader.source(4, u32), (r, t) => r.getInt32(t + a, true), (r, t, lanes, lane, poison) => {
    const by = r.getUint32(t + b, true) & 31;
    const control = r.getUint32(t + c, true);
    const segment = (control >>> 8) & 31;
    const clamp = control & 31;
    const [min, max] = [lane & segment, (lane & segment) | (clamp & ~segment & 31)];
    const from = mode === "up"
      ? lane - by
      : mode === "down"
      ? lane + by
      : mode === "bfly"
      ? lane ^ by
      : min | (by & ~segment & 31);
    const inside = mode === "up" ? from >= max : from <= max;
    // A lane that is not there has no value: whatever the kernel does with one, it must not matter.
    const value = lanes[inside ? from : lane]?.value ?? poison;
    r.setInt32(t + d, Number(value), true);
    if (p !== null) r.setInt32(t + p, inside ? 1 : 0, true);
  });
}

/** `vote.sync`: what the predicates of all lanes come to. */
function vote(reader: InstructionReader): Compiled {
  if (!reader.flag("sync")) reader.fail("votes without .sync are gone since sm_70");
  const mode = reader.choice("all", "any", "uni", "ballot");
  const type = reader.type(mode === "ballot" ? "b32" : "pred");
  reader.end(3);
  const d = reader.result(type);
  const p = reader.predicate(reader.operand(1));
  const contribute = (r: DataView, t: number): number => Number((r.getInt32(t + p.slot, true) !== 0) !== p.negated);
  return collective(reader, reader.source(2, u32), contribute, (r, t, lanes) => {
    let [ballot, there] = [0, 0];
    lanes.forEach((one, i) => {
      if (one === null) return;
      there |= 1 << i;
      if (one.value !== 0) ballot |= 1 << i;
    });
    const value = mode === "ballot"
      ? ballot
      : Number(mode === "any" ? ballot !== 0 : mode === "all" ? ballot === there : ballot === there || ballot === 0);
    r.setInt32(t + d, value, true);
  });
}

/** `match.sync`: which lanes have the same value. */
function match(reader: InstructionReader): Compiled {
  const mode = reader.choice("any", "all");
  if (!reader.flag("sync")) reader.fail("expected .sync");
  const type = reader.type("b32", "b64");
  reader.end(3);
  const target = reader.operand(0);
  const [first, second] = target.kind === "pair" ? [target.first, target.second] : [target, null];
  if (second !== null && mode === "any") reader.fail("only .all has a predicate");
  const d = reader.to(first, u32);
  const p = second === null ? null : reader.to(second, pred);
  const a = reader.source(1, type);
  const contribute = (r: DataView, t: number): number | bigint =>
    type.bits === 64 ? r.getBigUint64(t + a, true) : r.getUint32(t + a, true);
  return collective(reader, reader.source(2, u32), contribute, (r, t, lanes, lane) => {
    const value = lanes[lane]?.value;
    let [same, there] = [0, 0];
    lanes.forEach((one, i) => {
      if (one === null) return;
      there |= 1 << i;
      if (one.value === value) same |= 1 << i;
    });
    const all = same === there;
    r.setInt32(t + d, mode === "any" ? same : all ? there : 0, true);
    if (p !== null) r.setInt32(t + p, all ? 1 : 0, true);
  });
}

/** `redux.sync`: a reduction over the lanes. */
function redux(reader: InstructionReader): Compiled {
  if (!reader.flag("sync")) reader.fail("expected .sync");
  const operation = reader.choice("add", "min", "max", "and", "or", "xor");
  const isLogic = operation === "and" || operation === "or" || operation === "xor";
  const type = isLogic ? reader.type("b32") : reader.type("u32", "s32");
  reader.end(3);
  const [d, a] = [reader.result(type), reader.source(1, type)];
  const signed = type.name === "s32";
  const contribute = (r: DataView, t: number): number => signed ? r.getInt32(t + a, true) : r.getUint32(t + a, true);
  const compute: Readonly<Record<typeof operation, (x: number, y: number) => number>> = {
    add: (x, y) => x + y,
    min: (x, y) => Math.min(x, y),
    max: (x, y) => Math.max(x, y),
    and: (x, y) => x & y,
    or: (x, y) => x | y,
    xor: (x, y) => x ^ y,
  };
  return collective(reader, reader.source(2, u32), contribute, (r, t, lanes) => {
    const values = lanes.flatMap((one) => one === null ? [] : [Number(one.value)]);
    r.setInt32(t + d, values.reduce(compute[operation]), true);
  });
}

/** Which threads run beside this one: none need to, so that a kernel that hopes for more shows it. */
function activemask(reader: InstructionReader): Compiled {
  const type = reader.type("b32");
  reader.end(1);
  const d = reader.result(type);
  return (state, next) => (t) => {
    state.regs.setInt32(t + d, 1 << state.thread.lane, true);
    return next;
  };
}

/** One lane of those that are asked: the lowest. */
function elect(reader: InstructionReader): Compiled {
  if (!reader.flag("sync")) reader.fail("expected .sync");
  reader.end(2);
  const target = reader.operand(0);
  if (target.kind !== "pair") return reader.fail("expected d|p");
  const [d, p] = [reader.to(target.first, u32), reader.to(target.second, pred)];
  return collective(reader, reader.source(1, u32), () => 0, (r, t, lanes, lane) => {
    const leader = lanes.findIndex((one) => one !== null);
    r.setInt32(t + d, leader, true);
    r.setInt32(t + p, lane === leader ? 1 : 0, true);
  });
}

/** Control flow and meetings, by opcode. */
export const controlInstructions: Readonly<Record<string, (reader: InstructionReader) => Compiled>> = {
  bra,
  brx,
  ret,
  exit,
  call,
  trap,
  brkpt: trap,
  bar,
  barrier: bar,
  membar,
  fence,
  nanosleep,
  shfl,
  vote,
  match,
  redux,
  activemask,
  elect,
};
