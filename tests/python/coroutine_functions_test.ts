/** Async functions of JavaScript are coroutine functions to Python: coroutines await them, and their loop goes on. */
import { assert, assertEquals, assertMatch, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import { type PyObject, Python, PythonError } from "../../mod.ts";
import { openInterpreter } from "../../src/python/start_interpreter.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const open = () => Python.open({ home: typeof found === "string" ? "" : found.executable });

/** What runs on its own loop, on its own thread, as a server of the program's own does. */
const scene = `
import asyncio, threading
def on_own_loop(function, *arguments):
    results = []
    async def main(): return await function(*arguments)
    def run():
        try: results.append(asyncio.run(main()))
        except Exception as error: results.append(f"{type(error).__name__}: {error}")
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return results[0]
`;

test(
  ...needs(missing, "an async function is a coroutine function where a loop runs, and its value on other threads"),
  async () => {
    const python = open();
    python.run(`${scene}
async def kind(function):
    made = function()
    if asyncio.iscoroutine(made): made.close()
    return type(made).__name__
async def ticks_while(function):
    ticks = []
    async def tick():
        while True:
            ticks.append(1)
            await asyncio.sleep(0.001)
    ticking = asyncio.create_task(tick())
    try: return await function(ticks)
    finally: ticking.cancel()
`);
    const isCoroutineFunction: PyObject = python.evaluate("asyncio.iscoroutinefunction");
    const [kind, ticksWhile]: PyObject[] = [python.evaluate("kind"), python.evaluate("ticks_while")];
    assert(kind !== undefined && ticksWhile !== undefined);
    const later = async () => await Promise.resolve("value");
    const own = { async method() {} };
    for (const one of [later, own.method, later.bind(null)]) assertEquals(isCoroutineFunction(one), true);
    for (const one of [() => later(), Math.abs, class {}]) assertEquals(isCoroutineFunction(one), false);
    const isMarked = python.evaluate("__import__('sys').version_info >= (3, 12)"); // what inspect looks for is since then
    assertEquals(python.evaluate("__import__('inspect').iscoroutinefunction")(later), isMarked);
    assertEquals([await kind(later), await kind(() => later())], ["coroutine", "str"]);
    // What uses the value: py.async would await a coroutine, if that were what it got.
    assertEquals(await python.async(python.evaluate("lambda function: function() + '!'"))(later), "value!");
    assertThrows(() => python.evaluate("lambda function: function()")(later), TypeError, "Cannot wait for a promise");
    const grows = async (ticks: PyObject) => {
      for (let i = 0; i < 2000 && (ticks.length as number) < 3; i++) await pause(1);
      return ticks.length as number;
    };
    assert(await ticksWhile(grows) >= 3, "the loop goes on while a function is awaited");
  },
);

interface Plan {
  readonly pause: number;
  readonly parts: readonly Plan[];
}

// The loop stood still while a function waited: a function that waited for another coroutine waited for ever.
test(
  ...needs(missing, "coroutines and async functions await each other to any depth, on py.async's loop and on others"),
  async () => {
    const python = open();
    python.run(`${scene}
async def count(plan, function):
    await asyncio.sleep(plan["pause"] / 1000)
    return 1 + sum(await asyncio.gather(*[function(part) for part in plan["parts"]]))
`);
    const count: PyObject = python.evaluate("count");
    const ownLoop = python.async(python.evaluate("on_own_loop"));
    const function_ = async ({ pause: ms, parts }: Plan): Promise<number> => {
      if (ms > 0) await pause(ms);
      const counts: number[] = await Promise.all(parts.map((part) => count(part, ofPython)));
      return counts.reduce((sum, one) => sum + one, 1);
    };
    const ofPython = async (plan: PyObject) => await function_(plan.$value({ objects: true }) as unknown as Plan);
    const sizeOf = ({ parts }: Plan): number => parts.reduce((sum, part) => sum + sizeOf(part), 1);
    const { plan } = fc.letrec<{ plan: Plan }>((tie) => ({
      plan: fc.record({
        pause: fc.nat(2),
        parts: fc.oneof({ maxDepth: 4 }, fc.constant([]), fc.array(tie("plan"), { minLength: 1, maxLength: 3 })),
      }),
    }));
    await check(
      fc.asyncProperty(plan, fc.boolean(), async (plan, isOwn) => {
        const counted = isOwn ? ownLoop(count, plan, ofPython) : count(plan, ofPython);
        assertEquals(await counted, sizeOf(plan));
      }),
      60,
    );
  },
);

test(
  ...needs(
    missing,
    "an awaited function stays alive, throws what it throws, and one that is not awaited any more does not begin",
  ),
  async () => {
    const python = open();
    python.run(`${scene}
async def through(function): return await function()
async def forgotten(functions):
    coroutine = functions.pop()()
    return await coroutine
async def within(function, seconds):
    try: return await asyncio.wait_for(function(), seconds)
    except asyncio.TimeoutError: return "late"
kept = []
async def dropped(function):
    kept.append(function)
    task = asyncio.create_task(function())
    await asyncio.sleep(0.02)
    task.cancel()
    try: await task
    except asyncio.CancelledError: return "cancelled"
`);
    const error = new RangeError("ours");
    const thrown: unknown = await python.async(python.evaluate("through"))(async () => {
      await null;
      throw error;
    }).catch((one: unknown) => one);
    assertStrictEquals(thrown, error);
    const ofPython = await python.async(python.evaluate("through"))(async () => {
      await null;
      python.run("raise KeyError('theirs')");
    }).catch((one: unknown) => one);
    assert(ofPython instanceof PythonError && ofPython.type === "KeyError", String(ofPython));
    const within: PyObject = python.evaluate("within");
    assertEquals(await within(async () => await pause(0, "soon"), 60), "soon");
    assertEquals(await python.evaluate("forgotten")([async () => await Promise.resolve("kept")]), "kept");
    let goOn = () => {};
    const endless = async () => await new Promise<void>((resolve) => goOn = resolve);
    assertEquals(await within(endless, 0.02), "late");
    goOn(); // its answer is nobody's
    assertEquals(await python.async(python.evaluate("on_own_loop"))(within, endless, 0.02), "late");
    goOn(); // nor has this one a loop any more
    await nextTurn(); // until JavaScript has answered
    let calls = 0;
    // JavaScript is inside this call meanwhile.
    const result = python.evaluate("on_own_loop")(python.evaluate("dropped"), async () => {
      calls++;
      await null;
    });
    await python.async(python.evaluate("through"))(async () => await Promise.resolve()); // it would have come first
    assertEquals([result, calls], ["cancelled", 0]);
  },
);

test(
  ...needs(missing, "a coroutine that JavaScript waits for cannot await a function for ever"),
  () => {
    const python = open();
    python.run(`${scene}\nasync def for_long(function): return await asyncio.wait_for(function(), 10)`);
    const interpreter = openInterpreter({});
    const patience = (seconds: number) =>
      interpreter.locked(() => interpreter.release(interpreter.executeGuest(`PATIENCE, LOOK = ${seconds}, 0.02`)));
    patience(0.1);
    try {
      const later = async () => await Promise.resolve();
      const refused: unknown = python.evaluate("on_own_loop")(python.evaluate("for_long"), later);
      assertMatch(String(refused), /RuntimeError: cannot call the function later .* py\.async/);
    } finally {
      patience(5);
    }
  },
);
