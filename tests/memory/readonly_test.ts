/** Memory whose owner assumes that it does not change is not written to through its buffer either. */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import {
  ArrowArray,
  arrowField,
  Cuda,
  DeviceMemoryResource,
  type PyObject,
  Python,
  StridedMemoryView,
} from "../../mod.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";

const memory = Uint8Array.of(1, 2, 3, 4);

/** A read-only array of these bytes, through each convention that has a flag for it. */
const imports: { readonly [how: string]: () => StridedMemoryView } = {
  "DLPack": () => {
    const view = StridedMemoryView.fromTypedArray(memory);
    const shape = view.shape;
    return StridedMemoryView.fromDlpack(
      StridedMemoryView.fromBuffer(view.buffer, { shape, dtype: "uint8", readonly: true }).toDlpack(),
    );
  },
  "the array interface": () => {
    const { ptr } = StridedMemoryView.fromTypedArray(memory);
    const __array_interface__ = { version: 3, shape: [4], typestr: "|u1", data: [ptr, true] };
    return StridedMemoryView.fromArrayInterface({ __array_interface__ });
  },
  "Arrow": () => {
    const buffers = [null, StridedMemoryView.fromTypedArray(memory)];
    const array = new ArrowArray({ field: arrowField("C"), length: 4, nullCount: 0, buffers });
    return ArrowArray.from(array.toArrowDevice()).values;
  },
};

// A read-only view's buffer could be filled: Python's `bytes` changed, and a mapping ended the process.
test("the buffer of a read-only import refuses to be written to, and its views are read-only", () => {
  for (const [how, make] of Object.entries(imports)) {
    const view = make();
    const { buffer } = view;
    assertEquals([view.readonly, buffer.readonly], [true, true], how);
    assertThrows(() => buffer.fill(9), TypeError, "Cannot fill read-only memory of 4 bytes", how);
    assertThrows(() => buffer.copyFrom(new Uint8Array(4)), TypeError, "Cannot copy into read-only memory", how);
    using other = StridedMemoryView.zeros([4], "uint8");
    assertThrows(() => other.buffer.copyTo(buffer), TypeError, "read-only", how);
    const again = StridedMemoryView.fromBuffer(buffer, { shape: [2, 2], dtype: "uint8" });
    assertThrows(() => again.fill(9), TypeError, "read-only", how);
    assertThrows(() => again.set(9, 0, 0), TypeError, "read-only", how);
    const options = { shape: [4], dtype: "uint8", readonly: false } as const;
    assertThrows(() => StridedMemoryView.fromBuffer(buffer, options), TypeError, "for writing", how);
    buffer.copyTo(other.buffer);
    assertEquals(other.toArray(), [1, 2, 3, 4]);
  }
  assertEquals([...memory], [1, 2, 3, 4]);
});

test("memory on a GPU that is read-only is not filled, on any stream", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  using stream = device.createStream();
  using buffer = new DeviceMemoryResource(device).allocate(16, { stream });
  const __cuda_array_interface__ = { version: 3, shape: [16], typestr: "|u1", data: [buffer.ptr, true] };
  using view = StridedMemoryView.from({ __cuda_array_interface__ }, { stream });
  assertThrows(() => view.buffer.fill(1, { stream }), TypeError, "read-only");
  assertThrows(() => view.buffer.copyFrom(buffer, { stream }), TypeError, "read-only");
});

const found = findPython();
const missing = typeof found === "string" ? found : null;

test(...needs(missing, "Python's bytes do not change, and memory that may be written to stays so"), () => {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  python.run("fixed, free = b'key', bytearray(b'key')");
  const [fixed, free]: PyObject[] = ["[fixed]", "[free]"].map((list) => python.evaluate(list));
  const item = (list: PyObject | undefined) => list?.$get("__getitem__").$call(0);
  using one = StridedMemoryView.from(item(fixed));
  assertThrows(() => one.buffer.fill(65), TypeError, "read-only");
  using other = StridedMemoryView.from(item(free));
  other.buffer.fill(65);
  assertEquals(python.evaluate("[fixed.decode(), free.decode()]").$value(), ["key", "AAA"]);
});
