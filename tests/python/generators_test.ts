/** Python generators and context managers used as JavaScript's own, and errors that show their origin in both. */
import { assert, assertEquals, assertRejects, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { type PyObject, Python, PythonError } from "../../mod.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const open = () => Python.open({ home: typeof found === "string" ? "" : found.executable });

const source = `
log = []
def echo(n):
    try:
        i = 0
        while i < n:
            try: log.append(["got", (yield i)])
            except Exception as error: log.append(["thrown", str(error)])
            i += 1
    finally: log.append(["closed"])
`;

/** The same generator in JavaScript. */
function* echo(n: number, log: unknown[][]): Generator<unknown, void, unknown> {
  try {
    for (let i = 0; i < n; i++) {
      try {
        log.push(["got", (yield i) ?? null]);
      } catch (error) {
        log.push(["thrown", String(error)]);
      }
    }
  } finally {
    log.push(["closed"]);
  }
}

const step = fc.oneof(
  fc.record({ do: fc.constant("next" as const), value: fc.option(fc.integer(), { nil: undefined }) }),
  fc.record({ do: fc.constant("throw" as const), value: fc.string({ unit: "grapheme-ascii" }) }),
  fc.record({ do: fc.constant("return" as const), value: fc.constant(undefined) }),
);

test(...needs(missing, "a generator of Python is one of JavaScript: next, throw and return do the same"), () => {
  const python = open();
  python.run(source);
  check(
    fc.property(fc.nat(5), fc.array(step, { maxLength: 8 }), (n, steps) => {
      python.run("log.clear()");
      using theirs: PyObject = python.evaluate(`echo(${n})`);
      const log: unknown[][] = [];
      const ours = echo(n, log);
      const iterator = theirs[Symbol.iterator]() as Generator<unknown, void, unknown>;
      const run = (generator: Generator<unknown, void, unknown>) =>
        steps.map(({ do: what, value }) => {
          try {
            if (what === "next") return generator.next(value);
            return what === "return" ? generator.return() : generator.throw(new RangeError(value));
          } catch (error) {
            return String(error);
          }
        });
      assertEquals(run(iterator), run(ours));
      using logged: PyObject = python.evaluate("log");
      assertEquals(logged.$value(), log);
    }),
    200,
  );
});

// What was given to `next` was dropped, and `throw` did not reach the generator.
test(...needs(missing, "an asynchronous generator of Python is one of JavaScript, too"), async () => {
  const python = open();
  // Generators of other tests write to the other log once they have been collected.
  python.run(source.replace("def echo", "async def later").replaceAll("log", "later_log"));
  async function* echoLater(n: number, log: unknown[][]): AsyncGenerator<unknown, void, unknown> {
    const generator = echo(n, log);
    let step = generator.next();
    try {
      while (step.done !== true) {
        try {
          step = generator.next(yield step.value);
        } catch (error) {
          step = generator.throw(error);
        }
      }
    } finally {
      generator.return();
    }
  }
  await check(
    fc.asyncProperty(fc.nat(5), fc.array(step, { maxLength: 8 }), async (n, steps) => {
      python.run("later_log.clear()");
      using theirs: PyObject = python.evaluate(`later(${n})`);
      const log: unknown[][] = [];
      const run = async (generator: AsyncGenerator<unknown, void, unknown>) => {
        const seen: unknown[] = [];
        for (const { do: what, value } of steps) {
          try {
            if (what === "next") seen.push(await generator.next(value));
            else seen.push(await (what === "return" ? generator.return() : generator.throw(new RangeError(value))));
          } catch (error) {
            seen.push(String(error));
          }
        }
        await generator.return(); // or Python closes it once it has been collected
        return seen;
      };
      assertEquals(
        await run(theirs[Symbol.asyncIterator]() as AsyncGenerator<unknown, void, unknown>),
        await run(echoLater(n, log)),
      );
      using logged: PyObject = python.evaluate("later_log");
      assertEquals(logged.$value(), log);
    }),
    100,
  );
});

test(...needs(missing, "an asynchronous generator is closed if it is sent what cannot be converted"), async () => {
  const python = open();
  python.run("ended = []\nasync def sent():\n    try: yield 1\n    finally: ended.append(True)");
  using generator: PyObject = python.evaluate("sent()");
  const iterator = generator[Symbol.asyncIterator]() as AsyncGenerator<unknown, void, unknown>;
  assertEquals(await iterator.next(), { value: 1, done: false });
  await assertRejects(() => iterator.next(Symbol("s")), TypeError, "symbol");
  assertEquals(python.evaluate("ended").$value(), [true]);
});

test(...needs(missing, "leaving a loop closes the generator, and throws what it raises then"), () => {
  const python = open();
  python.run(`${source}
def stubborn():
    try: yield 1
    finally: raise ValueError("not so")
`);
  const generator: PyObject = python.evaluate("echo(5)"); // kept by a variable
  for (const one of generator) if (one === 1) break;
  assertEquals(python.evaluate("log[-1]").$value(), ["closed"]);
  assertEquals([...generator], []);
  assertThrows(
    () => {
      for (const _ of python.evaluate("stubborn()")) break;
    },
    PythonError,
    "not so",
  );
  const file: PyObject = python.evaluate("iter([1, 2, 3])"); // any other iterator can be continued
  for (const _ of file) break;
  assertEquals([...file], [2, 3]);
});

test(...needs(missing, "a context manager sees what its work throws, may suppress it, and is exited once"), () => {
  const python = open();
  python.run(`
class Manager:
    def __init__(self, keeps): self.keeps, self.log = keeps, []
    def __enter__(self): self.log.append("in"); return 5
    def __exit__(self, kind, error, trace):
        self.log.append(kind and kind.__name__)
        return self.keeps
`);
  for (const keeps of [false, true]) {
    using manager: PyObject = python.evaluate(`Manager(${keeps ? "True" : "False"})`);
    assertEquals(python.with(manager, (value) => value + 1), 6);
    const thrown = new RangeError("ours");
    const fails = (error: () => never) => python.with(manager, error);
    const ours = () =>
      fails(() => {
        throw thrown;
      });
    const theirs = () => fails(() => python.evaluate("{}['k']") as never);
    if (keeps) assertEquals([ours(), theirs()], [undefined, undefined]);
    else {
      try {
        ours();
        assert(false);
      } catch (error) {
        assertStrictEquals(error, thrown);
      }
      assertThrows(theirs, PythonError, "KeyError: 'k'");
    }
    {
      using entered = python.with(manager);
      assertEquals(entered.value, 5);
      entered[Symbol.dispose]();
    }
    const log: PyObject = manager["log"];
    assertEquals(log.$value(), ["in", null, "in", "JavaScriptError", "in", "KeyError", "in", null]);
    // @ts-expect-error -- a promise
    assertThrows(() => python.with(manager, async () => await Promise.resolve(1)), TypeError, "Cannot wait");
  }
  assertThrows(() => python.with(python.evaluate("object()")), PythonError, "context manager");
  assertThrows(() => python.with({} as unknown as PyObject), TypeError, "not a Python object");
});

test(
  ...needs(missing, "a stack has Python's frames above JavaScript's, and the cause is the original exception"),
  () => {
    const python = open();
    python.run(`
def outer(function): return inner(function)
def inner(function):
    try: return function()
    except Exception as error: raise ValueError("bad") from error
def own():
    error = ValueError("own")
    raise error from error
`);
    const thrown = new RangeError("ours");
    const errorOf = (work: () => unknown): Error => {
      try {
        work();
      } catch (error) {
        assert(error instanceof Error);
        return error;
      }
      throw new Error("nothing was thrown");
    };
    const callsPython = (given: () => unknown) => python.evaluate("outer")(given);
    const error = errorOf(() =>
      callsPython(() => {
        throw thrown;
      })
    );
    const [head, first, second, ...rest] = String(error.stack).split("\n");
    assertEquals([head, first, second], [
      "PythonError: ValueError: bad",
      "    at inner (<string>:5)",
      "    at outer (<string>:2)",
    ]);
    assert(
      rest.some((line) => line.includes("generators_test")) && rest.every((line) => /^ {4}at .* \(.*\)$/.test(line)),
      error.stack,
    );
    assert(!rest.some((line) => line.includes("<JavaScript>")), "the frame that calls Python is hidden");
    assertStrictEquals(error.cause, thrown);
    const chained = errorOf(() => callsPython(() => python.evaluate("1 / 0"))).cause;
    assert(chained instanceof PythonError && chained.type === "ZeroDivisionError" && chained.cause === undefined);
    let depth = 0;
    for (let at: unknown = errorOf(() => python.evaluate("own()")); at instanceof Error; at = at.cause) depth++;
    assert(depth > 1 && depth < 100, "an exception may be its own cause");
    const plain = errorOf(() => python.evaluate("{}['k']"));
    assertEquals([plain.cause, "cause" in plain], [undefined, false]);
    const hinted = errorOf(() => python.builtins["len"](1, { a: 1 }));
    assertEquals(String(hinted.stack).split("kwargs({ a })").length, 2, "the message is there once");
    hinted.stack = "another";
    assertEquals(hinted.stack, "another");

    const { stackTraceLimit } = Error;
    function reader(error: Error): string[] {
      return String(error.stack).split("\n");
    }
    try {
      for (const limit of [0, 3, 40]) {
        Error.stackTraceLimit = limit;
        const error = errorOf(() => python.evaluate("outer")(() => python.evaluate("1 / 0")));
        assertEquals(Error.stackTraceLimit, limit);
        const lines = reader(error).filter((line) => !line.includes("<string>")).slice(1);
        assert(limit === 40 ? lines.length > 4 : lines.length === limit, String(error.stack));
        const isThere = lines.some((line) => line.includes("errorOf") && line.includes("generators_test"));
        assertEquals(isThere, limit > 0, "where it was thrown");
        assert(
          !lines.some((line) => line.includes("reader") || line.includes("PythonError")),
          "and not where it was read",
        );
      }
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
    assert(String(new Error("another").stack).includes("generators_test"), "errors have stacks afterwards");
  },
);
