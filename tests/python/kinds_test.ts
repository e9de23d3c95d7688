/**
 * The type of a Python object determines what it becomes in JavaScript: for every kind, the value that Python itself
 * writes; for a class that changes, what it is at that time.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { type PyObject, Python, StridedMemoryView } from "../../mod.ts";
import { ObjectHeads } from "../../src/python/object_heads.ts";
import { FfiError } from "../../src/ffi/errors.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const withNumpy = findPython("numpy");
const missingNumpy = typeof withNumpy === "string" ? withNumpy : null;
const open = () => Python.open({ home: typeof found === "string" ? "" : found.executable });

/** How Python writes a value, and how JavaScript writes what it became: both as text that names the kind. */
const oracle = `
import json, numbers
def written(value):
    if value is None or isinstance(value, bool): return json.dumps(value)
    if isinstance(value, int): return "number " + str(int(value)) if abs(value) < 2**53 else "bigint " + str(int(value))
    if isinstance(value, float): return "float " + float(value).hex()
    return "text " + json.dumps(str(value))
class Int(int): pass
class Float(float): pass
class Text(str): pass
`;

function written(value: unknown, dumps: PyObject): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "bigint") return `bigint ${value}`;
  if (typeof value === "string") return `text ${dumps(value)}`;
  if (typeof value !== "number") return `an object: ${value}`;
  return `number ${value}`;
}

test(...needs(missing, "numbers, strings, booleans and None of every class are the values that Python writes"), () => {
  const python = open();
  python.run(oracle);
  const describe: PyObject = python.evaluate("written");
  const dumps: PyObject = python.import("json").$get("dumps");
  const integer = fc.oneof(
    fc.integer(),
    fc.maxSafeInteger(),
    fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }),
    fc.constantFrom(-1n, 2n ** 53n, -(2n ** 53n), 2n ** 53n - 1n, 2n ** 63n, -(2n ** 63n), 10n ** 400n, -(10n ** 400n)),
  ).map(String);
  const expressions = fc.oneof(
    fc.tuple(fc.constantFrom("int", "Int"), integer).map(([type, value]) => `${type}(${value})`),
    fc.tuple(fc.constantFrom("float", "Float"), fc.double()).map(([type, value]) => `${type}('${value}')`),
    fc.tuple(fc.constantFrom("str", "Text"), fc.string({ unit: "binary", maxLength: 60 })).map(([type, value]) =>
      `${type}(${JSON.stringify(value)})`
    ),
    fc.constantFrom("None", "True", "False", "Float(-1)", "-1.0", "float('nan')", "-0.0"),
  );
  check(
    fc.property(expressions, (expression) => {
      const value: unknown = python.evaluate(expression);
      const inside: unknown[] = python.evaluate(`[${expression}, (${expression},)]`).$value();
      assert(
        Object.is(inside[0], value) && Object.is((inside[1] as unknown[])[0], value),
        "the same within a container",
      );
      const theirs: string = python.evaluate(`written(${expression})`);
      if (theirs.startsWith("float ")) {
        const number = typeof value === "number" ? value : NaN;
        assertEquals(python.builtins["float"].$call(number).$get("hex")(), theirs.slice(6), expression);
        assertEquals(Object.is(number, -0), theirs === "float -0x0.0p+0");
      } else {
        assertEquals(written(value, dumps), theirs, expression);
        assertEquals(describe(value), theirs, "and back");
      }
    }),
    200,
  );
});

test(...needs(missingNumpy, "a NumPy scalar is the value of its item(), or an object"), () => {
  const python = open();
  python.run("import numpy as np");
  const names = ["bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "intc", "longlong"];
  const real = ["float16", "float32", "float64"];
  const number = fc.oneof(fc.integer({ min: -300, max: 300 }), fc.maxSafeInteger(), fc.double({ noNaN: true }));
  check(
    fc.property(fc.constantFrom(...names, ...real), number, (name, number) => {
      const text = `np.array([${Number.isFinite(number) ? number : 0}], float).astype(np.${name})[0]`;
      assertEquals(python.evaluate(text), python.evaluate(`${text}.item()`), text);
    }),
    300,
  );
  for (const text of ["np.uint64(2**64 - 1)", "np.int64(-2**63)", "np.float16('nan')", "np.str_('a')"]) {
    assertEquals(python.evaluate(text), python.evaluate(`${text}.item()`), text);
  }
  // Their item is a datetime in some units only, and a number without a unit, or None, in others.
  const times = ["'2020-01-01'", "'2020-01-01', 'ns'", "5, 'ns'", "'20000-01-01'", "'NaT'"].map((moment) =>
    `np.datetime64(${moment})`
  );
  const spans = ["3, 'D'", "5, 'ns'", "5, 'Y'", "5", "'NaT'"].map((span) => `np.timedelta64(${span})`);
  for (const text of ["np.complex64(1j)", ...times, ...spans, "np.longdouble(1)"]) {
    using object: PyObject = python.evaluate(text);
    assertEquals(String(object), python.evaluate(`str(${text})`), text);
  }
});

test(...needs(missing, "a class that gains or loses an array protocol is treated as what it is by then"), () => {
  const python = open();
  python.run(`
import ctypes
class Changing: pass
memory = (ctypes.c_double * 3)(1, 2, 3)
interface = property(lambda self: {"version": 3, "shape": (3,), "typestr": "<f8", "data": (ctypes.addressof(memory), False)})
`);
  const make: PyObject = python.evaluate("Changing");
  for (let i = 0; i < 3; i++) {
    using object = make();
    assertEquals(typeof object, "function", "an object");
    python.run("Changing.__array_interface__ = interface");
    using view = make();
    assert(view instanceof StridedMemoryView);
    assertEquals(`${view}`, "[1. 2. 3.]");
    python.run("del Changing.__array_interface__");
  }
});

test(...needs(missing, "more types than are remembered are distinguished, and so are types that are gone"), () => {
  const python = open();
  python.run("def made(i): return type(f'T{i}', (int,) if i % 2 else (str,), {})(i)");
  const made: PyObject = python.evaluate("made");
  for (let i = 0; i < 3000; i++) assertEquals(made(i), i % 2 === 1 ? i : String(i));
});

test("the type in an object's head is found wherever it is, or reported missing", () => {
  using arena = new NativeArena();
  for (const at of [0, 8, 16, 24]) {
    const heads = [0x7f0012345678n, 0x7fff87654321n].map((type) => {
      const { address, bytes } = arena.bytes(64);
      new DataView(bytes.buffer, bytes.byteOffset).setBigUint64(at, type, true);
      return [address, type] as const;
    });
    const found = new ObjectHeads(heads);
    for (const [object, type] of heads) assertEquals(found.typeOf(object), Number(type));
    const [[first = 0n] = [], [second = 0n] = []] = heads;
    const elsewhere = (at + 8) % 32; // where one of them also has its type
    new DataView(ffiPort().memory(first, 64)).setBigUint64(elsewhere, heads[0]?.[1] ?? 0n, true);
    const again = new ObjectHeads(heads);
    for (const [object, type] of heads) assertEquals(again.typeOf(object), Number(type));
    assertThrows(() => new ObjectHeads([[first, 1n], [second, 2n]]), FfiError, "do not begin with their type");
  }
});
