/**
 * Barriers between the threads of a block, and fences.
 *
 * @module
 */
import { type Compiled, YIELDED } from "../execution_state.ts";
import { barWarp } from "./warp.ts";
import type { InstructionReader, InstructionTable } from "../operands.ts";
import type { BarrierWait } from "../thread.ts";
import { u32 } from "../types.ts";

/** A no-op: sequentially consistent memory leaves nothing to order. */
function membar(reader: InstructionReader): Compiled {
  reader.choice("cta", "gl", "sys");
  reader.end(0);
  return (_, next) => () => next;
}

/** Like `membar`, with an order and a scope. */
function fence(reader: InstructionReader): Compiled {
  reader.option("sc", "acq_rel", "acquire", "release");
  reader.choice("cta", "cluster", "gpu", "sys");
  reader.end(0);
  return (_, next) => () => next;
}

/** A sleep may take any amount of time, so it takes none. */
function nanosleep(reader: InstructionReader): Compiled {
  const type = reader.type("u32");
  reader.end(1);
  reader.source(0, type);
  return (_, next) => () => next;
}

/** `bar.sync`, `bar.arrive`, `bar.red`, and their long forms `barrier.cta...`. */
function bar(reader: InstructionReader): Compiled {
  const isShort = reader.instruction.opcode === "bar";
  if (isShort && reader.flag("warp")) return barWarp(reader); // which has no long form
  const aligned = isShort || reader.flag("aligned");
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

/** A barrier that also counts or combines a predicate from each thread. */
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

/** Barriers and fences, by opcode. */
export const barrierInstructions: InstructionTable = {
  bar,
  barrier: bar,
  membar,
  fence,
  nanosleep,
};
