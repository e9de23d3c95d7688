/** The arithmetic that kernels use instead of division, against division. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { reciprocal } from "../../src/copy/ptx_fragments.ts";
import { check, fc } from "../support/property.ts";

const divisors = fc.oneof(
  fc.integer({ min: 2, max: 2000 }),
  fc.integer({ min: 2, max: 2 ** 31 }),
  fc.integer({ min: 1, max: 31 }).chain((log) => fc.constantFrom(2 ** log - 1, 2 ** log + 1)),
).filter((divisor) => divisor > 1);

const ends = fc.oneof(
  fc.integer({ min: 1, max: 2 ** 32 }),
  fc.integer({ min: 1, max: 32 }).chain((log) => fc.constantFrom(2 ** log - 1, 2 ** log)),
);

test("multiplying by a reciprocal gives the quotient of every number below the end", () => {
  const numbers = fc.array(fc.nat({ max: 2 ** 32 - 1 }), { minLength: 4, maxLength: 4 });
  check(
    fc.property(divisors, ends, numbers, (divisor, end, some) => {
      const by = reciprocal(divisor, end);
      if (by === null) return assert(end > 2 ** 31, `no reciprocal of ${divisor} below ${end}`);
      assert(by.factor < 1n << 32n);
      // The last multiple and the number before it are the first to go wrong.
      const last = Math.floor((end - 1) / divisor) * divisor;
      for (const number of [...some.map((n) => n % end), last, Math.max(0, last - 1), end - 1]) {
        assertEquals(
          Number(BigInt(number) * by.factor >> BigInt(32 + by.shift)),
          Math.floor(number / divisor),
          `${number}`,
        );
      }
    }),
    4000,
  );
});
