/**
 * Every kind of array that Python programs hand to UCXX, Python's own buffers and NumPy's and CuPy's arrays in each
 * layout: we report the same facts as Python, and it is sent and received into, or refused and left untouched.
 *
 * UCXX has 177 cases: nine facts (address, read-only, owner, element size, dimensions, shape, strides, bytes,
 * contiguity) of 13 buffers, and six of five arrays each of NumPy and CuPy. Here all nine are checked for each, for 15
 * buffers and 12 arrays each: 351. Contiguity is by NumPy's definition, where an axis with one element, or an array
 * without any, counts as contiguous in both orders; UCXX's differs.
 */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { existsSync } from "node:fs";
import { test } from "node:test";
import type { PyObject } from "../../src/python/object.ts";
import { Python } from "../../src/python/python.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";

/** Python's own buffers, as expressions. */
const buffers = [
  'b""',
  'b"abcd"',
  'array.array("i", [])',
  'array.array("I", [1, 2, 3])',
  'array.array("f", [1.5, 2.5])',
  'array.array("d", [1.5])',
  'memoryview(array.array("I", range(6))).cast("B").cast("I", (2, 3))',
  'memoryview(b"abcd")',
  'memoryview(bytearray(b"abcde"))',
  'bytearray(b"abc")',
  'io.BytesIO(b"abcd").getbuffer()',
  'filled(mmap.mmap(-1, 8), b"abcdefgh")',
  "bytearray()",
  // And not contiguous ones.
  'memoryview(b"abcde")[::2]',
  'memoryview(bytearray(b"abcde"))[::-1]',
];

/** Arrays of shape (2, 3) in each dtype and order, and parts of them; `np` is the library. */
const arrays = [
  ...["i4", "u4", "f4", "f8"].map((dtype) => `np.arange(6).reshape(2, 3).astype("${dtype}")`),
  'np.asarray(np.arange(6).reshape(2, 3), dtype="f8", order="F")',
  'np.arange(12).reshape(4, 3).astype("f4")[::2]',
  'np.arange(6).reshape(2, 3).astype("i2").T',
  "np.arange(6).reshape(2, 3)[:, 1:2]",
  "np.zeros((1, 5))",
  "np.zeros((5, 1))",
  "np.zeros((0, 3))",
  'np.array(7, dtype="u1")',
];

const prelude = `
import array, ctypes, io, json, mmap, sys

def filled(mapped, content):
    mapped.write(content)
    return mapped

def made(expression, library):
    names = dict(globals())
    if library: names["np"] = __import__(library)
    return eval(expression, names)

def content(it):
    return (it.get() if hasattr(it, "__cuda_array_interface__") else memoryview(it)).tobytes().hex()

def owner_of(it):
    return it.obj if isinstance(it, memoryview) else it

# Releases Python's own view, which retains the owner, too.
def alone(it, owner):
    if isinstance(it, memoryview): it.release()
    return sys.getrefcount(owner)

def grows(owner):
    if not isinstance(owner, (bytearray, array.array)): return None
    try: owner.extend(owner[:1])
    except BufferError: return False
    return True

def address_of(it):
    for name in ("__cuda_array_interface__", "__array_interface__"):
        if hasattr(it, name): return getattr(it, name)["data"][0]
    room = (ctypes.c_char * 256)()
    api = ctypes.pythonapi
    full_ro = 0x11c
    assert api.PyObject_GetBuffer(ctypes.py_object(it), room, full_ro) == 0
    address = int.from_bytes(room[:8], "little")
    api.PyBuffer_Release(room)
    return address

def facts(it):
    on_gpu = hasattr(it, "__cuda_array_interface__")
    view = it if on_gpu else memoryview(it)
    flags = it.flags if on_gpu else view
    return json.dumps({"address": str(address_of(it)), "nbytes": view.nbytes, "shape": list(view.shape),
        "strides": list(view.strides), "itemsize": view.itemsize, "ndim": view.ndim,
        "readonly": not on_gpu and view.readonly, "c": flags.c_contiguous, "f": flags.f_contiguous,
        "content": content(it)})
`;

interface Facts {
  readonly address: string;
  readonly nbytes: number;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  readonly itemsize: number;
  readonly ndim: number;
  readonly readonly: boolean;
  readonly c: boolean;
  readonly f: boolean;
  readonly content: string;
}

/** Checks the facts of one array, then sends it and receives into it. */
async function tryOne(main: PyObject, expression: string, library: string | null): Promise<void> {
  using object = main.$get("made").$call(expression, library); // the object itself, not a view
  const facts: Facts = JSON.parse(main["facts"](object));
  const view = StridedMemoryView.from(object);
  const { layout, dtype } = view;
  const isEmpty = facts.nbytes === 0; // memoryview and NumPy report arbitrary strides for these
  assertEquals([view.nbytes, [...view.shape], dtype.itemsize, view.shape.length, view.readonly], [
    facts.nbytes,
    [...facts.shape],
    facts.itemsize,
    facts.ndim,
    facts.readonly,
  ]);
  assertEquals([layout.isContiguousC, layout.isContiguousF], [facts.c, facts.f]);
  if (!isEmpty) {
    assertEquals(`${view.ptr}`, facts.address);
    const extents = facts.shape;
    const strides = view.strides.map((stride, axis) => extents[axis] === 1 ? 0 : stride * facts.itemsize);
    assertEquals(strides, facts.strides.map((stride, axis) => extents[axis] === 1 ? 0 : stride));
  }
  view.close();
  if (!isEmpty) checkOwner(main, expression, library);

  using ucx = Ucx.open();
  await using sender = ucx.createWorker();
  await using receiver = ucx.createWorker();
  const endpoint = await sender.connect(receiver.address);
  const message = Uint8Array.from({ length: facts.nbytes }, (_, i) => 2 * i + 1);
  const into = new Uint8Array(facts.nbytes);
  await endpoint.send(object);
  assertEquals(await receiver.recv(into), { length: facts.nbytes, tag: 0n });
  assertEquals(into.toHex(), facts.content);
  if (!facts.c) await assertRejects(() => endpoint.send(object, { copy: false }), TypeError, "in C order");
  if (facts.c && !facts.readonly) {
    await endpoint.send(message);
    await receiver.recv(object);
    assertEquals(main["content"](object), message.toHex());
  } else {
    await assertRejects(() => receiver.recv(object), TypeError, facts.readonly ? "read-only" : "in C order");
    assertEquals(main["content"](object), facts.content);
  }
  assert(receiver.probe(0n, 0n) === null);
}

/** A view retains the owner of the memory, which cannot be resized meanwhile, and releases it. */
function checkOwner(main: PyObject, expression: string, library: string | null): void {
  using object = main.$get("made").$call(expression, library);
  using owner = main.$get("owner_of").$call(object);
  const view = StridedMemoryView.from(object);
  const kept = main["alone"](object, owner);
  assert(main["grows"](owner) !== true, "it was resized under its view");
  view.close();
  assert(main["alone"](object, owner) < kept, "its owner was not retained");
  assert(main["grows"](owner) !== false, "its owner is retained for ever");
}

function open(): PyObject {
  const found = findPython();
  const python = Python.open(typeof found === "string" ? {} : { home: found.executable });
  python.run(prelude);
  return python.import("__main__");
}

const found = findPython();
for (const expression of buffers) {
  const missing = typeof found === "string" ? found : null;
  test(...needs(missing, `Python's ${expression} is viewed as Python reports it, sent and received into`), async () => {
    await tryOne(open(), expression, null);
  });
}

for (const library of ["numpy", "cupy"]) {
  const isGpuMissing = library === "cupy" && !existsSync("/dev/nvidiactl");
  const missing = isGpuMissing ? "no NVIDIA GPU: run on a machine that has one" : findPython(library);
  for (const expression of arrays) {
    const name = `${library}'s ${expression} is viewed as Python reports it, sent and received into`;
    test(...needs(typeof missing === "string" ? missing : null, name), async () => {
      await tryOne(open(), expression, library);
    });
  }
}
