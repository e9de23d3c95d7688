/**
 * Files that PyVortex versions 0.40 to 0.93 wrote: each has the rows of tests/data/vortex/old_files.py, whose formulas
 * are repeated here.
 */
import { assert, assertEquals } from "@std/assert";
import { statSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { openVortex, type VortexFile, type VortexFilter, type VortexScanOptions } from "../../../src/vortex/mod.ts";
import { check, fc } from "../../support/property.ts";

const rowCount = 9000;
type Row = Readonly<Record<string, unknown>>;

function rowAt(i: number, minor: number): Row {
  const some = <T>(value: T): T | null => i % 5 === 3 ? null : value;
  return {
    row: BigInt(i),
    few: some(i * 7 % 100),
    runs: Math.floor(i / 50),
    price: some(i % 1000 / 100),
    odd: i % 97 === 0 ? NaN : i / 2,
    word: some(["one", "two", "three"][i % 3]),
    url: `https://example.org/${i % 7}/${Math.floor(i / 100)}`,
    code: (i * i * 7919 % 65536).toString(16),
    flag: some(Math.floor(i / 10) % 2 === 0),
    day: 18262 + i % 500, // from 2020-01-01 on
    at: some(BigInt(Math.floor(i / 10)) * 1_000_000n),
    money: some((i / 4).toFixed(2)),
    list: some(Array.from({ length: i % 4 }, (_, j) => j)),
    pair: { a: i % 11, b: `${i % 13}` },
    none: null,
    ...minor >= 54 && { fixed: [i % 3, i % 5] },
  };
}

/** A file, and its rows. */
async function open(minor: number): Promise<{ readonly file: VortexFile; readonly rows: readonly Row[] }> {
  const path = fileURLToPath(new URL(`../../data/vortex/written_by_0.${minor}.vortex`, import.meta.url));
  const file = await openVortex(path);
  assertEquals(file.byteLength, statSync(path).size);
  return { file, rows: Array.from({ length: rowCount }, (_, i) => rowAt(i, minor)) };
}

async function rowsOf(file: VortexFile, options: VortexScanOptions = {}): Promise<unknown[]> {
  const rows: unknown[] = [];
  for await (const batch of file.scan(options)) rows.push(...batch.toArrow().toArray());
  return rows;
}

/** Filters, each with the equivalent function of a row. */
const filters: readonly (readonly [filter: VortexFilter, holds: (row: Row) => boolean])[] = [
  [{ column: "row", op: ">=", value: 8500 }, ({ row }) => Number(row) >= 8500],
  [{ column: "runs", op: "==", value: 3 }, ({ runs }) => runs === 3],
  [{ column: "price", op: "<", value: 0.05 }, ({ price }) => price !== null && Number(price) < 0.05],
  [{ column: "odd", op: ">", value: 4499 }, ({ odd }) => Number.isNaN(odd) || Number(odd) > 4499],
  [
    { column: "url", op: "starts_with", value: "https://example.org/3/9" },
    ({ url }) => `${url}`.startsWith("https://example.org/3/9"),
  ],
  [{ not: { column: "word", op: "in", value: ["one", "two"] } }, ({ word }) => word === "three"],
  [{ column: "at", op: ">", value: new Date(890_000) }, ({ at }) => at !== null && Number(at) > 890_000_000],
  [{ column: "money", op: "==", value: "2200.75" }, ({ money }) => money === "2200.75"],
  [
    { and: [{ column: "flag", op: "is_null" }, { column: "row", op: "<", value: 100 }] },
    ({ flag, row }) => flag === null && Number(row) < 100,
  ],
  [{ column: ["pair", "a"], op: "==", value: 10 }, ({ pair }) => Object.values(pair as object)[0] === 10],
  [{ column: "none", op: "is_not_null" }, () => false],
];

for (const minor of [40, 54, 76, 93]) {
  test(`a file that PyVortex 0.${minor} wrote has the rows that were written`, async () => {
    const { file, rows } = await open(minor);
    assertEquals(file.rowCount, rowCount);
    assertEquals(await rowsOf(file), rows as unknown[]);
    const names = Object.keys(rows[0] ?? {});
    await check(
      fc.asyncProperty(
        fc.tuple(fc.nat(rowCount), fc.nat(rowCount)),
        fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 4 }),
        fc.constantFrom(1000, 4096, 65536),
        async ([one, other], columns, batchRows) => {
          const [start, end] = [Math.min(one, other), Math.max(one, other)];
          const expected = rows.slice(start, end).map((row) =>
            Object.fromEntries(columns.map((name) => [name, row[name]]))
          );
          assertEquals(await rowsOf(file, { rows: [start, end], columns, batchRows }), expected as unknown[]);
        },
      ),
      10,
    );
    file.close();
  });

  test(`rows of a file that PyVortex 0.${minor} wrote are found by filters`, async () => {
    const { file, rows } = await open(minor);
    for (const [filter, holds] of filters) {
      const found = await rowsOf(file, { columns: ["row"], filter });
      assertEquals(found, rows.filter(holds).map(({ row }) => ({ row })), JSON.stringify(filter));
      const part = await rowsOf(file, { columns: ["row"], filter, rows: [123, 8900] }); // from the middle of a zone
      assertEquals(part, rows.slice(123, 8900).filter(holds).map(({ row }) => ({ row })), JSON.stringify(filter));
    }
    const { bytes } = file.readStatistics;
    assertEquals(await rowsOf(file, { filter: { column: "row", op: "<", value: 0 } }), []);
    assert(file.readStatistics.bytes - bytes < 10_000, "what statistics exclude was read");
    // The file's statistics exclude neither half, its zones exclude one each: nothing else of the file is read.
    const before = file.readStatistics.bytes;
    const halves: VortexFilter[] = [
      { column: "at", op: ">", value: 819_000_000n },
      { column: "row", op: "<", value: 8192 },
    ];
    assertEquals(await rowsOf(file, { filter: { and: halves } }), []);
    const zones = file.layout.children.filter(({ name }) => name === "at" || name === "row")
      .flatMap(({ children }) => children.filter(({ name }) => name === "zones"));
    assertEquals(file.readStatistics.bytes - before, zones.reduce((sum, { bytes }) => sum + bytes, 0));
    file.close();
  });
}
