/**
 * Our arrays in Python and NumPy's arrays here, in this process: the same memory, the same elements, and nothing is
 * kept once both sides have released it.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import {
  Cuda,
  DeviceMemoryResource,
  DType,
  ExchangeError,
  HostMemoryResource,
  kwargs,
  PinnedMemoryResource,
  type PyObject,
  Python,
  PythonError,
  slice,
  StridedMemoryView,
} from "../../mod.ts";
import { shapes } from "../support/strided_oracle.ts";
import { examplesOf, runExample } from "../support/examples.ts";
import { collectGarbage } from "../support/collect.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";
import { apart, pattern, positionsOf } from "../support/arrays.ts";
import { until } from "../support/until.ts";
import { mlDtypes } from "../support/ml_dtypes.ts";

const found = findPython("numpy");
const missing = typeof found === "string" ? found : null;
const foundBoth = findPython("numpy", "ml_dtypes");
const missingTypes = typeof foundBoth === "string" ? foundBoth : null;

function open(): Python {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  python.run(`
import numpy as np
def look(array):
    address = str(array.__array_interface__["data"][0]) if array.size else "none"
    return [address, list(array.shape), array.tobytes(), array.dtype.name, bool(array.flags.writeable or array.size == 0)]
`);
  return python;
}

/** Element types that NumPy has, and those that ml_dtypes adds. */
const plain = DType.all().filter(({ typestr }) => typestr !== null);
const added = mlDtypes.map((name) => DType.from(name));

/** Views of random bytes at random places. */
function arrays(dtypes: readonly DType[]): fc.Arbitrary<StridedMemoryView> {
  return fc.record({ shape: shapes(4), dtype: fc.constantFrom(...dtypes), readonly: fc.boolean(), seed: fc.nat() })
    .chain(({ shape, dtype, readonly, seed }) =>
      apart(shape, dtype.itemsize).map(({ layout, offset, size }) => {
        const buffer = new HostMemoryResource().allocate(size);
        // Zeros and ones are valid in every type; other codes may not be, as in a bool.
        const mask = dtype.name === "bool" ? 1 : 255;
        buffer.bytes().set(pattern(size, seed).map((byte) => byte & mask));
        return StridedMemoryView.fromBuffer(buffer, { shape: [0], dtype, offset, readonly }).view({ layout });
      })
    );
}

/** What Python's `look` must report for a view. */
function described(view: StridedMemoryView): unknown[] {
  const { buffer, layout, dtype, offset, shape, ptr, readonly } = view;
  const memory = buffer.bytes();
  const dense = positionsOf({ layout, offset, size: buffer.size }).flatMap((
    at,
  ) => [...memory.slice(at, at + dtype.itemsize)]);
  return [
    layout.volume === 0 ? "none" : `${ptr}`,
    [...shape],
    Uint8Array.from(dense),
    dtype.name,
    !readonly || layout.volume === 0, // NumPy allocates its own memory for elements at NULL
  ];
}

/** Lets both sides collect garbage, and returns how many arrays of ours Python still has. */
async function stillExported(python: Python): Promise<number> {
  for (let i = 0; i < 20 && liveExports() > 0; i++) {
    await collectGarbage();
    python.run("import gc; gc.collect()"); // takes the lock, under which what was collected here is released
  }
  return liveExports();
}

test(...needs(missing, "NumPy sees our memory, element by element, and we see its results"), async () => {
  const python = open();
  const look: PyObject = python.evaluate("look");
  // Before 2.1 arrays that NumPy took by DLPack were always read-only, because it requested the old struct.
  const asksForVersions = !/^(1\.|2\.0\.)/.test(python.evaluate("np.__version__"));
  const ways = ["np.asarray", "lambda x: np.asarray(x)[...]", ...(asksForVersions ? ["np.from_dlpack"] : [])]
    .map((way) => python.evaluate(way));
  check(
    fc.property(arrays(plain), fc.constantFrom(...ways), (view, way) => {
      using array: PyObject = way.$call(view);
      using seen = look.$call(array);
      assertEquals(seen.$value(), described(view));
      using back: StridedMemoryView = StridedMemoryView.from(array);
      assertEquals(described(back), described(view));
      view.buffer.close();
    }),
    1000,
  );
  assertEquals(await stillExported(python), 0);
});

test(
  ...needs(missingTypes, "NumPy sees the types of ml_dtypes too, which its own protocols cannot name"),
  async () => {
    const python = open();
    const look: PyObject = python.evaluate("look");
    const asarray = python.import("numpy").$get("asarray");
    check(
      fc.property(arrays(added), (view) => {
        using array: PyObject = asarray.$call(view);
        using seen = look.$call(array);
        assertEquals(seen.$value(), described(view));
        const back = StridedMemoryView.from(array);
        assertEquals(described(back), described(view));
      }),
      500,
    );
    assertEquals(await stillExported(python), 0);
  },
);

test(...needs(missing, "arrays that NumPy creates are views here over the same memory"), async () => {
  const python = open();
  const cases = [
    "np.arange(24.0).reshape(2, 3, 4)[:, ::-1, ::2]",
    "np.zeros((0, 3), np.int16)",
    "np.array(5, np.uint8)",
  ];
  for (const code of cases) {
    python.run(`made = ${code}`);
    const view: StridedMemoryView = python.evaluate("made");
    assert(view instanceof StridedMemoryView);
    assertEquals(described(view), python.evaluate("look(made)").$value());
  }
  const numbers: StridedMemoryView = python.evaluate("(numbers := np.zeros(3))");
  numbers.copyFrom(Float64Array.of(1, 2, 3));
  assertEquals(python.evaluate("float(numbers.sum())"), 6);
  python.run("import sys; numbers[0] = 10; before = sys.getrefcount(numbers)");
  assertEquals(Array.from(await numbers.toTypedArray(), Number), [10, 2, 3]);
  numbers.close();
  assertEquals(python.evaluate("sys.getrefcount(numbers) - before"), -1, "a closed view has released its array");
  const frozen: StridedMemoryView = python.evaluate("(frozen := np.zeros(3), frozen.setflags(write=False))[0]");
  assertEquals(frozen.readonly, true);
  assertThrows(() => frozen.copyFrom(Float64Array.of(1, 2, 3)), TypeError, "read-only");
});

test(
  ...needs(missing, "typed arrays, views in lists and keywords are arrays in Python; a call's numbers are numbers"),
  () => {
    const python = open();
    const np = python.import("numpy");
    assertEquals(np["sum"](Float32Array.of(1, 2, 3.5)), 6.5);
    assertEquals(np["dot"](Int32Array.of(1, 2), Int32Array.of(3, 4)), 11);
    assertEquals(np["max"](new BigInt64Array([2n ** 60n])), 2n ** 60n);
    assertEquals(np["all"](Uint8Array.of(1, 0)), false);
    const table = StridedMemoryView.fromTypedArray(Float64Array.of(1, 2, 3, 4), { shape: [2, 2] });
    const sums: StridedMemoryView = np["sum"](table.sliced(slice(null, null, -1)), kwargs({ axis: 1 }));
    assertEquals([...new Float64Array(sums.buffer.bytes().buffer)], [7, 3]);
    const stacked: StridedMemoryView = np["stack"]([table.sliced(0), Float64Array.of(5, 6)]);
    assertEquals(stacked.shape, [2, 2]);
    assertEquals(np["add"](table, table, kwargs({ out: table })).shape, [2, 2], "the same array three times");
    assertEquals([...new Float64Array(table.buffer.bytes().buffer)], [2, 4, 6, 8]);
    assertEquals(np["sqrt"].$call(Float64Array.of(9))["tolist"]().$value(), [3]);
  },
);

test(
  ...needs(missing, "an array can be exported any number of times, on any thread, and memory outlives its owner"),
  async () => {
    const python = open();
    python.run(`
import threading
def many(array):
    "Tensors made on four threads, and capsules that no consumer takes."
    seen = []
    def work():
        for _ in range(50):
            seen.append(np.from_dlpack(array))
            array.__dlpack__(max_version=(1, 0)); array.__dlpack__()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads: one.start()
    for one in threads: one.join()
    return seen
`);
    assertEquals(await stillExported(python), 0);
    const buffer = new HostMemoryResource().allocate(64);
    buffer.bytes().fill(7);
    const seen: PyObject = python.evaluate("many")(
      StridedMemoryView.fromBuffer(buffer, { shape: [64], dtype: "uint8" }),
    );
    buffer.close();
    assertEquals(liveExports(), 1, "one array of ours is exported, however often");
    assertEquals(python.evaluate("lambda seen: int(sum(one.sum() for one in seen))")(seen), 200 * 64 * 7);
    python.run("gone = None");
    const kept: StridedMemoryView = seen.$item(0);
    seen.$close();
    assertEquals(liveExports(), 1);
    kept.close();
    assertEquals(await stillExported(python), 0);
  },
);

test(
  ...needs(missing, "NumPy gets a copy of its own where it asks for one, and it is freed when NumPy releases it"),
  async () => {
    const python = open();
    const [major = 0, minor = 0] = String(python.evaluate("np.__version__")).split(".").map(Number);
    if (major < 2 || (major === 2 && minor < 1)) return; // these cannot ask
    const take = python.import("numpy").$get("from_dlpack");
    const fill = python.evaluate("lambda array, value: array.fill(value)");
    assertEquals(await stillExported(python), 0);
    const table = StridedMemoryView.fromTypedArray(Float64Array.of(1, 2, 3, 4), { shape: [2, 2] });
    for (const view of [table, table.sliced(slice(null, null, -1), 1)]) {
      const expected = `${view}`;
      using copy: PyObject = take.$call(view, kwargs({ copy: true }));
      using seen = StridedMemoryView.from(copy);
      assertEquals([`${seen}`, liveExports()], [expected, 0]);
      fill(copy, 0);
      assertEquals(`${view}`, expected);
      using here: PyObject = take.$call(view, kwargs({ device: "cpu" }));
      fill(here, 9);
      assertEquals(view.toString().includes("9."), true, "an array that is already there is not copied");
    }
    assertEquals(await stillExported(python), 0);
  },
);

test(...needs(missing, "a capsule that a failing consumer has not taken is released"), async () => {
  const python = open();
  python.run(`
def fails(array):
    capsule = array.__dlpack__(max_version=(1, 0))
    raise ValueError("taken nothing")
`);
  const fails = python.evaluate("fails");
  for (let i = 0; i < 10; i++) assertThrows(() => fails(new Float32Array(4)), PythonError, "taken nothing");
  python.run("import sys; sys.last_value = sys.last_traceback = None");
  assertEquals(await stillExported(python), 0);
});

test(
  ...needs(missing, "an exception is unchanged, also if a consumer releases an array while it unwinds"),
  async () => {
    const python = open();
    for (const way of ["np.from_dlpack(array)", "np.from_dlpack(Old(array))"]) {
      python.run(`
class Old:
    "Takes by the struct without a version."
    def __init__(self, array): self.array = array
    def __dlpack_device__(self): return self.array.__dlpack_device__()
    def __dlpack__(self, **options): return self.array.__dlpack__()
`);
      const add = python.evaluate(`lambda array: np.add(${way}, np.zeros(7))`);
      for (let i = 0; i < 3; i++) {
        assertThrows(
          () => add(new Float32Array(3)),
          PythonError,
          "ValueError: operands could",
        );
      }
    }
    assertEquals(await stillExported(python), 0);
  },
);

test(...needs(missing, "releases on a thread of Python are seen when exports are counted"), async () => {
  const python = open();
  python.run(`
import threading
may_let_go = threading.Event()
def later(array):
    kept = [np.from_dlpack(array)]
    def work():
        may_let_go.wait()
        kept.clear()
    threading.Thread(target=work, daemon=True).start()
`);
  assertEquals(await stillExported(python), 0);
  python.evaluate("later")(new Float32Array(3));
  assertEquals(liveExports(), 1);
  python.run("may_let_go.set()");
  await until(() => liveExports() === 0);
  assertEquals(liveExports(), 0);
});

test(...needs(missing, "counters are reused: arrays exported one by one need only a few"), async () => {
  const python = open();
  assertEquals(await stillExported(python), 0);
  const sum: PyObject = python.evaluate("lambda array: float(np.from_dlpack(array).sum())");
  const before: number = python.evaluate(
    "len([one for one in __import__('gc').get_objects() if type(one) is memoryview])",
  );
  for (let i = 0; i < 2000; i++) assertEquals(sum(Float32Array.of(i, 1)), i + 1);
  const after: number = python.evaluate(
    "len([one for one in __import__('gc').get_objects() if type(one) is memoryview])",
  );
  assert(after <= before + 1, `${after} pieces of counters, and ${before} before`);
});

test(...needs(missing, "a request that the protocol forbids is an exception in Python"), async () => {
  const python = open();
  const ask = python.evaluate("lambda array, options: array.__dlpack__(**options)");
  const array = new Float32Array(4);
  const refused = (options: object) => assertThrows(() => ask(array, options), PythonError, "BufferError");
  refused({ stream: 1 });
  refused({ dl_device: [2, 0] });
  refused({ dl_device: [2, 0], copy: true });
  const behind = "type(array).__dlpack__.__globals__['plain_array'](array)"; // what DLPack consumers call
  const convert = python.evaluate(`lambda array, copy: ${behind}.__array__('f8', copy=copy).dtype.name`);
  assertEquals([convert(array, null), convert(array, true)], ["float64", "float64"]);
  assertThrows(() => convert(array, false), PythonError, "without a copy"); // it was copied anyway
  const padded = StridedMemoryView.fromTypedArray(new Uint8Array(4)).view({ dtype: "int4" });
  assertThrows(() => ask(padded, {}), PythonError, "a byte of its own");
  assertEquals(String(ask.$call(padded, { max_version: [1, 0] })).includes("dltensor_versioned"), true);
  const locked = StridedMemoryView.fromTypedArray(array).view({});
  const readonly = StridedMemoryView.fromBuffer(locked.buffer, { shape: [4], dtype: "float32", readonly: true });
  assertThrows(() => ask(readonly, {}), PythonError, "read-only");
  assertEquals(String(ask.$call(readonly, { max_version: [1, 0] })).includes("dltensor_versioned"), true);
  assertEquals(String(ask.$call(array, { max_version: [0, 8] })).includes('"dltensor"'), true);
  assertEquals(python.evaluate("lambda array: hasattr(array, '__cuda_array_interface__')")(array), false);
  const describe = python.evaluate(`lambda array: repr(${behind})`);
  assertEquals(describe(array), "<array of shape (4,) and type float32>");
  using cuda = Cuda.simulate();
  using stream = cuda.device(0).createStream();
  using buffer = new DeviceMemoryResource(cuda.device(0)).allocate(16, { stream });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [4], dtype: "float32" });
  assertThrows(() => python.builtins["repr"](view), Error);
  assertEquals(await stillExported(python), 0);
});

test(
  ...needs(missing, "reading page-locked memory in Python sees what streams were to write there"),
  async () => {
    const python = open();
    const arrow = findPython("numpy", "pyarrow");
    const readers = ["np.sum", "lambda array: np.asarray(array).sum()", "lambda array: np.from_dlpack(array).sum()"];
    if (typeof arrow !== "string") readers.push("lambda array: __import__('pyarrow').array(array).to_numpy().sum()");
    using cuda = Cuda.simulate({ schedule: "latest" });
    const device = cuda.device(0);
    for (const reader of readers) {
      for (const nonBlocking of [true, false]) {
        using home = device.createStream({ nonBlocking });
        using buffer = new PinnedMemoryResource(device).allocate(16, { stream: home });
        buffer.bytes().fill(1);
        // A blocking home stream is ordered after the default stream, but does not contain its work.
        buffer.fill(7, { stream: nonBlocking ? home : device.defaultStream });
        const view = StridedMemoryView.fromBuffer(buffer, { shape: [16], dtype: "uint8" });
        assertEquals(Number(python.evaluate(reader)(view)), 112, reader);
      }
    }
    assertEquals(await stillExported(python), 0);
  },
);

test(...needs(missing, "an object that is no array, or no exportable one, stays an object or is an error"), () => {
  const python = open();
  const words = python.evaluate("np.array(['a', 'bc'])");
  assertEquals(words.shape[0], 2, "an array of text stays in Python");
  assertThrows(() => StridedMemoryView.from(words), ExchangeError, "<U2");
  assertThrows(() => StridedMemoryView.from(python.import("numpy")), TypeError, "expected a Python array");
  // DLPack and the array interface of masked arrays omit the mask: all elements arrived, as if none were masked.
  const masked = python.evaluate("np.ma.array([1, 2, 3], mask=[0, 1, 0])");
  assertThrows(() => StridedMemoryView.from(masked), ExchangeError, "Cannot import a masked array");
  assertEquals(`${masked}`, "[1 -- 3]", "it stays in Python");
  using filled: StridedMemoryView = masked.filled(0);
  assertEquals(`${filled}`, "[1 0 3]");
  // The unit of Astropy's quantities was lost, and unyt's: kilometres arrived as numbers.
  for (const name of ["unit", "units"]) {
    python.run(`class Length(np.ndarray):\n    ${name} = property(lambda self: "km")`);
    const length = python.evaluate("np.array([1.0, 2.0]).view(Length)");
    assertEquals(length[name], "km");
    using numbers = StridedMemoryView.from(length);
    assertEquals(`${numbers}`, "[1. 2.]", "the numbers, asked for as such");
  }
  const bytes = StridedMemoryView.fromTypedArray(new Uint8Array(4));
  const packed = StridedMemoryView.fromBuffer(bytes.buffer, { shape: [8], dtype: "int4_packed" });
  const asarray = python.import("numpy").$get("asarray");
  assertThrows(() => asarray(packed), PythonError, "cannot make a NumPy array of int4_packed");
  const longdouble = python.evaluate("np.longdouble(1)");
  assertEquals(typeof longdouble, "function");
  assert(liveExports() >= 0);
});

const core = findPython("numpy", "cuda-core", "cuda-bindings");

test(...needs(typeof core === "string" ? core : null, "cuda.core sees host memory of ours in place"), () => {
  const python = open();
  python.run(`
from cuda.core.utils import StridedMemoryView
def see(array):
    view = StridedMemoryView.from_any_interface(array, stream_ptr=-1)
    return [str(view.ptr), list(view.shape), list(view.strides), str(view.dtype), view.readonly]
`);
  const view = StridedMemoryView.fromTypedArray(new Float32Array(12), { shape: [3, 4] }).permuted([1, 0]);
  const seen = python.evaluate("see")(view).$value();
  assertEquals(seen, [`${view.ptr}`, [4, 3], [1, 4], "float32", false]);
});

const jaxlib = findPython("numpy", "jax");

test(
  ...needs(
    typeof jaxlib === "string" ? jaxlib : null,
    "JAX, which does not know DLPack's versions, takes our arrays and returns its own",
  ),
  async () => {
    const python = open();
    const jax = python.import("jax");
    const view = StridedMemoryView.fromTypedArray(Float32Array.from({ length: 64 }, (_, i) => i), { shape: [8, 8] });
    using taken: PyObject = jax["dlpack"].from_dlpack.$call(view);
    assertEquals(Number(taken["sum"].$call()), 2016);
    const doubled: StridedMemoryView = jax["numpy"].add(taken, taken);
    assertEquals(Array.from(await doubled.toTypedArray(), Number).slice(0, 3), [0, 2, 4]);
    doubled.close();
    taken.$close();
    assertEquals(await stillExported(python), 0);
  },
);

test(...needs(missingTypes, "a closed view releases its array, also where the array could only be described"), () => {
  const python = open();
  python.run("import sys, ml_dtypes; described = np.zeros(3, ml_dtypes.bfloat16)");
  const references = () => python.evaluate("sys.getrefcount(described)");
  const before = references();
  const view: StridedMemoryView = python.evaluate("described");
  assertEquals([view.dtype.name, references()], ["bfloat16", before + 1]);
  const tensor = view.toDlpack();
  view.close();
  assertEquals(references(), before + 1, "an export of ours still uses it");
  tensor.close();
  assertEquals(liveExports() >= 0 && references(), before);
});

const guide = readFileSync(new URL("../../docs/python.md", import.meta.url), "utf8");

for (const example of examplesOf("docs/python.md", guide, "numpy")) {
  test(...needs(missing, `${example.name}: runs with no permission but FFI, and prints what it says`), () => {
    runExample(example, { CAUSEWAY_PYTHON: typeof found === "string" ? "" : found.executable });
  });
}
