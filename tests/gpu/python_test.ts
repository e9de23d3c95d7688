/**
 * Arrays on a GPU between this process and the Python libraries in it: the same address, the same elements, ordered by
 * streams alone, and nothing kept once both sides have released. Each installed library, in each direction.
 */
import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import {
  Cuda,
  type CudaDevice,
  DeviceMemoryResource,
  DType,
  ExchangeError,
  HostMemoryResource,
  kwargs,
  type PyObject,
  Python,
  PythonError,
  slice,
  type SliceItem,
  StridedLayout,
  StridedMemoryView,
} from "../../mod.ts";
import { collectGarbage } from "../support/collect.ts";
import { patiently } from "../support/child.ts";
import { examplesOf, runExample } from "../support/examples.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";
import { pattern, positionsOf } from "../support/arrays.ts";

/** How a library takes arrays, inspects its own, and makes them: Python code that defines four functions. */
interface Library {
  readonly module: string;
  readonly code: string;
  /** Element types that it exchanges. */
  readonly dtypes: readonly string[];
  /** Which parts of an array it takes: any, only dense ones, or only arrays aligned like a whole one. */
  readonly takes: "any" | "dense" | "whole";
}

const integers = ["int8", "uint8", "int16", "int32", "int64"];
const unsigned = ["uint16", "uint32", "uint64"];
const floats = ["float16", "float32", "float64", "complex64", "complex128"];

const libraries: readonly Library[] = [
  {
    module: "torch",
    dtypes: [...integers, ...floats, "bfloat16", "bool"],
    takes: "any",
    code: `
import torch
def take(array): return torch.from_dlpack(array)
def address(array): return array.data_ptr()
def elements(array):
    host = array.cpu().contiguous()
    return (host.view(torch.int16) if host.dtype == torch.bfloat16 else host).numpy().tobytes()
def make(data, dtype, shape):
    if dtype == "bfloat16": return torch.from_numpy(values(data, "int16", shape)).view(torch.bfloat16).cuda()
    return torch.from_numpy(values(data, dtype, shape)).cuda()
`,
  },
  {
    module: "cupy",
    dtypes: [...integers, ...unsigned, ...floats, "bool"],
    takes: "any",
    code: `
import cupy
def take(array): return cupy.asarray(array)
def address(array): return array.data.ptr
def elements(array): return cupy.asnumpy(array).tobytes()
def make(data, dtype, shape): return cupy.asarray(values(data, dtype, shape))
`,
  },
  {
    module: "numba",
    dtypes: [...integers, ...unsigned, "float32", "float64", "complex64", "complex128"],
    takes: "dense",
    code: `
import numba.cuda
def take(array): return numba.cuda.as_cuda_array(array)
def address(array): return array.__cuda_array_interface__["data"][0] or 0
def elements(array): return array.copy_to_host().tobytes()
def make(data, dtype, shape): return numba.cuda.to_device(values(data, dtype, shape))
`,
  },
  {
    module: "jax",
    dtypes: [...integers, ...unsigned, ...floats, "bfloat16"],
    takes: "whole",
    code: `
import os
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("JAX_ENABLE_X64", "1")
import jax, ml_dtypes
def take(array): return jax.dlpack.from_dlpack(array)
def address(array): return array.unsafe_buffer_pointer()
def elements(array): return numpy.asarray(array).tobytes()
def make(data, dtype, shape):
    kind = numpy.dtype(getattr(ml_dtypes, dtype) if dtype == "bfloat16" else dtype)
    return jax.block_until_ready(jax.device_put(values(data, kind, shape), jax.devices("gpu")[0]))
`,
  },
];

const parts: readonly { readonly name: string; readonly items: readonly SliceItem[]; readonly dense: boolean }[] = [
  { name: "all", items: [], dense: true },
  { name: "rows", items: [slice(1, 3)], dense: true },
  { name: "a scalar", items: [2, 3], dense: true },
  { name: "no elements", items: [slice(2, 2)], dense: true },
  { name: "every other", items: [slice(1, 3), slice(null, null, 2)], dense: false },
  { name: "a column", items: [slice(), 2], dense: false },
];

const noGpu = missingGpus();
const found = noGpu === null ? findPython() : noGpu;

function open(): Python {
  if (typeof found === "string") throw new Error(found);
  return Python.open({ home: found.executable });
}

/** What is missing to test with a Python module, or null. */
function missingModule(module: string): string | null {
  if (typeof found === "string") return found;
  const [parent = module] = module.split(".");
  const find = open().import("importlib.util")["find_spec"];
  return find(parent) === null || find(module) === null
    ? `no ${module} in the environment of ${found.executable}: pip install ${module}`
    : null;
}

/** For arrays that libraries make: bytes as a NumPy array. */
const values = `
import numpy
def values(data, dtype, shape):
    data = bytes(numpy.asarray(data))
    return numpy.frombuffer(data, dtype).reshape(shape).copy() if data else numpy.empty(shape, dtype)
`;

/** A library's functions, in a separate namespace. */
function load(python: Python, { code }: Library): Record<"take" | "address" | "elements" | "make", PyObject> {
  const space: PyObject = python.builtins["dict"].$call();
  python.builtins["exec"](values + code, space);
  const [take, address, elements, make] = ["take", "address", "elements", "make"].map((name): PyObject =>
    space.$item(name)
  ) as [PyObject, PyObject, PyObject, PyObject]; // one for each name
  return { take, address, elements, make };
}

/** The elements of a device view in C order, byte by byte, as its home stream leaves them. */
function bytesOf({ buffer, layout, offset, dtype, device, stream }: StridedMemoryView): Uint8Array {
  if (layout.volume === 0 || device === null) return new Uint8Array(0);
  using host = new HostMemoryResource().allocate(buffer.size);
  const order = stream ?? device.defaultStream;
  host.copyFrom(buffer, { stream: order });
  order.synchronize();
  const all = host.bytes();
  return Uint8Array.from(
    positionsOf({ layout, offset, size: buffer.size }).flatMap((at) => [...all.slice(at, at + dtype.itemsize)]),
  );
}

/** Bytes that are valid values in every type: only the low bit of each for bool. */
function sample(dtype: DType, count: number): Uint8Array<ArrayBuffer> {
  const mask = dtype.name === "bool" ? 1 : 0x3f; // below NaN and infinity in every float
  return pattern(count * dtype.itemsize, 7).map((byte) => byte & mask);
}

async function liveAfterCollection(python: Python): Promise<number> {
  for (let i = 0; i < 20 && liveExports() > 0; i++) {
    await collectGarbage();
    python.run("import gc; gc.collect()");
  }
  return liveExports();
}

function isTaken({ name, dense }: typeof parts[number], takes: Library["takes"]): boolean {
  return name === "all" || takes === "any" || (takes === "dense" && dense);
}

function upload(device: CudaDevice, bytes: Uint8Array): { buffer: ReturnType<DeviceMemoryResource["allocate"]> } {
  const stream = device.createStream();
  const buffer = new DeviceMemoryResource(device).allocate(bytes.length, { stream });
  using host = new HostMemoryResource().allocate(bytes.length);
  host.bytes().set(bytes);
  buffer.copyFrom(host, { stream });
  stream.synchronize();
  stream.close(); // it lives as long as the buffer
  return { buffer };
}

for (const library of libraries) {
  const { module, dtypes, takes } = library;
  const missing = missingModule(module);
  const [toName, { skip }] = needs(missing, `${module} sees our device memory: each type, each part, at its address`);
  const options = { skip, ...patiently };

  test(toName, options, async () => {
    const python = open();
    const { take, address, elements } = load(python, library);
    using cuda = Cuda.open();
    for (const name of dtypes) {
      const dtype = DType.from(name);
      const bytes = sample(dtype, 24);
      const { buffer } = upload(cuda.device(0), bytes);
      const whole = StridedMemoryView.fromBuffer(buffer, { shape: [4, 6], dtype });
      for (const { name: part, items, dense } of parts.filter((part) => isTaken(part, takes))) {
        const view = whole.sliced(...items);
        const what = `${name}, ${part}, ${dense ? "dense" : "strided"}`;
        using array: PyObject = take.$call(view);
        if (view.layout.volume > 0) assertEquals(BigInt(address(array)), view.ptr, what);
        using seen = elements.$call(array);
        assertEquals(seen.$value(), bytesOf(view), what);
      }
      buffer.close();
    }
    assertEquals(await liveAfterCollection(python), 0);
  });

  test(
    needs(missing, `we see ${module}'s device memory: each type, each part, at its address`)[0],
    options,
    async () => {
      const python = open();
      const { make, address, elements } = load(python, library);
      using cuda = Cuda.open();
      using stream = cuda.device(0).createStream();
      for (const name of dtypes) {
        const dtype = DType.from(name);
        for (const shape of [[4, 6], [24], [], [0, 3]]) {
          const count = shape.reduce((product, extent) => product * extent, 1);
          using array: PyObject = make.$call(sample(dtype, count), name, python.builtins["tuple"].$call(shape));
          using view = StridedMemoryView.from(array, { stream });
          const what = `${name}, shape (${shape.join(", ")})`;
          assertEquals([view.dtype.name, [...view.shape], view.device], [name, shape, cuda.device(0)], what);
          if (count > 0) assertEquals(view.ptr, BigInt(address(array)), what);
          using seen = elements.$call(array);
          assertEquals(bytesOf(view), seen.$value(), what);
        }
      }
      assertEquals(await liveAfterCollection(python), 0);
    },
  );
}

const torch = missingModule("torch");
const perTorch = (name: string) => {
  const [title, { skip }] = needs(torch, name);
  return [title, { skip, ...patiently }] as const;
};

test(...perTorch("functions of torch take views and return views, on the stream of the argument"), async () => {
  const python = open();
  const torch = python.import("torch");
  using cuda = Cuda.open();
  const { buffer } = upload(cuda.device(0), new Uint8Array(Float32Array.of(-1, 2, -3, 4, 5, -6).buffer));
  using home = cuda.device(0).createStream();
  buffer.setHomeStream(home);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [2, 3], dtype: "float32" });
  {
    using y: StridedMemoryView = torch["nn"].functional.relu(view);
    assert(y instanceof StridedMemoryView, `relu returned ${String(y)}`);
    assertEquals([y.device, y.stream, [...y.shape]], [view.device, view.stream, [2, 3]]);
    assertEquals(Array.from(await y.toTypedArray(), Number), [0, 2, 0, 4, 5, 0]);
    assertEquals(y.toString(), "[[0. 2. 0.]\n [4. 5. 0.]]");
    using product: StridedMemoryView = torch["matmul"](y, view.permuted([1, 0]));
    assertEquals(Array.from(await product.toTypedArray(), Number), [4, 10, 6, 41]);
    using total: StridedMemoryView = torch["sum"](view, kwargs({ dim: 0 }));
    assertEquals(Array.from(await total.toTypedArray(), Number), [3, 7, -9]);
    using linear: PyObject = torch["nn"].Linear.$call(3, 1).cuda.$call();
    using needsGradient: PyObject = linear(view); // its graph holds the view until it is closed
    assertEquals(typeof needsGradient, "function", "a tensor that needs a gradient stays in Python");
    using detached: StridedMemoryView = needsGradient["detach"]();
    assertEquals([...detached.shape], [2, 1]);
  }
  buffer.close();
  assertEquals(await liveAfterCollection(python), 0);
});

/** Copies that take some milliseconds, so that work not ordered after them visibly runs too early. */
function delay(device: CudaDevice): (stream: ReturnType<CudaDevice["createStream"]>) => void {
  const resource = new DeviceMemoryResource(device);
  return (stream) => {
    using from = resource.allocate(2 ** 28, { stream });
    using to = resource.allocate(2 ** 28, { stream });
    for (let i = 0; i < 40; i++) to.copyFrom(from, { stream });
  };
}

test(
  ...perTorch("torch's work is ordered after work enqueued here, and work here after torch's once torch releases"),
  async () => {
    const python = open();
    python.run(`
import torch
def add_slowly(array):
    tensor = torch.from_dlpack(array)
    ballast = torch.zeros(2 ** 28, device="cuda")
    for _ in range(40): ballast.add_(1)
    tensor.add_(1)
`);
    const addSlowly = python.evaluate("add_slowly");
    using cuda = Cuda.open();
    const device = cuda.device(0);
    const slow = delay(device);
    using stream = device.createStream();
    const wait = delay(device);
    wait(stream);
    addSlowly(StridedMemoryView.fromTypedArray(new Float32Array(1))); // torch starts up
    device.synchronize();
    const count = 2 ** 20;
    using buffer = new DeviceMemoryResource(device).allocate(4 * count, { stream });
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [count], dtype: "int32" });
    buffer.fill(0, { stream });
    slow(stream);
    buffer.fill(5, { stream, width: 4 }); // late, on our stream
    addSlowly(view); // must see 5, on torch's
    assertEquals(await liveAfterCollection(python), 0, "torch has released it, which orders our stream after torch's");
    using host = new HostMemoryResource().allocate(4 * count);
    buffer.copyTo(host, { stream });
    stream.synchronize();
    const seen = new Set(new Int32Array(host.bytes().buffer));
    assertEquals([...seen], [6]);
  },
);

test(
  ...perTorch("a copy that torch requests includes the work enqueued here before it, and no later work"),
  async () => {
    const python = open();
    python.run(`
import torch
class Asking:
    "Hands an array over with options of its own."
    def __init__(self, array, options): self.array, self.options = array, options
    def __dlpack_device__(self): return self.options.get("dl_device", self.array.__dlpack_device__())
    def __dlpack__(self, **options): return self.array.__dlpack__(**{**options, **self.options})
def copied(array, options): return torch.from_dlpack(Asking(array, options))
def seen(tensor): return [str(tensor.device), sorted(set(tensor.flatten().tolist()))]
`);
    const [copied, seen] = [python.evaluate("copied"), python.evaluate("seen")];
    using cuda = Cuda.open();
    const device = cuda.device(0);
    const slow = delay(device);
    using stream = device.createStream();
    slow(stream);
    copied.$call(new Float32Array(1), {}).$close(); // torch starts up
    device.synchronize();
    const shape = [2 ** 10, 2 ** 10];
    using buffer = new DeviceMemoryResource(device).allocate(4 * 2 ** 20, { stream });
    const whole = StridedMemoryView.fromBuffer(buffer, { shape, dtype: "int32" });
    const spread = whole.view({ layout: new StridedLayout([2, 2 ** 20], [0, 1], 4) }); // each element twice
    for (const view of [whole, whole.sliced(slice(null, null, 2), slice(1, 5)), whole.permuted([1, 0]), spread]) {
      for (const onHost of [false, true]) {
        buffer.fill(0, { stream });
        slow(stream);
        buffer.fill(5, { stream, width: 4 }); // late, on our stream
        using tensor: PyObject = copied.$call(
          view,
          onHost ? new Map([["dl_device", python.evaluate("(1, 0)")]]) : { copy: true },
        );
        buffer.fill(7, { stream, width: 4 }); // after the copy, which torch may not have read yet
        using found = seen.$call(tensor);
        assertEquals(found.$value(), [onHost ? "cpu" : "cuda:0", [5]]);
        using ones: PyObject = tensor["zero_"].$call();
        stream.synchronize();
        assertEquals([...new Set(Array.from(await whole.toTypedArray(), Number))], [7], "the copy is torch's alone");
        ones.$close();
        assertEquals([...tensor["shape"]], [...view.shape]);
      }
    }
    const numpy = python.evaluate("lambda array: __import__('numpy').from_dlpack(array, device='cpu').copy()");
    buffer.fill(3, { stream, width: 4 });
    using host: StridedMemoryView = numpy(whole);
    assertEquals([host.device, new Set(Array.from(await host.toTypedArray(), Number))], [null, new Set([3])]);
    assertEquals(await liveAfterCollection(python), 0);
  },
);

test(...perTorch("torch's work comes before ours on what it has handed over"), async () => {
  const python = open();
  python.run(`
import torch
def make_slowly(count):
    ballast = torch.zeros(2 ** 28, device="cuda")
    tensor = torch.zeros(count, dtype=torch.int32, device="cuda")
    for _ in range(40): ballast.add_(1)
    return tensor.add_(7)
`);
  using cuda = Cuda.open();
  using stream = cuda.device(0).createStream();
  const ordered = Python.open({ stream });
  const makeSlowly = ordered.evaluate("make_slowly");
  makeSlowly(4).close();
  cuda.device(0).synchronize();
  for (let i = 0; i < 3; i++) {
    using view: StridedMemoryView = makeSlowly(2 ** 20);
    assertEquals(view.stream, stream);
    assertEquals([...new Set(Array.from(await view.toTypedArray(), Number))], [7]);
  }
});

test(
  ...perTorch("memory of a checked Cuda is passed to torch and back, and nothing is reported"),
  async () => {
    const python = open();
    const torch = python.import("torch");
    const reports: string[] = [];
    const cuda = Cuda.open({ check: { onReport: ({ message }) => reports.push(message) } });
    {
      using home = cuda.device(0).createStream();
      using host = new HostMemoryResource().allocate(8);
      host.bytes().set(new Uint8Array(Float32Array.of(1, 2).buffer));
      using buffer = new DeviceMemoryResource(cuda.device(0)).allocate(8, { stream: home });
      buffer.copyFrom(host, { stream: home });
      const view = StridedMemoryView.fromBuffer(buffer, { shape: [2], dtype: "float32" });
      using doubled: StridedMemoryView = torch["add"](view, view);
      assertEquals(Array.from(await doubled.toTypedArray(), Number), [2, 4]);
    }
    assertEquals(await liveAfterCollection(python), 0);
    cuda.close();
    assertEquals(reports, []);
  },
);

test(...perTorch("impossible exchanges are refused: no stream, stream 0, memory of a simulated GPU"), () => {
  const python = open();
  using tensor: PyObject = python.import("torch")["zeros"].$call(3, kwargs({ device: "cuda" }));
  try {
    StridedMemoryView.from(tensor);
    throw new Error("device memory was taken without a stream to use it on");
  } catch (error) {
    assertInstanceOf(error, ExchangeError);
  }
  using simulated = Cuda.simulate();
  using home = simulated.device(0).createStream();
  using buffer = new DeviceMemoryResource(simulated.device(0)).allocate(12, { stream: home });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [3], dtype: "float32" });
  try {
    python.builtins["repr"](view);
    throw new Error("memory of a simulated GPU was given to Python");
  } catch (error) {
    assertInstanceOf(error, ExchangeError);
  }
  using cuda = Cuda.open();
  const real = StridedMemoryView.fromBuffer(upload(cuda.device(0), new Uint8Array(12)).buffer, {
    shape: [12],
    dtype: "int8",
  });
  try {
    python.evaluate("lambda array: array.__dlpack__(stream=0)")(real);
    throw new Error("stream 0 was accepted");
  } catch (error) {
    assertInstanceOf(error, PythonError);
  }
  real.buffer.close();
});

test(...perTorch("the README's example of torch runs and prints what it says"), () => {
  const [example] = examplesOf("README.md", readFileSync(new URL("../../README.md", import.meta.url), "utf8"), "torch");
  if (example === undefined) throw new Error("the README has no example of torch");
  runExample(example);
});

const core = missingModule("cuda.core");

test(...needs(core, "cuda.core sees our device memory at its address, with its shape and type"), async () => {
  const python = open();
  python.run(`
from cuda.core.utils import StridedMemoryView
def look(array, way, stream):
    view = getattr(StridedMemoryView, way)(array, stream_ptr=stream)
    return [str(view.ptr), list(view.shape), list(view.strides or ()), str(view.dtype), view.device_id, view.is_device_accessible]
`);
  const look = python.evaluate("look");
  using cuda = Cuda.open();
  using consumer = cuda.device(0).createStream();
  const { buffer } = upload(cuda.device(0), new Uint8Array(96));
  const whole = StridedMemoryView.fromBuffer(buffer, { shape: [4, 6], dtype: "float32" });
  for (const view of [whole, whole.permuted([1, 0]), whole.sliced(slice(1, 3), slice(null, null, 2))]) {
    for (const way of ["from_dlpack", "from_cuda_array_interface", "from_any_interface"]) {
      for (const stream of [-1, consumer.handle]) {
        const strides = view.layout.isContiguousC && way !== "from_dlpack" ? null : [...view.strides];
        const [ptr, shape, theirs, dtype, id, accessible] = look(view, way, stream).$value();
        assertEquals([ptr, shape, dtype, id, accessible], [`${view.ptr}`, [...view.shape], "float32", 0, true], way);
        if (strides !== null && theirs.length > 0) assertEquals(theirs, strides, way);
      }
    }
  }
  buffer.close();
  assertEquals(await liveAfterCollection(python), 0);
});

test(...needs(noGpu, "a view of a layout on the device prints what the host has"), () => {
  using cuda = Cuda.open();
  const bytes = new Uint8Array(Float32Array.from({ length: 4096 }, (_, i) => i / 8).buffer);
  const { buffer } = upload(cuda.device(0), bytes);
  const host = StridedMemoryView.fromTypedArray(new Float32Array(bytes.buffer), { shape: [64, 64] });
  const device = StridedMemoryView.fromBuffer(buffer, { shape: [64, 64], dtype: "float32" });
  assertEquals(device.toString(), host.toString());
  const layout = new StridedLayout([3, 5], [64, -2], 4).sliced(slice(), slice());
  assertEquals(layout.volume, 15);
  assertEquals(device.permuted([1, 0]).sliced(3).toString(), host.permuted([1, 0]).sliced(3).toString());
  buffer.close();
});
