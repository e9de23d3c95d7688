import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { enlist, run, scratch } from "../../src/wasm/mod.ts";

test("of many functions the chosen one is called, with its arguments in order", () => {
  const memory = new DataView(scratch(64).buffer);
  const functions = Array.from({ length: 20 }, (_, i) =>
    enlist({
      parameters: 3,
      locals: [],
      body: [
        ["local.get", 0],
        ["local.get", 1],
        ["local.get", 2],
        ["i32.sub"],
        ["i32.const", 100 * i],
        ["i32.add"],
        ["i32.store", 0],
      ],
    }));
  for (const [i, one] of [...functions.entries(), ...functions.entries()].toReversed()) {
    run(one, 4 * (i % 3), 70, 30 + i);
    assertEquals(memory.getInt32(4 * (i % 3), true), 40 - i + 100 * i);
  }
});

test("a function of other than three arguments is not called", () => {
  const two = enlist({ parameters: 2, locals: [], body: [] });
  assertThrows(() => run(two, 1, 2, 3));
});
