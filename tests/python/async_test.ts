/** Calls that do not block JavaScript: they return what blocking calls return, and leave nothing behind. */
import { assert, assertEquals, assertRejects, assertStrictEquals, assertThrows } from "@std/assert";
import { setTimeout } from "node:timers/promises";
import { test } from "node:test";
import { kwargs, liveExports, type PyObject, Python, PythonError } from "../../mod.ts";
import { isBun, patiently, runScript } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const withNumpy = findPython("numpy");
const missingNumpy = typeof withNumpy === "string" ? withNumpy : null;
const open = () => Python.open({ home: typeof found === "string" ? "" : found.executable });

const functions = `
import asyncio, threading, time
def plain(*values, **named):
    if "fails" in named: raise ValueError(named["fails"])
    return [*values, *named.items()]
async def coroutine(*values, **named):
    await asyncio.sleep(0)
    return plain(*values, **named)
def gives_coroutine(*values, **named): return coroutine(*values, **named)
def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: pass
`;

test(
  ...needs(missing, "async calls return and raise what blocking calls do, however many there are"),
  async () => {
    const python = open();
    python.run(functions);
    const kinds = ["plain", "coroutine", "gives_coroutine"].map((name) => python.async(python.evaluate(name)));
    const value = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.constant(null));
    const call = fc.record({
      kind: fc.constantFrom(...kinds),
      values: fc.array(value, { maxLength: 4 }),
      fails: fc.option(fc.stringMatching(/^[a-z]+$/), { freq: 3 }),
    });
    await check(
      fc.asyncProperty(fc.array(call, { maxLength: 50 }), async (calls) => {
        await Promise.all(calls.map(async ({ kind, values, fails }) => {
          if (fails !== null) {
            const error = await assertRejects(() => kind(...values, kwargs({ fails })), PythonError, fails);
            return assertEquals(error.type, "ValueError");
          }
          using result: PyObject = await kind(...values, kwargs({ name: 1 }));
          using pair: PyObject = result[values.length];
          assertEquals(pair.$value(), ["name", 1]);
          assertEquals((result.$value() as unknown[]).slice(0, -1), values);
        }));
      }),
      40,
    );
    const error = await assertRejects(() => python.async(python.builtins["abs"])({ a: 1 }), PythonError);
    assert(error.message.includes("kwargs({ a })"));
    assertEquals(await python.async(python.builtins["eval"])("__name__"), "__main__", "its frame is the module's");
  },
);

test(
  ...needs(missing, "the event loop runs while Python waits or computes, and the call ends without a timer"),
  async () => {
    const python = open();
    python.run(functions);
    // Where other processes use all processors a timer fires 23 times in 0.3 s: but not ten times in a row so seldom.
    const ticksMoreThan = async (least: number, work: () => Promise<unknown>) => {
      let ticks = 0;
      for (let round = 0; round < 10 && ticks <= least; round++) {
        ticks = 0;
        const timer = setInterval(() => ticks++, 1);
        await work().finally(() => clearInterval(timer));
      }
      return ticks > least;
    };
    const sleep = python.async(python.import("time")["sleep"]);
    assert(await ticksMoreThan(20, () => sleep(0.3)));
    // pbkdf2 releases the lock
    const derive: PyObject = python.evaluate(
      "lambda: __import__('hashlib').pbkdf2_hmac('sha256', b'a', b'b', 300000).hex()",
    );
    assert(await ticksMoreThan(10, () => python.async(derive)()));
    const spin = python.async(python.evaluate("spin"));
    assert(await ticksMoreThan(20, () => spin(0.3)), "and while it runs Python code");
    const started = performance.now();
    await Promise.all(Array.from({ length: 8 }, () => sleep(0.2)));
    assert(performance.now() - started < 1000, "they wait concurrently");
  },
);

// The thread of asyncio's loop ended with its loop: that call, and every later one, waited for ever.
test(...needs(missing, "a coroutine that leaves or stops the event loop is over, and later ones run"), async () => {
  const python = open();
  python.run(`
import asyncio
async def fine(): return 5
async def leaves(error): raise error
async def task(error): return await asyncio.create_task(leaves(error))
async def gathered(error): return await asyncio.gather(leaves(error), fine())
async def called(error):
    def leave(): raise error
    asyncio.get_running_loop().call_soon(leave)
    await asyncio.sleep(0.01)
async def stops(_): asyncio.get_running_loop().stop()
`);
  const fine = python.async(python.evaluate("fine"));
  const limit = () => ({ signal: AbortSignal.timeout(20_000) });
  for (const error of ["SystemExit", "KeyboardInterrupt", "ValueError"]) {
    const raised = python.evaluate(`${error}("gone")`);
    for (const name of ["leaves", "task", "gathered"]) {
      const call = python.async(python.evaluate(name), limit());
      await assertRejects(() => call(raised), PythonError, error);
      assertEquals(await fine(), 5, `${name} ${error}`);
    }
    for (const name of ["called", "stops"]) {
      if (error === "ValueError") continue; // which asyncio prints, and goes on
      await python.async(python.evaluate(name), limit())(raised);
      assertEquals(await fine(), 5, `${name} ${error}`);
    }
  }
});

test(...needs(missing, "an aborted call ends at once, and is not made if it has not begun"), async () => {
  const python = open();
  python.run(functions + "began = []\ncancelled = []\ngate = threading.Event()");
  const controller = new AbortController();
  const { signal } = controller;
  const wait = python.async(python.evaluate("gate").$get("wait"));
  const blocking = Array.from({ length: 32 }, () => wait()); // all threads
  const note = python.async(python.evaluate("began").$get("append"), { signal });
  const sleep = python.async(python.import("time").$get("sleep"), { signal });
  python.run(`
async def patient():
    try: await asyncio.sleep(60)
    except asyncio.CancelledError: cancelled.append(True); raise
`);
  const patient = python.async(python.evaluate("patient"), { signal })();
  const given = [note(1), note(2), sleep(0.5), patient];
  await setTimeout(50);
  const reason = new RangeError("enough");
  controller.abort(reason);
  for (const one of given) assertStrictEquals(await one.catch((error: unknown) => error), reason);
  python.evaluate("gate").set();
  await Promise.all(blocking);
  assertEquals(await python.async(python.builtins["abs"])(-3), 3, "the threads still run");
  while (python.evaluate("cancelled")["length"] === 0) await setTimeout(5);
  using began: PyObject = python.evaluate("began");
  assertEquals(began.$value(), []);
  assertStrictEquals(await note(3).catch((error: unknown) => error), reason, "an aborted signal starts no call");
  assertEquals(began.$value(), []);
});

test(...needs(missing, "only Python objects can be called, options are checked, bad arguments reject"), async () => {
  const python = open();
  assertThrows(() => python.async((() => 1) as unknown as PyObject), TypeError, "not a Python object");
  assertThrows(() => python.async(python.builtins["abs"], { signall: 1 } as object), TypeError, "signall");
  assertThrows(() => python.async(python.builtins["abs"], { signal: 5 } as never), TypeError, "an AbortSignal, got 5");
  await assertRejects(() => python.async(python.builtins["abs"])(Symbol("s")), TypeError, "symbol");
});

test(...needs(missing, "for await iterates asynchronous generators, and closes them when it is left"), async () => {
  const python = open();
  python.run(`
import asyncio
ended = []
async def count(n):
    try:
        for i in range(n):
            await asyncio.sleep(0)
            yield i
        if n == 3: raise ValueError("three")
    finally:
        await asyncio.sleep(0)
        ended.append(n)
`);
  const count: PyObject = python.evaluate("count");
  const ended = () => python.evaluate("ended").$value();
  const seen: unknown[] = [];
  for await (const one of count(5)) seen.push(one);
  assertEquals([seen, ended()], [[0, 1, 2, 3, 4], [5]]);
  for await (const one of count(9)) if (one === 2) break;
  assertEquals(ended(), [5, 9]);
  await assertRejects(async () => await Array.fromAsync(count(3)), PythonError, "three");
  assertEquals(ended(), [5, 9, 3]);
  assertEquals(await Array.fromAsync(python.evaluate("[1, 'two']") as PyObject), [1, "two"], "others as with for");
});

test(
  ...needs(missingNumpy, "arrays are retained during a call, released after it, and returned as views"),
  async () => {
    const python = open();
    const np = python.import("numpy");
    python.run("import time, numpy\ndef later(array):\n    time.sleep(0.05)\n    array[0] = 7\n    return array * 2");
    const before = liveExports();
    const array = Float64Array.of(1, 2, 3);
    const pending = python.async(python.evaluate("later"))(array);
    assertEquals(liveExports(), before + 1);
    using result = await pending;
    assertEquals([...await result.toTypedArray()], [14, 4, 6]);
    assertEquals([array[0], liveExports()], [7, before]);
    void np;
  },
);

test(...needs(missing, "a call that failed long ago has its stack, and no frames except the program's"), async () => {
  const python = open();
  python.run(functions);
  python.run("async def generates():\n    yield 1\n    plain(fails='end')");
  const [plain, coroutine, gives]: PyObject[] = ["plain", "coroutine", "gives_coroutine"].map((one) =>
    python.evaluate(one)
  );
  async function callsLater(work: () => unknown): Promise<PythonError> {
    const error: unknown = await (async () => await work())().catch((error: unknown) => error);
    assert(error instanceof PythonError, String(error));
    return error;
  }
  assert(plain !== undefined && coroutine !== undefined && gives !== undefined);
  async function ofProgram(callable: PyObject): Promise<unknown> {
    const called = await python.async(callable)(kwargs({ fails: "late" }));
    return called;
  }
  async function awaits(): Promise<unknown> {
    const awaited: unknown = await coroutine?.(kwargs({ fails: "late" }));
    return awaited;
  }
  async function loops(): Promise<void> {
    for await (const one of python.evaluate("generates()") as PyObject) assertEquals(one, 1);
  }
  const ways: [() => unknown, string][] = [
    [() => ofProgram(plain), "ofProgram"],
    [() => ofProgram(coroutine), "ofProgram"],
    [() => ofProgram(gives), "ofProgram"],
    [awaits, "awaits"],
    [loops, "loops"],
  ];
  for (const [way, name] of ways) {
    const error = await callsLater(way);
    const stack = String(error.stack);
    const lines = stack.split("\n");
    assert(lines[1]?.startsWith("    at plain (<string>:"), stack);
    // Bun has left an awaiting function when it takes the stack of the awaited call.
    assert(stack.includes(`at ${name} (`) || stack.includes(`at async ${name} (`) || (isBun && way === awaits), stack);
    for (const text of [stack, error.traceback]) {
      assert(!/<causeway>|call_in_frame|wait_for| do |javascript_side/.test(text), text);
    }
    assert(error.traceback.includes("in plain\n"), error.traceback);
  }
});

test(...needs(missing, "await waits for a coroutine, once, and for no other Python object"), async () => {
  const python = open();
  python.run(functions);
  python.run("class Awaitable:\n    def __await__(self): return coroutine(5).__await__()");
  const coroutine: PyObject = python.evaluate("coroutine");
  const got: PyObject = await coroutine(1, kwargs({ name: 2 }));
  assertEquals(got.$value(), [1, ["name", 2]]);
  const started: PyObject = coroutine.$call(1);
  assertEquals((await Promise.all([started, coroutine(2), python.evaluate("Awaitable()")])).length, 3);
  await assertRejects(async () => await started, PythonError, "cannot reuse already awaited coroutine");
  for (const code of ["[]", "len", "coroutine", "object()"]) {
    using object: PyObject = python.evaluate(code);
    assertEquals("then" in object ? true : object["then"], undefined);
    const same: unknown = await object;
    assertStrictEquals(same, object);
  }
});

test(...needs(missing, "objects that cannot be called are refused before the call is awaited"), () => {
  const python = open();
  python.run(functions);
  using called: PyObject = python.evaluate("coroutine")(1);
  const error = assertThrows(() => python.async(called), TypeError, "py.async(f)(x), not py.async(f(x))");
  assert(error.message.startsWith("Cannot call <coroutine object coroutine at"), error.message);
  assertThrows(() => python.async(python.evaluate("[]")), TypeError, "Cannot call []: expected a Python function");
  called["close"]();
  python.async(python.evaluate("[]").append); // a method that was called may be looked up again
});

const child = new URL("./async_child.ts", import.meta.url);
const staysAlive = "a process stays alive for a call that it awaits, and for nothing else in Python";
test(needs(missing, staysAlive)[0], { skip: missing !== null, ...patiently }, async () => {
  const env = { CAUSEWAY_PYTHON: typeof found === "string" ? "" : found.executable };
  for (
    const [what, printed] of [["call", "over"], ["function", "1"], ["aborted", "aborted"], [
      "no thread",
      "no ,no 40,3 41,5 82",
    ]] as const
  ) {
    const { code, stdout, stderr } = await runScript(child, { args: [what], env });
    assertEquals([code, stdout.trim()], [0, printed], stderr);
  }
});

// Threads that waited for JavaScript counted as busy: 32 of them, whose functions called Python, waited for ever.
test(
  ...needs(missing, "calls that wait for JavaScript leave room for those that JavaScript waits for"),
  async () => {
    const python = open();
    python.run("def call(function, value): return function(value)");
    const call = python.async(python.evaluate("call"));
    const next = (value: number) => value + 1;
    const request = (i: number) => call(async (value: number) => await call(next, value), i);
    const all = Promise.all(Array.from({ length: 100 }, (_, i) => request(i)));
    assertEquals(
      await Promise.race([all, setTimeout(30_000, "late", { ref: false })]),
      Array.from({ length: 100 }, (_, i) => i + 1),
    );
    const nested = async (depth: number): Promise<number> => depth === 0 ? 0 : await call(nested, depth - 1) + 1;
    const late = setTimeout(30_000, -1, { ref: false });
    assertEquals(await Promise.race([nested(50), late]), 50);
    // What they wait for had begun before they waited: it was waiting for a thread.
    python.run("gate = __import__('threading').Event()\ndef after(function):\n    gate.wait()\n    return function()");
    const after = python.async(python.evaluate("after"));
    const last = Promise.withResolvers<number>();
    const first = Array.from({ length: 32 }, () => after(() => last.promise));
    last.resolve(call(next, 6));
    python.evaluate("gate.set()");
    assertEquals(
      new Set(await Promise.race([Promise.all(first), setTimeout(30_000, [], { ref: false })])),
      new Set([7]),
    );
    const threads = () => python.evaluate("sum(t.name == 'causeway' for t in __import__('threading').enumerate())");
    for (let i = 0; i < 100 && threads() > 32; i++) await setTimeout(20);
    assert(threads() <= 32, "threads that are not needed any more end");
  },
);

// Only threads of the pool lent their places: 32 calls whose own threads waited for JavaScript waited for ever, and so
// did 7 nested calls of asyncio.to_thread on two processors.
test(...needs(missing, "a call may wait for JavaScript on threads of its own, and of asyncio's"), async () => {
  const python = open();
  python.run(`
import asyncio
from concurrent.futures import ThreadPoolExecutor
def through_pool(function):
    with ThreadPoolExecutor(1) as pool: return pool.submit(function).result()
def leaf(): return 1
async def through_asyncio(function, depth): return await asyncio.to_thread(function, depth)
async def fails(): return await asyncio.to_thread(int, "x")
`);
  const [through, leaf] = ["through_pool", "leaf"].map((name) => python.async(python.evaluate(name)));
  const nested = python.async(python.evaluate("through_asyncio"));
  assert(through !== undefined && leaf !== undefined);
  const late = () => setTimeout(30_000, "late", { ref: false });
  const all = Promise.all(Array.from({ length: 100 }, () => through(async () => await leaf())));
  assertEquals(await Promise.race([all, late()]), Array.from({ length: 100 }, () => 1));
  const down = async (depth: number): Promise<number> => depth === 0 ? 0 : 1 + await nested(down, depth - 1);
  assertEquals(await Promise.race([down(50), late()]), 50);
  await assertRejects(() => python.async(python.evaluate("fails"))(), PythonError, "invalid literal");
});

// A thousand threads stayed for the life of the process.
test(...needs(missing, "threads that a burst of calls needed end after it"), async () => {
  const python = open();
  python.run(`
import threading
def on_threads(function, count):
    results = []
    started = [threading.Thread(target=lambda: results.append(function())) for _ in range(count)]
    for one in started: one.start()
    for one in started: one.join()
    return len(results)
def pool_size(): return sum(one.name == "causeway" for one in threading.enumerate())
`);
  const [onThreads, leaf] = ["on_threads", "pool_size"].map((name) => python.async(python.evaluate(name)));
  assert(onThreads !== undefined && leaf !== undefined);
  const counts = await Promise.all(Array.from({ length: 10 }, () => onThreads(async () => await leaf(), 40)));
  assertEquals(counts, Array.from({ length: 10 }, () => 40));
  const size = python.evaluate("pool_size");
  for (let i = 0; i < 500 && size() > 32; i++) await setTimeout(10);
  assert(size() <= 32, `${size()} threads`);
});

// Such calls were pending for ever, and a pool of 32 threads lost one by each of the latter.
test(
  ...needs(missing, "a call ends if it is cancelled before it begins, and if its result cannot be asked"),
  async () => {
    const python = open();
    python.run(`
import asyncio, time, weakref
over = []
async def sleepy(): await asyncio.sleep(60)
async def cancel_all():
    while not over:
        time.sleep(0.005)
        await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task()}: task.cancel()
class Gone: pass
def gone(): return weakref.proxy(Gone())
class Rude:
    @property
    def __class__(self): raise SystemExit
def rude(): return Rude()
`);
    const [sleepy, cancelAll, gone] = ["sleepy", "cancel_all", "gone"].map((name) =>
      python.async(python.evaluate(name))
    );
    assert(sleepy !== undefined && cancelAll !== undefined && gone !== undefined);
    const cancelling = cancelAll();
    const calls = Array.from({ length: 40 }, () => sleepy());
    const late = () => setTimeout(30_000, undefined, { ref: false });
    const ends = await Promise.race([Promise.allSettled(calls), late()]);
    assertEquals(
      ends?.map((end) => end.status === "rejected" && (end.reason as PythonError).type),
      calls.map(() => "asyncio.exceptions.CancelledError"),
    );
    python.run("over.append(True)");
    await cancelling;
    for (const call of [gone, python.async(python.evaluate("rude"))]) {
      const results = Promise.allSettled(Array.from({ length: 40 }, () => call()));
      assertEquals((await Promise.race([results, late()]))?.length, 40);
    }
    assertEquals(await Promise.race([python.async(python.builtins["abs"])(-3), late()]), 3);
  },
);

test(
  ...needs(missing, "a promise refuses an object whose attribute then is Python's, which it would call"),
  async () => {
    const python = open();
    python.run(`
class Thenable:
    def __init__(self): self.calls = []
    def then(self, *values):
        self.calls.append(values)
        return self
`);
    using thenable: PyObject = python.evaluate("Thenable()");
    await assertRejects(() => Promise.resolve(thenable), TypeError, "attribute `then`");
    await assertRejects(() => python.async(python.evaluate("lambda: Thenable()"))(), TypeError, "attribute `then`");
    assertEquals((await Promise.resolve([thenable]))[0], thenable);
    thenable["then"](1);
    thenable["then"](() => 1, () => 2); // as a program's own call
    assertEquals(thenable["calls"].length, 2);
  },
);
