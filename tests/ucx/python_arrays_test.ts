/**
 * Every kind of array that Python programs hand to UCXX, Python's own buffers and NumPy's and CuPy's arrays in each
 * layout, and torch's tensors: we report the same facts as Python, and it is sent and received into, or refused and
 * left untouched.
 *
 * UCXX has 177 cases: nine facts (address, read-only, owner, element size, dimensions, shape, strides, bytes,
 * contiguity) of 13 buffers, and six of five arrays each of NumPy and CuPy. Here all nine are checked for each, for 15
 * buffers and 12 arrays each: 351, and all but the owner for 10 tensors, on the host and on a GPU. Contiguity is by
 * NumPy's definition, where an axis with one element, or an array without any, counts as contiguous in both orders;
 * UCXX's differs.
 */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { test } from "node:test";
import type { PyObject } from "../../src/python/object.ts";
import { Cuda } from "../../src/cuda/cuda.ts";
import { Python } from "../../src/python/python.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";
import { missingUcxCuda } from "../support/gpu.ts";
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

/** Tensors at `where`. */
const tensors = [
  ...["int32", "float32", "float64", "bfloat16"].map((dtype) =>
    `torch.arange(6, dtype=torch.${dtype}, device=where).reshape(2, 3)`
  ),
  "torch.arange(12, dtype=torch.float32, device=where).reshape(4, 3)[::2]",
  "torch.arange(6, dtype=torch.int16, device=where).reshape(2, 3).T",
  "torch.arange(6, device=where).reshape(2, 3)[:, 1:2]",
  "torch.zeros((1, 5), device=where)",
  "torch.zeros((0, 3), device=where)",
  "torch.tensor(7, dtype=torch.uint8, device=where)",
];

const prelude = `
import array, ctypes, io, json, mmap, sys

def filled(mapped, content):
    mapped.write(content)
    return mapped

def made(expression, library, where):
    names = dict(globals(), where=where)
    if library: names["torch" if library == "torch" else "np"] = __import__(library)
    return eval(expression, names)

def is_tensor(it):
    return hasattr(it, "data_ptr")

def content(it):
    # NumPy has no bfloat16.
    if is_tensor(it): return bytes(it.contiguous().reshape(-1).view(sys.modules["torch"].uint8).tolist()).hex()
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

def facts_of_tensor(it):
    size, reversed_axes = it.element_size(), tuple(range(it.dim()))[::-1]
    return json.dumps({"address": str(it.data_ptr()), "nbytes": it.numel() * size, "shape": list(it.shape),
        "strides": [size * stride for stride in it.stride()], "itemsize": size, "ndim": it.dim(), "readonly": False,
        "c": it.is_contiguous(), "f": it.permute(reversed_axes).is_contiguous(), "content": content(it)})

def facts(it):
    if is_tensor(it): return facts_of_tensor(it)
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

/** An array to make: by an expression, of a library, in host memory or on a GPU. */
interface Wanted {
  readonly expression: string;
  readonly library: "numpy" | "cupy" | "torch" | null;
  readonly where: "cpu" | "cuda";
}

function make(main: PyObject, { expression, library, where }: Wanted): PyObject {
  return main.$get("made").$call(expression, library, where); // the object itself, not a view
}

/** Checks the facts of one array, then sends it and receives into it. */
async function tryOne(main: PyObject, wanted: Wanted): Promise<void> {
  using object = make(main, wanted);
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
  // What a tensor exports retains its memory, not the object.
  if (!isEmpty && wanted.library !== "torch") checkOwner(main, wanted);

  using ucx = Ucx.open();
  await using sender = ucx.createWorker();
  await using receiver = ucx.createWorker();
  const endpoint = await sender.connect(receiver.address);
  const message = Uint8Array.from({ length: facts.nbytes }, (_, i) => 2 * i + 1);
  const into = new Uint8Array(facts.nbytes);
  // A send of a GPU's memory may wait for its receiver, however short it is.
  const [received] = await Promise.all([receiver.recv(into), endpoint.send(object)]);
  assertEquals(received, { length: facts.nbytes, tag: 0n });
  assertEquals(into.toHex(), facts.content);
  if (!facts.c) await assertRejects(() => endpoint.send(object, { copy: false }), TypeError, "in C order");
  if (facts.c && !facts.readonly) {
    await Promise.all([receiver.recv(object), endpoint.send(message)]);
    assertEquals(main["content"](object), message.toHex());
  } else {
    await assertRejects(() => receiver.recv(object), TypeError, facts.readonly ? "read-only" : "in C order");
    assertEquals(main["content"](object), facts.content);
  }
  assert(receiver.probe(0n, 0n) === null);
}

/** A view retains the owner of the memory, which cannot be resized meanwhile, and releases it. */
function checkOwner(main: PyObject, wanted: Wanted): void {
  using object = make(main, wanted);
  using owner = main.$get("owner_of").$call(object);
  const view = StridedMemoryView.from(object);
  const kept = main["alone"](object, owner);
  assert(main["grows"](owner) !== true, "it was resized under its view");
  view.close();
  assert(main["alone"](object, owner) < kept, "its owner was not retained");
  assert(main["grows"](owner) !== false, "its owner is retained for ever");
}

/** Arrays on a GPU are used on a stream of this one. */
let cuda: Cuda | null = null;

function open(where: Wanted["where"]): PyObject {
  const found = findPython();
  const stream = where === "cuda" ? (cuda ??= Cuda.open()).device(0).createStream() : undefined;
  const home = typeof found === "string" ? {} : { home: found.executable };
  const python = Python.open({ ...home, ...(stream === undefined ? {} : { stream }) });
  python.run(prelude);
  return python.import("__main__");
}

function testEach(wanted: readonly Wanted[]): void {
  for (const one of wanted) {
    const { expression, library, where } = one;
    const python = findPython(...library === null ? [] : [library]);
    const missing = typeof python === "string" ? python : where === "cuda" ? missingUcxCuda(1) : null;
    const place = library === "torch" ? ` on ${where}` : "";
    const name = `${
      library ?? "Python"
    }'s ${expression}${place} is viewed as Python reports it, sent and received into`;
    test(...needs(missing, name), () => tryOne(open(where), one));
  }
}

testEach(buffers.map((expression) => ({ expression, library: null, where: "cpu" })));
testEach(arrays.map((expression) => ({ expression, library: "numpy", where: "cpu" })));
testEach(arrays.map((expression) => ({ expression, library: "cupy", where: "cuda" })));
for (const where of ["cpu", "cuda"] as const) {
  testEach(tensors.map((expression) => ({ expression, library: "torch", where })));
}
