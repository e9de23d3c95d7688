import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { inspect } from "node:util";
import { checkName, giveName, nameOf, quoted, showAs, showBytes, slice } from "../../src/layout/mod.ts";

class Shown {
  readonly #text: string | null;

  constructor(text: string | null) {
    this.#text = text;
  }

  static {
    showAs(Shown, (shown) => {
      if (shown.#text === null) throw new Error("no text\nand more");
      return shown.#text;
    });
  }
}

class Derived extends Shown {}

test("a console shows what the class says, under the name of the object's own class, also inside others", () => {
  assertEquals(inspect(new Shown("open")), "Shown open");
  assertEquals(inspect(new Derived("open")), "Derived open");
  assertEquals(inspect([new Shown("a")]).replaceAll(/\s+/g, " "), "[ Shown a ]");
  assertEquals(Object.keys(new Shown("a")), []);
});

// Text was "[object Object]", and JSON of what knows its device was an error of the engine's: "cyclic structures".
test("text and JSON are what a console shows, unless the class has its own, or is plain values", () => {
  assertEquals([`${new Shown("open")}`, JSON.stringify({ a: new Derived("b") })], ["Shown open", '{"a":"Derived b"}']);
  class Otherwise extends Shown {
    static {
      showAs(Otherwise, () => "other");
    }
  }
  class Own extends Shown {
    override toString() {
      return "own";
    }
    toJSON() {
      return 5;
    }
    static {
      showAs(Own, () => "other");
    }
  }
  class Values {
    readonly value = 1;
    static {
      showAs(Values, () => "one", "fields");
    }
  }
  const texts = [new Otherwise("a"), new Own("a"), new Values()].map((one) => [`${one}`, JSON.stringify(one)]);
  assertEquals(texts, [["Otherwise other", '"Otherwise other"'], ["own", "5"], ["Values one", '{"value":1}']]);
});

test("a slice is shown as Python writes it, without its methods, which Bun showed", () => {
  assertEquals([slice(1), slice(1, 10, 2)].map((one) => inspect(one)), ["Slice 1:", "Slice 1:10:2"]);
});

test("the lines after the first are indented where the runtime does not do it itself", () => {
  const [deno, node] = ["Deno.customInspect", "nodejs.util.inspect.custom"].map((name) => Symbol.for(name));
  const ask = (symbol: symbol | undefined, ...given: readonly unknown[]): string => {
    const shown = new Shown("one\ntwo");
    const method: unknown = symbol === undefined ? undefined : Reflect.get(shown, symbol);
    if (typeof method !== "function") throw new Error("no method");
    return method.apply(shown, given);
  };
  const plain = "Shown one\ntwo";
  // Deno passes a function and the indentation.
  assertEquals(ask(deno, inspect, { depth: 4, showHidden: false, indentationLvl: 4 }), "Shown one\n    two");
  assertEquals(ask(deno, inspect, { indentationLvl: 0 }), plain);
  // Bun's console passes the remaining depth, and that of the outermost object.
  assertEquals(ask(node, 2, { depth: 2, colors: false }), plain);
  assertEquals(ask(node, 0, { depth: 2, colors: false }), "Shown one\n    two");
  assertEquals(ask(node, Infinity, { depth: Infinity, colors: false }), plain);
  // Node, and Bun's util.inspect, indent the result themselves.
  assertEquals(ask(node, 0, { depth: 2, showHidden: false }), plain);
  for (const given of [[], [null, null], [1], [2, { depth: null }], ["a", 7]]) assertEquals(ask(node, ...given), plain);
  assertEquals(inspect({ a: new Shown("one\ntwo") }).split("\n").at(-2), "  two");
});

test("an object that cannot be described is shown by the first line of the error", () => {
  assertEquals(inspect(new Shown(null)), "Shown (no text)");
});

test("bytes are written with the largest unit that leaves one before the point", () => {
  const cases = [
    [0, "0 bytes"],
    [1, "1 byte"],
    [1023, "1023 bytes"],
    [1024, "1 KiB"],
    [1536, "1.5 KiB"],
    [
      2 ** 20,
      "1 MiB",
    ],
    [85_899_345_920, "80 GiB"],
    [2 ** 53, "8 PiB"],
  ] as const;
  assertEquals(cases.map(([bytes]) => showBytes(bytes)), cases.map(([, text]) => text));
});

test("names are kept by object, and an empty one is refused", () => {
  const [one, other] = [{}, {}];
  giveName(one, "left");
  giveName(other, undefined);
  assertEquals([nameOf(one), nameOf(other)], ["left", null]);
  assertEquals([quoted("left"), quoted(null)], [' "left"', ""]);
  for (const wrong of ["", 7 as unknown as string]) {
    assertThrows(() => checkName(wrong), TypeError, "Expected a name to be a non-empty string");
    assertThrows(() => giveName(one, wrong), TypeError, "Expected a name to be a non-empty string");
  }
  assertEquals(nameOf(one), "left");
});
