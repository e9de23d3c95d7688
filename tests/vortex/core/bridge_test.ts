/**
 * Arrays that PyVortex describes, with their buffers in capsules or only counted, are rebuilt with the same values;
 * what cannot be rebuilt is refused with the node's path, and every buffer is returned once.
 */
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { test } from "node:test";
import type { PyObject } from "../../../mod.ts";
import { NativeArena } from "../../../src/ffi/arena.ts";
import { liveExports, reclaim } from "../../../src/order/reclaim.ts";
import { ExchangeError } from "../../../src/order/exchange_error.ts";
import {
  fromVortexMetadata,
  type VortexArray,
  VortexError,
  type VortexMetadata,
  VortexSession,
} from "../../../src/vortex/mod.ts";
import { writeDType } from "../../../src/vortex/wire/dtype_flatbuffer.ts";
import { models, type Quirks, valueOf } from "../../support/arrow_model.ts";
import { patiently } from "../../support/child.ts";
import { needs } from "../../support/needs.ts";
import { check, fc } from "../../support/property.ts";
import { type Change, CountingRelease, descriptor, numbers } from "../../support/vortex/descriptors.ts";
import { arrayOfValues, isVortexType, missingPyVortex, openPyVortex } from "../../support/vortex/python_arrays.ts";

const plain: Quirks = { offset: 0, tail: 0, countUnknown: false, idleBitmap: false, gap: 0 };

const [title, options] = needs(missingPyVortex, "trees of PyVortex are rebuilt with their values, and described again");

test(title, { ...options, ...patiently }, () => {
  const python = openPyVortex();
  const toVortex = python.evaluate("to_vortex");
  const cases = models.filter(isVortexType).chain((model) =>
    fc.record({
      model: fc.constant(model),
      values: fc.array(valueOf(model), { maxLength: 20 }),
      isCompressed: fc.boolean(),
    })
  );
  check(
    fc.property(cases, ({ model, values, isCompressed }) => {
      using made = arrayOfValues(model, values, plain);
      using encoded: PyObject = toVortex.$call(made.own, isCompressed);
      using array = fromVortexMetadata(encoded as never); // it has the method
      assertEquals(array.length, values.length);
      const arrow = array.toArrow();
      assertEquals(arrow.toArray() as unknown, values);
      using again = fromVortexMetadata(array.toMetadata());
      assertEquals(again.toArrow().toArray() as unknown, values);
      assertStringIncludes(array.displayTree(), `root: ${array.encoding}(`);
    }),
    200,
  );
  assertEquals(liveExports(), 0);
});

test("a buffer that was handed over is returned once, when the array is closed and nothing uses it", () => {
  using arena = new NativeArena();
  const release = new CountingRelease();
  const array = fromVortexMetadata(numbers(3, [{ descriptor: descriptor(arena, release, Uint32Array.of(1, 2, 3)) }]));
  const arrow = array.toArrow();
  assertEquals(arrow.toArray(), [1, 2, 3]);
  const exported = arrow.toArrowDevice();
  array.close();
  array.close();
  assertEquals(release.count, 0, "an export still has it");
  assertThrows(() => arrow.toArray(), TypeError, "closed");
  exported.close();
  reclaim();
  assertEquals(release.count, 1);
  assertThrows(() => array.toArrow(), TypeError, "closed");
});

test("a descriptor that is taken twice is refused, and returned once; when it is returned it may be another one", () => {
  using arena = new NativeArena();
  const release = new CountingRelease();
  const address = descriptor(arena, release, Uint32Array.of(1, 2, 3));
  const tree = numbers(3, [{ descriptor: address }]);
  const first = fromVortexMetadata(tree);
  const error = assertThrows(() => fromVortexMetadata(tree), ExchangeError, "was taken before");
  assertStringIncludes(error.message, `${address}`);
  const column = { kind: "primitive", ptype: "u32", nullable: false } as const;
  const dtype = writeDType({ kind: "struct", names: ["a", "b"], fields: [column, column], nullable: false });
  first.close();
  assertEquals(release.count, 1);
  assertThrows(
    () => fromVortexMetadata(["vortex.struct", dtype, 3, new Uint8Array(0), [], [tree, tree]]),
    ExchangeError,
    "was taken before",
  );
  assertEquals(release.count, 2, "the first of both was taken, and is returned");
  using again = fromVortexMetadata(tree);
  assertEquals(again.toArrow().toArray(), [1, 2, 3]);
});

test("a variant is described, and an error with the node's path where its values are asked for", () => {
  const [u8, variant] = [{ kind: "primitive", ptype: "u8", nullable: false }, {
    kind: "variant",
    nullable: true,
  }] as const;
  const dtype = writeDType({ kind: "struct", names: ["n", "v"], fields: [u8, variant], nullable: false });
  const plain: VortexMetadata = ["vortex.primitive", writeDType(u8), 1, new Uint8Array(0), [Uint8Array.of(7)], []];
  for (const id of ["vortex.variant", "vortex.parquet.variant"]) {
    const other: VortexMetadata = [id, writeDType(variant), 1, new Uint8Array(0), [], []];
    const tree: VortexMetadata = ["vortex.struct", dtype, 1, new Uint8Array(0), [], [plain, other]];
    const refusal = assertThrows(() => fromVortexMetadata(tree), VortexError, `Unknown encoding: ${id}.`);
    const session = VortexSession.default({ allowsUnknown: true });
    const array = fromVortexMetadata(tree, { session });
    assertStringIncludes(array.displayTree(), id);
    const later = assertThrows(() => array.toArrow(), VortexError, `Unknown encoding: ${id}.`);
    assertEquals([refusal.path, later.path], ["$.children[1]", "$.children[1]"]);
  }
});

test("a buffer without bytes is returned at once", () => {
  using arena = new NativeArena();
  const release = new CountingRelease();
  using array = fromVortexMetadata(numbers(0, [{ descriptor: descriptor(arena, release, new Uint32Array(0)) }]));
  assertEquals(release.count, 1);
  assertEquals(array.toArrow().toArray(), []);
});

test("a buffer that does not say what it should stays the producer's, and its siblings are returned", () => {
  using arena = new NativeArena();
  const wrong: readonly (readonly [Change, string])[] = [
    [{ version: 2 }, "version 2"],
    [{ kind: 7 }, "kind is 7"],
    [{ kind: 1 }, "pass { stream }"],
    [{ ptr: 0n }, "at NULL"],
    [{ alignment: 3 }, "power of two"],
    [{ ptr: 0x1002n, alignment: 4 }, "not a multiple"],
    [{ release: 0n }, "no release callback"],
  ];
  const column = { kind: "primitive", ptype: "u32", nullable: false } as const;
  const dtype = writeDType({ kind: "struct", names: ["a", "b"], fields: [column, column], nullable: false });
  for (const [change, text] of wrong) {
    const release = new CountingRelease();
    const good = numbers(1, [{ descriptor: descriptor(arena, release, Uint32Array.of(1)) }]);
    const bad = numbers(1, [{ descriptor: descriptor(arena, release, Uint32Array.of(1), change) }]);
    const tree: VortexMetadata = ["vortex.struct", dtype, 1, new Uint8Array(0), [], [good, bad]];
    assertThrows(() => fromVortexMetadata(tree), ExchangeError, text);
    assertEquals(release.count, 1, text);
  }
});

/** When a fault is found: while reading the tuples, by the parent node checking its children, by the node itself. */
type Phase = 0 | 1 | 2;
type Fault = readonly [name: string, phase: Phase, change: (tree: unknown[]) => unknown, text: string];

const refused: readonly Fault[] = [
  [
    "too short",
    0,
    (tree) => tree.slice(1),
    "expected Vortex array metadata tuple of length 6, got 5 (at $.children[0])",
  ],
  ["no tuple", 0, () => "x", "expected a Vortex array metadata tuple, got string"],
  ["an unknown id", 2, ([, ...rest]) => ["mine.own", ...rest], "Unknown encoding: mine.own"],
  ["no id", 0, ([, ...rest]) => [7, ...rest], "The encoding's id is 7"],
  ["another length", 1, ([a, b, , ...rest]) => [a, b, 9, ...rest], "child 0 has length 9, expected 2"],
  [
    "another dtype",
    1,
    ([a, , ...rest]) => [a, writeDType({ kind: "bool", nullable: false }), ...rest],
    "child 0 has dtype bool, expected u32",
  ],
  [
    "a dtype of the same size",
    1,
    ([a, , ...rest]) => [a, writeDType({ kind: "primitive", ptype: "i32", nullable: false }), ...rest],
    "child 0 has dtype i32, expected u32",
  ],
  [
    "nulls where its dtype has none",
    2,
    ([a, b, c, d, e]) => [a, b, c, d, e, [[
      "vortex.bool",
      writeDType({ kind: "bool", nullable: false }),
      2,
      new Uint8Array(0),
      [new Uint8Array(1)],
      [],
    ]]],
    "is not nullable",
  ],
  ["no dtype", 0, ([a, , ...rest]) => [a, new Uint8Array(3), ...rest], "Cannot read the dtype"],
  ["no list of buffers", 0, ([a, b, c, d, , f]) => [a, b, c, d, "x", f], "neither a list nor a count"],
  ["no buffer", 0, ([a, b, c, d, , f]) => [a, b, c, d, [7], f], "neither bytes nor a MemoryBuffer nor a capsule"],
  ["too few bytes", 2, ([a, b, c, d, , f]) => [a, b, c, d, [new Uint8Array(7)], f], "has 7 bytes, expected 8"],
];

for (const [name, , change, text] of refused) {
  test(`a tree that is wrong is refused with the node's path: ${name}`, () => {
    const column = { kind: "primitive", ptype: "u32", nullable: false } as const;
    const dtype = writeDType({ kind: "struct", names: ["a"], fields: [column], nullable: false });
    const child = change([...numbers(2, [new Uint8Array(8)])]);
    const tree = ["vortex.struct", dtype, 2, new Uint8Array(0), [], [child]] as unknown as VortexMetadata; // or not
    const error = assertThrows(() => fromVortexMetadata(tree), VortexError, text);
    assert(error.path === "$" || error.path === "$.children[0]", error.path);
  });
}

test("of several faults the one is named that Vortex finds first: in the tuples, then in the nodes from outside", () => {
  const column = { kind: "primitive", ptype: "u32", nullable: false } as const;
  const dtype = writeDType({
    kind: "struct",
    names: ["a", "b", "c"],
    fields: [column, column, column],
    nullable: false,
  });
  const faults = fc.tuple(...[0, 1, 2].map(() => fc.option(fc.constantFrom(...refused))));
  check(
    fc.property(faults, (chosen) => {
      const children = chosen.map((fault) => {
        const good = [...numbers(2, [new Uint8Array(8)])];
        return fault === null ? good : fault[2](good);
      });
      const tree = ["vortex.struct", dtype, 2, new Uint8Array(0), [], children] as unknown as VortexMetadata; // or not
      const found = chosen.flatMap((fault, i) => fault === null ? [] : [{ fault, i }]);
      const [first] = found.toSorted((one, other) => one.fault[1] - other.fault[1] || one.i - other.i);
      if (first === undefined) {
        fromVortexMetadata(tree);
        return;
      }
      const { fault: [, phase, , text], i } = first;
      const error = assertThrows(() => fromVortexMetadata(tree), VortexError);
      assertStringIncludes(error.message, text.replace("child 0", `child ${i}`).replace("[0]", `[${i}]`));
      assertEquals(error.path, phase === 1 ? "$" : `$.children[${i}]`);
    }),
    500,
  );
});

test("buffers that are only counted describe an array, which cannot be decoded", () => {
  const array = fromVortexMetadata(numbers(5, 1));
  assertEquals(array.displayTree(), "root: vortex.primitive(u32, len=5)");
  assertThrows(() => array.toArrow(), VortexError, "counted and not handed over");
});

test("a session that allows unknown encodings describes them, and does not decode them", () => {
  const session = new VortexSession({ allowsUnknown: true });
  const array: VortexArray = fromVortexMetadata(numbers(2, [new Uint8Array(8)]), { session });
  assertEquals(array.encoding, "vortex.primitive");
  assertThrows(() => array.toArrow(), VortexError, "Unknown encoding: vortex.primitive");
});

test("an extension's type is given by the session, or else named by the field's metadata", () => {
  const storage = { kind: "primitive", ptype: "i32", nullable: false } as const;
  const metadata = Uint8Array.of(7, 8);
  const dtype = writeDType({ kind: "extension", id: "mine.day", storage, metadata, nullable: false });
  const days = new Uint8Array(Int32Array.of(1, 2).buffer);
  const inner: VortexMetadata = ["vortex.primitive", writeDType(storage), 2, new Uint8Array(0), [days], []];
  const tree: VortexMetadata = ["vortex.ext", dtype, 2, new Uint8Array(0), [], [inner]];
  const unknown = fromVortexMetadata(tree).toArrow();
  assertEquals([unknown.type.kind, unknown.field.metadata.get("ARROW:extension:name")], ["int", "mine.day"]);
  assertEquals(unknown.field.metadata.get("ARROW:extension:metadata"), metadata);
  const day = { id: "mine.day", toArrow: () => ({ kind: "date", unit: "day" } as const) };
  const known = fromVortexMetadata(tree, { session: VortexSession.default().registerExtension(day) }).toArrow();
  assertEquals([known.type, known.field.metadata.size, known.toArray()], [day.toArrow(), 0, [1, 2]]);
  const wrong = {
    id: "mine.day",
    toArrow: () => {
      throw new TypeError("Cannot read the metadata of mine.day");
    },
  };
  const session = VortexSession.default().registerExtension(wrong);
  assertThrows(() => fromVortexMetadata(tree, { session }).toArrow(), VortexError, "metadata of mine.day (at dtype)");
});

test("only encodings that can be kept can be named as such", () => {
  const keep = ["runend"] as unknown as readonly "runEnd"[]; // as an untyped program writes it
  assertThrows(() => fromVortexMetadata(numbers(0, [new Uint8Array(0)])).toArrow({ keep }), TypeError, "Cannot keep");
});

test("a tree that is too deep or too large is refused", () => {
  let tree = numbers(1, [new Uint8Array(4)]);
  let dtype: Parameters<typeof writeDType>[0] = { kind: "primitive", ptype: "u32", nullable: false };
  for (let i = 0; i < 70; i++) {
    dtype = { kind: "struct", names: ["a"], fields: [dtype], nullable: false };
    tree = ["vortex.struct", i < 60 ? writeDType(dtype) : new Uint8Array(0), 1, new Uint8Array(0), [], [tree]];
  }
  assertThrows(() => fromVortexMetadata(tree), VortexError);
  const one = numbers(1, [new Uint8Array(4)]);
  assertThrows(() => fromVortexMetadata(one, { limits: { nodes: 1, depth: 0 } }), RangeError, "Cannot limit depth");
});

const [capsules, capsuleOptions] = needs(
  missingPyVortex,
  "a capsule gives its buffer once, and keeps it if it is refused",
);

test(capsules, { ...capsuleOptions, ...patiently }, () => {
  const python = openPyVortex();
  python.run("numbers = vx.array(pa.array([1, 2, 3], pa.uint32())); metadata = numbers.__vortex_array_metadata__()");
  using metadata: PyObject = python.evaluate("metadata");
  using array = fromVortexMetadata(metadata.$value() as VortexMetadata);
  assertEquals(array.toArrow().toArray(), [1, 2, 3]);
  assertThrows(() => fromVortexMetadata(metadata.$value() as VortexMetadata), ExchangeError, "twice");
  python.run("import gc; fresh = numbers.__vortex_array_metadata__(); del fresh; gc.collect()"); // never taken
});
