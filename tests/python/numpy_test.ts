/**
 * Our arrays as Python code sees them: NumPy arrays, if the program has loaded NumPy, and else objects with the
 * same properties. NumPy's own arrays over the same memory are the oracle for both.
 */
import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import { DType, HostMemoryResource, type PyObject, Python, PythonError } from "../../mod.ts";
import { Slice, slice, StridedMemoryView } from "../../mod.ts";
import { shapes } from "../support/strided_oracle.ts";
import { collectGarbage } from "../support/collect.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";
import { apart, pattern } from "../support/arrays.ts";
import { FakeDevice } from "../support/fake_device.ts";

const found = findPython("numpy");
const missing = typeof found === "string" ? found : null;
const home = typeof found === "string" ? "" : found.executable;
const without = (name: string, python = findPython("numpy", name)) => typeof python === "string" ? python : null;

function open(): Python {
  const python = Python.open({ home });
  python.run(`
import contextlib, pickle, sys
import numpy as np

@contextlib.contextmanager
def unloaded():
    "Hides NumPy and ml_dtypes from code that looks for them."
    kept = {name: sys.modules.pop(name) for name in ("numpy", "ml_dtypes") if name in sys.modules}
    try: yield
    finally: sys.modules.update(kept)

without_numpy = unloaded()
def hide(): without_numpy.__enter__()
def show():
    global without_numpy
    without_numpy.__exit__(None, None, None)
    without_numpy = unloaded()

def outcome(do, *arguments):
    "The result as text, the same for equal arrays of any owner; or the exception's type."
    try: return words(do(*arguments))
    except Exception as error: return type(error).__name__

def words(value):
    if value is None or isinstance(value, (str, bytes)): return repr(value)
    if isinstance(value, (list, tuple)): return "[%s]" % ", ".join(map(words, value))
    array = np.array(value)
    if array.dtype.kind in "fc": array[array != array] = np.nan # Python's numbers do not distinguish NaNs
    return "%s %s %s" % (array.dtype.str, array.shape, array.tobytes().hex())

def twin(array):
    "NumPy's array over the same memory, of no class of ours."
    return np.asarray(array)
`);
  return python;
}

/** The Python object for an array where NumPy is not loaded. */
function plainly(python: Python, view: StridedMemoryView): PyObject {
  python.run("hide()");
  try {
    return python.evaluate("lambda array: array").$call(view);
  } finally {
    python.run("show()");
  }
}

const types = DType.all().filter(({ typestr }) => typestr !== null);

/** Views of random bytes at random places. */
const views: fc.Arbitrary<StridedMemoryView> = fc.record({
  shape: shapes(3),
  dtype: fc.constantFrom(...types),
  readonly: fc.boolean(),
  seed: fc.nat(),
}).chain(({ shape, dtype, readonly, seed }) =>
  apart(shape, dtype.itemsize).map(({ layout, offset, size }) => {
    const buffer = new HostMemoryResource().allocate(size);
    const mask = dtype.name === "bool" ? 1 : 255;
    buffer.bytes().set(pattern(size, seed).map((byte) => byte & mask));
    return StridedMemoryView.fromBuffer(buffer, { shape: [0], dtype, offset, readonly }).view({ layout });
  })
);

/** Whether NumPy's own arrays stay writeable through `np.from_dlpack`: read-only before 2.1, and still in 2.2. */
function keepsWriteable(python: Python): boolean {
  const isModern = typeof findPython("numpy>=2.1") !== "string";
  return isModern && python.evaluate("bool(np.from_dlpack(np.zeros(1)).flags.writeable)");
}

/** Lets both sides collect garbage, and returns how many arrays of ours Python still has. */
async function stillExported(python: Python): Promise<number> {
  for (let i = 0; i < 20 && liveExports() > 0; i++) {
    await collectGarbage();
    python.run("import gc; gc.collect()");
  }
  return liveExports();
}

/** What NumPy's users do with an array. Uses that write come last. */
const uses = [
  "x.shape",
  "x.strides",
  "x.ndim",
  "x.size",
  "x.itemsize",
  "x.nbytes",
  "x.dtype.name",
  "x.flags.writeable",
  "len(x)",
  "list(x)",
  "x.T",
  "x[..., None]",
  "x[1:, ::-1]",
  "x.tolist()",
  "[memoryview(x).shape, memoryview(x).strides, memoryview(x).format, memoryview(x).readonly]",
  "memoryview(x).tobytes()",
  "np.split(x, 2)",
  "np.rollaxis(x, -1)",
  "np.sort(x, axis=None)",
  "np.concatenate([x, x])",
  "np.sum(x)",
  "np.add(x, x)",
  "np.dot(x, x)",
  "[x == x, x.max(), type(x.max()).__name__, type(x + x).__name__, type(np.sum(x)).__name__]",
  "pickle.loads(pickle.dumps(x))",
  "[type(pickle.loads(pickle.dumps(x))).__name__, np.array(x).flags.owndata]",
  "x.setflags(write=True)",
  "np.random.default_rng(7).shuffle(x)",
  "np.random.RandomState(7).shuffle(x)",
  "np.copyto(x, x.max())",
  "x.fill(1)",
  "np.add(x, x, out=x) is x",
  "x.__setitem__(0, 0)",
];

/** NumPy scalars of one value, and their JavaScript value. */
const scalars: readonly (readonly [types: readonly string[], value: unknown])[] = [
  [["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "intp"], 3],
  [["float16", "float32", "float64"], 3],
  [["bool_"], true],
  [["str_"], "3"],
];

test(...needs(missing, "NumPy's scalars come back as values, from constructors, methods and functions"), () => {
  const python = open();
  const np = python.import("numpy");
  for (const [types, value] of scalars) {
    for (const type of types) {
      assertEquals(np[type](3), value, type);
      if (typeof value !== "number") continue;
      using array = np["array"].$call([1, 2], type);
      assertEquals([array.sum(), array.max(), np["prod"](array)], [3, 2, 2], type);
    }
  }
  assertEquals([np["int64"](2n ** 62n), np["uint64"](2n ** 64n - 1n)], [2n ** 62n, 2n ** 64n - 1n]);
  for (const type of ["complex64", "complex128"]) assertEquals(np[type](3).item(), { re: 3, im: 0 }, type);
  assertEquals(np["array"](3).item(), 3n);
  using wide = np["longdouble"](1.5);
  using day = np["datetime64"]("2026-01-02");
  assertEquals([Number(wide), `${day}`], [1.5, "2026-01-02"]);
});

test(
  ...needs(missing, "with NumPy an array is a NumPy array: every operation on it has the same result"),
  async () => {
    const python = open();
    const compare = python.evaluate(`
lambda view, use: (lambda do, twin: [isinstance(view, np.ndarray), np.shares_memory(view, twin) or not view.size,
    outcome(do, view), words(view)])(eval("lambda x: " + use), twin(view))
`.trim());
    const plain = python.evaluate(
      `lambda view, use: [outcome(eval("lambda x: " + use), twin(view)), words(twin(view))]`,
    );
    check(
      fc.property(views, fc.constantFrom(...uses), (view, use) => {
        const before = view.buffer.bytes().slice();
        using ours: PyObject = compare.$call(view, use);
        const [isNumpys, isInPlace, ...seen] = ours.$value() as unknown[];
        view.buffer.bytes().set(before);
        using theirs: PyObject = plain.$call(view, use);
        assertEquals([isNumpys, isInPlace, ...seen], [true, true, ...theirs.$value() as unknown[]], use);
        view.buffer.close();
      }),
      1000,
    );
    assertEquals(await stillExported(python), 0);
  },
);

test(...needs(missing, "the memory is exported until the last array over it is gone, and no longer"), async () => {
  const python = open();
  const ways = [
    "x[1:]",
    "x.T",
    "x[...]",
    "x[::-1]",
    "x.reshape(-1)",
    "x.view('i1')",
    "x.view(np.ndarray)",
    "np.asarray(x)",
    "np.asarray(memoryview(x))",
    ...(keepsWriteable(python) ? ["np.from_dlpack(x)"] : []),
    "np.split(x, [1])[1]",
  ];
  assertEquals(await stillExported(python), 0);
  const make = python.evaluate("lambda x, way: eval(way)");
  const content = python.evaluate("lambda made: [int(made.max()), made.flags.writeable]");
  check(
    fc.property(fc.array(fc.constantFrom(...ways), { minLength: 1, maxLength: 4 }), fc.boolean(), (path, readonly) => {
      const buffer = new HostMemoryResource().allocate(64);
      buffer.bytes().fill(7);
      const view = StridedMemoryView.fromBuffer(buffer, { shape: [64], dtype: "uint8", readonly });
      const before = liveExports();
      let made: PyObject = make.$call(view, "x");
      buffer.close();
      for (const way of path) {
        const next: PyObject = make.$call(made, way);
        made.$close();
        made = next;
        assertEquals(liveExports(), before + 1, way);
      }
      assertEquals(content(made).$value(), [7, !readonly]);
      made.$close();
      assertEquals(liveExports(), before);
    }),
    200,
  );
});

test(...needs(missing, "without NumPy an array has the same properties and elements"), async () => {
  const python = open();
  const key = fc.oneof(
    fc.integer({ min: -4, max: 4 }),
    fc.constant(null),
    fc.constant("..."),
    fc.tuple(...[0, 1, 2].map(() => fc.option(fc.integer({ min: -5, max: 5 })))).map(([a, b, c]) =>
      slice(a ?? null, b ?? null, c === 0 ? 2 : c ?? null)
    ),
  );
  const compare = python.evaluate(`
lambda array, keys: [[outcome(do, one) for do in (lambda x: x.shape, lambda x: x.ndim, lambda x: x.size, lambda x: x.itemsize,
    lambda x: x.nbytes, lambda x: x.strides if x.size > 1 and 1 not in x.shape else None, lambda x: x.dtype.name,
    lambda x: x.T, lambda x: np.array(list(x), x.dtype), lambda x: len(x), lambda x: bool(x) if x.size else None, lambda x: iter(x) and None,
    lambda x: np.array(x[tuple(Ellipsis if key == "..." else key for key in keys)], x.dtype))]
    for one in (array, twin(array))]
`.trim());
  check(
    fc.property(views, fc.array(key, { maxLength: 4 }), (view, keys) => {
      using array = plainly(python, view);
      assertEquals(String(python.builtins["type"].$call(array)), "<class 'Array'>");
      using compared: PyObject = compare.$call(array, keys);
      const [ours, theirs] = compared.$value() as unknown[];
      assertEquals(ours, theirs, `${keys.map((one) => one instanceof Slice ? [one.start, one.stop, one.step] : one)}`);
      array.$close();
      view.buffer.close();
    }),
    1000,
  );
  assertEquals(await stillExported(python), 0);
});

test(...needs(missing, "a part of an array without NumPy is the same memory, and keeps it"), async () => {
  const python = open();
  const view = StridedMemoryView.fromTypedArray(Int32Array.from({ length: 24 }, (_, i) => i), { shape: [4, 6] });
  assertEquals(await stillExported(python), 0);
  const array = plainly(python, view);
  using part: PyObject = python.evaluate("lambda x: x[1::2, ::-2]").$call(array);
  array.$close();
  using back: StridedMemoryView = part["T"];
  assertEquals([`${back}`, back.ptr], ["[[11 23]\n [ 9 21]\n [ 7 19]]", view.ptr + 4n * 11n]);
  back.close();
  assertEquals(liveExports(), 1);
  part.$close();
  assertEquals(await stillExported(python), 0);
  assertEquals(
    python.evaluate("lambda x: [x.dtype, repr(x)]").$call(plainly(python, view)).$value()[1],
    "<array of shape (4, 6) and type int32>",
  );
  python.run("hide()");
  try {
    assertEquals(python.evaluate("lambda x: x.dtype")(view), "int32", "the name of a type that is not loaded");
  } finally {
    python.run("show()");
  }
  const error = (use: string, exported: StridedMemoryView) => {
    using array = plainly(python, exported);
    return assertThrows(() => python.evaluate(`lambda x: ${use}`)(array), PythonError).message;
  };
  const nothing = StridedMemoryView.fromBuffer(new HostMemoryResource().allocate(0), { shape: [0], dtype: "int8" });
  using empty = plainly(python, nothing);
  const isSomewhere = python.evaluate("lambda x: x.__array_interface__['data'][0] != 0");
  assertEquals(isSomewhere(empty), true, "NumPy before 2.0 takes nothing at NULL");
  empty.$close();
  assertStringIncludes(error("x[4]", view), "IndexError: index 4 is out of bounds for an axis of 4");
  assertStringIncludes(error("x['a']", view), "expected integers, slices, None and an ellipsis");
  assertStringIncludes(error("x[True]", view), "TypeError: cannot index an array by True");
  assertStringIncludes(error("bool(x)", view), "ValueError: the truth of an array of 24 elements");
  assertStringIncludes(error("len(x)", view.sliced(0, 0)), "TypeError: cannot tell the length");
  const bytes = StridedMemoryView.fromTypedArray(new Uint8Array(4));
  const packed = StridedMemoryView.fromBuffer(bytes.buffer, { shape: [8], dtype: "int4_packed" });
  assertStringIncludes(error("x[0]", packed), "they share bytes");
  using nibbles = plainly(python, packed);
  assertEquals(["shape", "size", "nbytes", "itemsize", "strides"].map((name) => String(nibbles[name])), [
    "(8,)",
    "8",
    "4",
    "1",
    "null",
  ]);
  nibbles.$close();
  assertEquals(await stillExported(python), 0);
});

test(
  ...needs(without("ml_dtypes"), "an array of a type that NumPy lacks stays ours, and NumPy's functions accept it"),
  async () => {
    const python = open();
    python.run("import ml_dtypes");
    const view = StridedMemoryView.fromTypedArray(Uint16Array.of(0x3f80, 0x4000, 0xc080, 0x3f00)).view({
      dtype: "bfloat16",
    });
    const seen = (use: string) => {
      using result: PyObject = python.evaluate(`lambda x: [words(one) for one in [${use}]]`).$call(view);
      return result.$value();
    };
    const expected = python.evaluate("words(np.array([1, 2, -4, .5], ml_dtypes.bfloat16))");
    assertEquals(seen("type(x).__name__"), ["'Array'"]);
    assertEquals(
      seen("x, np.stack(list(x)), np.rollaxis(x, 0), np.concatenate(np.split(x, 2))"),
      Array(4).fill(expected),
    );
    assertEquals(seen("x.dtype.name, repr(x[1]), str(len(x))"), [
      "'bfloat16'",
      `'${python.evaluate("repr(ml_dtypes.bfloat16(2))")}'`,
      "'4'",
    ]);
    using swapped = StridedMemoryView.fromTypedArray(Uint16Array.of(0, 0, 0, 0)).view({ dtype: "bfloat16" });
    python.evaluate("lambda to, x: np.copyto(to, x[::-1])")(swapped, view);
    assertEquals(`${swapped}`, `${view.sliced(slice(null, null, -1))}`);
    assertEquals(await stillExported(python), 0);
  },
);

test(
  ...needs(missing, "an array in device memory describes itself, and reports that its elements cannot be read here"),
  async () => {
    const python = open();
    using device = new FakeDevice(home);
    const view = StridedMemoryView.fromTypedArray(Int32Array.from({ length: 24 }, (_, i) => i), { shape: [4, 6] });
    const array = device.exportArray(view);
    const say = python.evaluate(
      "lambda x: [list(x.shape), x.ndim, x.size, x.itemsize, x.nbytes, list(x.strides), len(x), " +
        "list(x.T.shape), list(x[1, ::2].shape), [list(row.shape) for row in x], x[1, 1:].T.__dlpack_device__()]",
    );
    using said: PyObject = say.$call(array);
    assertEquals(said.$value(), [[4, 6], 2, 24, 4, 96, [24, 4], 4, [6, 4], [3], [[6], [6], [6], [6]], [2, 3]]);
    for (const use of ["x[0, 0]", "list(x[0])", "bool(x[0, :1])"]) {
      const { type, message } = assertThrows(() => python.evaluate(`lambda x: ${use}`)(array), PythonError);
      assertEquals(type, "TypeError");
      assertStringIncludes(message, "copy the array to the host first", use);
    }
    for (const use of ["np.split(x, 2)", "np.asarray(x)", "np.sum(x)"]) {
      assertThrows(() => python.evaluate(`lambda x: ${use}`)(array), PythonError, "device memory: copy it first");
    }
    device.asked();
    assertEquals(
      python.evaluate("lambda x: str(x[1].__dlpack__(stream=0x99, max_version=(1, 0)))")(array).includes("dltensor"),
      true,
    );
    assertEquals(
      device.asked(),
      ["push 192", "create", "record on 119", "wait 153", "destroy", "pop"],
      "a part has the same home",
    );
    array.$close();
    assertEquals(await stillExported(python), 0);
  },
);

test(...needs(missing, "a derived array is exported by DLPack as what it is, or is refused"), async () => {
  const python = open();
  python.run(`
import ctypes, struct
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
def tensor(array):
    "Flags, address, type, shape and steps."
    capsule = array.__dlpack__(max_version=(1, 0))
    at = pointer(capsule, b"dltensor_versioned")
    flags, = struct.unpack("<Q", ctypes.string_at(at + 24, 8))
    data, _, _, ndim, code, bits, lanes, shape, strides, offset = struct.unpack("<QiiiBBHQQQ", ctypes.string_at(at + 32, 48))
    numbers = lambda at: list((ctypes.c_int64 * ndim).from_address(at)) if ndim else []
    return [flags, data + offset, [code, bits, lanes], numbers(shape), numbers(strides)]
`);
  const tensor = python.evaluate("lambda x, use: tensor(eval(use))");
  const memory = StridedMemoryView.fromTypedArray(Float32Array.of(0, 1, 2, 3, 4, 5));
  const [float, byte] = [[2, 32, 1], [1, 8, 1]];
  for (const readonly of [false, true]) {
    const view = StridedMemoryView.fromBuffer(memory.buffer, { shape: [2, 3], dtype: "float32", readonly });
    const [flags, at] = [Number(readonly), Number(view.ptr)];
    const made: Record<string, unknown[]> = {
      "x": [flags, at, float, [2, 3], [3, 1]],
      "x[1:, ::2]": [flags, at + 12, float, [1, 2], [3, 2]],
      "x[:, ::-1].T": [flags, at + 8, float, [3, 2], [-1, 3]],
      "x[1, 1, ...]": [flags, at + 16, float, [], []],
      "x[2:]": [flags, 0, float, [0, 3], [3, 1]],
    };
    using array = plainly(python, view);
    for (const [use, expected] of Object.entries(made)) {
      for (const exported of [view, array]) {
        using found: PyObject = tensor.$call(exported, use);
        assertEquals(found.$value(), expected, use);
      }
    }
    using bytes: PyObject = tensor.$call(view, "x.view('u1')[:, 4:]");
    assertEquals(bytes.$value(), [flags, at + 4, byte, [2, 8], [12, 1]]);
    using moved: PyObject = tensor.$call(view, "[x.__setattr__('shape', (3, 2)), x][1]");
    assertEquals(moved.$value(), [flags, at, float, [3, 2], [2, 1]], "an array that was given another shape");
  }
  const refused = [
    "x.view('>f4')",
    "x.astype('U4')",
    "x.astype(object)",
    "x.astype('g')",
    "np.lib.stride_tricks.as_strided(x[:2], strides=(6,), subok=True)",
  ];
  for (const use of refused) {
    const { type, message } = assertThrows(() => tensor(memory, use), PythonError);
    assertEquals([type, message.includes("by DLPack")], ["BufferError", true], `${use}: ${message}`);
  }
  assertEquals(await stillExported(python), 0);
});

test(
  ...needs(missing, "NumPy is left alone while it is being loaded, and so are functions of other libraries"),
  () => {
    const python = open();
    const kind = python.evaluate("lambda x: type(x).__name__");
    python.run("np.__spec__._initializing = True");
    try {
      assertEquals(kind(new Float32Array(2)), "Array");
    } finally {
      python.run("del np.__spec__._initializing");
    }
    assertEquals(kind(new Float32Array(2)), "HostArray");
    python.run(`
class Other:
    "As CuPy's arrays, which know what to do with device memory."
    def __array_function__(self, function, types, arguments, keywords): return function.__name__
`);
    using device = new FakeDevice(home);
    using array = device.exportArray(StridedMemoryView.fromTypedArray(new Int32Array(4)));
    assertEquals(python.evaluate("lambda x: np.stack([x, Other()])")(array), "stack");
    array.$close();
    assertEquals(liveExports(), 0);
  },
);

/** Constructors of other libraries, which must reproduce `[0, 1.5, 3, 4.5]`, and the same backwards. */
const constructors: Readonly<Record<string, readonly string[]>> = {
  numpy: ["np.asarray(x)", "np.array(x)", "np.from_dlpack(x)", "np.array(list(x), 'f4')"],
  pandas: [
    "pd.Series(x).to_numpy()",
    "pd.DataFrame({'a': x})['a'].to_numpy()",
    "pd.Series(x[::-1])[::-1].to_numpy()",
    "pd.Index(x)",
  ],
  polars: ["pl.Series(x).to_numpy()", "pl.DataFrame({'a': x})['a'].to_numpy()", "pl.Series('a', x).to_numpy()"],
  pyarrow: [
    "pa.array(x).to_numpy()",
    "pa.table({'a': x})['a'].to_numpy()",
    "pa.array(x[::-1]).to_numpy(zero_copy_only=False)[::-1]",
  ],
  jax: ["jnp.asarray(x)", "jnp.array(x)"],
};
const modules = {
  numpy: "numpy as np",
  pandas: "pandas as pd",
  polars: "polars as pl",
  pyarrow: "pyarrow as pa",
  jax: "jax.numpy as jnp",
};

for (const [library, uses] of Object.entries(constructors)) {
  test(
    ...needs(
      without(library),
      `${library} converts an array of ours, exported before NumPy was loaded or after`,
    ),
    async () => {
      const python = open();
      python.run(`import ${modules[library as keyof typeof modules]}`);
      const numbers = StridedMemoryView.fromTypedArray(Float32Array.of(0, 1.5, 3, 4.5));
      const expected = python.evaluate("words(np.array([0, 1.5, 3, 4.5], 'f4'))");
      const backwards = python.evaluate("words(np.array([4.5, 3, 1.5, 0], 'f4'))");
      for (const use of uses) {
        const make = python.evaluate(`lambda x: words(${use})`);
        assertEquals(make(numbers), expected, use);
        if (!use.includes("x[")) {
          using array = plainly(python, numbers);
          assertEquals(make(array), expected, `${use}, without NumPy`);
        }
        const isCopied = !/from_dlpack|to_numpy\(\)$/.test(use) || library === "pandas" || library === "polars";
        if (isCopied && !use.includes("x[")) assertEquals(make(numbers.sliced(slice(null, null, -1))), backwards, use);
      }
      assertEquals(await stillExported(python), 0);
    },
  );
}
