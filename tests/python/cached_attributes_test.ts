/**
 * Attributes that are kept: the same JavaScript object for the same method, valid for each user until closed, and
 * never for another method.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { type PyObject, Python } from "../../mod.ts";
import { collectGarbage } from "../support/collect.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const open = () => Python.open({ home: typeof found === "string" ? "" : found.executable });

const scene = `
import sys, types
class Thing:
    def one(self): return "one"
    def two(self): return "two"
    count = 0
things = []
def make():
    things[:] = [Thing()]
    return things[0]
def references(): return sys.getrefcount(things[0])
module = types.ModuleType("module")
sys.modules["kept_module"] = module
def function(): return "function"
def other(): return "other"
class Own:
    def __call__(self): return "own"
`;

test(...needs(missing, "a method that is read again is the same object, and a changed method is another"), () => {
  const python = open();
  python.run(scene);
  using thing: PyObject = python.evaluate("make()");
  const one = thing["one"];
  assert(thing["one"] === one && thing["two"] !== one);
  thing["one"] = python.evaluate("lambda: 'changed'");
  assert(thing["one"] !== one);
  assertEquals(thing["one"](), "changed");
  delete thing["one"];
  python.run("Thing.one = lambda self: 'new'");
  assert(thing["one"] !== one);
  assertEquals([thing["one"](), one()], ["new", "one"], "a holder of the old one calls the old one");
  python.run("Thing.one = Thing.two");
  assertEquals([thing["one"](), thing["two"]()], ["two", "two"]);
  using list: PyObject = python.evaluate("[1]");
  const append = list["append"];
  assert(list["append"] === append);
  list["append"](2);
  assertEquals(list.$value(), [1, 2]);
  // A function set as an attribute is not a method, and not kept: it may retain large objects.
  thing["callback"] = python.evaluate("lambda: 1");
  const callback = thing["callback"];
  assert(thing["callback"] !== callback);
  // The objects of equal methods are distinguished.
  using left: PyObject = python.evaluate("Thing()");
  using right: PyObject = python.evaluate("Thing()");
  assert(left["two"] !== right["two"]);
});

/** What a program does with methods of one object. */
type Step = readonly ["read" | "call" | "close" | "call at once" | "read and drop", number];
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.tuple(
    fc.constantFrom(
      "read" as const,
      "call" as const,
      "close" as const,
      "call at once" as const,
      "read and drop" as const,
    ),
    fc.nat(5),
  ),
  { maxLength: 25 },
);

test(
  ...needs(missing, "each reader of a method can call it until closing it, and nothing is kept after the last one"),
  () => {
    const python = open();
    python.run(scene);
    const make: PyObject = python.evaluate("make");
    const references: PyObject = python.evaluate("references");
    check(
      fc.property(steps, fc.boolean(), (steps, isWrittenInC) => {
        const thing: PyObject = make();
        const name = isWrittenInC ? "__sizeof__" : "one";
        const expected = isWrittenInC ? python.builtins["object"]["__sizeof__"](thing) : "one";
        const before = references();
        const users: (PyObject | null)[] = [null, null, null, null, null, null];
        let dropped = 0;
        for (const [what, who] of steps) {
          const user = users[who] ?? null;
          if (what === "read" && user === null) users[who] = thing[name];
          else if (what === "call" && user !== null) assertEquals(user(), expected);
          else if (what === "call at once") assertEquals(thing[name](), expected);
          else if (what === "read and drop" && dropped < 2) {
            void thing[name];
            dropped++;
          } else if (what === "close" && user !== null) {
            user.$close();
            users[who] = null;
          }
        }
        for (const user of users) {
          if (user === null) continue;
          assertEquals(user(), expected);
          user.$close();
        }
        if (dropped === 0) assertEquals(references(), before);
        thing.$close();
        if (dropped === 0) assertEquals(references(), before - 1);
      }),
      300,
    );
  },
);

test(...needs(missing, "the last user of a method closes it, and using a closed one is an error"), () => {
  const python = open();
  python.run(scene);
  using thing: PyObject = python.evaluate("make()");
  const first = thing["one"];
  first.$close();
  assertThrows(() => first(), TypeError, "closed");
  const second = thing["one"];
  assert(second !== first, "a new one, because the old one is closed");
  assertEquals(second(), "one");
  second.$close();
  assertThrows(() => second(), TypeError, "closed");
});

test(...needs(missing, "a method that was read but not called keeps its object, also if others call it"), () => {
  const python = open();
  python.run(scene);
  const thing: PyObject = python.evaluate("make()");
  const before = python.evaluate("references()");
  const early = thing["one"];
  assertEquals(thing["one"](), "one");
  thing.$close();
  assertEquals(early(), "one", "though the object was closed");
  early.$close();
  early.$close();
  assertEquals(python.evaluate("references()"), before - 1);
});

test(...needs(missing, "members of modules are kept: functions, classes and modules, and nothing else"), () => {
  const python = open();
  python.run(scene);
  using module: PyObject = python.import("kept_module");
  const set = python.evaluate("lambda name, value: setattr(module, name, eval(value))");
  for (const value of ["function", "len", "int", "Thing", "sys"]) {
    set("member", value);
    const member = module["member"];
    assert(module["member"] === member, value);
    set("member", "other");
    assert(module["member"] !== member, value);
    assertEquals(module["member"](), "other");
    assertEquals(python.builtins["repr"](member), python.evaluate(`repr(${value})`), "it stays what it was");
  }
  for (const value of ["Own()", "[]", "Thing().one", "[].append", "object()"]) {
    set("member", value);
    const member = module["member"];
    assert(module["member"] !== member, value);
  }
  set("member", "function");
  const held = module["member"];
  {
    using used = module["member"];
    assertEquals(used(), "function");
  }
  assertEquals(held(), "function", "another user closed it");
  held.$close();
  assertThrows(() => held(), TypeError, "closed");
});

test(...needs(missing, "more methods than are kept can still be called, and a closed object keeps none"), async () => {
  const python = open();
  python.run(scene);
  python.run("for i in range(600): setattr(Thing, f'm{i}', (lambda i: lambda self: i)(i))");
  const thing: PyObject = python.evaluate("make()");
  const before = python.evaluate("references()");
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 600; i++) assertEquals(thing[`m${i}`](), i);
  }
  assertEquals(python.evaluate("references()"), before);
  (() => void thing["one"])(); // read, and never called
  thing.$close();
  for (let i = 0; i < 20 && python.evaluate("references()") > before - 1; i++) await collectGarbage();
  assertEquals(python.evaluate("references()"), before - 1);
});
