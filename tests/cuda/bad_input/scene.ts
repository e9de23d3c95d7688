/**
 * The objects that bad input is tried on: one of everything, of this device, of others, and closed.
 *
 * @module
 */
import type { SymbolTable } from "../../../bindings/abi.ts";
import { cuda as symbols } from "../../../bindings/cuda.ts";
import { SimulatedDriver } from "../../../src/public/sim.ts";
import type { MemoryPool } from "../../../src/public/cuda.ts";
import {
  Cuda,
  type CudaDevice,
  type CudaEvent,
  type CudaStream,
  DeviceMemoryResource,
  HostMemoryResource,
  type Kernel,
  type KernelArg,
  ManagedMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
  type Program,
} from "../../../mod.ts";
import type { CudaGraph, CudaGraphExec } from "../../../src/public/cuda.ts";
import { addPtx } from "../../gpu/graph_behaviours.ts";

/** One of everything that belongs to a device. */
interface Set {
  readonly cuda: Cuda;
  readonly device: CudaDevice;
  readonly stream: CudaStream;
  readonly event: CudaEvent;
  readonly memory: DeviceMemoryResource;
  /** The device's current pool. */
  readonly current: MemoryPool;
  readonly pool: MemoryPool;
  readonly buffer: MemoryBuffer;
  readonly managed: MemoryBuffer;
  readonly program: Program;
  readonly kernel: Kernel;
  readonly graph: CudaGraph;
  readonly exec: CudaGraphExec;
}

function setOf(cuda: Cuda, device: CudaDevice): Set {
  const stream = device.createStream();
  const memory = new DeviceMemoryResource(device, {});
  const buffer = memory.allocate(64, { stream });
  const managed = new ManagedMemoryResource(device).allocate(64, { stream });
  const program = device.loadPtx(addPtx);
  const kernel = program.kernel("add");
  kernel.launch(stream, 1, 1, [buffer, ["uint32", 1], ["uint32", 1]]); // now its parameters are known
  const graph = stream.capture(() => buffer.fill(1, { stream }));
  const exec = graph.instantiate();
  const event = device.createEvent({ timing: true });
  stream.record(event);
  stream.synchronize();
  const { pool: current } = device.memory;
  return {
    cuda,
    device,
    stream,
    event,
    memory,
    current,
    pool: memory.pool,
    buffer,
    managed,
    program,
    kernel,
    graph,
    exec,
  };
}

function close(set: Set): void {
  for (const one of [set.exec, set.graph, set.program, set.buffer, set.managed, set.memory, set.event]) one.close();
  set.stream.close();
}

/** Everything that a call under test may use, valid or not. */
export interface Scene {
  readonly own: Set;
  /** On another device of the same Cuda. */
  readonly next: Set;
  /** Of another Cuda. */
  readonly foreign: Set;
  /** All closed. */
  readonly closed: Set;
  /** A closed stream that still exists, because it is the buffer's home. */
  readonly left: { readonly stream: CudaStream; readonly buffer: MemoryBuffer };
  /** Memory that is open, of a Cuda that is closed. */
  readonly outlived: MemoryBuffer;
  readonly host: MemoryBuffer;
  readonly pinned: MemoryBuffer;
}

/** An invalid call, the class of its error, and a pattern of its message. */
export type Row = readonly [
  what: string,
  call: (scene: Scene) => unknown,
  error: typeof TypeError | typeof RangeError,
  says: RegExp,
];

/** Valid arguments for the kernel. */
export const args: KernelArg[] = [0n, ["uint32", 1], ["uint32", 1]];

/** Numbers that are not sizes. */
export const noSizes = [-1, 0.5, Number.NaN, Infinity, -Infinity, 2 ** 53, 1e300] as const;

/** Values that are not numbers, though JavaScript would convert some of them. */
export const noNumbers = [10n, "10", null, [1]].map((value) => value as unknown as number);

/** Creates the scene, with a counter of driver calls and its teardown. */
export function sceneOf(): { scene: Scene; calls: () => number; done: () => void } {
  const cuda = Cuda.simulate({ devices: 2 });
  const other = Cuda.simulate();
  const gone = Cuda.simulate();
  const shut = Cuda.simulate();
  const outlived = shut.device(0).memory.allocate(64);
  shut.close();
  const own = setOf(cuda, cuda.device(0));
  const next = setOf(cuda, cuda.device(1));
  const foreign = setOf(other, other.device(0));
  const closed = setOf(gone, gone.device(0));
  close(closed);
  gone.close();
  const stream = cuda.device(0).createStream();
  const left = { stream, buffer: own.memory.allocate(64, { stream }) };
  stream.close();
  const host = new HostMemoryResource().allocate(63);
  const pinned = new PinnedMemoryResource(cuda.device(0)).allocate(64);
  const names = Object.values<SymbolTable[string]>(symbols).flatMap((group) => Object.keys(group));
  const drivers = [cuda, other, gone, shut].map(({ driver }) => SimulatedDriver.of(driver));
  const calls = () =>
    drivers.reduce((sum, one) => sum + names.reduce((all, name) => all + (one?.calls(name) ?? 0), 0), 0);
  const done = () => {
    for (const one of [own, next, foreign]) close(one);
    for (const one of [host, pinned, left.buffer, outlived]) one.close();
    for (const one of [cuda, other]) one.close();
  };
  return { scene: { own, next, foreign, closed, left, outlived, host, pinned }, calls, done };
}
