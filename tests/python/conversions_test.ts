/** Dates, sets, tuples, bytes and floats to Python and back, and dicts and lists as JavaScript uses them. */
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { test } from "node:test";
import { type PyObject, Python, PythonError } from "../../mod.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const open = () => Python.open({ home: typeof found === "string" ? "" : found.executable });

const [first, last] = [new Date("0001-01-01T00:00:00.000Z"), new Date("9999-12-31T23:59:59.999Z")];
const date = fc.oneof(
  fc.date({ min: first, max: last, noInvalidDate: true }),
  fc.constantFrom(first, last, new Date(0)),
);

test(
  ...needs(missing, "a Date becomes the same moment in UTC, and any moment in Python becomes its millisecond"),
  () => {
    const python = open();
    const iso: PyObject = python.evaluate(
      "lambda moment: (moment.tzname(), moment.replace(tzinfo=None).isoformat(timespec='milliseconds') + 'Z')",
    );
    const later: PyObject = python.evaluate(
      "lambda moment, micros, zone: [(moment + __import__('datetime').timedelta(microseconds=micros)).astimezone(" +
        "__import__('datetime').timezone(__import__('datetime').timedelta(minutes=zone)))]",
    );
    const between = fc.date({ min: new Date("0002-01-01"), max: new Date("9998-01-01"), noInvalidDate: true });
    check(
      fc.property(date, between, fc.nat(999), fc.integer({ min: -1439, max: 1439 }), (date, other, micros, zone) => {
        using converted: PyObject = iso(date);
        assertEquals(converted.$value(), ["UTC", date.toISOString().replace(/^\+00/, "")]);
        using back: PyObject = later(other, micros, zone);
        assertEquals(back.$value(), [other], "in any time zone, and microseconds are cut off");
      }),
      200,
    );
    for (const wrong of [new Date(NaN), new Date(first.getTime() - 1), new Date(last.getTime() + 1)]) {
      assertThrows(() => iso(wrong), RangeError, "the years 1 to 9999");
    }
    using local: PyObject = python.evaluate("__import__('datetime').datetime(2026, 7, 1, 12, 30)");
    assertEquals(local.$value(), new Date(2026, 6, 1, 12, 30), "without a time zone it is local time");
    using derived: PyObject = python.evaluate(
      "type('Own', (__import__('datetime').datetime,), {})(2026, 7, 1, tzinfo=__import__('datetime').timezone.utc)",
    );
    assertEquals(derived.$value(), new Date("2026-07-01"));
    assertEquals(local["year"], 2026, "it stays an object with its methods");
  },
);

test(...needs(missing, "a Set of anything hashable becomes a set, and a set or a frozenset is copied to a Set"), () => {
  const python = open();
  const sorted: PyObject = python.evaluate("lambda value: (type(value).__name__, sorted(value, key=repr))");
  const echo: PyObject = python.evaluate("lambda value, kind: [kind(value)]");
  const kinds = ["set", "frozenset"].map((kind) => python.builtins[kind]);
  const item = fc.oneof(fc.integer({ min: 2 }), fc.string({ unit: "grapheme-ascii" }), fc.constant(null));
  check(
    fc.property(fc.uniqueArray(item), fc.constantFrom(...kinds), (items, kind) => {
      const set = new Set(items);
      using converted: PyObject = sorted(set);
      const [type, values] = converted.$value() as [string, unknown[]];
      assertEquals([type, new Set(values)], ["set", set]);
      using back: PyObject = echo(set, kind);
      assertEquals(back.$value(), [set]);
    }),
    100,
  );
  using derived: PyObject = python.evaluate("type('Own', (set,), {})([1, 2])");
  assertEquals(derived.$value(), new Set([1, 2]));
  const loop = new Set<unknown>();
  loop.add(loop);
  assertThrows(() => sorted(loop), TypeError, "contains itself");
  assertThrows(() => sorted(new Set([[1]])), PythonError, "unhashable");
});

test(...needs(missing, "tuples, bytes and floats have these types in Python, and their original content"), () => {
  const python = open();
  const repr: PyObject = python.builtins["repr"];
  const bytes: PyObject = python.evaluate("lambda value: (type(value).__name__, value.hex())");
  check(fc.property(fc.uint8Array(), fc.nat(3), fc.integer(), (content, from, number) => {
    using made = python.bytes(content.subarray(from));
    using converted: PyObject = bytes(made);
    assertEquals(converted.$value(), ["bytes", content.slice(from).toHex()]);
    using float = python.float(number);
    assertEquals(repr(float), repr(number) + ".0");
    using tuple = python.tuple(number, [number], float);
    assertEquals(repr(tuple), `(${number}, [${number}], ${number}.0)`);
  }));
  assertEquals(repr(python.tuple()), "()");
  assertEquals(repr(python.bytes(new Float32Array([1]))), "b'\\x00\\x00\\x80?'");
  assertEquals(repr(python.bytes(Uint8Array.of(65, 66).buffer)), "b'AB'");
});

const name = fc.constantFrom("a", "b", "items", "get", "length", "value", "\u00fcber", "key 1");
const step = fc.record({ name, what: fc.constantFrom("set", "delete", "read", "has", "length"), value: fc.nat(9) });

test(...needs(missing, "property names of a dict are its keys, except its methods, in every operation"), () => {
  const python = open();
  const kinds = ["dict", "__import__('collections').OrderedDict", "type('Own', (dict,), {})"];
  kinds.push("__import__('collections').UserDict"); // a mapping that is no dict
  const asDict: PyObject = python.builtins["dict"];
  check(
    fc.property(fc.constantFrom(...kinds), fc.array(step, { maxLength: 12 }), (kind, steps) => {
      using dict: PyObject = python.evaluate(`${kind}()`);
      const model = new Map<string, number>();
      for (const { name, what, value } of steps) {
        const isMethod = name === "items" || name === "get";
        if (what === "has") assertEquals(name in dict, isMethod || name === "length" || model.has(name));
        if (what === "length" && !model.has("length")) assertEquals(dict["length"], model.size);
        if (what === "read" && !isMethod && name !== "length") {
          if (model.has(name)) assertEquals(dict[name], model.get(name));
          else assertThrows(() => dict[name], PythonError, "KeyError");
        }
        if (isMethod) continue;
        if (what === "set") model.set(name, dict[name] = value);
        if (what !== "delete") continue;
        if (model.delete(name)) delete dict[name];
        else assertThrows(() => delete dict[name], PythonError, "KeyError");
      }
      using copy = asDict.$call(dict);
      assertEquals(copy.$value(), model);
    }),
    200,
  );
  using dict: PyObject = python.evaluate("{}");
  assertThrows(() => dict["items"] = 1, PythonError, "read-only");
  dict.$setItem("items", 1);
  assertEquals([typeof dict["items"], dict.$item("items")], ["function", 1]);
  using own: PyObject = python.evaluate(
    "type('Own', (dict,), {'__setattr__': lambda self, name, value: self.update({name: -value})})()",
  );
  own["a"] = 3;
  assertEquals(own.$value(), new Map([["a", -3]]), "a class that defines attributes itself decides");
  using frozen: PyObject = python.evaluate("__import__('types').MappingProxyType({'a': 1, 7: 2})");
  assertEquals([frozen["a"], frozen[7], { ...frozen }], [1, 2, { a: 1, 7: 2 }]);
  assertThrows(() => frozen["b"] = 1, PythonError, "does not support item assignment");
  // What is set there was an attribute, which no process that is started sees.
  const os: PyObject = python.import("os");
  os["environ"]["CAUSEWAY_KEY"] = "1";
  assertEquals([os["getenv"]("CAUSEWAY_KEY"), os["environ"]["CAUSEWAY_KEY"]], ["1", "1"]);
  assert(delete os["environ"]["CAUSEWAY_KEY"]);
  assertEquals(os["getenv"]("CAUSEWAY_KEY"), null);
  const list: PyObject = python.evaluate("[1, 2, 3]");
  assertEquals([list["length"], python.evaluate("'x', 'y'")["length"], [...list]], [3, 2, [1, 2, 3]]);
  list[0] = 7;
  assert(delete list[1]);
  assertEquals([list.$value(), 1 in list, 2 in list], [[7, 3], true, false]);
  assertThrows(() => python.evaluate("object()")["length"], PythonError, "AttributeError");
  assertEquals(python.evaluate("type('Own', (), {'length': 5, '__len__': lambda self: 2})()")["length"], 5);
});

// The columns of a table of Polars are items that are no properties, and the error did not say what to write.
test(
  ...needs(missing, "an attribute that is missing is an error that says how an item is read, if there may be one"),
  () => {
    const python = open();
    using table: PyObject = python.evaluate("type('Table', (), {'__getitem__': lambda self, key: key * 2})()");
    const error = assertThrows(() => table["a b"], PythonError, "no attribute 'a b'");
    assertStringIncludes(error.message, 'read that by $item("a b")');
    assertEquals(table.$item("a b"), "a ba b");
    for (const other of ["[1]", "(1,)", "range(3)", "object()", "type('Own', (list,), {})()", "1 + 0j"]) {
      using object: PyObject = python.evaluate(other);
      const message = assertThrows(() => object["missing"], PythonError, "no attribute 'missing'").message;
      assert(!message.includes("$item"), message);
    }
  },
);

// The list had as many items as the array at first, some of them NULL, or too few.
test(...needs(missing, "an array that a getter of an item changes becomes a list of its length before"), () => {
  const python = open();
  using repr: PyObject = python.builtins["repr"];
  for (const length of [1, 2, 9]) {
    const items: unknown[] = [
      1,
      {
        get x() {
          items.length = length;
          return 2;
        },
      },
      3,
      4,
    ];
    assertEquals(repr(items), length > 2 ? "[1, {'x': 2}, 3, 4]" : "[1, {'x': 2}, None, None]");
  }
});

// astimezone() is an hour off in the hour that clocks skip.
test(
  ...needs(missing, "a datetime without a zone is local time as its timestamp() says, also where clocks are set"),
  () => {
    const python = open();
    const set = (zone: string) =>
      python.run(`import datetime, os, time\nos.environ["TZ"] = ${JSON.stringify(zone)}\ntime.tzset()`);
    const before = python.evaluate("__import__('os').environ.get('TZ', '')") as unknown as string;
    set("EST5EDT,M3.2.0,M11.1.0");
    try {
      const both: PyObject = python.evaluate(
        "lambda day, minute, fold: (lambda t: [t, int(t.timestamp())])((datetime.datetime(2021, 1, 1) + " +
          "datetime.timedelta(days=day, minutes=minute)).replace(fold=fold))",
      );
      const days = fc.oneof(fc.constantFrom(72, 310), fc.nat(364)); // March 14, November 7
      check(
        fc.property(days, fc.nat(24 * 60), fc.nat(1), (day, minute, fold) => {
          using pair: PyObject = both(day, minute, fold);
          const [moment, seconds] = pair.$value() as [Date, number];
          assertEquals(moment.getTime(), seconds * 1000);
        }),
        1000,
      );
    } finally {
      if (before === "") python.run("import os, time\nos.environ.pop('TZ', None)\ntime.tzset()");
      else set(before);
    }
  },
);
