/** What JSON.stringify writes for Python objects: what Python's own json writes, else an error, but never nothing. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { type PyObject, Python } from "../../mod.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const open = () => Python.open({ home: typeof found === "string" ? "" : found.executable });

const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    fc.maxSafeInteger(),
    fc.double({ noNaN: true, noDefaultInfinity: true, noInteger: true }),
    fc.string({ unit: "binary" }),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("tree"), { maxLength: 4 }),
    fc.dictionary(fc.oneof(fc.string(), fc.constantFrom("__proto__", "toJSON", "then", "0", "key")), tie("tree"), {
      maxKeys: 4,
      noNullPrototype: true,
    }),
  ),
}));

test(...needs(missing, "values passed to Python as JSON come back the same, as do values passed as objects"), () => {
  const python = open();
  const loads = python.import("json").$get("loads");
  const list = python.builtins.$get("list");
  check(
    fc.property(tree, (value) => {
      const text = JSON.stringify([value]);
      using read = loads.$call(text);
      assertEquals(JSON.stringify(read), text);
      assertEquals(JSON.parse(JSON.stringify({ read })), { read: JSON.parse(text) });
      using passed = list.$call([value]);
      assertEquals(JSON.stringify(passed), text);
      assertEquals(JSON.stringify(passed.$value({ objects: true })), text);
    }),
  );
});

test(
  ...needs(missing, "tuples, sets, datetimes, arrays and numbers of Python are written; dicts become plain objects"),
  () => {
    const python = open();
    python.run("import array, datetime\nmoment = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)");
    const written: [string, unknown][] = [
      ["(1, (2, 'three'))", [1, [2, "three"]]],
      ["{1}", [1]],
      ["[{'a': {(1, 2)}}]", [{ a: [[1, 2]] }]],
      ["moment", "2020-01-01T00:00:00.000Z"],
      ["[moment]", ["2020-01-01T00:00:00.000Z"]],
      ["{}", {}],
    ];
    for (const [code, value] of written) {
      assertEquals(JSON.parse(JSON.stringify({ value: python.evaluate(code) })), { value }, code);
    }
    const number: PyObject = python.builtins["int"].$call(5);
    assertEquals(JSON.stringify([number]), "[5]");
    const nested: unknown = python.evaluate("[{'a': [{'b': {1}}]}]").$value({ objects: true });
    assertEquals(nested, [{ a: [{ b: new Set([1]) }] }]);
    const plain: unknown = python.evaluate("{'a': {'b': 1}}").$value();
    assertEquals(plain, new Map([["a", new Map([["b", 1]])]]), "Maps unless objects are requested");
  },
);

test(...needs(missing, "a value that JSON cannot express is an error that says what to do"), () => {
  const python = open();
  const refused: [string, string][] = [
    ["object()", "$value()"],
    ["[object()]", "as JSON: expected a value, a dict"],
    ["[type('Words', (), {})()]", "or its tolist(); "],
    ["__import__('sys')", "<module 'sys'"],
    ["len", "<built-in function len>"],
    ["{1: 2}", "with the key 1: expected strings. $value() makes a Map"],
    ["{'a': {(1, 'b'): 2}}", "with the key (1, b)"],
    [
      "[2**53]",
      "Cannot write 9007199254740992 as JSON: numbers from 2^53 on lose digits. Convert it in Python, by str()",
    ],
    ["{'a': b'bytes'}", "Cannot write bytes as JSON"],
  ];
  for (const [code, message] of refused) {
    const error = assertThrows(() => JSON.stringify({ value: python.evaluate(code) }), TypeError, undefined, code);
    assert(error.message.includes(message), `${code}: ${error.message}`);
  }
  using dict: PyObject = python.evaluate("{1: 2}");
  assertThrows(() => dict.$value({ objects: true }), TypeError, "$value() makes a Map");
  // @ts-expect-error: an unknown name
  assertThrows(() => dict.$value({ object: true }), TypeError, "did you mean objects?");
});

test(...needs(missing, "a container that contains itself is refused, in every kind of container"), () => {
  const python = open();
  python.run(`
listed, keyed, paired = [1], {"a": 1}, [2]
listed.append(listed); keyed["self"] = keyed; paired.append((3, paired))
`);
  for (const name of ["listed", "keyed", "paired"]) {
    const container: PyObject = python.evaluate(name);
    assertThrows(() => container.$value(), TypeError, "contains itself");
    assertThrows(() => JSON.stringify(container), TypeError, "contains itself");
  }
  assertEquals(python.evaluate("[1, [2]]").$value(), [1, [2]]);
});
