/**
 * The programs that move elements between two strided layouts. They read a job with the addresses, counts and steps
 * (`strided_mover.ts`).
 *
 * @module
 */
import type { Operation, Unit } from "./assembler.ts";

/** An axis: the extent, and the steps in bytes from one element to the next. */
export interface MoveAxis {
  readonly extent: number;
  readonly to: number;
  readonly from: number;
}

/** A move: pieces of `bytes` bytes along axes, of which the last varies fastest. No axis has an extent of 0. */
export interface StridedMove {
  readonly bytes: number;
  readonly axes: readonly MoveAxis[];
  /**
   * If a piece is 16 bytes that repeat one element: the element's size, which is then all that is read for it. The
   * source does not advance along the last axis.
   */
  readonly element?: Unit;
  /** Whether runs, too long for one instruction, are written past the caches: there is too much for any to keep. */
  readonly isFar?: boolean;
}

/** Bytes of a job before the axes counted in memory: `to` at 0, `from` at 8, then as the programs say. */
export const head = 88;
export const axisBytes = 32;

// law native/moveProgram: native/strided_mover
/** Advances along the axes counted in memory, a list of {extent, left, to, from} terminated by 0. */
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
    ["put", "rows", "axis", 8], // restart the count; the axis outside this one advances
    ["point", "axis", "axis", axisBytes],
    ["go", "next axis"],
    ["label", "over"],
  ];
}

/** Pieces that a row's loop moves per iteration. */
export const unrolled = 4;

/** A row: `pieces` as often as the job says at 16, then `piece` as often as it says at 24. */
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

/** Planes of rows along all axes, from `second` to `third`. @param before what starts each plane and each row */
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

/** Loads two source steps in each plane, as the register is also used for the axes between planes. */
const twoSteps: readonly Operation[] = [["get", "axis", "first", 80]];

function repeated(operations: readonly Operation[], times: number): Operation[] {
  return Array.from({ length: times }, () => operations).flat();
}

/**
 * Moves pieces. Called with a job: 16 and 24 as above, 32 and 40 the steps between pieces, 48 the number of rows, 56
 * and 64 the steps from the end of a row to the next one, 72 and 80 two steps between pieces.
 *
 * The second of two pieces is addressed by adding a step to the address of the first, and then two steps are added at
 * once, all from registers: with one addition per piece, each dependent on the previous one, small pieces took half as
 * long again.
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

/** Moves runs. Called with a job: 16 the bytes of a run, 24 the address of memcpy, or of a function like it. */
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
/** Bytes gathered before each write. */
export const together = 16;

/**
 * Moves single bytes to contiguous rows: 16 bytes from anywhere, at equal steps, are written at once. Called with a job
 * as above, in which 16 counts groups of that many bytes. CPUs write less often than they read, so this takes two
 * thirds of the time of moving byte by byte. On x86-64 it needs SSE4.1, which engines also require for WebAssembly
 * vectors.
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

/** Whether {@linkcode gatherProgram} performs a move. */
export function isGathered({ bytes, element, axes }: StridedMove): boolean {
  const row = axes.at(-1);
  return bytes === 1 && element === undefined && row !== undefined && row.to === 1 && row.extent >= together;
}
