/** File footers with false claims: each is refused by name before anything is built from it. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { test } from "node:test";
import { primitiveDType, type VortexDType } from "../../../src/vortex/dtype.ts";
import { openVortex, VortexError } from "../../../src/vortex/mod.ts";
import { type FileEnd, fileEnd, FileWriter, type LaidOut, segmentOf } from "../../support/vortex/file_writer.ts";
import { node, primitiveNode, proto, scalarOf } from "../../support/vortex/nodes.ts";

const i64 = primitiveDType("i64");
const table: VortexDType = { kind: "struct", names: ["a", "b"], fields: [i64, i64], nullable: false };
const { body } = segmentOf(primitiveNode([1, 2, 3], "i64"), () => 0);
const flat: LaidOut = { id: "flat", rows: 3, segments: [0] };
const columns: LaidOut = { id: "struct", rows: 3, children: [flat, flat] };
const start = 64 + body.length;

/** A file of three rows, sound except for the given changes. */
function fileOf(changes: Partial<FileEnd> = {}): Uint8Array {
  const bytes = new Uint8Array(start);
  bytes.set(new TextEncoder().encode("VTXF"));
  bytes.set(body, 64);
  const end = fileEnd(start, {
    dtype: i64,
    layout: flat,
    segments: [{ offset: 64, length: body.length }],
    arrayIds: ["vortex.primitive"],
    ...changes,
  });
  const whole = new Uint8Array(start + end.length);
  whole.set(bytes);
  whole.set(end, start);
  return whole;
}

async function valuesOf(bytes: Uint8Array, options = {}): Promise<unknown[]> {
  using file = await openVortex(bytes, options);
  const values: unknown[] = [];
  for await (const batch of file.scan()) values.push(...batch.toArrow().toArray());
  return values;
}

test("a sound file is read, whatever else its end lists", async () => {
  assertEquals(await valuesOf(fileOf()), [1n, 2n, 3n]);
  const segment = { offset: 64, length: body.length };
  assertEquals(await valuesOf(fileOf({ segments: [segment, segment, { offset: 70, length: 0 }] })), [1n, 2n, 3n]);
  assertEquals(await valuesOf(fileOf({ arrayIds: ["vortex.primitive", "of.the.future"] })), [1n, 2n, 3n]);
  assertEquals(await valuesOf(fileOf({ dtype: null }), { dtype: i64 }), [1n, 2n, 3n]);
  assertEquals(
    await valuesOf(fileOf({ dtype: table, layout: columns })),
    [1, 2, 3].map((n) => {
      return { a: BigInt(n), b: BigInt(n) };
    }),
  );
  const metadata = [{ tables: [[{ text: "key" }, { table: [{ u64: 64 }, { u32: 8 }] }]] }] as const;
  assertEquals(await valuesOf(fileOf({ postscript: (fields) => void fields.push(...metadata) })), [1n, 2n, 3n]);
});

const segment = { offset: 64, length: body.length };
const part = (offset: number | bigint, length: number, ...more: { readonly table: [{ u8: number }] }[]) => ({
  table: [{ u64: offset }, { u32: length }, { u8: 3 }, ...more],
});
const falseClaims: readonly (readonly [what: string, changes: Partial<FileEnd>, error: string])[] = [
  ["a version that is not known", { version: 2 }, "version is 2"],
  ["no dtype", { dtype: null }, "pass { dtype }"],
  ["no layout", { postscript: (fields) => void (fields[1] = null) }, "lacks a layout"],
  ["no footer", { postscript: (fields) => void (fields[3] = null) }, "lacks a layout or a footer"],
  ["a part behind the end", { postscript: (fields) => void (fields[1] = part(64, 2 ** 31)) }, "part 1 ends at"],
  ["a part beyond the largest number", { postscript: (fields) => void (fields[0] = part(2n ** 63n, 8)) }, ""],
  ["a part that is not a flatbuffer", { postscript: (fields) => void (fields[1] = part(64, 24)) }, ""],
  ["a part of no bytes", { postscript: (fields) => void (fields[3] = part(64, 0)) }, ""],
  [
    "a part that is compressed",
    { postscript: (fields) => void (fields[1] = part(64, 24, { table: [{ u8: 1 }] })) },
    "compressed by scheme 1",
  ],
  ["a segment behind the end", { segments: [{ offset: 64, length: 2 ** 31 }] }, "segment 0 ends at"],
  ["a segment beyond the largest number", { segments: [{ offset: 2 ** 62, length: 8 }] }, "segment 0 ends at"],
  ["segments in disorder", { segments: [segment, { offset: 8, length: 8 }] }, "before the previous one"],
  ["an excessive alignment", { segments: [{ ...segment, alignment: 17 }] }, "2^17"],
  ["a segment that is compressed", { segments: [{ ...segment, compression: 1 }] }, "compressed or encrypted"],
  ["a segment that is encrypted", { segments: [{ ...segment, encryption: 1 }] }, "compressed or encrypted"],
  ["segments that are compressed in some way", { footer: (fields) => void (fields[3] = { tables: [[]] }) }, "may be"],
  ["an unknown layout", { layout: { ...flat, id: "of.the.future" } }, "vortex.of.the.future is unknown"],
  ["a segment that is not there", { layout: { ...flat, segments: [1] } }, "segment 1 of 1"],
  ["a flat layout without a segment", { layout: { ...flat, segments: [] } }, "0 segments"],
  ["a flat layout of parts", { layout: { ...flat, children: [flat] } }, "has 1 children, expected 0"],
  ["chunks of other rows", { layout: { id: "chunked", rows: 4, children: [flat] } }, "3 rows in its chunks"],
  ["chunks of more rows than there are numbers", {
    layout: { id: "chunked", rows: 3, children: [{ ...flat, rows: 2 ** 53 - 1 }, { ...flat, rows: 4 }] },
  }, ""],
  ["columns of other rows", { dtype: table, layout: { ...columns, rows: 4 } }, "has 3 rows, expected 4"],
  ["too few columns", { dtype: table, layout: { ...columns, children: [flat] } }, "has 1 children, expected 2"],
  ["columns of another dtype", { layout: columns }, "cannot have the dtype"],
  ["a list of another dtype", { layout: { id: "list", rows: 3, children: [flat, flat] } }, "cannot have the dtype"],
  ["a dictionary without codes", { layout: { id: "dict", rows: 3, children: [flat] } }, "has 1 children"],
  ["zones without a table", { layout: { id: "zoned", rows: 3, children: [flat] } }, "has 1 children"],
  ["an index of nothing", { layout: { id: "indexed", rows: 3 } }, "has no child"],
  ["fewer rows than in the segment", { layout: { ...flat, rows: 2 } }, "segment 0"],
  ["more rows than in the segment", { layout: { ...flat, rows: 2 ** 52 } }, "segment 0"],
  ["an encoding that is not listed", { arrayIds: [] }, "encoding 0 of 0"],
  ["an unknown encoding", { arrayIds: ["of.the.future"] }, "of.the.future"],
];

for (const [what, changes, error] of falseClaims) {
  test(`refused: ${what}`, async () => {
    const failure = await assertRejects(() => valuesOf(fileOf(changes)), VortexError, error);
    assert(failure.path !== "");
  });
}

test("a source that does not end like a file of Vortex is refused as another format", async () => {
  const sound = fileOf();
  for (let at = sound.length - 4; at < sound.length; at++) {
    const bytes = sound.slice();
    bytes[at] = 0x20;
    await assertRejects(() => valuesOf(bytes), VortexError, "VTXF");
  }
  await assertRejects(() => valuesOf(sound.subarray(0, sound.length - 1)), VortexError, "VTXF");
  await assertRejects(() => valuesOf(new Uint8Array([...sound, 0])), VortexError, "VTXF");
});

test("nested and repeated layouts are read up to the limits", async () => {
  const nested = (depth: number): LaidOut =>
    depth === 0 ? flat : { id: "indexed", rows: 3, children: [nested(depth - 1)] };
  assertEquals(await valuesOf(fileOf({ layout: nested(20) })), [1n, 2n, 3n]);
  await assertRejects(() => valuesOf(fileOf({ layout: nested(20) }), { limits: { depth: 10 } }), VortexError, "deeply");
  await assertRejects(() => valuesOf(fileOf({ layout: nested(300) })), VortexError, "deeply");
  const many: LaidOut = { id: "chunked", rows: 3000, children: new Array<LaidOut>(1000).fill(flat) };
  assertEquals((await valuesOf(fileOf({ layout: many }))).length, 3000);
  await assertRejects(() => valuesOf(fileOf({ layout: many }), { limits: { nodes: 500 } }), VortexError, "limit");
});

test("meaningless zones and statistics exclude nothing, and change no rows", async () => {
  const writer = new FileWriter();
  const data = writer.flat(primitiveNode([1, 2, 3], "i64"), 3);
  const word = writer.flat(primitiveNode([1, 2, 3], "i64"), 3);
  const zones = proto([1, 2], [2, proto([1, new TextEncoder().encode("vortex.max")])]);
  const metadata = new Uint8Array([1, ...zones]);
  const bombs = writer.flat(node("vortex.constant", new Uint8Array(0), [scalarOf(1n, "i64")]), 2 ** 50);
  const tables: readonly (readonly [LaidOut, Uint8Array])[] = [
    [{ ...word, rows: 2 }, metadata], // not a struct
    [{ ...word, rows: 3 }, metadata], // for other zones
    [word, Uint8Array.of(1)],
    [word, Uint8Array.of(2, ...zones)],
    [word, new Uint8Array([1, ...proto([1, 0])])],
    [bombs, new Uint8Array([1, ...proto([1, 1])])],
  ];
  for (const [table, metadata] of tables) {
    const layout: LaidOut = { id: "zoned", rows: 3, metadata, children: [data, table] };
    using file = await openVortex(writer.finish({ dtype: i64, layout, statistics: new Uint8Array(16) }));
    const values: unknown[] = [];
    for await (const batch of file.scan({ filter: { column: [], op: ">", value: 1 } })) {
      values.push(...batch.toArrow().toArray());
    }
    assertEquals(values, [2n, 3n]);
  }
});
