/**
 * Files that PyVortex writes: every type, each edition, compact or not. Their rows are read whole, in part, for some
 * columns, and through filters.
 */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { PyObject } from "../../../src/public/python.ts";
import {
  openVortex,
  VortexError,
  type VortexFile,
  type VortexFilter,
  type VortexScanOptions,
} from "../../../src/vortex/mod.ts";
import { type Model, models, type Quirks, type Value, valueOf } from "../../support/arrow_model.ts";
import { patiently } from "../../support/child.ts";
import { needs } from "../../support/needs.ts";
import { findPython } from "../../support/python.ts";
import { check, fc } from "../../support/property.ts";
import { arrayOfValues, isVortexType, missingPyVortex, openPyVortex } from "../../support/vortex/python_arrays.ts";
import { holds, type RowValue } from "../../support/vortex/rows.ts";

const plain: Quirks = { offset: 0, tail: 0, countUnknown: false, idleBitmap: false, gap: 0 };
const folder = mkdtempSync(join(tmpdir(), "causeway-vortex-"));
after(() => rmSync(folder, { recursive: true }));
let files = 0;

/** The edition's name; null means the newest. */
const editions = fc.constantFrom(null, "core2025.10.0", "core2026.08.0", "core2026.08.3");

/** A table: a non-nullable struct. */
function tableOf(columns: readonly Model[]): Model {
  const children = columns.map((child, i) => ({ ...child, name: `c${i}` }));
  return { format: "+s", name: "", nullable: false, metadata: [], flags: 0, children, dictionary: null };
}

async function rowsOf(file: VortexFile, options: VortexScanOptions = {}): Promise<unknown[]> {
  const rows: unknown[] = [];
  for await (const batch of file.scan(options)) rows.push(...batch.toArrow().toArray());
  return rows;
}

const [title, options] = needs(missingPyVortex, "files of every type and edition have the rows that were written");

test(title, { ...options, ...patiently }, async () => {
  const python = openPyVortex();
  const write = python.evaluate("write_file");
  const cases = fc.array(models.filter(isVortexType), { minLength: 1, maxLength: 3 }).map(tableOf).chain((model) =>
    fc.record({
      model: fc.constant(model),
      values: fc.array(valueOf(model), { minLength: 1, maxLength: 30 }),
      isCompact: fc.boolean(),
      edition: editions,
    })
  );
  await check(
    fc.asyncProperty(cases, fc.nat(), fc.nat(), async ({ model, values, isCompact, edition }, one, other) => {
      const path = join(folder, `${files++}.vortex`);
      {
        using made = arrayOfValues(model, values, plain);
        write(made.own, path, isCompact, edition);
      }
      using file = await openVortex(path);
      assertEquals(file.rowCount, values.length);
      assertEquals(await rowsOf(file), values as unknown[]);
      const [start, end] = [one % (values.length + 1), other % (values.length + 1)].sort((a, b) => a - b);
      const names = ["c0", "c2"].filter((name) => model.children.some((child) => child.name === name));
      const part = await rowsOf(file, { rows: [start ?? 0, end ?? 0], columns: names, batchRows: 7 });
      const picked = values.slice(start, end).map((row) =>
        Object.fromEntries(names.map((name) => [name, (row as Record<string, Value>)[name]]))
      );
      assertEquals(part, picked as unknown[]);
      using stream = await file.toArrowStream({ rows: [start ?? 0, end ?? 0] });
      assert(!stream.taken);
    }),
    50,
  );
});

const columns = {
  int: fc.option(fc.bigInt({ min: -3n, max: 3n })),
  float: fc.constantFrom(null, -Infinity, -1.5, -0, 0, 1, Infinity, NaN),
  text: fc.option(fc.constantFrom("", "a", "ab", "abc", "b", "\u{1f600}", "a long text that no view has room for")),
  truth: fc.option(fc.boolean()),
};
type Name = keyof typeof columns;
const row = fc.record(columns);

/** A column's non-null values. */
function present(values: fc.Arbitrary<RowValue>): fc.Arbitrary<Exclude<RowValue, null>> {
  return values.filter((value): value is Exclude<RowValue, null> => value !== null);
}

const tests = fc.constantFrom<Name>("int", "float", "text", "truth").chain((column): fc.Arbitrary<VortexFilter> => {
  const value = present(columns[column]);
  const compare = fc.constantFrom("==", "!=", "<", "<=", ">", ">=" as const);
  const others: fc.Arbitrary<VortexFilter>[] = [
    fc.record({ column: fc.constant(column), op: compare, value }),
    fc.record({ column: fc.constant(column), op: fc.constantFrom("is_null", "is_not_null" as const) }),
    fc.record({
      column: fc.constant(column),
      op: fc.constant("in" as const),
      value: fc.array(value, { maxLength: 3 }),
    }),
  ];
  if (column === "text") {
    const prefix = fc.constantFrom("", "a", "ab", "b", "\u{1f600}");
    others.push(fc.record({ column: fc.constant(column), op: fc.constant("starts_with" as const), value: prefix }));
  }
  return fc.oneof(...others);
});
const filters = fc.letrec<{ filter: VortexFilter }>((tie) => ({
  filter: fc.oneof(
    { maxDepth: 2 },
    tests,
    fc.record({ and: fc.array(tie("filter"), { maxLength: 3 }) }),
    fc.record({ or: fc.array(tie("filter"), { maxLength: 3 }) }),
    fc.record({ not: tie("filter") }),
  ),
})).filter;

const [filtered, filteredOptions] = needs(missingPyVortex, "a filter keeps the rows that it is true of, zones or not");

test(filtered, { ...filteredOptions, ...patiently }, async () => {
  const python = openPyVortex();
  python.run(`
import math
def write_rows(path, ints, floats, texts, truths, repeats, edition):
    repeat = lambda values: [value for value in values for _ in range(repeats)]
    options = vx.io.VortexWriteOptions.default()
    if edition is not None:
        options = options.with_edition(edition)
    options.write(pa.table({
        "int": pa.array(repeat(ints), pa.int64()), "float": pa.array(repeat(floats), pa.float64()),
        "text": pa.array(repeat(texts), pa.string()), "truth": pa.array(repeat(truths), pa.bool_()),
    }), path)
`);
  const write = python.evaluate("write_rows");
  const list = (values: readonly unknown[]) => python.builtins["list"].$call(values);
  await check(
    fc.asyncProperty(
      fc.array(row, { minLength: 1, maxLength: 8 }),
      fc.array(filters, { minLength: 4, maxLength: 4 }),
      fc.constantFrom(1, 3000), // a zone has 8192 rows
      editions,
      async (rows, filters, repeats, edition) => {
        const path = join(folder, `${files++}.vortex`);
        const column = (name: Name) => list(rows.map((one) => one[name]));
        write(path, column("int"), column("float"), column("text"), column("truth"), repeats, edition);
        using file = await openVortex(path);
        for (const filter of filters) {
          const expected = rows.flatMap((one) =>
            holds(filter, one) === true ? Array.from({ length: repeats }, () => one.int) : []
          );
          const got: unknown[] = [];
          for await (const batch of file.scan({ columns: ["int"], filter })) {
            got.push(...batch.toArrow().child(0).toArray());
          }
          assertEquals(got, expected);
        }
      },
    ),
    20,
  );
});

const [pruned, prunedOptions] = needs(missingPyVortex, "only the segments of wanted columns and zones are read");

test(pruned, { ...prunedOptions, ...patiently }, async () => {
  const python = openPyVortex();
  const path = join(folder, "wide.vortex");
  python.run(`
import numpy as np
rng = np.random.default_rng(1)
vx.io.write(pa.table({f"c{i}": rng.integers(0, 2**30, 600_000) + np.arange(600_000) * 2**20 for i in range(10)}), ${
    JSON.stringify(path)
  })
`);
  using file = await openVortex(path);
  const before = file.readStatistics.bytes;
  let rows = 0;
  for await (const batch of file.scan({ columns: ["c3", "c7"] })) rows += batch.length;
  assertEquals(rows, 600_000);
  const part = (file.readStatistics.bytes - before) / file.byteLength;
  assert(part < 0.23, `2 of 10 columns took ${part} of the bytes`);
  const between = file.readStatistics.bytes;
  const filter: VortexFilter = { column: "c3", op: "<", value: 2 ** 36 };
  for await (const batch of file.scan({ columns: ["c7"], filter })) rows += batch.length;
  assert(file.readStatistics.bytes - between < (between - before) / 2, "zones did not exclude anything");
  assert(file.explain().includes("c3: zoned, 600000 rows"), file.explain());
  assertEquals(file.statistics.get("c3")?.nullCount, 0);
});

const [wrong, wrongOptions] = needs(missingPyVortex, "a file that is cut off or changed is refused, or read as it was");

test(wrong, { ...wrongOptions, ...patiently }, async () => {
  const python = openPyVortex();
  const path = join(folder, "small.vortex");
  python.run(
    `vx.io.write(pa.table({"a": list(range(100)), "b": ["x" * (i % 20) for i in range(100)]}), ${
      JSON.stringify(path)
    })`,
  );
  const whole = Uint8Array.from(readFileSync(path));
  await check(
    fc.asyncProperty(fc.nat(whole.length - 1), async (length) => {
      await assertRejects(() => openVortex(whole.subarray(0, length)), VortexError);
    }),
    200,
  );
  await check(
    fc.asyncProperty(fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }), async (
      changes,
    ) => {
      const bytes = whole.slice();
      for (const [at, value] of changes) bytes[at] = value;
      try {
        using file = await openVortex(bytes, { limits: { bytes: 2 ** 26 } });
        await rowsOf(file);
      } catch (error) {
        assert(error instanceof VortexError, `${error}`);
      }
    }),
    500,
  );
});

test("a missing file, and anything but a file of Vortex, is refused", async () => {
  await assertRejects(() => openVortex(new Uint8Array(3)), VortexError, "too few");
  await assertRejects(() => openVortex(new Uint8Array(100)), VortexError, "VTXF");
  await assertRejects(() => openVortex(7 as never), TypeError, "expected bytes, a Blob, a path");
  const path = join(folder, "none.vortex");
  await assertRejects(() => openVortex(path), Error, "ENOENT");
  writeFileSync(path, "x");
  await assertRejects(() => openVortex(path), VortexError);
});

const withPolars = findPython("vortex-data", "polars", "pyarrow");

// Polars 2.1 reads Arrow's decimals of 32 and 64 bits as if they had 128.
const [decimals, decimalsOptions] = needs(
  typeof withPolars === "string" ? withPolars : missingPyVortex,
  "decimals of any precision have PyVortex's types in Arrow, and their values in Polars and PyArrow",
);

test(decimals, { ...decimalsOptions, ...patiently }, async () => {
  const python = openPyVortex();
  const path = join(folder, "decimals.vortex");
  python.run(`
import decimal, polars
def write(precision, scale, units):
    decimal.getcontext().prec = 76
    kind = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    values = [None if unit is None else decimal.Decimal(unit).scaleb(-scale) for unit in units]
    vx.io.write(pa.table({"d": pa.array(values, kind)}), ${JSON.stringify(path)})
    return [str(value) for value in values], str(vx.open(${JSON.stringify(path)}).to_arrow().read_all().schema.types[0])
def read(stream):
    table = pa.RecordBatchReader.from_stream(stream).read_all()
    return [str(value) for value in table["d"].to_pylist()], str(table.schema.types[0])
def read_polars(stream): return [str(value) for value in polars.DataFrame(stream)["d"].to_list()]
`);
  const [write, read, readPolars]: PyObject[] = ["write", "read", "read_polars"].map((name) => python.evaluate(name));
  const columns = fc.integer({ min: 1, max: 76 }).chain((precision) =>
    fc.tuple(
      fc.constant(precision),
      fc.integer({ min: 0, max: precision }),
      fc.array(fc.option(fc.bigInt({ min: 1n - 10n ** BigInt(precision), max: 10n ** BigInt(precision) - 1n })), {
        minLength: 1,
        maxLength: 5,
      }),
    )
  );
  await check(
    fc.asyncProperty(columns, async ([precision, scale, units]) => {
      const expected: unknown = write?.(precision, scale, units.map((unit) => unit === null ? null : `${unit}`))
        .$value();
      using file = await openVortex(path);
      assertEquals(read?.(await file.toArrowStream()).$value(), expected);
      if (precision > 38) return; // not in Polars
      assertEquals([readPolars?.(await file.toArrowStream()).$value()], (expected as unknown[]).slice(0, 1));
    }),
    60,
  );
});
