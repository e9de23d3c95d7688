/**
 * Carries out copy plans in host memory: by machine code, or by loops if the system refuses executable memory.
 *
 * @module
 */
import { exactAddress, FfiError, ffiPort } from "../ffi/mod.ts";
import { canMoveNatively, placeMove, type PreparedMove, prepareMove, runMove, ThreadTeam } from "../native/mod.ts";
import { moveByLoops } from "./host_loops.ts";
import { minSplit, splitMoves, threadsFor } from "./host_parts.ts";
import type { Bytes, HostPlan, PlacedMove, Span } from "./host_plan.ts";

/** Where a plan begins, or the layout that it is for. */
export interface HostPlace {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly offset: number;
  /** The address of `bytes` as an exact number, and their size, if known. */
  readonly memory?: HostMemory | undefined;
}

/** Memory at an address. */
export interface HostMemory {
  readonly address: number;
  readonly size: number;
}

const nowhere: Bytes = { to: 0, from: 0 };

/** A prepared move, and where its first piece lies. */
export interface ReadyMove {
  readonly place: Pick<PlacedMove, "toOffset" | "fromOffset">;
  readonly prepared: PreparedMove;
}

/** A plan that can be carried out repeatedly. */
export interface ReadyPlan {
  readonly plan: HostPlan;
  /** Moves by machine code; null if loops make the moves. */
  readonly moves: readonly ReadyMove[] | null;
  /** Moves for each of several threads, this one first; null if this one makes all moves. */
  readonly shares: readonly (readonly ReadyMove[])[] | null;
}

// law copy/readyPlan: copy/host_parts
/**
 * Prepares a plan.
 *
 * @param natively whether to use machine code, where available
 * @param threads number of threads that make the moves
 * @param least minimum bytes of a move that is split among them
 */
export function readyPlan(
  plan: HostPlan,
  natively = canMoveNatively(),
  threads = threadsFor(plan),
  least = minSplit,
): ReadyPlan {
  const moves = natively ? readyMoves(plan.moves) : null;
  if (moves === null || threads < 2) return { plan, moves, shares: null };
  const shares = splitMoves(plan.moves, threads, least).map(readyMoves);
  return { plan, moves, shares: shares.every((share) => share !== null) ? shares : null };
}

function readyMoves(moves: readonly PlacedMove[]): readonly ReadyMove[] | null {
  const ready: ReadyMove[] = [];
  for (const place of moves) {
    const prepared = prepareMove(place);
    if (prepared === null) return null;
    ready.push({ place, prepared });
  }
  return ready;
}

// law copy/carryOut: copy/host_move
/**
 * Makes all moves of a plan.
 *
 * @param first bytes from both places to the first elements
 * @throws {RangeError} if not all elements are in the memory, for example because an array was transferred to another
 *   thread
 */
export function carryOut(ready: ReadyPlan, to: HostPlace, from: HostPlace, first: Bytes = nowhere): void {
  const { plan } = ready;
  if (plan.moves.length === 0) return;
  checkSpan(plan.to, to, first.to);
  checkSpan(plan.from, from, first.from);
  const toStart = ready.moves === null ? 0 : addressOf(to);
  const fromStart = ready.moves === null ? 0 : addressOf(from);
  if (toStart === 0 || fromStart === 0) return loopOver(plan.moves, to, from, first);
  runAt(ready, toStart + first.to, fromStart + first.from);
}

/** Makes all moves of a plan by machine code, given the first elements' addresses; the caller answers for both. */
export function runAt(
  { moves, shares }: Pick<ReadyPlan, "moves" | "shares">,
  toStart: number,
  fromStart: number,
): void {
  if (shares === null || !runShares(shares, toStart, fromStart)) runMoves(moves ?? [], toStart, fromStart);
}

function runMoves(moves: readonly ReadyMove[], toStart: number, fromStart: number): void {
  for (let i = 0; i < moves.length; i++) {
    const { place, prepared } = moves[i] as ReadyMove; // within its length
    runMove(prepared, toStart + place.toOffset, fromStart + place.fromOffset);
  }
}

// law copy/runShares: copy/host_move, copy/host_parts
/**
 * Makes moves on several threads, which are started for them and end afterwards: a thread takes 0.2 ms from start to
 * end, the smallest of such copies 1 to 7 ms, and no thread remains to be managed.
 *
 * @param shares the moves of each thread, this one first
 * @returns false if there are no threads left: then nothing was moved
 */
export function runShares(
  [ours = [], ...others]: readonly (readonly ReadyMove[])[],
  toStart: number,
  fromStart: number,
  start: typeof ThreadTeam.start = (size) => ThreadTeam.start(size),
): boolean {
  const theirs = others.flat();
  let team: ThreadTeam;
  try {
    team = start({ threads: others.length, rounds: 1, calls: theirs.length });
  } catch (error) {
    if (error instanceof FfiError) return false;
    throw error;
  }
  for (const { place, prepared } of theirs) {
    placeMove(prepared, toStart + place.toOffset, fromStart + place.fromOffset);
  }
  try {
    team.begin(theirs.map(({ prepared }) => prepared.call));
    runMoves(ours, toStart, fromStart);
  } finally {
    team.close(); // waits until all moves are done
  }
  return true;
}

function loopOver(moves: readonly PlacedMove[], to: HostPlace, from: HostPlace, first: Bytes): void {
  const [toStart, fromStart] = [to.offset + first.to, from.offset + first.from];
  for (const move of moves) {
    const [toAt, fromAt] = [toStart + move.toOffset, fromStart + move.fromOffset];
    moveByLoops(move, { bytes: to.bytes, at: toAt }, { bytes: from.bytes, at: fromAt });
  }
}

// If a place's memory is known, its `bytes` are not accessed: their array is only made on access.

// law copy/hostPlaces: copy/host_move
/** @throws {RangeError} if memory ends before a span of it does, which is from `first` bytes behind the place on */
export function checkSpan({ start, end }: Span, place: HostPlace, first = 0): void {
  const length = place.memory === undefined ? place.bytes.length : place.memory.size;
  const offset = place.offset + first;
  if (offset + start < 0 || offset + end > length) throw outside(offset + start, offset + end, length);
}

function outside(start: number, end: number, length: number): RangeError {
  return new RangeError(
    `Cannot copy bytes ${start} to ${end} of ${length}: expected all elements within the memory. ` +
      "Do not transfer it while it is viewed",
  );
}

/** The address of a place; 0 if its memory has no stable address, or the address is not an exact number. */
export function addressOf(place: HostPlace): number {
  const { memory, offset } = place;
  if (memory !== undefined) return memory.address === 0 ? 0 : memory.address + offset;
  const { buffer, byteOffset } = place.bytes;
  if (buffer.resizable) return 0;
  const first = exactAddress(ffiPort().addressOf(buffer));
  return first === 0 ? 0 : first + byteOffset + offset;
}
