import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { compile, scratch } from "../../src/wasm/mod.ts";

const load = compile({
  parameters: 1,
  hasResult: true,
  locals: [],
  body: [["local.get", 0], ["i32.load", 0]],
});

test("there is as much memory as requested, the same for all callers, and its contents stay when it grows", () => {
  const before = scratch(16);
  before.set([1, 2, 3, 4], 8);
  assertEquals(load(8), 0x04030201);
  const after = scratch(before.length + 1);
  assert(after.length > before.length);
  assertEquals(load(8), 0x04030201);
  assertEquals([...after.subarray(8, 12)], [1, 2, 3, 4]);
  after[after.length - 4] = 5;
  assertEquals(load(after.length - 4), 5);
  assert(scratch(0) === after, "memory that is large enough is neither grown nor viewed again");
});

test("memory has an end, for callers and for functions", () => {
  assertThrows(() => scratch(2 ** 26 + 1), RangeError, "Expected at most 67108864 bytes, got 67108865");
  const { length } = scratch(0);
  assertThrows(() => load(length - 3));
});
