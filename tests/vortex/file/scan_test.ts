/**
 * Scans of files that the tests write themselves: every layout, sources larger than memory, and how much of them is
 * read.
 */
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { test } from "node:test";
import { primitiveDType, type VortexDType } from "../../../src/vortex/dtype.ts";
import { openVortex, VortexError, type VortexFile, type VortexReader } from "../../../src/vortex/mod.ts";
import type { RawNode } from "../../../src/vortex/raw_node.ts";
import { check, fc } from "../../support/property.ts";
import { fileEnd, FileWriter, type LaidOut, segmentOf, type SegmentSpec } from "../../support/vortex/file_writer.ts";
import { boolNode, joined, node, primitiveNode, proto, ptypeCode, scalarOf } from "../../support/vortex/nodes.ts";
import { serveRanges } from "../../support/range_server.ts";
import { collectGarbage } from "../../support/collect.ts";
import { until } from "../../support/until.ts";

const i64 = primitiveDType("i64");
const none = new Uint8Array(0);
const table = (names: readonly string[], fields: readonly VortexDType[]): VortexDType => ({
  kind: "struct",
  names,
  fields,
  nullable: false,
});

async function valuesOf(file: VortexFile, options = {}): Promise<unknown[]> {
  const values: unknown[] = [];
  for await (const batch of file.scan(options)) values.push(...batch.toArrow().toArray());
  return values;
}

const integers = fc.array(fc.bigInt({ min: -9n, max: 9n }), { maxLength: 12 });

/** A layout of numbers, of any shape. */
function laidOut(writer: FileWriter, values: readonly bigint[], shape: Shape): LaidOut {
  const rows = values.length;
  switch (shape.kind) {
    case "flat":
      return writer.flat(primitiveNode(values, "i64"), rows, shape.isInline);
    case "chunked": {
      const borders = [0, ...shape.at.map((at) => at % (rows + 1)).sort((a, b) => a - b), rows];
      const children = borders.slice(1).map((end, i) => laidOut(writer, values.slice(borders[i], end), shape.inner));
      return { id: "chunked", rows, children };
    }
    case "dict": {
      const distinct = [...new Set(values)];
      const codes = primitiveNode(values.map((value) => distinct.indexOf(value)), "u8");
      return {
        id: "dict",
        rows,
        metadata: proto([1, ptypeCode("u8")], [2, false]),
        children: [laidOut(writer, distinct, shape.inner), writer.flat(codes, rows)],
      };
    }
    case "indexed":
      return { id: "indexed", rows, metadata: Uint8Array.of(1), children: [laidOut(writer, values, shape.inner)] };
  }
}

type Shape =
  | { readonly kind: "flat"; readonly isInline: boolean }
  | { readonly kind: "chunked"; readonly at: readonly number[]; readonly inner: Shape }
  | { readonly kind: "dict" | "indexed"; readonly inner: Shape };

const shapes = fc.letrec<{ shape: Shape }>((tie) => ({
  shape: fc.oneof(
    { maxDepth: 3 },
    fc.record({ kind: fc.constant("flat" as const), isInline: fc.boolean() }),
    fc.record({
      kind: fc.constant("chunked" as const),
      at: fc.array(fc.nat(20), { maxLength: 4 }),
      inner: tie("shape"),
    }),
    fc.record({ kind: fc.constantFrom("dict" as const, "indexed" as const), inner: tie("shape") }),
  ),
})).shape;

test("nested layouts have the rows of their parts", async () => {
  const cases = fc.record({ values: integers, shape: shapes, isTable: fc.boolean() });
  const scans = fc.record({ one: fc.nat(20), other: fc.nat(20), batchRows: fc.integer({ min: 1, max: 5 }) });
  await check(fc.asyncProperty(cases, scans, async ({ values, shape, isTable }, { one, other, batchRows }) => {
    const writer = new FileWriter();
    const column = laidOut(writer, values, shape);
    const layout = isTable ? { id: "struct", rows: values.length, children: [column] } : column;
    const bytes = writer.finish({ dtype: isTable ? table(["n"], [i64]) : i64, layout });
    using file = await openVortex(bytes);
    assertEquals(file.rowCount, values.length);
    const [start = 0, end = 0] = [one % (values.length + 1), other % (values.length + 1)].sort((a, b) => a - b);
    const expected = values.slice(start, end).map((n) => isTable ? { n } : n);
    assertEquals(await valuesOf(file, { rows: [start, end], batchRows, readAhead: 1 + one }), expected);
  }));
});

test("lists whose elements have a layout of their own, and structs that may be null", async () => {
  const rows = fc.array(fc.option(fc.array(fc.bigInt({ min: 0n, max: 99n }), { maxLength: 3 })), { maxLength: 9 });
  await check(
    fc.asyncProperty(rows, fc.boolean(), fc.integer({ min: 1, max: 4 }), async (rows, isNullable, batchRows) => {
      const lists = isNullable ? rows : rows.map((row) => row ?? []);
      const writer = new FileWriter();
      const elements = lists.flatMap((row) => row ?? []);
      const offsets = lists.reduce<number[]>((all, row) => [...all, (all.at(-1) ?? 0) + (row?.length ?? 0)], [0]);
      const valid = boolNode(lists.map((row) => row !== null)) ?? node("vortex.bool", none, [none]);
      const list: LaidOut = {
        id: "list",
        rows: rows.length,
        metadata: proto([1, ptypeCode("u32")]),
        children: [
          writer.flat(primitiveNode(elements, "i64"), elements.length),
          writer.flat(primitiveNode(offsets, "u32"), rows.length + 1),
          ...isNullable ? [writer.flat(valid, rows.length)] : [],
        ],
      };
      const layout: LaidOut = {
        id: "struct",
        rows: rows.length,
        children: [...isNullable ? [writer.flat(valid, rows.length)] : [], list],
      };
      const inner: VortexDType = { kind: "list", element: i64, nullable: isNullable };
      const dtype: VortexDType = { kind: "struct", names: ["list"], fields: [inner], nullable: isNullable };
      using file = await openVortex(writer.finish({ dtype, layout }));
      assertEquals(await valuesOf(file, { batchRows }), lists.map((list) => list === null ? null : { list }));
    }),
  );
});

/** A file of many columns in many chunks that was never written: its segments are generated as they are read. */
function hugeFile(columns: number, chunks: number, chunkRows: number, spread = 0) {
  const { body } = segmentOf(primitiveNode(new Array<number>(chunkRows).fill(0), "i64"), () => 0);
  const start = 64;
  const size = body.length + spread;
  const segments: SegmentSpec[] = [];
  const columnsOf = Array.from({ length: columns }, (): LaidOut[] => []);
  for (let chunk = 0; chunk < chunks; chunk++) {
    for (const column of columnsOf) {
      column.push({ id: "flat", rows: chunkRows, segments: [segments.length] });
      segments.push({ offset: start + segments.length * size, length: body.length, alignment: 0 });
    }
  }
  const rows = chunks * chunkRows;
  const layout: LaidOut = {
    id: "struct",
    rows,
    children: columnsOf.map((children) => ({ id: "chunked", rows, children })),
  };
  const names = columnsOf.map((_, i) => `c${i}`);
  const dtype = table(names, names.map(() => i64));
  const dataEnd = start + segments.length * size;
  const end = fileEnd(dataEnd, { dtype, layout, segments, arrayIds: ["vortex.primitive"] });
  const reads: { readonly offset: number; readonly length: number }[] = [];
  const source: VortexReader = {
    size: dataEnd + end.length,
    read(offset, length) {
      reads.push({ offset, length });
      if (offset >= dataEnd) return Promise.resolve(end.slice(offset - dataEnd, offset - dataEnd + length));
      const bytes = new Uint8Array(length);
      const view = new DataView(bytes.buffer);
      for (let i = Math.floor((offset - start) / size); start + i * size < offset + length; i++) {
        const at = start + i * size - offset;
        bytes.set(at < 0 ? body.subarray(-at, length - at) : body.subarray(0, length - at), Math.max(0, at));
        if (at >= 0) view.setBigInt64(at, BigInt(i), true); // the first value identifies the segment
      }
      if (offset + length > dataEnd) bytes.set(end.subarray(0, offset + length - dataEnd), dataEnd - offset);
      return Promise.resolve(bytes);
    },
  };
  return { source, reads, segments, segmentBytes: body.length, rows };
}

test("of a file far larger than memory, wanted columns are read, and no further ahead than allowed", async () => {
  const [columns, chunks, chunkRows] = [50, 300, 8192];
  const { source, reads, segments, segmentBytes, rows } = hugeFile(columns, chunks, chunkRows, 2 ** 30); // 16 TB
  const readAhead = 2 ** 20;
  using file = await openVortex(source);
  assertEquals(file.rowCount, rows);
  assert(file.byteLength > 2 ** 43);
  reads.length = 0;
  let [seen, bytes] = [0, 0];
  for await (const batch of file.scan({ columns: ["c7", "c31"], batchRows: 5000, readAhead })) {
    const [first] = batch.toArrow().child(1).toArray();
    if (seen % chunkRows === 0) assertEquals(first, BigInt(seen / chunkRows * columns + 31));
    seen += batch.length;
    bytes = reads.reduce((sum, { length }) => sum + length, 0);
    const needed = 2 * Math.ceil(seen / chunkRows) * segmentBytes;
    assert(bytes <= needed + readAhead + segmentBytes, `${bytes} bytes were read for ${seen} rows, ${needed} bytes`);
  }
  assertEquals(seen, rows);
  const wanted = new Map(segments.map(({ offset, length }, i) => [offset, [length, i % columns] as const]));
  for (const { offset, length } of reads) {
    const [size, column] = wanted.get(offset) ?? [];
    assertEquals(size, length);
    assert(column === 7 || column === 31, `column ${column} was read`);
  }
  assertEquals(reads.length, 2 * chunks);
});

test("neighbours are read together, and each once", async () => {
  const { source, reads, segmentBytes, rows } = hugeFile(4, 20, 1000);
  using file = await openVortex(source);
  reads.length = 0;
  let seen = 0;
  for await (const batch of file.scan({ batchRows: 700 })) seen += batch.length;
  assertEquals(seen, rows);
  assertEquals(reads.reduce((sum, { length }) => sum + length, 0), 80 * segmentBytes);
  assert(reads.length < 10, `${reads.length} reads`);
});

test("a scan can be left and begun again, several can be under way, and a closed file reads no more", async () => {
  const { source } = hugeFile(2, 10, 100);
  const file = await openVortex(source);
  const scan = file.scan({ columns: ["c1"], batchRows: 60 });
  for await (const batch of scan) {
    assertEquals(batch.length, 60);
    break;
  }
  const both = await Promise.all([valuesOf(file, { columns: ["c1"] }), Array.fromAsync(scan, ({ length }) => length)]);
  assertEquals([both[0].length, both[1].reduce((sum, one) => sum + one, 0)], [1000, 1000]);
  file.close();
  await assertRejects(() => Array.fromAsync(scan, () => 0), TypeError, "closed VortexFile");
});

test("a file that claims more rows than can be counted gives its first ones, or says which limit they exceed", async () => {
  const rows = 2 ** 50;
  const writer = new FileWriter();
  const constant = node("vortex.constant", none, [scalarOf(7n, "i64")]);
  const columns = [writer.flat(constant, rows)];
  const bytes = writer.finish({ dtype: table(["n"], [i64]), layout: { id: "struct", rows, children: columns } });
  using file = await openVortex(bytes);
  assertEquals(file.rowCount, rows);
  await assertRejects(() => valuesOf(file, { rows: [5, 8] }), VortexError, "limit");

  const chunks = Array.from({ length: 3 }, (_, i) => writer.flat(constant, i === 0 ? 3 : rows));
  const chunked: LaidOut = { id: "chunked", rows: 3 + 2 * rows, children: chunks };
  using other = await openVortex(writer.finish({ dtype: i64, layout: chunked }));
  for await (const batch of other.scan({ batchRows: 3 })) {
    assertEquals(batch.toArrow().toArray(), [7n, 7n, 7n]);
    break;
  }
});

test("zones are used as far as they are understood", async () => {
  const utf8 = new TextEncoder();
  const lies = (length: number) =>
    primitiveNode(new Array<number>(length).fill(-1), "i64", new Array(length).fill(true));
  const struct = (...fields: readonly RawNode[]) => node("vortex.struct", none, [], ...fields);
  const bounded = (isUnknown: boolean) => struct(lies(2), boolNode([isUnknown, isUnknown]) ?? lies(2));
  const metadata = (version: number, length: number, ...ids: readonly string[]) => {
    const specs = ids.map((id) => [2, proto([1, utf8.encode(`vortex.${id}`)])] as const);
    return joined(Uint8Array.of(version), proto([1, length], ...specs));
  };
  // False tables: if they are used, no row is above 0.
  const tables: readonly (readonly [metadata: Uint8Array, table: RawNode, rows: number, isBelieved: boolean])[] = [
    [metadata(1, 2, "max"), struct(lies(2)), 2, true],
    [metadata(1, 4, "max"), struct(lies(1)), 1, true],
    [metadata(2, 2, "max"), struct(lies(2)), 2, false],
    [metadata(1, 0, "max"), struct(lies(2)), 2, false],
    [metadata(1, 2, "max", "of_the_future"), struct(lies(2)), 2, false],
    [metadata(1, 2, "min"), struct(lies(2)), 2, false],
    [metadata(1, 2, "bounded_max"), struct(bounded(false)), 2, true],
    [metadata(1, 2, "bounded_max"), struct(bounded(true)), 2, false],
  ];
  for (const [metadata, table, rows, isBelieved] of tables) {
    const writer = new FileWriter();
    const data = writer.flat(primitiveNode([1, 2, 3, 4], "i64"), 4);
    const layout: LaidOut = { id: "zoned", rows: 4, metadata, children: [data, writer.flat(table, rows)] };
    using file = await openVortex(writer.finish({ dtype: i64, layout }));
    const found = await valuesOf(file, { filter: { column: [], op: ">", value: 0 } });
    assertEquals(found, isBelieved ? [] : [1n, 2n, 3n, 4n], new TextDecoder().decode(metadata));
  }
});

test("a filter may use columns that are not requested, which are not returned", async () => {
  const writer = new FileWriter();
  const columns = [[1, 2, 3], [4, 5, 6], [7, 8, 9]].map((column) => writer.flat(primitiveNode(column, "i64"), 3));
  const layout: LaidOut = { id: "struct", rows: 3, children: columns };
  using file = await openVortex(writer.finish({ dtype: table(["a", "b", "c"], [i64, i64, i64]), layout }));
  const filter = { or: [{ column: "c", op: "==", value: 7 }, { column: "a", op: ">", value: 2 }] } as const;
  assertEquals(await valuesOf(file, { columns: ["b"], filter }), [{ b: 4n }, { b: 6n }]);
  assertEquals(await valuesOf(file, { columns: ["c", "b"], filter }), [{ c: 7n, b: 4n }, { c: 9n, b: 6n }]);
  assertEquals(await valuesOf(file, { filter }), [{ a: 1n, b: 4n, c: 7n }, { a: 3n, b: 6n, c: 9n }]);
  assertEquals(await valuesOf(file, { columns: [], filter }), [{}, {}]);
});

test("a source is closed once: with its file, or when it is refused", async () => {
  const writer = new FileWriter();
  const bytes = writer.finish({ dtype: i64, layout: writer.flat(primitiveNode([1], "i64"), 1) });
  let closed = 0;
  const sourceOf = (bytes: Uint8Array): VortexReader => ({
    size: Promise.resolve(bytes.length),
    read: (offset, length) => Promise.resolve(bytes.subarray(offset, offset + length)),
    close: () => void closed++,
  });
  await assertRejects(() => openVortex(sourceOf(bytes.subarray(8, bytes.length - 1))), VortexError);
  assertEquals(closed, 1);
  const file = await openVortex(sourceOf(bytes));
  assertEquals([await valuesOf(file), closed], [[1n], 1]);
  file.close();
  file[Symbol.dispose]();
  assertEquals(closed, 2);
});

/** A source that answers its first `answers` reads, and no other. */
function stalledAfter(answers: number, bytes: Uint8Array) {
  let reads = 0;
  const source: VortexReader = {
    size: bytes.length,
    gap: 0,
    read: (offset, length) =>
      reads++ < answers ? Promise.resolve(bytes.slice(offset, offset + length)) : new Promise<never>(() => {}),
  };
  return { source, reads: () => reads };
}

/** A file of one column, with zones, in chunks of 10 rows: far enough apart to be read one by one. */
function chunkedFile(chunks: number): Uint8Array {
  const writer = new FileWriter();
  const rows = 10 * chunks;
  const children = Array.from({ length: chunks }, (_, i) => {
    const column = writer.flat(primitiveNode(new Array<number>(10).fill(i), "i64"), 10);
    writer.flat(primitiveNode(new Array<number>(10_000).fill(0), "i64"), 10_000);
    return column;
  });
  const data: LaidOut = { id: "chunked", rows, children };
  const metadata = joined(Uint8Array.of(1), proto([1, 10], [2, proto([1, new TextEncoder().encode("vortex.max")])]));
  const maxima = writer.flat(
    node("vortex.struct", none, [], primitiveNode(children.map((_, i) => i), "i64", children.map(() => true))),
    chunks,
  );
  const layout: LaidOut = { id: "zoned", rows, metadata, children: [data, maxima] };
  return writer.finish({ dtype: i64, layout });
}

const overZero = { column: [], op: ">=", value: 0 } as const;

// Nothing but the source could end a read, and closing waited for that.
test("a scan that waits for a stalled read ends once its file is closed, or its signal aborted", async () => {
  const bytes = chunkedFile(20);
  const cases = fc.record({
    answers: fc.integer({ min: 1, max: 12 }),
    isClosed: fc.boolean(),
    isFiltered: fc.boolean(),
    isStream: fc.boolean(),
  });
  await check(
    fc.asyncProperty(cases, async ({ answers, isClosed, isFiltered, isStream }) => {
      const { source, reads } = stalledAfter(answers, bytes);
      using file = await openVortex(source);
      const before = reads();
      const stop = new AbortController();
      const options = { batchRows: 10, readAhead: 1, signal: stop.signal, ...isFiltered ? { filter: overZero } : {} };
      let batches = 0;
      const scan = async () => {
        if (isStream) await file.toArrowStream(options);
        else for await (const _ of file.scan(options)) batches++;
      };
      const ended = scan();
      ended.catch(() => {});
      await until(() => reads() > answers);
      if (isClosed) file.close();
      else stop.abort(new RangeError("enough"));
      if (isClosed) await assertRejects(() => ended, TypeError, "The VortexFile was closed while it was read");
      else await assertRejects(() => ended, RangeError, "enough");
      if (!isStream) assertEquals(batches, Math.max(0, answers - before - Number(isFiltered)));
      assertEquals(reads(), answers + 1, "nothing is read after the end");
    }),
    50,
  );
});

// What had been read ahead was returned after the close, up to the whole file.
test("a scan ends once its file is closed, also between batches that are read already", async () => {
  for (const signal of [undefined, new AbortController().signal]) {
    const file = await openVortex(new URL("../../../examples/trips.vortex", import.meta.url));
    const batches: number[] = [];
    const scan = async () => {
      const options = signal === undefined ? {} : { signal };
      for await (const batch of file.scan({ batchRows: 100, ...options })) {
        batches.push(batch.length);
        if (batches.length === 3) file.close();
      }
    };
    await assertRejects(scan, TypeError, "closed VortexFile");
    assertEquals(batches, [100, 100, 100]);
  }
});

test("a signal that is aborted ends a scan between batches too, and before the first", async () => {
  using file = await openVortex(chunkedFile(20));
  const stop = new AbortController();
  const scan = file.scan({ batchRows: 10, signal: stop.signal });
  let batches = 0;
  const all = async () => {
    for await (const _ of scan) if (++batches === 3) stop.abort(new RangeError("enough"));
  };
  await assertRejects(all, RangeError, "enough");
  assertEquals(batches, 3);
  await assertRejects(all, RangeError, "enough");
  assertEquals([batches, (await valuesOf(file)).length], [3, 200]);
});

// A descriptor stayed open until the process ended.
test("a file that is dropped is closed, but not while anything reads it", async () => {
  const bytes = chunkedFile(3);
  const uses: Record<string, (file: VortexFile) => Promise<unknown>> = {
    scan: (file) => valuesOf(file),
    scanUntil: (file) => valuesOf(file, { signal: new AbortController().signal }),
    filtered: (file) => valuesOf(file, { filter: overZero }),
    describe: (file) => file.describe(),
    toArrowStream: async (file) => (await file.toArrowStream()).close(),
  };
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const stalled = new Set<string>();
  const closed: string[] = [];
  const used = Object.entries(uses).map(async ([name, use]) => {
    let reads = 0;
    const source: VortexReader = {
      size: bytes.length,
      read: async (offset, length) => {
        if (++reads > 1) {
          stalled.add(name);
          await gate;
        }
        return bytes.slice(offset, offset + length);
      },
      close: () => void closed.push(name),
    };
    await use(await openVortex(source));
  });
  await until(() => stalled.size === used.length);
  for (let round = 0; round < 3; round++) await collectGarbage();
  assertEquals(closed, []);
  open();
  await Promise.all(used);
  for (let round = 0; closed.length < used.length && round < 60; round++) await collectGarbage();
  assertEquals(closed.toSorted(), Object.keys(uses).toSorted());
});

test("requested columns and rows must exist", async () => {
  const { source } = hugeFile(3, 2, 10);
  using file = await openVortex(source);
  assertThrows(() => file.scan({ columns: ["d"] }), TypeError, '"c0", "c1", "c2"');
  assertThrows(() => file.scan({ columns: ["C1"] }), TypeError, 'did you mean "c1"?');
  assertThrows(() => file.scan({ columns: "c1" as never }), TypeError, 'an array of names, got "c1"');
  assertThrows(() => file.scan({ columns: ["c1", "c1"] }), TypeError, "twice");
  assertThrows(() => file.scan({ rows: [0, 21] }), RangeError, "of 20");
  assertThrows(() => file.scan({ rows: [5, 3] }), RangeError);
  // The third number was ignored.
  assertThrows(() => file.scan({ rows: [0, 3, 5] as never }), TypeError, "[start, end], got (0, 3, 5)");
  assertThrows(() => file.scan({ rows: 3 as never }), TypeError, "[start, end], got 3");
  assertThrows(() => file.scan({ batchRows: 0 }), RangeError, "batchRows");
  assertThrows(() => file.scan({ readAhead: NaN }), RangeError, "readAhead");
  assertThrows(() => file.scan({ column: ["c0"] } as never), TypeError, "column");
  assertThrows(() => file.scan({ filter: { column: "c9", op: "is_null" } }), TypeError, "c9");
  await assertRejects(() => file.toArrowStream({ columns: ["d"] }), TypeError);
  assertEquals(await valuesOf(file, { rows: [3, 3] }), []);
});

test("a file is read from bytes, a Blob, a path and over HTTP alike, by ranges", async () => {
  const writer = new FileWriter();
  const columns = [1, 2, 3].map((n) => writer.flat(primitiveNode(new Array<number>(30_000).fill(n), "i64"), 30_000));
  const layout: LaidOut = { id: "struct", rows: 30_000, children: columns };
  const bytes = writer.finish({ dtype: table(["a", "b", "c"], [i64, i64, i64]), layout });
  await using server = await serveRanges(bytes);
  for (const source of [bytes, bytes.buffer, new Blob([bytes]), server.url, new URL(server.url)]) {
    using file = await openVortex(source);
    const [first] = await valuesOf(file, { columns: ["b"], rows: [29_999, 30_000] });
    assertEquals(first, { b: 2n });
    assertEquals(file.readStatistics.reads, 2);
    assert(file.readStatistics.bytes < bytes.length / 3 + 70_000);
  }
  assert(server.requests.every(({ range }) => range?.startsWith("bytes=") === true));
});
