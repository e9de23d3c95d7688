/** Functions that inspect their caller's frame, called from JavaScript: they find a frame of the module `__main__`. */
import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { kwargs, type PyObject, Python, PythonError, StridedMemoryView } from "../../mod.ts";
import { openInterpreter } from "../../src/python/start_interpreter.ts";
import { examplesOf, runExample } from "../support/examples.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const withPandas = findPython("pandas");
const missingPandas = typeof withPandas === "string" || typeof found === "string"
  ? String(withPandas)
  : withPandas.executable === found.executable
  ? null
  : `no pandas in ${found.executable}: pip install pandas`; // a process has one Python
const open = () => Python.open({ home: typeof found === "string" ? "" : found.executable });

test(
  ...needs(missing, "globals, locals, vars, dir, eval and exec called from JavaScript see the module __main__"),
  () => {
    const python = open();
    python.run("marker = 17\ndef main(): return globals()");
    const { builtins } = python;
    using main: PyObject = python.evaluate("main()");
    const is: PyObject = python.import("operator")["is_"];
    for (const name of ["globals", "locals", "vars"]) {
      assertEquals(is(builtins[name].$call(), main), true, name);
    }
    assertEquals(builtins["dir"].$call().$value(), python.evaluate("sorted(main())").$value());
    assertEquals(builtins["eval"]("marker + 1"), 18);
    builtins["exec"]("made = marker + 2");
    assertEquals(python.evaluate("made"), 19);
    // A function looked up by name, kept, or called by another one has the same frame.
    const kept = builtins["eval"];
    assertEquals([kept("marker"), kept("marker")], [17, 17]);
    const call = python.evaluate("lambda function, *arguments, **named: function(*arguments, **named)");
    assertEquals(call(builtins["eval"], "function is not None"), true, "and a Python function has its own");
    assertEquals(python.import("functools")["partial"].$call(builtins["eval"])("marker"), 17);
  },
);

test(...needs(missing, "the frame is that of a module in <JavaScript>, and retains nothing of a call"), () => {
  const python = open();
  const frame: PyObject = python.import("sys")["_getframe"].$call();
  assertEquals([frame["f_code"]["co_filename"], frame["f_code"]["co_name"], frame["f_lineno"]], [
    "<JavaScript>",
    "<module>",
    1,
  ]);
  assertEquals(python.builtins["sorted"](frame["f_locals"]).$value(), python.evaluate("sorted(globals())").$value());
  frame.$close();
  const stack = python.import("inspect")["stack"].$call().$value() as unknown[][];
  assertEquals(stack.map(([, file, line, name]) => [file, line, name]), [["<JavaScript>", 1, "<module>"]]);
  python.run("def fails(): raise ValueError('x')");
  const error = assertThrows(() => python.evaluate("fails")(), PythonError);
  assertStringIncludes(error.traceback, 'File "<JavaScript>", line 1, in <module>');
  const Point: PyObject = python.import("collections")["namedtuple"].$call("Point", ["x"]);
  assertEquals(Point["__module__"], "__main__");
  assertEquals(python.builtins["type"].$call("Made", python.evaluate("()"), {})["__module__"], "__main__");
});

test(
  ...needs(missing, "a call by way of the frame is like a direct one: arguments, result, exception, nothing retained"),
  () => {
    const python = open();
    python.run(`
import sys
class Failure(Exception): pass
def echo(*arguments, **named):
    if "fail" in named: raise Failure(named["fail"])
    return [list(arguments), named]
one = object()
`);
    const echo = python.evaluate("echo");
    using one: PyObject = python.evaluate("one");
    const references = () => python.evaluate("sys.getrefcount(one)");
    const before = references();
    const name = fc.string({ unit: "grapheme", maxLength: 5 }).filter((name) => name !== "fail");
    const value = fc.oneof(fc.integer(), fc.string(), fc.constant(one));
    const shown = (value: unknown) => value === one ? null : value;
    check(
      fc.property(
        fc.array(value, { maxLength: 4 }),
        fc.option(fc.dictionary(name, value, { maxKeys: 4 })),
        fc.boolean(),
        (
          args,
          named,
          fails,
        ) => {
          const all = [
            ...args,
            ...(named === null && !fails ? [] : [kwargs({ ...named, ...(fails ? { fail: "so" } : {}) })]),
          ];
          if (fails) assertThrows(() => echo(...all), PythonError, "Failure: so");
          else {
            using result = echo.$call(...all);
            const [positional, byName] = result.$value() as [unknown[], Map<string, unknown>];
            assertEquals(positional.map((one) => typeof one === "function" ? null : one), args.map(shown));
            assertEquals([...byName.keys()], Object.keys(named ?? {}));
            for (const each of [...positional, ...byName.values()]) {
              if (typeof each === "function") (each as PyObject).$close();
            }
          }
          assertEquals(references(), before);
        },
      ),
      200,
    );
  },
);

test(
  ...needs(
    missing,
    "a function written in C that inspects no frame has none, unless one of its arguments may inspect it",
  ),
  () => {
    const python = open();
    python.run(
      "import sys\ndef depth(*_):\n    frame, count = sys._getframe(), 0\n    while frame: frame, count = frame.f_back, count + 1\n    return count",
    );
    const depth: PyObject = python.evaluate("depth");
    assertEquals(depth(), 2, "its own, and that of JavaScript");
    assertEquals(python.import("functools")["reduce"](depth, [1], 0), 2);
    python.run("class Any:\n    def __eq__(self, _): self.depth = depth(); return True\nsome = [Any()]\n");
    const some: PyObject = python.evaluate("some");
    assertEquals(some["index"](1), 0);
    assertEquals(some[0]["depth"], 2, "its own, and that of __eq__, which a method in C has called");
  },
);

test(...needs(missing, "a call that fails without an exception is an error, and does not end the process"), () => {
  const python = open();
  const interpreter = openInterpreter({});
  const fail = () => interpreter.locked(() => interpreter.check(0n));
  assertEquals(assertThrows(fail, PythonError, "without setting an exception").type, "SystemError");
  assertEquals(python.evaluate("1 + 1"), 2);
});

test(...needs(missingPandas, "pandas' query sees the variables of __main__"), () => {
  const python = open();
  python.run("lim = 1");
  using df: PyObject = python.import("pandas")["DataFrame"].$call({ a: [1, 2, 3] });
  using over: PyObject = df["query"].$call("a > @lim");
  assertEquals(over["a"]["tolist"]().$value(), [2, 3]);
  python.builtins["globals"]().$setItem("lim", 2);
  using fewer: PyObject = df["query"].$call("a > @lim");
  assertEquals(fewer["a"]["tolist"]().$value(), [3]);
});

const guide = readFileSync(new URL("../../docs/python.md", import.meta.url), "utf8");
for (const example of examplesOf("docs/python.md", guide, "python")) {
  test(...needs(missing, `${example.name}: prints what it says`), () => {
    runExample(example, { CAUSEWAY_PYTHON: typeof found === "string" ? "" : found.executable });
  });
}

// pandas looks for who sets a column, and refused it: "call stack is not deep enough".
test(
  ...needs(missing, "a class that looks at its caller when an item is set or deleted finds the module __main__"),
  () => {
    const python = open();
    python.run(`
import sys
class Looks:
    def __init__(self): self.seen = []
    def look(self, what): self.seen.append([what, sys._getframe(2).f_code.co_filename, sys._getframe(2).f_globals["__name__"]])
    def __setitem__(self, key, value): self.look([key, value])
    def __delitem__(self, key): self.look([key])
`);
    using object: PyObject = python.evaluate("Looks()");
    object[1] = 2;
    object.$setItem("a", 3);
    delete object[1];
    using seen: PyObject = object["seen"];
    const from = ["<JavaScript>", "__main__"];
    assertEquals(seen.$value(), [[[1, 2], ...from], [["a", 3], ...from], [[1], ...from]]);
  },
);

test(...needs(missingPandas, "columns and items of pandas' objects can be set"), () => {
  const python = open();
  using frame: PyObject = python.import("pandas")["DataFrame"].$call({ a: [1, 2] });
  frame.$setItem("b", [3, 4]);
  using series: PyObject = python.import("pandas")["Series"].$call([1, 2]);
  series[0] = 5;
  assertEquals([frame.$item("b")["tolist"]().$value(), series["tolist"]().$value()], [[3, 4], [5, 2]]);
  // The error said only that it is no array.
  assertThrows(() => StridedMemoryView.from(series), TypeError, "ArrowStream.from views its columns");
});

// They failed: "tz_convert() takes exactly 2 positional arguments".
test(...needs(missingPandas, "pandas' times without a zone are those of its timestamp()"), () => {
  const python = open();
  const Timestamp = python.import("pandas")["Timestamp"];
  using moments: PyObject = python.builtins["list"]([Timestamp.$call("2020-06-01 12:30:00.001002003")]);
  assertEquals(moments.$value(), [new Date("2020-06-01T12:30:00.001Z")]);
  assertEquals(JSON.stringify(moments), '["2020-06-01T12:30:00.001Z"]');
  using zoned: PyObject = Timestamp.$call("2020-06-01 12:30", kwargs({ tz: "Asia/Tokyo" }));
  assertEquals(zoned.$value(), new Date("2020-06-01T03:30:00Z"));
});
