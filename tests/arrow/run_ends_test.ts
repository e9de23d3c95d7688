/** Run-end encoded arrays: the value of an element is that of its run, here and in PyArrow. */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { ArrowArray, arrowField, ExchangeError, type PyObject, Python, StridedMemoryView } from "../../mod.ts";
import { parseArrowFormat } from "../../src/cdata/format.ts";
import { patiently } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

type Run = readonly [length: number, value: number | null];

const bits = fc.constantFrom<16 | 32 | 64>(16, 32, 64);
const anyRun: fc.Arbitrary<Run> = fc.tuple(fc.integer({ min: 1, max: 9 }), fc.option<number>(fc.integer()));
const anyRuns: fc.Arbitrary<Run[]> = fc.array(anyRun, {
  minLength: 1,
  maxLength: 12,
});

const bytesOf = (array: Int16Array | Int32Array | BigInt64Array | Uint8Array) =>
  StridedMemoryView.fromTypedArray(new Uint8Array(array.buffer as ArrayBuffer, array.byteOffset, array.byteLength));

/** The elements one by one. */
const elementsOf = (runs: readonly Run[]) => runs.flatMap(([length, value]) => Array.from({ length }, () => value));

function encoded(runs: readonly Run[], width: 16 | 32 | 64, start: number, end: number): ArrowArray {
  let last = 0;
  const numbers = runs.map(([length]) => last += length);
  const ends = width === 16
    ? Int16Array.from(numbers)
    : width === 32
    ? Int32Array.from(numbers)
    : BigInt64Array.from(numbers, BigInt);
  const runEnds = arrowField({ kind: "int", bits: width }, { name: "run_ends", nullable: false });
  const values = arrowField("i", { name: "values" });
  const bitmap = new Uint8Array(Math.ceil(runs.length / 8));
  runs.forEach(([, value], i) => {
    if (value !== null) bitmap[i >> 3] = (bitmap[i >> 3] ?? 0) | 1 << (i & 7);
  });
  const { length } = runs;
  return new ArrowArray({
    field: arrowField({ kind: "run_end_encoded", runEnds, values }, { name: "runs" }),
    length: end - start,
    offset: start,
    buffers: [],
    children: [
      new ArrowArray({ field: runEnds, length, buffers: [null, bytesOf(ends)] }),
      new ArrowArray({
        field: values,
        length,
        buffers: [bytesOf(bitmap), bytesOf(Int32Array.from(runs, ([, value]) => value ?? 77))],
      }),
    ],
  });
}

/** Runs, the width of their ends, and a slice of them. */
const cases = fc.record({ runs: anyRuns, width: bits, cuts: fc.tuple(fc.nat(), fc.nat()) }).map(
  ({ runs, width, cuts }) => {
    const all = elementsOf(runs);
    const [start = 0, end = 0] = cuts.map((cut) => cut % (all.length + 1)).toSorted((one, other) => one - other);
    return { all, start, end, array: encoded(runs, width, start, end) };
  },
);

test("an element has the value of its run, also in slices and after an exchange", () => {
  check(
    fc.property(cases, fc.nat(), ({ all, start, end, array }, cut) => {
      const wanted = all.slice(start, end);
      assertEquals(array.toArray(), wanted);
      const from = cut % (wanted.length + 1);
      assertEquals(array.sliced(from).toArray(), wanted.slice(from));
      using again = ArrowArray.from(array.toArrowDevice());
      assertEquals([again.toArray(), again.field, again.nullCount], [wanted, array.field, 0]);
    }),
  );
});

test("runs that end too early, and invalid run ends, are refused", () => {
  const short = encoded([[2, 5]], 32, 0, 3);
  assertEquals([short.get(0), short.get(1)], [5, 5]);
  assertThrows(() => short.get(2), ExchangeError, "whose runs end before it");
  const array = encoded([[1, 1], [1, 2]], 32, 0, 2);
  const [ends, values] = array.children;
  const { field, length } = array;
  const children = [ends ?? array, values?.sliced(0, 1) ?? array];
  assertThrows(
    () => new ArrowArray({ field, length, buffers: [], children }),
    ExchangeError,
    "2 run ends and 1 values",
  );
  for (const format of ["u", "c", "I", "f"]) {
    const fields = [arrowField(format), arrowField("i")];
    assertThrows(() => parseArrowFormat("+r", fields), ExchangeError, `with ends of ${format}`);
  }
  assertThrows(() => parseArrowFormat("+r", [arrowField("i")]), ExchangeError, "with 1 children: expected 2");
  assertThrows(
    () => ArrowArray.from(array.toArrowDevice({ requestedSchema: arrowField("u") })),
    ExchangeError,
    "no conversion",
  );
});

const found = findPython("pyarrow");
const [title, options] = needs(
  typeof found === "string" ? found : null,
  "runs are exported to PyArrow and imported from it unchanged",
);

test(title, { ...options, ...patiently }, () => {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  python.run("import pyarrow as pa, pyarrow.compute as pc");
  const toList: PyObject = python.evaluate("lambda array: pa.array(array).to_pylist()");
  const encode: PyObject = python.evaluate(
    "lambda array, width: pc.run_end_encode(pa.array(array), run_end_type=getattr(pa, f'int{width}')())",
  );
  const slice: PyObject = python.evaluate("lambda array, start, end: array[start:end]");
  check(
    fc.property(cases, bits, ({ all, start, end, array }, width) => {
      const wanted = all.slice(start, end);
      using list: PyObject = toList.$call(array);
      assertEquals(list.$value() as unknown, wanted);
      using plain: PyObject = python.evaluate("lambda values: pa.array(values, pa.int32())").$call(all);
      using whole: PyObject = encode.$call(plain, width);
      using part: PyObject = slice.$call(whole, start, end);
      using theirs = ArrowArray.from(part);
      assertEquals([theirs.type.kind, theirs.toArray()], ["run_end_encoded", wanted]);
    }),
    200,
  );
});
