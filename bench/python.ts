/**
 * Calls into Python in this process beside the same calls in Python itself, in one run on one machine. Prints Markdown.
 *
 * Claim: a call costs as much as a few C calls, and the round trip of an array to NumPy takes a few microseconds. The
 * goals for each runtime are in the table.
 *
 * ```sh
 * CAUSEWAY_PYTHON=venv/bin/python deno run -A bench/python.ts
 * CAUSEWAY_PYTHON=venv/bin/python bun bench/python.ts
 * ```
 *
 * The interpreter needs NumPy. Measurements alternate, in rounds: an operation of ours, the same in Python, the next
 * one. The median of all rounds counts, and the fastest is printed beside it. Work deferred to the end of a turn is on
 * the clock, as is garbage collection within a turn; finalizers that run afterwards are not.
 *
 * The goals are for a machine on which Python itself takes the times in the table. Where Python takes longer, the goals
 * scale by that factor (the pace: its median over all rows).
 */
import process from "node:process";
import { setImmediate } from "node:timers/promises";
import { Python, StridedMemoryView } from "../mod.ts";
import { headOf, median, Peer, Rounds } from "./peer.ts";

const BATCH = 300;
/** Batches of an operation in each round, and the rounds. */
const SAMPLES = 7;
const ROUNDS = 11;
/** Warm-up batches. */
const WARM = 30;
const isBun = "Bun" in globalThis;

interface Operation {
  readonly run: () => void;
  /** Its name in python_peer.py. */
  readonly peer: string;
  /** How many timed operations a run makes. */
  readonly each?: number;
  /** Maximum nanoseconds in Deno and in Bun, where Python takes the third number; absent if none was set. */
  readonly goal?: readonly [deno: number, bun: number, python: number];
}

const peer = Peer.python("python_peer.py");
const heard = await peer.hear() as Record<"CPython" | "NumPy" | "shared", string> | null; // what the script prints
if (heard === null) throw new Error("No peer: set CAUSEWAY_PYTHON to an interpreter with NumPy");
const { shared, ...versions } = heard;

const python = Python.open();
const math = python.import("math");
const np = python.import("numpy");
python.run(shared);
python.run(
  "obj = Counter(); keyed = {}; one = ['only']; ints = list(range(1000)); floats = [value + 0.5 for value in range(1000)]",
);
const main = python.import("__main__");
const { obj, keyed, one, take, fail, ints, floats } = main;
const range = python.builtins["range"](1000);
const sqrt = math.$get("sqrt");
const a = np["zeros"].$call(100);
const view = StridedMemoryView.fromTypedArray(new Float64Array(100));
const hundred = Array.from({ length: 100 }, (_, i) => i + 0.5);

/** Keeps a result from being optimised away. */
let kept: unknown;

const operations: ReadonlyMap<string, Operation> = new Map<string, Operation>([
  ["math.sqrt, kept", { run: () => kept = sqrt(2), peer: "sqrt", goal: [150, 250, 17] }],
  ["math.sqrt, by attribute", { run: () => kept = math["sqrt"](2), peer: "math.sqrt", goal: [300, 400, 18] }],
  ["obj.n", { run: () => kept = obj.n, peer: "obj.n", goal: [130, 130, 8] }],
  ["obj.method(4)", { run: () => kept = obj.method(4), peer: "obj.method", goal: [400, 500, 30] }],
  ["list[500]", { run: () => kept = ints[500], peer: "item" }],
  ['"n" in obj', { run: () => kept = "n" in obj, peer: "has" }],
  ["obj.n = 3", { run: () => obj.n = 3, peer: "set attribute" }],
  ["a key of a dict, set and deleted", {
    run() {
      keyed.key = 1;
      delete keyed.key;
    },
    peer: "set key",
  }],
  ["iterate a list of one", {
    run() {
      for (const value of one) kept = value;
    },
    peer: "iterate one",
  }],
  ["f(text of 20)", { run: () => kept = take("abcdefghijklmnopqrst"), peer: "text", goal: [350, 350, 12] }],
  ["f(dict of 5)", { run: () => kept = take({ a: 1, b: 2, c: 3, d: 4, e: 5 }), peer: "dict", goal: [600, 600, 110] }],
  ["f(list of 100 floats)", { run: () => kept = take(hundred), peer: "list", goal: [2500, 2500, 140] }],
  ["np.sum(NumPy's)", { run: () => kept = np["sum"](a), peer: "sum", goal: [2200, 2200, 1550] }],
  ["np.sum(view)", { run: () => kept = np["sum"](view), peer: "sum", goal: [5000, 5000, 1550] }],
  ["np.add(a, b) to view, closed", { run: () => np["add"](a, a).close(), peer: "add", goal: [5000, 5000, 270] }],
  ["np.ones(100) to view, closed", { run: () => np["ones"](100).close(), peer: "ones", goal: [2000, 2000, 600] }],
  ["view of a NumPy array, closed", {
    run: () => StridedMemoryView.from(a).close(),
    peer: "from_dlpack",
    goal: [1200, 1200, 120],
  }],
  ["iterate a range, per int", {
    run() {
      for (const value of range) kept = value;
    },
    peer: "iterate range",
    each: 1000,
    goal: [70, 70, 4],
  }],
  ["iterate a list, per int", {
    run() {
      for (const value of ints) kept = value;
    },
    peer: "iterate list",
    each: 1000,
    goal: [45, 45, 4],
  }],
  ["$value(), per float", { run: () => kept = floats.$value(), peer: "value", each: 1000, goal: [30, 30, 1.4] }],
  ["an exception, caught", {
    run() {
      try {
        fail();
      } catch (error) {
        kept = error;
      }
    },
    peer: "exception",
    goal: [8000, 8000, 300],
  }],
]);

/** Nanoseconds of one call, including work deferred to the end of the turn. */
async function time({ run, each = 1 }: Operation): Promise<number> {
  const times = Math.max(1, BATCH / each);
  const start = process.hrtime.bigint();
  for (let i = 0; i < times; i++) run();
  await Promise.resolve();
  const end = process.hrtime.bigint();
  await setImmediate(); // finalizers run in their own turn
  return Number(end - start) / times / each;
}

async function batches(operation: Operation, count: number): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < count; i++) times.push(await time(operation));
  return times;
}

const only = process.argv[2];
const rows = [...operations].filter(([name]) => only === undefined || name.includes(only))
  .map(([name, operation]) => ({ name, operation, ours: new Rounds(), beside: new Rounds() }));
for (const { operation } of rows) await batches(operation, WARM);
for (let round = 0; round < ROUNDS; round++) {
  for (const { operation, ours, beside } of rows) {
    await batches(operation, 2); // re-warms what was evicted meanwhile
    ours.add(await batches(operation, SAMPLES));
    beside.add([Number(await peer.ask(operation.peer) ?? NaN)]);
  }
}
peer.close();

console.log(headOf(versions));
const pace = Math.max(
  1,
  median(rows.flatMap(({ operation: { goal }, beside }) => goal === undefined ? [] : [beside.median / goal[2]])),
);
console.log(`Nanoseconds, medians of ${ROUNDS} rounds in turns; pace ${pace.toFixed(2)}.\n`);
console.log(
  "| operation | ours | fastest | Python | ours / Python | goal | at this pace | |\n|---|--:|--:|--:|--:|--:|--:|---|",
);
let failures = 0;
for (const { name, operation: { goal }, ours, beside } of rows) {
  const stated = goal?.[isBun ? 1 : 0];
  const most = stated === undefined ? Infinity : stated * pace;
  if (ours.median > most) failures++;
  const cells = [
    name,
    ours.median.toFixed(0),
    ours.best.toFixed(0),
    beside.median.toFixed(0),
    (ours.median / beside.median).toFixed(1),
    ...stated === undefined ? ["", "", ""] : [stated, most.toFixed(0), ours.median <= most ? "PASS" : "FAIL"],
  ];
  console.log(`| ${cells.join(" | ")} |`);
}
void kept;
process.exitCode = failures === 0 ? 0 : 1;
