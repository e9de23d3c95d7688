/** A module that is not installed: the error says which of several Pythons on a machine lacks it. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { type PyObject, Python, PythonError } from "../../mod.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;

test(...needs(missing, "the error of a missing module says which Python lacks it and how it installs"), async () => {
  const python = Python.open();
  const program: unknown = python.import("sys")["executable"];
  python.run("def imports(): import no_such_module_here");
  const imports: PyObject = python.evaluate("imports");
  const ways: (() => unknown)[] = [
    () => python.import("no_such_module_here"),
    () => python.run("import no_such_module_here"),
    () => python.evaluate("__import__('no_such_module_here')"),
    () => imports(),
    () => imports.$call(),
    () => python.async(imports)(),
  ];
  for (const way of ways) {
    const error: unknown = await (async () => await way())().catch((error: unknown) => error);
    assert(error instanceof PythonError, String(way));
    const [first, second] = error.message.split("\n");
    assertEquals(first, "ModuleNotFoundError: No module named 'no_such_module_here'");
    assert(second?.includes(`"${program} -m pip install"`) && second.includes("CAUSEWAY_PYTHON"), second);
    assertEquals(error.type, "ModuleNotFoundError");
    assert(!error.traceback.includes("pip"), "the traceback is Python's own");
  }
  const own = assertThrows(() => python.run("raise ModuleNotFoundError('install it yourself')"), PythonError);
  assertEquals(own.message, "ModuleNotFoundError: install it yourself");
});

test(...needs(missing, "an error of another kind while a module loads is as Python prints it"), () => {
  const python = Python.open();
  python.run(`import sys, types, importlib.abc, importlib.machinery
class Fails(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name == "fails_to_load" else None
    def create_module(self, spec): return None
    def exec_module(self, module): raise ValueError("not today")
sys.meta_path.append(Fails())`);
  const error = assertThrows(() => python.import("fails_to_load"), PythonError);
  assertEquals(error.message, "ValueError: not today");
});
