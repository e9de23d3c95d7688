/**
 * Our arrays in Python are Arrow arrays, and describe their nodes as PyVortex does: a consumer that takes a buffer
 * keeps it until it returns it, and buffers that no consumer takes are returned on their own.
 */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { ArrowArray, kwargs, type PyObject, Python, PythonError } from "../../../mod.ts";
import { liveExports } from "../../../src/order/reclaim.ts";
import { exportArrowStream } from "../../../src/public/arrow.ts";
import { rootNode } from "../../../src/vortex/encoded_node.ts";
import { limitsOf } from "../../../src/vortex/limits.ts";
import { fromVortexMetadata, type VortexDType, type VortexMetadata, VortexSession } from "../../../src/vortex/mod.ts";
import { openAll } from "../../../src/vortex/open_nodes.ts";
import { VortexArray } from "../../../src/vortex/vortex_array.ts";
import { writeDType } from "../../../src/vortex/wire/dtype_flatbuffer.ts";
import { patiently } from "../../support/child.ts";
import { collectGarbage } from "../../support/collect.ts";
import { needs } from "../../support/needs.ts";
import { check, fc } from "../../support/property.ts";
import { findPython } from "../../support/python.ts";
import { canonicalTree } from "../../support/vortex/canonical_trees.ts";
import { numbers } from "../../support/vortex/descriptors.ts";
import { node, primitiveNode, proto } from "../../support/vortex/nodes.ts";
import type { BuiltArray } from "../../support/vortex/wheel.ts";

const found = findPython("numpy", "pyarrow", "polars", "duckdb");

const withPython = (name: string) => {
  const [title, options] = needs(typeof found === "string" ? found : null, name);
  return [title, { ...options, ...patiently }] as const;
};

/** Python with a consumer written like Vortex's own: with ctypes, from the meaning of the struct's fields. */
function open(): Python {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  python.run(`
import ctypes, gc, types
import duckdb
import polars as pl
import pyarrow as pa

class Export(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("kind", ctypes.c_uint32), ("ptr", ctypes.c_void_p),
                ("len", ctypes.c_size_t), ("alignment", ctypes.c_size_t), ("device_id", ctypes.c_int32),
                ("sync_event", ctypes.c_void_p), ("private_data", ctypes.c_void_p), ("release", ctypes.c_void_p)]

api = ctypes.pythonapi
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetDestructor.argtypes = [ctypes.py_object, ctypes.c_void_p]
taken = []

def look(capsule):
    one = Export.from_address(api.PyCapsule_GetPointer(capsule, b"vortex_buffer_export"))
    assert (one.version, one.kind, one.device_id, one.sync_event) == (1, 0, -1, None)
    assert one.len == 0 or one.ptr % one.alignment == 0
    assert one.alignment & (one.alignment - 1) == 0 and one.release
    return one

def take(tree, most):
    """Take at most so many buffers, and fail then, as a constructor does that finds something wrong."""
    for capsule in tree[4]:
        if len(taken) >= most:
            raise ValueError("enough")
        taken.append(look(capsule))
        api.PyCapsule_SetDestructor(capsule, None)
    for child in tree[5]:
        take(child, most)

def take_and_drop(array, most):
    try:
        take(array.__vortex_array_metadata__(), most)
    except ValueError:
        pass
    return len(taken)

def give_back():
    for one in taken:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(one.release)(ctypes.addressof(one))
    taken.clear()

def all_bytes():
    return [ctypes.string_at(one.ptr, one.len) for one in taken]
`);
  return python;
}

const i64: VortexDType = { kind: "primitive", ptype: "i64", nullable: false };
const utf8: VortexDType = { kind: "utf8", nullable: true };
const session = VortexSession.default();

function arrayOf({ dtype, length, tree }: BuiltArray): VortexArray {
  const root = rootNode(tree, dtype, length);
  openAll(session, root);
  return VortexArray.ofNode(root, { session, limits: limitsOf() });
}

/** Exports that are still outstanding once all garbage is collected. */
async function liveAfterCollection(python: Python, tries = 20): Promise<number> {
  for (let i = 0; i < tries && liveExports() > 0; i++) {
    await collectGarbage();
    python.run("gc.collect()");
  }
  return liveExports();
}

const [whole, wholeOptions] = withPython(
  "an array in Python is Arrow's, and describes itself so that it can be rebuilt",
);

test(whole, wholeOptions, async () => {
  const python = open();
  const lengthInArrow: PyObject = python.evaluate("lambda array: len(pa.array(array))");
  const same: PyObject = python.evaluate("lambda array: array");
  check(
    fc.property(fc.nat().map(canonicalTree), (tree) => {
      using array = arrayOf(tree);
      using theirs: PyObject = same.$call(array);
      assertEquals(lengthInArrow(theirs), tree.length);
      using arrow = ArrowArray.from(theirs);
      assertEquals(arrow.toArray() as unknown, tree.values);
      using again = fromVortexMetadata(theirs as never); // it has the method
      assertEquals(again.toArrow().toArray() as unknown, tree.values);
    }),
    200,
  );
  assertEquals(await liveAfterCollection(python), 0);
});

const [consumer, consumerOptions] = withPython(
  "a consumer holds the buffers that it took until it returns them, and no others",
);

test(consumer, consumerOptions, async () => {
  const python = open();
  const take: PyObject = python.evaluate("take_and_drop");
  const allBytes: PyObject = python.evaluate("all_bytes");
  const giveBack: PyObject = python.evaluate("give_back");
  const column = { kind: "primitive", ptype: "u32", nullable: false } as const;
  const names = ["a", "b", "c", "d"];
  const dtype = writeDType({ kind: "struct", names, fields: names.map(() => column), nullable: false });
  const columns = names.map((_, i) => new Uint8Array(8).fill(i + 1));
  const tree: VortexMetadata = [
    "vortex.struct",
    dtype,
    2,
    new Uint8Array(0),
    [],
    columns.map((bytes) => numbers(2, [bytes])),
  ];
  for (const most of [0, 1, 3, 4, 99]) {
    using array = fromVortexMetadata(tree);
    const taken = Math.min(most, 4);
    assertEquals(take(array, most), taken);
    array.close();
    // Buffers it did not take are returned; those it took stay in place, although capsule and array are gone.
    assertEquals(await liveAfterCollection(python, taken > 0 ? 2 : 20) > 0, taken > 0, `${most}`);
    using held: PyObject = allBytes.$call();
    assertEquals(
      (held.$value() as Uint8Array[]).map((one) => [...one]),
      columns.slice(0, taken).map((one) => [...one]),
    );
    giveBack();
    assertEquals(await liveAfterCollection(python), 0);
  }
});

const [polars, polarsOptions] = withPython("Polars, DuckDB and PyArrow read an array, DuckDB by a stream");

test(polars, polarsOptions, async () => {
  const python = open();
  const words = ["one", null, "a word that is longer than twelve bytes"];
  const dtype = { kind: "struct", names: ["n", "w"], fields: [i64, utf8], nullable: false } as const;
  const dictionary = node(
    "vortex.dict",
    proto([1, 2], [2, 0], [3, true]),
    [],
    primitiveNode([0, 0, 1], "u8", [true, false, true]),
    node(
      "vortex.varbin",
      proto([1, 2]),
      [new TextEncoder().encode(`${words[0]}${words[2]}`)],
      primitiveNode([0, 3, 42], "u32"),
    ),
  );
  const sequence = node("vortex.sequence", proto([1, proto([3, 10])], [2, proto([3, 4])]), []);
  const array = arrayOf({ dtype, length: 3, tree: node("vortex.struct", proto(), [], sequence, dictionary) });
  const expected = [[5, 7, 9], words];
  const columnsOf = (frame: string) =>
    `[frame["n"].to_list(), frame["w"].to_list()] if (frame := ${frame}) is not None else 0`;
  for (
    const [reader, argument] of [
      [columnsOf("pl.DataFrame(pl.Series(source).struct.unnest())"), array],
      ["[c.to_pylist() for c in pa.record_batch(source).columns]", array],
      [
        "[c.to_pylist() for c in duckdb.sql('select n, w from source order by n').arrow().read_all().columns]",
        "stream",
      ],
    ] as const
  ) {
    const read: PyObject = python.evaluate(`lambda source: ${reader}`);
    const given = argument === "stream" ? exportArrowStream([array.toArrow()]) : argument;
    using lists: PyObject = read.$call(given);
    assertEquals(lists.$value() as unknown, expected, reader);
  }
  array.close();
  assertEquals(await liveAfterCollection(python), 0);
});

const [options, optionsOptions] = withPython("options of a consumer that are None are ignored, and others are refused");

test(options, optionsOptions, () => {
  const python = open();
  using array = fromVortexMetadata(numbers(2, [new Uint8Array(8)]));
  const ask: PyObject = python.evaluate("lambda array, **options: array.__arrow_c_device_array__(**options)[1]");
  for (const given of [{}, { requested_schema: null }, { future: null, requested_schema: null }]) {
    ask.$call(array, kwargs(given)).$close();
  }
  assertThrows(
    () => ask(array, kwargs({ future: 1 })),
    PythonError,
    "NotImplementedError: cannot export with the option future",
  );
});
