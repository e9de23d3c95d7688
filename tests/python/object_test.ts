/**
 * Python objects as JavaScript's: set attributes and items exist, deleted ones do not, looked-up objects are released.
 */
import { assert, assertEquals, assertFalse, assertStringIncludes, assertThrows } from "@std/assert";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { inspect } from "node:util";
import { liveExports } from "../../src/order/reclaim.ts";
import { exportArrowStream } from "../../src/public/arrow.ts";
import { ArrowArray, kwargs, type PyObject, Python, PythonError, StridedMemoryView } from "../../mod.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const withNumpy = findPython("numpy");
const missingNumpy = typeof withNumpy === "string" ? withNumpy : null;
const open = () => Python.open({ home: typeof found === "string" ? "" : found.executable });

/** Code units of every kind, lone surrogates among them, in any order. */
const units = fc.array(
  fc.oneof(
    fc.integer({ min: 0, max: 0xffff }),
    fc.integer({ min: 0xd7ff, max: 0xe000 }),
    fc.constantFrom(0, 0xfeff, 0xfffe),
  ),
  { maxLength: 12 },
).map((codes) => String.fromCharCode(...codes));

test(...needs(missing, "a string of any code units is the same string in Python, and comes back"), () => {
  const python = open();
  const identity: PyObject = python.evaluate("lambda value: value");
  const codes: PyObject = python.evaluate(
    "lambda text: list(memoryview(text.encode('utf-16-le', 'surrogatepass')).cast('H')) if text else []",
  );
  check(fc.property(units, (text) => {
    assertEquals(identity(text), text);
    using seen = codes.$call(text);
    assertEquals(seen.$value(), Array.from({ length: text.length }, (_, i) => text.charCodeAt(i)));
  }));
  for (let code = 0; code < 0x10000; code += 97) {
    assertEquals(identity(String.fromCharCode(code)), String.fromCharCode(code));
  }
  for (const character of ["a", "\u00e9", "\u20ac", "\u{1f600}", "\ud800"]) {
    for (const length of [0, 1, 23, 24, 25, 47, 48, 49, 1365, 1366, 2048, 4095, 4096, 4097, 9000]) {
      const long = character.repeat(length);
      assertEquals(identity(long), long);
      assertEquals(identity.$call([long, `b${long}`]).$value(), [long, `b${long}`]);
    }
  }
  assertEquals(identity("\ufeffx"), "\ufeffx", "it is a character here, not a byte order mark");
  assertEquals(python.evaluate("'a\\udcffb'"), "a\udcffb");
  assertThrows(() => python.evaluate("'\ud800'"), TypeError, "half a surrogate pair"); // source text is UTF-8
  assertThrows(() => python.import("m\ud800"), TypeError, "half a surrogate pair");
});

test(
  ...needs(missing, "a file name of any bytes comes back from JavaScript as it was, and so does the error about it"),
  () => {
    const python = open();
    const folder = mkdtempSync(`${tmpdir()}/causeway-names-`);
    try {
      python.run(`
import os
def make(number, folder):
    open(os.path.join(os.fsencode(folder), b"x" + bytes([number])), "w").close()
`);
      const make = python.evaluate("make");
      const bytes = Array.from({ length: 255 }, (_, i) => i + 1).filter((byte) => byte !== 47);
      for (const byte of bytes) make(byte, folder);
      const os = python.import("os");
      using names = os["listdir"].$call(folder);
      const listed = names.$value() as string[];
      assertEquals(listed.length, bytes.length);
      for (const name of listed) os["stat"].$call(`${folder}/${name}`).$close();
      assertEquals(
        listed.map((name) => (os["fsencode"].$call(name).$value() as Uint8Array)[1] ?? 0).toSorted((a, b) => a - b),
        bytes,
      );
      const error = assertThrows(() => os["stat"](`${folder}/none\udc80`), PythonError);
      assertEquals(error.type, "FileNotFoundError");
      assertStringIncludes(error.message, "none\\udc80");
      const raw = assertThrows(() => python.run("raise ValueError('lost: \\udc80')"), PythonError);
      assertEquals(raw.message, "ValueError: lost: \udc80");
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);

const name = fc.oneof(
  units,
  fc.constantFrom(
    "a",
    "b",
    "x\0y",
    "\ud800",
    "00",
    "-0",
    "1.5",
    "+1",
    "1e3",
    "na\u00efve",
    "then",
    "toJSON",
    "constructor",
  ),
)
  .filter((name) => !name.startsWith("$") && !/^(0|-?[1-9]\d*)$/.test(name) && !name.startsWith("__"));
const value = fc.oneof(fc.integer(), fc.string(), fc.constant(null), fc.boolean());

// `d.constructor` was undefined whatever the dict had, and what was set by the others' names could not be read.
test(...needs(missing, "a dict's key that JavaScript asks for is read, or is refused when it is set"), () => {
  const python = open();
  using dict: PyObject = python.evaluate("{'constructor': 1, 'toString': 2}");
  const [constructor, toString]: string[] = ["constructor", "toString"];
  assert(constructor !== undefined && toString !== undefined);
  assertEquals([dict[constructor], { ...python.evaluate("{'constructor': 3}") }], [1, { constructor: 3 }]);
  dict[constructor] = 4;
  assertEquals(dict[constructor], 4);
  for (const name of ["then", "toJSON", "toString"]) {
    assertThrows(() => dict[name] = 5, TypeError, `$setItem("${name}", value); $item("${name}") reads it`);
    dict.$setItem(name, 5);
    assertEquals(dict.$item(name), 5);
  }
  assertEquals([python.evaluate("{}")[constructor], `${python.evaluate("{}")}`], [undefined, "{}"]);
  const space: PyObject = python.evaluate("__import__('types').SimpleNamespace()");
  space[toString] = 6; // an attribute
  assertEquals(space[toString], 6);
});

test(
  ...needs(missing, "an attribute that is set exists, one that is deleted does not, and no other one changes"),
  () => {
    const python = open();
    python.run("class Thing: pass");
    const Thing = python.evaluate("Thing");
    const change = fc.oneof(
      fc.tuple(fc.constant("set" as const), name, value),
      fc.tuple(fc.constant("delete" as const), name),
    );
    check(
      fc.property(fc.array(change, { maxLength: 12 }), (changes) => {
        using thing: PyObject = Thing();
        const model = new Map<string, unknown>();
        for (const [what, key, value] of changes) {
          if (what === "set") {
            thing[key] = value;
            model.set(key, value);
            assertEquals(thing[key], value);
          } else if (model.delete(key)) assertEquals(delete thing[key], true);
          else assertThrows(() => delete thing[key], PythonError, "AttributeError");
          assertEquals(key in thing, model.has(key));
        }
        using attributes = python.builtins["vars"].$call(thing);
        assertEquals(attributes.$value(), model);
      }),
      300,
    );
  },
);

test(
  ...needs(missing, "an item that is set exists, one that is deleted does not, as in Python's lists and dicts"),
  () => {
    const python = open();
    const at = fc.integer({ min: -6, max: 6 });
    const change = fc.record({ what: fc.constantFrom("set", "delete", "get"), at, value });
    check(
      fc.property(fc.array(value, { maxLength: 5 }), fc.array(change, { maxLength: 10 }), (items, changes) => {
        using list: PyObject = python.builtins["list"].$call(items);
        const model = [...items];
        for (const { what, at, value } of changes) {
          const position = at < 0 ? at + model.length : at;
          const isThere = position >= 0 && position < model.length;
          assertEquals(at in list, isThere);
          if (!isThere) {
            if (what === "set") assertThrows(() => list[at] = value, PythonError, "IndexError");
            else if (what === "delete") assertThrows(() => delete list[at], PythonError, "IndexError");
            else assertThrows(() => list[at], PythonError, "IndexError");
          } else if (what === "set") {
            list[at] = value;
            model[position] = value;
          } else if (what === "delete") {
            assertEquals(delete list[at], true);
            model.splice(position, 1);
          } else assertEquals(list[at], model[position]);
          assertEquals(list.$value(), model);
        }
      }),
      300,
    );
    const key = fc.oneof(fc.integer(), fc.bigInt({ min: 0n, max: 2n ** 70n }).map(String), name);
    check(
      fc.property(fc.uniqueArray(key, { maxLength: 6, selector: String }), fc.array(key), (present, absent) => {
        const isIndex = (key: string | number) => /^(0|-?[1-9]\d*)$/.test(String(key));
        const keyOf = (key: string | number) => isIndex(key) ? BigInt(key) : key;
        using dict: PyObject = python.builtins["dict"].$call(new Map(present.map((key) => [keyOf(key), String(key)])));
        for (const key of present) {
          assert(key in dict);
          if (isIndex(key)) assertEquals(dict[key], String(key));
          assertEquals(dict.$item(keyOf(key)), String(key));
        }
        for (const key of absent) {
          assertEquals(
            key in dict,
            present.some((one) => String(one) === String(key)) || isAttribute(dict, String(key)),
          );
        }
      }),
      300,
    );
    // A dict that was read from JSON has strings of digits as keys; one that has both is asked for the int.
    const text = fc.oneof(fc.nat(20).map(String), name);
    const asked = ["then", "toJSON", "toString"]; // by JavaScript, of any object
    check(
      fc.property(fc.uniqueArray(text, { maxLength: 8 }), fc.uniqueArray(fc.nat(20)), text, (texts, ints, changed) => {
        const model = new Map<unknown, string>([
          ...ints.map((key) => [key, `int ${key}`] as const),
          ...texts.map((key) => [key, `text ${key}`] as const),
        ]);
        using dict: PyObject = python.builtins["dict"].$call(model);
        const isDigits = (key: string) => /^(0|[1-9]\d*)$/.test(key);
        const keyOf = (key: string) => model.has(Number(key)) || (!model.has(key) && isDigits(key)) ? Number(key) : key;
        for (const key of texts.filter(isDigits)) {
          assert(key in dict);
          assertEquals(dict[key], model.get(keyOf(key)));
        }
        const isAmbiguous = texts.some((key) =>
          ints.map(String).includes(key) || isAttribute(dict, key) || asked.includes(key)
        );
        if (isAmbiguous) assertThrows(() => Object.keys(dict), TypeError, "$value(");
        else assertEquals({ ...dict }, Object.fromEntries([...model].map(([key, value]) => [String(key), value])));
        if (!isDigits(changed)) return;
        dict[changed] = "set";
        model.set(keyOf(changed), "set");
        assertEquals(dict.$value(), model);
        delete dict[changed];
        model.delete(keyOf(changed));
        assertEquals(dict.$value(), model);
      }),
      300,
    );
    python.run("class Strict(dict):\n    def __contains__(self, key): raise ValueError('strict')");
    using strict: PyObject = python.evaluate("Strict({7: 'seven', '8': 'eight'})");
    assertEquals(strict[7], "seven");
    assertThrows(() => strict[8], PythonError, "KeyError: 8");
    assertEquals([Object.keys(python.evaluate("[1, 2]")), { ...python.evaluate("object()") }], [[], {}]);
    using grows: PyObject = python.import("collections")["defaultdict"].$call(python.builtins["int"]);
    assertFalse("a" in grows);
    assertFalse(0 in grows);
    assertEquals(python.builtins["len"](grows), 0, "a lookup creates no item");
    using words: PyObject = python.evaluate("['a', 'b']");
    assertFalse("a" in words, "a list's keys are tested, not its elements");
    assert("append" in words);
    using none: PyObject = python.evaluate("object()");
    assertFalse("a" in none);
    assertFalse(0 in none);
  },
);

function isAttribute(object: PyObject, name: string): boolean {
  return open().builtins["hasattr"](object, name);
}

test(...needs(missing, "names that cannot be set are refused, and nothing is set by another way"), () => {
  const python = open();
  python.run("class Thing: pass");
  using thing: PyObject = python.evaluate("Thing()");
  assertThrows(() => thing["$foo"] = 5, TypeError, "names that begin with $");
  assertThrows(() => thing.$close = () => {}, TypeError, "Cannot set $close");
  assertThrows(() => delete thing["$foo"], TypeError, "Cannot delete $foo");
  assertThrows(() => Reflect.set(thing, Symbol.iterator, 1), TypeError, "Symbol(Symbol.iterator)");
  assertThrows(() => Reflect.deleteProperty(thing, Symbol.iterator), TypeError, "Symbol(Symbol.iterator)");
  assertThrows(() => Object.defineProperty(thing, "y", { value: 1 }), TypeError);
  assertThrows(() => Object.freeze(thing), TypeError);
  assertThrows(() => Object.preventExtensions(thing), TypeError);
  assert(Object.isExtensible(thing) && "toString" in thing && !("toLocaleString" in thing));
  assertThrows(() => Object.setPrototypeOf(thing, {}), TypeError);
  using attributes = python.builtins["vars"].$call(thing);
  assertEquals(attributes.$value(), new Map());
  python.builtins["setattr"](thing, "$foo", 5);
  assertEquals(python.builtins["getattr"](thing, "$foo"), 5, "as the error says");
});

test(...needs(missing, "console.log takes any object: a closed one, and one that cannot describe itself"), () => {
  const python = open();
  python.run(`
class Mute:
    def __str__(self): raise ValueError("mute")
class Odd:
    def __str__(self): return "a\\udc80"
`);
  const shown = (object: unknown) => inspect(object, { colors: false });
  using mute: PyObject = python.evaluate("Mute()");
  using odd: PyObject = python.evaluate("Odd()");
  const closed: PyObject = python.evaluate("object()");
  closed.$close();
  assertEquals(shown(closed), "PyObject (closed)");
  assertStringIncludes(shown({ mute }), "ValueError: mute");
  assertStringIncludes(shown(odd), "PyObject a");
  console.log(closed, mute, odd);
  assertThrows(() => String(mute), PythonError, "mute");
  assertThrows(() => String(closed), TypeError, "closed");
  // An error about such an object still says what is wrong.
  assertThrows(() => StridedMemoryView.from(mute), TypeError, "Cannot view");
  assertThrows(() => ArrowArray.from(mute), Error, "it has no __arrow_c_device_array__()");
});

test(...needs(missing, "an error shows the beginning of an object whose text is long, and its type"), () => {
  const python = open();
  check(fc.property(fc.array(fc.constantFrom("a", "b c", "\n"), { maxLength: 80, size: "max" }), (parts) => {
    const text = parts.join("");
    using object: PyObject = python.evaluate("lambda text: type('Named', (), {'__str__': lambda self: text})()").$call(
      text,
    );
    const { message } = assertThrows(() => StridedMemoryView.from(object), TypeError);
    const isShort = text.length <= 100 && !text.includes("\n");
    const shown = isShort ? text : `an instance of Named (${text.split("\n", 1)[0]?.slice(0, 100).trimEnd()}...)`;
    assertEquals(message, `Cannot view ${shown}: expected a Python array. numpy.asarray(it) may be one`);
  }));
  using long: PyObject = python.evaluate("list(range(100_000))");
  assert(inspect(long).length < 11_000 && inspect(long).includes("more characters"));
});

test(...needs(missing, "a stream is consumed by a call only if everything else can be passed"), () => {
  const python = open();
  const taker: PyObject = python.evaluate("lambda *arguments, **named: None");
  const bad: fc.Arbitrary<unknown> = fc.constantFrom<unknown>(
    Symbol("s"),
    new WeakMap(),
    new Date(NaN),
    new Set([[1]]), // a list cannot be an item of a set
    new Map([[[1], 2]]), // a list cannot be a key
    { deep: [new Map([["a", Symbol("s")]])] },
  );
  const good = fc.oneof(fc.integer(), units, fc.constant([1, { a: null }]));
  const batch = () => ArrowArray.from(StridedMemoryView.fromTypedArray(Int32Array.of(1, 2, 3)));
  check(
    fc.property(
      fc.array(good, { maxLength: 3 }),
      fc.option(bad, { freq: 2 }),
      fc.nat(),
      fc.constantFrom("argument", "item", "keyword", "twice", "closed", "taken"),
      (rest, bad, at, where) => {
        const before = liveExports();
        using array = batch();
        using stream = exportArrowStream([array]);
        using dead: PyObject = python.evaluate("object()");
        dead.$close();
        const gone = exportArrowStream([array]);
        gone.close();
        const args: unknown[] = [...rest];
        const insert = (value: unknown, seed: number) => args.splice(seed % (args.length + 1), 0, value);
        if (bad !== null) insert(bad, at);
        else if (where === "closed") insert(dead, at);
        else if (where === "taken") insert(gone, at);
        if (where === "item") insert([[stream]], at >> 4);
        else if (where !== "keyword") insert(stream, at >> 4);
        if (where === "twice") insert(stream, at >> 8);
        if (where === "keyword") args.push(kwargs({ a: 1, stream }));
        const fails = bad !== null || ["closed", "twice", "taken"].includes(where);
        if (fails) {
          assertThrows(() => taker(...args));
          assertFalse(stream.taken);
        } else {
          taker(...args);
          assert(stream.taken);
        }
        stream.close();
        array.close();
        assertEquals(liveExports(), before);
      },
    ),
    200,
  );
  using array = batch();
  using stream = exportArrowStream([array]);
  using closed: PyObject = python.evaluate("{}");
  closed.$close();
  assertThrows(() => closed.$setItem("a", stream), TypeError, "closed");
  assertThrows(() => closed["a"] = stream, TypeError, "closed");
  assertThrows(() => closed.$item(stream), TypeError, "closed");
  assertThrows(() => closed(stream), TypeError, "closed");
  assertFalse(stream.taken);
});

test(...needs(missing, "an array of another owner that is passed is released when Python has released it"), () => {
  const python = open();
  const taker: PyObject = python.evaluate("lambda *arguments: None");
  const before = liveExports();
  const view = StridedMemoryView.fromTypedArray(Int32Array.of(1, 2, 3));
  const source = { __dlpack__: () => view.toDlpack(), __dlpack_device__: () => [1, 0] };
  taker(source);
  assertEquals(liveExports(), before);
  assertThrows(() => taker(source, Symbol("s")), TypeError);
  assertEquals(liveExports(), before);
});

test(...needs(missing, "objects looked up for a call are released after it"), () => {
  const python = open();
  python.run(`
import sys
class Thing:
    def get(self): return self
    def count(self, *_): return sys.getrefcount(self)
    def fails(self): raise ValueError
    @classmethod
    def kind(cls): return None
    def __call__(self): return None
things = [Thing()]
held = {"Thing()": lambda: things[0], "list": lambda: things, "dict": lambda: sys.modules}
`);
  const thing: PyObject = python.evaluate("things[0]");
  const references = () => python.evaluate("sys.getrefcount(things[0])");
  const before = references();
  const calls: (() => unknown)[] = [
    () => thing["count"](),
    () => (thing["count"].$call() as PyObject).$close(),
    () => assertThrows(() => thing["fails"](), PythonError),
    () => assertThrows(() => thing["count"](Symbol("s")), TypeError),
    () => assertThrows(() => thing["get"](1), PythonError),
    () => thing["get"]().$close(),
    () => thing["kind"](),
    () => thing["__call__"](),
  ];
  for (const call of calls) {
    call();
    assertEquals(references(), before, String(call));
  }
  using list: PyObject = python.evaluate("things");
  const ofList = () => python.evaluate("sys.getrefcount(things)");
  const one = ofList();
  list["index"](thing);
  list["count"].$call(thing).$close();
  assertEquals(ofList(), one, "methods in C");
  // The kept method is the same when called again, or when refused.
  const kept = thing["get"];
  kept().$close();
  assertEquals(references(), before);
  for (let i = 0; i < 3; i++) kept().$close();
  using same: PyObject = python.evaluate("Thing.get.__get__(things[0])");
  assertEquals(String(kept), String(same));
  same.$close();
  kept.$close();
  assertEquals(references(), before);
  const changed = thing["get"];
  changed().$close();
  const held = thing.$get("get");
  held().$close();
  thing["get"] = python.evaluate("lambda: 'another'");
  assertEquals(thing["get"](), "another");
  assertThrows(
    () => changed(),
    TypeError,
    'the object has another method of this name now. Keep a method with $get("get")',
  );
  held().$close();
  held.$close();
  assertEquals(references(), before);
  delete thing["get"];
  const index = list["index"];
  assertEquals([index(thing), index(thing), index(thing)], [0, 0, 0]);
  index.$close();
  assertEquals(ofList(), one);
  const late = thing["get"];
  late().$close();
  thing.$close();
  assertEquals(references(), before - 1, "the object is released, though a method that was called is kept");
  assertThrows(() => late(), TypeError, "a method of a closed PyObject");
  late.$close();
  // A kept method, called before or not at all, is a user of the object like any other.
  const early: PyObject = python.evaluate("things[0]");
  const kind = early["get"];
  early.$close();
  for (let i = 0; i < 3; i++) kind().$close();
  kind.$close();
  assertEquals(references(), before - 1);
  // So is a method of another object that was found there.
  python.run("one, two, here = Thing(), Thing(), Thing()\nhere.link = one.get");
  using first: PyObject = python.evaluate("one");
  using here: PyObject = python.evaluate("here");
  const link = here["link"];
  const is: PyObject = python.import("operator")["is_"];
  assertEquals(is(link(), first), true);
  python.run("here.link = two.get");
  assertEquals([is(link(), first), is(link(), first)], [true, true]);
  const again: PyObject = python.evaluate("things[0]");
  const method = again["get"];
  method().$close();
  method().$close();
  again.$close();
  assertEquals(references(), before);
  method().$close();
  method.$close();
  assertEquals(references(), before - 1);
});

test(...needs(missing, "a function of a type or a module, or a static one, can be called any number of times"), () => {
  const python = open();
  for (
    const [expression, ...args] of [["dict.fromkeys", ["a"]], ["math.sqrt", 4], ["str.upper", "a"], [
      "type.mro",
      null,
    ]] as const
  ) {
    python.run("import math");
    const [owner = "", attribute = ""] = expression.split(".");
    const object: PyObject = owner === "math" ? python.import(owner) : python.builtins[owner];
    const given = expression === "type.mro" ? [python.builtins["int"]] : args;
    const kept = object[attribute];
    const results = [1, 2, 3].map(() => String(kept(...given)));
    assertEquals(new Set(results).size, 1, expression);
  }
});

test(
  ...needs(missingNumpy, "a called method of an array keeps neither the array nor the exported memory"),
  () => {
    const python = open();
    const before = liveExports();
    const view = StridedMemoryView.fromTypedArray(Float64Array.of(1, 2, 3));
    const array: PyObject = python.import("numpy")["asarray"].$call(view);
    assertEquals(liveExports(), before + 1);
    array["sum"].$call().$close();
    assertEquals(array["sum"](), 6);
    array.$close();
    assertEquals(liveExports(), before);
  },
);

test(
  ...needs(missing, "an error after a plain object as the last argument says how to pass arguments by name"),
  () => {
    const python = open();
    const { builtins } = python;
    const error = assertThrows(() => builtins["sorted"]([2, 1], { reverse: true }), PythonError);
    assertEquals(error.type, "TypeError");
    assertStringIncludes(error.message, "kwargs({ reverse })");
    for (const args of [[[2, 1], 1], [[2, 1], {}], [1], [{ reverse: true }, 1], [[1], new Map([["reverse", true]])]]) {
      const { message } = assertThrows(() => builtins["sorted"](...args), PythonError);
      assertFalse(message.includes("kwargs"), message);
    }
    const stop = python.evaluate("lambda options: (_ for _ in ()).throw(StopAsyncIteration)");
    assertFalse(assertThrows(() => stop({ a: 1 }), PythonError).message.includes("kwargs"));
  },
);

test(...needs(missing, "arguments by name that are not the last argument of a call are refused"), () => {
  const { builtins } = open();
  const named = kwargs({ end: "", flush: true });
  const refused = "Cannot pass kwargs({ end, flush }) to Python here: expected it as the last argument of a call";
  for (const args of [[named, 1], [named, named], [[named]], [{ named }], [new Map([[1, named]])], [1, named, null]]) {
    assertThrows(() => builtins["print"](...args), TypeError, refused);
    assertThrows(() => builtins["print"].$call(...args), TypeError, refused);
  }
});

test(...needs(missingNumpy, "numpy.sum with an options object says how to pass arguments by name"), () => {
  const np = open().import("numpy");
  const table = StridedMemoryView.fromTypedArray(Float64Array.of(1, 2, 3, 4), { shape: [2, 2] });
  assertThrows(() => np["sum"](table, { axis: 0 }), PythonError, "kwargs({ axis })");
  using sums = np["sum"](table, kwargs({ axis: 0 }));
  assertEquals(String(sums), "[4. 6.]");
});

// Both runtimes have bigints of nearly 2^30 bits, and need 1 GB to find that one has more: they are made to have fewer.
test(...needs(missing, "an int of more digits than a bigint of the runtime is refused as what it is"), () => {
  const python = open();
  const { BigInt: own } = globalThis;
  globalThis.BigInt = new Proxy(own, {
    apply(_, __, [value]) {
      if (typeof value === "string" && value.length > 50) throw new SyntaxError(`Cannot convert ${value} to a BigInt`);
      return own(value);
    },
  });
  try {
    assertEquals(python.evaluate("1 << 64"), 2n ** 64n);
    for (const int of ["1 << 400", "-(1 << 400)"]) {
      const { message } = assertThrows(() => python.evaluate(int), RangeError, "this runtime has no bigint of so many");
      assert(!message.includes("00"), message);
    }
    using kept = python.builtins["eval"].$call("1 << 400");
    assertEquals(kept.bit_length(), 401);
  } finally {
    globalThis.BigInt = own;
  }
});
