/** Objects with only Python's buffer protocol are viewed unchanged: bytes, numbers, slices, and write access. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { ExchangeError } from "../../src/order/exchange_error.ts";
import { typestrOf } from "../../src/python/import_buffer.ts";
import type { PyObject } from "../../src/python/object.ts";
import { Python } from "../../src/python/python.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;

function open(): Python {
  const python = Python.open(typeof found === "string" ? {} : { home: found.executable });
  python.run(`
import array, ctypes, io, mmap

def made(kind, content):
    if kind == "bytes": return bytes(content)
    if kind == "bytearray": return bytearray(content)
    if kind == "array": return array.array("B", content)
    if kind == "getbuffer": return io.BytesIO(bytes(content)).getbuffer()
    if kind == "memoryview of bytes": return memoryview(memoryview(bytes(content)))
    if kind == "memoryview of bytearray": return memoryview(bytearray(content))
    if kind == "ctypes": return (ctypes.c_ubyte * len(content))(*content)
    mapped = mmap.mmap(-1, len(content))
    mapped.write(bytes(content))
    return mapped

def cast(buffer, format, shape): return memoryview(buffer).cast("B").cast(format, shape)
def part(buffer, start, stop, step): return buffer[start:stop:step]
def facts(buffer):
    view = memoryview(buffer)
    return [list(view.shape), list(view.strides), view.readonly, view.itemsize, view.tobytes().hex(), view.nbytes]
def grows(buffer):
    try: buffer.append(1)
    except BufferError: return False
    return True
pair = (type("Pair", (ctypes.Structure,), {"_fields_": [("x", ctypes.c_int), ("y", ctypes.c_float)]}) * 2)()
`);
  return python;
}

const kinds = [
  "bytes",
  "bytearray",
  "array",
  "getbuffer",
  "memoryview of bytes",
  "memoryview of bytearray",
  "ctypes",
  "mmap",
];
const dtypes = {
  B: "uint8",
  b: "int8",
  h: "int16",
  I: "uint32",
  q: "int64",
  f: "float32",
  d: "float64",
  "?": "bool",
} as const;

const buffers = fc.record({
  kind: fc.constantFrom(...kinds),
  format: fc.constantFrom(...Object.keys(dtypes) as (keyof typeof dtypes)[]), // its own keys
  shape: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 }),
  slice: fc.option(fc.tuple(fc.nat(4), fc.nat(4), fc.constantFrom(1, 2, 3, -1, -2)), { nil: null }),
  seed: fc.nat(255),
});

test(
  ...needs(missing, "a buffer of any kind, format and part is viewed in place, as Python describes it"),
  async () => {
    const python = open();
    const main = python.import("__main__");
    await check(fc.asyncProperty(buffers, async ({ kind, format, shape, slice, seed }) => {
      const itemsize = { B: 1, b: 1, h: 2, I: 4, q: 8, f: 4, d: 8, "?": 1 }[format];
      const count = shape.reduce((product, extent) => product * extent, itemsize);
      const content = Array.from({ length: count }, (_, i) => format === "?" ? (seed >> i % 8) & 1 : seed + i & 255);
      using whole: PyObject = main["cast"](main["made"](kind, content), format, shape);
      using buffer: PyObject = slice === null || shape.length > 1
        ? main["cast"](whole, format, shape)
        : main["part"](whole, ...slice);
      const [extents, strides, readonly, size, bytes] = main["facts"](buffer).$value();
      const view = StridedMemoryView.from(buffer);
      assertEquals([view.dtype.name, view.dtype.itemsize, view.readonly], [dtypes[format], size, readonly]);
      assertEquals([...view.shape], extents);
      assertEquals(view.strides.map((stride) => stride * itemsize), strides);
      const values = await view.toTypedArray();
      assertEquals(new Uint8Array(values.buffer, values.byteOffset, values.byteLength).toHex(), bytes);
      view.close();
    }));
  },
);

test(
  ...needs(missing, "memory cannot be resized while it is viewed, and can be afterwards; both sides see writes"),
  () => {
    const python = open();
    const main = python.import("__main__");
    using bytes: PyObject = main["made"]("bytearray", [1, 2, 3]);
    const view = StridedMemoryView.from(bytes);
    assertEquals(main["grows"](bytes), false);
    view.buffer.bytes()[1] = 9;
    assertEquals(main["facts"](bytes).$value()[4], "010903");
    view.close();
    assertEquals(main["grows"](bytes), true);
  },
);

test(...needs(missing, "elements that are not numbers are refused by name"), () => {
  const python = open();
  using pair: PyObject = python.import("__main__")["pair"];
  assertThrows(() => StridedMemoryView.from(pair), ExchangeError, "expected one number");
  for (const format of ["", "T{i:x:}", "2h", "s", "hh", "w", "O"]) {
    assertThrows(() => typestrOf(format, 4), ExchangeError, "expected one number");
  }
  assertEquals(["@h", "=h", "<h", "!h", ">h", "h"].map((format) => typestrOf(format, 2)), [
    "<i2",
    "<i2",
    "<i2",
    ">i2",
    ">i2",
    "<i2",
  ]);
  assertEquals([typestrOf(">b", 1), typestrOf("Zd", 16), typestrOf("?", 1)], ["|i1", "<c16", "|b1"]);
});

test(
  ...needs(missing, "Python's bytes are sent over UCX in place, and messages are received into writable ones"),
  async () => {
    const python = open();
    const main = python.import("__main__");
    using ucx = Ucx.open();
    await using sender = ucx.createWorker();
    await using receiver = ucx.createWorker();
    const endpoint = await sender.connect(receiver.address);
    for (const kind of kinds) {
      using from: PyObject = main["made"](kind, [5, 6, 7]);
      using into: PyObject = main["made"]("bytearray", [0, 0, 0, 0]);
      const receive = receiver.recv(into);
      await endpoint.send(from);
      assertEquals(await receive, { length: 3, tag: 0n });
      assertEquals(main["facts"](into).$value()[4], "05060700");
      assert(main["grows"](into));
    }
    using constant: PyObject = main["made"]("memoryview of bytes", [1]);
    let refused: unknown;
    await receiver.recv(constant).catch((error: unknown) => refused = error);
    assert(refused instanceof TypeError && refused.message.includes("read-only"));
  },
);
