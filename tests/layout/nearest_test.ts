/** Which known name a mistyped one resembles most. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { editDistance } from "../../src/layout/nearest.ts";
import { check, fc } from "../support/property.ts";

test("the distance between two words is what a search of all finds", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "-"), maxLength: 5 });
  /** By recursion, as the distance is defined. */
  const slow = (one: string, other: string): number => {
    if (one === "" || other === "") return one.length + other.length;
    const [a, b] = [one.slice(0, -1), other.slice(0, -1)];
    const swapped = one.length > 1 && other.length > 1 && one.at(-1) === other.at(-2) && one.at(-2) === other.at(-1)
      ? slow(one.slice(0, -2), other.slice(0, -2)) + 1
      : Infinity;
    return Math.min(slow(a, other) + 1, slow(one, b) + 1, slow(a, b) + (one.at(-1) === other.at(-1) ? 0 : 1), swapped);
  };
  check(fc.property(word, word, (one, other) => assertEquals(editDistance(one, other), slow(one, other))), 200);
});
