import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { patchInto, patchLanesInto } from "../../../src/vortex/numeric/patches.ts";
import { indicesOf } from "../../../src/vortex/numeric/words.ts";
import { check, fc } from "../../support/property.ts";
import { bytesOf, randomWords } from "../../support/vortex/words.ts";

const anyWidth = fc.constantFrom(1, 2, 4, 8, 16, 32);

test("patches stand where they say, the last of several counting, and nothing else changes", () => {
  const patched = fc.record({
    width: anyWidth,
    length: fc.integer({ min: 1, max: 300 }),
    offset: fc.nat(2000),
    places: fc.array(fc.nat(299), { maxLength: 50 }),
    bits: fc.constantFrom(16 as const, 32 as const, 64 as const),
    seed: fc.nat(),
  });
  check(fc.property(patched, ({ width, length, offset, places, bits, seed }) => {
    const words = randomWords(seed, length, 8 * width);
    const values = randomWords(seed + 1, places.length, 8 * width);
    const rows = places.map((place) => place % length);
    const out = bytesOf(words, 8 * width);
    const indices = indicesOf(bytesOf(rows.map((row) => BigInt(row + offset)), bits), bits);
    patchInto(out, bytesOf(values, 8 * width), width, indices, offset);
    for (const [patch, row] of rows.entries()) words[row] = values[patch] ?? 0n;
    assertEquals(out, bytesOf(words, 8 * width));
  }));
});

test("a patch of a missing row is refused, before the first row and after the last", () => {
  const out = new Uint8Array(16);
  const patch = (index: number | bigint, bits: 8 | 64 = 8) =>
    patchInto(out, new Uint8Array(4), 4, indicesOf(bytesOf([BigInt(index)], bits), bits), 10);
  patch(13);
  assertThrows(() => patch(14), Error, "Patch 0 is for row 4, expected 0 to 3");
  assertThrows(() => patch(9), Error, "Patch 0 is for row -1");
  assertThrows(() => patch(2n ** 32n + 11n, 64), Error, "Patch 0 is for row 4294967297");
  assertThrows(() => patch(2n ** 64n - 1n, 64), Error, "expected 0 to 3");
  assertThrows(
    () => patchInto(out, new Uint8Array(4), 4, new Uint8Array(2), 0),
    Error,
    "a value for each of 2 patches",
  );
});

test("patches by block and lane stand where they say, and those outside of a slice nowhere", () => {
  const patched = fc.record({
    width: fc.constantFrom(1, 2, 4, 8),
    lanes: fc.constantFrom(1, 16, 32),
    offset: fc.nat(1023),
    length: fc.integer({ min: 1, max: 3000 }),
    patches: fc.uniqueArray(fc.nat(4095), { maxLength: 60 }),
    seed: fc.nat(),
  });
  check(
    fc.property(patched, ({ width, lanes, offset, length, patches, seed }) => {
      const blocks = Math.ceil((offset + length) / 1024);
      const here = patches.filter((row) => row < blocks * 1024);
      const words = randomWords(seed, length, 8 * width);
      // Lane by lane: the writer chooses which rows a lane has.
      const laneOf = (row: number) => Math.floor(row / 1024) * lanes + row % lanes;
      const sorted = here.toSorted((one, two) => laneOf(one) - laneOf(two));
      const laneOffsets = Array.from(
        { length: blocks * lanes + 1 },
        (_, lane) => sorted.filter((row) => laneOf(row) < lane).length,
      );
      const values = randomWords(seed + 1, sorted.length, 8 * width);
      const out = bytesOf(words, 8 * width);
      const places = Uint16Array.from(sorted, (row) => row % 1024);
      patchLanesInto(out, bytesOf(values, 8 * width), width, {
        laneOffsets: Uint32Array.from(laneOffsets),
        lanes,
        places,
      }, offset);
      for (const [patch, row] of sorted.entries()) {
        if (row >= offset && row < offset + length) words[row - offset] = values[patch] ?? 0n;
      }
      assertEquals(out, bytesOf(words, 8 * width));
    }),
    300,
  );
});

test("lanes whose offsets fall, or end beyond the patches, are refused", () => {
  const patch = (...laneOffsets: number[]) =>
    patchLanesInto(new Uint8Array(40), new Uint8Array(3), 1, {
      laneOffsets: Uint32Array.from(laneOffsets),
      lanes: 1,
      places: Uint16Array.of(1, 2, 3),
    }, 0);
  patch(0, 3);
  assertThrows(() => patch(0, 4), Error, "Block 0 has patches 0 to 4, expected a range within 0 to 3");
  assertThrows(() => patch(2, 1), Error, "Block 0 has patches 2 to 1");
});
