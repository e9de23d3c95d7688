/**
 * Makes a kernel write to an unmapped address, and prints what every part of the package does after that. In a separate
 * process: on a GPU no other work is possible in it any more. The argument is `real` or `simulated`.
 */
import process from "node:process";
import { setTimeout } from "node:timers/promises";
import {
  Cuda,
  CudaError,
  DeviceMemoryResource,
  HostMemoryResource,
  ManagedMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
  StridedMemoryView,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { copyStaged } from "../../src/memory/staging.ts";
import { drainFrees } from "../../src/order/deferred_free.ts";
import { collectGarbage } from "../support/collect.ts";
import { addPtx } from "./graph_behaviours.ts";

/** The outcome of a call. */
interface Outcome {
  readonly code?: string;
  readonly call?: string;
  readonly isSticky?: boolean;
  readonly cause?: string;
  readonly message?: string;
}

function outcomeOf(error: unknown): Outcome {
  if (!(error instanceof CudaError)) return { message: String(error) };
  const { codeName, call, isSticky, message, cause } = error;
  return { code: codeName, call, isSticky, message, cause: cause instanceof Error ? cause.name : "none" };
}

const results: Record<string, Outcome | string> = {};
process.on("unhandledRejection", (error) => results["unhandled rejection"] = outcomeOf(error));
process.on("uncaughtException", (error) => results["uncaught exception"] = outcomeOf(error));

async function attempt(what: string, act: () => unknown): Promise<void> {
  try {
    await act();
    results[what] = "ok";
  } catch (error) {
    results[what] = outcomeOf(error);
  }
}

const cuda = process.argv[2] === "real" ? Cuda.open() : Cuda.simulate({ schedule: "latest" });
const device = cuda.device(0);
const stream = device.createStream();
const side = device.createStream();
const event = device.createEvent();
const pools = { current: new DeviceMemoryResource(device), own: new DeviceMemoryResource(device, {}) };
const buffers = {
  "of the current pool": pools.current.allocate(64, { stream }),
  "of a pool of its own": pools.own.allocate(64, { stream }),
  "of pinned memory": new PinnedMemoryResource(device).allocate(64, { stream }),
  "of managed memory": new ManagedMemoryResource(device).allocate(64, { stream }),
  "of synchronous memory": new SynchronousMemoryResource(device).allocate(64, { stream }),
};
// Collected later, by a finaliser that must not throw.
for (let i = 0; i < 10; i++) pools.current.allocate(64, { stream });
const pinned = new PinnedMemoryResource(device).allocate(64);
const program = device.loadPtx(addPtx);
const kernel = program.kernel("add");
const graph = stream.capture(() => buffers["of the current pool"].fill(1, { stream }));
const exec = graph.instantiate();
// What is kept until the device is closed: a kernel that copies, and threads that stage large copies.
const [square, turned] = [1, 2].map(() => pools.current.allocate(64 * 64, { stream })) as [MemoryBuffer, MemoryBuffer];
const layout = { shape: [64, 64], dtype: "uint8" } as const;
StridedMemoryView.fromBuffer(turned, layout).copyFrom(StridedMemoryView.fromBuffer(square, layout).permuted([1, 0]));
const host = new HostMemoryResource().allocate(square.size);
const plan = { threads: 1, slots: 1, chunk: 4096, piece: 4096 };
const run = { to: square.ptr, from: host.ptr, bytes: host.size, direction: "HtoD" as const, isPageable: true };
copyStaged({ ...run, isNew: false, peers: null }, stream, plan);
stream.record(event);
side.wait(stream);
device.synchronize();
exec.launch(side);
device.synchronize();

kernel.launch(stream, 1, 1, [4096n, ["uint32", 1], ["uint32", 1]]);
const waiting = Promise.race([
  stream.completed().then(() => "ok" as const, outcomeOf),
  setTimeout(5000, "it hangs" as const, { ref: false }),
]);
results["completed(), called before the error is known"] = await waiting;
await attempt("the first wait", () => stream.synchronize());
await attempt("synchronize()", () => side.synchronize());
await attempt("completed()", () => side.completed());
await attempt("event.completed()", () => event.completed());
await attempt("isDone", () => side.isDone);
await attempt("createStream()", () => device.createStream());
await attempt("allocate", () => pools.current.allocate(64, { stream }));
await attempt("launch", () => kernel.launch(side, 1, 1, [pinned, ["uint32", 1], ["uint32", 1]]));
await attempt("launch a graph", () => exec.launch(side));
await attempt("what needs no context: name", () => device.name.length > 0);
for (const [what, buffer] of Object.entries(buffers)) await attempt(`closing a buffer ${what}`, () => buffer.close());
await attempt("closing an executable graph", () => exec.close());
await attempt("closing a graph", () => graph.close());
await attempt("closing a program", () => program.close());
await attempt("closing an event", () => event.close());
await attempt("closing a pool", () => pools.own.close());
await attempt("closing a stream", () => side.close());
await attempt("collecting the rest", async () => {
  for (let i = 0; i < 5; i++) {
    await collectGarbage();
    await setTimeout(5);
  }
});
await attempt("draining", () => drainFrees());
turned.close();
square.close();
await attempt("closing Cuda", () => cuda.close());
await attempt("closing the home stream", () => stream.close());
await setTimeout(250); // longer than the interval at which an awaited stream is checked
console.log(JSON.stringify(results));
process.exit(0); // the pipe of a wait may still be open: the driver, which should have closed it, no longer works
