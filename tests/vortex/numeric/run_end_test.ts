import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { checkRuns, runsInto } from "../../../src/vortex/numeric/run_end.ts";
import { fillRuns } from "../../../src/vortex/ops/take.ts";
import { check, fc } from "../../support/property.ts";
import { encodeRuns } from "../../support/vortex/encoders.ts";
import { bytesOf, randomWords } from "../../support/vortex/words.ts";

test("each run is repeated to its end, in any slice, and each row knows its run", () => {
  const column = fc.record({
    width: fc.constantFrom(1, 2, 4, 8, 16, 32),
    lengths: fc.array(fc.oneof(fc.nat(3), fc.nat(40), fc.nat(300)), { maxLength: 30 }),
    from: fc.double({ min: 0, max: 1, noNaN: true }),
    to: fc.double({ min: 0, max: 1, noNaN: true }),
    seed: fc.nat(),
  });
  check(
    fc.property(column, ({ width, lengths, from, to, seed }) => {
      const distinct = randomWords(seed, lengths.length, 8 * width);
      const words = lengths.flatMap((length, run) => Array.from({ length }, () => distinct[run] ?? 0n));
      const { values, ends } = encodeRuns(words);
      const offset = Math.floor(from * words.length);
      const length = Math.floor(to * (words.length - offset));
      // A slice keeps the runs that it overlaps.
      const first = ends.findIndex((end) => end > offset);
      const kept = first < 0 ? { values: [], ends: [] } : { values: values.slice(first), ends: ends.slice(first) };
      checkRuns(Uint32Array.from(kept.ends), length, offset);
      const out = new Uint8Array(length * width);
      runsInto(out, bytesOf(kept.values, 8 * width), width, Float64Array.from(kept.ends), offset);
      const wanted = words.slice(offset, offset + length);
      assertEquals(out, bytesOf(wanted, 8 * width));
      const runs = new Uint32Array(length);
      fillRuns(Uint16Array.from(kept.ends), runs, offset);
      assertEquals([...runs].map((run) => kept.values[run]), wanted);
    }),
    500,
  );
});

test("ends that do not rise, begin before the first row or miss the last one are refused", () => {
  const look = (ends: number[], length = 10, offset = 4) => checkRuns(Float64Array.from(ends), length, offset);
  look([6, 14]);
  look([4, 6, 20]); // a run that a slice cuts off
  look([], 0);
  assertThrows(() => look([3, 14]), Error, "Run 0 ends at 3, expected an end after 3");
  assertThrows(() => look([6, 6, 14]), Error, "Run 1 ends at 6, expected an end after 6");
  assertThrows(() => look([6, 13]), Error, "The last run ends at 13, expected 14");
  assertThrows(() => look([], 1), Error, "The last run ends at 3, expected 5");
});
