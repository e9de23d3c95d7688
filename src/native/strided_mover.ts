/**
 * Moves between two strided layouts by machine code: loops over any number of axes, the two innermost in registers.
 *
 * A compiled program reads a job, a piece of memory with the extents and steps in it, so that one call moves a whole
 * array: a call costs JavaScript as much as ten elements.
 *
 * @module
 */
import { cString, ffiPort, type HandleArgument, libc } from "../ffi/mod.ts";
import { assembleHere, type Operation, type Unit } from "./assembler.ts";
import type { NativeCall } from "./call_ring.ts";
import { nonTemporalCopy } from "./non_temporal_copy.ts";
import { runCode } from "./run_code.ts";

/** An axis: how many, and how many bytes from one to the next. */
export interface MoveAxis {
  readonly extent: number;
  readonly to: number;
  readonly from: number;
}

/** A move: pieces of so many bytes along axes, the last one fastest. No axis has an extent of 0. */
export interface StridedMove {
  readonly bytes: number;
  readonly axes: readonly MoveAxis[];
  /**
   * If a piece is 16 bytes that repeat one element: its bytes, which are then all that is read for it. No step of the
   * last axis is made in the source.
   */
  readonly element?: Unit;
  /** Whether runs, which no instruction moves at once, are written past the caches: so much that none would keep it. */
  readonly isFar?: boolean;
}

/** A move that can be made again and again, on one thread: it counts in memory of its own. */
export interface PreparedMove {
  /** The addresses of the first piece that is written and of the first that is read, each in two halves. */
  readonly addresses: Uint32Array<ArrayBuffer>;
  readonly job: HandleArgument;
  readonly code: HandleArgument;
  /** The same, for a thread that makes the move when its addresses are there. */
  readonly call: NativeCall;
}

/** Bytes of a job before the axes that are counted in memory: 0 to, 8 from, then as the programs say. */
const head = 88;
const axisBytes = 32;

// law native/moveProgram: native/strided_mover
/** Goes to the next row along the axes that are counted in memory, each {extent, left, to, from}, then 0. */
function nextAlong(job: "first" | "kept", to: "third" | "keptTo", from: "second" | "keptFrom"): Operation[] {
  return [
    ["point", "axis", job, head],
    ["label", "next axis"],
    ["get", "rows", "axis", 0],
    ["ifZero", "rows", "over"],
    ["addFrom", to, "axis", 16],
    ["addFrom", from, "axis", 24],
    ["get", "left", "axis", 8],
    ["lower", "left"],
    ["put", "left", "axis", 8],
    ["unlessZero", "plane"],
    ["put", "rows", "axis", 8], // as many again, when the axis before has moved on
    ["point", "axis", "axis", axisBytes],
    ["go", "next axis"],
    ["label", "over"],
  ];
}

/** Pieces that a row's loop moves before it looks whether there are more. */
const unrolled = 4;

/** A row: as often as the job says at 16 so many pieces, and at 24 single ones. */
function row(pieces: readonly Operation[], piece: readonly Operation[]): Operation[] {
  return [
    ["get", "left", "first", 16],
    ["ifZero", "left", "singles"],
    ["label", "several"],
    ...pieces,
    ["lower", "left"],
    ["unlessZero", "several"],
    ["label", "singles"],
    ["get", "left", "first", 24],
    ["ifZero", "left", "row's end"],
    ["label", "single"],
    ...piece,
    ["lower", "left"],
    ["unlessZero", "single"],
    ["label", "row's end"],
  ];
}

function repeated(operations: readonly Operation[], times: number): Operation[] {
  return Array.from({ length: times }, () => operations).flat();
}

/**
 * Moves pieces. Called with a job: 16 and 24 as above, 32 and 40 the steps from one to the next, 48 rows, 56 and 64 the
 * steps from the end of one to the next, 72 and 80 two steps from one to the next.
 *
 * Of two pieces the second one is found by adding a step to where the first one is, and then two steps are made at once,
 * by numbers in registers: with an addition for each piece, of which each waits for the one before, small pieces took
 * half as long again.
 */
export function moveProgram(unit: Unit): readonly Operation[] {
  return [
    ["enter"],
    ["get", "kept", "first", 72],
    ["get", "third", "first", 0],
    ["get", "second", "first", 8],
    ["get", "toStep", "first", 32],
    ["get", "fromStep", "first", 40],
    ["label", "plane"],
    ["get", "axis", "first", 80], // until the next axis is looked for
    ["get", "rows", "first", 48],
    ["label", "row"],
    ...row(
      repeated([
        ["load", unit, "second"],
        ["store", unit, "third"],
        ["loadAt", unit, "second", "fromStep"],
        ["storeAt", unit, "third", "toStep"],
        ["add", "second", "axis"],
        ["add", "third", "kept"],
      ], unrolled / 2),
      [
        ["load", unit, "second"],
        ["store", unit, "third"],
        ["add", "second", "fromStep"],
        ["add", "third", "toStep"],
      ],
    ),
    ["addFrom", "third", "first", 56],
    ["addFrom", "second", "first", 64],
    ["lower", "rows"],
    ["unlessZero", "row"],
    ...nextAlong("first", "third", "second"),
    ["leave"],
    ["return"],
  ];
}

// law native/gatherProgram: native/strided_mover, copy/host_move
/** Bytes that are brought together before they are written. */
const together = 16;

/**
 * Moves single bytes to rows that are dense: 16 from anywhere, at equal steps, are written at once. Called with a job as
 * above, whose 16 counts as many. Processors write less often than they read: so it takes half as long as byte by byte.
 * On x86-64 it is SSE4.1's, which engines ask for, too, before they run WebAssembly with vectors.
 */
export const gatherProgram: readonly Operation[] = [
  ["enter"],
  ["get", "third", "first", 0],
  ["get", "second", "first", 8],
  ["get", "fromStep", "first", 40],
  ["label", "plane"],
  ["get", "axis", "first", 80], // until the next axis is looked for
  ["get", "rows", "first", 48],
  ["label", "row"],
  ...row(
    [
      ...Array.from({ length: together / 2 }, (_, i): Operation[] => [
        ["insert", 2 * i, "second"],
        ["insertAt", 2 * i + 1, "second", "fromStep"],
        ["add", "second", "axis"],
      ]).flat(),
      ["store", 16, "third"],
      ["point", "third", "third", together],
    ],
    [["load", 1, "second"], ["store", 1, "third"], ["add", "second", "fromStep"], ["point", "third", "third", 1]],
  ),
  ["addFrom", "third", "first", 56],
  ["addFrom", "second", "first", 64],
  ["lower", "rows"],
  ["unlessZero", "row"],
  ...nextAlong("first", "third", "second"),
  ["leave"],
  ["return"],
];

/** Whether {@linkcode gatherProgram} makes a move. */
export function isGathered({ bytes, element, axes }: StridedMove): boolean {
  const row = axes.at(-1);
  return bytes === 1 && element === undefined && row !== undefined && row.to === 1 && row.extent >= together;
}

/** Fills rows, whose pieces are 16 bytes that repeat one element. Called with a job as above. */
export function fillProgram(unit: Unit): readonly Operation[] {
  const fill: Operation[] = [["store", 16, "third"], ["add", "third", "toStep"]];
  return [
    ["get", "third", "first", 0],
    ["get", "second", "first", 8],
    ["get", "toStep", "first", 32],
    ["label", "plane"],
    ["get", "rows", "first", 48],
    ["label", "row"],
    ["repeat", unit, "second"],
    ...row(repeated(fill, unrolled), fill),
    ["addFrom", "third", "first", 56],
    ["addFrom", "second", "first", 64],
    ["lower", "rows"],
    ["unlessZero", "row"],
    ...nextAlong("first", "third", "second"),
    ["return"],
  ];
}

/** Called with a job: 16 bytes of a run, 24 the address of memcpy, or of what is called as it is. */
export const runProgram: readonly Operation[] = [
  ["enter"],
  ["copy", "kept", "first"],
  ["get", "keptTo", "kept", 0],
  ["get", "keptFrom", "kept", 8],
  ["label", "plane"],
  ["copy", "first", "keptTo"],
  ["copy", "second", "keptFrom"],
  ["get", "third", "kept", 16],
  ["call", "kept", 24],
  ...nextAlong("kept", "keptTo", "keptFrom"),
  ["leave"],
  ["return"],
];

/** The sizes that one instruction moves. */
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

/** Whether there is machine code that moves: the system allows executable memory. */
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

/** Code with its job, which begins with the two addresses. */
export function placedBy(code: bigint, job: ArrayBuffer): PreparedMove {
  const call = [code, ffiPort().addressOf(job)] as const;
  return {
    addresses: new Uint32Array(job, 0, 4),
    job: ffiPort().handle(call[1]),
    code: ffiPort().handle(call[0]),
    call,
  };
}

/** What the programs read. Exported for the test that runs them on other processors. */
export function jobOf(move: StridedMove, isUnit: boolean, memcpy: bigint): ArrayBuffer {
  const { bytes, axes } = move;
  // From where one row of an axis ends, its own steps made, to where the next one along the axis before begins.
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
 * Makes a move.
 *
 * @param to address of the first piece that is written, as a number that is exact
 * @param from address of the first that is read; whoever calls answers for both, and for all that lies along the axes
 */
export function runMove(move: PreparedMove, to: number, from: number): void {
  placeMove(move, to, from);
  runCode(move.code, move.job);
}

/** Says where the next move is to be made. Parameters as {@linkcode runMove}'s. */
export function placeMove({ addresses }: PreparedMove, to: number, from: number): void {
  addresses[0] = to;
  addresses[1] = to / 2 ** 32;
  addresses[2] = from;
  addresses[3] = from / 2 ** 32;
}
