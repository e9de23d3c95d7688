/** NumPy's arrays as views here: imported without calling our own Python, by the same rules as any other array. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { DType, ExchangeError, HostMemoryResource, type PyObject, Python, StridedMemoryView } from "../../mod.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

const found = findPython("numpy>=2.1");
const missing = typeof found === "string" ? found : null;

const types = DType.all().filter(({ typestr }) => typestr !== null);

test(...needs(missing, "a view of a NumPy array has its memory, and keeps it until it is closed"), () => {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  python.run(`
import sys, numpy as np
def make(typestr, shape, axes, step, readonly):
    global made, owner
    owner = np.arange(int(np.prod(shape))).astype(typestr).reshape(shape)
    made = owner.transpose(axes)[..., ::step]
    made.flags.writeable = not readonly
    return [made]
def facts():
    return [made.__array_interface__["data"][0] if made.size else 0, made.tobytes(), list(made.shape),
        [stride // made.itemsize for stride in made.strides] if made.size else [], sys.getrefcount(made)]
`);
  const [make, facts]: PyObject[] = [python.evaluate("make"), python.evaluate("facts")];
  assert(make !== undefined && facts !== undefined);
  check(
    fc.property(
      fc.constantFrom(...types),
      fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 4 }),
      fc.constantFrom(1, 2, -1, -2),
      fc.boolean(),
      fc.array(fc.nat(), { minLength: 4, maxLength: 4 }),
      (dtype, shape, step, readonly, order) => {
        const axes = shape.map((_, i) => i).toSorted((a, b) => (order[a] ?? 0) - (order[b] ?? 0));
        using holder: PyObject = make.$call(dtype.typestr, shape, axes, step, readonly);
        const [address, bytes, extents, strides, before] = (() => {
          using found = facts.$call();
          return found.$value() as [number, Uint8Array, number[], number[], number];
        })();
        const references = () => {
          using found = facts.$call();
          return (found.$value() as number[])[4];
        };
        for (let i = 0; i < 2; i++) {
          const view: StridedMemoryView = i === 0
            ? holder[0]
            : StridedMemoryView.from(holder.$get("__getitem__").$call(0));
          assert(view instanceof StridedMemoryView);
          assertEquals([view.dtype.name, [...view.shape]], [dtype.name, extents]);
          if (view.layout.volume > 0) {
            assertEquals([view.ptr, [...view.layout.strides]], [BigInt(address), strides]);
            assertEquals(view.readonly, readonly);
            using memory = new HostMemoryResource().allocate(bytes.length);
            StridedMemoryView.fromBuffer(memory, { shape: extents, dtype }).copyFrom(view);
            assertEquals(Uint8Array.from(memory.bytes()), bytes);
          }
          assert((references() ?? 0) > before, "the view keeps it");
          view.close();
        }
      },
    ),
    200,
  );
});

test(
  ...needs(missing, "arrays that NumPy does not export, or that are not its own, are taken or refused as before"),
  () => {
    const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
    python.run("import numpy as np\nclass Sub(np.ndarray): pass");
    const get = (expression: string): PyObject => python.evaluate(`[${expression}]`);
    for (const refused of ["np.zeros(2, 'M8[s]')", "np.zeros(2, '>f4')", "np.zeros(2, 'S3')", "np.zeros(2, object)"]) {
      using held = get(refused);
      using array: PyObject = held[0];
      assertEquals(typeof array, "function", "it stays an object");
      assertThrows(() => StridedMemoryView.from(array), Error);
    }
    assertThrows(
      () => StridedMemoryView.from(get("np.ma.array([1., 2.], mask=[0, 1])").$get("__getitem__").$call(0)),
      ExchangeError,
      "mask",
    );
    using sub: StridedMemoryView = get("np.arange(3.0).view(Sub)")[0];
    using matrix: StridedMemoryView = get("np.asmatrix(np.eye(2))")[0];
    assertEquals([`${sub}`, `${matrix}`], ["[0. 1. 2.]", "[[1. 0.]\n [0. 1.]]"]);
    // A failed attempt leaves no exception behind.
    assertEquals(python.evaluate("1 + 1"), 2);
  },
);

test(...needs(missing, "an array with more elements than a layout can have is refused, and not kept"), () => {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  python.run(`
import sys, numpy as np
huge = np.broadcast_to(np.int8(1), (2**60,))
def references(): return sys.getrefcount(huge)
`);
  const before = python.evaluate("references()");
  for (let i = 0; i < 3; i++) {
    using held: PyObject = python.evaluate("[huge]");
    using array: PyObject = held[0];
    assert(!(array instanceof StridedMemoryView));
    assertThrows(() => StridedMemoryView.from(array), ExchangeError, "extent");
  }
  assertEquals(python.evaluate("references()"), before);
});

// They are functions here: the protocols, which they seem to speak, refused them as no objects.
test(...needs(missing, "an array of Python's is viewed by the call of any protocol of the host, as by from()"), () => {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  using array: PyObject = python.evaluate("__import__('numpy').arange").$call(3);
  for (const view of [StridedMemoryView.fromDlpack, StridedMemoryView.fromArrayInterface]) {
    using seen = view(array);
    using same = StridedMemoryView.from(array);
    assertEquals([seen.ptr, seen.toArray()], [same.ptr, [0n, 1n, 2n]]);
  }
});

// Their interface describes memory of a temporary array: views of it had the bytes of whatever came there later.
test(...needs(missing, "a view of a NumPy scalar has its value, whatever Python computes meanwhile"), () => {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  python.run(`
import numpy as np
def scalars(numbers): return [np.complex128(complex(*number)) for number in numbers]
def real(number): return np.float64(number)
`);
  const [scalars, real]: PyObject[] = [python.evaluate("scalars"), python.evaluate("real")];
  assert(scalars !== undefined && real !== undefined);
  const number = fc.double({ noNaN: true });
  check(fc.property(fc.array(fc.tuple(number, number), { minLength: 1, maxLength: 20 }), (numbers) => {
    using list: PyObject = scalars.$call(numbers);
    const complex = [...list] as StridedMemoryView[]; // as NumPy documents
    const reals = numbers.map(([number]) => {
      using scalar: PyObject = real.$call(number);
      return StridedMemoryView.from(scalar);
    });
    const pairs = numbers.map(([re, im]) => ({ re, im }));
    assertEquals(complex.map((view) => view.item()), pairs);
    assertEquals(reals.map((view) => view.item()), numbers.map(([number]) => number));
    if (complex[0]?.readonly === false) complex[0].set({ re: 1, im: 2 }); // read-only since NumPy 2.5
    assertEquals(complex.slice(1).map((view) => view.item()), pairs.slice(1));
    for (const view of [...complex, ...reals]) view.close();
  }));
});

test(...needs(missing, "an object that describes memory of its own lives as long as a view of it"), () => {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  python.run(`
import numpy as np, weakref
class Described:
    def __init__(self): self.memory = np.arange(4.0)
    @property
    def __array_interface__(self):
        return {"version": 3, "shape": (4,), "typestr": "<f8", "data": self.memory.__array_interface__["data"]}
def described():
    global watched
    one = Described()
    watched = weakref.ref(one)
    return one
`);
  const view = StridedMemoryView.from(python.evaluate("described()"));
  const isAlive = () => python.evaluate("watched() is not None");
  assert(isAlive());
  assertEquals(view.toArray(), [0, 1, 2, 3]);
  view.close();
  assert(!isAlive());
});

const withJax = findPython("jax");

// Its tensors have no version, and with it no flag that says so.
test(...needs(typeof withJax === "string" ? withJax : missing, "a view of a JAX array must not be written to"), () => {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  python.run("import jax.numpy as jnp\nimmutable = jnp.arange(4) * 1");
  using view: StridedMemoryView = python.evaluate("immutable");
  assertEquals([view.readonly, view.toArray()], [true, [0, 1, 2, 3]]);
  assertThrows(() => view.fill(9), TypeError, "read-only");
  assertEquals(python.evaluate("immutable.tolist()").$value(), [0, 1, 2, 3]);
});
