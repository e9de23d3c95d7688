/** Error messages show any value, and never fail because of it: the message would be lost. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { show, showGiven } from "../../src/layout/mod.ts";
import { check, fc } from "../support/property.ts";

const endless: unknown[] = [];
endless.push(endless);
let deep: unknown = 1;
for (let i = 0; i < 50_000; i++) deep = [deep];
const revoked = Proxy.revocable([], {});
revoked.revoke();

/** Values that text is not made of as usual, and what is shown. */
const odd: [value: unknown, shown: string][] = [
  [endless, "(((an array,),),)"],
  [deep, "(((an array,),),)"],
  [new Array(2 ** 32 - 1), `(${"undefined, ".repeat(100)}...)`],
  [{ toString: null, valueOf: null }, "a value that cannot be shown"],
  [revoked.proxy, "a value that cannot be shown"],
  [Object.create(null), "an object"],
  [(x: number) => x, "a function"],
  [class {}, "a function"],
  [Symbol("s"), "Symbol(s)"],
  [new Map(), "an instance of Map"],
  [(function* () {})(), "an instance of Generator"],
  [[1n, "a", [2]], '(1n, "a", (2,))'],
];

test("any value is shown, in few characters", () => {
  for (const [value, shown] of odd) assertEquals(show(value), shown);
  assertEquals([showGiven(endless), showGiven("x".repeat(50))], ["an array", "a string of 50 characters"]);
  check(
    fc.property(fc.anything({ withBigInt: true, withNullPrototype: true, withSparseArray: true }), (value) => {
      assert(typeof show(value) === "string" && typeof showGiven(value) === "string");
    }),
    500,
  );
});
