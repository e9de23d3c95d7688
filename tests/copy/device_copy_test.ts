/** Copies between any two layouts, at least one on a device, by every path, against copying byte by byte. */
import { assertEquals, assertStringIncludes } from "@std/assert";
import { test } from "node:test";
import { Cuda } from "../../mod.ts";
import { check, fc } from "../support/property.ts";
import { copiedByHand, pattern } from "../support/arrays.ts";
import { assertCopied, copies, isWide, turnedCopies, view } from "../support/copies.ts";
import { room } from "../support/buffers.ts";

test("a copy between any two layouts, anywhere, moves each element to its place and touches nothing else", () => {
  check(
    fc.property(copies, (copy) => {
      using cuda = Cuda.simulate({ seed: copy.seed });
      assertCopied(cuda, copy);
    }),
    30,
  );
});

test("narrow elements are turned over, four bytes at a time where addresses and rows are multiples of four", () => {
  check(
    fc.property(turnedCopies, (copy) => {
      using cuda = Cuda.simulate({ seed: copy.seed });
      const side = isWide(copy) ? 128 / copy.itemsize : 64;
      assertStringIncludes(assertCopied(cuda, copy), `in tiles of ${side} x ${side} through shared memory`);
    }),
    10,
  );
});

test("a copy within one memory gives the elements from before it, however the two overlap", () => {
  check(
    fc.property(copies.filter(({ source, destination }) => source.size > 0 && destination.size > 0), (one) => {
      const { itemsize, seed, source, destination } = one;
      using cuda = Cuda.simulate({ seed });
      const { device, allocate, read } = room(cuda);
      const before = pattern(Math.max(source.size, destination.size), seed);
      using buffer = allocate("device", before);
      view(buffer, destination, itemsize).copyFrom(view(buffer, source, itemsize));
      device.synchronize();
      assertEquals(read(buffer), copiedByHand(source, before, destination, before));
    }),
    18,
  );
});
