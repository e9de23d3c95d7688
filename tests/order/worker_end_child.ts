/**
 * Workers that end, each in its own way, while others use their exports, or within a Python call. The Worker
 * is this file, too. Prints the findings as JSON.
 *
 * Arguments: `export` or `call`, a seed, the number of Workers, and an interpreter if there is one.
 */
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { exportArrowStream } from "../../src/public/arrow.ts";
import {
  ArrowArray,
  arrowField,
  ArrowStream,
  HostMemoryResource,
  kwargs,
  Python,
  StridedMemoryView,
} from "../../mod.ts";
import { ffiPort } from "../../src/ffi/port.ts";

/** The part of a Worker used here: both runtimes have Workers, but no types that both compilers know. */
interface WorkerThread {
  onmessage: (event: { readonly data: unknown }) => void;
  onerror: (event: { readonly message: string }) => void;
  postMessage(message: Task): void;
  terminate(): void;
}

type WorkerConstructor = new (url: string, options: { readonly type: "module" }) => WorkerThread;

/** What a Worker is to do. */
type Task =
  | { readonly do: "export"; readonly seed: number; readonly home: string | undefined }
  | { readonly do: "call"; readonly home: string; readonly milliseconds: number; readonly times: number };

/** A Worker's exports: addresses of structs, the content of each, and the refused writes. */
interface Exported {
  readonly tensors: readonly bigint[];
  readonly arrays: readonly { readonly schema: bigint; readonly deviceArray: bigint }[];
  readonly streams: readonly bigint[];
  readonly expected: readonly (readonly number[])[];
  readonly refused: readonly string[];
  readonly inPlace: readonly boolean[];
}

/** Pseudo-random numbers from a seed. */
function* numbers(seed: number): Generator<number, number> {
  for (let state = (seed | 1) >>> 0;;) {
    state = Math.imul(state ^ state >>> 15, 0x2c1b_3c6d) + 0x9e37_79b9 >>> 0;
    yield state;
  }
}

function message(work: () => unknown): string {
  try {
    work();
    return "nothing";
  } catch (error) {
    return String(error);
  }
}

/** A typed array at an offset in its ArrayBuffer, small or large. */
function typedArray(dice: Generator<number, number>): Int32Array<ArrayBuffer> {
  const length = [1, 7, 300, 20_000, 300_000][dice.next().value % 5] ?? 1;
  const array = new Int32Array(new ArrayBuffer(4 * length + 32), 16, length);
  for (let i = 0; i < length; i++) array[i] = dice.next().value | 0;
  return array;
}

/** A view as an Arrow array over the view's memory, which `ArrowArray.from` would copy here. */
function column(view: StridedMemoryView): ArrowArray {
  const values = new ArrowArray({ field: arrowField("i"), length: view.layout.volume, buffers: [null, bytesOf(view)] });
  const type = arrowField({ kind: "struct", children: [values.field] }, { name: "outer" });
  return new ArrowArray({ field: type, length: values.length, buffers: [null], children: [values] });
}

function bytesOf({ buffer, nbytes }: StridedMemoryView): StridedMemoryView {
  return StridedMemoryView.fromBuffer(buffer, { shape: [nbytes], dtype: "uint8" });
}

function exportAll(seed: number, home: string | undefined): Exported {
  const dice = numbers(seed);
  const arrays = Array.from({ length: 12 }, () => typedArray(dice));
  const views = arrays.map((array) => StridedMemoryView.fromTypedArray(array));
  const own = new HostMemoryResource().allocate(64);
  const view = StridedMemoryView.fromBuffer(own, { shape: [16], dtype: "int32" });
  const again = StridedMemoryView.fromTypedArray(new Int32Array(own.bytes().buffer, 4, 2));
  const inPlace: boolean[] = [];
  const part = (at: number) => views.slice(3 * at, 3 * at + 3);
  const tensors = part(0).map((view) => view.toDlpack().take());
  const columns = part(1).map((view, i) => (i === 0 ? ArrowArray.from(view) : view).toArrowDevice().take());
  const streams = part(2).map((view) => exportArrowStream([column(view)]).take());
  const refused = [message(() => part(0)[0]?.toDlpack({ copy: false }))];
  for (const one of [view, again]) {
    using seen = StridedMemoryView.fromDlpack(one.toDlpack({ copy: false }));
    using array = ArrowArray.from(one);
    inPlace.push(seen.ptr === one.ptr, array.buffers[1]?.ptr === one.ptr);
  }
  if (home !== undefined) {
    const python = Python.open({ home });
    const main = python.import("__main__");
    for (const view of part(3)) main["keep"](view);
    inPlace.push(main["address"](view) === Number(view.ptr), main["address"](again) === Number(again.ptr));
    const np = python.import("numpy");
    const target = part(3)[0];
    refused.push(message(() => np["add"](target, 1, kwargs({ out: target }))));
    np["add"](view, 1, kwargs({ out: view }));
  }
  return { tensors, arrays: columns, streams, expected: arrays.map((array) => [...array]), refused, inPlace };
}

const post = (value: unknown): void => Reflect.get(globalThis, "postMessage").call(globalThis, value);

/** What a Worker of this file does. */
function work(task: Task): void {
  if (task.do === "export") return post(exportAll(task.seed, task.home));
  const { sleep } = Python.open({ home: task.home }).import("time");
  post("begun");
  for (let i = 0; i < task.times; i++) sleep(task.milliseconds / 1000);
}

/** Starts a Worker. @returns it, and its first message */
async function start(task: Task): Promise<[WorkerThread, unknown]> {
  const Worker = Reflect.get(globalThis, "Worker") as unknown as WorkerConstructor;
  const worker = new Worker(import.meta.url, { type: "module" });
  const said = new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => data === "ready" ? worker.postMessage(task) : resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message));
  });
  return [worker, await said];
}

const equal = (left: readonly number[], right: readonly number[]) =>
  left.length === right.length && left.every((value, i) => value === right[i]);

/** How many of the Workers' exports are still valid after they have ended. */
async function lending(seed: number, workers: number, home: string | undefined): Promise<unknown> {
  const python = home === undefined ? null : Python.open({ home });
  python?.run("import numpy as np; kept = []\ndef keep(one): kept.append(np.asarray(one))");
  python?.run("def address(one): return one.__array_interface__['data'][0]");
  const found = { right: 0, wrong: 0, refused: new Set<string>(), inPlace: new Set<boolean>() };
  const dice = numbers(seed);
  for (let i = 0; i < workers; i++) {
    const [worker, said] = await start({ do: "export", seed: dice.next().value, home });
    const { tensors, arrays, streams, expected, refused, inPlace } = said as Exported;
    worker.terminate();
    await pause(200); // until its memory is freed
    const others = Array.from({ length: 40 }, (_, i) => new Uint8Array(2 ** (8 + i % 12)).fill(0xa5));
    const seen: number[][] = [];
    for (const address of tensors) {
      using view = StridedMemoryView.fromDlpack({ managedTensorVersioned: address });
      seen.push(Array.from(await view.toTypedArray(), Number));
    }
    for (const address of arrays) {
      using view = StridedMemoryView.fromArrowDevice(address);
      seen.push(Array.from(await view.toTypedArray(), Number));
    }
    for (const address of streams) {
      using stream = ArrowStream.from({ stream: address });
      for (const array of stream) seen.push(array.child(0).toArray().map(Number));
    }
    for (let at = 0; python !== null && at < 3; at++) {
      using view = python.evaluate(`kept[${at}]`) as StridedMemoryView;
      seen.push(Array.from(await view.toTypedArray(), Number));
    }
    python?.run("kept.clear()");
    seen.forEach((values, at) => equal(values, expected[at] ?? []) ? found.right++ : found.wrong++);
    for (const one of refused) found.refused.add(one);
    for (const one of inPlace) found.inPlace.add(one);
    if (others.length === 0) found.wrong++;
  }
  return { ...found, refused: [...found.refused], inPlace: [...found.inPlace] };
}

/** Whether Python still answers after Workers were ended within calls. */
async function calling(seed: number, workers: number, home: string): Promise<unknown> {
  const dice = numbers(seed);
  let right = 0;
  for (let i = 0; i < workers; i++) {
    // The first Worker starts the interpreter. Long calls, and many short ones.
    const milliseconds = [200, 20, 1][dice.next().value % 3] ?? 1;
    const [worker] = await start({ do: "call", home, milliseconds, times: 200 / milliseconds });
    await pause(dice.next().value % 30);
    worker.terminate();
    await pause(dice.next().value % 30);
    if (Python.open({ home }).evaluate("6 * 7") === 42) right++;
  }
  return { right };
}

if (ffiPort().isWorker) {
  Reflect.set(globalThis, "onmessage", ({ data }: { data: Task }) => work(data));
  post("ready");
} else {
  const [what, seed = "0", workers = "1", home] = process.argv.slice(2);
  const result = what === "export"
    ? lending(Number(seed), Number(workers), home)
    : calling(Number(seed), Number(workers), home ?? "");
  console.log(JSON.stringify(await result));
  process.exit(0); // Deno waits for Workers that were ended within a loop of calls
}
