/**
 * Where a thread goes on, and where it waits for others.
 *
 * @module
 */
import { typeOf } from "./lower_integer.ts";
import { LEFT, type Link, type Machine, MOVED, type Op } from "./execution_state.ts";
import type { Label, Site } from "./operands.ts";
import type { Operand } from "./syntax.ts";
import { type SystemCall, systemCalls } from "./system_calls.ts";
import type { Meeting, Waiting } from "./thread.ts";

const u32 = typeOf("u32");
const pred = typeOf("pred");

function bra(site: Site): Link {
  site.flag("uni");
  site.end(1);
  const label = site.label(site.operand(0));
  return (_, _next, base) => {
    const target = base + label.pc;
    return () => target;
  };
}

/** A jump through a table. */
function brx(site: Site): Link {
  if (!site.flag("idx")) site.fail("expected .idx");
  site.flag("uni");
  site.end(2);
  const { line } = site;
  const index = site.source(0, u32);
  const table = site.operand(1);
  const meaning = table.kind === "name" ? site.around.resolve(table.name) : null;
  if (meaning?.kind !== "targets") return site.fail("expected a table of .branchtargets");
  return (m, _next, base) => {
    const targets = meaning.labels.map((label: Label) => base + label.pc);
    return (t) => {
      const i = m.regs.getUint32(t + index, true);
      return targets[i] ?? m.fault("undefined behaviour", line, `entry ${i} of a table of ${targets.length}`);
    };
  };
}

function end(thread: { readonly calls: { length: number } }): boolean {
  return thread.calls.length === 0;
}

/** The end of a call, or, outside of any, of the thread. */
function ret(site: Site): Link {
  site.flag("uni");
  site.end(0);
  return (m) => () => {
    const { thread } = m;
    const back = end(thread) ? undefined : thread.calls.pop();
    if (back === undefined) {
      thread.block.exit(thread);
      return LEFT;
    }
    back.finish(thread.localStart + thread.localBase, thread.localStart + back.localBase);
    thread.pc = back.pc;
    thread.base = back.base;
    thread.localBase = back.localBase;
    return MOVED;
  };
}

function exit(site: Site): Link {
  site.end(0);
  return (m) => () => {
    m.thread.block.exit(m.thread);
    return LEFT;
  };
}

/** The offset in local memory, and the size, of a variable that a call passes. */
function passed(site: Site, operand: Operand): { readonly offset: number; readonly size: number } {
  const meaning = operand.kind === "name" ? site.around.resolve(operand.name) : null;
  if (meaning?.kind !== "local" || meaning.space !== "param") {
    return site.fail("a call passes .param variables only");
  }
  return meaning;
}

/** `call.uni (results), function, (arguments)`: values pass through .param variables, by copying. */
function call(site: Site): Link {
  site.flag("uni");
  const { line } = site;
  const operands = [...site.instruction.operands];
  site.end(1, 4);
  const list = (): { offset: number; size: number }[] => {
    const [first] = operands;
    if (first?.kind !== "list") return [];
    operands.shift();
    return first.items.map((item) => passed(site, item));
  };
  const results = list();
  const target = operands.shift();
  if (target?.kind !== "name" || target.offset !== 0n) return site.fail("expected the name of a function");
  const { name } = target;
  if (site.around.resolve(name) !== null) site.fail(`calls through a register (${name}) are not supported`);
  const args = list();
  if (operands.length > 0) site.fail("calls through a table are not supported");
  site.around.calls({ name, line, results: results.map(({ size }) => size), args: args.map(({ size }) => size) });
  return (m, next) => {
    const system = m.has(name) ? undefined : systemCalls.get(name);
    if (system !== undefined) return callSystem(system, m, next, line, args, results);
    const callee = m.callee(name);
    const caller = m.callee(site.around.name);
    const { regs, locals } = m;
    const bytes = new Uint8Array(locals.buffer);
    const finish = (calleeLocal: number, callerLocal: number): void =>
      results.forEach(({ offset, size }, i) => {
        const from = calleeLocal + (callee.results[i] ?? 0);
        bytes.copyWithin(callerLocal + offset, from, from + size);
      });
    return (t) => {
      const { thread } = m;
      const base = t + caller.frameBytes;
      const localBase = thread.localBase + caller.localBytes;
      if (
        base + callee.frameBytes > thread.regStart + m.regStride || localBase + callee.localBytes > m.localStride ||
        base + callee.frameBytes > regs.byteLength
      ) {
        m.fault("stack overflow", line, `the call of ${name} is ${thread.calls.length + 1} calls deep`);
      }
      args.forEach(({ offset, size }, i) => {
        const from = thread.localStart + thread.localBase + offset;
        bytes.copyWithin(thread.localStart + localBase + (callee.params[i] ?? 0), from, from + size);
      });
      thread.calls.push({ pc: next, base: t, localBase: thread.localBase, finish });
      thread.base = base;
      thread.localBase = localBase;
      thread.pc = callee.pc;
      callee.enter(m, thread);
      return MOVED;
    };
  };
}

/** The call of a function that the driver brings along. */
function callSystem(
  system: SystemCall,
  m: Machine,
  next: number,
  line: number,
  args: readonly { readonly offset: number; readonly size: number }[],
  results: readonly { readonly offset: number }[],
): Op {
  const { locals } = m;
  return () => {
    const { thread } = m;
    const start = thread.localStart + thread.localBase;
    thread.pc = next;
    const values = args.map(({ offset, size }) =>
      size === 8 ? locals.getBigUint64(start + offset, true) : BigInt(locals.getUint32(start + offset, true))
    );
    const value = system.run(m, values, line);
    if (value === null) return LEFT;
    for (const { offset } of results) locals.setInt32(start + offset, value, true);
    return next;
  };
}

function trap(site: Site): Link {
  site.end(0);
  const { line } = site;
  return (m) => () => m.fault("trap", line, "the kernel stopped itself");
}

/** Nothing: fences have nothing to order where memory is sequentially consistent. */
function membar(site: Site): Link {
  site.choice("cta", "gl", "sys");
  site.end(0);
  return (_, next) => () => next;
}

/** The same with an order and a scope. */
function fence(site: Site): Link {
  site.option("sc", "acq_rel", "acquire", "release");
  site.choice("cta", "cluster", "gpu", "sys");
  site.end(0);
  return (_, next) => () => next;
}

/** A nap is as long as it likes. */
function nanosleep(site: Site): Link {
  const type = site.type("u32");
  site.end(1);
  site.source(0, type);
  return (_, next) => () => next;
}

/** `bar.sync`, `bar.arrive`, `bar.red`, and their longer names `barrier.cta...`. */
function bar(site: Site): Link {
  const isShort = site.instruction.opcode === "bar";
  if (isShort && site.flag("warp")) return barWarp(site); // which has no longer name
  const aligned = isShort || site.flag("aligned");
  if (isShort) site.flag("aligned");
  site.flag("cta");
  const action = site.choice("sync", "arrive", "red");
  if (action === "red") return barRed(site, aligned);
  site.end(action === "sync" ? 1 : 2, 2);
  const { line } = site;
  const a = site.source(0, u32);
  const b = site.count === 2 ? site.source(1, u32) : null;
  return (m, next) => {
    const { regs: r } = m;
    return (t) => {
      const { thread } = m;
      const barrier = m.barrier(r.getUint32(t + a, true), line);
      const expected = b === null ? null : m.participants(r.getUint32(t + b, true), line);
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
      return LEFT;
    };
  };
}

/** A barrier that also counts, or combines, a predicate of each thread. */
function barRed(site: Site, aligned: boolean): Link {
  const operation = site.choice("popc", "and", "or");
  const type = site.type(operation === "popc" ? "u32" : "pred");
  site.end(3, 4);
  const { line } = site;
  const d = site.result(type);
  const a = site.source(1, u32);
  const b = site.count === 4 ? site.source(2, u32) : null;
  const p = site.predicate(site.operand(site.count - 1));
  return (m, next) => {
    const { regs: r } = m;
    return (t) => {
      const { thread } = m;
      const receive: Waiting["receive"] = (predicates) => {
        const count = predicates.filter(Boolean).length;
        const value = operation === "popc" ? count : operation === "or" ? count > 0 : count === predicates.length;
        r.setInt32(t + d, Number(value), true);
      };
      const predicate = (r.getInt32(t + p.slot, true) !== 0) !== p.negated;
      const barrier = m.barrier(r.getUint32(t + a, true), line);
      const expected = b === null ? null : m.participants(r.getUint32(t + b, true), line);
      thread.pc = next;
      thread.block.wait(thread, { barrier, line, pc: aligned ? next : null, expected, predicate, receive });
      return LEFT;
    };
  };
}

/** Brings a value to the other threads of the warp, and takes what comes of all values. */
function meet(
  site: Site,
  mask: number,
  bring: (r: DataView, t: number) => number | bigint,
  resolve: (r: DataView, t: number, lanes: readonly (Meeting | null)[], lane: number, poison: number) => void,
): Link {
  const { line, text } = site;
  return (m, next) => {
    const { regs: r } = m;
    return (t) => {
      const { thread } = m;
      thread.pc = next;
      thread.block.meet(thread, {
        what: text,
        line,
        mask: r.getInt32(t + mask, true),
        value: bring(r, t),
        resolve: (lanes, lane) => resolve(r, t, lanes, lane, m.poison),
      });
      return LEFT;
    };
  };
}

function barWarp(site: Site): Link {
  if (!site.flag("sync")) site.fail("expected .sync");
  site.end(1);
  return meet(site, site.source(0, u32), () => 0, () => {});
}

/** `shfl.sync.down.b32 d|p, a, b, c, mask`: the value of another lane. */
function shfl(site: Site): Link {
  if (!site.flag("sync")) site.fail("shuffles without .sync are gone since sm_70");
  const mode = site.choice("up", "down", "bfly", "idx");
  const type = site.type("b32");
  site.end(5);
  const target = site.operand(0);
  const [first, second] = target.kind === "pair" ? [target.first, target.second] : [target, null];
  const d = site.to(first, type);
  const p = second === null ? null : site.to(second, pred);
  const [a, b, c] = [site.source(1, type), site.source(2, u32), site.source(3, u32)];
  return meet(site, site.source(4, u32), (r, t) => r.getInt32(t + a, true), (r, t, lanes, lane, poison) => {
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
function vote(site: Site): Link {
  if (!site.flag("sync")) site.fail("votes without .sync are gone since sm_70");
  const mode = site.choice("all", "any", "uni", "ballot");
  const type = site.type(mode === "ballot" ? "b32" : "pred");
  site.end(3);
  const d = site.result(type);
  const p = site.predicate(site.operand(1));
  const bring = (r: DataView, t: number): number => Number((r.getInt32(t + p.slot, true) !== 0) !== p.negated);
  return meet(site, site.source(2, u32), bring, (r, t, lanes) => {
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
function match(site: Site): Link {
  const mode = site.choice("any", "all");
  if (!site.flag("sync")) site.fail("expected .sync");
  const type = site.type("b32", "b64");
  site.end(3);
  const target = site.operand(0);
  const [first, second] = target.kind === "pair" ? [target.first, target.second] : [target, null];
  if (second !== null && mode === "any") site.fail("only .all has a predicate");
  const d = site.to(first, u32);
  const p = second === null ? null : site.to(second, pred);
  const a = site.source(1, type);
  const bring = (r: DataView, t: number): number | bigint =>
    type.bits === 64 ? r.getBigUint64(t + a, true) : r.getUint32(t + a, true);
  return meet(site, site.source(2, u32), bring, (r, t, lanes, lane) => {
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
function redux(site: Site): Link {
  if (!site.flag("sync")) site.fail("expected .sync");
  const operation = site.choice("add", "min", "max", "and", "or", "xor");
  const isLogic = operation === "and" || operation === "or" || operation === "xor";
  const type = isLogic ? site.type("b32") : site.type("u32", "s32");
  site.end(3);
  const [d, a] = [site.result(type), site.source(1, type)];
  const signed = type.name === "s32";
  const bring = (r: DataView, t: number): number => signed ? r.getInt32(t + a, true) : r.getUint32(t + a, true);
  const compute: Readonly<Record<typeof operation, (x: number, y: number) => number>> = {
    add: (x, y) => x + y,
    min: (x, y) => Math.min(x, y),
    max: (x, y) => Math.max(x, y),
    and: (x, y) => x & y,
    or: (x, y) => x | y,
    xor: (x, y) => x ^ y,
  };
  return meet(site, site.source(2, u32), bring, (r, t, lanes) => {
    const values = lanes.flatMap((one) => one === null ? [] : [Number(one.value)]);
    r.setInt32(t + d, values.reduce(compute[operation]), true);
  });
}

/** Which threads run beside this one: none need to, so that a kernel that hopes for more shows it. */
function activemask(site: Site): Link {
  const type = site.type("b32");
  site.end(1);
  const d = site.result(type);
  return (m, next) => (t) => {
    m.regs.setInt32(t + d, 1 << m.thread.lane, true);
    return next;
  };
}

/** One lane of those that are asked: the lowest. */
function elect(site: Site): Link {
  if (!site.flag("sync")) site.fail("expected .sync");
  site.end(2);
  const target = site.operand(0);
  if (target.kind !== "pair") return site.fail("expected d|p");
  const [d, p] = [site.to(target.first, u32), site.to(target.second, pred)];
  return meet(site, site.source(1, u32), () => 0, (r, t, lanes, lane) => {
    const leader = lanes.findIndex((one) => one !== null);
    r.setInt32(t + d, leader, true);
    r.setInt32(t + p, lane === leader ? 1 : 0, true);
  });
}

/** Control flow and meetings, by opcode. */
export const controlInstructions: Readonly<Record<string, (site: Site) => Link>> = {
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
