/**
 * Opens and closes one resource over and over, and prints how the process has grown. The arguments are the resource's
 * name and the number of cycles.
 *
 * The cycles are measured in several windows, after one that only warms up: a leak grows in every window, while a heap
 * that has not been garbage collected yet, or an allocator's cache, grows in some and shrinks in others.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { setImmediate } from "node:timers/promises";
import { liveExports } from "../src/order/reclaim.ts";
import { ArrowArray, arrowField, ExchangeError, type PyObject, Python, PythonError } from "../mod.ts";
import { Cuda } from "../src/cuda/cuda.ts";
import { NativeArena } from "../src/ffi/arena.ts";
import { openLibrary } from "../src/ffi/library.ts";
import { ffiPort } from "../src/ffi/port.ts";
import { HostMemoryResource } from "../src/memory/host_memory_resource.ts";
import { UcxError } from "../src/ucx/error.ts";
import { libucp } from "../src/ucx/library.ts";
import { printInfo } from "../src/ucx/print_info.ts";
import { Ucx } from "../src/ucx/ucx.ts";
import type { UcxEndpoint } from "../src/ucx/endpoint.ts";
import type { UcxWorker } from "../src/ucx/worker.ts";
import { StridedMemoryView } from "../src/view/strided_memory_view.ts";
import { collectGarbage } from "./support/collect.ts";
import { nullDriver } from "./support/null_driver.ts";
import { openFiles } from "./support/open_files.ts";
import { findPython } from "./support/python.ts";
import { type Growth, leak } from "./resources_growth.ts";

/** Opens and closes once. */
type Cycle = () => unknown;

const memory = new HostMemoryResource();

/** A worker that is connected to itself. */
async function connected(): Promise<{ worker: UcxWorker; endpoint: UcxEndpoint }> {
  const worker = Ucx.open({ config: { TLS: "sm" } }).createWorker();
  return { worker, endpoint: await worker.connect(worker.address) };
}

function python(): Python {
  const found = findPython("numpy");
  if (typeof found === "string") throw new Error(found);
  return Python.open({ home: found.executable });
}

/** Fails unless `work` throws the given error. */
function refused(work: () => unknown, error: new (...args: never[]) => Error): void {
  try {
    work();
  } catch (reason) {
    if (reason instanceof error) return;
    throw reason;
  }
  throw new Error("this must fail");
}

/** The resources that are opened and closed, by name. */
const resources: Record<string, () => Cycle | Promise<Cycle>> = {
  arena: () => () => {
    using arena = new NativeArena();
    arena.out("ptr");
    arena.bytes(5000);
    arena.cString("text");
  },
  "host buffer": () => () => {
    const buffer = memory.allocate(1000);
    buffer.bytes()[0] = 1;
    const pin = buffer.pinned();
    buffer.close();
    pin[Symbol.dispose]();
  },
  "view of a typed array": () => () => StridedMemoryView.fromTypedArray(new Float32Array(250)).buffer.bytes(),
  "DLPack tensor": () => () => {
    using buffer = memory.allocate(1000);
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [10, 25], dtype: "float32" });
    StridedMemoryView.fromDlpack(view.toDlpack()).close();
    view.toDlpack({ maxVersion: [0, 8] }).close();
    view.toDlpack({ copy: true }).close();
    liveExports();
  },
  "Arrow array": () => {
    const children = ["x", "y"].map((name) => arrowField("f", { name, nullable: false }));
    const field = arrowField({ kind: "struct", children }, { metadata: { key: "value" } });
    return () => {
      using buffer = memory.allocate(1000);
      const bytes = StridedMemoryView.fromBuffer(buffer, { shape: [1000], dtype: "uint8" });
      const [x, y] = children.map((child) => new ArrowArray({ field: child, length: 250, buffers: [null, bytes] }));
      if (x === undefined || y === undefined) throw new Error("there are two children");
      const table = new ArrowArray({ field, length: 250, buffers: [null], children: [x, y] });
      ArrowArray.from(table).close();
      table.sliced(3).toArrowDevice().close();
      StridedMemoryView.fromArrowDevice(x).close();
      liveExports();
    };
  },
  "pair by DLPack": () => {
    const view = StridedMemoryView.fromBuffer(memory.allocate(1000), { shape: [10, 25], dtype: "float32" });
    return () => {
      StridedMemoryView.fromDlpack(view.toDlpack()).close();
      liveExports();
    };
  },
  "pair by Arrow": () => {
    const view = StridedMemoryView.fromBuffer(memory.allocate(1000), { shape: [10, 25], dtype: "float32" });
    return () => {
      StridedMemoryView.fromArrowDevice(view).close();
      liveExports();
    };
  },
  "pair by CUDA array interface": () => {
    const device = Cuda.over(nullDriver().driver).device(0); // which does nothing, and returns at once
    const [home, stream] = [device.createStream(), device.createStream()];
    const buffer = device.memory.allocate(1000, { stream: home });
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [10, 25], dtype: "float32" });
    return () => StridedMemoryView.fromCudaArrayInterface(view, { stream }).close(); // ordered in both directions
  },
  "refused Arrow import": () => {
    const buffer = memory.allocate(1000);
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [250], dtype: "float32" });
    return () => {
      using exported = view.toArrowDevice();
      const { ptr: deviceArray, schemaPtr: schema } = exported;
      refused(() => ArrowArray.from({ schema: 0n, deviceArray }), ExchangeError);
      refused(() => ArrowArray.from({ schema, deviceArray: 4n }), ExchangeError);
      refused(() => view.toArrowDevice({ requestedSchema: arrowField("u") }), ExchangeError);
      exported.close();
      liveExports();
    };
  },
  "refused DLPack export": () => {
    const buffer = memory.allocate(1000);
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [10, 25], dtype: "float32" });
    buffer.close();
    return () => {
      refused(() => view.toDlpack(), TypeError);
      refused(() => view.toDlpack({ copy: true }), TypeError);
      refused(() => view.toDlpack({ stream: 5n }), ExchangeError);
    };
  },
  callback: () => () => ffiPort().callback({ args: ["ptr"], returns: "void" }, () => {}).close(),
  library: () => () => openLibrary(libucp),
  "text of an endpoint": async () => {
    const { endpoint } = await connected();
    return () => endpoint.transports();
  },
  "UCX message": async () => {
    const { worker, endpoint } = await connected();
    using buffer = memory.allocate(100);
    const into = new Uint8Array(100);
    const from = buffer.bytes().slice();
    const { signal } = new AbortController(); // one for all, never aborted
    return async () => {
      const stop = new AbortController();
      const never = worker.recv(into, { tag: 2n, signal: stop.signal }).catch(() => {});
      await Promise.all([worker.recv(into, { tag: 1n, signal }), endpoint.send(from, { tag: 1n, signal })]);
      stop.abort();
      await never;
    };
  },
  "value through Python": () => {
    const identity: PyObject = python().evaluate("lambda value: value");
    return () => {
      using list: PyObject = identity([1, "two", 3.5, 4n ** 40n, null, { six: [true] }]);
      list.$value();
    };
  },
  "array through Python": () => {
    const asarray: PyObject = python().import("numpy").$get("asarray");
    const array = new Float32Array(250);
    return () => {
      using passed: PyObject = asarray.$call(array);
      StridedMemoryView.from(passed).close();
      liveExports();
    };
  },
  "Arrow array in Python": () => {
    const ask: PyObject = python().evaluate(
      "lambda array: (array.__arrow_c_array__(), array.__arrow_c_schema__())[:0]",
    );
    const array = ArrowArray.from(
      StridedMemoryView.fromBuffer(memory.allocate(1000), { shape: [250], dtype: "float32" }),
    );
    return () => {
      ask.$call(array).$close();
      liveExports();
    };
  },
  "capsule that Python does not use": () => {
    const ask: PyObject = python().evaluate("lambda array: array.__dlpack__()");
    const array = new Float32Array(250);
    return () => {
      ask.$call(array).$close();
      liveExports();
    };
  },
  "exception of Python": () => {
    const fails: PyObject = python().evaluate("lambda array: 1 // 0");
    const array = new Float32Array(250);
    return () => {
      refused(() => fails(array), PythonError);
      liveExports();
    };
  },
  "UCX endpoint": async () => {
    const { worker } = await connected();
    return async () => await (await worker.connect(worker.address)).close();
  },
  "UCX worker": () => {
    const ucx = Ucx.open({ config: { TLS: "self" } });
    return async () => {
      const worker = ucx.createWorker();
      void worker.address;
      await worker.close();
    };
  },
  "UCX context": () => () => Ucx.open({ config: { TLS: "self" } }).close(),
  "refused UCX context": () => () => refused(() => Ucx.open({ config: { TLS: "self", TSL: "self" } }), UcxError),
};

const { malloc_info } = ffiPort().bind("libc.so.6", 0n, {
  // int malloc_info(int options, FILE *stream);
  malloc_info: { args: ["i32", "ptr"], returns: "i32" },
});

/** Bytes that malloc has allocated and not freed, in all threads. */
function bytesInUse(): number {
  const text = printInfo((file) => void malloc_info(0, file));
  const totals = text.slice(text.lastIndexOf("</heap>"));
  const size = (element: string): number =>
    Number(new RegExp(`<${element}[^>]* size="(\\d+)"`).exec(totals)?.[1] ?? NaN);
  return size('system type="current"') - size('total type="fast"') - size('total type="rest"') +
    size('total type="mmap"');
}

interface Sample {
  readonly native: number;
  readonly script: number;
  readonly resident: number;
  readonly descriptors: number;
}

async function sample(): Promise<Sample> {
  // What finalisers release in one collection is garbage in the next: megabytes of workers in Deno.
  let before = Infinity;
  for (let round = 0; round < 20; round++) {
    await collectGarbage();
    const { heapUsed } = process.memoryUsage();
    if (heapUsed > before - 4096) break;
    before = heapUsed;
  }
  return {
    native: bytesInUse(),
    script: process.memoryUsage().heapUsed,
    resident: Number(readFileSync("/proc/self/statm", "utf8").split(" ")[1]) * 4096,
    descriptors: openFiles(),
  };
}

async function repeat(cycle: Cycle, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const pending = cycle();
    if (pending instanceof Promise) await pending;
    // Until the event loop turns, JavaScript keeps the target of a new WeakRef alive.
    if (i % 100 === 99) await setImmediate();
  }
}

const [name = "", cycles = ""] = process.argv.slice(2);
const windows = 5;
const rounds = 3;
const perWindow = Math.ceil(Number(cycles) / windows);
const open = resources[name];
if (open === undefined) throw new Error(`no resource ${name}`);
const cycle = await open();
await repeat(cycle, perWindow); // code is compiled, caches are filled
let samples: Sample[];
let grown: Growth;
// A leak shows in every round: one on a busy machine, where the runtime compiles in the background, is no proof of it.
for (let round = 1;; round++) {
  samples = [await sample()];
  for (let i = 0; i < windows; i++) {
    await repeat(cycle, perWindow);
    samples.push(await sample());
  }
  grown = {
    native: growth("native"),
    script: growth("script"),
    resident: growth("resident"),
    descriptors: growth("descriptors"),
  };
  if (round === rounds || leak(grown) === null) break;
}

/** Growth of a quantity over each window, per cycle, ascending. */
function growth(key: keyof Sample): number[] {
  const values = samples.map((one) => one[key]);
  const differences = values.slice(1).map((value, i) => (value - (values[i] ?? NaN)) / perWindow);
  return differences.sort((left, right) => left - right);
}

console.log(JSON.stringify(grown));
process.exit(0);
