/** Views as Arrow arrays and back, and the views of an array's values and validity. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import { type ArrowType, parseArrowFormat } from "../../src/public/arrow.ts";
import {
  ArrowArray,
  arrowField,
  DType,
  ExchangeError,
  HostMemoryResource,
  slice,
  StridedMemoryView,
  type TypedArray,
} from "../../mod.ts";
import { check, fc } from "../support/property.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { rawChildren, readRawArray, readRawSchema } from "../support/raw_arrow.ts";

const dtypes = DType.all().filter(({ arrowFormat }) => arrowFormat !== null);

const views = fc.record({
  dtype: fc.constantFrom(...dtypes),
  shape: fc.array(fc.nat(4), { minLength: 1, maxLength: 4 }),
  start: fc.nat(20),
}).map(({ dtype, shape, start }) => ({ dtype, shape, start: dtype.isPacked ? 8 * start : start }));

test("a view in C order is exported as its first element's address and its shape, and imported as it was", () => {
  check(
    fc.property(views, ({ dtype, shape, start }) => {
      const volume = shape.reduce((product, extent) => product * extent, 1);
      using buffer = new HostMemoryResource().allocate(Math.max(1, Math.ceil((start + volume) * dtype.itemsize)));
      buffer.bytes().forEach((_, i, bytes) => bytes[i] = i * 37);
      const whole = StridedMemoryView.fromBuffer(buffer, { shape: [start + volume], dtype });
      const view = whole.sliced(slice(start)).reshaped(shape);
      using exported = view.toArrowDevice();
      // By hand: the nesting of the schema, and the start of the innermost values.
      let schema = readRawSchema(exported.schemaPtr);
      let raw = readRawArray(exported.ptr);
      for (const [axis, extent] of shape.entries()) {
        assertEquals(raw.length, shape.slice(0, axis + 1).reduce((product, one) => product * one, 1));
        assertEquals([raw.nullCount, raw.buffers[0]], [0, 0n]);
        const inner = shape[axis + 1];
        if (inner === undefined) break;
        assertEquals([schema.format, extent >= 0], [`+w:${inner}`, true]);
        [schema, raw] = [schema.children[0] ?? schema, raw.children[0] ?? raw];
      }
      assertEquals(schema.format, dtype.arrowFormat);
      if (volume > 0) {
        const bit = (raw.buffers[1] ?? 0n) * 8n + BigInt(raw.offset * dtype.bits);
        assertEquals(bit, buffer.ptr * 8n + BigInt(start * dtype.bits));
      }
      using back = StridedMemoryView.fromArrowDevice(exported);
      assertEquals([back.shape, back.dtype.name, back.readonly], [view.shape, view.dtype.name, true]);
      const index = shape.map((extent) => extent - 1);
      if (volume > 0) {
        const place = (one: StridedMemoryView) =>
          one.buffer.ptr * 8n + BigInt((one.offset + one.layout.offsetOf(...index) * dtype.itemsize) * 8);
        assertEquals(place(back), place(view));
      }
      back.close();
      assertEquals(liveExports(), 0);
    }),
    1000,
  );
});

test("views that Arrow cannot express are refused, and the error says what to do", () => {
  const view = StridedMemoryView.fromTypedArray(new Float32Array(12), { shape: [3, 4] });
  assertThrows(() => view.permuted([1, 0]).toArrowDevice(), ExchangeError, "Copy to such memory first");
  assertThrows(() => view.sliced(slice(), slice(0, 2)).toArrowDevice(), ExchangeError, "C order without gaps");
  assertThrows(() => view.sliced(1, 2).toArrowDevice(), ExchangeError, "Reshape to (1)");
  const bytes = StridedMemoryView.fromTypedArray(new Uint8Array(2));
  assertThrows(() => bytes.view({ dtype: "bool" }).toArrowDevice(), ExchangeError, "bool1_packed");
  assertThrows(() => bytes.view({ dtype: "float8_e4m3fn" }).toArrowDevice(), ExchangeError, "uint8");
  assertEquals(liveExports(), 0);
});

function bytesOf(array: { buffer: ArrayBufferLike; byteOffset: number; byteLength: number }): StridedMemoryView {
  return StridedMemoryView.fromTypedArray(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
}

test("the slots of times, truth values and dictionaries are views, and nulls are distinguished from them", () => {
  const times = (["tdD", "tdm", "tts", "ttn", "tsu:UTC", "tDs", "tiM"] as const).map((format) => {
    const type: ArrowType = parseArrowFormat(format, []);
    const array = new ArrowArray({
      field: arrowField(type),
      length: 2,
      offset: 1,
      buffers: [bytesOf(Uint8Array.of(0b011)), bytesOf(new BigInt64Array(3))],
    });
    return [format, array.values.dtype.name, array.values.offset, array.nullCount];
  });
  assertEquals(times, [
    ["tdD", "int32", 4, 1],
    ["tdm", "int64", 8, 1],
    ["tts", "int32", 4, 1],
    ["ttn", "int64", 8, 1],
    ["tsu:UTC", "int64", 8, 1],
    ["tDs", "int64", 8, 1],
    ["tiM", "int32", 4, 1],
  ]);
  const bits = new ArrowArray({
    field: arrowField("b"),
    length: 4,
    offset: 8,
    buffers: [bytesOf(Uint8Array.of(0, 0b1011)), bytesOf(Uint8Array.of(0, 0b0101))],
  });
  assertEquals(bits.toArray(), [true, false, null, false]);
  assertEquals([bits.values.dtype.name, bits.values.shape, bits.values.offset], ["bool1_packed", [4], 1]);
  assertEquals([bits.validity?.dtype.name, bits.validity?.offset], ["bool1_packed", 1]);
  assertThrows(() => StridedMemoryView.fromArrowDevice(bits), ExchangeError, "nulls");
  using valid = StridedMemoryView.from(bits.sliced(0, 2));
  assertEquals(valid.shape, [2]);
  assertThrows(() => bits.sliced(1).values, ExchangeError, "whole byte");
  assertThrows(() => bits.sliced(1).validity, ExchangeError, "whole byte");
  assertEquals(bits.sliced(1).toArray(), [false, null, false]);
});

test("any slice of fixed-size lists without nulls is a view, whatever the other lists have", () => {
  const lists = fc.array(fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }), { minLength: 1, maxLength: 5 });
  check(
    fc.property(lists, fc.nat(2), fc.nat(5), fc.nat(5), (valid, before, from, to) => {
      const flat = [...new Array<boolean>(before).fill(false), ...valid.flat()];
      const bitmap = new Uint8Array(8);
      for (const [i, isValid] of flat.entries()) bitmap[i >> 3] = (bitmap[i >> 3] ?? 0) | Number(isValid) << (i & 7);
      const numbers = new ArrowArray({
        field: arrowField("s"),
        length: 4 * valid.length,
        offset: before,
        buffers: [bytesOf(bitmap), bytesOf(Int16Array.from(flat, (_, i) => i - before))],
      });
      const of = (child: ArrowArray, length: number) =>
        new ArrowArray({
          field: arrowField({ kind: "fixed_size_list", size: 2, child: child.field }),
          length,
          buffers: [null],
          children: [child],
        });
      const nested = of(of(numbers, 2 * valid.length), valid.length);
      const [start, end] = [Math.min(from, valid.length), Math.min(from + to, valid.length)];
      const part = nested.sliced(start, end);
      if (valid.slice(start, end).flat().includes(false)) {
        assertThrows(() => part.values, ExchangeError, "nulls inside");
      } else {
        const seen = new Int16Array(4 * (end - start));
        StridedMemoryView.fromTypedArray(seen, { shape: [end - start, 2, 2] }).copyFrom(part.values);
        assertEquals(seen, Int16Array.from(seen, (_, i) => 4 * start + i));
      }
    }),
    300,
  );
});

test("an array with nulls, and one of text, is refused as a view, and stays its producer's", () => {
  const words = new ArrowArray({
    field: arrowField("u"),
    length: 1,
    buffers: [null, bytesOf(Int32Array.of(0, 2)), bytesOf(new TextEncoder().encode("ok"))],
  });
  using exported = words.toArrowDevice();
  assertThrows(() => StridedMemoryView.fromArrowDevice(exported), ExchangeError, "utf8");
  using taken = ArrowArray.from(exported); // which is still valid
  assertEquals(taken.toArray(), ["ok"]);
});

test("lists whose child has too few elements are refused as a view, and stay their producer's", () => {
  check(
    fc.property(
      fc.constantFrom("int32", "bool1_packed"),
      fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 2, maxLength: 4 }),
      fc.nat(),
      fc.nat(),
      (dtype, shape, atAxis, lacking) => {
        using buffer = new HostMemoryResource().allocate(4 * 4 ** 4);
        using exported = StridedMemoryView.fromBuffer(buffer, { shape, dtype }).toArrowDevice();
        const axis = 1 + atAxis % (shape.length - 1);
        const volume = shape.slice(0, axis + 1).reduce((product, extent) => product * extent, 1);
        let struct = exported.ptr;
        for (let i = 0; i < axis; i++) struct = rawChildren(struct)[0] ?? 0n;
        const length = new DataView(ffiPort().memory(struct, 8)); // the first field of an ArrowArray
        length.setBigInt64(0, BigInt(volume - 1 - lacking % volume), true);
        assertThrows(() => StridedMemoryView.fromArrowDevice(exported), ExchangeError, "a child has");
        length.setBigInt64(0, BigInt(volume), true);
        using view = StridedMemoryView.fromArrowDevice(exported); // which is still valid
        assertEquals(view.shape, shape);
      },
    ),
    300,
  );
});

test("an array that does not match its type is not made", () => {
  const bytes = bytesOf(Int32Array.of(0, 1, 2, 3));
  const numbers = new ArrowArray({ field: arrowField("i"), length: 4, buffers: [null, bytes] });
  const make = (parts: Partial<ConstructorParameters<typeof ArrowArray>[0]>) => () =>
    new ArrowArray({ field: arrowField("i"), length: 4, buffers: [null, bytes], ...parts });
  const list = arrowField({ kind: "list", offsets: 32, child: arrowField("i") });
  for (
    const [why, parts] of [
      ["has 16 bytes. Expected at least 20", { length: 5 }],
      ["has 16 bytes. Expected at least 20", { offset: 1 }],
      ["its length is -1", { length: -1 }],
      ["its null count is 5", { nullCount: 5 }],
      ["no validity bitmap", { nullCount: 1 }],
      ["it has 1 buffers. Expected 2", { buffers: [null] }],
      ["a view of int32", { buffers: [null, StridedMemoryView.fromTypedArray(Int32Array.of(0, 1, 2, 3))] }],
      ["its children", { children: [numbers] }],
      ["no indices", { dictionary: numbers }],
      ["its children", { field: list, length: 1 }],
      ["its offsets go from 3 to 0", {
        field: list,
        length: 1,
        offset: 3,
        buffers: [null, bytesOf(Int32Array.of(0, 1, 2, 3, 0))],
        children: [numbers],
      }],
      ["a child has 4 elements. Expected at least 9", {
        field: list,
        length: 1,
        buffers: [null, bytesOf(Int32Array.of(0, 9))],
        children: [numbers],
      }],
    ] as const
  ) {
    assertThrows(make(parts), ExchangeError, why);
  }
});

// The engine's own errors named properties of things that no program had passed.
test("the error for what is no part of an array names the part, and what makes one", () => {
  const bytes = bytesOf(Int32Array.of(0, 1, 2, 3));
  const whole = { field: arrowField("i"), length: 4, buffers: [null, bytes] };
  const wrong: readonly (readonly [parts: object, words: string])[] = [
    [
      { buffers: [null, new Uint8Array(16)] },
      "buffers[1] to be null or a StridedMemoryView of bytes, got an instance of Uint8Array. " +
      "StridedMemoryView.fromTypedArray(bytes) makes one",
    ],
    [{ buffers: [undefined, bytes] }, "buffers[0] to be null or"],
    [{ buffers: undefined }, "buffers to be an array of views of bytes and nulls, got undefined"],
    [{ field: undefined }, "field to be what arrowField(type) returns, got undefined"],
    [{ field: "i" }, 'field to be what arrowField(type) returns, got "i"'],
    [{ children: bytes }, "children to be an array of ArrowArrays"],
    [{ children: [bytes] }, "children to be ArrowArrays, got an instance of StridedMemoryView"],
    [{ dictionary: [bytes] }, "dictionary to be null or an ArrowArray, got an array"],
  ];
  for (const [parts, words] of wrong) {
    assertThrows(
      () => new ArrowArray({ ...whole, ...parts }),
      TypeError,
      `Cannot make an Arrow array: expected ${words}`,
    );
  }
});

test("elements that lead outside of an array's buffers are refused when they are read", () => {
  const child = new ArrowArray({ field: arrowField("i"), length: 2, buffers: [null, bytesOf(Int32Array.of(1, 2))] });
  const lists = new ArrowArray({
    field: arrowField({ kind: "list", offsets: 32, child: arrowField("i") }),
    length: 2,
    buffers: [null, bytesOf(Int32Array.of(0, 7, 2))],
    children: [child],
  });
  assertThrows(() => lists.get(0), ExchangeError, "elements 0 to 7");
  assertThrows(() => lists.get(1), ExchangeError, "from 7 to 2");
  const viewed = (offset: number, size: number) =>
    new ArrowArray({
      field: arrowField({ kind: "list_view", offsets: 32, child: child.field }),
      length: 1,
      buffers: [null, bytesOf(Int32Array.of(offset)), bytesOf(Int32Array.of(size))],
      children: [child],
    });
  assertEquals(viewed(1, 1).get(0), [child.get(1)]);
  assertThrows(() => viewed(1, 2).get(0), ExchangeError, "elements 1 to 3");
  assertThrows(() => viewed(-1, 1).get(0), ExchangeError, "1 elements from -1 on");
  assertThrows(() => viewed(0, -1).get(0), ExchangeError, "-1 elements from 0 on");
  const coded = new ArrowArray({
    field: arrowField({
      kind: "dictionary",
      index: { kind: "int", bits: 8 },
      values: arrowField("i"),
      ordered: false,
    }),
    length: 2,
    buffers: [null, bytesOf(Int8Array.of(2, -1))],
    dictionary: child,
  });
  assertThrows(() => coded.get(0), ExchangeError, "entry 2");
  assertThrows(() => coded.get(1), ExchangeError, "entry -1");
  assertThrows(() => child.get(2), RangeError, "element 2 of 2");
  assertThrows(() => child.sliced(1, 3), RangeError, "from 1 to 3");
});

test("a long array prints its ends, and a closed one throws", () => {
  const numbers = Int32Array.from({ length: 100 }, (_, i) => i);
  using array = ArrowArray.from(StridedMemoryView.fromTypedArray(numbers));
  const text = `${array}`;
  assert(text.startsWith("[0, 1, 2,") && text.includes("9, ... 80 more ..., 90") && text.endsWith("98, 99]"), text);
  array.close();
  assertThrows(() => array.get(0), TypeError);
  // It has no memory that would be closed.
  const nulls = new ArrowArray({ field: arrowField("n"), length: 21, buffers: [] });
  using imported = ArrowArray.from(nulls.toArrowDevice());
  imported.close();
  for (
    const use of [() => imported.get(0), () => imported.isNull(0), () => imported.toArrowDevice(), () => `${imported}`]
  ) {
    assertThrows(use, TypeError, "closed ArrowArray of 21 elements");
  }
  assertEquals(liveExports(), 0);
});

test("values are printed as a program would write them: NaN is no null", () => {
  const from = (array: TypedArray) => ArrowArray.from(StridedMemoryView.fromTypedArray(array));
  using floats = from(Float64Array.of(NaN, Infinity, -Infinity, -0, 0, 1.5));
  assertEquals(`${floats}`, "[NaN, Infinity, -Infinity, -0, 0, 1.5]");
  using longs = from(BigInt64Array.of(2n ** 60n + 1n, -1n));
  assertEquals(`${longs}`, "[1152921504606846977, -1]");
  const bytes = (...values: number[]) => StridedMemoryView.fromTypedArray(Uint8Array.from(values));
  const words = new ArrowArray({
    field: arrowField("u", { name: 'a "name"' }),
    length: 2,
    buffers: [bytes(0b01), bytes(0, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0), bytes(0x61, 0x22, 0x0a)],
  });
  const blobs = new ArrowArray({ ...words, field: arrowField("z", { name: "b" }), buffers: words.buffers });
  const table = new ArrowArray({
    field: arrowField({ kind: "struct", children: [words.field, blobs.field] }),
    length: 2,
    buffers: [null],
    children: [words, blobs],
  });
  assertEquals(`${table}`, '[{"a \\"name\\"":"a\\"\\n","b":[97,34,10]}, {"a \\"name\\"":null,"b":null}]');
});
