/** Arrow streams, exported and imported: every array once, in order, however many are taken, without leaks. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import * as arrow from "apache-arrow";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import type { ArrowStreamPointer } from "../../src/cdata/device_array.ts";
import { type ArrowField, exportArrowStream } from "../../src/public/arrow.ts";
import {
  ArrowArray,
  arrowField,
  ArrowStream,
  Cuda,
  DeviceMemoryResource,
  ExchangeError,
  StridedMemoryView,
} from "../../mod.ts";
import { ArrowArrayStream } from "../../bindings/arrow.ts";
import { readSchema } from "../../src/cdata/schema.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { StreamState } from "../../src/native/arrow_stream_thunk.ts";
import { struct } from "../../src/ffi/struct.ts";
import { readCString } from "../../src/ffi/c_string.ts";
import { check, fc } from "../support/property.ts";
import { encode, models, quirks, type Value, valueOf } from "../support/arrow_model.ts";
import {
  CountingRelease,
  type RawArray,
  RawWriter,
  readRawArray,
  readRawSchema,
  releaseRaw,
  setPointer,
} from "../support/raw_arrow.ts";

const batches = models.chain((model) =>
  fc.record({
    model: fc.constant(model),
    chunks: fc.array(fc.tuple(fc.array(valueOf(model), { maxLength: 4 }), quirks), { maxLength: 5 }),
    taken: fc.nat(6),
    device: fc.boolean(),
  })
);

test("a stream that is exported and imported gives every array once and in order, and all of them are released", () => {
  using release = new CountingRelease();
  check(
    fc.property(batches, ({ model, chunks, taken, device }) => {
      using arena = new NativeArena();
      const writer = new RawWriter(arena, release);
      const arrays = chunks.map(([values, quirk]) => {
        const array = writer.array(encode(model, values, quirk));
        return {
          array,
          holds: holdsMemory(readRawArray(array)),
          imported: ArrowArray.from({ schema: writer.schema(model), array }),
        };
      });
      const field = readSchema(writer.schema(model));
      release.calls.clear();
      const exported = exportArrowStream(arrays.map(({ imported }) => imported), { device, field });
      for (const { imported } of arrays) imported.close();
      const address = exported.take();
      const source: ArrowStreamPointer = device ? { deviceStream: address } : { stream: address };
      const stream = ArrowStream.from(source);
      assertThrows(() => ArrowStream.from(source), ExchangeError, "moved");
      const read: ArrowArray[] = [];
      for (let i = 0; i < taken; i++) {
        const array = stream.next();
        if (array !== null) read.push(array);
      }
      assertEquals(read.map((array) => array.toArray() as Value[]), chunks.slice(0, taken).map(([values]) => values));
      stream.close();
      assertEquals(exported.released, true);
      liveExports(); // reclaims what the stream has released: taken arrays are in use, the others are released
      const expected = arrays.map(({ holds }, i) => holds && i < taken ? 0 : 1);
      assertEquals(arrays.map(({ array }) => release.calls.get(array) ?? 0), expected);
      for (const array of read) array.close();
      assertEquals(liveExports(), 0);
      assertEquals(arrays.map(({ array }) => release.calls.get(array) ?? 0), chunks.map(() => 1));
    }),
    400,
  );
});

/** Whether an array has buffers: one without is no longer needed once its lengths have been read. */
function holdsMemory({ buffers, children, dictionary }: RawArray): boolean {
  return buffers.some((pointer) => pointer !== 0n) || children.some(holdsMemory) ||
    (dictionary !== null && holdsMemory(dictionary));
}

test("a consumer may ask for the schema several times and gets a copy each time, and finally an error with a message", () => {
  using arena = new NativeArena();
  const array = ArrowArray.from(StridedMemoryView.fromTypedArray(Int32Array.of(1)));
  const exported = exportArrowStream([array, array]);
  array.close();
  const stream = exported.take();
  const { get_schema, get_last_error, release } = struct(ArrowArrayStream).at(stream);
  const ask = ffiPort().functionAt(get_schema, { args: ["ptr", "ptr"], returns: "i32" });
  const copies = Array.from({ length: 8 }, () => {
    const { address } = arena.bytes(72);
    assertEquals(ask(stream, address), 0);
    return address;
  });
  assertEquals(ask(stream, arena.bytes(72).address), 12);
  const words = ffiPort().functionAt(get_last_error, { args: ["ptr"], returns: "ptr" })(stream);
  assertEquals(readCString(words), "no error of this stream but this one: it gives its schema 8 times");
  ffiPort().functionAt(release, { args: ["ptr"], returns: "void" })(stream);
  assertEquals(exported.released, true);
  for (const copy of copies) {
    assertEquals(readRawSchema(copy).format, "i");
    releaseRaw(copy, "schema");
  }
  assertEquals(liveExports(), 0);
});

test("an array of another type than the stream's is refused, and the error says what differs", () => {
  const u = (name: string, options = {}) => arrowField("u", { name, ...options });
  const struct = (...children: ArrowField[]) => arrowField({ kind: "struct", children });
  const coded = (values: ArrowField, ordered = false) =>
    arrowField({ kind: "dictionary", index: { kind: "int", bits: 8 }, values, ordered });
  const list = (child: ArrowField) => arrowField({ kind: "list", offsets: 32, child }, { name: "l" });
  const map = (keysSorted: boolean) =>
    arrowField({ kind: "map", keysSorted, child: struct(u("key", { nullable: false }), u("value")) });
  const pairs: readonly (readonly [ArrowField, ArrowField, string])[] = [
    [arrowField("i"), arrowField("f"), "the formats i and f"],
    [struct(u("a")), struct(arrowField("n", { name: "a" })), "the formats u and n at a"],
    [struct(u("a")), struct(u("b")), 'fields named ["a","b"]'],
    [struct(u("a")), struct(u("a"), u("b")), "1 and 2 fields"],
    [struct(u("a")), struct(u("a", { nullable: false })), "one that may be null and one that may not at a"],
    [struct(u("a")), struct(u("a", { metadata: { who: "me" } })), "other metadata at a"],
    [struct(u("a"), list(struct(u("b")))), struct(u("a"), list(struct(u("c")))), 'fields named ["b","c"] at l.*'],
    [coded(u("")), coded(arrowField("U")), "the formats u and U at *"],
    [coded(u("")), coded(u(""), true), "ordered and unordered"],
    [coded(u("")), arrowField("c"), "indices and values"],
    [map(false), map(true), "ordered and unordered"],
  ];
  const empty = (field: ArrowField): ArrowArray => {
    const { type } = field;
    const isDictionary = type.kind === "dictionary";
    const isList = type.kind === "list" || type.kind === "map";
    const children = type.kind === "struct" ? type.children : isList ? [type.child] : [];
    const count = { null: 0, struct: 1, utf8: 3 }[type.kind as string] ?? 2;
    return new ArrowArray({
      field,
      length: 0,
      nullCount: 0,
      buffers: Array(count).fill(null),
      children: children.map(empty),
      dictionary: isDictionary ? empty(type.values) : null,
    });
  };
  for (const [one, other, words] of pairs) {
    for (const [field, wrong] of [[one, other], [other, one]] as const) {
      const error = assertThrows(
        () => exportArrowStream([empty(wrong)], { field }),
        ExchangeError,
        "equal types, got ",
      );
      if (field === one) assertEquals(error.message.includes(`got ${words}`), true, error.message);
    }
    exportArrowStream([empty(one), empty(one)]).close();
  }
  assertEquals(liveExports(), 0);
});

test("streams of unequal types, without arrays, and of device memory for the host are refused, without a leak", () => {
  using cuda = Cuda.simulate({ devices: 1 });
  using stream = cuda.device(0).createStream();
  using buffer = new DeviceMemoryResource(cuda.device(0)).allocate(4, { stream });
  const there = StridedMemoryView.fromBuffer(buffer, { shape: [1], dtype: "int32" });
  const here = ArrowArray.from(StridedMemoryView.fromTypedArray(Int32Array.of(1)));
  const other = ArrowArray.from(StridedMemoryView.fromTypedArray(Float32Array.of(1)));
  const far = ArrowArray.from(there, { stream });
  const before = liveExports();
  assertThrows(() => exportArrowStream([]), ExchangeError, "{ field }");
  assertThrows(() => exportArrowStream([here, other]), ExchangeError, "equal types");
  assertThrows(() => exportArrowStream([here, far]), ExchangeError, "host memory");
  assertThrows(() => exportArrowStream([here, far], { device: true }), ExchangeError, "types 1 and 2");
  const unwritable = arrowField("i", { name: "a\0b" }); // the arrays had been taken, and stayed for good
  assertThrows(() => exportArrowStream([here], { field: unwritable }), TypeError);
  assertEquals(liveExports(), before);
  for (const one of [here, other, far]) one.close();
  assertEquals(liveExports(), 0);
});

// Views have no Arrow type, and were first noticed by what reads it.
test("anything but arrays is refused as a stream, with what makes an array", () => {
  const view = StridedMemoryView.fromTypedArray(Int32Array.of(1));
  const array = ArrowArray.from(view);
  const wrong: readonly (readonly [arrays: unknown, got: string])[] = [
    [[view], "got one with an instance of StridedMemoryView"],
    [[array, view], "got one with an instance of StridedMemoryView"],
    [[null], "got one with null"],
    [view, "got "],
    [array, "expected an iterable of ArrowArrays, such as [array], got an instance of ArrowArray"],
    [5, "got 5"],
    [null, "got null"],
    [arrow.tableFromArrays({ x: [1] }), "fromApacheArrow(table) those of a table"],
  ];
  for (const [arrays, got] of wrong) {
    for (const options of [{}, { field: array.field }]) {
      const error = assertThrows(() => exportArrowStream(arrays as never, options), TypeError, got);
      assert(error.message.includes("ArrowArray.from(view) makes one"), error.message);
    }
  }
  assertThrows(() => exportArrowStream([array], { field: "i" as never }), TypeError, "what arrowField(type) returns");
  array.close();
  assertEquals(liveExports(), 0);
});

test("device arrays are exported by a stream, each with its event", () => {
  using cuda = Cuda.simulate({ devices: 1 });
  const device = cuda.device(0);
  using home = device.createStream();
  using consumer = device.createStream();
  using buffer = new DeviceMemoryResource(device).allocate(4, { stream: home });
  using array = ArrowArray.from(StridedMemoryView.fromBuffer(buffer, { shape: [1], dtype: "int32" }), { stream: home });
  using exported = exportArrowStream([array], { device: true });
  using stream = ArrowStream.from({ deviceStream: exported.take() }, { stream: consumer });
  const got = stream.next();
  assert(got !== null);
  assertEquals([got.buffers[1]?.ptr, got.device, got.buffers[1]?.stream], [buffer.ptr, device, consumer]);
  got.close();
});

test("a stream that no consumer took is released with its arrays, and anything but a stream is refused", () => {
  const array = ArrowArray.from(StridedMemoryView.fromTypedArray(Int32Array.of(1)));
  const exported = exportArrowStream([array]);
  array.close();
  exported.close();
  exported.close();
  assertEquals([exported.released, liveExports()], [true, 0]);
  assertThrows(() => exported.take(), ExchangeError, "taken it over");
  using arena = new NativeArena();
  const { address } = arena.bytes(40);
  assertThrows(() => ArrowStream.from({ stream: 0n }), ExchangeError, "NULL");
  assertThrows(() => ArrowStream.from({ stream: address + 4n }), ExchangeError, "multiple of 8");
  assertThrows(() => ArrowStream.from({ stream: address }), ExchangeError, "released or was moved");
  const view = struct(ArrowArrayStream).at(address);
  view.release = 1n;
  assertThrows(() => ArrowStream.from({ stream: address }), ExchangeError, "get_schema");
});

test("an array of a stream that cannot be imported is released, and the next one is imported", () => {
  const arrays = [1, 2].map((value) => ArrowArray.from(StridedMemoryView.fromTypedArray(Int32Array.of(value))));
  const exported = exportArrowStream(arrays);
  for (const array of arrays) array.close();
  const address = exported.take();
  const state = struct(ArrowArrayStream).at(address).private_data;
  setPointer(struct(StreamState).at(state).next_array, 0, (1n << 64n) - 1n); // the length of the first: -1
  using stream = ArrowStream.from({ stream: address });
  const before = liveExports();
  const { message } = assertThrows(() => stream.next(), ExchangeError, "length");
  assertEquals(message.split(". ")[1], "It was released, and next() continues with the one after it");
  assertEquals(liveExports(), before - 2); // the array, and the one that owned its memory
  const second = stream.next();
  assertEquals([second?.toArray(), stream.next()], [[2], null]);
  second?.close();
  stream.close();
  assertEquals(liveExports(), 0);
});

test("an export is imported as it is: once, with every array, on the host and on a device", () => {
  using cuda = Cuda.simulate();
  using stream = cuda.device(0).createStream();
  check(
    fc.property(fc.array(fc.integer({ min: -9, max: 9 }), { maxLength: 6 }), fc.boolean(), (numbers, device) => {
      const place = device ? cuda.device(0) : "host";
      const where = device ? { stream } : {};
      const arrays = numbers.map((number) =>
        ArrowArray.from(StridedMemoryView.fromTypedArray(Int32Array.of(number)).to(place), where)
      );
      using some = ArrowArray.from(StridedMemoryView.fromTypedArray(Int32Array.of(0)));
      const { field } = some;
      const exported = exportArrowStream(arrays, { device, field });
      for (const array of arrays) array.close();
      assertThrows(() => ArrowStream.from(exported, { requestedSchema: field }), ExchangeError, "already exist");
      assertThrows(() => ArrowArray.from(exported), ExchangeError, "Import a stream with ArrowStream.from()");
      assertThrows(() => ArrowStream.from(exported, { stream: 5 as never }), TypeError, "expected a CudaStream");
      assertEquals([exported.taken, exported.released], [false, false], "a refusal takes nothing");
      const imported = ArrowStream.from(exported, where);
      assertEquals(exported.taken, true);
      for (const again of [() => ArrowStream.from(exported), () => exported.take()]) {
        assertThrows(again, ExchangeError, "a consumer has taken it over");
      }
      exported.close(); // takes nothing from the import
      let count = 0;
      for (const array of imported) {
        if (!device) assertEquals(array.toArray(), [numbers[count] ?? null]);
        assertEquals(array.length, 1);
        array.close();
        count++;
      }
      assertEquals(count, numbers.length);
      imported.close();
      assertEquals(exported.released, true);
    }),
    30,
  );
  stream.synchronize();
  assertEquals(liveExports(), 0);
});

test("the error for anything but a stream says what makes or imports one", () => {
  const view = StridedMemoryView.fromTypedArray(Int32Array.of(1));
  using array = ArrowArray.from(view);
  using exported = view.toArrowDevice();
  const wrong: readonly (readonly [source: unknown, words: string])[] = [
    [[array], "exportArrowStream() makes a stream of arrays"],
    [array, "Import one array with ArrowArray.from()"],
    [exported, "Import one array with ArrowArray.from()"],
    [
      5,
      "expected the result of exportArrowStream(), the address of a struct as { stream } or { deviceStream }, or a",
    ],
    [{ stream: 5 }, "or a Python object, got an instance of Object"],
    [undefined, "got undefined"],
  ];
  for (const [source, words] of wrong) assertThrows(() => ArrowStream.from(source), ExchangeError, words);
});
