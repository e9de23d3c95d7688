/**
 * Moves in host memory, by machine code and by loops, against an oracle that moves one byte of one element at a time.
 */
import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { moveByLoops } from "../../src/copy/host_loops.ts";
import { carryOut, readyPlan } from "../../src/copy/host_move.ts";
import { planHostCopy } from "../../src/copy/host_plan.ts";
import { canMoveNatively } from "../../src/native/strided_mover.ts";
import { apart, copiedByHand, meeting, pattern, type Placed } from "../support/arrays.ts";
import { GuardedMemory } from "../support/guarded_memory.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { shapes } from "../support/strided_oracle.ts";

const itemsizes = fc.oneof(fc.constantFrom(1, 2, 4, 8, 16), fc.integer({ min: 1, max: 40 }));

/** Few axes, longer than a tile, and runs longer than those moved by units. */
const longShapes = fc.oneof(
  fc.tuple(fc.integer({ min: 1, max: 70 }), fc.integer({ min: 1, max: 70 })),
  fc.tuple(fc.constantFrom(2, 3, 4, 33), fc.constantFrom(40, 65, 100), fc.constantFrom(1, 2, 3)),
  fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 700, max: 2200 })),
);

/** Two arrays of one shape and itemsize; elements of the destination may also meet: the last one stays. */
const pairs: fc.Arbitrary<{ source: Placed; destination: Placed }> = fc.tuple(
  fc.oneof({ weight: 3, arbitrary: shapes(8) }, { weight: 1, arbitrary: longShapes }),
  itemsizes,
).chain(([shape, itemsize]) => {
  const either = fc.oneof(
    { weight: 3, arbitrary: apart(shape, itemsize) },
    { weight: 1, arbitrary: meeting(shape, itemsize) },
  );
  return fc.record({ source: either, destination: either });
});

function planOf({ source, destination }: { readonly source: Placed; readonly destination: Placed }) {
  const { shape, strides, itemsize } = destination.layout;
  const axes = shape.map((extent, axis) => ({
    extent,
    to: (strides[axis] ?? NaN) * itemsize,
    from: (source.layout.strides[axis] ?? NaN) * itemsize,
  }));
  return planHostCopy(axes, itemsize);
}

const startOf = ({ layout, offset }: Placed) => offset + layout.sliceOffsetInBytes;

const noCode = canMoveNatively() ? null : "the system refuses executable memory";

/** How moves run: by which code, on how many threads, and whether runs bypass the caches. */
const ways = [
  { name: "machine code", natively: true, threads: 1, isFar: false, runs: 800 },
  { name: "machine code on threads", natively: true, threads: 3, isFar: false, runs: 150 },
  { name: "machine code past the caches", natively: true, threads: 1, isFar: true, runs: 250 },
  { name: "loops", natively: false, threads: 1, isFar: false, runs: 800 },
];

for (const { name, natively, threads, isFar, runs } of ways) {
  const missing = natively ? noCode : null;
  test(
    ...needs(missing, `${name} moves every element to its place and touches no other byte, up to a page's end`),
    () => {
      const memory = new GuardedMemory();
      check(
        fc.property(pairs, fc.nat(3), fc.nat(3), (pair, toShift, fromShift) => {
          const { source, destination } = pair;
          memory.reset();
          // Bytes before the elements shift them off any alignment; bytes behind them must not even be read.
          const [from, to] = [memory.bytes(source.size), memory.bytes(destination.size)];
          from.bytes.set(pattern(source.size, 1 + toShift));
          to.bytes.set(pattern(destination.size, 5 + fromShift));
          const before = from.bytes.slice();
          const expected = copiedByHand(source, before, destination, to.bytes.slice());
          const near = planOf(pair);
          const plan = isFar ? { ...near, moves: near.moves.map((move) => ({ ...move, isFar })) } : near;
          const ready = readyPlan(plan, natively, plan.isFree ? threads : 1, 8);
          assertStrictEquals(ready.moves === null, !natively);
          for (let again = 0; again < 2; again++) {
            carryOut(
              ready,
              {
                bytes: to.bytes,
                offset: startOf(destination),
                memory: { address: Number(to.address), size: destination.size },
              },
              { bytes: from.bytes, offset: startOf(source) },
            );
            assertEquals(to.bytes, expected);
            assertEquals(from.bytes, before);
          }
        }),
        runs,
      );
    },
  );
}

test("loops with indices beyond 32 bits move every element to its place and touch no other byte", () => {
  check(
    fc.property(pairs, (pair) => {
      const { source, destination } = pair;
      const bytes = { to: pattern(destination.size, 5), from: pattern(source.size, 1) };
      const expected = copiedByHand(source, bytes.from, destination, bytes.to.slice());
      const { moves } = planOf(pair);
      for (const move of moves) {
        const to = { bytes: bytes.to, at: startOf(destination) + move.toOffset };
        moveByLoops(move, to, { bytes: bytes.from, at: startOf(source) + move.fromOffset }, 0);
      }
      assertEquals(bytes.to, expected);
    }),
    500,
  );
});

test("elements outside the memory are refused", () => {
  const sixteen = (from: number) => readyPlan(planHostCopy([{ extent: 16, to: 1, from }], 1));
  const bytes = new Uint8Array(16);
  const other = new Uint8Array(new ArrayBuffer(17));
  const move = (offset: number) => carryOut(sixteen(-1), { bytes: other, offset: 0 }, { bytes, offset });
  move(15);
  for (const offset of [14, 16, -1]) {
    assertThrows(() => move(offset), RangeError, "expected all elements within the memory");
  }
  for (const offset of [2, -1]) {
    assertThrows(
      () => carryOut(sixteen(1), { bytes: other, offset }, { bytes, offset: 0 }),
      RangeError,
      "of 17: expected all elements within the memory",
    );
  }
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
  assertThrows(() => move(15), RangeError, "of 0: expected all elements within the memory");
});
