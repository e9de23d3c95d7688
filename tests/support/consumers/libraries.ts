/**
 * The Python array libraries to exchange arrays with, and how each takes, makes and shows arrays. Data only: the code
 * that uses it is in `consumers.ts`.
 *
 * @module
 */

/** A way to hand an array over. The DLPack table of C functions is used only to take arrays from a library. */
export type Convention =
  | "DLPack"
  | "DLPack table"
  | "CUDA array interface"
  | "array interface"
  | "Arrow"
  | "Arrow device";

/** Where the arrays are. */
export type Place = "cpu" | "gpu";

/** What a library is known to exchange: this must not fail. Other refusals are only reported. */
export interface Known {
  readonly place: Place;
  readonly convention: Convention;
  readonly dtypes: readonly string[];
  /** Parts of our arrays that it takes in place. */
  readonly parts: readonly string[];
  /** Parts of its own arrays that we take in place. */
  readonly gives: readonly string[];
}

/** A library. */
export interface Library {
  readonly name: string;
  /** Modules that must be installed, with the minimum version where that matters. */
  readonly modules: readonly string[];
  /** Extents of the arrays that it makes. Default: (4, 8), as ours. */
  readonly makes?: readonly number[];
  /**
   * Python code that defines `version`, and functions: `take(array, convention)` makes an array of the library over
   * ours, `make(data, dtype, shape, convention)` makes one of its own; `address`, `kind` (the name of the element
   * type), `shape`, `elements` (bytes in C order, None where the library cannot show them), and `writable` (None where
   * it does not know) inspect one.
   */
  readonly code: string;
  readonly known: readonly Known[];
}

const integers = ["int8", "uint8", "int16", "int32", "int64"];
const unsigned = ["uint16", "uint32", "uint64"];
const floats = ["float16", "float32", "float64"];
const complex = ["complex64", "complex128"];
const numbers = [...integers, ...unsigned, ...floats, ...complex];

/** Contiguous parts, then strided ones too, then all. */
const dense = ["whole", "rows", "scalar", "empty"];
const strided = [...dense, "every other", "transposed", "column"];
const all = [...strided, "read-only"];

/** Parts that Arrow can express: a list of rows, which is read-only. */
const rows = ["whole", "rows", "empty", "read-only"];
const arrowNumbers = [...integers, ...unsigned, ...floats];

const arrowNames = `
names = {"halffloat": "float16", "float": "float32", "double": "float64", "half_float": "float16", "bool": "bool1_packed"}
formats = {"c": "int8", "C": "uint8", "s": "int16", "S": "uint16", "i": "int32", "I": "uint32", "l": "int64", "L": "uint64",
    "e": "float16", "f": "float32", "g": "float64", "b": "bool1_packed"}
def innermost(array):
    while array.type.__class__.__name__ == "FixedSizeListType": array = array.flatten()
    return array
`;

/** The libraries. */
export const libraries: readonly Library[] = [
  {
    name: "NumPy",
    modules: ["numpy>=2.1"], // which exchanges read-only arrays by DLPack
    known: [
      { place: "cpu", convention: "DLPack", dtypes: numbers, parts: all, gives: all },
      { place: "cpu", convention: "array interface", dtypes: [...numbers, "bool"], parts: all, gives: all },
    ],
    code: `
version = numpy.__version__
def take(array, convention): return numpy.from_dlpack(array) if convention == "DLPack" else numpy.asarray(array)
def make(data, dtype, shape, convention): return values(data, dtype, shape)
def address(array): return array.__array_interface__["data"][0]
def kind(array): return array.dtype.name
def shape(array): return array.shape
def elements(array): return array.tobytes()
def writable(array): return bool(array.flags.writeable)
`,
  },
  {
    name: "torch",
    modules: ["torch"],
    known: [
      { // Debian's torch 1.13, which supports DLPack 0.x and never releases arrays without elements
        place: "cpu",
        convention: "DLPack",
        dtypes: [...integers, ...floats, ...complex, "bfloat16"],
        parts: ["whole", "rows", "scalar", "every other", "transposed", "column"],
        gives: all,
      },
      {
        place: "gpu",
        convention: "DLPack",
        dtypes: [...integers, ...floats, ...complex, "bfloat16", "bool"],
        parts: strided,
        gives: strided,
      },
      {
        place: "gpu",
        convention: "CUDA array interface",
        dtypes: [...integers, ...floats],
        parts: dense,
        gives: dense,
      },
      // Unsupported by torch before 2.9.
      { place: "cpu", convention: "DLPack table", dtypes: [], parts: [], gives: [] },
      { place: "gpu", convention: "DLPack table", dtypes: [], parts: [], gives: [] },
    ],
    code: `
import torch
version = torch.__version__
def of(dtype): return getattr(torch, {"complex32": "chalf"}.get(dtype, dtype))
def take(array, convention):
    return torch.from_dlpack(array) if convention == "DLPack" else torch.as_tensor(array, device="cuda")
def make(data, dtype, shape, convention):
    if convention == "DLPack table" and not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        raise TypeError("this torch has no table")
    if dtype in ("int4", "uint4"): raise TypeError("torch says by DLPack that these are int8 and uint8")
    raw = torch.frombuffer(bytearray(bytes(numpy.asarray(data))), dtype=of(dtype))
    return raw.reshape(tuple(shape)).to("cuda" if place == "gpu" else "cpu")
def address(array): return array.data_ptr()
def kind(array): return str(array.dtype).removeprefix("torch.")
def shape(array): return tuple(array.shape)
def elements(array):
    if array.numel() == 0: return b""
    dense = array.cpu().contiguous().reshape(-1)
    if dense.is_complex(): dense = torch.view_as_real(dense).reshape(-1)
    return bytes(dense.view(torch.uint8).tolist())
def writable(array): return None
`,
  },
  {
    name: "CuPy",
    modules: ["cupy"],
    known: [
      { place: "gpu", convention: "DLPack", dtypes: [...numbers, "bool"], parts: strided, gives: strided },
      {
        place: "gpu",
        convention: "CUDA array interface",
        dtypes: [...numbers, "bool"],
        parts: strided,
        gives: strided,
      },
    ],
    code: `
import cupy
version = cupy.__version__
def take(array, convention): return cupy.from_dlpack(array) if convention == "DLPack" else cupy.asarray(array)
def make(data, dtype, shape, convention): return cupy.asarray(values(data, dtype, shape))
def address(array): return array.data.ptr
def kind(array): return array.dtype.name
def shape(array): return array.shape
def elements(array): return cupy.asnumpy(array).tobytes()
def writable(array): return None
`,
  },
  {
    name: "numba",
    modules: ["numba", "numba.cuda"],
    known: [
      {
        place: "gpu",
        convention: "CUDA array interface",
        dtypes: [...integers, ...unsigned, "float32", "float64", ...complex],
        parts: dense,
        gives: dense,
      },
    ],
    code: `
import numba.cuda
version = numba.__version__
def take(array, convention): return numba.cuda.as_cuda_array(array)
def make(data, dtype, shape, convention): return numba.cuda.to_device(values(data, dtype, shape))
def address(array): return array.__cuda_array_interface__["data"][0] or 0
def kind(array): return array.dtype.name
def shape(array): return tuple(array.shape)
def elements(array): return array.copy_to_host().tobytes()
def writable(array): return None
`,
  },
  {
    name: "JAX",
    modules: ["jax", "ml_dtypes"],
    known: [
      { place: "cpu", convention: "DLPack", dtypes: [...numbers, "bfloat16"], parts: ["whole"], gives: ["whole"] },
      { place: "gpu", convention: "DLPack", dtypes: [...numbers, "bfloat16"], parts: ["whole"], gives: ["whole"] },
    ],
    code: `
import os
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("JAX_ENABLE_X64", "1")
if place == "cpu": os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax, ml_dtypes
version = jax.__version__
def take(array, convention): return jax.dlpack.from_dlpack(array)
def make(data, dtype, shape, convention):
    if place == "gpu" and dtype.startswith("float6_"):
        raise TypeError("XLA ends the process when it compiles anything with constants of this type")
    return put(values(data, dtype, shape))
def put(array): return jax.block_until_ready(jax.device_put(array, jax.devices(place)[0]))
if place == "cpu":
    # Each part is a dense array of its own: NumPy cuts it out, as XLA would compile a program for each part and type.
    def cut(array, part): return put(part(numpy.asarray(array)))
    def frozen(array): raise TypeError("arrays of JAX are never written to")
def address(array): return array.unsafe_buffer_pointer() if array.size else 0
def has_nibbles(array): return array.dtype.name in ("int4", "uint4", "float4_e2m1fn")
def kind(array): return array.dtype.name + ("_packed" if has_nibbles(array) else "")
def shape(array): return array.shape
def elements(array):
    raw = numpy.asarray(array).tobytes()
    if not has_nibbles(array): return raw
    return bytes(low & 15 | (high & 15) << 4 for low, high in zip(raw[::2], raw[1::2] + bytes(1)))
def writable(array): return None
`,
  },
  {
    name: "cuda.core",
    modules: ["cuda.core"],
    known: [
      { place: "cpu", convention: "DLPack", dtypes: numbers, parts: all, gives: all },
      { place: "gpu", convention: "DLPack", dtypes: numbers, parts: all, gives: strided },
      { place: "gpu", convention: "CUDA array interface", dtypes: numbers, parts: all, gives: [] },
    ],
    code: `
import cuda.core
from cuda.core.utils import StridedMemoryView
version = cuda.core.__version__
if place == "gpu": cuda.core.Device(0).set_current() # without it no bytes, which have no address, are an error
ways = {"DLPack": "from_dlpack", "CUDA array interface": "from_cuda_array_interface"}
def take(array, convention):
    return getattr(StridedMemoryView, ways[convention])(array, stream_ptr=-1)
def make(data, dtype, shape, convention):
    "Its views are of other libraries' arrays, which are inspected here."
    if convention != "DLPack": raise TypeError("a StridedMemoryView of cuda.core speaks DLPack alone")
    array = values(data, dtype, shape)
    if place == "gpu":
        import cupy
        array = cupy.asarray(array)
    seen(array) # fails where it does not know the type
    return array
def seen(array):
    return array if isinstance(array, StridedMemoryView) else StridedMemoryView.from_any_interface(array, stream_ptr=-1)
def only(array, convention):
    ours = type(array).__module__.split(".")[0] not in ("numpy", "cupy")
    return speakers[convention](array if ours else seen(array))
def address(array): return seen(array).ptr
def kind(array): return str(seen(array).dtype)
def shape(array): return tuple(array.shape)
def elements(array):
    if place == "gpu": return None
    array = seen(array)
    if 0 in array.shape: return b""
    kind = numpy.dtype(array.dtype)
    strides = tuple(stride * kind.itemsize for stride in array.strides) if array.strides else None
    said = {"version": 3, "data": (array.ptr, True), "shape": tuple(array.shape), "typestr": kind.str, "strides": strides}
    return numpy.asarray(type("Described", (), {"__array_interface__": said})()).tobytes()
def writable(array): return not seen(array).readonly
`,
  },
  {
    name: "PyArrow",
    modules: ["pyarrow"],
    known: [
      {
        place: "cpu",
        convention: "Arrow",
        dtypes: [...arrowNumbers, "bool1_packed"],
        parts: rows,
        gives: ["whole", "rows", "empty"],
      },
      {
        place: "cpu",
        convention: "Arrow device",
        dtypes: [...arrowNumbers, "bool1_packed"],
        parts: rows,
        gives: ["whole", "rows", "empty"],
      },
      { place: "gpu", convention: "Arrow device", dtypes: [], parts: [], gives: [] },
    ],
    code: `
import pyarrow
version = pyarrow.__version__
${arrowNames}
def take(array, convention): return pyarrow.array(array)
def make(data, dtype, shape, convention):
    if place == "gpu": raise TypeError("it makes arrays in host memory")
    kind = {"bool1_packed": "bool_"}.get(dtype, dtype)
    count = 1
    for extent in shape: count *= extent
    made = pyarrow.Array.from_buffers(getattr(pyarrow, kind)(), count, [None, pyarrow.py_buffer(bytes(numpy.asarray(data)))])
    for extent in reversed(shape[1:]): made = pyarrow.FixedSizeListArray.from_arrays(made, extent)
    return made
def address(array):
    flat = innermost(array)
    return flat.buffers()[1].address + flat.offset * flat.type.bit_width // 8 if len(flat) else 0
def kind(array): return names.get(str(innermost(array).type), str(innermost(array).type))
def shape(array):
    extents, type = [len(array)], array.type
    while type.__class__.__name__ == "FixedSizeListType": extents.append(type.list_size); type = type.value_type
    return tuple(extents)
def elements(array):
    flat = innermost(array)
    if len(flat) == 0: return b""
    start, bits = flat.offset, flat.type.bit_width
    return flat.buffers()[1].to_pybytes()[start * bits // 8 : -(-(start + len(flat)) * bits // 8)]
def writable(array): return False
`,
  },
  {
    name: "nanoarrow",
    modules: ["nanoarrow"],
    makes: [32],
    known: [
      { place: "cpu", convention: "Arrow", dtypes: arrowNumbers, parts: rows, gives: ["whole"] },
      { place: "cpu", convention: "Arrow device", dtypes: arrowNumbers, parts: rows, gives: ["whole"] },
      { place: "gpu", convention: "Arrow device", dtypes: [], parts: [], gives: [] },
    ],
    code: `
import nanoarrow, nanoarrow.device
version = nanoarrow.__version__
${arrowNames}
def take(array, convention):
    return nanoarrow.c_array(array) if convention == "Arrow" else nanoarrow.device.c_device_array(array)
def make(data, dtype, shape, convention):
    if place == "gpu": raise TypeError("it makes arrays in host memory")
    kind = {"bool1_packed": "bool_"}.get(dtype, dtype)
    made = nanoarrow.c_array_from_buffers(getattr(nanoarrow, kind)(), shape[0], [None, bytes(numpy.asarray(data))])
    return made if convention == "Arrow" else nanoarrow.device.c_device_array(made)
def inner(array):
    array = getattr(array, "array", array)
    while array.schema.format.startswith("+w:"): array = array.child(0)
    return array
def bits(flat): return {"c": 8, "C": 8, "s": 16, "S": 16, "i": 32, "I": 32, "f": 32, "e": 16, "b": 1}.get(flat.schema.format, 64)
def address(array):
    flat = inner(array)
    return (flat.buffers[1] or 0) + flat.offset * bits(flat) // 8 if len(flat) else 0
def kind(array): return formats.get(inner(array).schema.format, inner(array).schema.format)
def shape(array):
    array = getattr(array, "array", array)
    extents = [len(array)]
    while array.schema.format.startswith("+w:"):
        extents.append(int(array.schema.format[3:])); array = array.child(0)
    return tuple(extents)
def elements(array):
    flat = inner(array)
    if place == "gpu": return None
    if len(flat) == 0: return b""
    start, end = flat.offset * bits(flat) // 8, -(-(flat.offset + len(flat)) * bits(flat) // 8)
    return bytes(flat.view().buffer(1))[start:end]
def writable(array): return False
`,
  },
];
