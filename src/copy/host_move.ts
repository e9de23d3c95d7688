/**
 * Carries out plans of copies in host memory: by machine code, or by loops where the system refuses executable memory.
 *
 * @module
 */
import { exactAddress, ffiPort } from "../ffi/mod.ts";
import { canMoveNatively, type PreparedMove, prepareMove, runMove } from "../native/mod.ts";
import { moveByLoops } from "./host_loops.ts";
import type { HostPlan, PlacedMove, Span } from "./host_plan.ts";

/** Where offset 0 of a plan lies. */
export interface HostPlace {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly offset: number;
  /** The address of the first of `bytes`, as a number that is exact, and how many they are; where that is known. */
  readonly memory?: HostMemory | undefined;
}

/** Memory at an address. */
export interface HostMemory {
  readonly address: number;
  readonly size: number;
}

/** A plan that can be carried out again and again. */
export interface ReadyPlan {
  readonly plan: HostPlan;
  /** One for each move; null if loops make them. */
  readonly prepared: readonly PreparedMove[] | null;
}

/** Makes a plan ready. @param natively whether by machine code, where that can be had */
export function readyPlan(plan: HostPlan, natively = canMoveNatively()): ReadyPlan {
  if (!natively) return { plan, prepared: null };
  const prepared = plan.moves.map(prepareMove);
  return { plan, prepared: prepared.every((move) => move !== null) ? prepared : null };
}

// law copy/carryOut: copy/host_move
/**
 * Makes all moves of a plan.
 *
 * @throws {RangeError} if not all elements are in the memory, as when an array was transferred to another thread
 */
export function carryOut({ plan, prepared }: ReadyPlan, to: HostPlace, from: HostPlace): void {
  const { moves } = plan;
  if (moves.length === 0) return;
  checkSpan(plan.to, to);
  checkSpan(plan.from, from);
  if (prepared === null) return loopOver(moves, to, from);
  const toStart = addressOf(to);
  const fromStart = addressOf(from);
  if (toStart === 0 || fromStart === 0) return loopOver(moves, to, from);
  runAll(moves, prepared, toStart, fromStart);
}

/** Makes all moves of a plan whose spans lie in memory, from and to addresses of offset 0. */
export function runAll(
  moves: readonly PlacedMove[],
  prepared: readonly PreparedMove[],
  toStart: number,
  fromStart: number,
): void {
  for (let i = 0; i < moves.length; i++) {
    const { toOffset, fromOffset } = moves[i] as PlacedMove; // within its length
    runMove(prepared[i] as PreparedMove, toStart + toOffset, fromStart + fromOffset); // one for each
  }
}

function loopOver(moves: readonly PlacedMove[], to: HostPlace, from: HostPlace): void {
  for (const move of moves) {
    const [toAt, fromAt] = [to.offset + move.toOffset, from.offset + move.fromOffset];
    moveByLoops(move, { bytes: to.bytes, at: toAt }, { bytes: from.bytes, at: fromAt });
  }
}

// Whose memory is known is not asked for its bytes: they are made an array of only then.

/** @throws {RangeError} if memory ends before a span of it does */
export function checkSpan({ start, end }: Span, place: HostPlace): void {
  const length = place.memory === undefined ? place.bytes.length : place.memory.size;
  const { offset } = place;
  if (offset + start < 0 || offset + end > length) throw outside(offset + start, offset + end, length);
}

function outside(start: number, end: number, length: number): RangeError {
  return new RangeError(
    `Cannot copy bytes ${start} to ${end} of ${length}: expected all elements in the memory. ` +
      "Do not transfer it while it is viewed",
  );
}

/** The address of a place; 0 if memory has none that stays, or that is no exact number. */
export function addressOf(place: HostPlace): number {
  const { memory, offset } = place;
  if (memory !== undefined) return memory.address === 0 ? 0 : memory.address + offset;
  const { buffer, byteOffset } = place.bytes;
  if (buffer.resizable) return 0;
  const first = exactAddress(ffiPort().addressOf(buffer));
  return first === 0 ? 0 : first + byteOffset + offset;
}
