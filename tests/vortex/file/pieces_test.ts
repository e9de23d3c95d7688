import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { primitiveDType } from "../../../src/vortex/dtype.ts";
import { openVortex } from "../../../src/vortex/mod.ts";
import type { Layout } from "../../../src/vortex/file/layout.ts";
import { batchesOfPieces } from "../../../src/vortex/file/rows.ts";
import { check, fc } from "../../support/property.ts";
import { FileWriter } from "../../support/vortex/file_writer.ts";
import { primitiveNode } from "../../support/vortex/nodes.ts";

const i64 = primitiveDType("i64");

/** A column in pieces that end at some rows, perhaps nested one level. */
interface Column {
  readonly layout: Layout;
  /** Where pieces end, including the last one. */
  readonly ends: readonly number[];
}

const plain = { dtype: i64, path: "layout" };
const flat = (rows: number): Layout => ({ ...plain, kind: "flat", rows, segment: 0, tree: null });

function chunked(chunks: readonly Layout[]): Layout {
  const starts = chunks.reduce<number[]>((all, { rows }) => [...all, (all.at(-1) ?? 0) + rows], [0]);
  return { ...plain, kind: "chunked", rows: starts.at(-1) ?? 0, chunks, starts };
}

/** A column with a number of rows. @param cuts where pieces end @param outer which cuts end the outer pieces */
function columnOf(rows: number, cuts: readonly number[], outer: number, wrap: number): Column {
  const ends = [...new Set([...cuts.map((cut) => cut % rows), rows])].filter((end) => end > 0).sort((a, b) => a - b);
  const pieces = ends.map((end, i) => flat(end - (ends[i - 1] ?? 0)));
  const split = outer % (pieces.length + 1);
  const parts = [pieces.slice(0, split), pieces.slice(split)].filter((part) => part.length > 0);
  const data = chunked(parts.map((part) => part.length === 1 ? part[0] ?? flat(0) : chunked(part)));
  const layouts: readonly Layout[] = [
    data,
    { ...plain, kind: "zoned", rows, data, zones: null },
    { ...plain, kind: "dict", rows, values: flat(3), codes: data },
  ];
  return { layout: layouts[wrap] ?? data, ends };
}

test("a batch ends with the first of its pieces that is not too small, and no sooner", async () => {
  const columns = fc.array(
    fc.record({ cuts: fc.array(fc.nat(99), { maxLength: 6 }), outer: fc.nat(9), wrap: fc.nat(2) }),
    { minLength: 1, maxLength: 3 },
  );
  const sizes = fc.record({ most: fc.integer({ min: 1, max: 60 }), least: fc.integer({ min: 1, max: 20 }) });
  const cases = fc.record({ columns, sizes, rows: fc.integer({ min: 1, max: 99 }), from: fc.nat(99), to: fc.nat(99) });
  await check(fc.property(cases, fc.boolean(), ({ columns, sizes, rows, from, to }, isFirst) => {
    const all = columns.map(({ cuts, outer, wrap }) => columnOf(rows, cuts, outer, wrap));
    const dtype = {
      kind: "struct",
      names: all.map((_, i) => `${i}`),
      fields: all.map(() => i64),
      nullable: false,
    } as const;
    const layout: Layout = {
      ...plain,
      kind: "struct",
      dtype,
      rows,
      validity: null,
      fields: all.map(({ layout }) => layout),
    };
    const [start = 0, end = 0] = [from % (rows + 1), to % (rows + 1)].sort((a, b) => a - b);
    const batches = [...batchesOfPieces([{ start, end }], layout, isFirst ? [0] : undefined, sizes)];
    const ends = (isFirst ? all.slice(0, 1) : all).map((column) => column.ends);
    let at = start;
    for (const batch of batches) {
      assertEquals(batch.start, at);
      const size = batch.end - batch.start;
      assert(size > 0 && size <= sizes.most, `${size} rows`);
      for (const column of ends) {
        const near = column.find((row) => row > batch.start) ?? rows;
        assert(near - batch.start < sizes.least || batch.end <= near, `it goes on behind ${near}`);
      }
      const isFull = size === sizes.most || batch.end === end;
      const isPiece = size >= sizes.least && ends.some((column) => column.includes(batch.end));
      assert(isFull || isPiece, `it ends at ${batch.end}`);
      at = batch.end;
    }
    assertEquals(at, end);
  }));
});

test("batches end with pieces unless their size was given", async () => {
  const writer = new FileWriter();
  const pieces = [10_000, 20_000, 5000].map((rows) => {
    const numbers = Array.from({ length: rows }, (_, i) => i);
    return writer.flat(primitiveNode(numbers, "i64"), rows);
  });
  const bytes = writer.finish({ dtype: i64, layout: { id: "chunked", rows: 35_000, children: pieces } });
  using file = await openVortex(bytes);
  const sizes = (batchRows?: number) =>
    Array.fromAsync(file.scan(batchRows === undefined ? {} : { batchRows }), ({ length }) => length);
  assertEquals(await sizes(), [10_000, 20_000, 5000]);
  assertEquals(await sizes(65_536), [35_000]);
  assertEquals(await sizes(30_000), [30_000, 5000]);
});
