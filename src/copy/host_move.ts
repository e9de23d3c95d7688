/**
 * Carries out plans of copies in host memory: by machine code, or by loops where the system refuses executable memory.
 *
 * @module
 */
import { ffiPort } from "../ffi/mod.ts";
import { canMoveNatively, type PreparedMove, prepareMove, runMove } from "../native/mod.ts";
import { moveByLoops } from "./host_loops.ts";
import type { HostPlan, PlacedMove, Span } from "./host_plan.ts";

/** Where offset 0 of a layout lies. */
export interface HostPlace {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly offset: number;
  /** Of the first of `bytes`, if it is known. */
  readonly ptr?: bigint | undefined;
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
  if (plan.moves.length === 0) return;
  checkSpan(plan.to, to);
  checkSpan(plan.from, from);
  const [toStart, fromStart] = prepared === null ? [null, null] : [addressOf(to), addressOf(from)];
  for (let i = 0; i < plan.moves.length; i++) {
    const move = plan.moves[i] as PlacedMove; // within its length
    const ready = prepared?.[i];
    if (ready === undefined || toStart === null || fromStart === null) {
      const [toAt, fromAt] = [to.offset + move.toOffset, from.offset + move.fromOffset];
      moveByLoops(move, { bytes: to.bytes, at: toAt }, { bytes: from.bytes, at: fromAt });
    } else runMove(ready, toStart + move.toOffset, fromStart + move.fromOffset);
  }
}

/** @throws {RangeError} if memory ends before a span of it does */
export function checkSpan({ start, end }: Span, { bytes, offset }: HostPlace): void {
  if (offset + start >= 0 && offset + end <= bytes.length) return;
  throw new RangeError(
    `Cannot copy bytes ${offset + start} to ${offset + end} of ${bytes.length}: expected all elements in the memory. ` +
      "Do not transfer it while it is viewed",
  );
}

/** The address of offset 0; null if memory has none that stays, or that is no exact number. */
export function addressOf({ bytes, offset, ptr }: HostPlace): number | null {
  if (ptr !== undefined) return exact(Number(ptr) + offset);
  if (bytes.buffer.resizable) return null;
  return exact(Number(ffiPort().addressOf(bytes.buffer)) + bytes.byteOffset + offset);
}

function exact(address: number): number | null {
  return Number.isSafeInteger(address) ? address : null;
}
