/**
 * The exception of a `PythonError`: it is there with its attributes, for JavaScript and for Python, and keeps no frame
 * alive.
 */
import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { inspect } from "node:util";
import { type PyObject, Python, PythonError, StridedMemoryView } from "../../mod.ts";
import { collectGarbage } from "../support/collect.ts";
import { openInterpreter } from "../../src/python/start_interpreter.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
/** Why an exception of another thread cannot be seen to end with its error. */
const stays = typeof found === "string"
  ? found
  : found.isFreeThreaded
  ? "what a free-threaded Python releases on another thread stays until its own runs Python code"
  : null;

/** Python, with what the tests call. */
function open(): Python {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  python.run(scene);
  return python;
}

/**
 * `raise_tree(spec)` raises an exception with others behind and in it, each from a frame with a variable that is
 * counted: `alive()` counts those that are still there.
 */
const scene = `
import gc

class Local:
    alive = 0
    def __init__(self): Local.alive += 1
    def __del__(self): Local.alive -= 1

def alive():
    gc.collect()
    return Local.alive

class Failure(Exception): pass

GROUP = globals().get("ExceptionGroup") or getattr(__import__("builtins"), "ExceptionGroup", None)

def raised(spec):
    try: raise_tree(spec)
    except Exception as error: return error

def made(name, inner):
    error = GROUP(name, inner) if inner else Failure(name)
    error.label, error.members = name, inner
    return error

def raise_tree(spec):
    local = Local()
    name, cause, context, members = spec
    inner = [raised(one) for one in members]
    # Not in variables: those of its own frames would refer to the exception.
    parts = [made(name, inner), None if cause is None else raised(cause)]
    if context is None: raise parts.pop(0) from parts.pop()
    try: raise_tree(context)
    except Exception: raise parts.pop(0) from parts.pop()

def raise_spec(spec): raise_tree(spec)

def same(one, other): return one is other

def attempt(function):
    try: return function()
    except BaseException as error: return [error]

def frames(error):
    import traceback
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]
`;

const countedScene = `
class Counted(Exception):
    made = alive = 0
    def __init__(self, number):
        super().__init__(number)
        Counted.alive += 1
    def __del__(self): type(self).alive -= 1

def fail():
    Counted.made += 1
    raise Counted(Counted.made - 1)

def left(): return Counted.alive
`;

/** An exception to raise: its name, what it is raised from and during, and those in it. */
type Spec = readonly [name: string, cause: Spec | null, context: Spec | null, members: readonly Spec[]];

/** Exceptions that have at most so many others behind each other, and in each of them. */
function specs(depth: number, members: number): fc.Arbitrary<Spec> {
  const name = fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 5 });
  if (depth <= 1) return fc.tuple(name, fc.constant(null), fc.constant(null), fc.constant([]));
  const others = specs(depth - 1, members);
  return fc.tuple<[string, Spec | null, Spec | null, Spec[]]>(
    name,
    fc.option(others),
    fc.option(others),
    fc.array(others, { maxLength: members }),
  );
}

/** What was thrown. */
function thrownBy(work: () => unknown): PythonError {
  return assertThrows(work, PythonError);
}

/** The names of an exception, of what it was raised from and during, and of those in it. */
function namesOf(error: PyObject): Spec {
  const other = (one: PyObject | null) => one === null ? null : namesOf(one);
  const members: PyObject[] = [...error["members"]];
  return [error["label"], other(error["__cause__"]), other(error["__context__"]), members.map(namesOf)];
}

test(
  ...needs(missing, "an exception is there with all that is behind and in it, and no frame of any of them is"),
  () => {
    const python = open();
    const [raise, alive, attempt]: PyObject[] = ["raise_spec", "alive", "attempt"].map((name) => python.evaluate(name));
    assert(raise && alive && attempt);
    const members = python.evaluate("GROUP is not None") === true ? 2 : 0;
    check(
      fc.property(specs(3, members), fc.boolean(), (made, isCalledBack) => {
        let error: PythonError | null = null;
        const act = () => void (error = thrownBy(() => raise(made)));
        if (isCalledBack) attempt(act);
        else act();
        assert(error !== null);
        const { value } = error as PythonError;
        assert(value !== null);
        assertEquals(namesOf(value), made);
        assertEquals(alive(), 0);
        value.$close();
      }),
      100,
    );
  },
);

test(...needs(stays, "the exception of a call that did not block keeps no frame either"), async () => {
  const python = open();
  const [raise, alive]: PyObject[] = ["raise_spec", "alive"].map((name) => python.evaluate(name));
  assert(raise && alive);
  python.run("async def raise_later(spec): raise_tree(spec)");
  const made: Spec = ["a", ["b", null, null, []], ["c", null, null, []], []];
  // The thread that made the call may continue before JavaScript looks, or after it: as if it had not yet returned.
  python.run("import os, time\nwrite = os.write\ndef slow(*args): done = write(*args); time.sleep(0.01); return done");
  for (const writer of ["write", "slow"]) {
    python.run(`os.write = ${writer}`);
    try {
      for (const call of [raise, python.evaluate("raise_later")]) {
        const error: unknown = await python.async(call ?? python.builtins)(made).catch((reason: unknown) => reason);
        assert(error instanceof PythonError && error.value !== null);
        assertEquals(namesOf(error.value), made);
        assertEquals(alive(), 0);
      }
    } finally {
      python.run("os.write = write");
    }
  }
});

test(...needs(missing, "an exception has its attributes: a number of the system, arguments, others in a group"), () => {
  const python = open();
  const missingFile = thrownBy(() => python.builtins["open"]("/missing/file"));
  assertEquals([missingFile.value?.["errno"], missingFile.value?.["filename"]], [2, "/missing/file"]);
  assertStrictEquals(missingFile.value, missingFile.value);
  const key = thrownBy(() => python.evaluate("{}[(1, 'k')]"));
  assertEquals(key.value?.["args"].$value(), [[1, "k"]]);
  const from = thrownBy(() => python.run("raise KeyError(1) from OSError(5, 'text')"));
  assert(from.cause instanceof PythonError);
  assertEquals(from.cause.value?.["errno"], 5);
  assertStrictEquals(from.cause.value, from.cause.value);
  assertEquals(thrownBy(() => python.run("error = KeyError(1)\nraise error from error")).value?.["args"].$value(), [1]);
  if (python.evaluate("GROUP is not None") === true) {
    const group = thrownBy(() => python.run("raise ExceptionGroup('both', [ValueError(1), OSError(2, 'b')])"));
    assertEquals([...group.value?.["exceptions"]].map((one) => one["args"].$value()), [[1], [2, "b"]]);
  }
});

test(...needs(missing, "a failure without an exception has none"), () => {
  assertEquals(new PythonError("SystemError", "SystemError: x", "").value, null);
});

test(...needs(missing, "an error goes back to Python as its exception, as an argument and when it is thrown"), () => {
  const python = open();
  const same: PyObject = python.evaluate("same");
  const attempt: PyObject = python.evaluate("attempt");
  const error = thrownBy(() => python.run("raise KeyError('k') from ValueError('v')"));
  const { cause } = error;
  assert(cause instanceof PythonError);
  for (const one of [error, cause]) {
    assertEquals(same(one, one.value), true);
    assertEquals(
      same(
        attempt(() => {
          throw one;
        })[0],
        one.value,
      ),
      true,
    ); // from a later call
  }
  // Within one call the exception goes on with its traceback.
  const names = (work: () => unknown): string[] => [...python.evaluate("lambda f: frames(attempt(f)[0])")(work)];
  assertEquals(names(() => python.evaluate("raise_spec")(["a", null, null, []])).slice(-2), [
    "raise_spec",
    "raise_tree",
  ]);
  assertEquals(
    names(() => {
      throw error;
    }).includes("raise_tree"),
    false,
  );
});

// It was wrapped as a value of JavaScript's, which no `except` of Python's catches.
test(...needs(missing, "an exception of Python that a function throws is raised as it is, and nothing else is"), () => {
  const python = open();
  const attempt: PyObject = python.evaluate("attempt");
  const same: PyObject = python.evaluate("same");
  const raisedBy = (thrown: unknown): PyObject =>
    attempt(() => {
      throw thrown;
    })[0];
  for (const code of ["ValueError('negative')", "Failure()", "KeyboardInterrupt()", "StopIteration(5)"]) {
    const made: PyObject = python.evaluate(code);
    assertEquals(same(raisedBy(made), made), true, code);
    const passed = thrownBy(() =>
      python.evaluate("lambda f: f()")(() => {
        throw made;
      })
    );
    assertEquals(same(passed.value, made), true, code);
  }
  const closed: PyObject = python.evaluate("ValueError(1)");
  closed.$close();
  const hostile = new Proxy({}, {
    get() {
      throw new Error("no property");
    },
  });
  for (const other of [python.evaluate("object()"), python.evaluate("ValueError"), closed, hostile, null, 5]) {
    assertEquals(python.builtins["type"](raisedBy(other))["__name__"], "JavaScriptError");
  }
});

test(...needs(missing, "an error whose exception was released is one of JavaScript's for Python"), () => {
  const python = open();
  const error = thrownBy(() => python.evaluate("{}['k']"));
  error.value?.$close();
  const attempt: PyObject = python.evaluate("attempt");
  const received: PyObject = attempt(() => {
    throw error;
  })[0];
  assertEquals(python.builtins["type"](received)["__name__"], "JavaScriptError");
  assertThrows(() => python.builtins["id"](error), TypeError, "released");
  const { cause } = thrownBy(() => python.run("raise KeyError(1) from ValueError(2)"));
  const closed = thrownBy(() => python.run("raise KeyError(1) from ValueError(2)"));
  closed.value?.$close();
  assert(cause instanceof PythonError && closed.cause instanceof PythonError);
  assertEquals([cause.value?.["args"].$value(), closed.cause.value], [[2], null]);
});

test(
  ...needs(stays, "exceptions that nobody wants are released: with their errors, and within a turn all but the last"),
  async () => {
    const python = open();
    python.run(countedScene);
    const [fail, left]: PyObject[] = ["fail", "left"].map((name) => python.evaluate(name));
    assert(fail && left);
    const none = left();
    const first = thrownBy(() => fail());
    for (let i = 0; i < 1000; i++) thrownBy(() => fail());
    const last = thrownBy(() => fail());
    assertEquals(first.value, null);
    assertEquals(last.value?.["args"].$value(), [1001]);
    assert(left() - none <= 257, `${left()} of 1002 exceptions are kept within one turn`);
    for (let i = 0; i < 20 && left() - none > 5; i++) await collectGarbage();
    assert(left() - none <= 5, `${left()} exceptions are kept whose errors are gone`);
    python.evaluate("attempt")(() => {
      for (let i = 0; i < 1000; i++) thrownBy(() => fail());
    });
    for (let i = 0; i < 20 && left() - none > 5; i++) await collectGarbage();
    assert(left() - none <= 5, `${left()} exceptions are kept that a function has caught`);
    await Promise.allSettled(Array.from({ length: 300 }, () => python.async(fail)()));
    for (let i = 0; i < 20 && left() - none > 5; i++) await collectGarbage();
    assert(left() - none <= 5, `${left()} exceptions are kept of calls that did not block`);
    const kept = thrownBy(() => fail());
    await collectGarbage();
    for (let i = 0; i < 1000; i++) thrownBy(() => fail());
    assertEquals(kept.value?.["args"].$value(), [2302]); // from an earlier turn
  },
);

test(...needs(missing, "an exception that a function catches, once or more often, is released after it"), () => {
  const python = open();
  python.run(countedScene);
  const [fail, left, attempt]: PyObject[] = ["fail", "left", "attempt"].map((name) => python.evaluate(name));
  assert(fail && left && attempt);
  const one: PyObject = python.evaluate("Counted(0)");
  const raise: PyObject = python.evaluate("lambda error: exec('raise error', {'error': error})");
  attempt(() => {
    for (let i = 0; i < 3; i++) thrownBy(() => raise(one)).value?.$close();
  });
  one.$close();
  python.import("gc")["collect"](); // its own frames refer to it
  assertEquals(left(), 0);
});

// Tracebacks were dropped, and the next who raised or logged such an exception had none.
test(...needs(missing, "an exception that something in Python has keeps its traceback"), async () => {
  const python = open();
  python.run(`
import asyncio, concurrent.futures, dataclasses, traceback

def deep(): raise ValueError("deep")

def raises_again(callback):
    try: deep()
    except ValueError:
        callback()
        raise

def logs(callback):
    try: deep()
    except ValueError:
        callback()
        return traceback.format_exc()

future = concurrent.futures.Future()
try: deep()
except ValueError as error: future.set_exception(error)

task = None
async def cached():
    global task
    async def fails(): deep()
    task = task or asyncio.ensure_future(fails())
    await task
`);
  const [deep, logs, again, cached]: PyObject[] = ["deep", "logs", "raises_again", "cached"]
    .map((name) => python.evaluate(name));
  assert(deep && logs && again && cached);
  const swallow = () => void thrownBy(() => deep());
  assert(logs(swallow).includes("in deep"));
  assert(thrownBy(() => again(swallow)).traceback.includes("in deep"));
  const future: PyObject = python.evaluate("future");
  for (let i = 0; i < 2; i++) assert(thrownBy(() => future["result"]()).traceback.includes("in deep"));
  const errors = await Promise.allSettled([python.async(cached)(), python.async(cached)()]);
  for (const one of errors) {
    assert(one.status === "rejected" && one.reason instanceof PythonError);
    assert(one.reason.traceback.includes("in cached"), one.reason.traceback);
  }
});

// Python's lock stayed taken, and every later `py.async` hung.
test(...needs(missing, "exceptions whose classes forbid or replace attributes are caught as others are"), async () => {
  const python = open();
  python.run(`
import dataclasses, time
@dataclasses.dataclass(frozen=True)
class Frozen(Exception): code: int
class Replaced(Exception):
    __cause__ = __context__ = __traceback__ = property(lambda self: 1 // 0)
class Group(GROUP or Exception):
    exceptions = property(lambda self: 1 // 0)

def raise_frozen():
    try: raise Frozen(3)
    except Frozen as error: raise ValueError("outer") from error
def raise_replaced(): raise Replaced("x")
def raise_group(): raise Group("g", [ValueError(1)])
def raise_changed():
    error = (GROUP or Exception)("g", [ValueError(1)])
    error.args = ()
    raise error
`);
  const attempt: PyObject = python.evaluate("attempt");
  for (const name of ["raise_frozen", "raise_replaced", "raise_group", "raise_changed"]) {
    const raise: PyObject = python.evaluate(name);
    assertEquals(attempt(() => (thrownBy(() => raise()), "caught")), "caught", name);
    const { message } = thrownBy(() => raise());
    assertEquals(message.includes("cannot be described"), name === "raise_replaced", name);
    await python.async(python.evaluate("time.sleep"))(0);
  }
});

test(...needs(missing, "of many calls that fail in one turn each has its exception"), async () => {
  const python = open();
  const fail: PyObject = python.evaluate("lambda i: {}[i]");
  const count = 600;
  const errors = await Promise.allSettled(Array.from({ length: count }, (_, i) => python.async(fail)(i)));
  const keys = errors.map((one) => (one as PromiseRejectedResult).reason.value?.["args"].$value()[0]);
  assertEquals(keys, Array.from({ length: count }, (_, i) => i));
});

test(...needs(missing, "a function that Python calls throws any exception that it has caught"), () => {
  const python = open();
  const attempt: PyObject = python.evaluate("attempt");
  const fail: PyObject = python.evaluate("lambda i: {}[i]");
  const received: PyObject = attempt(() => {
    const first = thrownBy(() => fail(0));
    for (let i = 0; i < 1000; i++) thrownBy(() => fail(i));
    throw first;
  })[0];
  assertEquals([python.builtins["type"](received)["__name__"], ...received["args"]], ["KeyError", 0]);
});

test(...needs(missing, "an exception that no program receives is released at once"), () => {
  const python = open();
  python.run(countedScene);
  python.run(`
class Refuses:
    def __dlpack__(self, **options): fail()
    def __dlpack_device__(self): return 1, 0
class Described(Refuses):
    __array_interface__ = {"version": 3, "shape": (2,), "typestr": "|u1", "data": b"ab"}
class Mute:
    def __str__(self): fail()
class Arrow(Refuses):
    def __arrow_c_array__(self, requested_schema=None): return [][0]
`);
  const left: PyObject = python.evaluate("left");
  const none = left();
  using refuses: PyObject = python.evaluate("Refuses()"); // stays an object
  assertEquals(left(), none, "a result");
  using described: PyObject = python.evaluate("[Described()]");
  StridedMemoryView.from(described.$get("__getitem__").$call(0)).close();
  assertEquals(left(), none, "an array that has an interface, too");
  using mute: PyObject = python.evaluate("Mute()");
  assert(inspect(mute).includes("str() fails"));
  assertEquals(left(), none, "a text");
  using arrow: PyObject = python.evaluate("[Arrow()]");
  thrownBy(() => StridedMemoryView.from(arrow.$get("__getitem__").$call(0)));
  assertEquals(left(), none, "an array that has Arrow's protocol, too");
  assertEquals(refuses["__class__"]["__name__"], "Refuses");
});

// The lock counted as held then, and calls that do not block never ended.
test(...needs(missing, "a function at whose end the stack ends leaves Python usable"), async () => {
  const python = open();
  const attempt: PyObject = python.evaluate("attempt");
  const interpreter = openInterpreter({});
  const real = interpreter.callWithOne.bind(interpreter);
  let ends = 0;
  interpreter.callWithOne = (callable, argument) => {
    if (callable !== interpreter.helper("drop_traces_if_lone")) return real(callable, argument);
    ends++;
    throw new RangeError("Maximum call stack size exceeded");
  };
  const act = () => void thrownBy(() => python.evaluate("{}['k']"));
  try {
    using answer: PyObject = attempt(act);
    assertEquals(python.builtins["type"](answer[0])["__name__"], "RuntimeError");
  } finally {
    interpreter.callWithOne = real;
  }
  assertEquals([ends, interpreter.isCalledBack], [1, false]);
  assertEquals(await python.async(python.evaluate("lambda: 5"))(), 5);
});
