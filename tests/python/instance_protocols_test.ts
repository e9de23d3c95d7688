/** Objects that offer an array protocol by attributes of their own, as namespaces and wrappers do. */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { type PyObject, Python, StridedMemoryView } from "../../mod.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

const found = findPython("numpy");
const missing = typeof found === "string" ? found : null;

const scene = `
import numpy, types
class Empty: pass
class Wrapper:
    def __init__(self, wrapped): self.wrapped = wrapped
    def __getattr__(self, name): return getattr(self.wrapped, name)

def by_interface(array):
    return types.SimpleNamespace(__array_interface__=array.__array_interface__, keep=array)
def by_dlpack(array):
    made = Empty()
    made.__dlpack__, made.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__
    return made

ways = {"interface": by_interface, "dlpack": by_dlpack, "wrapper": Wrapper}
def make(way, values, step): return ways[way](numpy.array(values, "float32")[::step])
`;

function open(): Python {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  python.run(scene);
  return python;
}

test(...needs(missing, "an object that offers an array by its own attributes is viewed when a program asks"), () => {
  const python = open();
  const make: PyObject = python.evaluate("make");
  check(
    fc.property(
      fc.constantFrom("interface", "dlpack", "wrapper"),
      fc.array(fc.integer({ min: -1000, max: 1000 }), { maxLength: 9 }),
      fc.constantFrom(1, 2, -1),
      (way, values, step) => {
        using object: PyObject = make(way, values, step);
        using view = StridedMemoryView.from(object);
        const [from, by] = step > 0 ? [0, step] : [values.length - 1, -1];
        const expected = values.filter((_, i) => (i - from) % by === 0);
        assertEquals(view.toArray() as number[], step > 0 ? expected : expected.toReversed());
      },
    ),
    60,
  );
});

test(...needs(missing, "what offers no array, and a class of arrays, is refused as before"), () => {
  const python = open();
  for (const code of ["numpy.ndarray", "Empty()", "Wrapper(5)", "types.SimpleNamespace(shape=(1,))", "len"]) {
    using object: PyObject = python.evaluate(code);
    assertThrows(() => StridedMemoryView.from(object), TypeError, "expected a Python array");
  }
  using wrong: PyObject = python.evaluate("types.SimpleNamespace(__array_interface__=5)");
  assertThrows(() => StridedMemoryView.from(wrong), Error, "expected a dict");
});
