/**
 * Our arrays through DLPack's table of C functions: what a C consumer receives by them, here through ctypes, and
 * through tvm-ffi, which does so for every argument.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import { DType, Python, PythonError, slice, StridedMemoryView } from "../../mod.ts";
import { check, fc } from "../support/property.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const foundTvm = findPython("tvm_ffi", "numpy");
const missingTvm = typeof foundTvm === "string" ? foundTvm : null;

const consumer = `
import ctypes, struct
P, I = ctypes.c_void_p, ctypes.c_int
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = P, [ctypes.py_object, ctypes.c_char_p]

def functions(array):
    table = pointer(type(array).__dlpack_c_exchange_api__, b"dlpack_exchange_api")
    fields = struct.unpack("<IIQQQQQQ", ctypes.string_at(table, 56))
    allocate = ctypes.CFUNCTYPE(I, P, ctypes.POINTER(P), P, ctypes.CFUNCTYPE(None, P, ctypes.c_char_p, ctypes.c_char_p))
    give = ctypes.PYFUNCTYPE(I, ctypes.py_object, ctypes.POINTER(P)) # looks whether an exception is set
    take = ctypes.PYFUNCTYPE(I, P, ctypes.POINTER(ctypes.py_object))
    stream = ctypes.CFUNCTYPE(I, I, ctypes.c_int32, ctypes.POINTER(P))
    return fields[:3] + (allocate(fields[3]), give(fields[4]), take(fields[5]), fields[6], stream(fields[7]))

def header(array):
    return list(functions(array)[:3]) + [functions(array)[6]]

def fields(address):
    major, minor, _, own, flags = struct.unpack("<IIQQQ", ctypes.string_at(address, 32))
    data, kind, device, ndim, code, bits, lanes, shape, strides, offset = struct.unpack(
        "<QiiiBBHQQQ", ctypes.string_at(address + 32, 48))
    numbers = lambda at: list((ctypes.c_int64 * ndim).from_address(at)) if ndim else at
    return [major, minor, flags, data, kind, device, code, bits, lanes, numbers(shape), numbers(strides), offset], own

def delete(address):
    own = fields(address)[1]
    if own: ctypes.CFUNCTYPE(None, P)(own)(address)

def hand_over(array):
    out = P()
    assert functions(array)[4](array, ctypes.byref(out)) == 0
    seen = fields(out.value)[0]
    delete(out.value)
    return seen

def round_trip(array):
    out, back = P(), ctypes.py_object()
    assert functions(array)[4](array, ctypes.byref(out)) == 0
    assert functions(array)[5](out.value, ctypes.byref(back)) == 0
    made = back.value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(made)) # the reference that was returned; the name has its own
    return made

def chain(array, links):
    for _ in range(links): array = round_trip(array)
    return array.shape

def current(array, kind):
    out = P(0xdead)
    return [functions(array)[7](kind, 0, ctypes.byref(out)), out.value or 0]

errors = []
@ctypes.CFUNCTYPE(None, P, ctypes.c_char_p, ctypes.c_char_p)
def set_error(context, kind, message): errors.append([context, kind.decode(), message.decode()])

def allocate(array, kind, code, bits, lanes, shape):
    errors.clear()
    extents = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    number = 7 if kind == 2 else 0 # of a device that this machine does not have
    prototype = struct.pack("<QiiiBBHQQQ", 0, kind, number, len(shape), code, bits, lanes, ctypes.addressof(extents), 0, 0)
    out = P()
    result = functions(array)[3](prototype, ctypes.byref(out), 77, set_error)
    if result != 0: return [result, list(errors)]
    seen = fields(out.value)[0]
    size = 1
    for extent in shape: size *= extent
    ctypes.memset(seen[3], 0x5a, (size * bits * lanes + 7) // 8) # all of it can be written
    delete(out.value)
    return [result, seen]

def take_wrong(array, code):
    tensor = ctypes.create_string_buffer(struct.pack("<IIQQQ", 1, 3, 0, 0, 0) + struct.pack(
        "<QiiiBBHQQQ", 64, code >> 16, 7, 0, code & 0xff, 32, 1, 0, 0, 0))
    back = ctypes.py_object()
    return functions(array)[5](ctypes.addressof(tensor), ctypes.byref(back))
`;

function open(): { python: Python; call: (name: string, ...args: unknown[]) => unknown } {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  python.run(consumer);
  return {
    python,
    call(name, ...args) {
      using result = python.evaluate(name).$call(...args);
      return result.$value();
    },
  };
}

const array = Float32Array.from({ length: 24 }, (_, i) => i);

test(...needs(missing, "the table says its version, and has no function for tensors that are only borrowed"), () => {
  const { call } = open();
  assertEquals(call("header", array), [1, 3, 0, 0]);
});

test(
  ...needs(missing, "a consumer in C gets the array in place, and its memory is released when it is deleted"),
  () => {
    const { call } = open();
    const whole = StridedMemoryView.fromTypedArray(array, { shape: [4, 6] });
    for (
      const view of [
        whole,
        whole.sliced(slice(null, null, -2), slice(1, 4)),
        whole.sliced(1, 2),
        whole.sliced(0, slice(0, 0)),
      ]
    ) {
      const [major, minor, flags, data, type, id, code, bits, lanes, shape, strides, offset] = call(
        "hand_over",
        view,
      ) as unknown[];
      assertEquals([major, minor, flags, type, id, code, bits, lanes, offset], [1, 3, 0, 1, 0, 2, 32, 1, 0]);
      assertEquals(BigInt(data as number), view.ptr);
      assertEquals([shape, strides], view.shape.length === 0 ? [0, 0] : [[...view.shape], [...view.strides]]);
    }
    assertEquals(liveExports(), 0);
  },
);

test(...needs(missing, "a tensor of a consumer in C becomes an array of ours over the same memory"), () => {
  const { python, call } = open();
  const whole = StridedMemoryView.fromTypedArray(array, { shape: [4, 6] });
  for (
    const view of [whole, whole.sliced(slice(null, null, -2), slice(1, 4)), whole.permuted([1, 0]), whole.sliced(1, 2)]
  ) {
    using made = python.evaluate("round_trip").$call(view);
    {
      using back = StridedMemoryView.from(made);
      assertEquals([back.ptr, back.shape, back.dtype.name], [view.ptr, view.shape, "float32"]);
      assertEquals(`${back}`, `${view}`);
    }
    assertEquals(call("hand_over", made), call("hand_over", view)); // and it is exported like ours
  }
  assertEquals(liveExports(), 0);
  assertEquals(call("chain", whole, 20), [4, 6]); // each retains the previous one, and releases it at its own end
  assertEquals(liveExports(), 0);
});

test(...needs(missing, "a tensor that cannot become an array of ours is refused with an exception"), () => {
  const { call } = open();
  const wrong = {
    "elements of the DLPack type": 99,
    "memory of device (2, 7)": 2 << 16 | 2,
    "memory of device (10, 7)": 10 << 16 | 2,
  };
  for (const [words, code] of Object.entries(wrong)) {
    const error = assertThrows(() => call("take_wrong", array, code < 1 << 16 ? 1 << 16 | code : code), PythonError);
    assertEquals([error.type, error.message.includes(words)], ["BufferError", true], error.message);
  }
  assertEquals(liveExports(), 0);
});

test(...needs(missing, "work goes to the default stream of a CUDA device"), () => {
  const { call } = open();
  assertEquals([call("current", array, 1), call("current", array, 2)], [[0, 0], [0, 1]]);
});

test(...needs(missing, "the allocator makes dense tensors of any type in host memory, which free themselves"), () => {
  const { call } = open();
  const shapes = fc.array(fc.nat(5), { maxLength: 5 });
  check(
    fc.property(
      fc.constantFrom(...DType.all()),
      fc.integer({ min: 1, max: 3 }),
      shapes,
      ({ dlpack, bits }, lanes, shape) => {
        const [result, seen] = call("allocate", array, 1, dlpack.code, bits, lanes, shape) as [number, unknown[]];
        assertEquals(result, 0);
        const [major, minor, flags, data, type, id, code, itsBits, itsLanes, extents, strides, offset] = seen;
        assertEquals([major, minor, flags, type, id, code, itsBits, itsLanes, offset], [
          1,
          3,
          0,
          1,
          0,
          dlpack.code,
          bits,
          lanes,
          0,
        ]);
        const dense = shape.map((_, axis) => shape.slice(axis + 1).reduce((product, extent) => product * extent, 1));
        assertEquals([extents, strides], shape.length === 0 ? [0, 0] : [shape, dense]);
        const isEmpty = shape.includes(0);
        assert(isEmpty ? data === 0 : data !== 0 && Number(data) % 256 === 0, `${data}`);
      },
    ),
    150,
  );
  const refused = (...args: unknown[]) => {
    const [result, errors] = call("allocate", array, ...args) as [number, unknown[][]];
    assertEquals([result, errors.length, errors[0]?.[0]], [-1, 1, 77]);
    return errors[0]?.slice(1);
  };
  assertEquals(refused(2, 2, 32, 1, [4]), [
    "BufferError",
    "cannot allocate on device (2, 7): only on the host, and on CUDA devices where arrays of ours have been",
  ]);
  assertEquals(refused(1, 2, 32, 1, [4, -1]), ["BufferError", "cannot allocate an array of shape (4, -1)"]);
  assertEquals(refused(1, 2, 32, 1, [2 ** 40, 2 ** 40])?.[0], "MemoryError");
});

test(...needs(missingTvm, "tvm-ffi takes an array of ours as an argument, and returns one"), () => {
  const python = Python.open({ home: typeof foundTvm === "string" ? "" : foundTvm.executable });
  python.run("import tvm_ffi; echo = tvm_ffi.get_global_func('testing.echo')");
  const view = StridedMemoryView.fromTypedArray(array, { shape: [4, 6] });
  {
    using back = python.evaluate("echo")(view);
    assertEquals([back.ptr, back.shape, `${back}`], [view.ptr, view.shape, `${view}`]);
  }
  assertEquals(liveExports(), 0);
});
