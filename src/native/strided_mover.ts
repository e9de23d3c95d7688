/**
 * Moves elements between two strided layouts in machine code: loops over any number of axes, the two innermost in
 * registers.
 *
 * A compiled program reads a job, a piece of memory that holds the extents and steps, so that one call moves a whole
 * array: a call from JavaScript costs as much as ten elements.
 *
 * @module
 */
import { cString, ffiPort, type HandleArgument, libc } from "../ffi/mod.ts";
import { assembleHere, type Unit } from "./assembler.ts";
import type { NativeCall } from "./call_ring.ts";
import {
  axisBytes,
  fillProgram,
  gatherProgram,
  head,
  isGathered,
  type MoveAxis,
  moveProgram,
  runProgram,
  type StridedMove,
  together,
  unrolled,
} from "./move_programs.ts";
import { nonTemporalCopy } from "./non_temporal_copy.ts";
import { runCode } from "./run_code.ts";

/** A move that can run repeatedly, on one thread at a time: its counters are in its own memory. */
export interface PreparedMove {
  /** The addresses of the first piece written and the first piece read, each as two halves. */
  readonly addresses: Uint32Array<ArrayBuffer>;
  readonly job: HandleArgument;
  readonly code: HandleArgument;
  /** The same, for a thread that performs the move once its addresses are set. */
  readonly call: NativeCall;
}

/** The sizes that one instruction can move. */
export const units: readonly Unit[] = [16, 8, 4, 2, 1];

interface Mover {
  readonly moves: ReadonlyMap<number, bigint>;
  readonly fills: ReadonlyMap<number, bigint>;
  readonly runs: bigint;
  readonly gathers: bigint;
  readonly memcpy: bigint;
}

let mover: Mover | null | undefined;

function moverHere(): Mover | null {
  if (mover !== undefined) return mover;
  const addresses = assembleHere([runProgram, gatherProgram, ...units.map(moveProgram), ...units.map(fillProgram)]);
  if (addresses === null) return mover = null;
  const byUnit = (first: number) => new Map(units.map((unit, i) => [unit, addresses[first + i] ?? 0n]));
  return mover = {
    runs: addresses[0] ?? 0n,
    gathers: addresses[1] ?? 0n,
    moves: byUnit(2),
    fills: byUnit(2 + units.length),
    memcpy: libc().loading.dlsym(0n, cString("memcpy")),
  };
}

/** Whether moves can run in machine code: the system allows executable memory. */
export function canMoveNatively(): boolean {
  return moverHere() !== null;
}

// law native/prepareMove: native/strided_mover, copy/host_move, native/non_temporal_copy
/**
 * Prepares a move.
 *
 * @returns null where the system refuses executable memory
 */
export function prepareMove(move: StridedMove): PreparedMove | null {
  const here = moverHere();
  if (here === null) return null;
  const code = isGathered(move)
    ? here.gathers
    : move.element === undefined
    ? here.moves.get(move.bytes)
    : here.fills.get(move.element);
  const buffer = jobOf(move, code !== undefined, move.isFar === true ? nonTemporalCopy() : here.memcpy);
  return placedBy(code ?? here.runs, buffer);
}

/** Combines code with its job, which begins with the two addresses. */
export function placedBy(code: bigint, job: ArrayBuffer): PreparedMove {
  const call = [code, ffiPort().addressOf(job)] as const;
  return {
    addresses: new Uint32Array(job, 0, 4),
    job: ffiPort().handle(call[1]),
    code: ffiPort().handle(call[0]),
    call,
  };
}

/** The job that the programs read. Exported for the test that runs them on other architectures. */
export function jobOf(move: StridedMove, isUnit: boolean, memcpy: bigint): ArrayBuffer {
  const { bytes, axes } = move;
  // From the end of a row along the inner axis, after all its steps, to the start of the next row along this axis.
  const steps = axes.map(({ extent, to, from }, i) => {
    const inner = axes[i + 1];
    const [toBack, fromBack] = inner === undefined ? [0, 0] : [inner.extent * inner.to, inner.extent * inner.from];
    return { extent, to: to - toBack, from: from - fromBack };
  });
  const inRegisters = isUnit ? 2 : 0;
  const rest = steps.slice(0, Math.max(0, steps.length - inRegisters)).toReversed();
  const words = new BigInt64Array(head / 8 + rest.length * axisBytes / 8 + 1);
  if (isUnit) {
    const [row, rows] = [steps.at(-1) ?? single, steps.at(-2) ?? single];
    const atOnce = isGathered(move) ? together : unrolled;
    const several = Math.floor(row.extent / atOnce);
    const pieces = [several, row.extent - several * atOnce, row.to, row.from];
    words.set([...pieces, rows.extent, rows.to, rows.from, 2 * row.to, 2 * row.from].map(BigInt), 2);
  } else words.set([BigInt(bytes), memcpy], 2);
  rest.forEach(({ extent, to, from }, i) =>
    words.set([extent, extent, to, from].map(BigInt), (head + i * axisBytes) / 8)
  );
  return words.buffer;
}

const single: MoveAxis = { extent: 1, to: 0, from: 0 };

// law native/runMove: copy/host_move
/**
 * Performs a move.
 *
 * @param to address of the first piece written, as an exact number
 * @param from address of the first piece read; the caller is responsible for both, and for all memory along the axes
 */
export function runMove(move: PreparedMove, to: number, from: number): void {
  placeMove(move, to, from);
  runCode(move.code, move.job);
}

/** Sets the addresses of the next move. Same parameters as {@linkcode runMove}. */
export function placeMove({ addresses }: PreparedMove, to: number, from: number): void {
  addresses[0] = to;
  addresses[1] = to / 2 ** 32;
  addresses[2] = from;
  addresses[3] = from / 2 ** 32;
}
