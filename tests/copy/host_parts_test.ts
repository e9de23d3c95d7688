/**
 * How moves are split among threads: every piece goes to the same place as unsplit, once, and threads get even shares.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { FfiError } from "../../src/ffi/errors.ts";
import { addressOf, readyPlan, runShares } from "../../src/copy/host_move.ts";
import { splitMoves, threadsFor } from "../../src/copy/host_parts.ts";
import { type PlacedMove, planHostCopy } from "../../src/copy/host_plan.ts";
import { canMoveNatively } from "../../src/native/strided_mover.ts";
import { check, fc } from "../support/property.ts";
import { needs } from "../support/needs.ts";

const axis = fc.record({
  extent: fc.integer({ min: 1, max: 40 }),
  to: fc.integer({ min: -500, max: 500 }),
  from: fc.integer({ min: -500, max: 500 }),
});
const move: fc.Arbitrary<PlacedMove> = fc.record({
  bytes: fc.constantFrom(1, 2, 4, 8, 16, 17, 100, 1000),
  axes: fc.array(axis, { maxLength: 3 }),
  toOffset: fc.integer({ min: -1000, max: 1000 }),
  fromOffset: fc.integer({ min: -1000, max: 1000 }),
});

/** Where each byte of a move goes and comes from. */
function bytesOf({ bytes, axes, toOffset, fromOffset }: PlacedMove): [to: number, from: number][] {
  let pieces: [number, number][] = [[toOffset, fromOffset]];
  for (const { extent, to, from } of axes) {
    pieces = pieces.flatMap(([toAt, fromAt]) =>
      Array.from({ length: extent }, (_, i): [number, number] => [toAt + i * to, fromAt + i * from])
    );
  }
  return pieces.flatMap(([to, from]) => Array.from({ length: bytes }, (_, i): [number, number] => [to + i, from + i]));
}

const few = (moves: readonly PlacedMove[]) =>
  moves.reduce((sum, { bytes, axes }) => sum + axes.reduce((all, { extent }) => all * extent, bytes), 0) <= 2e5;

test("the parts of moves are all of their bytes, each once", () => {
  const sorted = (moves: readonly PlacedMove[]) => moves.flatMap(bytesOf).map(([to, from]) => `${to} ${from}`).sort();
  check(
    fc.property(
      fc.array(move, { maxLength: 3 }).filter(few),
      fc.integer({ min: 1, max: 8 }),
      fc.constantFrom(0, 100, 2000),
      (moves, threads, least) => {
        const shares = splitMoves(moves, threads, least);
        assertEquals(shares.length, threads);
        assertEquals(sorted(shares.flat()), sorted(moves));
        for (const one of moves) if (bytesOf(one).length < least) assert(shares[0]?.includes(one));
        for (const { bytes, axes } of shares.flat()) assert(bytes > 0 && axes.every(({ extent }) => extent > 0));
      },
    ),
    50,
  );
});

test("a large copy of any form is split about evenly", () => {
  const layouts = [
    [{ extent: 2 ** 26, to: 1, from: 1 }], // one run
    [{ extent: 2 ** 24, to: 4, from: 8 }], // every second element
    [{ extent: 4096, to: 4096 * 4, from: 4 }, { extent: 4096, to: 4, from: 4096 * 4 }], // transposed
    [{ extent: 3, to: 2 ** 24, from: 1 }, { extent: 2 ** 24, to: 1, from: 3 }], // deinterleaved colours
    [{ extent: 2 ** 24, to: 4, from: 0 }], // filled
    [{ extent: 3, to: 2 ** 26, from: 2 ** 26 }, { extent: 2 ** 24, to: 2, from: 4 }], // a few long rows
  ];
  for (const [i, axes] of layouts.entries()) {
    const plan = planHostCopy(axes, [1, 4, 4, 1, 4, 2][i] ?? 1);
    assertEquals(threadsFor(plan, 1), 1);
    for (let threads = 2; threads <= 8; threads++) {
      assertEquals(threadsFor(plan, threads), Math.min(threads, plan.run * plan.runs / 2 ** 23));
      const sizes = splitMoves(plan.moves, threads).map((share) =>
        share.reduce((sum, { bytes, axes }) => sum + axes.reduce((all, { extent }) => all * extent, bytes), 0)
      );
      assert(Math.max(...sizes) <= 1.3 * Math.min(...sizes), `${i}: ${sizes}`);
    }
  }
});

test("a small copy, and one whose elements may meet, is made by one thread", () => {
  assertEquals(threadsFor(planHostCopy([{ extent: 2 ** 24 - 1, to: 1, from: 1 }], 1), 8), 1);
  assertEquals(threadsFor(planHostCopy([{ extent: 2 ** 24, to: 1, from: 1 }], 1), 8), 2);
  assertEquals(threadsFor(planHostCopy([{ extent: 2 ** 26, to: 0, from: 1 }], 1), 8), 1);
});

test("a copy of any size is made by at most eight threads", () => {
  assertEquals(threadsFor(planHostCopy([{ extent: 2 ** 30, to: 1, from: 1 }], 1), 100), 8);
});

const noCode = canMoveNatively() ? null : "the system refuses executable memory";

test(...needs(noCode, "a large copy is prepared for as many threads as it is worth, a small one for none"), () => {
  const sharesOf = (extent: number, threads?: number, least?: number) =>
    readyPlan(planHostCopy([{ extent, to: 1, from: 1 }], 1), true, threads, least).shares;
  const worth = threadsFor(planHostCopy([{ extent: 2 ** 26, to: 1, from: 1 }], 1));
  assertEquals(sharesOf(2 ** 26)?.length, worth < 2 ? undefined : worth);
  assertEquals(sharesOf(2 ** 23), null);
  assertEquals(sharesOf(64, 2, 1)?.map((share) => share.length), [1, 1]);
  assertEquals(sharesOf(64, 2)?.map((share) => share.length), [1, 0]); // too little to be split
});

test(...needs(noCode, "if no thread can be started, nothing is moved by threads"), () => {
  const bytes = new Uint8Array(64).fill(1);
  const to = new Uint8Array(64);
  const { shares } = readyPlan(planHostCopy([{ extent: 64, to: 1, from: 1 }], 1), true, 2, 1);
  assert(shares !== null);
  const places = [addressOf({ bytes: to, offset: 0 }), addressOf({ bytes, offset: 0 })] as const;
  const refuse = () => {
    throw new FfiError("none left");
  };
  assertEquals([runShares(shares, ...places, refuse), to], [false, new Uint8Array(64)]);
  assertEquals([runShares(shares, ...places), to], [true, bytes]);
});
