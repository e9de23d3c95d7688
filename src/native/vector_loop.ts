/**
 * Loops over vectors in machine code: one call for all turns, which reads and writes memory in place.
 *
 * @module
 */
import { assembleHere, type Operation } from "./assembler.ts";
import { placedBy, type PreparedMove, runMove } from "./strided_mover.ts";
import { inRegisters, type TurnOperation, type VectorTurn } from "./vector_registers.ts";

/** A loop, and the bytes of input and output consumed and produced per turn, both multiples of 16. */
export interface VectorLoopCode extends VectorTurn {
  readonly inputBytes: number;
  readonly outputBytes: number;
}

/** An assembled loop: the address of its code, and the constants for its job. */
export interface NativeLoop {
  readonly code: bigint;
  readonly constants: readonly bigint[];
  /** Runs that many turns, at least one, between two addresses, both exact numbers; the caller answers for both. */
  readonly run: (turns: number, to: number, from: number) => void;
}

/** Offset of a job's turns, as two halves. */
const turnsAt = 16;

/** Offset of a job's constants: after the output and input addresses and the turns, 8 bytes each, and 8 unused ones. */
const constantsAt = 32;

// law native/vectorLoopProgram: copy/native_conversion
/**
 * The program of a loop, called with a job.
 *
 * @returns null if there is no machine code for the loop's operations
 */
export function vectorLoopProgram(loop: VectorLoopCode): readonly Operation[] | null {
  const code = inRegisters(loop);
  if (code === null) return null;
  return [
    ["get", "third", "first", 0],
    ["get", "second", "first", 8],
    ["get", "left", "first", turnsAt],
    ["point", "first", "first", constantsAt],
    ...code.before.map((operation): Operation => ["vector", operation]),
    ["label", "turn"],
    ...code.turn.flatMap(operationsOf),
    ["point", "second", "second", loop.inputBytes],
    ["point", "third", "third", loop.outputBytes],
    ["lower", "left"],
    ["unlessZero", "turn"],
    ["return"],
  ];
}

/** The operations for one of a turn, which has at most one branch. */
function operationsOf(operation: TurnOperation): readonly Operation[] {
  switch (operation[0]) {
    case "ifAllSet":
      return [["unlessZero", "otherwise"]];
    case "otherwise":
      return [["go", "end"], ["label", "otherwise"]];
    case "end":
      return [["label", "end"]];
    default:
      return [["vector", operation]];
  }
}

/** Assembles a loop permanently: the caller keeps it. Null as for {@linkcode vectorLoopProgram}, or if refused. */
export function nativeLoop(loop: VectorLoopCode): NativeLoop | null {
  const program = vectorLoopProgram(loop);
  const [code] = program === null ? [] : assembleHere([program]) ?? [];
  if (code === undefined) return null;
  const constants = [...loop.constants.values()];
  return { code, constants, run: runnerOf(placedBy(code, loopJob(constants, 1))) };
}

// law native/runnerOf: copy/native_conversion
function runnerOf(prepared: PreparedMove): NativeLoop["run"] {
  const turns = new Uint32Array(prepared.addresses.buffer, turnsAt, 2);
  return (count, to, from) => {
    turns[0] = count;
    turns[1] = count / 2 ** 32;
    runMove(prepared, to, from);
  };
}

/**
 * Prepares `turns` turns, at least one. They run like a move, whose addresses are given then.
 */
export function prepareLoop({ code, constants }: NativeLoop, turns: number): PreparedMove {
  return placedBy(code, loopJob(constants, turns));
}

/** The job that the program reads. Exported for the test that runs it on other architectures. */
export function loopJob(constants: readonly bigint[], turns: number): ArrayBuffer {
  const words = [0n, 0n, BigInt(turns), 0n, ...constants.flatMap((word) => [word, word])];
  return BigUint64Array.from(words).buffer;
}
