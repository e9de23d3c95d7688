/**
 * A call of Python converts arguments, which may run a program's getters. Whatever these close, delete or call, the
 * call uses no object that has ended, and no argument of another call.
 */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { kwargs, type PyObject, Python } from "../../mod.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";
import { until } from "../support/until.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const home = typeof found === "string" ? "" : found.executable;

const scene = `
import weakref
ended = set()
class Thing:
    def __call__(self, *values): return len(values)
    def __getitem__(self, key): return "an item"
    def __setitem__(self, key, value): pass
def thing(name):
    one = Thing()
    weakref.finalize(one, ended.add, name)
    return one
def both(*values, **named): return repr((values, named))
held = Thing()
`;

function open(): Python {
  const python = Python.open({ home });
  python.run(scene);
  return python;
}

test(...needs(missing, "an object that a getter of an argument closes lives until it was used"), async () => {
  const python = open();
  const make: PyObject = python.evaluate("thing");
  const hasEnded = (name: string): boolean => python.evaluate(`"${name}" in ended`);
  const uses: Record<string, (thing: PyObject, value: unknown) => unknown> = {
    call: (thing, value) => assertEquals(thing(value), 1),
    callByName: (thing, value) => assertEquals(thing.$call(value, 2).$close(), undefined),
    item: (thing, value) => assertEquals(thing.$item(value), "an item"),
    setItem: (thing, value) => thing.$setItem("key", value),
    setIndexed: (thing, value) => thing[0] = value,
    setAttribute: (thing, value) => thing["other"] = value,
    async: async (thing, value) => assertEquals(await python.async(thing)(value), 1),
  };
  for (const [name, use] of Object.entries(uses)) {
    const thing = make.$call(name);
    let endedInside: boolean | undefined;
    const value = [{
      get closing() {
        thing.$close();
        endedInside = hasEnded(name);
        return 1;
      },
    }];
    await use(thing, value);
    assertEquals(endedInside, false, name);
    await until(() => hasEnded(name)); // a thread may have yet to release it
    assertEquals(hasEnded(name), true, name);
  }
});

test(...needs(missing, "an argument that another's getter closes is refused"), () => {
  const python = open();
  const { both } = python.import("__main__");
  for (const last of [{}, { plain: 1 }]) {
    both(1, {}); // from now on by machine code
    const thing: PyObject = python.evaluate("held");
    Object.defineProperty(last, "__dlpack__", { get: () => thing.$close() });
    assertThrows(() => both(thing, last), TypeError, "closed PyObject");
  }
});

test(
  ...needs(missing, "a getter that is no key may call Python while the arguments of a call are being written"),
  () => {
    const python = open();
    const { both } = python.import("__main__");
    const get = () => void both(2, "a text", { other: 3 });
    const hidden = () => Object.defineProperty({ plain: 1 }, "__dlpack__", { get });
    for (let i = 0; i < 3; i++) {
      assertEquals(both(5, hidden()), "((5, {'plain': 1}), {})");
      assertEquals(both(5, hidden(), kwargs({ named: 6 })), "((5, {'plain': 1}), {'named': 6})");
    }
  },
);

test(
  ...needs(missing, "what a getter deletes is not in a dict of arguments, and nothing of another call is"),
  () => {
    const python = open();
    const { both } = python.import("__main__");
    const deleting = (): Record<string, unknown> => ({
      get first() {
        delete this["second"];
        return 1;
      },
      second: 2,
    });
    for (let i = 0; i < 3; i++) {
      both({ first: "of another", second: "call" });
      assertEquals(both(deleting()), "(({'first': 1},), {})");
      const growing = { keys: 0 };
      const target: Record<string, unknown> = {};
      const changing = new Proxy(target, {
        ownKeys: () => Array.from({ length: ++growing.keys }, (_, key) => `key${key}`),
        getOwnPropertyDescriptor: () => ({ value: 7, enumerable: true, configurable: true, writable: true }),
        get: (_, name) => typeof name === "string" && name.startsWith("key") ? 7 : undefined,
        has: () => false,
      });
      assertEquals(/^\(\(\{('key\d+': 7(, )?)+\},\), \{\}\)$/.test(both(changing)), true);
    }
  },
);
