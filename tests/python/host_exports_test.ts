/**
 * Host arrays exported to NumPy as tensors: for every type, layout and access equal to the view, and to what consumers
 * see by any protocol; released with the last array over the memory, and counted.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { cpython } from "../../bindings/cpython.ts";
import { openInterpreter } from "../../src/python/start_interpreter.ts";
import { liveExports } from "../../src/order/reclaim.ts";
import { DType, HostMemoryResource, type PyObject, Python, PythonError, StridedMemoryView } from "../../mod.ts";
import { apart, pattern, positionsOf } from "../support/arrays.ts";
import { FailingCalls } from "../support/failing_calls.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";
import { shapes } from "../support/strided_oracle.ts";

const found = findPython("numpy>=2.1");
const missing = typeof found === "string" ? found : null;

function open(): Python {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  python.run(`
import gc, numpy as np
def exported(array): return type(getattr(array, "exported", (None,))[0]).__name__
def look(array):
    behind = type(array).__dlpack__.__globals__["plain_array"](array)
    return [exported(array), array.__array_interface__["data"][0] if array.size else 0, list(array.shape), array.tobytes(),
        array.dtype.str, bool(array.flags.writeable) or not array.size, behind.name, behind.interface["data"][1],
        hasattr(array, "__arrow_c_array__"), [step // array.itemsize for step in array.strides] if array.size else []]
ways = {
    "itself": lambda array: array, "slice": lambda array: array[..., ::2], "view": lambda array: array.view(np.ndarray),
    "asarray": np.asarray, "transposed": lambda array: array.T, "memoryview": memoryview, "flat": lambda array: array.flat,
    "dlpack": np.from_dlpack, "reshaped": lambda array: array[None], "base": lambda array: array.base,
    "list": lambda array: [array, array[...]], "capsule": lambda array: array.__dlpack__(max_version=(1, 0)),
}
held = []
def hold(way, array): held.append(ways[way](array))
def drop(i): del held[i]
`);
  return python;
}

const types = DType.all().filter(({ typestr }) => typestr !== null);

/** Views of random bytes at random places. */
const views: fc.Arbitrary<StridedMemoryView> = fc.record({
  shape: shapes(4),
  dtype: fc.constantFrom(...types),
  readonly: fc.boolean(),
  seed: fc.nat(),
}).chain(({ shape, dtype, readonly, seed }) =>
  apart(shape, dtype.itemsize).map(({ layout, offset, size }) => {
    const buffer = new HostMemoryResource().allocate(size);
    const mask = dtype.name === "bool" ? 1 : 255; // other codes are not valid values
    buffer.bytes().set(pattern(size, seed).map((byte) => byte & mask));
    return StridedMemoryView.fromBuffer(buffer, { shape: [0], dtype, offset, readonly }).view({ layout });
  })
);

test(...needs(missing, "NumPy and consumers see the same array as the view, however often it is exported"), () => {
  const python = open();
  const look: PyObject = python.evaluate("look");
  const before = liveExports();
  check(
    fc.property(views, fc.integer({ min: 1, max: 3 }), (view, times) => {
      const { layout, dtype, readonly, ptr, shape, buffer, offset } = view;
      const memory = buffer.bytes();
      const bytes = positionsOf({ layout, offset, size: buffer.size }).flatMap((at) => [
        ...memory.slice(at, at + dtype.itemsize),
      ]);
      const isEmpty = layout.volume === 0;
      for (let i = 0; i < times; i++) {
        using seen = look.$call(view);
        const [kind, address, ...rest] = seen.$value() as unknown[];
        assertEquals(kind, isEmpty ? "Array" : "Spec", "by a tensor, or by an Array");
        assertEquals(BigInt(address as number), isEmpty ? 0n : ptr);
        assertEquals(rest, [
          [...shape],
          Uint8Array.from(bytes),
          dtype.typestr,
          !readonly || isEmpty,
          dtype.name,
          readonly,
          layout.isContiguousC && dtype.arrowFormat !== null,
          isEmpty ? [] : [...layout.strides],
        ]);
      }
      assertEquals(liveExports(), before, "an unused export is released");
      view.buffer.close();
    }),
    400,
  );
});

test(...needs(missing, "an export lasts until the last array over the memory, or derived from it, is gone"), () => {
  const python = open();
  const [hold, drop]: PyObject[] = [python.evaluate("hold"), python.evaluate("drop")];
  using names = python.evaluate("list(ways)");
  const before = liveExports();
  check(
    fc.property(
      fc.array(fc.constantFrom(...(names.$value() as string[])), { minLength: 1, maxLength: 5 }),
      fc.array(fc.nat(), { minLength: 5, maxLength: 5 }),
      (ways, order) => {
        const view = StridedMemoryView.fromTypedArray(Float64Array.of(1, 2, 3, 4, 5, 6), { shape: [2, 3] });
        ways.forEach((way, i) => {
          assert(hold !== undefined);
          hold(way, view);
          assert(liveExports() >= before + i + 1, way);
        });
        for (let left = ways.length; left > 0; left--) {
          assert(drop !== undefined);
          drop((order[left - 1] ?? 0) % left);
          assert(liveExports() >= before + left - 1);
          assert(liveExports() <= before + 3 * (left - 1));
        }
        assertEquals(liveExports(), before);
      },
    ),
    150,
  );
});

// NumPy was called without the capsule, which ended the process.
test(...needs(missing, "an array for whose capsule Python has no memory is an error, and is released"), () => {
  const python = open();
  const look: PyObject = python.evaluate("look");
  const view = StridedMemoryView.fromTypedArray(Float64Array.of(1, 2, 3));
  look(view);
  const before = liveExports();
  using calls = new FailingCalls(openInterpreter({}).api, cpython);
  calls.failNth("PyCapsule_New", 1, 0n);
  assertThrows(() => look(view), PythonError, "SystemError");
  assert(calls.hasFailed);
  assertEquals(liveExports(), before);
});

test(...needs(missing, "NumPy's functions and attributes work on an array of ours without conversion"), () => {
  const python = open();
  const table = StridedMemoryView.fromTypedArray(Float64Array.of(1, 2, 3, 4, 5, 6), { shape: [2, 3] });
  const holds = python.evaluate(`
lambda array: [isinstance(array, np.ndarray), len(array), [row.tolist() for row in array], np.concatenate([array, array]).shape == (4, 3),
    type(np.concatenate([array, array])) is np.ndarray, [part.shape for part in np.split(array, 3, axis=1)] == [(2, 1)] * 3,
    type(array.sum()) is np.float64, type(array + 1) is np.ndarray, float(np.linalg.norm(array)) ** 2 > 90.9,
    np.shares_memory(array, np.asarray(array)), array.flags.owndata]`.trim());
  assertEquals(holds(table).$value(), [
    true,
    2,
    [[1, 2, 3], [4, 5, 6]],
    ...Array.from({ length: 7 }, () => true),
    false,
  ]);
});

test(...needs(missing, "an array whose shape or strides a program has changed is treated as changed"), () => {
  const python = open();
  const change: PyObject = python.evaluate(`
lambda array, shape: (array.__class__.shape.__set__(array, tuple(shape)), look(array))[1]`.trim());
  const view = StridedMemoryView.fromTypedArray(Int32Array.of(1, 2, 3, 4, 5, 6), { shape: [2, 3] });
  const hasArrow = (shape: number[]) => (change.$call(view, shape).$value() as unknown[])[8];
  assertEquals([hasArrow([2, 3]), hasArrow([3, 2]), hasArrow([6])], [true, false, false]);
});

test(...needs(missing, "views of one layout are distinguished by their type, and by whether they are writable"), () => {
  const python = open();
  const look: PyObject = python.evaluate("lambda array: [array.dtype.str, bool(array.flags.writeable)]");
  const buffer = new HostMemoryResource().allocate(24);
  const { layout } = StridedMemoryView.fromBuffer(buffer, { shape: [6], dtype: "float32" });
  for (let i = 0; i < 12; i++) {
    const [dtype, readonly] = [i % 3 === 0 ? "float32" : "int32", i % 2 === 0] as const;
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [0], dtype, readonly }).view({ layout });
    assertEquals(look(view).$value(), [i % 3 === 0 ? "<f4" : "<i4", !readonly]);
  }
});

test(...needs(missing, "more layouts than are kept are exported correctly, again and again"), () => {
  const python = open();
  const look: PyObject = python.evaluate("lambda array: [list(array.shape), bool(array.flags.writeable)]");
  const before = liveExports();
  const buffer = new HostMemoryResource().allocate(1200);
  const all = Array.from(
    { length: 600 },
    (_, i) => StridedMemoryView.fromBuffer(buffer, { shape: [1 + (i >> 1)], dtype: "float32", readonly: i % 2 === 0 }),
  );
  for (let round = 0; round < 3; round++) {
    for (const [i, view] of all.entries()) {
      assertEquals(look(view).$value(), [[1 + (i >> 1)], i % 2 === 1]);
      assertEquals(look(view).$value(), [[1 + (i >> 1)], i % 2 === 1]);
    }
  }
  assertEquals(liveExports(), before);
});

test(...needs(missing, "an array released in a call by machine code is reclaimed right after it"), () => {
  const python = open();
  python.run(`
def hold_all(count): held.extend(np.from_dlpack(brought) for _ in range(count))
def hold_capsule(): held.append(brought.__dlpack__(max_version=(1, 0)))
def drop_last(): del held[-1]
def counted(): return len(counters.retained)
def unclaimed(): return int(counters.numbers_for_javascript[2])
def bring(array):
    global brought, counters
    brought, counters = array, type(array).__dlpack__.__globals__["counters"]
`);
  // Each call is followed by a poll, so these report the state before their own poll.
  const { bring, hold_all: holdAll, hold_capsule: holdCapsule, drop_last: dropLast, counted, unclaimed, held } = python
    .import("__main__");
  const view = StridedMemoryView.fromTypedArray(new Float64Array(4));
  bring(view);
  for (let i = 0; i < 2; i++) { // the first call of each is made step by step
    holdAll(0);
    holdCapsule();
    dropLast();
    held.clear();
  }
  const before: [number, number] = [counted(), unclaimed()];
  for (const count of [1, 300]) { // in one memory block, and in several
    holdAll(count);
    const all = counted();
    assert(all >= before[0] + count);
    dropLast(); // one of many, with its counter in the last block
    assert(counted() < all);
    held.clear();
    assertEquals(counted(), before[0]);
  }
  holdCapsule();
  assert(unclaimed() > before[1]);
  held.clear();
  assertEquals([counted(), unclaimed()], before);
  python.run("del brought"); // all files of a process may share the interpreter
});
