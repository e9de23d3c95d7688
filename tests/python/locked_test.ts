/** Many calls under one lock: the same results, the lock is held across all of them, and released whatever happens. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { setTimeout } from "node:timers/promises";
import { test } from "node:test";
import { type PyObject, Python, PythonError } from "../../mod.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const open = () => Python.open({ home: typeof found === "string" ? "" : found.executable });

/** What a program does under the lock: calls, nested locks, and exceptions of either side that are caught. */
type Step = number | { readonly within: readonly Step[]; readonly fails: "python" | "javascript" | null };

const { steps } = fc.letrec<{ step: Step; steps: Step[] }>((tie) => ({
  step: fc.oneof(
    { maxDepth: 4 },
    fc.integer(),
    fc.record({ within: tie("steps"), fails: fc.constantFrom("python" as const, "javascript" as const, null) }),
  ),
  steps: fc.array(tie("step"), { maxLength: 4 }),
}));

const background = `
import threading, time, types
counted = types.SimpleNamespace(times=0, goes_on=True)
def counting():
    while counted.goes_on:
        counted.times += 1
        time.sleep(0)
threading.Thread(target=counting, daemon=True).start()
def fails(): raise KeyError("k")
`;

test(
  ...needs(missing, "calls under one lock do the same as without, however nested, also where some of them fail"),
  () => {
    const python = open();
    const identity: PyObject = python.evaluate("lambda value: value");
    const fails: PyObject = python.evaluate("lambda: {}['k']");
    const run = (steps: readonly Step[], seen: unknown[]): void => {
      for (const step of steps) {
        if (typeof step === "number") {
          seen.push(identity(step));
          continue;
        }
        const work = () =>
          python.locked(() => {
            run(step.within, seen);
            if (step.fails === "python") fails();
            if (step.fails === "javascript") throw new RangeError("ours");
            return step;
          });
        if (step.fails === null) assertEquals(work(), step);
        else assertThrows(work, step.fails === "python" ? PythonError : RangeError);
      }
    };
    const numbers = (steps: readonly Step[]): number[] =>
      steps.flatMap((step) => typeof step === "number" ? [step] : numbers(step.within));
    check(
      fc.property(steps, (steps) => {
        const seen: unknown[] = [];
        run(steps, seen);
        assertEquals(seen, numbers(steps));
      }),
      200,
    );
  },
);

test(
  ...needs(missing, "no other thread of Python runs between calls under one lock, and it runs after them"),
  async () => {
    const python = open();
    python.run(background);
    // An attribute is read outside the interpreter's loop, in which a thread hands the lock to another.
    const counted: PyObject = python.evaluate("counted");
    const times = () => Number(counted["times"]);
    const fails: PyObject = python.evaluate("fails");
    const busy = (milliseconds: number) => {
      const end = Date.now() + milliseconds;
      while (Date.now() < end);
    };
    const runsAfterwards = async () => {
      const before = times();
      const end = Date.now() + 5000; // on a loaded machine the thread waits for a processor
      while (times() === before && Date.now() < end) await setTimeout(5);
      assert(times() > before, "the lock is not held any more");
    };
    await runsAfterwards();
    const [first, second] = python.locked(() => {
      const before = times();
      busy(20);
      return [before, times()];
    });
    assertEquals(second, first, "JavaScript's own work lets no thread of Python run");
    await runsAfterwards();
    assertThrows(() => python.locked(() => python.locked(() => fails())), PythonError, "KeyError");
    await runsAfterwards();
    assertThrows(
      () =>
        python.locked(() => {
          assertThrows(() => python.locked(() => fails()), PythonError);
          throw new RangeError("ours");
        }),
      RangeError,
    );
    await runsAfterwards();
    python.run("counted.goes_on = False");
  },
);

test(...needs(missing, "work that continues later is refused, and the lock is not held for it"), async () => {
  const python = open();
  let calls = 0;
  const refused: readonly (() => unknown)[] = [
    // @ts-expect-error -- a promise
    () => python.locked(async () => await Promise.resolve(calls++)),
    () =>
      python.locked(function* () {
        yield calls++;
      }),
    () =>
      python.locked(async function* () {
        yield await Promise.resolve(calls++);
      }),
  ];
  for (const work of refused) assertThrows(work, TypeError, "Cannot hold Python's lock for an async function");
  assertEquals(calls, 0, "none of them was called");
  // @ts-expect-error -- a promise
  assertThrows(() => python.locked(() => Promise.resolve(1)), TypeError, "that returns a promise");
  assertEquals(python.locked(() => python.evaluate("1 + 1")), 2);
  using object = python.locked(() => python.evaluate("object()")) as PyObject;
  assertEquals(typeof object, "function", "a Python object is not a promise");
  await Promise.resolve();
});
