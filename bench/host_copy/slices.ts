/**
 * Copies of a few elements between arrays that are sliced anew for each copy, as programs do: making the slice counts.
 *
 * @module
 */
import { slice, StridedMemoryView } from "../../mod.ts";
import type { HostCase } from "./moves.ts";

/** Rows of the matrix: each call copies once with each of them. */
const rows = 64;

interface Slices {
  /** Elements of the vectors; the matrix has 64 rows of as many, or of `columns`. */
  readonly count: number;
  readonly columns?: number;
  /** Types of the matrix and of the vectors. Default: float32. */
  readonly of?: readonly [matrix: "float32" | "float64", vectors: "float32" | "float64"];
  /** A copy: of the matrix, two vectors, and the row. */
  readonly copy: (m: StridedMemoryView, v: StridedMemoryView, w: StridedMemoryView, i: number) => void;
  /** The same in Python. */
  readonly python: string;
}

const intoRow: Pick<Slices, "copy" | "python"> = {
  copy: (m, v, _, i) => m.sliced(i).copyFrom(v),
  python: "to = m[i]; to[...] = v",
};
const even = slice(null, null, 2);
const convert = { convert: true };
/** Converted into a row, and from every second element of one: the row has twice as many. */
const convertedInto = (count: number): Slices => ({
  count,
  of: ["float32", "float64"],
  copy: (m, v, _, i) => m.sliced(i).copyFrom(v, convert),
  python: intoRow.python,
});
const convertedFrom = (count: number): Slices => ({
  count,
  columns: 2 * count,
  of: ["float64", "float32"],
  copy: (m, v, _, i) => v.copyFrom(m.sliced(i, even), convert),
  python: "v[...] = m[i, ::2]",
});

const moves: Record<string, Slices> = {
  "10 f32 into a row": { count: 10, ...intoRow },
  "100 f32 into a row": { count: 100, ...intoRow },
  "100 f32 from a row": { count: 100, copy: (m, v, _, i) => v.copyFrom(m.sliced(i)), python: "v[...] = m[i]" },
  "100 f32 from row to row": {
    count: 100,
    copy: (m, _v, _w, i) => m.sliced(i).copyFrom(m.sliced(63 - i)),
    python: "to = m[i]; to[...] = m[63 - i]",
  },
  "64 f32 into a column": {
    count: 64,
    copy: (m, v, _, i) => m.sliced(slice(), i).copyFrom(v),
    python: "to = m[:, i]; to[...] = v",
  },
  "100 f32 from a row, ::2": {
    count: 100,
    columns: 200,
    copy: (m, v, _, i) => v.copyFrom(m.sliced(i, even)),
    python: "v[...] = m[i, ::2]",
  },
  "100 f32, from two arrays in turn": {
    count: 100,
    copy: (m, v, w, i) => v.copyFrom(i % 2 === 0 ? w : m),
    python: "v[...] = w if i % 2 == 0 else m",
  },
};

const conversions: Record<string, Slices> = {
  "10 f64 into a row of f32": convertedInto(10),
  "100 f64 into a row of f32": convertedInto(100),
  "64 f64 into a column of f32": {
    count: 64,
    of: ["float32", "float64"],
    copy: (m, v, _, i) => m.sliced(slice(), i).copyFrom(v, convert),
    python: "to = m[:, i]; to[...] = v",
  },
  "20 f64 from a row, ::2, into f32": convertedFrom(20),
  "100 f64 from a row, ::2, into f32": convertedFrom(100),
};

function made(
  { count, columns = count, of = ["float32", "float32"], copy, python }: Slices,
): ReturnType<HostCase["make"]> {
  const [matrix, vectors] = of;
  const isAlone = !python.includes("m["); // a third vector, as the other of two
  const m = StridedMemoryView.zeros(isAlone ? [count] : [rows, columns], matrix);
  const [v, w] = [StridedMemoryView.zeros([count], vectors), StridedMemoryView.zeros([count], vectors)];
  return {
    run: () => {
      for (let i = 0; i < rows; i++) copy(m, v, w, i);
    },
    copies: rows,
    question: ["slices", { matrix, vectors, shape: m.shape, count, copy: python, rows }],
  };
}

/** All of them: moves, and conversions. */
export function sliceCases(): HostCase[] {
  const casesOf = (all: Record<string, Slices>, goal: number) =>
    Object.entries(all).map(([name, slices]) => ({ name, goal, make: () => made(slices) }));
  return [...casesOf(moves, 1), ...casesOf(conversions, 1.5)];
}
