/** Arrow arrays, streams and views of ours in Python, as PyArrow and nanoarrow take them: in place, and returned. */
import { assertEquals, assertThrows } from "@std/assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import { exportArrowStream } from "../../src/public/arrow.ts";
import {
  ArrowArray,
  arrowField,
  ArrowStream,
  Cuda,
  DType,
  ExchangeError,
  HostMemoryResource,
  PinnedMemoryResource,
  type PyObject,
  Python,
  PythonError,
  slice,
  StridedMemoryView,
} from "../../mod.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { patiently, runScript } from "../support/child.ts";
import { collectGarbage } from "../support/collect.ts";
import { examplesOf, runExample } from "../support/examples.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";
import { pattern } from "../support/arrays.ts";
import { encode, hasKeys, type Model, models, quirks, valueOf } from "../support/arrow_model.ts";
import { CountingRelease, RawWriter } from "../support/raw_arrow.ts";

const found = findPython("numpy", "pyarrow", "nanoarrow");
const missing = typeof found === "string" ? found : null;

const withPython = (name: string) => {
  const [title, { skip }] = needs(missing, name);
  return [title, { skip, ...patiently }] as const;
};

function open(): Python {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  python.run(`
import gc
import numpy as np
import pyarrow as pa
import nanoarrow as na
def buffers(array):
    return [str(buffer.address) if buffer is not None and buffer.size else "0" for buffer in array.buffers()]
`);
  return python;
}

async function stillExported(python: Python): Promise<number> {
  for (let i = 0; i < 20 && liveExports() > 0; i++) {
    await collectGarbage();
    python.run("gc.collect()");
  }
  return liveExports();
}

/**
 * Whether PyArrow has a type: no intervals of months, or of days and milliseconds. It crashes on maps with null keys.
 */
function isKnown(model: Model): boolean {
  const { format, children, dictionary } = model;
  return hasKeys(model) && !/^(tiM|tiD)$/.test(format) && children.every(isKnown) &&
    (dictionary === null || isKnown(dictionary));
}

test(
  ...withPython("PyArrow reads Arrow arrays of every type in place, valid and equal, and releases them"),
  async () => {
    const python = open();
    const take = python.evaluate("lambda array: [made := pa.array(array), made.validate()][0]");
    const length = python.builtins["len"];
    const cases = models.filter(isKnown).chain((model) =>
      fc.record({ model: fc.constant(model), values: fc.array(valueOf(model), { maxLength: 9 }), quirk: quirks })
    );
    using release = new CountingRelease();
    check(
      fc.property(cases, ({ model, values, quirk }) => {
        using arena = new NativeArena();
        const writer = new RawWriter(arena, release);
        const own = ArrowArray.from({
          schema: writer.schema(model),
          array: writer.array(encode(model, values, quirk)),
        });
        assertEquals(own.toArray() as unknown, values);
        {
          using theirs: PyObject = take.$call(own);
          assertEquals(length(theirs), values.length);
          using back = ArrowArray.from(theirs);
          assertEquals(back.toArray() as unknown, values);
          assertEquals(back.nullCount, own.nullCount);
          if (values.length > 0 && own.offset === back.offset) {
            const places = ({ buffers }: ArrowArray) => buffers.map((buffer) => buffer?.ptr ?? 0n);
            const count = /^v/.test(model.format) ? 1 : 0; // the sizes of an array of views are the export's own
            assertEquals(places(back).slice(0, -count || undefined), places(own).slice(0, -count || undefined));
          }
        }
        own.close();
        assertEquals(liveExports(), 0);
      }),
      500,
    );
    assertEquals(await stillExported(python), 0);
  },
);

test(
  ...withPython("PyArrow reads views in place: numbers of every type, axes as fixed-size lists"),
  async () => {
    const python = open();
    const look = python.evaluate("lambda array: [str(array.type), array.to_pylist(), buffers(array)[-1]]");
    const pa = python.import("pyarrow");
    for (
      const name of ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
    ) {
      const dtype = DType.from(name);
      using buffer = new HostMemoryResource().allocate(24 * dtype.itemsize);
      buffer.bytes().set(pattern(buffer.size, 5).map((byte) => byte & 0x3f));
      const whole = StridedMemoryView.fromBuffer(buffer, { shape: [2, 3, 4], dtype });
      for (
        const view of [whole, whole.sliced(1), whole.sliced(1, 2), whole.sliced(slice(1, 1)), whole.reshaped([24])]
      ) {
        using array: PyObject = pa["array"].$call(view);
        using seen: PyObject = look.$call(array);
        const [type, values, address] = seen.$value() as [string, unknown, string];
        using numpy: PyObject = python.import("numpy")["asarray"].$call(view);
        using listed: PyObject = numpy["tolist"].$call();
        assertEquals(values, listed.$value(), `${name} (${view.shape.join(", ")})`);
        if (view.layout.volume > 0) assertEquals(address, `${view.ptr}`);
        assertEquals(type.startsWith("fixed_size_list"), view.layout.ndim > 1, type);
        using back = StridedMemoryView.fromArrowDevice(array);
        assertEquals([back.dtype.name, [...back.shape]], [name, [...view.shape]]);
      }
    }
    const table = StridedMemoryView.fromTypedArray(Float32Array.of(1, 2, 3, 4, 5, 6), { shape: [2, 3] });
    using column: PyObject = pa["array"].$call(table.sliced(slice(), 1));
    assertEquals(column["to_pylist"]().$value(), [2, 5], "PyArrow copies it, like any NumPy array with gaps");
    const ask = python.evaluate(
      "lambda array, requested: type(array).__dlpack__.__globals__['plain_array'](array).__arrow_c_array__(requested)",
    );
    const halves = StridedMemoryView.fromTypedArray(new Uint16Array(6)).view({ dtype: "bfloat16" });
    for (const view of [table.permuted([1, 0]), table.sliced(slice(), 1), halves]) {
      assertThrows(() => ask(view, null), PythonError, "to Arrow");
    }
    assertThrows(() => pa["array"](table.permuted([1, 0])), PythonError, "1-dimensional");
    assertThrows(() => pa["array"](halves), PythonError, "to Arrow");
    const made = python.evaluate("lambda x: [hasattr(x[1:], '__arrow_c_array__'), hasattr(x, '__arrow_c_array__')]");
    assertEquals(made(table).$value(), [false, true], "arrays that NumPy derives from a view are NumPy's");
    using days: PyObject = python.evaluate("lambda x: x.view('M8[D]')").$call(new BigInt64Array([1n, 2n]));
    assertEquals(String(pa["array"](days).type), "date32[day]");
    assertThrows(() => ArrowArray.from(days), ExchangeError, "it has no __arrow_c_device_array__()");
    days.$close();
    assertEquals(await stillExported(python), 0);
  },
);

/** An array of text with a null in the middle. */
function words(): ArrowArray {
  const bytes = (array: Uint8Array | Int32Array) =>
    StridedMemoryView.fromTypedArray(
      new Uint8Array(array.buffer as ArrayBuffer, array.byteOffset, array.byteLength), // made here, with an ArrayBuffer
    );
  return new ArrowArray({
    field: arrowField("u", { name: "word", metadata: { who: "us" } }),
    length: 3,
    buffers: [
      bytes(Uint8Array.of(0b101)),
      bytes(Int32Array.of(0, 3, 3, 8)),
      bytes(new TextEncoder().encode("oneright")),
    ],
  });
}

function table(): ArrowArray {
  const column = words();
  const numbers = ArrowArray.from(StridedMemoryView.fromTypedArray(Float64Array.of(1, 2, 3)));
  const children = [column.field, { ...numbers.field, name: "number" }];
  return new ArrowArray({
    field: arrowField({ kind: "struct", children }, { nullable: false }),
    length: 3,
    buffers: [null],
    children: [column, new ArrowArray({ ...numbers, field: children[1] ?? numbers.field, buffers: numbers.buffers })],
  });
}

test(...withPython("a struct is a batch and a table, any number of times, on any thread of Python"), async () => {
  const python = open();
  python.run(`
import threading
def many(array):
    seen = []
    def work():
        for _ in range(20):
            seen.append(pa.record_batch(array)); seen.append(pa.table(array))
            array.__arrow_c_array__(); array.__arrow_c_device_array__(); array.__arrow_c_schema__()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads: one.start()
    for one in threads: one.join()
    return [one.to_pydict() for one in seen], seen[0].schema.field(0).metadata
`);
  {
    using seen: PyObject = python.evaluate("many").$call(table());
    const [rows, metadata] = seen.$value() as [Map<string, unknown>[], Map<unknown, unknown>];
    assertEquals(rows.length, 160);
    for (const row of rows) {
      assertEquals([...row], [["word", ["one", null, "right"]], ["number", [1, 2, 3]]]);
    }
    assertEquals(metadata.size, 1, "the field's metadata is included");
  }
  assertEquals(await stillExported(python), 0);
});

test(...withPython("a part of a batch is a batch, and a part of a struct with nulls is an array"), async () => {
  const python = open();
  python.run(`
def whole(hidden):
    words = pa.array(["a", None, "ccc", "", "e"]).slice(1)
    pairs = pa.StructArray.from_arrays([pa.array([1, 2, 3, 4, 5], pa.int8()).slice(1)], ["number"])
    texts = pa.array(["at first", "then something that is longer", None, "x"], pa.string_view())
    columns = [words, pairs, texts, pa.nulls(4)]
    if not hidden: return pa.record_batch(columns, names=["word", "pair", "text", "none"])
    mask = pa.array([False, True, False, False])
    return pa.StructArray.from_arrays(columns, ["word", "pair", "text", "none"], mask=mask)
def again(part, start, end):
    expected = whole(False).slice(start, end - start)
    batch, table, array = pa.record_batch(part), pa.table(part), pa.array(part)
    for one in batch, table, array: one.validate(full=True)
    same = [batch.equals(expected), array.to_pylist() == expected.to_pylist(), table.to_batches() == [expected]]
    return same, [len(column) for column in batch.columns]
def alone(part, start, end):
    array = pa.array(part)
    array.validate(full=True)
    return array.to_pylist() == whole(True).to_pylist()[start:end]
`);
  for (const [start, end] of [[0, 4], [0, 2], [1, 4], [2, 3], [4, 4], [2, 2], [0, 0]] as const) {
    const what = `${start} to ${end}`;
    using batch: PyObject = python.evaluate("whole").$call(false);
    using array = ArrowArray.from(batch);
    using seen: PyObject = python.evaluate("again").$call(array.sliced(0, end).sliced(start), start, end);
    const [same, lengths] = seen.$value() as [readonly boolean[], readonly number[]];
    const isEmpty = start === end; // a table may have a batch without rows, or none
    assertEquals(same.slice(0, isEmpty ? 2 : 3), isEmpty ? [true, true] : [true, true, true], what);
    assertEquals(lengths, [end - start, end - start, end - start, end - start], what);
    using hidden: PyObject = python.evaluate("whole").$call(true);
    using nullable = ArrowArray.from(hidden);
    assertEquals(python.evaluate("alone")(nullable.sliced(start, end), start, end), true, what);
  }
  const bitmap = StridedMemoryView.fromTypedArray(Uint8Array.of(0b111));
  const uncounted = new ArrowArray({
    field: arrowField({ kind: "struct", children: [words().field] }),
    length: 3,
    buffers: [bitmap],
    children: [words()],
  });
  const read = python.evaluate("lambda stream: pa.RecordBatchReader.from_stream(stream).read_all().to_pylist()");
  using rows: PyObject = read.$call(exportArrowStream([uncounted.sliced(1)]));
  assertEquals((rows.$value() as Map<string, unknown>[]).map((row) => row.get("word")), [null, "right"]);
  const children = [words(), words()];
  const field = arrowField({ kind: "struct", children: children.map((one) => one.field) });
  const shorter = new ArrowArray({ field, length: 2, buffers: [null], children });
  assertEquals(python.evaluate("lambda part: pa.record_batch(part).validate(full=True)")(shorter), null);
  assertEquals(await stillExported(python), 0);
});

test(...withPython("a child that is moved out of its parent stays valid; failed imports are released"), async () => {
  const python = open();
  python.run(`
def first_child(array):
    whole = na.c_array(array)
    return whole.child(0)
def fails(array):
    capsules = array.__arrow_c_array__()
    raise ValueError("taken nothing")

import ctypes
pointer, at = ctypes.c_void_p, ctypes.c_void_p.from_address
address_in = ctypes.pythonapi.PyCapsule_GetPointer
address_in.restype, address_in.argtypes = pointer, [ctypes.py_object, ctypes.c_char_p]
def release(struct): ctypes.CFUNCTYPE(None, pointer)(at(struct + 64).value)(struct)
class Moved:
    "The first child of an array, moved out of it as a consumer in C does it. The parent is released."
    def __init__(self, array):
        schema, parent = array.__arrow_c_array__()
        parent = address_in(parent, b"arrow_array")
        child = at(at(parent + 48).value).value
        self.struct = ctypes.create_string_buffer(ctypes.string_at(child, 80), 80)
        at(child + 64).value = None
        release(parent)
    def text(self): return ctypes.string_at(at(at(ctypes.addressof(self.struct) + 40).value + 16).value, 8).decode()
    def end(self): release(ctypes.addressof(self.struct))
`);
  {
    const child = words();
    const field = arrowField({ kind: "struct", children: [child.field] });
    const parent = new ArrowArray({ field, length: 3, buffers: [null], children: [child] });
    assertEquals(await stillExported(python), 0);
    using moved: PyObject = python.evaluate("Moved").$call(parent);
    python.run("gc.collect()");
    assertEquals(liveExports() > 0, true, "the child retains what it needs");
    assertEquals(moved["text"](), "oneright");
    moved["end"]();
  }
  assertEquals(await stillExported(python), 0);
  {
    using child: PyObject = python.evaluate("first_child").$call(table());
    python.run("gc.collect()");
    assertEquals(liveExports() > 0, true);
    using back = ArrowArray.from(child);
    assertEquals(back.toArray(), ["one", null, "right"]);
  }
  assertThrows(() => python.evaluate("fails")(table()), PythonError, "taken nothing");
  const unwinds = python.evaluate("lambda array: (pa.array(array), 1 // 0)"); // releases the first meanwhile
  assertThrows(() => unwinds(words()), PythonError, "ZeroDivisionError");
  python.run("import sys; sys.last_value = sys.last_traceback = None");
  assertEquals(await stillExported(python), 0);
});

test(...withPython("a stream is read once, by its own protocol, and released if it is never read"), async () => {
  const python = open();
  const pa = python.import("pyarrow");
  const stream = () => exportArrowStream([words(), words().sliced(1)]);
  {
    using chunks: PyObject = pa["chunked_array"].$call(stream());
    using again = ArrowStream.from(chunks);
    const arrays = [...again];
    assertEquals(arrays.map((one) => one.toArray()), [["one", null, "right"], [null, "right"]]);
    for (const one of arrays) one.close();
  }
  const ask = python.evaluate("lambda stream: [stream.__arrow_c_stream__(), stream.__arrow_c_stream__()]");
  assertThrows(() => ask(stream()), PythonError, "read once");
  python.builtins["repr"](stream());
  const tables = exportArrowStream([table()]);
  {
    using reader: PyObject = python.evaluate("pa.RecordBatchReader.from_stream").$call(tables);
    using all: PyObject = reader["read_all"].$call();
    assertEquals(all["num_rows"], 3);
  }
  {
    using onDevice: PyObject = python.evaluate("lambda stream: stream").$call(
      exportArrowStream([words()], { device: true }),
    );
    assertThrows(() => pa["chunked_array"](onDevice), PythonError);
    using back = ArrowStream.from(onDevice);
    using one = back.next() ?? words();
    assertEquals(one.toArray(), ["one", null, "right"]);
    assertThrows(() => ArrowStream.from(onDevice), PythonError, "read once");
  }
  assertEquals(await stillExported(python), 0);
  assertEquals(tables.released, true);
});

// The struct was freed while the producer used it: a segmentation fault.
test(...withPython("a stream may be closed inside its own producer, and is released when that returns"), async () => {
  const python = open();
  python.run(`
ended = []
def reader(call):
    schema = pa.schema([("a", pa.int32())])
    def batches():
        try:
            for i in range(3):
                call(i)
                yield pa.record_batch([pa.array([i], pa.int32())], schema=schema)
        finally:
            ended.append(1)
    return pa.RecordBatchReader.from_batches(schema, batches())
`);
  const reader: PyObject = python.evaluate("reader");
  using batches: PyObject = reader.$call((i: number) => {
    if (i === 0) assertThrows(() => stream.next(), TypeError, "inside its own producer");
    if (i === 1) stream.close();
  });
  const stream: ArrowStream = ArrowStream.from(batches);
  batches.$close();
  const seen = [stream.next(), stream.next()].map((batch) => {
    const values = batch?.child(0).toArray();
    batch?.close();
    return values;
  });
  assertEquals([seen, python.evaluate("ended").$value()], [[[0], [1]], [1]]);
  assertThrows(() => stream.next(), TypeError, "closed");
  assertEquals(await stillExported(python), 0);
});

test(...withPython("a stream's schema can be read any number of times, also when it was exported"), async () => {
  const python = open();
  const tell = python.evaluate("lambda stream: [str(pa.schema(stream).field(0).type) for _ in range(30)][27:]");
  for (const device of [false, true]) {
    const stream = exportArrowStream([table()], { device });
    {
      using inside: PyObject = python.evaluate("lambda stream: stream").$call(stream);
      const said: PyObject = tell(inside);
      assertEquals(said.$value(), ["string", "string", "string"]);
      using reader = ArrowStream.from(inside);
      using batch = reader.next();
      assertEquals(batch?.length, 3);
      const late: PyObject = tell(inside);
      assertEquals(late.$value(), ["string", "string", "string"]);
    }
    assertEquals(await stillExported(python), 0);
    assertEquals(stream.released, true);
  }
});

const duckdb = findPython("numpy", "pyarrow", "duckdb");

test(
  ...needs(typeof duckdb === "string" ? duckdb : null, "DuckDB reads a stream, in the order of its batches"),
  async () => {
    const python = open();
    python.run("import duckdb");
    const column = fc.array(fc.option(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })), { maxLength: 9 });
    const ways = [
      "lambda s: duckdb.from_arrow(s).fetchall()",
      "lambda s: duckdb.sql('select * from s').fetchall()",
      "lambda s: duckdb.connect().register('here', s).execute('from here').fetchall()",
      "lambda s: [row for row in duckdb.from_arrow(s).project('*').fetchall()]",
    ].map((way) => python.evaluate(way));
    const make = python.evaluate(
      "lambda values: pa.record_batch({'n': pa.array(values, 'int32'), 't': pa.array(map(str, values), 'string')})",
    );
    check(
      fc.property(fc.array(column, { minLength: 1, maxLength: 4 }), fc.constantFrom(...ways), (columns, way) => {
        const batches = columns.map((values) => ArrowArray.from(make.$call(values)));
        {
          using rows: PyObject = way.$call(exportArrowStream(batches));
          assertEquals(rows.$value(), columns.flat().map((value) => [value, value === null ? "None" : `${value}`]));
        }
        for (const batch of batches) batch.close();
      }),
      50,
    );
    assertEquals(await stillExported(python), 0);
  },
);

test(...withPython("an Arrow array of numbers is NumPy's too, and is still what it is to Arrow"), async () => {
  const python = open();
  const bytes = StridedMemoryView.fromTypedArray(new Uint8Array(new BigInt64Array([1n, 2n, 3n]).buffer));
  const field = arrowField("l", { name: "count", nullable: false });
  const numbers = new ArrowArray({ field, length: 3, buffers: [null, bytes] });
  assertEquals(python.import("numpy")["sum"](numbers), 6);
  assertEquals(
    python.evaluate("lambda array: str(pa.Field._import_from_c_capsule(array.__arrow_c_schema__()))")(numbers),
    "pyarrow.Field<count: int64 not null>",
  );
  const coded = new ArrowArray({
    field: arrowField({ kind: "dictionary", index: { kind: "int", bits: 8 }, values: words().field, ordered: false }),
    length: 2,
    buffers: [null, StridedMemoryView.fromTypedArray(Uint8Array.of(2, 0))],
    dictionary: words(),
  });
  assertEquals(python.evaluate("lambda array: pa.array(array).to_pylist()").$call(coded).$value(), ["right", "one"]);
  assertEquals(python.evaluate("lambda array: hasattr(array, '__dlpack__')")(coded), false, "indices are not elements");
  const refused = python.evaluate("lambda array: np.from_dlpack(array)");
  assertThrows(() => refused(words()), PythonError);
  const options = python.evaluate("lambda array, given: array.__arrow_c_device_array__(**given)");
  assertThrows(() => options(numbers, { stream: 1 }), PythonError, "NotImplementedError");
  options.$call(numbers, { stream: null, requested_schema: null }).$close();
  const closed = ArrowArray.from(numbers);
  closed.close();
  assertThrows(() => python.builtins["repr"](closed), TypeError, "closed");
  assertEquals(await stillExported(python), 0);
});

// Without a null they were NumPy's arrays of integers, which pandas and Polars took for integers.
test(...withPython("dates and times are times to NumPy, with and without nulls, as PyArrow's are"), async () => {
  const python = open();
  const compare = python.evaluate(`lambda array: [
      isinstance(array, np.ndarray), len(array), np.asarray(array).dtype.str, str(np.asarray(array)), str(list(array)),
      pa.array(array).to_numpy(zero_copy_only=False).dtype.str, str(pa.array(array).to_numpy(zero_copy_only=False))]`);
  const format = fc.constantFrom(
    "tdD",
    "tdm",
    "tss:",
    "tsm:UTC",
    "tsu:Europe/Paris",
    "tsn:",
    "tDs",
    "tDm",
    "tDu",
    "tDn",
  );
  const cell = fc.option(fc.integer({ min: -2e9, max: 2e9 }));
  await check(
    fc.asyncProperty(
      format,
      fc.array(cell, { maxLength: 12 }),
      fc.nat(12),
      fc.boolean(),
      async (format, all, at, marks) => {
        const values = format === "tdm" ? all.map((one) => one === null ? null : one * 86_400_000) : all;
        const hasMask = marks || values.includes(null);
        const stored = format === "tdD"
          ? Int32Array.from(values, (one) => (one ?? 7) / 1000)
          : BigInt64Array.from(values, (one) => BigInt(one ?? 7));
        const mask = new Uint8Array(Math.ceil(values.length / 8));
        values.forEach((one, i) => mask[i >> 3] = (mask[i >> 3] ?? 0) | Number(one !== null) << (i & 7));
        const array = new ArrowArray({
          field: arrowField(format),
          length: values.length,
          buffers: [
            hasMask ? StridedMemoryView.fromTypedArray(mask) : null,
            StridedMemoryView.fromTypedArray(new Uint8Array(stored.buffer)),
          ],
        }).sliced(Math.min(at, values.length));
        const [isNumpys, length, dtype, text, items, wantedDtype, wanted] = compare.$call(array).$value() as unknown[];
        assertEquals([isNumpys, length, dtype, text], [false, array.length, wantedDtype, wanted], format);
        assertEquals(String(items).match(/np\.(datetime64|timedelta64)/g)?.length ?? 0, array.length);
        await Promise.resolve();
      },
    ),
    60,
  );
  const bytes = StridedMemoryView.fromTypedArray(new Uint8Array(8));
  const clock = new ArrowArray({ field: arrowField("tts"), length: 2, buffers: [null, bytes] });
  const asNumpy = python.evaluate("lambda array, **options: np.array(array, **options)");
  assertThrows(
    () => asNumpy(clock),
    PythonError,
    "a NumPy array of an Arrow array of format tts: import it by pyarrow",
  );
  // NumPy made an array of one object of these, which pandas repeated in every row.
  const marked = new ArrowArray({
    field: arrowField("l"),
    length: 1,
    buffers: [StridedMemoryView.fromTypedArray(Uint8Array.of(0)), bytes],
  });
  for (const [array, format] of [[marked, "l"], [words(), "u"]] as const) {
    const takers = ["np.asarray(array)", "np.array([array])", "list(array)"];
    for (const taker of takers) {
      const take = python.evaluate(`lambda array: ${taker}`);
      assertThrows(() => take(array), PythonError, `a NumPy array of an Arrow array of format ${format}: import`);
    }
    assertEquals(python.evaluate("lambda array: len(array) == len(pa.array(array))")(array), true);
  }
  using cuda = Cuda.simulate();
  using pinned = new PinnedMemoryResource(cuda.device(0)).allocate(8, { stream: cuda.device(0).createStream() });
  pinned.fill(0);
  const page = StridedMemoryView.fromBuffer(pinned, { shape: [8], dtype: "uint8" });
  const locked = new ArrowArray({ field: arrowField("tss:"), length: 1, buffers: [null, page] });
  assertEquals(python.evaluate("lambda array: str(np.asarray(array))")(locked), "['1970-01-01T00:00:00']");
  const times = new ArrowArray({ field: arrowField("tss:"), length: 1, buffers: [null, bytes] });
  assertThrows(() => python.evaluate("lambda array: np.asarray(array, copy=False)")(times), PythonError, "copy");
  assertEquals(python.evaluate("lambda array: np.asarray(array, 'M8[D]').dtype.str")(times), "<M8[D]");
  assertEquals(await stillExported(python), 0);
});

test(
  ...withPython("data not convertible to a requested schema is refused in Python too, and all other data is exported"),
  async () => {
    const python = open();
    // Python used to accept any schema, and ignore it.
    const ask: PyObject = python.evaluate(
      "lambda one, method, type: bool(getattr(one, method)(type.__arrow_c_schema__()))",
    );
    const int32 = StridedMemoryView.fromTypedArray(Int32Array.of(1, 2));
    const lists = StridedMemoryView.fromTypedArray(new Float32Array(6), { shape: [3, 2] });
    const numbers = ArrowArray.from(int32);
    const pairs = new ArrowArray({
      field: arrowField({ kind: "struct", children: [arrowField("i", { name: "a" }), arrowField("u", { name: "b" })] }),
      length: 0,
      buffers: [null],
      children: [numbers.sliced(0, 0), words().sliced(0, 0)],
    });
    const coded = arrowField({
      kind: "dictionary",
      index: { kind: "int", bits: 8 },
      values: words().field,
      ordered: false,
    });
    const dictionary = new ArrowArray({
      field: coded,
      length: 1,
      buffers: [null, StridedMemoryView.fromTypedArray(Uint8Array.of(2))],
      dictionary: words(),
    });
    const cases: readonly (readonly [() => unknown, fits: string[], not: string[]])[] = [
      [() => int32, ["pa.int32()", "pa.int8()", "pa.float64()", "pa.bool_()", "pa.decimal128(9, 2)"], [
        "pa.string()",
        "pa.list_(pa.int32())",
        "pa.timestamp('s')",
        "pa.struct([('a', pa.int32())])",
        "pa.null()",
      ]],
      [() => lists, ["pa.list_(pa.float32(), 2)", "pa.list_(pa.int8())", "pa.large_list(pa.float16())"], [
        "pa.float32()",
        "pa.list_(pa.string())",
      ]],
      [words, ["pa.large_string()", "pa.binary()", "pa.string_view()", "pa.dictionary(pa.int8(), pa.string())"], [
        "pa.int32()",
        "pa.dictionary(pa.int8(), pa.int32())",
      ]],
      [() => dictionary, ["pa.string()", "pa.dictionary(pa.int64(), pa.large_string())"], ["pa.int8()"]],
      [() => pairs, [
        "pa.struct([('x', pa.int64()), ('y', pa.binary())])",
        "pa.struct([('b', pa.binary()), ('a', pa.int64())])", // matched by name
      ], [
        "pa.struct([('b', pa.int64()), ('a', pa.binary())])",
        "pa.struct([('a', pa.int32())])",
        "pa.struct([('a', pa.string()), ('b', pa.string())])",
      ]],
      [() => new ArrowArray({ field: arrowField("n"), length: 2, buffers: [] }), ["pa.int8()", "pa.string()"], []],
    ];
    for (const [make, fits, not] of cases) {
      for (const method of ["__arrow_c_array__", "__arrow_c_device_array__"]) {
        for (const type of fits) assertEquals(ask(make(), method, python.evaluate(type)), true, type);
        for (const type of not) {
          assertThrows(() => ask(make(), method, python.evaluate(type)), PythonError, "as the requested", type);
        }
      }
    }
    for (const [device, method] of [[false, "__arrow_c_stream__"], [true, "__arrow_c_device_stream__"]] as const) {
      const stream = () => exportArrowStream([words()], { device });
      assertEquals(ask(stream(), method, python.evaluate("pa.large_string()")), true);
      assertThrows(() => ask(stream(), method, python.evaluate("pa.int8()")), PythonError, "as the requested c");
    }
    const noSchema = python.evaluate("lambda one: one.__arrow_c_array__(one.__arrow_c_array__()[1])");
    assertThrows(() => noSchema(int32), PythonError, "ValueError");
    numbers.close();
    assertEquals(await stillExported(python), 0);
  },
);

test(...withPython("a producer is asked for a schema, and exports it if it can, else its own"), async () => {
  const python = open();
  {
    using numbers: PyObject = python.evaluate("lambda: pa.array([1, 2, None], pa.int32())").$call();
    using wide = ArrowArray.from(numbers, { requestedSchema: arrowField("l") });
    assertEquals(wide.toArray(), [1n, 2n, null]);
    using same = ArrowArray.from(numbers, { requestedSchema: null });
    assertEquals(same.toArray(), [1, 2, null]);
    using texts: PyObject = python.evaluate("lambda: pa.array(['one'])").$call();
    assertThrows(() => ArrowArray.from(texts, { requestedSchema: arrowField("i") }), PythonError, "cast");
    python.run(`
class Deaf:
    def __init__(self, array): self.array = array
    def __arrow_c_array__(self, requested_schema=None): return self.array.__arrow_c_array__()
`);
    using deaf: PyObject = python.evaluate("Deaf").$call(texts);
    using what = ArrowArray.from(deaf, { requestedSchema: arrowField("i") });
    assertEquals(what.toArray(), ["one"]);
    using table: PyObject = python.evaluate("lambda: pa.table({'x': pa.array([1, 2], pa.int32())})").$call();
    const requestedSchema = arrowField({ kind: "struct", children: [arrowField("g", { name: "x" })] });
    using stream = ArrowStream.from(table, { requestedSchema });
    using batch = stream.next() ?? words();
    assertEquals(batch.toArray(), [{ x: 1 }, { x: 2 }]);
    assertEquals(batch.child("x").type, arrowField("g").type);
  }
  const ours = words();
  using renamed = ArrowArray.from(ours, { requestedSchema: arrowField("u", { name: "mot" }) });
  assertEquals([renamed.field.name, renamed.get(2)], ["mot", "right"]);
  assertThrows(() => ArrowArray.from(ours, { requestedSchema: arrowField("i") }), ExchangeError, "requested int");
  const requestedSchema = arrowField("u");
  using exported = ours.toArrowDevice();
  assertThrows(() => ArrowArray.from(exported, { requestedSchema }), ExchangeError, "already exist");
  using streamed = exportArrowStream([ours]);
  const taken = { stream: streamed.take() };
  assertThrows(() => ArrowStream.from(taken, { requestedSchema }), ExchangeError, "already exist");
  ArrowStream.from(taken).close();
  renamed.close();
  exported.close();
  assertEquals(await stillExported(python), 0);
});

test(
  ...withPython("a producer may release the requested schema, and let JavaScript free it, before it returns"),
  async () => {
    const script = new URL("./requested_schema_child.ts", import.meta.url);
    const args = [typeof found === "string" ? "" : found.executable];
    const { code, signal, stdout, stderr } = await runScript(script, { args, env: { MALLOC_PERTURB_: "206" } });
    assertEquals([code, signal, stdout], [0, null, "[1,2,3] 0\n"], stderr);
  },
);

const guide = readFileSync(new URL("../../docs/python.md", import.meta.url), "utf8");

test(...needs(missing, "objects that support only Arrow, or Arrow better than DLPack, are viewed like others"), () => {
  const python = open();
  const expressions = {
    "na.c_array([1, 2, 3], na.int32())": "[1 2 3]",
    "pa.array([True, False, True])": "[ True False  True]",
    "pa.array([1, 2], pa.date32())": "[1 2]",
    "pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2))": null,
    "pa.array([1.5, 2.5])": "[1.5 2.5]",
  };
  for (const [expression, printed] of Object.entries(expressions)) {
    using array: PyObject = python.evaluate(`__import__('numpy') and (lambda pa, na: ${expression})`).$call(
      python.import("pyarrow"),
      python.import("nanoarrow"),
    );
    using view = StridedMemoryView.from(array);
    using same = StridedMemoryView.fromArrowDevice(array);
    assertEquals([view.ptr, view.shape, view.dtype.name], [same.ptr, same.shape, same.dtype.name], expression);
    if (printed !== null) assertEquals(`${view}`, printed, expression);
  }
});

for (const example of examplesOf("docs/python.md", guide, "pyarrow")) {
  test(...withPython(`${example.name}: prints what it says`), () => {
    runExample(example, { CAUSEWAY_PYTHON: typeof found === "string" ? "" : found.executable });
  });
}

test(
  ...withPython("an array passed as a stream, or a stream as an array, is an error that names the right call"),
  () => {
    const python = open();
    for (
      const stream of ["pa.chunked_array([[1], [2]])", "pa.table({'a': [1]})", "na.ArrayStream(pa.table({'a': [1]}))"]
    ) {
      const object = python.evaluate(stream);
      assertThrows(() => ArrowArray.from(object), ExchangeError, "import it with ArrowStream.from()", stream);
      ArrowStream.from(object).close();
    }
    const array = python.evaluate("na.c_array([1], na.int64())");
    assertThrows(() => ArrowStream.from(array), ExchangeError, "import it with ArrowArray.from()");
    using taken = ArrowArray.from(array);
    assertThrows(() => ArrowStream.from(taken), ExchangeError, "Import one array with ArrowArray.from()");
    assertThrows(() => ArrowArray.from({ stream: 64n }), ExchangeError, "Import a stream with ArrowStream.from()");
    assertThrows(
      () => ArrowArray.from(python.evaluate("object()")),
      ExchangeError,
      "it has no __arrow_c_device_array__",
    );
  },
);

test("vectors of apache-arrow, typed arrays and lists are distinguished from C's structs, with the call for each", () => {
  assertThrows(() => ArrowArray.from({ data: [] }), ExchangeError, "fromApacheArrow()");
  const numbers = Int32Array.of(1, 2);
  assertThrows(() => ArrowArray.from(numbers), ExchangeError, "ArrowArray.from(StridedMemoryView.from(array))");
  using ofNumbers = ArrowArray.from(StridedMemoryView.from(numbers));
  assertEquals(ofNumbers.toArray(), [1, 2]);
  const list = [1, 2];
  assertThrows(() => ArrowArray.from(list), ExchangeError, "ArrowArray.from(StridedMemoryView.fromArray(numbers))");
  using ofList = ArrowArray.from(StridedMemoryView.fromArray(list));
  assertEquals(ofList.toArray(), [1, 2]);
});
