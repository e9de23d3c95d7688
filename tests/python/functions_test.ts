/** JavaScript functions in Python: called with what Python passes, on the one thread that may call them. */
import { assert, assertEquals, assertMatch, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { kwargs, liveExports, type PyObject, Python, PythonError, StridedMemoryView } from "../../mod.ts";
import { Keywords } from "../../src/public/python.ts";
import { handleOf } from "../../src/python/handle.ts";
import { openInterpreter } from "../../src/python/start_interpreter.ts";
import { runScriptForJson } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const open = () => Python.open({ home: typeof found === "string" ? "" : found.executable });

test(...needs(missing, "a function receives the arguments that Python passes, and Python receives its result"), () => {
  const python = open();
  const call: PyObject = python.evaluate("lambda function, *arguments, **named: [function(*arguments, **named)]");
  const value = fc.oneof(fc.integer(), fc.double({ noNaN: true, noInteger: true }), fc.string(), fc.boolean());
  const names = fc.dictionary(fc.stringMatching(/^[a-z]{2,6}$/), value, { maxKeys: 4 });
  check(
    fc.property(fc.array(value, { maxLength: 8 }), names, value, (given, named, result) => {
      let seen: unknown[] = [];
      using back: PyObject = call(
        (...args: unknown[]) => {
          seen = args;
          return result;
        },
        ...given,
        kwargs(named),
      );
      assertEquals(back.$value(), [result]);
      const byName = seen[given.length];
      assertEquals(seen.slice(0, given.length), given);
      if (Object.keys(named).length === 0) assertEquals(seen.length, given.length);
      else assertEquals(byName instanceof Keywords ? { ...byName.values } : null, { ...named });
    }),
    150,
  );
});

// What had called the function went on with memory that was freed, and the process ended with a segmentation fault.
test(
  ...needs(missing, "an object that a function closes stays until what has called the function is done with it"),
  () => {
    const python = open();
    python.run(`
class Key:
    def __init__(self, act): self.act = act
    def __hash__(self): return 1
    def __eq__(self, other): self.act(); return False
class Dynamic:
    def __init__(self, act): self.act = act
    def __getattribute__(self, name):
        object.__getattribute__(self, "act")()
        raise AttributeError(name)
    def __getattr__(self, name): return [type(self).__name__, name]
`);
    const junk = () => python.run("del [bytes(size) for size in range(200, 300) for _ in range(100)][:]");
    const [Key, Dynamic]: PyObject[] = [python.evaluate("Key"), python.evaluate("Dynamic")];
    const dict: PyObject = python.evaluate("lambda key: {key: 1}")(
      Key?.(() => {
        dict.$close();
        junk();
      }),
    );
    assertThrows(() => dict.$item(Key?.(() => {})), PythonError, "KeyError");
    assertThrows(() => dict.$item(1), TypeError, "closed");
    let dynamic: PyObject | null = null;
    dynamic = Dynamic?.(() => {
      dynamic?.$close(); // not while it is made, which looks for attributes, too
      junk();
    });
    assertThrows(() => dynamic?.["some"], TypeError, "closed");
  },
);

// JavaScript's stack may end anywhere in a call. The lock was counted as held then, and the next call got the error.
test(
  ...needs(missing, "a call that ends in the middle leaves neither the lock nor an exception to the next one"),
  () => {
    open();
    const interpreter = openInterpreter({});
    const { threads, errors } = interpreter.api;
    const [real, { beforeUnlock }] = [threads.PyGILState_Ensure, interpreter];
    const replace = (value: () => number) =>
      Object.defineProperty(threads, "PyGILState_Ensure", { value, writable: true });
    const { none } = interpreter.singletons;
    const callsPython = () => { // as where arrays of a checked GPU have gone to Python
      interpreter.release(interpreter.callHelper("is_keyed", [interpreter.retain(none)]));
    };
    try {
      for (const whatIsLast of [null, callsPython]) {
        interpreter.beforeUnlock = whatIsLast;
        let taken = 0;
        replace(() => {
          throw new RangeError("no room on the stack");
        });
        assertThrows(() => interpreter.locked(() => {}), RangeError);
        replace(() => {
          taken++;
          return real();
        });
        const leave = () => {
          interpreter.api.objects.PyObject_GetAttr(none, interpreter.name("missing")); // an AttributeError is pending
          throw new RangeError("no room on the stack");
        };
        assertThrows(() => interpreter.locked(leave), RangeError);
        assertEquals(interpreter.locked(() => errors.PyErr_Occurred()), 0n);
        assertEquals(taken, 2);
      }
    } finally {
      replace(real);
      interpreter.beforeUnlock = beforeUnlock;
    }
  },
);

// Bun's stack may end at the first step of a function. The lock counted as held then, and a later call without it ended
// the process, in three of four runs.
test(...needs(missing, "reads of attributes where the stack ends leave Python usable"), async () => {
  const script = new URL("stack_end_child.ts", import.meta.url);
  const { count } = await runScriptForJson(script, { timeout: 60_000 }) as { count: number };
  assert(count > 1000);
});

test(...needs(missing, "any number of objects may be found by the collector in one turn"), () => {
  const python = open();
  const interpreter = openInterpreter({});
  // They were passed as the arguments of one call, which fails for more than some hundred thousand.
  const [count, references] = [1_000_000, () => python.evaluate("__import__('sys').getrefcount")(kept)];
  const kept: PyObject = python.evaluate("object()");
  const before = references();
  const { object } = handleOf(kept) ?? { object: 0n };
  interpreter.locked(() => {
    for (let i = 0; i < count; i++) interpreter.retain(object);
  });
  for (let i = 0; i < count; i++) interpreter.releaseLater(object);
  assertEquals(references(), before);
});

test(...needs(missing, "nested calls in both directions keep their arguments and the errors that they throw"), () => {
  const python = open();
  // A C function looks at its arguments after it has called the first of them.
  const max: PyObject = python.builtins["max"];
  const call: PyObject = python.evaluate("lambda function, *arguments: function(*arguments)");
  class Ours extends Error {}
  check(
    fc.property(
      fc.array(fc.integer(), { minLength: 2, maxLength: 6 }),
      fc.nat(5),
      fc.boolean(),
      (values, depth, fails) => {
        const error = new Ours("at the bottom");
        const nested = (left: number): number => {
          if (left > 0) {
            return max(...values, kwargs({ key: (x: number) => call((y: number) => (nested(left - 1), y), x) }));
          }
          if (fails) throw error;
          return max(...values.map((value) => -value));
        };
        if (!fails) {
          return assertEquals(nested(depth % 3), depth % 3 === 0 ? -Math.min(...values) : Math.max(...values));
        }
        try {
          nested(depth % 3);
        } catch (thrown) {
          return assertStrictEquals(thrown, error);
        }
        throw new Error("nothing was thrown");
      },
    ),
    60,
  );
  for (const thrown of [undefined, 5, "text", { a: 1 }]) {
    try {
      call(() => {
        throw thrown;
      });
      assert(false, "nothing was thrown");
    } catch (error) {
      assertStrictEquals(error, thrown);
    }
  }
});

test(
  ...needs(missing, "an exception of Python passes through JavaScript unchanged, and Python catches JavaScript's"),
  () => {
    const python = open();
    python.run(`
def attempt(function):
    try: return function()
    except KeyError as error: return "KeyError " + str(error)
    except Exception as error: return type(error).__module__ + " " + str(error)
`);
    const attempt: PyObject = python.evaluate("attempt");
    assertEquals(attempt(() => python.evaluate("{}['k']")), "KeyError 'k'");
    assertEquals(
      attempt(() => {
        throw new RangeError("ours");
      }),
      "causeway RangeError: ours",
    );
    assertEquals(attempt(() => attempt(() => python.evaluate("{}['deep']"))), "KeyError 'deep'");
    assertMatch(attempt(async () => await Promise.resolve(1)), /Cannot wait for a promise while JavaScript waits/);
    const fail: PyObject = python.evaluate("lambda function: function()");
    assertThrows(() => fail(() => python.evaluate("{}['k']")), PythonError, "KeyError: 'k'");
  },
);

test(...needs(missing, "a function is one object in Python, the same when returned, and is released with it"), () => {
  const python = open();
  const same: PyObject = python.evaluate("lambda a, b: a is b");
  const hold: PyObject = python.evaluate("[]");
  const fn = (x: number) => x + 1;
  assert(same(fn, fn));
  assert(!same(fn, () => 1));
  hold["append"](fn);
  assertStrictEquals(hold[0], fn);
  assertEquals(python.builtins["repr"](fn), "<function fn of JavaScript>");
  const side = openInterpreter({}).javascript;
  hold["clear"]();
  for (let i = 0; i < 100; i++) hold["append"]((x: number) => x * i);
  assertEquals([...hold].map((one, i) => (one as typeof fn)(2) === 2 * i).includes(false), false);
  const before = side.keptForPython;
  hold["clear"](); // by machine code, followed by a poll
  assertEquals(side.keptForPython, before - 100);
});

test(...needs(missing, "an array among the arguments of a function is a view of the same memory"), () => {
  const python = open();
  const call: PyObject = python.evaluate("lambda function, value: function(value)");
  const numbers = Float64Array.of(1, 2, 3);
  call((value: StridedMemoryView) => {
    using view = StridedMemoryView.from(value);
    new Float64Array(view.buffer.bytes?.().buffer ?? numbers.buffer)[0] = 9;
  }, numbers);
  assertEquals(numbers[0], 9);
  python.builtins["len"]([]);
  assertEquals(liveExports(), 0);
});

const threads = `
import threading
def on_thread(function, count=1):
    results = []
    def run():
        try: results.append(function(threading.get_native_id()))
        except Exception as error: results.append(str(error))
    started = [threading.Thread(target=run) for _ in range(count)]
    for one in started: one.start()
    for one in started: one.join()
    return results
`;

test(
  ...needs(missing, "a function called from another thread runs on JavaScript's, in turn, also an async one"),
  async () => {
    const python = open();
    python.run(threads);
    const call = python.async(python.evaluate("on_thread"));
    let isInside = false;
    const plain = (id: number) => {
      assert(!isInside);
      isInside = true;
      assert(python.import("threading")["get_native_id"]() !== id);
      isInside = false;
      return id * 2;
    };
    using results: PyObject = await call(plain, 20);
    assertEquals(results["length"], 20);
    for (const result of results.$value() as unknown[]) assertEquals(typeof result, "number", String(result));
    const waits = async (id: number) => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      if (id < 0) throw new RangeError("negative");
      return "waited";
    };
    using waited: PyObject = await call(waits, 3);
    assertEquals(waited.$value(), ["waited", "waited", "waited"]);
    const error = new RangeError("ours");
    const direct = python.async(python.evaluate("lambda function: function()"));
    const thrown: unknown = await direct(() => {
      throw error;
    }).catch((one: unknown) => one);
    assertStrictEquals(thrown, error);
  },
);

test(
  ...needs(missing, "a call from a thread that JavaScript waits for is refused, and from any other it is not"),
  async () => {
    const python = open();
    python.run(threads);
    const interpreter = openInterpreter({});
    const patience = (seconds: number) =>
      interpreter.locked(() => interpreter.release(interpreter.executeGuest(`PATIENCE, LOOK = ${seconds}, 0.02`)));
    patience(0.3);
    try {
      let calls = 0;
      const count = () => ++calls;
      const onThread: PyObject = python.evaluate("on_thread");
      using refused: PyObject = onThread(count, 2);
      for (const text of refused.$value() as string[]) assertMatch(text, /cannot call the function count .* py\.async/);
      // Short calls of Python, one after the other, are not refused, however long they go on.
      const pending = python.async(onThread)(count);
      const end = performance.now() + 900;
      const sleep: PyObject = python.import("time")["sleep"];
      while (performance.now() < end) sleep(0.01);
      using answered: PyObject = await pending;
      assertEquals([answered.$value(), calls], [[1], 1], "it is called once: a refused call is never made");
    } finally {
      patience(5);
    }
  },
);

// A function that had run for five seconds was refused, too, its result was lost; one that was refused ran later.
test(
  ...needs(missing, "a function that has begun is waited for, and one that was refused is not called later"),
  async () => {
    const python = open();
    python.run(`${threads}
def on_threads(*functions):
    results = [None] * len(functions)
    def run(i):
        try: results[i] = functions[i]()
        except Exception as error: results[i] = str(error)
    started = [threading.Thread(target=run, args=(i,)) for i in range(len(functions))]
    for one in started: one.start()
    for one in started: one.join()
    return results
`);
    const interpreter = openInterpreter({});
    const patience = (seconds: number) =>
      interpreter.locked(() => interpreter.release(interpreter.executeGuest(`PATIENCE, LOOK = ${seconds}, 0.02`)));
    patience(0.3);
    try {
      const log: string[] = [];
      const sleep: PyObject = python.import("time")["sleep"];
      const slow = (name: string) => () => {
        log.push(name);
        sleep(0.9);
        return name;
      };
      using results: PyObject = await python.async(python.evaluate("on_threads"))(slow("a"), slow("b"));
      const values = results.$value() as string[];
      assertEquals(log.length, 1, "the other was refused, and is not called later either");
      assertEquals(values.filter((one) => one === log[0]).length, 1);
      assertMatch(values.find((one) => one !== log[0]) ?? "", /cannot call the function/);
      await new Promise((resolve) => setTimeout(resolve, 50));
      assertEquals(log.length, 1);
    } finally {
      patience(5);
    }
  },
);

// A copy was called as if another thread had passed it; an object with __await__ was awaited on one thread only.
test(
  ...needs(missing, "a function is copied as itself, is not pickled, and returns the same to any thread"),
  async () => {
    const python = open();
    python.run(
      "import copy, pickle\nasync def later(): return 1\ndef kind(f):\n    made = f()\n    name = type(made).__name__\n    made.close()\n    return name",
    );
    const fn = () => 42;
    assertEquals(python.evaluate("lambda f: copy.deepcopy({'f': [f]})['f'][0]()")(fn), 42);
    assertEquals(python.evaluate("lambda f: copy.copy(f) is f and copy.deepcopy(f) is f")(fn), true);
    assertThrows(() => python.evaluate("pickle.dumps")(fn), PythonError, "cannot pickle <function fn of JavaScript>");
    const [kind, later]: PyObject[] = [python.evaluate("kind"), python.evaluate("later")];
    assert(kind !== undefined && later !== undefined);
    assertEquals([kind(() => later()), await python.async(kind)(() => later())], ["coroutine", "coroutine"]);
  },
);

// LightGBM numbers its callbacks in their __dict__; SciPy's curve_fit, DuckDB and pydantic count parameters.
test(...needs(missing, "a function takes attributes and tells how many parameters it has, as Python's do"), () => {
  const python = open();
  python.run(`
import functools, inspect
def marked(f):
    f.__dict__.setdefault("order", 3)
    f.terminal = True
    return [f.order, f.terminal, f.__name__, f.__qualname__, hasattr(f, "other")]
def wrapped(outer, inner):
    functools.wraps(inner)(outer)
    return [outer(), inner(), outer.__name__, outer.__wrapped__ is inner]
def told(f): return str(inspect.signature(f))
`);
  const [marked, wrapped, told]: PyObject[] = ["marked", "wrapped", "told"].map((name) => python.evaluate(name));
  const fn = (x: number, y: number) => x + y;
  assertEquals(marked?.(fn).$value(), [3, true, "fn", "fn", false]);
  const { outer, inner } = { outer: () => "outer", inner: () => "inner" };
  assertEquals(wrapped?.(outer, inner).$value(), ["outer", "inner", "inner", true]);
  assertEquals(told?.(fn), "(argument1, argument2, /)");
  const any = "(*arguments, **keywords)";
  assertEquals(told?.((...all: unknown[]) => all), any, "its length is 0, too");
  for (const value of [-1, 0.5, NaN, Infinity, 1e9, "2"]) {
    assertEquals(told?.(Object.defineProperty(() => 1, "length", { value })), any, String(value));
  }
});

const withNumpy = findPython("numpy");

// JavaScript's engines left flags set: NumPy warned of invalid values and divisions by zero, in Bun after every loop.
test(
  ...needs(
    typeof withNumpy === "string" ? withNumpy : missing,
    "NumPy's loops over a function of JavaScript warn of nothing",
  ),
  () => {
    const python = open();
    python.run(`
import warnings, numpy as np
def warned(function, count):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        np.vectorize(function)(np.arange(count) * 1.5)
        np.frompyfunc(function, 1, 1)(np.arange(count) * 1.5)
    return [str(one.message) for one in found]
`);
    const warned: PyObject = python.evaluate("warned");
    const functions = [(x: number) => x + 1, (x: number) => x / 3.7, Math.floor, (x: number) => x | 0];
    for (const one of functions) {
      for (const count of [100, 20_000]) assertEquals(warned(one, count).$value(), [], `${one}, ${count} times`);
    }
  },
);
