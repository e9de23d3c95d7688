/**
 * Copies of our arrays that Python's consumers request: of every layout, owned by the consumer alone, and freed
 * when it releases them. Device memory here is host memory behind functions that stand in for the driver's, on the one
 * thread that may call JavaScript. The driver's part is tested on a GPU (tests/gpu/python_test.ts).
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import {
  DType,
  HostMemoryResource,
  type PyObject,
  Python,
  PythonError,
  slice,
  StridedLayout,
  StridedMemoryView,
} from "../../mod.ts";
import { gridOf, shapes } from "../support/strided_oracle.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";
import { pattern } from "../support/arrays.ts";
import { FakeDevice } from "../support/fake_device.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const home = typeof found === "string" ? "" : found.executable;

const consumer = `
import ctypes, struct
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
class Asking:
    "Exports an array with options of its own."
    def __init__(self, array, **options): self.array, self.options = array, options
    def __dlpack_device__(self): return self.options.get("dl_device", self.array.__dlpack_device__())
    def __dlpack__(self, **options): return self.array.__dlpack__(**{**options, **self.options})
def flags(array, **options):
    capsule = array.__dlpack__(max_version=(1, 3), **options)
    return ctypes.c_uint64.from_address(pointer(capsule, b"dltensor_versioned") + 24).value
def device(array, **options):
    capsule = array.__dlpack__(max_version=(1, 3), **options)
    return list(struct.unpack("<ii", ctypes.string_at(pointer(capsule, b"dltensor_versioned") + 40, 8)))
def ask(array, options): return str(array.__dlpack__(**options))
`;

function open(): Python {
  const python = Python.open({ home });
  python.run(consumer);
  return python;
}

const copied = { isCopied: 2, isPadded: 4 };

/** Views of any type whose elements lie anywhere, also overlapping, packed ones included. */
const views: fc.Arbitrary<StridedMemoryView> = fc.record({
  dtype: fc.constantFrom(...DType.all(), DType.from("float32x4"), DType.from("int4x3")),
  shape: shapes(3),
  seed: fc.nat(),
  readonly: fc.boolean(),
  isDense: fc.boolean(),
}).chain(({ dtype, shape, seed, readonly, isDense }) => {
  const strides = fc.array(fc.integer({ min: -5, max: 5 }), { minLength: shape.length, maxLength: shape.length });
  return strides.map((steps) => {
    const { itemsize } = dtype;
    const layout = isDense ? StridedLayout.dense(shape, itemsize) : new StridedLayout(shape, steps, itemsize);
    const { values } = gridOf(layout);
    const offset = Math.ceil(-Math.min(0, ...values) * itemsize); // of element 0, at the beginning of a byte
    const buffer = new HostMemoryResource().allocate(offset + Math.ceil((Math.max(-1, ...values) + 1) * itemsize));
    buffer.bytes().set(pattern(buffer.size, seed));
    return StridedMemoryView.fromBuffer(buffer, { shape: [0], dtype, offset, readonly }).view({ layout });
  });
});

/** The bits of each element in C order, as text. */
function bitsOf({ buffer, layout, offset, dtype }: StridedMemoryView): string[] {
  const bytes = buffer.bytes();
  const width = dtype.isPacked ? dtype.bits : 8 * dtype.itemsize;
  const bit = (at: number) => ((bytes[at >> 3] ?? NaN) >> (at & 7)) & 1;
  return gridOf(layout).values.map((element) => {
    const start = 8 * offset + element * width;
    return Array.from({ length: width }, (_, i) => bit(start + i)).join("");
  });
}

test(
  ...needs(missing, "a copy has the elements of any layout, in C order, in memory owned by the consumer alone"),
  () => {
    const python = open();
    const asking = python.evaluate("lambda array: Asking(array, copy=True)");
    const flags = python.evaluate("lambda array: flags(array, copy=True)");
    check(
      fc.property(views, (view) => {
        const expected = bitsOf(view);
        using source: PyObject = asking.$call(view);
        const copy = StridedMemoryView.from(source);
        assertEquals([copy.shape, copy.dtype.name, copy.readonly], [view.shape, view.dtype.name, false]);
        assertEquals(copy.layout.isContiguousC, true);
        assertEquals(bitsOf(copy), expected);
        const before = view.buffer.bytes().slice();
        copy.buffer.bytes().fill(0xa5);
        assertEquals(view.buffer.bytes(), before, "writes to the copy do not change the original");
        copy.close();
        assertEquals(flags(view), copied.isCopied | (view.dtype.dlpack.padded ? copied.isPadded : 0));
        view.buffer.close();
      }),
      500,
    );
    assertEquals(liveExports(), 0);
  },
);

test(...needs(missing, "a copy outlives its source, and a read-only array can be copied for any consumer"), () => {
  const python = open();
  const buffer = new HostMemoryResource().allocate(16);
  new Float32Array(buffer.bytes().buffer).set([1, 2, 3, 4]);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [4], dtype: "float32", readonly: true });
  using copy: StridedMemoryView = python.evaluate("lambda array: Asking(array, copy=True)")(view);
  buffer.close();
  assertEquals(liveExports(), 0, "the copy retains nothing of ours");
  assertEquals(`${copy}`, "[1. 2. 3. 4.]");
  const ask = python.evaluate("ask");
  const numbers = StridedMemoryView.fromTypedArray(new Float32Array(4));
  const readonly = StridedMemoryView.fromBuffer(numbers.buffer, { shape: [4], dtype: "float32", readonly: true });
  assertThrows(() => ask(readonly, {}), PythonError, "read-only");
  assertEquals(ask(readonly, { copy: true }).includes('"dltensor"'), true);
  const padded = StridedMemoryView.fromTypedArray(new Uint8Array(4)).view({ dtype: "int4" });
  assertThrows(() => ask(padded, { copy: true }), PythonError, "a byte of its own");
  assertThrows(() => ask(numbers, { copy: true, stream: 1 }), PythonError, "on a stream");
  assertThrows(() => ask(numbers, { dl_device: [2, 0] }), PythonError, "only where it is, or as a copy on the host");
  assertEquals(liveExports(), 0, "no consumer took these");
});

const inContext = (...calls: string[]) => [`push ${0xc0}`, ...calls, "pop"];
const allocating = (...calls: string[]) => inContext("mode 2", ...calls, "mode 0");
const ordered = (consumer: number) => inContext("create", `record on ${0x77}`, `wait ${consumer}`, "destroy");
const freed = [...allocating("free"), "release 3"];

test(
  ...needs(missing, "a copy on a device is made on the home stream, awaited by the consumer's, and freed after"),
  () => {
    const python = open();
    using device = new FakeDevice(home);
    const numbers = StridedMemoryView.fromTypedArray(Float32Array.from({ length: 24 }, (_, i) => i), { shape: [4, 6] });
    const cases: [StridedMemoryView, span: number][] = [
      [numbers, 96],
      [numbers.sliced(slice(null, null, -2), slice(1, 4)), 60],
      [numbers.permuted([1, 0]), 96],
      [numbers.sliced(slice(1, 3), 2), 28],
    ];
    python.run(`
def elements(array, **options):
    "What a consumer of a copy finds: its device, its flags, and its elements in C order."
    capsule = array.__dlpack__(max_version=(1, 0), copy=True, **options)
    at = pointer(capsule, b"dltensor_versioned")
    flags, = struct.unpack("<Q", ctypes.string_at(at + 24, 8))
    data, kind, number, ndim, _, _, _, shape, strides, offset = struct.unpack("<QiiiBBHQQQ", ctypes.string_at(at + 32, 48))
    extents, steps = [list((ctypes.c_int64 * ndim).from_address(one)) for one in (shape, strides)]
    places = [0]
    for extent, step in zip(extents, steps): places = [place + i * step for place in places for i in range(extent)]
    return [kind, number, flags, [ctypes.c_float.from_address(data + offset + 4 * place).value for place in places]]
`);
    const elements = python.evaluate("elements");
    for (const [view, span] of cases) {
      const array = device.exportArray(view);
      const stream = python.evaluate("lambda array, stream: elements(array, stream=stream)");
      const expected = gridOf(view.layout).values.map((at) => view.offset / 4 + at);
      const made = ["retain 3", ...allocating(`allocate ${span}`), ...inContext(`copy ${span} on ${0x77}`)];
      using seen = stream.$call(array, 0x99);
      assertEquals(seen.$value(), [2, 3, copied.isCopied, expected]);
      assertEquals(device.asked(), [...made, ...ordered(0x99), ...freed]);
      stream.$call(array, 0x77).$close();
      assertEquals(device.asked(), [...made, ...freed], "the home stream need not wait for itself");
      stream.$call(array, -1).$close();
      assertEquals(device.asked(), [...made, ...freed], "-1 asks for no order");
      elements.$call(array).$close();
      assertEquals(device.asked(), [...made, ...ordered(1), ...freed]);
      array.$close();
      assertEquals([device.allocated, device.asked()], [0, []]);
    }
    const withoutHome = device.exportArray(numbers, null);
    elements.$call(withoutHome).$close();
    assertEquals(device.asked()[7], "copy 96 on 1", "without a home stream, on the default one of consumers");
    withoutHome.$close();
    assertEquals(liveExports(), 0);
  },
);

test(...needs(missing, "elements that overlap on a device get memory each, by way of the host; none need none"), () => {
  const python = open();
  using device = new FakeDevice(home);
  const layout = new StridedLayout([3, 2], [0, 1], 4);
  const view = StridedMemoryView.fromTypedArray(Float32Array.of(5, 6)).view({ layout });
  const array = device.exportArray(view);
  const asking = python.evaluate("lambda array: flags(array, copy=True, stream=1)");
  assertEquals(asking(array), copied.isCopied);
  const down = inContext(`copy 8 on ${0x77}`, `synchronize ${0x77}`);
  const up = inContext(`copy 24 on ${0x77}`, `synchronize ${0x77}`);
  assertEquals(device.asked(), [...down, "retain 3", ...allocating("allocate 24"), ...up, ...ordered(1), ...freed]);
  array.$close();
  const none = device.exportArray(view.sliced(slice(0, 0)));
  assertEquals(asking(none), copied.isCopied);
  assertEquals(device.asked(), []);
  none.$close();
  assertEquals(liveExports(), 0);
});

test(
  ...needs(missing, "a device's array is copied to the host on request and waited for, unless copies are forbidden"),
  () => {
    const python = open();
    using device = new FakeDevice(home);
    const numbers = StridedMemoryView.fromTypedArray(Float32Array.from({ length: 24 }, (_, i) => i), { shape: [4, 6] });
    for (const view of [numbers, numbers.sliced(slice(1, 3), slice(null, null, -1))]) {
      const array = device.exportArray(view);
      for (const options of ["", ", copy=True"]) {
        using source: PyObject = python.evaluate(`lambda array: Asking(array, dl_device=(1, 0)${options})`)
          .$call(array);
        using copy = StridedMemoryView.from(source);
        assertEquals([`${copy}`, copy.device, copy.readonly], [`${view}`, null, false]);
        const span = view === numbers ? 96 : 48;
        assertEquals(device.asked(), inContext(`copy ${span} on ${0x77}`, `synchronize ${0x77}`));
      }
      const ask = python.evaluate("ask");
      assertThrows(() => ask(array, { dl_device: [1, 0], copy: false }), PythonError, "without a copy");
      assertThrows(() => ask(array, { dl_device: [2, 1] }), PythonError, "only where it is, or as a copy on the host");
      assertThrows(() => ask(array, { dl_device: [1, 0], stream: 0 }), PythonError, "stream 0");
      assertEquals(device.asked(), []);
      assertEquals(python.evaluate("lambda array: device(array, dl_device=(1, 0))").$call(array).$value(), [
        1,
        0,
      ]);
      device.asked();
      array.$close();
    }
    assertEquals(liveExports(), 0);
  },
);

test(...needs(missing, "a copy that the driver refuses leaves nothing behind"), () => {
  const python = open();
  using device = new FakeDevice(home);
  const array = device.exportArray(StridedMemoryView.fromTypedArray(new Float32Array(4)));
  const ask = python.evaluate("lambda array: ask(array, {'copy': True, 'stream': 5})");
  device.failing = ["allocate", 2];
  const error = assertThrows(() => ask(array), PythonError, "allocate 16 bytes");
  assertEquals([error.type, device.asked()], ["MemoryError", ["retain 3", ...allocating("allocate 16"), "release 3"]]);
  for (const name of ["retain", "copy", "wait"]) {
    device.failing = [name, 1];
    assertThrows(() => ask(array), PythonError, "CUDA driver returned error 1");
    python.run("import sys; sys.last_value = sys.last_traceback = None; import gc; gc.collect()");
    const log = device.asked();
    const count = (call: string) => log.filter((one) => one === call).length;
    assertEquals([device.allocated, count("push 192")], [0, count("pop")], name);
    assertEquals(count("retain 3"), count("release 3") + (name === "retain" ? 1 : 0), name);
  }
  array.$close();
  assert(liveExports() === 0);
});
