import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { coalesce } from "../../../src/vortex/file/coalesce.ts";
import { check, fc } from "../../support/property.ts";

const ranges = fc.array(fc.record({ offset: fc.nat(2000), length: fc.nat(120) }), { maxLength: 40 });
const limits = fc.record({ gap: fc.nat(60), largest: fc.integer({ min: 1, max: 400 }) });

test("every range that is not empty lies in exactly one read, and none is in a read without need", () => {
  check(fc.property(ranges, limits, (ranges, limits) => {
    const reads = coalesce(ranges, limits);
    const places = ranges.map((_, at) => reads.filter(({ parts }) => parts.includes(at)));
    ranges.forEach(({ offset, length }, at) => {
      const [read, ...others] = places[at] ?? [];
      assertEquals(others, []);
      if (length === 0) return assertEquals(read, undefined);
      assert(read !== undefined && read.offset <= offset && offset + length <= read.offset + read.length);
    });
    assert(reads.every(({ parts }) => new Set(parts).size === parts.length && parts.length > 0));
  }));
});

test("a read holds no run of more than `gap` unwanted bytes, and begins and ends with wanted ones", () => {
  check(fc.property(ranges, limits, (ranges, limits) => {
    for (const { offset, length, parts } of coalesce(ranges, limits)) {
      const wanted = new Uint8Array(length);
      for (const at of parts) {
        const range = ranges[at] ?? { offset: 0, length: 0 };
        wanted.fill(1, range.offset - offset, range.offset - offset + range.length);
      }
      const runs = wanted.join("").split("1").map((run) => run.length);
      assert(Math.max(...runs) <= limits.gap);
      assertEquals([wanted[0], wanted.at(-1)], [1, 1]);
    }
  }));
});

test("a read is larger than `largest` only if one of its ranges is", () => {
  check(fc.property(ranges, limits, (ranges, limits) => {
    for (const { length, parts } of coalesce(ranges, limits)) {
      const longest = Math.max(...parts.map((at) => ranges[at]?.length ?? 0));
      assert(length <= Math.max(limits.largest, longest), `${length} bytes for ranges of up to ${longest}`);
    }
  }));
});

test("neighbours that may be read together are", () => {
  check(fc.property(ranges, limits, (ranges, limits) => {
    const reads = coalesce(ranges, limits).sort((one, other) => one.offset - other.offset);
    for (const [at, read] of reads.entries()) {
      const next = reads[at + 1];
      if (next === undefined) break;
      // Joining even the next read's first range must have exceeded a limit.
      const first = Math.min(
        ...next.parts.map((part) => ranges[part]).filter((range) => range?.offset === next.offset)
          .map((range) => range?.length ?? 0),
      );
      const joined = Math.max(read.offset + read.length, next.offset + first) - read.offset;
      assert(next.offset - read.offset - read.length > limits.gap || joined > limits.largest);
    }
  }));
});

test("reads are in the order in which their first range is needed", () => {
  check(fc.property(ranges, limits, (ranges, limits) => {
    const firsts = coalesce(ranges, limits).map(({ parts }) => Math.min(...parts));
    assertEquals(firsts, firsts.toSorted((one, other) => one - other));
  }));
});
