/**
 * Conversions of rows that are contiguous on both sides, with gaps between them: machine code reads and writes them
 * where they are, with one call for all rows along an axis.
 *
 * @module
 */
import { type MoveAxis, type NativeLoop, type PreparedMove, prepareLoop, runMove } from "../native/mod.ts";
import type { ConversionPlan } from "./conversion_plan.ts";
import type { ConversionStage } from "./conversion_stage.ts";
import { addressOf, type HostPlace } from "./host_move.ts";
import type { Bytes } from "./host_plan.ts";

/** Rows that can be converted repeatedly. */
export interface ReadyRows {
  readonly stage: ConversionStage;
  /** The axis along which the rows lie, and those outside it. */
  readonly rows: MoveAxis;
  readonly outer: readonly MoveAxis[];
  /** Elements of a row. */
  readonly length: number;
  /** Made at first use: whole iterations of each row, and the last one, which ends with it, unless none is left. */
  readonly moves: Moves;
}

interface Moves {
  whole?: PreparedMove;
  rest?: PreparedMove;
}

/**
 * The least elements in all rows of a call, if there are several calls: below, boxes are faster, which hold as many.
 */
const worthCall = 512;

// law copy/readyRows: copy/host_conversion
/**
 * The rows of a plan; null if elements of a row are apart, or too few for an iteration, or all are in one row, or the
 * rows of a call have too few.
 */
export function readyRows({ axes, isFree }: ConversionPlan, stage: ConversionStage): ReadyRows | null {
  const [inner, rows] = [axes.at(-1), axes.at(-2)];
  if (!isFree || inner === undefined || rows === undefined || inner.extent < stage.turn) return null;
  if (inner.from !== stage.fromBytes || inner.to !== stage.toBytes) return null;
  const outer = axes.slice(0, -2);
  if (outer.length > 0 && inner.extent * rows.extent < worthCall) return null;
  return { stage, rows, outer, length: inner.extent, moves: {} };
}

// law copy/convertRows: copy/host_conversion, copy/native_conversion
/**
 * Converts all rows. What is left of each after its whole iterations is converted by one that ends with the row, and so
 * converts some elements twice.
 *
 * @param first bytes from both places to the first elements
 * @returns false if memory has no address: then nothing was done
 */
export function convertRows(ready: ReadyRows, loop: NativeLoop, from: HostPlace, to: HostPlace, first: Bytes): boolean {
  const [source, destination] = [addressOf(from), addressOf(to)];
  if (source === 0 || destination === 0) return false;
  const { stage: { turn, fromBytes, toBytes }, length, moves } = ready;
  const turns = Math.floor(length / turn);
  moves.whole ??= prepared(ready, loop, turns);
  walk(moves.whole, ready.outer, 0, destination + first.to, source + first.from);
  if (turns * turn === length) return true;
  moves.rest ??= prepared(ready, loop, 1);
  const last = length - turn;
  walk(moves.rest, ready.outer, 0, destination + first.to + last * toBytes, source + first.from + last * fromBytes);
  return true;
}

function prepared({ stage: { turn, fromBytes, toBytes }, rows }: ReadyRows, loop: NativeLoop, turns: number) {
  const [to, from] = [rows.to - turns * turn * toBytes, rows.from - turns * turn * fromBytes];
  return prepareLoop(loop, turns, { count: rows.extent, to, from });
}

function walk(move: PreparedMove, outer: readonly MoveAxis[], axis: number, to: number, from: number): void {
  const along = outer[axis];
  if (along === undefined) runMove(move, to, from);
  else for (let i = 0; i < along.extent; i++) walk(move, outer, axis + 1, to + i * along.to, from + i * along.from);
}
