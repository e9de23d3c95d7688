/**
 * Control flow: jumps, calls and returns, and thread exit.
 *
 * @module
 */
import { type Compiled, type ExecutionState, FRAME_CHANGED, type Op, YIELDED } from "../execution_state.ts";
import type { InstructionReader, InstructionTable, Label } from "../operands.ts";
import type { Operand } from "../syntax.ts";
import { type SystemCall, systemCalls } from "../system_calls.ts";
import { u32 } from "../types.ts";

function bra(reader: InstructionReader): Compiled {
  reader.flag("uni");
  reader.end(1);
  const label = reader.label(reader.operand(0));
  return (_, _next, base) => {
    const target = base + label.pc;
    return () => target;
  };
}

/** An indexed jump through a table. */
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

/** Returns from a call, or, outside any call, ends the thread. */
function ret(reader: InstructionReader): Compiled {
  reader.flag("uni");
  reader.end(0);
  return (state) => () => {
    const { thread } = state;
    const back = thread.calls.pop();
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

/** The local-memory offset and the size of a variable that a call passes. */
function passed(reader: InstructionReader, operand: Operand): { readonly offset: number; readonly size: number } {
  const meaning = operand.kind === "name" ? reader.context.resolve(operand.name) : null;
  if (meaning?.kind !== "local" || meaning.space !== "param") {
    return reader.fail("calls pass only .param variables");
  }
  return meaning;
}

/** `call.uni (results), function, (arguments)`: values are passed in .param variables, by copying. */
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
    const { locals } = state;
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
        localBase + callee.localBytes > state.localStride
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

/** Calls a function that the driver provides. */
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

/** Control flow instructions, by opcode. */
export const branchInstructions: InstructionTable = {
  bra,
  brx,
  ret,
  exit,
  call,
  trap,
  brkpt: trap,
};
