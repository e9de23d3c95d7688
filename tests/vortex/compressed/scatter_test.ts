import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { scatter } from "../../../src/vortex/compressed/scatter.ts";
import { check, fc } from "../../support/property.ts";

test("values that are not null go to the rows that are not null, and zeros to the others", () => {
  check(
    fc.property(fc.array(fc.option(fc.bigInt(1n, 2n ** 64n - 1n))), fc.constantFrom(8, 16, 32, 64), (rows, bits) => {
      const kind = { 8: Uint8Array, 16: Uint16Array, 32: Uint32Array, 64: BigUint64Array }[bits] ?? BigUint64Array;
      const values = new kind(rows.length);
      const validity = new Uint8Array(Math.ceil(rows.length / 8));
      const valid = rows.filter((row) => row !== null).map((row) => BigInt.asUintN(bits, row));
      rows.forEach((row, i) => validity[i >> 3] = (validity[i >> 3] ?? 0) | Number(row !== null) << (i & 7));
      valid.forEach((value, i) => values[i] = values instanceof BigUint64Array ? value : Number(value));
      scatter(values, valid.length, validity);
      assertEquals(Array.from(values, BigInt), rows.map((row) => row === null ? 0n : BigInt.asUintN(bits, row)));
    }),
    1000,
  );
});
