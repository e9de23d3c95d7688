/**
 * Warp collectives: instructions that the threads of a warp execute together.
 *
 * @module
 */
import { type Compiled, YIELDED } from "../execution_state.ts";
import type { InstructionReader, InstructionTable } from "../operands.ts";
import type { WarpCollective } from "../thread.ts";
import { pred, u32 } from "../types.ts";

/** Contributes a value to a warp collective, and receives the result computed from all values. */
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

/** `bar.warp.sync`: the threads of a warp wait for each other. */
export function barWarp(reader: InstructionReader): Compiled {
  if (!reader.flag("sync")) reader.fail("expected .sync");
  reader.end(1);
  return collective(reader, reader.source(0, u32), () => 0, () => {});
}

/** `shfl.sync.down.b32 d|p, a, b, c, mask`: the value of another lane. */
function shfl(reader: InstructionReader): Compiled {
  if (!reader.flag("sync")) reader.fail("shuffles without .sync do not exist since sm_70");
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
    // A lane that does not participate has no value: the result must not depend on it, so it is poison.
    const value = lanes[inside ? from : lane]?.value ?? poison;
    r.setInt32(t + d, Number(value), true);
    if (p !== null) r.setInt32(t + p, inside ? 1 : 0, true);
  });
}

/** `vote.sync`: combines the predicates of all lanes. */
function vote(reader: InstructionReader): Compiled {
  if (!reader.flag("sync")) reader.fail("votes without .sync do not exist since sm_70");
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

/** The mask of active threads: only this one, so that a kernel that relies on more fails. */
function activemask(reader: InstructionReader): Compiled {
  const type = reader.type("b32");
  reader.end(1);
  const d = reader.result(type);
  return (state, next) => (t) => {
    state.regs.setInt32(t + d, 1 << state.thread.lane, true);
    return next;
  };
}

/** Elects one lane of the mask: the lowest. */
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

/** Warp instructions, by opcode. */
export const warpInstructions: InstructionTable = {
  shfl,
  vote,
  match,
  redux,
  activemask,
  elect,
};
