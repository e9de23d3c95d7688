/** The tree that a file reports is the one that was written. */
import { assertEquals, assertRejects } from "@std/assert";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { inspect, isDeepStrictEqual } from "node:util";
import { primitiveDType, type VortexDType } from "../../../src/vortex/dtype.ts";
import { openVortex, showEncodings, VortexError, type VortexLayout } from "../../../src/vortex/mod.ts";
import { FileWriter, type LaidOut, segmentOf } from "../../support/vortex/file_writer.ts";
import { node, primitiveNode, scalarOf } from "../../support/vortex/nodes.ts";

const i64 = primitiveDType("i64");
const none = new Uint8Array(0);

/** A tree without the parts that are the same everywhere. */
function plain({ name, kind, rows, bytes, encodings, children }: VortexLayout): unknown {
  const what = encodings === undefined ? [] : [showEncodings(encodings)];
  return [name, kind, rows, bytes, ...what, ...children.map(plain)];
}

test("parts have their names, rows and bytes, and the first piece of a column its encodings", async () => {
  const writer = new FileWriter();
  const nulls = primitiveNode([1, 2], "i64", [true, false]);
  const constant = node("vortex.constant", none, [scalarOf(7n, "i64")]);
  const chunks: LaidOut[] = [writer.flat(nulls, 2, true), writer.flat(constant, 3)];
  const long = node("vortex.chunked", none, [], ...Array.from({ length: 300 }, () => constant));
  const layout: LaidOut = {
    id: "struct",
    rows: 5,
    children: [{ id: "chunked", rows: 5, children: chunks }, writer.flat(long, 5)],
  };
  const dtype: VortexDType = { kind: "struct", names: ["a", "b"], fields: [i64, i64], nullable: false };
  using file = await openVortex(writer.finish({ dtype, layout }));
  const numbers = new Map(
    ["vortex.primitive", "vortex.bool", "vortex.constant", "vortex.chunked"].map((id, i) => [id, i]),
  );
  const sizes = [nulls, constant, long].map((root) => segmentOf(root, (id) => numbers.get(id) ?? -1).body.length);
  const [first = 0, second = 0, third = 0] = sizes;
  const before = file.readStatistics;
  const tree = (isDescribed: boolean) => [
    ...["root", "struct", 5, first + second + third],
    [
      ...["a", "chunked", 5, first + second],
      ["0", "flat", 2, first, ...isDescribed ? ["vortex.primitive(vortex.bool)"] : []],
      ["1", "flat", 3, second],
    ],
    [
      "b",
      "flat",
      5,
      third,
      ...isDescribed ? [`vortex.chunked(${new Array(300).fill("vortex.constant").join(", ")})`] : [],
    ],
  ];
  assertEquals(plain(file.layout), tree(false));
  assertEquals(file.readStatistics, before);
  assertEquals(plain(await file.describe()), tree(true));
  // The first piece's tree is in the layout; the long one's begins before the bytes of the first read.
  assertEquals(file.readStatistics.reads - before.reads, 2);
  assertEquals(file.explain().split("\n").slice(2).map((line) => line.trim().split(":")[0]), ["root", "a", "0", "b"]);
});

test("a segment with a false end is refused", async () => {
  const writer = new FileWriter();
  const bytes = writer.finish({ dtype: i64, layout: writer.flat(primitiveNode([1], "i64"), 1) });
  const { body } = segmentOf(primitiveNode([1], "i64"), () => 0);
  for (const size of [2 ** 31, body.length - 3, 3]) {
    const changed = bytes.slice();
    new DataView(changed.buffer).setUint32(64 + body.length - 4, size, true);
    using file = await openVortex(changed);
    await assertRejects(() => file.describe(), VortexError);
  }
});

test("a console shows a file and its arrays by their rows and types, also closed ones, not by their internals", async () => {
  const file = await openVortex(fileURLToPath(new URL("../../../examples/trips.vortex", import.meta.url)));
  const shown = "VortexFile 20000 rows of {start=vortex.timestamp(030000, i64?), city=utf8?, km=f64?, fare=f64?, " +
    "seats=u8?, tip=f64?}";
  assertEquals(inspect(file), shown);
  for await (const batch of file.scan({ columns: ["seats"] })) {
    assertEquals(inspect(batch), `VortexArray ${batch.length} of {seats=u8?}`);
    batch.close();
    assertEquals(inspect(batch), `VortexArray ${batch.length} of {seats=u8?}, closed`);
  }
  file.close();
  assertEquals(inspect(file), shown);
});

// Tests of users passed, whatever the elements were; JSON had the dtype and the length alone.
test("arrays are never equal field by field, and their JSON is that of the same elements in Arrow", async () => {
  const writer = new FileWriter();
  const layout = writer.flat(primitiveNode([1, 2, 3, 4, 1, 2], "i64"), 6);
  using file = await openVortex(writer.finish({ dtype: i64, layout }));
  const scans = ([[0, 2], [2, 4], [4, 6]] as const).map((rows) => Array.fromAsync(file.scan({ rows })));
  const arrays = (await Promise.all(scans)).flat();
  assertEquals(arrays.map((array) => JSON.stringify({ array })), [
    '{"array":[1,2]}',
    '{"array":[3,4]}',
    '{"array":[1,2]}',
  ]);
  const equal = arrays.map((one) => arrays.map((other) => isDeepStrictEqual(one, other)));
  assertEquals(equal, [[true, false, false], [false, true, false], [false, false, true]]);
  for (const array of arrays) array.close();
});
