/** Python producers that return anything but what their protocol says: an error each, and Python is unaffected. */
import { assertEquals, assertInstanceOf, assertThrows } from "@std/assert";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import {
  ArrowArray,
  ArrowStream,
  ExchangeError,
  type PyObject,
  Python,
  PythonError,
  StridedMemoryView,
} from "../../mod.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";

const found = findPython("numpy", "pyarrow");
const missing = typeof found === "string" ? found : null;

/**
 * What is returned, as expressions. Among them a capsule whose struct is released, and capsules of other protocols.
 */
const answers = [
  "5",
  "None",
  "(1, 2)",
  "()",
  "'text'",
  "object()",
  "array.__arrow_c_array__()[::-1]",
  "array.__arrow_c_array__()[:1]",
  "array.__arrow_c_array__()[0]",
  "emptied(array)",
  "array.__arrow_c_device_array__()",
  "nameless()",
  "1 // 0",
];

const takes: readonly (readonly [name: string, take: (source: unknown) => unknown])[] = [
  ["an array", (source) => ArrowArray.from(source)],
  ["a stream", (source) => ArrowStream.from(source)],
  ["a view", (source) => StridedMemoryView.from(source)],
  ["a view by Arrow", (source) => StridedMemoryView.fromArrowDevice(source)],
];

test(...needs(missing, "a producer that returns anything but capsules is an error, and Python continues"), () => {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  python.run(`
import ctypes
import numpy as np, pyarrow as pa
array = pa.array([1, 2, 3])
def emptied(array):
    "Capsules whose structs a consumer has taken."
    schema, data = array.__arrow_c_array__()
    pa.Array._import_from_c_capsule(schema, data)
    return schema, data
def nameless():
    "A capsule without a name."
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(8, None, None)
class Producer:
    def __init__(self, answer): self.answer = answer
    def __arrow_c_array__(self, requested_schema=None): return self.answer()
    def __arrow_c_stream__(self, requested_schema=None): return self.answer()
    def __dlpack__(self, **options): return self.answer()
    def __dlpack_device__(self): return 1, 0
`);
  const producer: PyObject = python.evaluate("Producer");
  for (const answer of answers) {
    using source: PyObject = producer.$call(python.evaluate(`lambda: ${answer}`));
    for (const [name, take] of takes) {
      let error: unknown;
      try {
        take(source);
      } catch (caught) {
        error = caught;
      }
      const what = `${name} of ${answer}`;
      assertInstanceOf(error, answer === "1 // 0" ? PythonError : ExchangeError, `${what}: ${error}`);
      assertEquals(python.evaluate("len([1, 2])"), 2, what); // an exception left set would be raised here
    }
  }
  for (const answer of ["5", "None", "{}", "{1: 2}", "[('shape', (3,))]", "lambda: 5"]) {
    python.run(`
class Described:
    __array_interface__ = ${answer}
`);
    using source: PyObject = python.evaluate("Described").$call();
    assertThrows(() => StridedMemoryView.from(source), ExchangeError, "array interface", answer);
  }
  assertThrows(() => StridedMemoryView.from(producer.$call(python.evaluate("lambda: 5"))), ExchangeError, "capsule");
  assertEquals(liveExports(), 0);
});

test(
  ...needs(missing, "an array whose elements differ from its memory is refused, naming the call that resolves it"),
  () => {
    const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
    python.run(`
import numpy as np
class Lazy:
    "As torch's tensors: it may have a bit for elements that are to be negated or conjugated when they are read."
    def __init__(self, bits): self.bits, self.numbers = bits, np.array([1 + 2j, 3 - 4j])
    def is_neg(self): return "neg" in self.bits
    def is_conj(self): return "conj" in self.bits
    def resolve_neg(self): return type(self)([bit for bit in self.bits if bit != "neg"])
    def resolve_conj(self): return type(self)([bit for bit in self.bits if bit != "conj"])
class Tensor(Lazy):
    def __dlpack__(self, **options): return self.numbers.__dlpack__(**options)
    def __dlpack_device__(self): return 1, 0
class Described(Lazy):
    __array_interface__ = property(lambda self: self.numbers.__array_interface__)
class Both(Tensor, Described): pass
`);
    for (const kind of ["Tensor", "Described", "Both"]) {
      for (const bits of [["neg"], ["conj"], ["conj", "neg"]]) {
        let lazy: PyObject = python.evaluate(`${kind}(${JSON.stringify(bits)})`);
        assertEquals(typeof lazy, "function", "it stays in Python");
        for (const bit of bits) {
          assertThrows(() => StridedMemoryView.from(lazy), PythonError, `with the bit ${bit}`);
          assertThrows(() => StridedMemoryView.from(lazy), PythonError, `call resolve_${bit}() first`);
          const resolved: PyObject = lazy[`resolve_${bit}`].$call();
          lazy.$close();
          lazy = resolved;
        }
        using view = StridedMemoryView.from(lazy);
        assertEquals([...view.shape, view.dtype.name], [2, "complex128"]);
        lazy.$close();
      }
    }
    assertEquals(liveExports(), 0);
  },
);
