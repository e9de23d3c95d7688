/**
 * DLPack's table of C functions on a Python type: arrays are imported through it, without a call of `__dlpack__`, and
 * in the order of the stream that their owner works on. The owner is a class of ours with functions made by ctypes.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { Cuda, type CudaStream, Python, PythonError, StridedMemoryView } from "../../mod.ts";
import { openLibrary } from "../../src/ffi/library.ts";
import { pythonLibrary } from "../../src/python/find_library.ts";
import { libc } from "../../src/ffi/libc.ts";
import { cString } from "../../src/ffi/c_string.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";
import { intercept } from "../support/intercept.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const home = typeof found === "string" ? "" : found.executable;

const owner = `
import ctypes
class Table(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p)] + [
        (name, ctypes.c_void_p) for name in ("allocator", "from_object", "to_object", "dltensor", "stream")]
class Tensor(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("data", ctypes.c_void_p), ("type", ctypes.c_int32),
        ("id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
log, kept, asked, current = [], [], [], 0x77
numbers = (ctypes.c_float * 6)(1, 2, 3, 4, 5, 6)
shape, strides = (ctypes.c_int64 * 2)(2, 3), (ctypes.c_int64 * 2)(3, 1)

@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def delete(tensor): log.append("deleted")

@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
def from_object(value, out):
    log.append("handed over")
    tensor = Tensor(1, 3, None, ctypes.cast(delete, ctypes.c_void_p).value, 0, ctypes.addressof(numbers), value.device, 0,
        2, 2, 32, 1, ctypes.addressof(shape), ctypes.addressof(strides), 0)
    kept.append(tensor)
    out[0] = ctypes.addressof(tensor)
    return 0

@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
def stream(kind, device, out):
    asked.append((kind, device))
    out[0] = current
    return 0

names = []
def table(major, previous=None, give=None):
    made = Table(major, 9, previous and ctypes.addressof(previous), None,
        give or ctypes.cast(from_object, ctypes.c_void_p).value, None, None, ctypes.cast(stream, ctypes.c_void_p).value)
    kept.append(made)
    return made

def capsule(made, name=b"dlpack_exchange_api"):
    kept.append(name)
    return new_capsule(ctypes.addressof(made), name, None)

def owner(device, attribute=None, **more):
    class Owner:
        def __dlpack__(self, **options):
            log.append("asked by __dlpack__")
            raise BufferError("not this way")
        def __dlpack_device__(self): return (self.device, 0)
        def __bool__(self): raise BufferError("cannot be described")
    Owner.device = device
    for name, value in more.items(): setattr(Owner, name, value)
    if attribute is not None: Owner.__dlpack_c_exchange_api__ = attribute
    return Owner
`;

function open(): { python: Python; logged: () => unknown[] } {
  const python = Python.open({ home });
  python.run(owner);
  return {
    python,
    logged: () => {
      using log = python.evaluate("log");
      const seen = log.$value() as unknown[];
      python.run("log.clear()");
      return seen;
    },
  };
}

test(
  ...needs(missing, "an array is imported by its type's table: the same memory, no call of __dlpack__, one release"),
  () => {
    const { python, logged } = open();
    for (const type of ["table(1)", "table(2, table(1))", "table(3, table(2, table(1)))"]) {
      python.run(`Type = owner(1, capsule(${type}))`);
      for (let round = 0; round < 2; round++) { // first looked up, then cached
        const view = python.evaluate("Type()");
        assert(view instanceof StridedMemoryView);
        assertEquals([view.shape, view.dtype.name, view.device], [[2, 3], "float32", null]);
        assertEquals(BigInt(python.evaluate("ctypes.addressof(numbers)")), view.ptr);
        assertEquals(logged(), ["handed over"]);
        view.close();
        view.close();
        assertEquals(logged(), ["deleted"]);
      }
    }
  },
);

test(...needs(missing, "without a readable table, an array is imported as before"), () => {
  const { python, logged } = open();
  // Torch tensors that __dlpack__ refuses, and that torch's table does not check.
  const more = (what: string) =>
    "requires_grad=False, is_conj=lambda self: False, is_neg=lambda self: False".replace(`${what}False`, `${what}True`);
  const tensors = ["requires_grad=", "is_conj=lambda self: ", "is_neg=lambda self: "].map((what) =>
    `capsule(table(1)), ${more(what)}`
  );
  for (const type of ["None", "capsule(table(2))", 'capsule(table(1), b"something_else")', "42", ...tensors]) {
    python.run(`Type = owner(1, ${type})`);
    using source = python.evaluate("Type").$call();
    const error = assertThrows(() => StridedMemoryView.from(source), PythonError);
    assertEquals([error.type, logged()], ["BufferError", ["asked by __dlpack__"]]);
  }
  python.run(`Type = owner(1, capsule(table(1)), ${more("nothing")})`);
  python.evaluate("Type()").close();
  assertEquals(logged(), ["handed over", "deleted"]);
});

test(...needs(missing, "an owner that refuses by its table gives the reason"), () => {
  const { python, logged } = open();
  const { handle } = openLibrary({ ...pythonLibrary, path: python.library });
  // A function of the interpreter stands in for the owner's: it fails as the protocol says, with an exception set.
  const isTrue = libc().loading.dlsym(handle, cString("PyObject_IsTrue"));
  python.run(`Type = owner(1, capsule(table(1, give=${isTrue})))`);
  using source = python.evaluate("Type").$call();
  const error = assertThrows(() => StridedMemoryView.from(source), PythonError);
  assertEquals([error.type, /cannot be described/.test(error.message), logged()], ["BufferError", true, []]);
});

test(...needs(missing, "our stream waits for the one that the owner works on, unless no order is wanted"), () => {
  const { python, logged } = open();
  const cuda = Cuda.simulate();
  const device = cuda.device(0);
  using theirs = device.createStream();
  using ours = device.createStream();
  python.run("Type = owner(2, capsule(table(1)))");
  const waits: string[] = [];
  const undo = intercept(cuda.driver, "event", (own) => ({
    cuEventRecord: (event, stream) => {
      waits.push(`record ${stream}`);
      return own.cuEventRecord(event, stream);
    },
  }));
  const undoWaits = intercept(cuda.driver, "stream", (own) => ({
    cuStreamWaitEvent: (stream, event, flags) => {
      waits.push(`wait ${stream}`);
      return own.cuStreamWaitEvent(stream, event, flags);
    },
  }));
  try {
    const take = (stream: CudaStream | null, current: bigint) => {
      python.run(`current = ${current}`);
      waits.length = 0;
      using source = python.evaluate("Type").$call();
      const view = StridedMemoryView.from(source, stream === null ? { stream, device } : { stream });
      assertEquals([view.stream, view.device], [stream, device]);
      const seen = [...waits];
      view.close();
      assertEquals(logged(), ["handed over", "deleted"]);
      return seen;
    };
    assertEquals(take(ours, theirs.handle), [`record ${theirs.handle}`, `wait ${ours.handle}`]);
    assertEquals(take(ours, ours.handle), []); // they work on our stream
    assertEquals(take(ours, 0n), ["record 1", `wait ${ours.handle}`]); // NULL is the default stream
    assertEquals(take(null, theirs.handle), []);
  } finally {
    undoWaits();
    undo();
  }
});
