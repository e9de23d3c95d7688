import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import type { VortexDType } from "../../../src/vortex/dtype.ts";
import { bindFilter, type VortexFilter } from "../../../src/vortex/file/filter.ts";
import type { ColumnValue } from "../../../src/vortex/file/literal.ts";
import { type ColumnBounds, isFalsified } from "../../../src/vortex/file/prune.ts";
import { check, fc, scaled } from "../../support/property.ts";
import { holds, type RowValue } from "../../support/vortex/rows.ts";

/** A column: its dtype, values few enough for filters to hit, and how a value is compared. */
interface Column {
  readonly dtype: VortexDType;
  readonly values: fc.Arbitrary<Exclude<RowValue, null>>;
  readonly compared: (value: Exclude<RowValue, null>) => ColumnValue;
}

const negativeNaN = new Float64Array(new BigUint64Array([0xfff8_0000_0000_0000n]).buffer)[0] ?? 0;
const utf8 = (value: unknown): Uint8Array => new TextEncoder().encode(String(value));

const columns: Readonly<Record<string, Column>> = {
  int: {
    dtype: { kind: "primitive", ptype: "i64", nullable: true },
    values: fc.oneof(fc.bigInt({ min: -3n, max: 3n }), fc.bigInt({ min: 2n ** 62n, max: 2n ** 62n + 3n })),
    compared: (value) => value as bigint,
  },
  float: {
    dtype: { kind: "primitive", ptype: "f64", nullable: true },
    values: fc.constantFrom(-Infinity, -1.5, -0, 0, 1, Infinity, NaN, negativeNaN),
    compared: (value) => value as number,
  },
  text: {
    dtype: { kind: "utf8", nullable: true },
    values: fc.constantFrom("", "a", "ab", "abc", "b", "\uffee", "\u{1f600}"),
    compared: utf8,
  },
  truth: {
    dtype: { kind: "bool", nullable: true },
    values: fc.boolean(),
    compared: (value) => value as boolean,
  },
};

const root: VortexDType = {
  kind: "struct",
  names: Object.keys(columns),
  fields: Object.values(columns).map(({ dtype }) => dtype),
  nullable: false,
};

/** Filters on one column. */
function testsOf(name: string, column: Column): fc.Arbitrary<VortexFilter> {
  return testsWith(name, column.values.map((value) => Number.isNaN(value) ? NaN : value)); // literals have one NaN
}

function testsWith(name: string, values: Column["values"]): fc.Arbitrary<VortexFilter> {
  const column = fc.constant(name);
  const compare = fc.record({ column, op: fc.constantFrom("==", "!=", "<", "<=", ">", ">=" as const), value: values });
  const isNull = fc.record({ column, op: fc.constantFrom("is_null", "is_not_null" as const) });
  const isIn = fc.record({ column, op: fc.constant("in" as const), value: fc.array(values, { maxLength: 3 }) });
  const starts = fc.record({
    column,
    op: fc.constant("starts_with" as const),
    value: fc.constantFrom("", "a", "ab", "b", "\u{1f600}"),
  });
  return fc.oneof(compare as fc.Arbitrary<VortexFilter>, isNull, isIn, ...(name === "text" ? [starts] : []));
}

const { filter } = fc.letrec<{ filter: VortexFilter; test: VortexFilter }>((tie) => ({
  test: fc.oneof(...Object.entries(columns).map(([name, column]) => testsOf(name, column))),
  filter: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    tie("test"),
    fc.record({ and: fc.array(tie("filter"), { maxLength: 3 }) }),
    fc.record({ or: fc.array(tie("filter"), { maxLength: 3 }) }),
    fc.record({ not: tie("filter") }),
  ),
}));

const rowsOf = fc.array(
  fc.record(Object.fromEntries(Object.entries(columns).map(([name, { values }]) => [name, fc.option(values)]))),
  { maxLength: 5 },
);

type Exactness = "exact" | "wide" | "none";

/** What the statistics know of each column, from exact to nothing; bounds of texts may be wider than necessary. */
const statistics = fc.record({
  min: fc.constantFrom<Exactness>("exact", "wide", "none"),
  max: fc.constantFrom<Exactness>("exact", "wide", "none"),
  nullCount: fc.boolean(),
  nanCount: fc.boolean(),
  /** Whether a zero has lost its sign. */
  zero: fc.boolean(),
});

type Tell = typeof statistics extends fc.Arbitrary<infer One> ? One : never;

type Rows = readonly Readonly<Record<string, RowValue>>[];

function boundsOf(name: string, rows: Rows, tell: Tell): ColumnBounds {
  const all = rows.map((row) => row[name] ?? null);
  const values = all.filter((value) => value !== null && !Number.isNaN(value)) as Exclude<RowValue, null>[];
  const sorted = values.toSorted((one, other) =>
    holds({ column: "x", op: "<", value: other as number }, { x: one }) ? -1 : 1
  );
  const compared = (
    value: Exclude<RowValue, null> | undefined,
    kind: string,
    widen: (bytes: Uint8Array) => Uint8Array,
  ) => {
    if (value === undefined || kind === "none") return undefined;
    const known = columns[name]?.compared(value);
    if (known === 0 && tell.zero) return 0;
    return kind === "wide" && known instanceof Uint8Array ? widen(known) : known;
  };
  return {
    rows: rows.length,
    min: compared(sorted[0], tell.min, (bytes) => bytes.subarray(0, 1)),
    max: compared(sorted.at(-1), tell.max, (bytes) => Uint8Array.of(...bytes, 0)),
    nullCount: tell.nullCount ? all.filter((value) => value === null).length : undefined,
    nanCount: tell.nanCount ? all.filter((value) => Number.isNaN(value)).length : undefined,
  };
}

test("no row that a filter wants is left unread, whatever is known of it", () => {
  let pruned = 0;
  check(
    fc.property(filter, rowsOf, fc.array(statistics, { minLength: 4, maxLength: 4 }), (filter, rows, tells) => {
      const predicate = bindFilter(filter, root);
      const bounds = Object.keys(columns).map((name, at) => {
        const tell = tells[at];
        return tell === undefined ? null : boundsOf(name, rows, tell);
      });
      if (!isFalsified(predicate, ([at = 0]) => bounds[at] ?? null)) return;
      pruned++;
      assertEquals(rows.filter((row) => holds(filter, row) === true), []);
    }),
    5000,
  );
  assert(pruned > scaled(500), `${pruned} of 5000 filters were found to match nothing`);
});

test("with one value in all rows and everything known of it, a filter that wants no row is recognized", () => {
  const names = fc.constantFrom(...Object.keys(columns));
  const cases = names.chain((name) => {
    const column = columns[name];
    assert(column !== undefined);
    return fc.tuple(fc.constant(name), testsOf(name, column), column.values, fc.integer({ min: 1, max: 3 }));
  });
  check(
    fc.property(cases, ([name, filter, value, count]) => {
      if (Number.isNaN(value)) return; // bounds say nothing about NaN's order
      const rows: Rows = Array.from({ length: count }, () => ({ [name]: value }));
      const all: Tell = { min: "exact", max: "exact", nullCount: true, nanCount: true, zero: false };
      const bounds = boundsOf(name, rows, all);
      const predicate = bindFilter(filter, root);
      const isWanted = holds(filter, rows[0] ?? {});
      // A zero bound may have lost its sign, so less is known about zeros.
      if (value === 0) return assert(!isFalsified(predicate, () => bounds) || isWanted === false);
      assertEquals(isFalsified(predicate, () => bounds), isWanted === false);
    }),
    2000,
  );
});

test("of rows that are all null, only is_null wants any", () => {
  const bounds = { rows: 4, nullCount: 4 };
  const matchesNothing = (filter: VortexFilter) => isFalsified(bindFilter(filter, root), () => bounds);
  assert(!matchesNothing({ column: "int", op: "is_null" }));
  assert(matchesNothing({ column: "int", op: "is_not_null" }));
  assert(matchesNothing({ column: "float", op: ">", value: 1 }));
  assert(matchesNothing({ not: { column: "text", op: "starts_with", value: "a" } }));
});

test("where nothing is known of a column, nothing is left unread", () => {
  check(
    fc.property(filter, (filter) => {
      const matchesNothing = isFalsified(bindFilter(filter, root), () => null);
      // Except where the filter can hold for no row at all.
      if (matchesNothing) assertEquals(holdsForAnything(filter), false);
    }),
    500,
  );
});

/** Whether a filter is more than an empty "or". */
function holdsForAnything(filter: VortexFilter): boolean {
  if ("not" in filter) {
    return "not" in filter.not
      ? holdsForAnything(filter.not.not)
      : "and" in filter.not
      ? holdsForAnything({ or: filter.not.and.map((not) => ({ not })) })
      : "or" in filter.not
      ? holdsForAnything({ and: filter.not.or.map((not) => ({ not })) })
      : true;
  }
  if ("and" in filter) return filter.and.every(holdsForAnything);
  if ("or" in filter) return filter.or.some(holdsForAnything);
  return !("value" in filter && Array.isArray(filter.value) && filter.value.length === 0);
}
