/** Calls of C and Python functions with any number of positional and named arguments: all arrive, in order. */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { kwargs, type PyObject, Python, PythonError } from "../../mod.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const open = () => Python.open({ home: typeof found === "string" ? "" : found.executable });

test(...needs(missing, "all arguments arrive, in order, however many there are, and are released afterwards"), () => {
  const python = open();
  python.run("import sys, builtins\nclass Given: pass\ngiven = Given()");
  const inPython: PyObject = python.evaluate("lambda *arguments, **named: [*arguments, *named.items()]");
  const inC: PyObject = python.evaluate("[].__class__.__call__.__self__ and sys.audit"); // in C, takes any number
  const max: PyObject = python.builtins["max"];
  const min: PyObject = python.import("operator")["itemgetter"];
  const given: PyObject = python.evaluate("given");
  const references = () => python.evaluate("sys.getrefcount(given)");
  const value = fc.oneof(fc.integer(), fc.double({ noNaN: true, noInteger: true }), fc.string(), fc.boolean());
  const names = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,6}$/), { maxLength: 5 });
  check(
    fc.property(fc.array(value, { maxLength: 70 }), names, (values, names) => {
      const before = references();
      using result: PyObject = inPython.$call(
        ...values,
        ...(names.length === 0 ? [] : [
          kwargs(Object.fromEntries(names.map((name) => [name, name.length]))),
        ]),
      );
      assertEquals(result.$value(), [...values, ...names.map((name) => [name, name.length])]);
      using held: PyObject = inPython.$call(...values, given);
      assertEquals(references(), before + 1);
      held.$close();
      assertEquals(references(), before);
    }),
    150,
  );
  for (const count of [1, 2, 3, 63, 64, 65, 66, 200]) {
    const values = Array.from({ length: count }, (_, i) => (i * 37) % count);
    if (count > 1) assertEquals(max(...values), count - 1, "by a function in C");
    assertEquals(inC("causeway.test", ...values), null);
    using getter: PyObject = min.$call(...values);
    using items: PyObject = getter.$call(Array.from({ length: count }, (_, i) => 0 - i));
    if (count > 1) assertEquals(items.$value(), values.map((i) => 0 - i));
    assertThrows(() => max(...values, { a: 1 }), PythonError, "TypeError");
    const before = references();
    assertThrows(() => python.builtins["len"](...values, given), PythonError, "TypeError");
    assertEquals(references(), before);
  }
});

test(...needs(missing, "more names than are kept still work as attributes, keys and arguments"), () => {
  const python = open();
  python.run("class Thing: pass");
  using thing: PyObject = python.evaluate("Thing()");
  const echo: PyObject = python.evaluate("lambda value, **named: [value, named]");
  for (let i = 0; i < 2500; i++) thing[`name${i}`] = i;
  for (let i = 0; i < 2500; i++) assertEquals(thing[`name${i}`], i);
  const many = Object.fromEntries(Array.from({ length: 2500 }, (_, i) => [`key${i}`, { [`inner${i}`]: i }]));
  using echoed: PyObject = echo.$call(many, kwargs({ other: { key0: 1 } }));
  const [value, named] = echoed.$value() as [Map<string, unknown>, Map<string, unknown>];
  assertEquals(value, new Map(Object.entries(many).map(([key, inner]) => [key, new Map(Object.entries(inner))])));
  assertEquals(named, new Map([["other", new Map([["key0", 1]])]]));
});
