/**
 * The stream that our table of C functions names for a device, on which its consumers work: arrays they receive are
 * ordered on it, and so are those they create. And the memory that its allocator creates there. The streams belong to a
 * simulated device, the memory to none.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import { Cuda, type CudaStream, type PyObject, Python, StridedMemoryView } from "../../mod.ts";
import { openInterpreter } from "../../src/python/start_interpreter.ts";
import { setWorkStream, switchWorkStream } from "../../src/python/current_work_streams.ts";
import { intercept } from "../support/intercept.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";
import { FakeDevice } from "../support/fake_device.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const home = typeof found === "string" ? "" : found.executable;

const consumer = `
import ctypes, struct
P, I = ctypes.c_void_p, ctypes.c_int
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = P, [ctypes.py_object, ctypes.c_char_p]
errors = []
@ctypes.CFUNCTYPE(None, P, ctypes.c_char_p, ctypes.c_char_p)
def set_error(context, kind, message): errors.append([kind.decode(), message.decode()])

class Table:
    def __init__(self, array):
        capsule = type(array).__dlpack_c_exchange_api__
        allocate, give, take, _, stream = struct.unpack("<QQQQQ", ctypes.string_at(pointer(capsule, b"dlpack_exchange_api") + 16, 40))
        self.allocator = ctypes.CFUNCTYPE(I, P, ctypes.POINTER(P), P, P)(allocate)
        self.give = ctypes.PYFUNCTYPE(I, ctypes.py_object, ctypes.POINTER(P))(give)
        self.take = ctypes.PYFUNCTYPE(I, P, ctypes.POINTER(ctypes.py_object))(take)
        self.stream = ctypes.CFUNCTYPE(I, I, ctypes.c_int32, ctypes.POINTER(P))(stream)

    def current(self, number):
        out = P()
        assert self.stream(2, number, ctypes.byref(out)) == 0
        return out.value

    def hand_over(self, array):
        out = P()
        assert self.give(array, ctypes.byref(out)) == 0
        self.delete(out.value)

    def delete(self, tensor):
        ctypes.CFUNCTYPE(None, P)(ctypes.c_void_p.from_address(tensor + 16).value)(tensor)

    def allocate(self, number, count):
        extents = (ctypes.c_int64 * 1)(count)
        prototype = struct.pack("<QiiiBBHQQQ", 0, 2, number, 1, 2, 32, 1, ctypes.addressof(extents), 0, 0)
        out = P()
        errors.clear()
        return out.value if self.allocator(prototype, ctypes.byref(out), None, ctypes.cast(set_error, P)) == 0 else errors[0]

    def describe(self, tensor):
        data, kind, number, ndim, _, _, _, shape, strides, _ = struct.unpack("<QiiiBBHQQQ", ctypes.string_at(tensor + 32, 48))
        return [data != 0, kind, number, ctypes.c_int64.from_address(shape).value, ctypes.c_int64.from_address(strides).value]

    def take_in(self, tensor):
        back = ctypes.py_object()
        assert self.take(tensor, ctypes.byref(back)) == 0
        made = back.value
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(made))
        return made
`;

interface Opened {
  readonly device: FakeDevice;
  readonly table: PyObject;
  readonly locked: (work: () => void) => void;
}

function open(): Opened {
  const python = Python.open({ home });
  python.run(consumer);
  const interpreter = openInterpreter({ home });
  const table = python.evaluate("Table").$call(new Float32Array(1)); // it offers the table
  return { device: new FakeDevice(home), table, locked: (work) => interpreter.locked(work) };
}

/** The records and waits that a function makes on a simulated driver. */
function orders(cuda: Cuda, work: () => void): string[] {
  const log: string[] = [];
  const undo = intercept(cuda.driver, "event", (own) => ({
    cuEventRecord: (event, stream) => {
      log.push(`record ${stream}`);
      return own.cuEventRecord(event, stream);
    },
  }));
  const undoWaits = intercept(cuda.driver, "stream", (own) => ({
    cuStreamWaitEvent: (stream, event, flags) => {
      log.push(`wait ${stream}`);
      return own.cuStreamWaitEvent(stream, event, flags);
    },
  }));
  try {
    work();
  } finally {
    undoWaits();
    undo();
  }
  return log;
}

const ordered = (
  from: bigint,
  to: bigint,
) => [`push ${0xc0}`, "create", `record on ${from}`, `wait ${to}`, "destroy", "pop"];

test(...needs(missing, "the table names a stream until it is closed, after the one before, and orders on it"), () => {
  const { device, table, locked } = open();
  using _device = device;
  const cuda = Cuda.simulate({ devices: 4 });
  const [first, second] = [cuda.device(3).createStream(), cuda.device(3).createStream()];
  const array = device.exportArray(StridedMemoryView.fromTypedArray(new Float32Array(4)));
  const named = (stream: CudaStream) => orders(cuda, () => switchWorkStream(stream, locked));
  /** Checks the stream that is named, and how it is ordered after the array's home stream. */
  const asked = (handle: bigint) => {
    assertEquals([0, 3, 63, 64].map((number) => BigInt(table["current"](number))), [1n, handle, 1n, 1n]);
    table["hand_over"](array);
    assertEquals(device.asked(), ordered(0x77n, handle));
  };
  asked(1n);
  assertEquals(named(first), ["record 1", `wait ${first.handle}`]);
  asked(first.handle);
  assertEquals(named(first), [], "it is named already");
  assertEquals(named(second), [`record ${first.handle}`, `wait ${second.handle}`]);
  asked(second.handle);
  assertEquals(orders(cuda, () => first.close()), [], "another one was named since");
  asked(second.handle);
  const { handle } = second;
  assertEquals(orders(cuda, () => second.close()), [`record ${handle}`, "wait 1"]);
  asked(1n);
  // Streams that cannot be named: a foreign stream, and the per-thread stream.
  using third = cuda.device(3).createStream();
  named(third);
  assertEquals(named(cuda.device(3).foreignStream(0x5555n)), [`record ${third.handle}`, "wait 1"]);
  asked(1n);
  named(third);
  assertEquals(named(cuda.device(3).perThreadStream), [`record ${third.handle}`, "wait 1"]);
  asked(1n);
  setWorkStream(third, locked);
  asked(1n); // Python does not see a simulated device
  array.$close();
  assertEquals(liveExports(), 0);
});

test(
  ...needs(missing, "arrays already in order are not ordered again, and arrays of consumers are on the named stream"),
  () => {
    const { device, table, locked } = open();
    using _device = device;
    const cuda = Cuda.simulate({ devices: 4 });
    const stream = cuda.device(3).createStream();
    switchWorkStream(stream, locked);
    const { handle } = stream;
    const array = device.exportArray(StridedMemoryView.fromTypedArray(new Float32Array(4)), handle);
    table["hand_over"](array);
    assertEquals(device.asked(), [], "the consumer works on its home stream");
    const made = table["take_in"].$call(table["allocate"](3, 4));
    device.asked();
    const python = Python.open({ home });
    const ask = python.evaluate("lambda array, stream: str(array.__dlpack__(stream=stream))");
    ask(made, 0x99);
    assertEquals(device.asked(), ordered(handle, 0x99n));
    ask(made, handle);
    assertEquals(device.asked(), []);
    stream.close();
    ask(made, 0x99);
    assertEquals(device.asked(), ordered(1n, 0x99n), "which comes after all work on the closed one");
    made.$close();
    array.$close();
    assertEquals([device.allocated, liveExports()], [0, 0]);
  },
);

test(
  ...needs(missing, "the allocator allocates on a device that has had arrays of ours, and frees with the tensor"),
  () => {
    const { device, table } = open();
    using _device = device;
    const array = device.exportArray(StridedMemoryView.fromTypedArray(new Float32Array(4)));
    const allocated = [`push ${0xc0}`, "mode 2", "allocate 40", "mode 0", "pop"];
    const freed = [`push ${0xc0}`, "mode 2", "free", "mode 0", "pop", "release 3"];
    const tensor = table["allocate"](3, 10);
    assertEquals(table["describe"].$call(tensor).$value(), [true, 2, 3, 10, 1]);
    assertEquals([device.asked(), device.allocated], [["retain 3", ...allocated], 1]);
    table["delete"](tensor);
    assertEquals([device.asked(), device.allocated], [freed, 0]);
    const empty = table["allocate"](3, 0);
    assertEquals([table["describe"].$call(empty).$value().slice(0, 4), device.asked()], [[false, 2, 3, 0], []]);
    table["delete"](empty);
    assertEquals(table["allocate"].$call(5, 10).$value(), [
      "BufferError",
      "cannot allocate on device (2, 5): only on the host, and on CUDA devices where arrays of ours have been",
    ]);
    device.failing = ["allocate", 2];
    assertEquals(table["allocate"].$call(3, 10).$value(), [
      "MemoryError",
      "the CUDA driver returned error 2 when asked to allocate 40 bytes",
    ]);
    assertEquals(device.asked().filter((one) => one.startsWith("re")), ["retain 3", "release 3"]);
    array.$close();
    assertEquals(liveExports(), 0);
  },
);
