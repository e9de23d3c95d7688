/**
 * Lists, tuples, dicts and ranges: copied and iterated as Python does it, whatever is in them, and whatever happens to
 * them meanwhile.
 */
import { assertEquals, assertThrows } from "@std/assert";
import { setImmediate, setTimeout } from "node:timers/promises";
import { test } from "node:test";
import { type PyObject, Python, PythonError } from "../../mod.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const open = () => Python.open({ home: typeof found === "string" ? "" : found.executable });

/** Values as JavaScript has them after a round trip through Python, of all kinds read at once, and of others. */
const value: fc.Arbitrary<unknown> = fc.oneof(
  fc.integer(),
  fc.maxSafeInteger(),
  fc.double({ noInteger: true }),
  fc.string({ unit: "binary", maxLength: 8 }),
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    -1,
    2n ** 53n,
    -(2n ** 53n),
    2n ** 60n,
    2n ** 63n - 1n,
    -(2n ** 63n),
    2n ** 63n,
    -(2n ** 90n),
    "\ud800",
    "x".repeat(5000),
    "\u00e9".repeat(40),
  ),
);
const { nested } = fc.letrec<{ nested: unknown; list: unknown[] }>((tie) => ({
  nested: fc.oneof(
    { maxDepth: 4 },
    value,
    tie("list"),
    fc.dictionary(fc.string(), tie("nested"), { maxKeys: 4 }).map(
      (one) => new Map(Object.entries(one)),
    ),
  ),
  list: fc.array(tie("nested"), { maxLength: 12 }),
}));

const scene = `
import json
class List(list): pass
class Tuple(tuple): pass
def tupled(value): return tuple(map(tupled, value)) if isinstance(value, list) else value
def derived(value): return List(map(derived, value)) if isinstance(value, list) else value
def derived_tuple(value): return Tuple(map(derived_tuple, value)) if isinstance(value, list) else value
`;

test(
  ...needs(missing, "a copy of a sequence has the values of all items, in lists, tuples and classes of them"),
  () => {
    const python = open();
    python.run(scene);
    const ways = ["lambda value: value", "tupled", "derived", "derived_tuple"].map((way) => python.evaluate(way));
    check(
      fc.property(fc.array(nested, { maxLength: 12 }), fc.constantFrom(...ways), (values, way) => {
        using object: PyObject = way.$call(values);
        assertEquals(object.$value(), values);
      }),
      300,
    );
    for (const length of [0, 1, 255, 256, 257, 512, 1000]) {
      const values = Array.from({ length }, (_, i) => i % 7 === 6 ? [i] : i % 5 === 4 ? 2n ** 70n : i + 0.5);
      for (const way of ways) {
        using object: PyObject = way.$call(values);
        assertEquals(object.$value(), values);
        assertEquals([...object].map((one) => typeof one === "function" ? (one as PyObject).$value() : one), values);
      }
    }
  },
);

test(...needs(missing, "a list that changes while it is copied is copied to its length by then"), () => {
  const python = open();
  python.run(`
class Changes:
    "Changes the list that contains it when it is read."
    def __init__(self, change): self.change = change
    @property
    def __class__(self):
        if self.change: self.change()
        return Changes
def make(size, at, change):
    items = [float(i) for i in range(size)]
    items[at] = Changes(lambda: change(items))
    return items
`);
  const make: PyObject = python.evaluate("make");
  const cases = [
    ["items.clear()", 3],
    ["items.append(0.5) if len(items) == 1000 else None", 1001],
    ["items.__delitem__(slice(500, None)) if len(items) == 1000 else None", 500],
  ] as const;
  for (const [change, expected] of cases) {
    using object: PyObject = make.$call(1000, 2, python.evaluate(`lambda items: ${change}`));
    const values = object.$value() as unknown[];
    assertEquals(values.length, expected, change);
    assertEquals(values.slice(0, 2), [0, 1]);
  }
});

/** What a loop does to a list at each step. */
type Act = "nothing" | "append" | "pop" | "replace" | "clear" | "wait";
const acts = fc.array(
  fc.constantFrom<Act>("nothing", "nothing", "append", "pop", "replace", "clear", "wait"),
  {
    maxLength: 60,
  },
);

const changes = `
def change(items, act):
    if act == "append": items.append(-1.5)
    elif act == "pop" and items: items.pop()
    elif act == "replace":
        for i in range(len(items)): items[i] += 1000
    elif act == "clear": items.clear()
def expected(items, acts):
    seen = []
    for i, item in enumerate(items):
        seen.append(item)
        change(items, acts[i] if i < len(acts) else "nothing")
        if len(seen) > 300: break
    return seen
`;

test(
  ...needs(missing, "a loop over a list sees what Python's loop sees, whatever is done to the list meanwhile"),
  async () => {
    const python = open();
    python.run(changes);
    const change: PyObject = python.evaluate("change");
    const expected: PyObject = python.evaluate("expected");
    const identity: PyObject = python.evaluate("lambda value: value");
    await check(
      fc.asyncProperty(fc.nat(90), acts, fc.boolean(), async (length, acts, isLocked) => {
        const values = Array.from({ length }, (_, i) => i + 0.25);
        using items: PyObject = identity.$call(values);
        using twin: PyObject = identity.$call(values);
        const model = acts.map((act) => act === "wait" ? "nothing" : act);
        using seen: PyObject = expected.$call(twin, model);
        const mine: unknown[] = [];
        const step = (value: unknown) => {
          const act = model[mine.length] ?? "nothing";
          if (act !== "nothing") change(items, act);
          mine.push(value);
          return mine.length <= 300;
        };
        if (isLocked) {
          python.locked(() => {
            for (const value of items) if (!step(value)) break;
          });
        } else {
          for (const value of items) {
            if (acts[mine.length] === "wait") await setImmediate();
            if (!step(value)) break;
          }
        }
        assertEquals(mine, seen.$value());
      }),
      150,
    );
  },
);

test(...needs(missing, "a loop sees another thread's changes of a list while JavaScript waits"), async () => {
  const python = open();
  python.run(changes + "\nimport threading\nwatched = [float(i) for i in range(50)]");
  const items: PyObject = python.evaluate("watched");
  const seen: number[] = [];
  python.run("threading.Timer(0.05, change, (watched, 'replace')).start()");
  for (const value of items) {
    seen.push(value as number);
    // Python is not called while this waits: the lock is free, and nothing tells JavaScript that the list has changed.
    if (seen.length === 10) await setTimeout(300);
  }
  assertEquals(seen, Array.from({ length: 50 }, (_, i) => i < 10 ? i : i + 1000));
});

test(...needs(missing, "ranges, tuples and iterators yield all of their items, in order, once"), () => {
  const python = open();
  const bound = fc.integer({ min: -600, max: 600 });
  check(
    fc.property(bound, bound, fc.integer({ min: 1, max: 7 }), fc.boolean(), (start, stop, step, isDown) => {
      const text = `range(${start}, ${stop}, ${isDown ? -step : step})`;
      using range: PyObject = python.evaluate(text);
      using list: PyObject = python.evaluate(`list(${text})`);
      using tuple: PyObject = python.evaluate(`tuple(${text})`);
      const expected = list.$value();
      assertEquals([...range], expected);
      assertEquals([...tuple], expected);
      assertEquals([...list], expected);
    }),
    100,
  );
  using large: PyObject = python.evaluate("range(2**53 - 3, 2**53 + 3)");
  assertEquals(
    [...large].map((one) => BigInt(one as number | bigint)),
    [-3n, -2n, -1n, 0n, 1n, 2n].map((i) => 2n ** 53n + i),
  );
  for (const end of [2n ** 63n, -(2n ** 63n)]) {
    using across: PyObject = python.evaluate(`range(${end - 300n}, ${end + 300n})`);
    assertEquals([...across], Array.from({ length: 600 }, (_, i) => end - 300n + BigInt(i)));
  }
  using lazy: PyObject = python.evaluate(
    "(i for i in taken) if globals().update(taken=iter(range(100))) is None else None",
  );
  for (const value of lazy) if (value === 4) break;
  assertEquals(python.evaluate("next(taken)"), 5, "no more items were taken from an iterator than requested");
  for (const text of ["(1 // (3 - i) for i in range(9))", "map(lambda i: 1 // (3 - i), range(9))"]) {
    using broken: PyObject = python.evaluate(text);
    const seen: unknown[] = [];
    assertThrows(
      () => {
        for (const value of broken) seen.push(value);
      },
      PythonError,
      "ZeroDivisionError",
    );
    assertEquals(seen, [0, 0, 1]);
  }
  using list: PyObject = python.evaluate("[1, 2, 3]");
  const iterator = list[Symbol.iterator]();
  list.$close();
  assertEquals(
    [iterator.next().value, iterator.next().value, iterator.next().value],
    [1, 2, 3],
    "the loop retains its list",
  );
});

test(
  ...needs(missing, "an integer beyond all doubles that is read ahead disturbs no call before its turn"),
  () => {
    const python = open();
    const length: PyObject = python.builtins["len"];
    const seen: unknown[] = [];
    for (const value of python.evaluate("[1, 2, 10 ** 400, 3]") as PyObject) {
      seen.push(value);
      assertEquals(length("four"), 4);
    }
    assertEquals(seen, [1, 2, 10n ** 400n, 3]);
  },
);
