/**
 * NumPy in this process: arrays cross by DLPack in both directions at the same address, and NumPy's own copies are the
 * oracle of ours.
 */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import { ExchangeError } from "../../mod.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { DType, slice, type SliceItem, StridedLayout } from "../../src/layout/mod.ts";
import { HostMemoryResource } from "../../src/memory/host_memory_resource.ts";
import { copyHost } from "../../src/copy/host_copy.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";
import { shapes } from "../support/strided_oracle.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython, TestPython } from "../support/python.ts";
import { apart, meeting, pattern, type Placed } from "../support/arrays.ts";
import { laidOut } from "../support/laid_out.ts";

const found = findPython("numpy");
const missing = typeof found === "string" ? found : null;
const resource = new HostMemoryResource();

/** NumPy, and the capabilities of this version. */
interface NumPy {
  readonly python: TestPython;
  /** What its `from_dlpack` accepts: the versioned struct, or only the old one. */
  readonly maxVersion: readonly [number, number];
  readonly dtypes: readonly string[];
}

let opened: NumPy | undefined;

function numpy(): NumPy {
  if (typeof found === "string") throw new Error(found);
  opened ??= open(TestPython.open(found));
  return opened;
}

function open(python: TestPython): NumPy {
  python.run(`
import numpy as np
def describe(array):
    # The address of an array without elements is of no interest.
    address = str(array.__array_interface__["data"][0]) if array.size else "none"
    return [address, list(array.shape), [s // array.itemsize for s in array.strides], array.dtype.str, array.tobytes().hex()]
class Memory:
    def __init__(self, at):
        self.__array_interface__ = {
            "version": 3, "data": (int(at["address"]), False), "typestr": at["typestr"],
            "shape": tuple(at["shape"]), "strides": tuple(at["strides"]),
        }
`);
  const [major = 0, minor = 0] = python.evaluate("[int(part) for part in np.__version__.split('.')[:2]]") as number[];
  const versioned = python.evaluate("accepts_versions(np.from_dlpack)");
  const integers = [8, 16, 32, 64].flatMap((bits) => [`int${bits}`, `uint${bits}`]);
  const dtypes = [...integers, "float16", "float32", "float64", "complex64", "complex128"];
  if (major > 1 || minor >= 25) dtypes.push("bool"); // which older versions of NumPy do not exchange
  return { python, maxVersion: versioned === true ? [1, 3] : [0, 8], dtypes };
}

/** Parts of an array of shape (4, 6), exchanged in every type. */
const parts: readonly { readonly name: string; readonly python: string; readonly items: readonly SliceItem[] }[] = [
  { name: "all", python: "", items: [] },
  { name: "a slice", python: "[1:3, ::2]", items: [slice(1, 3), slice(null, null, 2)] },
  { name: "backwards", python: "[::-1, 4:1:-1]", items: [slice(null, null, -1), slice(4, 1, -1)] },
  { name: "a column", python: "[:, 2]", items: [slice(), 2] },
  { name: "a scalar", python: "[2, 3]", items: [2, 3] },
  { name: "a new axis", python: "[1, None, ::3]", items: [1, null, slice(null, null, 3)] },
  { name: "no elements", python: "[2:2]", items: [slice(2, 2)] },
];

/** What Python's `describe` returns for an array that is this view. */
function described(view: StridedMemoryView): unknown[] {
  const dense = new Uint8Array(view.nbytes);
  const target = { bytes: dense, offset: 0, layout: StridedLayout.dense(view.shape, view.dtype.itemsize) };
  copyHost({ bytes: view.buffer.bytes(), offset: view.offset, layout: view.layout }, target);
  const address = view.layout.volume === 0 ? "none" : `${view.ptr}`;
  return [address, [...view.shape], [...view.strides], view.dtype.typestr, dense.toHex()];
}

/** Strides matter only where there is a next element: NumPy and we may differ elsewhere. */
function withoutIdleStrides([address, shape, strides, ...rest]: unknown[]): unknown[] {
  const extents = shape as number[];
  const matter = (strides as number[]).map((stride, axis) => extents.includes(0) || extents[axis] === 1 ? 0 : stride);
  return [address, shape, matter, ...rest];
}

test(
  ...needs(missing, "NumPy takes our arrays of every type in place: whole, sliced, reversed, scalar and empty"),
  () => {
    const { python, maxVersion, dtypes } = numpy();
    for (const dtype of dtypes) {
      const { itemsize } = DType.from(dtype);
      const buffer = resource.allocate(24 * itemsize);
      // Booleans are 0 or 1; all other types may hold any bytes.
      buffer.bytes().set(pattern(buffer.size, 3).map((byte) => dtype === "bool" ? byte & 1 : byte));
      const whole = StridedMemoryView.fromBuffer(buffer, { shape: [4, 6], dtype: DType.from(dtype) });
      for (const [i, { name, items }] of parts.entries()) {
        for (
          const view of [whole.sliced(...items), whole.permuted([1, 0]).sliced(...i < 4 ? items.toReversed() : [])]
        ) {
          python.give("producer", view.toDlpack({ maxVersion }));
          python.run("array = np.from_dlpack(producer); del producer");
          const seen = python.evaluate("describe(array)") as unknown[];
          assertEquals(withoutIdleStrides(seen), withoutIdleStrides(described(view)), `${dtype}, ${name}`);
          assertEquals(liveExports(), 1);
          python.run("del array");
          assertEquals(liveExports(), 0);
        }
      }
      buffer.close();
    }
  },
);

test(...needs(missing, "we take NumPy's arrays of every type in place, and release them"), () => {
  const { python, dtypes } = numpy();
  for (const dtype of dtypes) {
    const bytes = pattern(24 * DType.from(dtype).itemsize, 4).map((byte) => dtype === "bool" ? byte & 1 : byte);
    python.run(`base = np.frombuffer(bytearray.fromhex("${bytes.toHex()}"), "${dtype}").reshape(4, 6)`);
    for (const { name, python: part } of parts) {
      for (const transposed of ["", ".T"]) {
        // A NumPy scalar is not an array: 0-d arrays are made by taking a view.
        python.run(`array = np.asarray(base${part})${transposed}`);
        const before = python.evaluate("sys.getrefcount(array)");
        const tensor = python.take("array.__dlpack__()");
        const view = StridedMemoryView.fromDlpack(tensor);
        assertEquals(python.evaluate("sys.getrefcount(array)"), Number(before) + 1);
        const seen = python.evaluate("describe(array)") as unknown[];
        assertEquals(withoutIdleStrides(described(view)), withoutIdleStrides(seen), `${dtype}, ${name}${transposed}`);
        view.close();
        assertEquals(python.evaluate("sys.getrefcount(array)"), before);
      }
    }
  }
});

test(
  ...needs(missing, "an array of NumPy's lives as long as our view of it, and both see what the other writes"),
  () => {
    const { python } = numpy();
    python.run(`
import weakref
gone = []
class Watched(np.ndarray): pass
array = np.arange(6, dtype="float64").view(Watched)
weakref.finalize(array, gone.append, True)
`);
    using view = StridedMemoryView.fromDlpack(python.take("array.__dlpack__()"));
    const values = new Float64Array(view.buffer.bytes().buffer);
    values[1] = 10;
    assertEquals(python.evaluate("array.tolist()"), [0, 10, 2, 3, 4, 5]);
    python.run("array[2] = 20");
    assertEquals([...values], [0, 10, 20, 3, 4, 5]);
    python.run("del array");
    assertEquals(python.evaluate("gone"), []);
    assertEquals([...values], [0, 10, 20, 3, 4, 5]);
    view.close();
    assertEquals(python.evaluate("gone"), [true]);
  },
);

test(...needs(missing, "our memory lives as long as NumPy's array over it, whatever is closed meanwhile"), () => {
  const { python, maxVersion } = numpy();
  const buffer = resource.allocate(48);
  new Float64Array(buffer.bytes().buffer).set([1, 2, 3, 4, 5, 6]);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [2, 3], dtype: "float64" });
  python.give("producer", view.toDlpack({ maxVersion }));
  python.run("array = np.from_dlpack(producer); del producer; part = array[1]; del array");
  buffer.close();
  // Allocations of the same size would get the memory if it were free.
  for (let i = 0; i < 10; i++) resource.allocate(48).bytes().fill(0xff);
  assertEquals([python.evaluate("part.tolist()"), liveExports()], [[4, 5, 6], 1]);
  python.run("del part");
  assertEquals(liveExports(), 0);
});

test(...needs(missing, "an import of ours can be exported to NumPy again: the same memory all the way"), () => {
  const { python, maxVersion } = numpy();
  python.run(`array = np.arange(12, dtype="int32").reshape(3, 4)`);
  const before = python.evaluate("sys.getrefcount(array)");
  const view = StridedMemoryView.fromDlpack(python.take("array.__dlpack__()"));
  python.give("producer", view.sliced(slice(null, null, -1), 1).toDlpack({ maxVersion }));
  view.close();
  python.run("again = np.from_dlpack(producer); del producer; array[0, 1] = 77");
  assertEquals(python.evaluate("[again.tolist(), bool(np.shares_memory(again, array))]"), [[9, 5, 77], true]);
  assertEquals(python.evaluate("sys.getrefcount(array)"), Number(before) + 1);
  python.run("del again");
  assertEquals(liveExports(), 0);
  assertEquals(python.evaluate("sys.getrefcount(array)"), before);
});

test(...needs(missing, "read-only memory is not exported to a NumPy that could not know"), () => {
  const { python, maxVersion } = numpy();
  using buffer = resource.allocate(8);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [8], dtype: "uint8", readonly: true });
  if (maxVersion[0] === 0) {
    assertThrows(() => view.toDlpack({ maxVersion }), ExchangeError, "read-only");
    return;
  }
  python.give("producer", view.toDlpack({ maxVersion }));
  python.run("array = np.from_dlpack(producer); del producer");
  assertEquals(python.evaluate("bool(array.flags.writeable)"), false);
  python.run("del array");
  assertEquals(liveExports(), 0);
});

/** Two arrays of one shape: strides and slice offsets of all kinds. */
const pairs = fc.tuple(shapes(), fc.integer({ min: 1, max: 16 })).chain(([shape, itemsize]) =>
  fc.record({
    source: fc.oneof(apart(shape, itemsize), meeting(shape, itemsize)),
    destination: apart(shape, itemsize),
  })
);

test(...needs(missing, "copies between any two layouts are NumPy's, byte for byte"), () => {
  const { python } = numpy();
  // In batches: NumPy makes all of its copies in one script, then we make ours.
  check(
    fc.property(fc.array(pairs, { minLength: 100, maxLength: 100, size: "max" }), (batch) => {
      const copies = batch.map(({ source, destination }, seed) => {
        const [from, to, expected] = [
          pattern(source.size, seed),
          pattern(destination.size, 7),
          pattern(destination.size, 7),
        ];
        return { source, destination, from, to, expected };
      });
      const jobs = copies.filter(({ source }) => source.layout.volume > 0)
        .map((
          { source, destination, from, expected },
        ) => [arrayInterface(source, from), arrayInterface(destination, expected)]);
      python.run(`
for job in json.loads(${JSON.stringify(JSON.stringify(jobs))}):
    source, destination = (np.asarray(Memory(one)) for one in job)
    destination[...] = source
`);
      for (const { source, destination, from, to, expected } of copies) {
        copyHost({ bytes: from, ...source }, { bytes: to, ...destination });
        assertEquals(to, expected);
      }
    }),
    4,
  );
});

/** What NumPy is passed for an array in our memory: elements of raw bytes. */
function arrayInterface({ layout, offset }: Placed, memory: Uint8Array<ArrayBuffer>): object {
  return {
    // As a string: an address may be too large for a JSON number to keep exactly.
    address: `${ffiPort().addressOf(memory.buffer) + BigInt(offset + layout.sliceOffsetInBytes)}`,
    shape: layout.shape,
    strides: layout.stridesInBytes,
    typestr: `|V${layout.itemsize}`,
  };
}

test(...needs(missing, "arrays of any layout cross to NumPy and back unchanged"), () => {
  const { python, maxVersion } = numpy();
  check(
    fc.property(shapes().chain((shape) => meeting(shape, 8)), ({ layout, offset, size }) => {
      const memory = pattern(size, 9);
      using buffer = resource.allocate(Math.max(size, 1));
      buffer.bytes().set(memory);
      const view = laidOut(buffer, { offset, layout, dtype: "int64" });
      python.give("producer", view.toDlpack({ maxVersion }));
      python.run("array = np.from_dlpack(producer); del producer");
      const seen = python.evaluate("describe(array)") as unknown[];
      assertEquals(withoutIdleStrides(seen), withoutIdleStrides(described(view)));
      python.run("del array");
      assertEquals(liveExports(), 0);
    }),
    150,
  );
});
