import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { compile, scratch } from "../../src/wasm/mod.ts";
import { check, fc } from "../support/property.ts";

test("constants of every length arrive, signed and unsigned", () => {
  const numbers = fc.oneof(
    fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n),
    fc.nat(63).chain((bit) => fc.constantFrom(-1n, 0n, 1n).map((off) => BigInt.asIntN(64, (1n << BigInt(bit)) + off))),
    fc.nat(63).map((bit) => BigInt.asIntN(64, -(1n << BigInt(bit)))),
  );
  check(
    fc.property(numbers, fc.nat(70_000), (value, offset) => {
      const memory = new DataView(scratch(offset + 16).buffer);
      // Long enough for two-byte sizes, too.
      const padding = Array.from({ length: offset % 200 }, () => [["local.get", 0], ["local.set", 0]] as const).flat();
      const write = compile({
        parameters: 1,
        locals: [],
        body: [...padding, ["local.get", 0], ["i64.const", value], ["i64.store", offset]],
      });
      write(8);
      assertEquals(memory.getBigInt64(8 + offset, true), value);
    }),
    300,
  );
});

test("vectors are loaded, shuffled and stored, by opcodes of one byte and of two", () => {
  const memory = scratch(64);
  memory.set(Array.from({ length: 16 }, (_, index) => 10 * index));
  const reverse = compile({
    parameters: 2,
    locals: ["i32", "i64", "v128"],
    body: [
      ["local.get", 1],
      ["local.get", 0],
      ["v128.load", 0],
      ["local.tee", 4],
      ["local.get", 4],
      ["i8x16.shuffle", 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
      ["v128.const", 0x0101_0101_0101_0101n, 0x0202_0202_0202_0202n],
      ["i8x16.add"],
      ["v128.const", 1n, 0n],
      ["i64x2.add"],
      ["v128.store", 16],
    ],
  });
  assertEquals(reverse(0, 16), undefined);
  const wanted = Array.from({ length: 16 }, (_, index) => 10 * (15 - index) + (index < 8 ? 1 : 2) + (index ? 0 : 1));
  assertEquals([...memory.subarray(32, 48)], wanted);
});

test("a function that leaves a number returns it", () => {
  const sum = compile({
    parameters: 2,
    hasResult: true,
    locals: [],
    body: [["local.get", 0], ["local.get", 1], ["i32.add"]],
  });
  assertEquals(sum(2 ** 31 - 1, 1), -(2 ** 31));
});

test("an invalid function is refused by the engine, and cannot run", () => {
  assertThrows(() => compile({ parameters: 0, locals: [], body: [["i32.add"]] }));
});
