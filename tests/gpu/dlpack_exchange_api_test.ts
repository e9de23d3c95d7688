/**
 * DLPack's table of C functions on a GPU: torch's tensors are imported through it, in the order of the stream that
 * torch works on, and our arrays are exported through it to consumers that use it, such as tvm-ffi.
 */
import { assert, assertEquals, assertInstanceOf, assertThrows } from "@std/assert";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { liveExports } from "../../src/order/reclaim.ts";
import {
  Cuda,
  type CudaDevice,
  type CudaStream,
  DeviceMemoryResource,
  HostMemoryResource,
  Python,
  PythonError,
  StridedMemoryView,
} from "../../mod.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";

const found = findPython("torch");
const missing = missingGpus() ?? (typeof found === "string" ? found : null);
const foundTvm = findPython("torch", "tvm_ffi");
const missingTvm = missingGpus() ?? (typeof foundTvm === "string" ? foundTvm : null);
const count = 2 ** 20;

const counting = `
import torch
table = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
asked = []
if not hasattr(torch, "own_dlpack"):
    torch.own_dlpack = torch.Tensor.__dlpack__
    def counted(tensor, **options):
        asked.append(1)
        return torch.own_dlpack(tensor, **options)
    torch.Tensor.__dlpack__ = counted
def make_slowly(count):
    ballast = torch.zeros(2 ** 28, device="cuda")
    tensor = torch.zeros(count, dtype=torch.int32, device="cuda")
    for _ in range(40): ballast.add_(1)
    return tensor.add_(7)
def elsewhere(count):
    with torch.cuda.stream(torch.cuda.Stream()): return make_slowly(count)
`;

/** Copies that take some milliseconds, so that work not ordered after them visibly runs too early. */
function slow(device: CudaDevice, stream: CudaStream): void {
  const resource = new DeviceMemoryResource(device);
  using from = resource.allocate(2 ** 28, { stream });
  using to = resource.allocate(2 ** 28, { stream });
  for (let i = 0; i < 40; i++) to.copyFrom(from, { stream });
}

test(...needs(missing, "torch's tensors are imported by its table, after the work of torch's stream"), async () => {
  using cuda = Cuda.open();
  using stream = cuda.device(0).createStream();
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable, stream });
  python.run(counting);
  const hasTable = python.evaluate("table is not None") as boolean;
  const version = python.evaluate("torch.__version__") as string;
  const make = python.evaluate("make_slowly");
  make(4).close();
  python.run("asked.clear()");
  for (let i = 0; i < 3; i++) {
    using tensor = make.$call(count);
    using view = StridedMemoryView.from(tensor, { stream });
    assertEquals([view.stream, view.shape, view.dtype.name], [stream, [count], "int32"]);
    assertEquals(`${view.ptr}`, python.evaluate("lambda tensor: str(tensor.data_ptr())")(tensor), "the same memory");
    assertEquals([...new Set(Array.from(await view.toTypedArray(), Number))], [7], "after torch's work");
  }
  const asked = python.evaluate("len(asked)") as number;
  if (hasTable) assertEquals(asked, 0, `torch ${version} has a table, and was asked by __dlpack__`);
  console.log(
    `torch ${version}: ${hasTable ? "has" : "has no"} table; __dlpack__ was called ${asked} times for 3 views`,
  );
});

test(
  ...needs(missing, "work on a stream that torch has chosen comes first, too, while that is the current one"),
  async () => {
    using cuda = Cuda.open();
    using stream = cuda.device(0).createStream();
    const python = Python.open({ home: typeof found === "string" ? "" : found.executable, stream });
    python.run(counting);
    python.run(`
chosen = torch.cuda.Stream()
torch.cuda.set_stream(chosen)
`);
    try {
      const make = python.evaluate("make_slowly");
      for (let i = 0; i < 3; i++) {
        using tensor = make.$call(count);
        using view = StridedMemoryView.from(tensor, { stream });
        assertEquals([...new Set(Array.from(await view.toTypedArray(), Number))], [7]);
      }
    } finally {
      python.run("torch.cuda.set_stream(torch.cuda.default_stream())");
    }
  },
);

test(...needs(missing, "tensors that are more than their memory are refused, as torch's __dlpack__ does"), () => {
  using cuda = Cuda.open();
  using stream = cuda.device(0).createStream();
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable, stream });
  python.run("import torch");
  for (
    const expression of [
      "torch.zeros(3, device='cuda', requires_grad=True)",
      "torch.zeros(3, device='cuda', dtype=torch.complex64).conj()",
    ]
  ) {
    using tensor = python.evaluate(`lambda: ${expression}`).$call();
    const error = assertThrows(() => StridedMemoryView.from(tensor, { stream }).close(), Error, undefined, expression);
    assertInstanceOf(error, PythonError, `${expression}: ${error}`);
  }
});

/** Python code that calls the table of one of our arrays. */
const asking = `
import ctypes, struct
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
def entry(array, at, kind, *arguments):
    table = pointer(type(array).__dlpack_c_exchange_api__, b"dlpack_exchange_api")
    return kind(ctypes.c_int, *arguments)(ctypes.c_void_p.from_address(table + at).value)
P, out = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
def current(array):
    "The stream that it names for the first device."
    stream = P()
    assert entry(array, 48, ctypes.CFUNCTYPE, ctypes.c_int, ctypes.c_int32, out)(2, 0, ctypes.byref(stream)) == 0
    return stream.value
def allocated(array, count):
    "An array of ours over int32 elements that the table's allocator has made on the first device."
    extents, tensor, made = (ctypes.c_int64 * 1)(count), P(), ctypes.py_object()
    prototype = struct.pack("<QiiiBBHQQQ", 0, 2, 0, 1, 0, 32, 1, ctypes.addressof(extents), 0, 0)
    assert entry(array, 16, ctypes.CFUNCTYPE, P, out, P, P)(prototype, ctypes.byref(tensor), None, None) == 0
    assert entry(array, 32, ctypes.PYFUNCTYPE, P, ctypes.POINTER(ctypes.py_object))(tensor, ctypes.byref(made)) == 0
    made = made.value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(made))
    return made
`;

for (const isNamed of [false, true]) {
  const where = isNamed ? "the stream that Python was opened with" : "the default stream";
  test(
    ...needs(missingTvm, `tvm-ffi gets an array of ours in order, on ${where}, and what it returns is the same memory`),
    async () => {
      using cuda = Cuda.open();
      const device = cuda.device(0);
      using home = device.createStream();
      using stream = device.createStream();
      const python = Python.open({
        home: typeof foundTvm === "string" ? "" : foundTvm.executable,
        ...(isNamed ? { stream } : {}),
      });
      python.run(asking + "import tvm_ffi; echo = tvm_ffi.get_global_func('testing.echo')");
      using buffer = device.memory.allocate(4 * count, { stream: home });
      const view = StridedMemoryView.fromBuffer(buffer, { shape: [count], dtype: "int32" });
      slow(device, home);
      device.synchronize();
      buffer.fill(0, { stream: home });
      slow(device, home);
      buffer.fill(5, { stream: home, width: 4 }); // late
      {
        const works = isNamed ? stream : device.defaultStream;
        assertEquals(BigInt(python.evaluate("current")(view)), isNamed ? stream.handle : 1n);
        using returned = python.evaluate("echo").$call(view);
        // On the consumer's stream: it must come after the late fill, which nothing else orders.
        using host = new HostMemoryResource().allocate(4 * count);
        buffer.copyTo(host, { stream: works });
        works.synchronize();
        assertEquals([...new Set(new Int32Array(host.bytes().buffer))], [5]);
        using back = StridedMemoryView.from(returned, { stream: home });
        assertEquals([back.ptr, back.shape, back.device], [view.ptr, [count], device]);
        stream.close();
        assertEquals(python.evaluate("current")(view), 1, "a closed stream is not named any more");
      }
      await delay(20);
      python.run("import gc; gc.collect()");
      assertEquals(liveExports(), 0);
    },
  );
}

test(
  ...needs(missing, "the table's allocator makes memory of a device, which is freed once it is released"),
  async () => {
    using cuda = Cuda.open();
    const device = cuda.device(0);
    using stream = device.createStream();
    const python = Python.open({ home: typeof found === "string" ? "" : found.executable, stream });
    python.run(asking);
    using buffer = device.memory.allocate(4, { stream });
    const known = StridedMemoryView.fromBuffer(buffer, { shape: [1], dtype: "int32" });
    const before = device.memoryInfo().free;
    for (let i = 0; i < 8; i++) {
      using made = python.evaluate("allocated").$call(known, 2 ** 28); // 1 GiB each
      using view = StridedMemoryView.from(made, { stream });
      assertEquals([view.shape, view.dtype.name, view.device, view.stream], [[2 ** 28], "int32", device, stream]);
      view.buffer.fill(i, { stream, width: 4 });
      assertEquals(Array.from(await view.sliced(2 ** 28 - 1).toTypedArray(), Number), [i]);
    }
    assertEquals(liveExports(), 0);
    assert(before - device.memoryInfo().free < 2 ** 31, "eight pieces of 1 GiB are not all kept");
  },
);
