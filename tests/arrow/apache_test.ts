/** Vectors of the npm package apache-arrow: the same values in the same memory, in both directions. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import * as arrow from "apache-arrow";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import { type ArrowValue, fromApacheArrow, toApacheArrow } from "../../src/public/arrow.ts";
import { ArrowArray, arrowField, ExchangeError, StridedMemoryView } from "../../mod.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { check, fc, scaled } from "../support/property.ts";
import { encode, type Model, models, quirks, type Value, valueOf } from "../support/arrow_model.ts";
import { CountingRelease, RawWriter } from "../support/raw_arrow.ts";

const words = ["", "one", null, "\u00e4\u{1f600} and more than twelve bytes"];
const item = (type: arrow.DataType) => new arrow.Field("item", type, true);

/** Vectors that the package makes, and their elements here. */
const vectors: readonly (readonly [name: string, vector: arrow.Vector, values: ArrowValue[]])[] = [
  ...([arrow.Int8, arrow.Int16, arrow.Int32, arrow.Uint8, arrow.Uint16, arrow.Uint32] as const).map((type) =>
    [type.name, arrow.vectorFromArray([1, null, 100, 7], new type()), [1, null, 100, 7]] as const
  ).map(([name, vector, values]): readonly [string, arrow.Vector, ArrowValue[]] => [name, vector, [...values]]),
  ["Int64", arrow.vectorFromArray([-1n, null, 2n ** 62n], new arrow.Int64()), [-1n, null, 2n ** 62n]],
  ["Float32", arrow.vectorFromArray([1.5, null, -0.25], new arrow.Float32()), [1.5, null, -0.25]],
  ["Float64", arrow.vectorFromArray([0.1, null, Infinity], new arrow.Float64()), [0.1, null, Infinity]],
  ["Bool", arrow.vectorFromArray([true, null, false, true], new arrow.Bool()), [true, null, false, true]],
  ["Utf8", arrow.vectorFromArray(words, new arrow.Utf8()), words],
  ["LargeUtf8", arrow.vectorFromArray(words, new arrow.LargeUtf8()), words],
  ["Binary", arrow.vectorFromArray([Uint8Array.of(1, 2), null], new arrow.Binary()), [Uint8Array.of(1, 2), null]],
  ["List", arrow.vectorFromArray([[1, null], null, []], new arrow.List(item(new arrow.Int32()))), [
    [1, null],
    null,
    [],
  ]],
  [
    "FixedSizeList",
    arrow.vectorFromArray([[1, 2], null, [3, 4]], new arrow.FixedSizeList(2, item(new arrow.Int16()))),
    [[1, 2], null, [3, 4]],
  ],
  [
    "Struct",
    arrow.vectorFromArray(
      [{ x: 1, s: "a" }, { x: 2, s: "b" }, { x: 3, s: "c" }],
      new arrow.Struct([new arrow.Field("x", new arrow.Int32(), true), new arrow.Field("s", new arrow.Utf8(), true)]),
    ),
    [{ x: 1, s: "a" }, { x: 2, s: "b" }, { x: 3, s: "c" }],
  ],
  [
    "Dictionary",
    arrow.vectorFromArray(["x", "y", null, "x"], new arrow.Dictionary(new arrow.Utf8(), new arrow.Int8())),
    ["x", "y", null, "x"],
  ],
  ["Null", arrow.vectorFromArray([null, null], new arrow.Null()), [null, null]],
];

test("vectors of every kind are imported with their values, whole and sliced", () => {
  for (const [name, vector, values] of vectors) {
    for (let start = 0; start <= values.length; start++) {
      for (let end = start; end <= values.length; end++) {
        const arrays = fromApacheArrow(vector.slice(start, end));
        const all = arrays.flatMap((array) => array.toArray());
        assertEquals(all, values.slice(start, end), `${name} from ${start} to ${end}`);
      }
    }
  }
});

test("numbers and text are imported in place, and exported to C and imported again without a copy", () => {
  const numbers = new Float64Array([1, 2, 3, 4]);
  const [array] = fromApacheArrow(arrow.makeVector(numbers));
  assert(array !== undefined);
  numbers[2] = 30;
  assertEquals(array.toArray(), [1, 2, 30, 4]);
  using back = ArrowArray.from(array);
  assertEquals(back.values.ptr, array.values.ptr);
  back.close();
  assertEquals(liveExports(), 0);
});

test("a table is imported as an array per batch, and a batch as a struct", () => {
  const table = arrow.tableFromArrays({ x: Int32Array.of(1, 2), y: ["a", "b"] });
  const twice = table.concat(table);
  assertEquals(fromApacheArrow(twice).length, 2);
  const [batch] = table.batches;
  assert(batch !== undefined);
  assertEquals(fromApacheArrow(batch).map((array) => array.toArray()), [[{ x: 1, y: "a" }, { x: 2, y: "b" }]]);
});

// Only what a field says was taken, and the schema of a table is none.
test("the metadata of a table or a batch is that of the field, and columns keep theirs", () => {
  const column = new arrow.Field("x", new arrow.Int32(), true, new Map([["unit", "m"]]));
  const schema = new arrow.Schema([column], new Map([["pandas", "{}"]]));
  const [plain] = arrow.tableFromArrays({ x: Int32Array.of(1, 2) }).batches;
  assert(plain !== undefined);
  const data = arrow.makeData({ type: new arrow.Struct(schema.fields), length: 2, children: plain.data.children });
  const batch = new arrow.RecordBatch(schema, data as arrow.Data<arrow.Struct>);
  for (const source of [batch, new arrow.Table([batch, batch])]) {
    for (const { field, children } of fromApacheArrow(source)) {
      assertEquals([[...field.metadata], [...children[0]?.field.metadata ?? []]], [[["pandas", "{}"]], [[
        "unit",
        "m",
      ]]]);
    }
  }
});

// The package looks up no value by a bigint: every element was undefined, or an error.
test("dictionaries with indices of 64 bits are refused, wherever they are", () => {
  for (const bits of [8, 16, 32, 64] as const) {
    for (const kind of ["int", "uint"] as const) {
      const text = arrow.vectorFromArray(["x", "y"], new arrow.Utf8());
      const [dictionary] = fromApacheArrow(text);
      assert(dictionary !== undefined);
      const codes = StridedMemoryView.fromTypedArray(new Uint8Array(3 * bits / 8));
      const coded = new ArrowArray({
        field: arrowField({ kind: "dictionary", index: { kind, bits }, values: dictionary.field, ordered: false }),
        length: 3,
        buffers: [null, codes],
        dictionary,
      });
      const struct = new ArrowArray({
        field: arrowField({ kind: "struct", children: [coded.field] }),
        length: 3,
        buffers: [null],
        children: [coded],
      });
      for (const array of [coded, struct]) {
        const made = () => toApacheArrow(array, arrow) as arrow.Vector;
        if (bits === 64) assertThrows(made, ExchangeError, `with indices of ${kind}64 to apache-arrow`);
        else assertEquals(JSON.stringify(made().toArray()), JSON.stringify(array.toArray()));
      }
    }
  }
});

test("memory that other threads share is refused: it has no stable address", () => {
  const shared = arrow.makeVector(new Int32Array(new SharedArrayBuffer(16)));
  assertThrows(() => fromApacheArrow(shared), TypeError, "shared memory");
});

test("anything but a vector is refused with a message", () => {
  for (const value of [null, undefined, 3, {}, [1], new Int32Array(2), { data: "text" }]) {
    const vector = value as unknown as arrow.Vector; // as an untyped program may pass it
    assertThrows(() => fromApacheArrow(vector), TypeError, "expected one of its vectors, tables or record batches");
  }
  const reader = arrow.RecordBatchReader.from(arrow.tableToIPC(arrow.tableFromArrays({ x: [1] })));
  const taken = () => fromApacheArrow(reader as unknown as arrow.Vector);
  assertThrows(taken, TypeError, "Cannot take an instance of RecordBatchStreamReader from apache-arrow");
  for (const batch of reader as Iterable<arrow.RecordBatch>) {
    assertEquals(fromApacheArrow(batch).map((array) => array.toArray()), [[{ x: 1 }]]);
  }
});

// Lists and structs lack their children there: a file without rows could not be taken.
test("a table without rows has its columns, whatever their types, also as the package reads it and in C", () => {
  const list = new arrow.List(item(new arrow.Utf8()));
  const coded = new arrow.Dictionary(new arrow.Utf8(), new arrow.Int8());
  const types = [
    ...vectors.map(([, { type }]) => type),
    list,
    new arrow.List(item(list)),
    new arrow.FixedSizeList(3, item(new arrow.Struct([item(list), new arrow.Field("coded", coded, true)]))),
    new arrow.Struct([item(new arrow.Bool()), new arrow.Field("list", list, true)]),
    new arrow.Utf8View(),
  ];
  for (const type of types) {
    const schema = new arrow.Schema([new arrow.Field("x", type, true)]);
    const read = arrow.tableFromIPC(arrow.tableToIPC(new arrow.Table(schema), "file"));
    const columns = [read.getChild("x"), arrow.makeVector(arrow.makeData({ type, length: 0 } as never))];
    for (const column of columns) {
      assert(column !== null);
      const [array] = fromApacheArrow(column);
      assert(array !== undefined);
      using back = ArrowArray.from(array);
      const again: arrow.Vector = toApacheArrow(back, arrow);
      assertEquals([array.toArray(), back.toArray(), again.length, `${again.type}`], [[], [], 0, `${type}`]);
    }
    assertEquals(fromApacheArrow(read).map(({ length, children }) => [length, children.length]), [[0, 1]]);
  }
});

test("a dictionary in several chunks is refused, and what the error names makes one of one chunk", () => {
  const type = new arrow.Dictionary(new arrow.Utf8(), new arrow.Int8());
  const dictionary = arrow.vectorFromArray(["x", "y"], new arrow.Utf8()).concat(
    arrow.vectorFromArray(["z"], new arrow.Utf8()),
  );
  const vector = new arrow.Vector([arrow.makeData({ type, length: 3, data: Int8Array.of(2, 0, 2), dictionary })]);
  const message = "a dictionary of 2 chunks from apache-arrow: expected one. arrow.vectorFromArray([...vector], " +
    "vector.type)";
  assertThrows(() => fromApacheArrow(vector), ExchangeError, message);
  const anew = arrow.vectorFromArray([...vector], vector.type);
  assertEquals(fromApacheArrow(anew).map((array) => array.toArray()), [["z", "x", "z"]]);
});

test("a vector is made of an ArrowArray, by the package: anything else is refused, and the error says what to pass", () => {
  const view = StridedMemoryView.arange(3);
  using array = ArrowArray.from(view);
  for (const wrong of [view, undefined, null, [1], arrow.vectorFromArray([1])]) {
    assertThrows(
      () => toApacheArrow(wrong as unknown as ArrowArray, arrow),
      TypeError,
      "expected an ArrowArray. Arrow",
    );
  }
  for (const wrong of [undefined, null, {}, "apache-arrow", { default: arrow }]) {
    const given = wrong as unknown as typeof arrow;
    assertThrows(() => toApacheArrow(array, given), TypeError, 'import * as arrow from "apache-arrow"');
  }
});

test("the package reads our arrays as its own", () => {
  for (const [name, vector] of vectors) {
    const [array] = fromApacheArrow(vector);
    assert(array !== undefined);
    const again: arrow.Vector = toApacheArrow(array, arrow);
    assertEquals(again.length, vector.length);
    for (let i = 0; i < vector.length; i++) {
      assertEquals(JSON.stringify(again.get(i), printable), JSON.stringify(vector.get(i), printable), `${name}, ${i}`);
    }
    for (let i = 0; i < vector.length; i++) {
      const part: arrow.Vector = toApacheArrow(array.sliced(i), arrow);
      assertEquals(
        JSON.stringify(part.get(0), printable),
        JSON.stringify(vector.get(i), printable),
        `${name} from ${i}`,
      );
    }
  }
});

// The package slices the views of a slice once more when it writes them: a message that nobody could read.
test("slices of text and bytes as views are read from the messages that the package writes of them", () => {
  const long = "more than twelve bytes of text";
  const texts = [long, null, "short", `${long}, twice`, "", null, long, "a", null, `${long}!`];
  const kinds: readonly (readonly [new () => arrow.DataType, (string | Uint8Array | null)[]])[] = [
    [arrow.Utf8View, texts],
    [arrow.Utf8View, texts.map((text) => text ?? "")], // without a bitmap
    [arrow.BinaryView, texts.map((text) => text === null ? null : new TextEncoder().encode(text))],
  ];
  for (const [type, values] of kinds) {
    const [array] = fromApacheArrow(arrow.vectorFromArray(values, new type()));
    assert(array !== undefined);
    const struct = new ArrowArray({
      field: arrowField({ kind: "struct", children: [array.field] }),
      length: array.length,
      buffers: [null],
      children: [array],
    });
    for (let start = 0; start < values.length; start++) {
      for (let end = start + 1; end <= values.length; end++) {
        for (const part of [array.sliced(start, end), struct.sliced(start, end).child(0)]) {
          const written = arrow.tableToIPC(new arrow.Table({ x: toApacheArrow(part, arrow) as arrow.Vector }));
          const read = arrow.tableFromIPC(written).getChild("x");
          assert(read !== null);
          assertEquals(fromApacheArrow(read).flatMap((one) => one.toArray()), values.slice(start, end));
        }
      }
    }
  }
});

function printable(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? `${value}n` : value;
}

/**
 * Whether the package supports all of a type: it lacks list views, cannot count elements and lists of size 0, and reads
 * no dictionary by indices of 64 bits.
 */
function hasApache({ format, children, dictionary }: Model): boolean {
  if (/w:0$|^\+v/.test(format)) return false;
  return children.every(hasApache) && (dictionary === null || !/^l$/i.test(format) && hasApache(dictionary));
}

/** Bytes of an element, by the start of the format. */
const widths: Readonly<Record<string, number>> = { c: 1, s: 2, i: 4, l: 8, e: 2, f: 4, g: 8, ts: 8 };

const columns = models.filter(hasApache).chain((model) =>
  fc.record({ model: fc.constant(model), values: fc.array(valueOf(model), { maxLength: 12 }), quirk: quirks })
);

test("an array of any type, as a vector of the package and imported again, keeps its values and its memory", () => {
  using release = new CountingRelease();
  let same = 0;
  check(
    fc.property(columns, fc.nat(3), ({ model, values, quirk }, skip) => {
      using arena = new NativeArena();
      const writer = new RawWriter(arena, release);
      const schema = writer.schema(model);
      using array = ArrowArray.from({ schema, array: writer.array(encode(model, values, quirk)) });
      const start = Math.min(skip, array.length);
      const [back] = fromApacheArrow(toApacheArrow(array.sliced(start), arrow) as arrow.Vector);
      assert(back !== undefined);
      assertEquals(back.toArray() as Value[], values.slice(start));
      const [ours, theirs] = [array.buffers[1]?.buffer, back.buffers[1]?.buffer];
      const width = widths[model.format.slice(0, 2).toLowerCase()];
      if (
        width !== undefined && model.dictionary === null && ours !== undefined && theirs !== undefined &&
        back.length > 0
      ) {
        assertEquals(theirs.ptr, ours.ptr + BigInt(width * (array.offset + start)));
        same++;
      }
    }),
    1500,
  );
  assert(same > scaled(50), `only ${same} addresses were compared`);
});
