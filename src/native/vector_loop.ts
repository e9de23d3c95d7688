/**
 * Loops over vectors by machine code: one call for all turns, which reads and writes memory where it is.
 *
 * @module
 */
import { assembleHere, type Operation } from "./assembler.ts";
import { placedBy, type PreparedMove } from "./strided_mover.ts";
import { inRegisters, type TurnOperation, type VectorTurn } from "./vector_registers.ts";

/** A loop, and how many bytes of input and output, multiples of 16, go by in each turn. */
export interface VectorLoopCode extends VectorTurn {
  readonly inputBytes: number;
  readonly outputBytes: number;
}

/** A loop that is ready: the address of its code, and the constants that it finds in its job. */
export interface NativeLoop {
  readonly code: bigint;
  readonly constants: readonly bigint[];
}

/** Where the constants are in a job: behind where output and input are, and how many turns, each 8 bytes, and 8 more. */
const constantsAt = 32;

// law native/vectorLoopProgram: copy/native_conversion
/**
 * Called with a job.
 *
 * @returns null if there is no machine code for what the loop does
 */
export function vectorLoopProgram(loop: VectorLoopCode): readonly Operation[] | null {
  const operations = inRegisters(loop);
  if (operations === null) return null;
  const constants = [...loop.constants.keys()].map((_, i): Operation => {
    return ["vector", ["readVector", i, "constants", constantsAt + 16 * i]];
  });
  return [
    ["get", "third", "first", 0],
    ["get", "second", "first", 8],
    ["get", "left", "first", 16],
    ...constants,
    ["label", "turn"],
    ...operations.flatMap(operationsOf),
    ["point", "second", "second", loop.inputBytes],
    ["point", "third", "third", loop.outputBytes],
    ["lower", "left"],
    ["unlessZero", "turn"],
    ["return"],
  ];
}

/** Of a turn that has at most one place where it goes one way or another. */
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

/** Has a loop assembled, for ever: whoever asks keeps it. Null as from {@linkcode vectorLoopProgram}, or by refusal. */
export function nativeLoop(loop: VectorLoopCode): NativeLoop | null {
  const program = vectorLoopProgram(loop);
  const [code] = program === null ? [] : assembleHere([program]) ?? [];
  return code === undefined ? null : { code, constants: [...loop.constants.values()] };
}

/**
 * Prepares so many turns, at least one: they are made as a move is, from and to addresses that are given then.
 */
export function prepareLoop({ code, constants }: NativeLoop, turns: number): PreparedMove {
  return placedBy(code, loopJob(constants, turns));
}

/** What the program reads. Exported for the test that runs it on other processors. */
export function loopJob(constants: readonly bigint[], turns: number): ArrayBuffer {
  const words = [0n, 0n, BigInt(turns), 0n, ...constants.flatMap((word) => [word, word])];
  return BigUint64Array.from(words).buffer;
}
