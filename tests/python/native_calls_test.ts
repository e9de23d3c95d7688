/**
 * Calls of Python made by machine code: they do what the same calls do by one C function after the other, and leave
 * nothing behind. The code itself is tested in call_programs_test.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { kwargs, type PyObject, Python, PythonError } from "../../mod.ts";
import { openInterpreter } from "../../src/python/start_interpreter.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const home = typeof found === "string" ? "" : found.executable;

const scene = `
import sys
class Thing:
    def __init__(self): self.stored = None
    def show(self, *values): return repr(values)
    def give(self, value): return value
    def fails(self, *values): raise ValueError(repr(values))
    @property
    def fresh(self): return self.stored
thing = Thing()
def show(*values): return repr(values)
def give(value): return value
def count(*values): return len(values)
def both(*values, **named): return repr((values, named))
class Frames:
    def caller(self, *values): return sys._getframe(1).f_globals["__name__"]
def look(*values): return sys._getframe(1).f_globals["__name__"]
def by(function, *values): return function(*values)
give_in_c = {}.get  # of a key that is not there and a default
`;

/** Arguments that a program makes, and some that it leaves to other code. */
const value = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.maxSafeInteger(),
  fc.constantFrom(0, -0, NaN, Infinity, -Infinity, 2 ** 53, -(2 ** 53), 2 ** 63, -(2 ** 63), 1e308),
  fc.string({ maxLength: 60 }),
  fc.string({ unit: "binary", maxLength: 8 }),
  fc.constantFrom("x".repeat(511), "y".repeat(512), "z".repeat(513), "", "\0", "\x7f", "\x80"),
  fc.constantFrom(true, false, null, undefined),
  fc.bigInt({ min: -(1n << 70n), max: 1n << 70n }),
);

/** Plain objects with few entries and with too many, and names that are not identifiers. */
const container = fc.dictionary(
  fc.oneof(fc.constantFrom("a", "b", "__proto__", "0", "\u{e4}", ""), fc.string({ maxLength: 5 })),
  fc.oneof({ weight: 9, arbitrary: value }, { weight: 1, arbitrary: fc.constantFrom({ in: 1 }, [1, 2]) }),
  { maxKeys: 18 },
);

/** The JavaScript value that comes back from Python. */
function returned(value: unknown): unknown {
  if (value === undefined) return null;
  if (typeof value === "bigint" && BigInt(Number(value)) === value && Number.isSafeInteger(Number(value))) {
    return Number(value);
  }
  return value;
}

test(...needs(missing, "a call by machine code may change a list that is iterated over"), () => {
  const python = Python.open({ home });
  python.run("items = []");
  const { items } = python.import("__main__");
  const { clear } = items;
  for (let i = 0; i < 4; i++) clear();
  items.extend(python.builtins["range"](100));
  const seen: unknown[] = [];
  for (const item of items) {
    seen.push(item);
    if (seen.length === 10) clear();
  }
  assertEquals(seen, Array.from({ length: 10 }, (_, i) => i));
});

test(...needs(missing, "an attribute that was kept is returned again only while it is the same"), () => {
  const python = Python.open({ home });
  python.run(scene);
  python.run(`
class Hooked:
    hook = None
    def __getattribute__(self, name):
        if name == "plain":
            found = object.__getattribute__(self, name)
            hook = object.__getattribute__(self, "hook")
            if hook is not None: hook()
            return found
        return object.__getattribute__(self, name)
    def plain(self): return 1
    def other(self): return 2
one, two, hooked = Thing(), Thing(), Hooked()
`);
  const main = python.import("__main__");
  const { one, two, hooked } = main;
  const first = one.give;
  assert(one.give === first && one.give === first);
  one.give = two.give; // a method of the same function, bound to another object
  assertEquals(one.give.__self__.__repr__(), two.__repr__());
  assert(one.give !== first);
  python.run("del one.give");
  python.run("Thing.give = lambda self, value: [value]");
  assertEquals(one.give(3).$value(), [3]);

  // a property that calls JavaScript, which calls the attribute, closes it, or reads it again
  const { plain } = hooked;
  assertEquals([plain(), hooked.plain(), hooked.plain()], [1, 1, 1]);
  let calls = 0;
  for (
    const act of [
      () => void (calls < 3 && hooked.plain()),
      () => {
        for (let i = 0; i < 20; i++) plain.$close(); // for every reader of it
      },
      () => void (calls < 3 && hooked.plain.$close()),
    ]
  ) {
    calls = 0;
    hooked.hook = () => {
      calls++;
      act();
      return null;
    };
    assertEquals(hooked.plain(), 1);
    assertEquals(hooked.plain(), 1);
    assert(calls >= 2);
    hooked.hook = null;
    assertEquals(hooked.plain(), 1);
  }
  const fresh = main["Hooked"]();
  const { plain: uncalled } = fresh; // holds a reference
  assert(fresh.plain === uncalled);
  fresh.hook = () => {
    for (let i = 0; i < 20; i++) uncalled.$close();
    return null;
  };
  assertEquals(fresh.plain(), 1);
});

test(...needs(missing, "a call by machine code has the arguments and the result that it has step by step"), () => {
  const python = Python.open({ home });
  python.run(scene);
  const main = python.import("__main__");
  const { thing, show, give, count, give_in_c: giveInC } = main;
  check(
    fc.property(fc.array(value, { maxLength: 10 }), (values) => {
      const expected = python.builtins["repr"](python.builtins["tuple"](values)); // no program makes a list
      assertEquals(show(...values), expected);
      assertEquals(thing.show(...values), expected);
      assertEquals(count(...values), values.length);
      for (const one of values) {
        const back = returned(one);
        assert(Object.is(give(one), back), `give(${String(one)})`);
        assert(Object.is(thing.give(one), back), `thing.give(${String(one)})`);
        assert(Object.is(giveInC("", one), back), `get("", ${String(one)})`);
        thing.stored = one;
        assert(Object.is(thing.stored, back) && Object.is(thing.fresh, back), `thing.stored = ${String(one)}`);
      }
    }),
    300,
  );
});

test(...needs(missing, "results of classes derived from float are numbers of the same value"), () => {
  const python = Python.open({ home });
  python.run(`
import gc
gone = []
class Plain(float): pass
class Other(float):
    def __float__(self): return 0.5
class Gone(float):
    def __del__(self): gone.append(float(self))
kinds = [float, Plain, Other, Gone, complex]
def give_kind(i, value): return kinds[i](value)
def made(i, collects):
    if collects: gc.collect()
    return type(f"Made{i}", (float,) if i % 2 else (complex,), {})(i)
`);
  const { give_kind: giveKind, gone, made } = python.import("__main__");
  check(
    fc.property(fc.array(fc.tuple(fc.nat(4), fc.double()), { maxLength: 30 }), (all) => {
      gone.clear();
      for (const [kind, value] of all) {
        const back: unknown = giveKind(kind, value);
        if (kind < 4) assert(Object.is(back, value), `${String(back)} is not ${value}`);
        else assert(typeof back === "function");
      }
      assertEquals(gone.$value(), all.filter(([kind]) => kind === 3).map(([, value]) => value));
    }),
    100,
  );
  // More types than are remembered: those freed meanwhile leave their addresses to others.
  for (let i = 0; i < 1200; i++) {
    const back: unknown = made(i, i > 1100 && i % 10 === 0); // each collection scans all of Python's objects
    assert(i % 2 === 1 ? back === i : typeof back === "function", `${i}: ${String(back)}`);
    if (typeof back === "function") (back as PyObject).$close();
  }
});

test(...needs(missing, "dicts and arguments by name are made by machine code as they are step by step"), () => {
  const python = Python.open({ home });
  python.run(scene);
  const { both, thing, give_in_c: giveInC } = python.import("__main__");
  const { eval: evaluate, dict: dictOf } = python.builtins;
  check(
    fc.property(
      fc.array(fc.oneof(value, container), { maxLength: 9 }),
      fc.option(container),
      (values, named) => {
        const list = python.builtins["list"](values); // no program makes a list
        const dict = python.builtins["dict"]([...Object.entries(named ?? {})]);
        const expected = evaluate("repr((tuple(one), two))", new Map([["one", list], ["two", dict]]));
        for (let i = 0; i < 2; i++) { // the first time keys are new
          assertEquals(named === null ? both(...values) : both(...values, kwargs(named)), expected);
        }
        if (named !== null) { // a class written in C
          assertEquals(dictOf(kwargs(named)).__repr__(), dict.__repr__());
          const refuse = () => giveInC("", kwargs(named));
          if (Object.keys(named).length > 0) assertThrows(refuse, PythonError, "keyword");
          else assertEquals(refuse(), null);
        }
        assertEquals(thing.show(...values), evaluate("repr(tuple(one))", new Map([["one", list]])));
      },
    ),
    200,
  );
});

test(...needs(missing, "a Python object passed as an argument may be called, and looks at its caller's frame"), () => {
  const python = Python.open({ home });
  python.run(scene);
  python.run("numbers = [3]");
  const { by, Frames: frames, give, look, numbers } = python.import("__main__");
  const { max, map } = python.builtins; // in C, without a frame
  const { caller } = frames();
  const { reduce } = python.import("functools");
  for (let i = 0; i < 3; i++) {
    for (const each of [look, caller]) {
      assertEquals(by(each, 1), "__main__");
      assertEquals(max(numbers, kwargs({ key: each })), 3);
      assertEquals(map(each, numbers).__next__(), "__main__");
      assertEquals(reduce(each, numbers, ""), "__main__");
      assertEquals(give(each).__name__, each.__name__);
    }
  }
  caller.$close();
  assertThrows(() => give(caller), TypeError, "closed");
});

test(...needs(missing, "a call has as many arguments and entries as are passed"), () => {
  const python = Python.open({ home });
  python.run(scene);
  const { both } = python.import("__main__");
  const numbers = (length: number) => Array.from({ length }, (_, i) => i);
  const dict = (length: number) => Object.fromEntries(numbers(length).map((i) => [`k${i}`, `text ${i}`]));
  const shown = (entries: object) =>
    `{${Object.entries(entries).map(([key, value]) => `'${key}': '${value}'`).join(", ")}}`;
  for (let length = 0; length < 70; length++) {
    const args = numbers(length).join(", ") + (length === 1 ? "," : "");
    for (let i = 0; i < 2; i++) {
      assertEquals(both(...numbers(length)), `((${args}), {})`);
      assertEquals(both(...numbers(length), kwargs({ last: 1 })), `((${args}), {'last': 1})`);
      assertEquals(both(dict(length), dict(3)), `((${shown(dict(length))}, ${shown(dict(3))}), {})`);
      assertEquals(both(dict(2), kwargs(dict(length))), `((${shown(dict(2))},), ${shown(dict(length))})`);
    }
  }
});

test(...needs(missing, "a getter may call Python while the arguments of a call are being written"), () => {
  const python = Python.open({ home });
  python.run(scene);
  const { both, show } = python.import("__main__");
  const options = {
    plain: 1,
    get inner() {
      return show(2, "a text", { other: 3 });
    },
  };
  for (let i = 0; i < 3; i++) {
    const inner = `(2, 'a text', {'other': 3})`;
    assertEquals(both(5, options), `((5, {'plain': 1, 'inner': "${inner}"}), {})`);
    assertEquals(both(5, kwargs(options)), `((5,), {'plain': 1, 'inner': "${inner}"})`);
  }
  const throwing = {
    get inner(): number {
      throw new RangeError("not now");
    },
  };
  assertThrows(() => both(1, throwing), RangeError, "not now");
  assertEquals(both(1), "((1,), {})");
});

test(...needs(missing, "exceptions in a call by machine code are thrown, and the lock is released"), async () => {
  const python = Python.open({ home });
  python.run(scene);
  python.run("import threading\nran = threading.Event()");
  const main = python.import("__main__");
  const { thing } = main;
  for (let i = 0; i < 3; i++) {
    assertThrows(() => thing.fails(1, "a"), PythonError, "(1, 'a')");
    assertThrows(() => thing.missing, PythonError, "missing");
    assertThrows(() => thing.give(), PythonError, "positional argument");
  }
  // A Python thread runs only while this one does not hold the lock.
  python.run("threading.Thread(target=ran.set).start()");
  for (let i = 0; i < 2000 && main["ran"].is_set() === false; i++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  assertEquals(main["ran"].is_set(), true);
});

test(...needs(missing, "nested calls by machine code keep their arguments, whatever throws in between"), () => {
  const python = Python.open({ home });
  python.run(`
class Step:
    callback = None
    def down(self, depth, text, weight):
        inner = Step.callback(depth, text, weight) if depth else ""
        return f"{inner}({depth} {text} {weight})"
step = Step()
`);
  const { step } = python.import("__main__");
  check(
    fc.property(
      fc.nat(12),
      fc.string({ unit: "grapheme-ascii", maxLength: 20 }),
      fc.nat(12),
      (depth, text, failing) => {
        let wasCaught = 0;
        python.import("__main__")["Step"].callback = (at: number, text: string, weight: number) => {
          assertEquals(step.down.__name__, "down"); // other calls in between
          if (at === failing) {
            wasCaught++;
            assertThrows(() => step.down("no number" as unknown as number), PythonError);
          }
          return step.down(at - 1, `${text}${at}`, weight / 2);
        };
        const expected = (at: number, text: string, weight: number): string =>
          `${at > 0 ? expected(at - 1, `${text}${at}`, weight / 2) : ""}(${at} ${text} ${
            Number.isSafeInteger(weight) ? weight : python.builtins["repr"](weight)
          })`;
        assertEquals(step.down(depth, text, 3), expected(depth, text, 3));
        assertEquals(wasCaught, failing > 0 && failing <= depth ? 1 : 0);
      },
    ),
    60,
  );
});

test(
  ...needs(missing, "work due before the lock is released is done, also if it became due in a property"),
  () => {
    const python = Python.open({ home });
    const interpreter = openInterpreter({ home });
    python.run(
      "class Through:\n    hook, value = None, 0\n    def get(self):\n        self.hook()\n        return self.value",
    );
    python.run("Through.seen = property(Through.get)\nthrough = Through()");
    const { through } = python.import("__main__");
    const held: number[] = [];
    const before = () => held.push(interpreter.api.threads.PyGILState_Check());
    through.hook = () => null;
    assertEquals([through.seen, through.seen, through.get()], [0, 0, 0]);
    through.hook = () => {
      interpreter.beforeUnlock = before;
      return null;
    };
    try {
      assertEquals(through.seen, 0);
      assertEquals(held, [1], "once, with the lock");
      assertEquals(through.seen, 0);
      assertEquals(held, [1, 1]);
    } finally {
      through.hook = () => null;
      interpreter.beforeUnlock = null; // all files of a process may share the interpreter
    }
    assertEquals([through.seen, through.get()], [0, 0]);
    assertEquals(interpreter.beforeUnlock, null);
  },
);

test(...needs(missing, "no call by machine code leaks a reference, or releases one too many"), () => {
  const python = Python.open({ home });
  python.run(scene);
  python.run(`
import gc
kept = [thing, Thing.give, Thing.fails, show, give, "a text of its own", 1234567, None, True]
def counts():
    gc.collect()
    return [sys.getrefcount(one) for one in kept]
`);
  const main = python.import("__main__");
  const { thing, show, give, count, counts } = main;
  const work = (): void => {
    for (let i = 0; i < 200; i++) {
      thing.give(1234567 + i);
      thing.show(i, "text", null, true);
      thing.give(null);
      show();
      give(true);
      give(1 << 20);
      count({ a: 1234567 + i, b: "text", c: null, d: thing });
      show({}, { a: i }, thing, give);
      main["both"](i, kwargs({ a: 1234567 + i, b: true }));
      assertThrows(() => thing.give(1, kwargs({ unknown: "text" })), PythonError);
      thing.stored = i;
      void thing.fresh;
      const { give: kept }: PyObject = thing;
      kept(i);
      kept(i + 0.5);
      kept.$close();
      assertThrows(() => thing.fails(i), PythonError);
    }
  };
  work();
  const before = counts().$value();
  for (let i = 0; i < 5; i++) work();
  const after = counts().$value();
  // None and True are immortal from Python 3.12 on; before, the whole interpreter counts references to them
  const [own, shared] = [(all: number[]) => all.slice(0, 7), (all: number[]) => all.slice(7)];
  assertEquals(own(after as number[]), own(before as number[]));
  shared(after as number[]).forEach((count, i) => assert(Math.abs(count - (shared(before as number[])[i] ?? 0)) < 100));
});
