/**
 * The programs that move elements between two strided layouts: they read a job, which says where, how many, and how far
 * apart (`strided_mover.ts`).
 *
 * @module
 */
import type { Operation, Unit } from "./assembler.ts";

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

/** Bytes of a job before the axes that are counted in memory: 0 to, 8 from, then as the programs say. */
export const head = 88;
export const axisBytes = 32;

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
export const unrolled = 4;

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

/** Planes of rows along all axes, from `second` to `third`. @param before what a plane begins with, and a row */
function planes(
  ofRow: readonly Operation[],
  before: { readonly plane?: readonly Operation[]; readonly row?: readonly Operation[] } = {},
): Operation[] {
  return [
    ["label", "plane"],
    ...before.plane ?? [],
    ["get", "rows", "first", 48],
    ["label", "row"],
    ...before.row ?? [],
    ...ofRow,
    ["addFrom", "third", "first", 56],
    ["addFrom", "second", "first", 64],
    ["lower", "rows"],
    ["unlessZero", "row"],
    ...nextAlong("first", "third", "second"),
  ];
}

/** The two steps from one to the next: the register counts axes, too, when a plane is over. */
const twoSteps: readonly Operation[] = [["get", "axis", "first", 80]];

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
    ...planes(
      row(
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
      { plane: twoSteps },
    ),
    ["leave"],
    ["return"],
  ];
}

/** Fills rows, whose pieces are 16 bytes that repeat one element. Called with a job as above. */
export function fillProgram(unit: Unit): readonly Operation[] {
  const fill: Operation[] = [["store", 16, "third"], ["add", "third", "toStep"]];
  return [
    ["get", "third", "first", 0],
    ["get", "second", "first", 8],
    ["get", "toStep", "first", 32],
    ...planes(row(repeated(fill, unrolled), fill), { row: [["repeat", unit, "second"]] }),
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

// law native/gatherProgram: native/strided_mover, copy/host_move
/** Bytes that are brought together before they are written. */
export const together = 16;

/**
 * Moves single bytes to rows that are dense: 16 from anywhere, at equal steps, are written at once. Called with a job as
 * above, whose 16 counts as many. Processors write less often than they read: so it takes two thirds of what it takes byte by byte.
 * On x86-64 it is SSE4.1's, which engines ask for, too, before they run WebAssembly with vectors.
 */
export const gatherProgram: readonly Operation[] = [
  ["enter"],
  ["get", "third", "first", 0],
  ["get", "second", "first", 8],
  ["get", "fromStep", "first", 40],
  ...planes(
    row(
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
    { plane: twoSteps },
  ),
  ["leave"],
  ["return"],
];

/** Whether {@linkcode gatherProgram} makes a move. */
export function isGathered({ bytes, element, axes }: StridedMove): boolean {
  const row = axes.at(-1);
  return bytes === 1 && element === undefined && row !== undefined && row.to === 1 && row.extent >= together;
}
