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

/** Rows of equally many turns. */
export interface Rows {
  /** At least one. */
  readonly count: number;
  /** Bytes from the end of a row to the start of the next one, on each side. */
  readonly to: number;
  readonly from: number;
}

const oneRow: Rows = { count: 1, to: 0, from: 0 };

/**
 * Offsets in a job, which begins with the addresses of output and input: of the turns of a row, as two halves, of the
 * rows, and of the bytes between them.
 */
const turnsAt = 16;
const rowsAt = 24;
const toGapAt = 32;
const fromGapAt = 40;
const constantsAt = 48;

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
    ["get", "axis", "first", turnsAt],
    ["get", "rows", "first", rowsAt],
    ["get", "toStep", "first", toGapAt],
    ["get", "fromStep", "first", fromGapAt],
    ["point", "first", "first", constantsAt],
    ...code.before.map((operation): Operation => ["vector", operation]),
    ["label", "row"],
    ["copy", "left", "axis"],
    ["label", "turn"],
    ...code.turn.flatMap(operationsOf),
    ["point", "second", "second", loop.inputBytes],
    ["point", "third", "third", loop.outputBytes],
    ["lower", "left"],
    ["unlessZero", "turn"],
    ["add", "second", "fromStep"],
    ["add", "third", "toStep"],
    ["lower", "rows"],
    ["unlessZero", "row"],
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
 * Prepares `turns` turns, at least one, or rows of so many. They run like a move, whose addresses are given then.
 */
export function prepareLoop({ code, constants }: NativeLoop, turns: number, rows = oneRow): PreparedMove {
  return placedBy(code, loopJob(constants, turns, rows));
}

/** The job that the program reads. Exported for the test that runs it on other architectures. */
export function loopJob(constants: readonly bigint[], turns: number, rows = oneRow): ArrayBuffer {
  const { count, to, from } = rows;
  const words = [0n, 0n, ...[turns, count, to, from].map(BigInt), ...constants.flatMap((word) => [word, word])];
  return BigInt64Array.from(words).buffer;
}
