import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import type { VortexDType } from "../../../src/vortex/dtype.ts";
import { bindFilter, columnOf, columnsOf, type VortexFilter } from "../../../src/vortex/file/filter.ts";
import { compareBytes, compareValues, compareWith, floatKey, literalOf } from "../../../src/vortex/file/literal.ts";
import { check, fc } from "../../support/property.ts";

const i64: VortexDType = { kind: "primitive", ptype: "i64", nullable: true };
const f64: VortexDType = { kind: "primitive", ptype: "f64", nullable: true };
const utf8: VortexDType = { kind: "utf8", nullable: false };
const decimal = (scale: number): VortexDType => ({ kind: "decimal", precision: 20, scale, nullable: false });
const time = (id: string, unit: number): VortexDType => ({
  kind: "extension",
  id,
  storage: i64,
  metadata: Uint8Array.of(unit, 0, 0),
  nullable: true,
});
const place: VortexDType = { kind: "struct", names: ["city", "zip"], fields: [utf8, i64], nullable: true };
const root: VortexDType = {
  kind: "struct",
  names: ["a", "f", "twice", "twice", "place", "list"],
  fields: [i64, f64, i64, i64, place, { kind: "list", element: i64, nullable: true }],
  nullable: false,
};

test("an invalid filter, or one that its column does not support, is refused with the way out", () => {
  const wrong: [unknown, string][] = [
    [null, "Cannot filter by null: expected { column, op, value }"],
    [{ column: "a", op: "=>", value: 1 }, 'Cannot filter by { column: "a", op: "=>", value: 1 }'],
    [{ column: "a" }, "Cannot filter by"],
    [{ and: [], or: [] }, "and nothing else"],
    [{ and: { column: "a", op: "is_null" } }, "Cannot filter by"],
    [{ column: "b", op: "==", value: 1 }, 'There is no column "b". The columns are "a", "f", "twice"'],
    [{ column: ["a", "b"], op: "==", value: 1 }, "i64? has no fields"],
    [{ column: "twice", op: "==", value: 1 }, "There are several columns"],
    [{ column: "a", op: "==", value: "1" }, 'of i64? with "1": expected a number or bigint'],
    [{ column: "a", op: "<", value: NaN }, "expected a number other than NaN"],
    [{ column: "f", op: "<", value: 2n ** 53n + 1n }, "expected a number a float can hold"],
    // Such a number is Infinity as a float, which is no bigint.
    [{ column: "f", op: "<", value: 10n ** 400n }, "expected a number a float can hold"],
    [{ column: "f", op: "in", value: [1, -(10n ** 400n)] }, "expected a number a float can hold"],
    // Only combinations were checked for keys that mean nothing.
    [{ column: "a", op: ">", value: 3, extra: 1 }, "and nothing else"],
    [{ column: "a", op: "is_null", value: 3 }, "and nothing else"],
    [{ column: "a", op: "in", values: [3] }, "and nothing else"],
    [{ column: "place", op: "starts_with", value: "a", and: 1 }, "and nothing else"],
    [{ column: "a", op: "==" }, "and nothing else"],
    [{ column: "a", op: "in", value: 1 }, "expected an array"],
    [{ column: "a", op: "starts_with", value: "1" }, "expected a number"],
    [{ column: "a", op: "starts_with", value: 1 }, "expected a column of text or binary values"],
    [{ column: "list", op: "==", value: 1 }, "only is_null and is_not_null apply to it"],
    [{ column: 3, op: "==", value: 1 }, "expected a name"],
  ];
  for (const [filter, message] of wrong) assertThrows(() => bindFilter(filter as never, root), TypeError, message);
});

test("the error for a missing column has the nearest name, and the existing names", () => {
  const of = (names: readonly string[]): VortexDType => ({
    kind: "struct",
    names,
    fields: names.map(() => i64),
    nullable: false,
  });
  const message = (name: unknown, names: readonly string[]) =>
    assertThrows(() => columnOf([name as string], of(names)), TypeError).message;
  const names = ["city", "fare", "pickup_at"];
  for (const [given, meant] of [["fair", "fare"], ["City", "city"], ["pickupAt", "pickup_at"], ["fares", "fare"]]) {
    assertEquals(
      message(given, names),
      `There is no column "${given}": did you mean "${meant}"? The columns are "city", "fare", "pickup_at"`,
    );
  }
  for (const given of ["seats", "tip", "", "x", "fear of it"]) {
    assertEquals(message(given, names), `There is no column "${given}". The columns are "city", "fare", "pickup_at"`);
  }
  assertEquals(message(3, ["x"]), 'There is no column 3. The columns are "x"');
  assertEquals(message("x", []), 'There is no column "x": there are none');
  const many = Array.from({ length: 1000 }, (_, i) => `column ${i}`);
  const said = message("column 997x", many);
  assertEquals(
    said.startsWith('There is no column "column 997x": did you mean "column 997"? The columns are "column 0", '),
    true,
  );
  assertEquals(said.endsWith('"column 19" and 980 more'), true);
  const inside = assertThrows(() => columnOf(["place", "sip"], root), TypeError);
  assertEquals(inside.message, 'There is no column "place"."sip": did you mean "zip"? The columns are "city", "zip"');
});

test("columns are found by name, or by the names that lead to them", () => {
  assertEquals(columnOf("f", root).path, [1]);
  assertEquals(columnOf(["place", "zip"], root), { path: [4, 1], dtype: i64 });
  assertEquals(columnOf([], i64), { path: [], dtype: i64 });
  const filter: VortexFilter = {
    not: {
      or: [
        { column: "a", op: "<", value: 1 },
        { column: ["place", "city"], op: "==", value: "Rome" },
        { column: "a", op: "is_null" },
      ],
    },
  };
  assertEquals(columnsOf(bindFilter(filter, root)), [[0], [4, 0]]);
});

// Each item was a test of its own, a pass over the column.
test("a list is one test, of each of its values once", () => {
  const filter: VortexFilter = { column: "a", op: "in", value: [3n, 1, 3, 2.5, -7n, 1n] };
  const literals = [-7n, 1, 2.5, 3n].map((value) => ({ order: "number", value, isExact: true }) as const);
  const test = { kind: "test", path: [0], dtype: i64 } as const;
  assertEquals(bindFilter(filter, root), { ...test, test: { kind: "list", op: "in", literals } });
  assertEquals(bindFilter({ not: filter }, root), { ...test, test: { kind: "list", op: "not_in", literals } });
});

test("integers of 64 bits and fractions compare by their exact values", () => {
  const values = fc.oneof(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.bigInt({ min: -5n, max: 5n }));
  check(fc.property(values, fc.oneof(values, fc.double({ noNaN: true }), fc.integer()), (value, literal) => {
    const expected = value < literal ? -1 : value > literal ? 1 : 0;
    assertEquals(compareWith(value, literalOf(literal, i64, "it")), expected);
  }));
});

test("floats have one total order", () => {
  const key = (value: number): [bigint] | [] => {
    const bits = new DataView(new ArrayBuffer(8));
    bits.setFloat64(0, value);
    const raw = bits.getBigUint64(0);
    return [raw >> 63n === 0n ? raw + 2n ** 63n : 2n ** 64n - 1n - raw];
  };
  const values = fc.oneof(fc.double(), fc.constantFrom(0, -0, NaN, Infinity, -Infinity));
  check(fc.property(values, values, (one, other) => {
    const [[a = 0n], [b = 0n]] = [key(one), key(other)];
    const expected = a < b ? -1 : a > b ? 1 : 0;
    assertEquals(compareValues(one, other, "float"), expected);
    assertEquals(floatKey(one) < floatKey(other) ? -1 : floatKey(one) > floatKey(other) ? 1 : 0, expected);
  }));
});

test("bytes are ordered as by Buffer.compare", () => {
  const bytes = fc.uint8Array({ maxLength: 5, max: 2 });
  check(fc.property(bytes, bytes, (one, other) => {
    assertEquals(compareBytes(one, other), Buffer.compare(one, other));
  }));
});

test("a decimal compares with a text of digits exactly, as with fractions of integers", () => {
  const digits = fc.stringMatching(/^-?[0-9]{1,6}(\.[0-9]{0,4})?(e-?[0-9])?$/);
  check(fc.property(fc.bigInt({ min: -(10n ** 8n), max: 10n ** 8n }), fc.integer({ min: -3, max: 6 }), digits, (
    value,
    scale,
    text,
  ) => {
    // value / 10^scale against text, both times 10^20
    const [mantissa = "", power = "0"] = text.split("e");
    const [whole = "", rest = ""] = mantissa.split(".");
    const right = BigInt(`${whole}${rest}` === "-" ? 0 : whole + rest) *
      10n ** BigInt(20 - rest.length + Number(power));
    const left = value * 10n ** BigInt(20 - scale);
    assertEquals(compareWith(value, literalOf(text, decimal(scale), "it")), left < right ? -1 : left > right ? 1 : 0);
  }));
  assertEquals(literalOf(0.1, decimal(2), "it"), { order: "number", value: 10n, isExact: true });
  assertEquals(literalOf(-7n, decimal(1), "it"), { order: "number", value: -70n, isExact: true });
  for (const value of ["", ".", "1.2.3", "0x10", NaN, true]) {
    assertThrows(() => literalOf(value, decimal(2), "it"), TypeError, "expected a number, a bigint or a string");
  }
});

test("dates and times compare with the millisecond of a Date, in their own unit", () => {
  const units = [[0, 1e-6], [1, 1e-3], [2, 1], [3, 1e3], [4, 864e5]] as const;
  check(
    fc.property(
      fc.constantFrom(...units),
      fc.integer({ min: -1000, max: 1000 }),
      fc.integer(),
      ([unit, ms], value, at) => {
        const dtype = time(unit === 4 ? "vortex.date" : "vortex.timestamp", unit);
        const date = Math.trunc(at / 1000) + Math.round(value * ms);
        const left = value * ms;
        const expected = Math.abs(left - date) < 1e-9 ? 0 : left < date ? -1 : 1;
        assertEquals(compareWith(BigInt(value), literalOf(new Date(date), dtype, "it")), expected);
      },
    ),
  );
  assertEquals(literalOf(5n, time("vortex.time", 3), "it").value, 5n);
  assertThrows(() => literalOf(new Date(0), time("vortex.time", 3), "it"), TypeError, "expected the stored number");
  assertThrows(() => literalOf(new Date(NaN), time("vortex.date", 4), "it"), TypeError, "expected a valid Date");
  assertThrows(() => literalOf(1, time("vortex.uuid", 0), "it"), TypeError, "no known order");
});

test("a filter may be built up one by one, however long; one without an end, or too deep, is refused", () => {
  // A filter of 2,000 parts that was built up ended a scan by a stack overflow.
  const parts = Array.from({ length: 20_000 }, (_, i): VortexFilter => ({ column: "a", op: "==", value: i }));
  const last = (all: VortexFilter, one: VortexFilter): VortexFilter => ({ or: [all, one] });
  const first = (all: VortexFilter, one: VortexFilter): VortexFilter => ({ or: [one, all] });
  const negated = (all: VortexFilter, one: VortexFilter): VortexFilter => ({
    not: { and: [{ not: all }, { not: one }] },
  });
  const flat = bindFilter({ or: parts }, root);
  for (const add of [last, negated]) assertEquals(bindFilter(parts.reduce(add), root), flat);
  assertEquals(bindFilter(parts.reduceRight((all, one) => first(all, one)), root), flat);

  const refused = (filter: VortexFilter): void =>
    void assertThrows(() => bindFilter(filter, root), TypeError, "is the filter a part of itself?");
  for (const key of ["and", "or"] as const) {
    const endless = { [key]: [] as VortexFilter[] };
    for (let times = 0; times < 1000; times++) endless[key]?.push(endless as never); // many times: it would fill memory
    refused(endless as never);
  }
  const endless = { not: {} as unknown };
  endless.not = endless;
  refused(endless as never);
  const turns = (depth: number): VortexFilter =>
    parts.slice(0, depth).reduce((all, one, i) => i % 2 === 0 ? { and: [all, one] } : { or: [all, one] });
  bindFilter(turns(400), root);
  refused(turns(20_000));
});
