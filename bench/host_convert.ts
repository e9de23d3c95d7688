/**
 * Conversions of elements in host memory beside NumPy's `copyto`, in alternating rounds. Prints Markdown. Times are
 * processor time of all threads of either process: other load on the machine interrupts the side that takes longer.
 *
 * Claims, as our time over NumPy's: 20 pairs of types at most 1.5 where the elements are in main memory (float32 to
 * uint8 1.7) and 2.6 where they are in a cache; any other pair at most 5; non-contiguous elements 2; 1 to 100 elements
 * 1.5.
 *
 * ```sh
 * CAUSEWAY_PYTHON=venv/bin/python deno run -A bench/host_convert.ts
 * CAUSEWAY_PYTHON=venv/bin/python bun bench/host_convert.ts small strided   # or: large, cached, others
 * ```
 *
 * The peer needs numpy and ml_dtypes.
 *
 * @module
 */
import process from "node:process";
import { HostMemoryResource, slice, StridedMemoryView } from "../mod.ts";
import { numberTypes } from "../src/copy/conversion.ts";
import { DType } from "../src/layout/mod.ts";
import { headOf, median, Peer } from "./peer.ts";

/** Layout of an array: contiguous, transposed, reversed, every other element, rows of a wider one. */
type Lie = "dense" | "turned" | "reversed" | "stepped" | "part";

interface Case {
  readonly from: string;
  readonly to: string;
  readonly shape: readonly number[];
  readonly source: Lie;
  readonly destination: Lie;
}

const ROUNDS = Number(process.env["CAUSEWAY_ROUNDS"] ?? 21);
/** Approximate time of a round for either side, and the maximum number of calls in it. */
const ROUND_NS = 2e6;
const MAX_CALLS = 20_000;

/** The conversions that programs use most. */
const pairs: readonly (readonly [from: string, to: string])[] = [
  ["float64", "float32"],
  ["float32", "float64"],
  ["int32", "float64"],
  ["int32", "float32"],
  ["uint8", "float32"],
  ["float32", "int32"],
  ["float32", "uint8"],
  ["float64", "int64"],
  ["int64", "float64"],
  ["int64", "int32"],
  ["int32", "int64"],
  ["bfloat16", "float32"],
  ["float32", "bfloat16"],
  ["float16", "float32"],
  ["float32", "float16"],
  ["bool", "uint8"],
  ["float32", "bool"],
  ["float32", "complex64"],
  ["complex128", "float64"],
  ["complex64", "complex128"],
];

function view(dtype: string, shape: readonly number[], lie: Lie): StridedMemoryView {
  const dense = (extents: readonly number[]) => {
    const volume = extents.reduce((one, other) => one * other, 1);
    const buffer = new HostMemoryResource().allocate(volume * DType.from(dtype).itemsize);
    buffer.bytes().fill(0);
    return StridedMemoryView.fromBuffer(buffer, { shape: extents, dtype: DType.from(dtype) });
  };
  const last = shape.at(-1) ?? 1;
  switch (lie) {
    case "dense":
      return dense(shape);
    case "turned":
      return dense(shape.toReversed()).permuted(shape.map((_, axis) => shape.length - 1 - axis));
    case "reversed":
      return dense(shape).sliced("...", slice(null, null, -1));
    case "stepped":
      return dense([...shape.slice(0, -1), 2 * last]).sliced("...", slice(null, null, 2));
    case "part":
      return dense([...shape.slice(0, -1), last + 16]).sliced("...", slice(0, last));
  }
}

/** Medians of the ratios and of our nanoseconds. */
async function measure(python: Peer, one: Case): Promise<{ ratio: number; ours: number }> {
  const [source, destination] = [view(one.from, one.shape, one.source), view(one.to, one.shape, one.destination)];
  const volume = one.shape.reduce((all, extent) => all * extent, 1);
  const values = Float64Array.from({ length: volume }, (_, at) => at % 100);
  const numbers = StridedMemoryView.fromTypedArray(values).reshaped(one.shape);
  if (one.from === "float64") source.copyFrom(numbers);
  else source.copyFrom(numbers, { convert: true });
  const options = { convert: true };
  const run = (repeats: number): number => {
    const begin = process.cpuUsage();
    for (let i = 0; i < repeats; i++) destination.copyFrom(source, options);
    const { user, system } = process.cpuUsage(begin);
    return (user + system) * 1000 / repeats;
  };
  const warm = performance.now() + 100;
  while (performance.now() < warm) run(1);
  const few = volume > 2 ** 16 ? 2 : 100;
  const callsOf = (ns: number) => Math.max(1, Math.min(MAX_CALLS, Math.round(ROUND_NS / Math.max(1, ns))));
  const theirs = async (calls: number) => Number(await python.ask({ ...one, repeats: calls }));
  const [calls, theirCalls] = [callsOf(run(few)), callsOf(await theirs(few))];
  const [ratios, times]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    const [mine, other] = [run(calls), await theirs(theirCalls)];
    ratios.push(mine / other);
    times.push(mine);
  }
  return { ratio: median(ratios), ours: median(times) };
}

const dense = (from: string, to: string, count: number): Case => ({
  ...{ from, to, shape: [count], source: "dense", destination: "dense" },
});

interface Section {
  readonly cases: readonly Case[];
  readonly goal: (one: Case) => number;
}

const isListed = (from: string, to: string) => pairs.some((pair) => pair[0] === from && pair[1] === to);

function others(): Case[] {
  return numberTypes.flatMap(({ name: from, ...one }) =>
    numberTypes.flatMap(({ name: to, ...other }) => {
      const isCopy = from === to || (one.bits === other.bits && /^u?int/.test(from) && /^u?int/.test(to));
      return isCopy || isListed(from, to) ? [] : [dense(from, to, 2 ** 18)];
    })
  );
}

const lies: readonly (readonly [shape: readonly number[], source: Lie, destination: Lie])[] = [
  [[2 ** 21], "stepped", "dense"],
  [[2 ** 14], "stepped", "dense"],
  [[2 ** 21], "dense", "stepped"],
  [[2 ** 21], "reversed", "dense"],
  [[2 ** 20], "stepped", "stepped"],
  [[2048, 2048], "turned", "dense"],
  [[256, 256], "turned", "dense"],
  [[2 ** 15, 64], "part", "dense"],
  [[2 ** 15, 64], "part", "part"],
  [[64, 64, 64], "turned", "dense"],
  [[2048, 1024], "turned", "turned"],
];

const sections: Readonly<Record<string, Section>> = {
  large: {
    cases: pairs.map(([from, to]) => dense(from, to, 2 ** 22)),
    goal: ({ to, from }) => from === "float32" && to === "uint8" ? 1.7 : 1.5,
  },
  cached: { cases: pairs.map(([from, to]) => dense(from, to, 2 ** 14)), goal: () => 2.6 },
  others: { cases: others(), goal: () => 5 },
  strided: {
    cases: [["float64", "float32"], ["uint8", "float32"], ["float32", "int32"], ["int64", "float64"]].flatMap((
      [from = "", to = ""],
    ) => lies.map(([shape, source, destination]) => ({ from, to, shape, source, destination }))),
    goal: () => 2,
  },
  small: {
    cases: [1, 10, 100].flatMap((count) =>
      [["float64", "float32"], ["float32", "int32"], ["uint8", "float32"], ["float32", "float16"]].map((
        [from = "", to = ""],
      ) => dense(from, to, count))
    ),
    goal: () => 1.5,
  },
};

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !(name in sections));
if (unknown.length > 0) {
  throw new RangeError(`Expected sections of ${Object.keys(sections).join(", ")}, got ${unknown.join(", ")}`);
}

using python = Peer.python("host_convert_peer.py");
const versions = await python.hear() as Record<string, string> | null; // what the script prints first
if (versions === null) {
  console.log("Not measured: no peer. Install numpy and ml_dtypes, and set CAUSEWAY_PYTHON.");
  process.exit(0);
}
console.log(headOf(versions));
let failures = 0;
for (const [name, { cases, goal }] of Object.entries(sections)) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  console.log(
    `### ${name}\n\n| from | to | shape | lie | ours, us | ours / NumPy | goal | |\n|---|---|---|---|--:|--:|--:|---|`,
  );
  for (const one of cases) {
    const { ratio, ours } = await measure(python, one);
    const limit = goal(one);
    const isMissed = ratio > limit;
    if (isMissed) failures++;
    const lie = one.source === "dense" && one.destination === "dense" ? "" : `${one.source} to ${one.destination}`;
    const cells = [one.from, one.to, one.shape.join(" x "), lie, (ours / 1000).toFixed(2), ratio.toFixed(2), limit];
    console.log(`| ${[...cells, isMissed ? "missed" : ""].join(" | ")} |`);
  }
  console.log("");
}
console.log(`${failures === 0 ? "All claims hold" : `${failures} claims fail`}.`);
process.exitCode = failures === 0 ? 0 : 1;
