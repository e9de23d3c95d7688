/**
 * What nobody should ask for: closed objects, foreign ones, wrong devices, and numbers that are no sizes. Each is a
 * typed error that says what was expected, and the driver is never asked.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import type { SymbolTable } from "../../bindings/abi.ts";
import { cuda as symbols } from "../../bindings/cuda.ts";
import { SimulatedDriver } from "../../src/public/sim.ts";
import type { DeviceAttribute, MemoryPool } from "../../src/public/cuda.ts";
import {
  Cuda,
  type CudaDevice,
  type CudaEvent,
  type CudaGraph,
  type CudaGraphExec,
  CudaStream,
  DeviceMemoryResource,
  HostMemoryResource,
  type Kernel,
  type KernelArg,
  ManagedMemoryResource,
  MemoryBuffer,
  PinnedMemoryResource,
  type Program,
  StridedMemoryView,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { addPtx } from "../gpu/graph_behaviours.ts";
import { check, fc } from "../support/property.ts";

/** One of everything that belongs to a device. */
interface Set {
  readonly cuda: Cuda;
  readonly device: CudaDevice;
  readonly stream: CudaStream;
  readonly event: CudaEvent;
  readonly memory: DeviceMemoryResource;
  /** The device's own. */
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
  kernel.launch(stream, 1, 1, [buffer, ["uint32", 1], ["uint32", 1]]); // its parameters are known now
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

/** Whatever may be wrong about a call is compared with the same call on what is right. */
interface Scene {
  readonly own: Set;
  /** On another device of the same Cuda. */
  readonly next: Set;
  /** Of another Cuda. */
  readonly foreign: Set;
  /** All closed. */
  readonly closed: Set;
  /** A stream that is closed, and there, because this buffer has it as its home. */
  readonly left: { readonly stream: CudaStream; readonly buffer: MemoryBuffer };
  readonly host: MemoryBuffer;
  readonly pinned: MemoryBuffer;
}

/** A call that is wrong, the class of its error, and what the message says. */
type Row = readonly [
  what: string,
  call: (scene: Scene) => unknown,
  error: typeof TypeError | typeof RangeError,
  says: RegExp,
];

const args: KernelArg[] = [0n, ["uint32", 1], ["uint32", 1]];

/** Anything that is no size. */
const noSizes = [-1, 0.5, Number.NaN, Infinity, -Infinity, 2 ** 53, 1e300] as const;

/** What is no number, though JavaScript would take some of it for one. */
const noNumbers = [10n, "10", null, [1]].map((value) => value as unknown as number);

const rows: readonly Row[] = [
  // closed objects
  ["record on a closed stream", ({ closed }) => closed.stream.record(), TypeError, /closed CudaStream/],
  ["record a closed event", ({ own, closed }) => own.stream.record(closed.event), TypeError, /closed CudaEvent/],
  ["wait on a closed stream", ({ own, closed }) => closed.stream.wait(own.event), TypeError, /closed CudaStream/],
  ["wait for a closed stream", ({ own, closed }) => own.stream.wait(closed.stream), TypeError, /closed CudaStream/],
  ["wait for a closed event", ({ own, closed }) => own.stream.wait(closed.event), TypeError, /closed CudaEvent/],
  ["synchronize a closed stream", ({ closed }) => closed.stream.synchronize(), TypeError, /closed CudaStream/],
  ["ask a closed stream", ({ closed }) => closed.stream.isDone, TypeError, /closed CudaStream/],
  [
    "ask a closed stream whether it is captured",
    ({ closed }) => closed.stream.isCapturing,
    TypeError,
    /closed CudaStream/,
  ],
  [
    "capture a closed stream",
    ({ closed }) => closed.stream.capture(() => {}),
    TypeError,
    /Cannot capture a closed CudaStream/,
  ],
  ["hold a closed stream", ({ closed }) => closed.stream.retain(), TypeError, /closed CudaStream/],
  ["synchronize a closed event", ({ closed }) => closed.event.synchronize(), TypeError, /closed CudaEvent/],
  ["ask a closed event", ({ closed }) => closed.event.isDone, TypeError, /closed CudaEvent/],
  [
    "time to a closed event",
    ({ own, closed }) => closed.event.millisecondsSince(own.event),
    TypeError,
    /closed CudaEvent/,
  ],
  [
    "time from a closed event",
    ({ own, closed }) => own.event.millisecondsSince(closed.event),
    TypeError,
    /closed CudaEvent/,
  ],
  ["a kernel of a closed program", ({ closed }) => closed.program.kernel("add"), TypeError, /closed Program/],
  [
    "launch a kernel of a closed program",
    ({ own, closed }) => closed.kernel.launch(own.stream, 1, 1, args),
    TypeError,
    /Program is closed/,
  ],
  [
    "launch on a closed stream",
    ({ own, closed }) => own.kernel.launch(closed.stream, 1, 1, args),
    TypeError,
    /closed CudaStream/,
  ],
  [
    "launch with a closed buffer",
    ({ own, closed }) => own.kernel.launch(own.stream, 1, 1, [closed.buffer, ["uint32", 1], ["uint32", 1]]),
    TypeError,
    /add, argument 0: .*closed MemoryBuffer/,
  ],
  ["nodes of a closed graph", ({ closed }) => closed.graph.nodes, TypeError, /closed CudaGraph/],
  ["edges of a closed graph", ({ closed }) => closed.graph.edges, TypeError, /closed CudaGraph/],
  ["draw a closed graph", ({ closed }) => closed.graph.toDot(), TypeError, /closed CudaGraph/],
  ["instantiate a closed graph", ({ closed }) => closed.graph.instantiate(), TypeError, /closed CudaGraph/],
  ["launch a closed graph", ({ own, closed }) => closed.exec.launch(own.stream), TypeError, /closed CudaGraphExec/],
  [
    "launch a graph on a closed stream",
    ({ own, closed }) => own.exec.launch(closed.stream),
    TypeError,
    /Cannot launch a graph on a closed CudaStream/,
  ],
  ["upload on a closed stream", ({ own, closed }) => own.exec.upload(closed.stream), TypeError, /closed CudaStream/],
  ["update to a closed graph", ({ own, closed }) => own.exec.update(closed.graph), TypeError, /closed CudaGraph/],
  [
    "allocate from a closed pool",
    ({ own, closed }) => closed.memory.allocate(8, { stream: own.stream }),
    TypeError,
    /closed memory pool/,
  ],
  [
    "allocate on a closed stream",
    ({ own, closed }) => own.memory.allocate(8, { stream: closed.stream }),
    TypeError,
    /closed CudaStream/,
  ],
  [
    "allocate pinned memory on a closed stream",
    ({ own, closed }) => new PinnedMemoryResource(own.device).allocate(8, { stream: closed.stream }),
    TypeError,
    /closed CudaStream/,
  ],
  ["use of a closed pool", ({ closed }) => closed.pool.use, TypeError, /closed memory pool/],
  ["trim a closed pool", ({ closed }) => closed.pool.trim(), TypeError, /closed memory pool/],
  ["peers of a closed pool", ({ closed }) => closed.memory.peerAccessibleBy.size, TypeError, /closed memory pool/],
  ["the address of a closed buffer", ({ closed }) => closed.buffer.ptr, TypeError, /closed MemoryBuffer of 64 bytes/],
  [
    "copy from a closed buffer",
    ({ own, closed }) => own.buffer.copyFrom(closed.buffer, { stream: own.stream }),
    TypeError,
    /Cannot copy from a closed MemoryBuffer/,
  ],
  [
    "copy to a closed buffer",
    ({ own, closed }) => own.buffer.copyTo(closed.buffer, { stream: own.stream }),
    TypeError,
    /Cannot copy into a closed MemoryBuffer/,
  ],
  [
    "copy on a closed stream",
    ({ own, closed, pinned }) => own.buffer.copyFrom(pinned, { stream: closed.stream }),
    TypeError,
    /closed CudaStream/,
  ],
  [
    "fill a closed buffer",
    ({ own, closed }) => closed.buffer.fill(1, { stream: own.stream }),
    TypeError,
    /Cannot fill a closed MemoryBuffer/,
  ],
  [
    "fill on a closed stream",
    ({ own, closed }) => own.buffer.fill(1, { stream: closed.stream }),
    TypeError,
    /closed CudaStream/,
  ],
  [
    "record on a stream that is left",
    ({ left }) => left.stream.record(),
    TypeError,
    /Cannot record an event in a closed/,
  ],
  [
    "record a given event on a stream that is left",
    ({ own, left }) => left.stream.record(own.event),
    TypeError,
    /Cannot record an event in a closed CudaStream/,
  ],
  [
    "wait on a stream that is left",
    ({ own, left }) => left.stream.wait(own.event),
    TypeError,
    /Cannot wait for anything in a closed CudaStream/,
  ],
  [
    "wait for a stream that is left",
    ({ own, left }) => own.stream.wait(left.stream),
    TypeError,
    /Cannot wait for a closed CudaStream/,
  ],
  ["the handle of a stream that is left", ({ left }) => left.stream.handle, TypeError, /closed CudaStream/],
  [
    "synchronize a stream that is left",
    ({ left }) => left.stream.synchronize(),
    TypeError,
    /Cannot synchronize a closed/,
  ],
  ["wait for all of a stream that is left", ({ left }) => left.stream.waitUntilReady(), TypeError, /closed CudaStream/],
  ["ask a stream that is left", ({ left }) => left.stream.isDone, TypeError, /Cannot ask a closed CudaStream/],
  [
    "copy on a stream that is left",
    ({ left, pinned }) => left.buffer.copyFrom(pinned, { stream: left.stream }),
    TypeError,
    /Cannot copy on a stream: expected an open one, got a closed CudaStream/,
  ],
  [
    "fill on a stream that is left",
    ({ left }) => left.buffer.fill(1, { stream: left.stream }),
    TypeError,
    /Cannot fill on a stream: expected an open one, got a closed CudaStream/,
  ],
  [
    "allocate on a stream that is left",
    ({ own, left }) => own.memory.allocate(8, { stream: left.stream }),
    TypeError,
    /Cannot allocate on a stream: expected an open one, got a closed CudaStream/,
  ],
  ["a home that is left", ({ own, left }) => own.buffer.setHomeStream(left.stream), TypeError, /closed CudaStream/],
  [
    "launch on a stream that is left",
    ({ own, left }) => own.kernel.launch(left.stream, 1, 1, args),
    TypeError,
    /Cannot launch a kernel on a closed CudaStream/,
  ],
  [
    "copy on what is no stream",
    ({ own, pinned }) => own.buffer.copyFrom(pinned, { stream: {} as CudaStream }),
    TypeError,
    /Cannot copy on a stream: expected a CudaStream, got object/,
  ],
  [
    "allocate on null",
    ({ own }) => new PinnedMemoryResource(own.device).allocate(8, { stream: null as unknown as CudaStream }),
    TypeError,
    /Cannot allocate on a stream: expected a CudaStream, got null/,
  ],
  [
    "a buffer of memory of a closed Cuda",
    ({ closed }) => MemoryBuffer.fromPointer(64n, 8, { device: closed.device }),
    TypeError,
    /its Cuda is closed/,
  ],
  [
    "use of the current pool of a closed Cuda",
    ({ closed }) => closed.current.use,
    TypeError,
    /pool of device 0: its Cuda is closed/,
  ],
  ["trim the current pool of a closed Cuda", ({ closed }) => closed.current.trim(), TypeError, /its Cuda is closed/],
  ["attributes of a pointer below 0", ({ own }) => own.cuda.pointerAttributes(-1n), RangeError, /expected 64 bits/],
  ["attributes beyond memory", ({ own }) => own.cuda.pointerAttributes(1n << 64n), RangeError, /expected 64 bits/],
  [
    "a schedule that there is not",
    () => Cuda.simulate({ schedule: "foo" as "random" }),
    TypeError,
    /latest, round-robin/,
  ],
  ["a seed that is none", () => Cuda.simulate({ seed: Number.NaN }), RangeError, /seed NaN: expected an integer/],
  ...[[0, 1.5], [0.5, 1], [-1, 2], [0, 9], [1, 8], [Number.NaN, 1]].map(([at = 0, bytes = 0]): Row => [
    `a part of an ArrayBuffer: ${bytes} from ${at}`,
    () => MemoryBuffer.fromArrayBuffer(new ArrayBuffer(8), at, bytes),
    RangeError,
    /expected integers, of 8 bytes/,
  ]),
  ["bytes of a closed buffer", ({ closed }) => closed.managed.bytes(), TypeError, /closed MemoryBuffer/],
  ["pin a closed buffer", ({ closed }) => closed.buffer.pinned(), TypeError, /closed MemoryBuffer/],
  [
    "a home for a closed buffer",
    ({ own, closed }) => closed.buffer.setHomeStream(own.stream),
    TypeError,
    /closed MemoryBuffer/,
  ],
  ["a closed home", ({ own, closed }) => own.buffer.setHomeStream(closed.stream), TypeError, /closed CudaStream/],
  ["close on a closed stream", ({ own, closed }) => own.buffer.close(closed.stream), TypeError, /closed CudaStream/],
  [
    "prefetch a closed buffer",
    ({ own, closed }) => new ManagedMemoryResource(own.device).prefetch(closed.managed, null, { stream: own.stream }),
    TypeError,
    /closed MemoryBuffer/,
  ],
  [
    "advise about a closed buffer",
    ({ own, closed }) => new ManagedMemoryResource(own.device).advise(closed.managed, "SET_READ_MOSTLY", null),
    TypeError,
    /closed MemoryBuffer/,
  ],
  ["a stream of a closed Cuda", ({ closed }) => closed.device.createStream(), TypeError, /its Cuda is closed/],
  ["an event of a closed Cuda", ({ closed }) => closed.device.createEvent(), TypeError, /its Cuda is closed/],
  ["synchronize a closed Cuda", ({ closed }) => closed.device.synchronize(), TypeError, /its Cuda is closed/],
  ["memory of a closed Cuda", ({ closed }) => closed.device.memoryInfo(), TypeError, /its Cuda is closed/],
  ["a program of a closed Cuda", ({ closed }) => closed.device.loadPtx(addPtx), TypeError, /its Cuda is closed/],
  [
    "pinned memory of a closed Cuda",
    ({ closed }) => new PinnedMemoryResource(closed.device).allocate(8),
    TypeError,
    /its Cuda is closed/,
  ],

  // what belongs to another Cuda, or another device
  [
    "record on a foreign stream",
    ({ own, foreign }) => foreign.stream.record(own.event),
    TypeError,
    /Cannot record .*another Cuda/,
  ],
  [
    "record on a stream of another device",
    ({ own, next }) => next.stream.record(own.event),
    TypeError,
    /Cannot record .*device/,
  ],
  [
    "wait for a foreign event",
    ({ own, foreign }) => own.stream.wait(foreign.event),
    TypeError,
    /Cannot wait .*another Cuda/,
  ],
  [
    "wait for a foreign stream",
    ({ own, foreign }) => own.stream.wait(foreign.stream),
    TypeError,
    /Cannot wait .*another Cuda/,
  ],
  [
    "time since a foreign event",
    ({ own, foreign }) => own.event.millisecondsSince(foreign.event),
    TypeError,
    /Cannot measure .*another Cuda/,
  ],
  [
    "time since an event of another device",
    ({ own, next }) => own.event.millisecondsSince(next.event),
    TypeError,
    /Cannot measure .*device/,
  ],
  [
    "peer of a foreign device",
    ({ own, foreign }) => own.device.canAccessPeer(foreign.device),
    TypeError,
    /another Cuda/,
  ],
  [
    "access for a foreign device",
    ({ own, foreign }) => own.memory.peerAccessibleBy.add(foreign.device),
    RangeError,
    /a device of the same Cuda/,
  ],
  ["access for device 9", ({ own }) => own.memory.peerAccessibleBy.addAll([9]), RangeError, /device 9/],
  [
    "allocate on a foreign stream",
    ({ own, foreign }) => own.memory.allocate(8, { stream: foreign.stream }),
    TypeError,
    /Cannot allocate .*another Cuda/,
  ],
  [
    "allocate pinned memory on a foreign stream",
    ({ own, foreign }) => new PinnedMemoryResource(own.device).allocate(8, { stream: foreign.stream }),
    TypeError,
    /Cannot allocate .*another Cuda/,
  ],
  [
    "copy a foreign buffer",
    ({ own, foreign }) => own.buffer.copyFrom(foreign.buffer, { stream: own.stream }),
    TypeError,
    /Cannot copy .*another Cuda/,
  ],
  [
    "copy on a foreign stream",
    ({ own, foreign, pinned }) => own.buffer.copyFrom(pinned, { stream: foreign.stream }),
    TypeError,
    /Cannot copy .*another Cuda/,
  ],
  [
    "fill on a foreign stream",
    ({ own, foreign }) => own.buffer.fill(1, { stream: foreign.stream }),
    TypeError,
    /Cannot fill .*another Cuda/,
  ],
  ["a foreign home", ({ own, foreign }) => own.buffer.setHomeStream(foreign.stream), TypeError, /another Cuda/],
  ["close on a foreign stream", ({ own, foreign }) => own.buffer.close(foreign.stream), TypeError, /another Cuda/],
  [
    "launch on a foreign stream",
    ({ own, foreign }) => own.kernel.launch(foreign.stream, 1, 1, args),
    TypeError,
    /Cannot launch add .*another device/,
  ],
  [
    "launch on a stream of another device",
    ({ own, next }) => own.kernel.launch(next.stream, 1, 1, args),
    TypeError,
    /Cannot launch add .*another device/,
  ],
  [
    "launch with a foreign buffer",
    ({ own, foreign }) => own.kernel.launch(own.stream, 1, 1, [foreign.buffer, ["uint32", 1], ["uint32", 1]]),
    TypeError,
    /add, argument 0: .*another one/,
  ],
  [
    "launch with host memory",
    ({ own, host }) => own.kernel.launch(own.stream, 1, 1, [host, ["uint32", 1], ["uint32", 1]]),
    TypeError,
    /add, argument 0: .*host memory/,
  ],
  [
    "launch with a view of host memory",
    ({ own }) =>
      own.kernel.launch(own.stream, 1, 1, [StridedMemoryView.fromTypedArray(new Float32Array(4)), ["uint32", 1], [
        "uint32",
        1,
      ]]),
    TypeError,
    /add, argument 0: .*host memory/,
  ],
  [
    "launch a graph on a foreign stream",
    ({ own, foreign }) => own.exec.launch(foreign.stream),
    TypeError,
    /Cannot .*another Cuda/,
  ],
  [
    "update to a foreign graph",
    ({ own, foreign }) => own.exec.update(foreign.graph),
    TypeError,
    /Cannot update .*another Cuda/,
  ],
  [
    "prefetch a foreign buffer",
    ({ own, foreign }) => new ManagedMemoryResource(own.device).prefetch(foreign.managed, null, { stream: own.stream }),
    TypeError,
    /Cannot prefetch .*another Cuda/,
  ],
  [
    "prefetch on a foreign stream",
    ({ own, foreign }) => new ManagedMemoryResource(own.device).prefetch(own.managed, null, { stream: foreign.stream }),
    TypeError,
    /Cannot prefetch .*another Cuda/,
  ],
  [
    "prefetch to a foreign device",
    ({ own, foreign }) =>
      new ManagedMemoryResource(own.device).prefetch(own.managed, foreign.device, { stream: own.stream }),
    TypeError,
    /Cannot prefetch .*another Cuda/,
  ],
  [
    "prefetch what is not managed",
    ({ own, pinned }) => new ManagedMemoryResource(own.device).prefetch(pinned, null, { stream: own.stream }),
    TypeError,
    /managed memory/,
  ],
  [
    "advise about a foreign buffer",
    ({ own, foreign }) => new ManagedMemoryResource(own.device).advise(foreign.managed, "SET_READ_MOSTLY", null),
    TypeError,
    /another Cuda/,
  ],
  [
    "advise about what is not managed",
    ({ own, pinned }) => new ManagedMemoryResource(own.device).advise(pinned, "SET_READ_MOSTLY", null),
    TypeError,
    /managed memory/,
  ],

  // memory that is somewhere else
  [
    "copy device memory without a stream",
    ({ own, pinned }) => own.buffer.copyFrom(pinned),
    TypeError,
    /pass \{ stream \}/,
  ],
  ["fill device memory without a stream", ({ own }) => own.buffer.fill(1), TypeError, /pass \{ stream \}/],
  ["bytes of device memory", ({ own }) => own.buffer.bytes(), TypeError, /copyTo\(\)/],
  [
    "a copy of another size",
    ({ own, host }) => own.buffer.copyFrom(host, { stream: own.stream }),
    RangeError,
    /equal sizes/,
  ],

  // words
  [
    "an attribute that is none",
    ({ own }) => own.device.attribute("FROBS" as DeviceAttribute),
    TypeError,
    /attribute FROBS/,
  ],
  [
    "an attribute of kernels that is none",
    ({ own }) => own.kernel.attribute("FROBS" as "NUM_REGS"),
    TypeError,
    /attribute FROBS/,
  ],
  [
    "an advice that is none",
    ({ own }) => new ManagedMemoryResource(own.device).advise(own.managed, "FROB" as "SET_READ_MOSTLY", null),
    TypeError,
    /advice FROB/,
  ],
  [
    "a capture mode that is none",
    ({ own }) => own.stream.capture(() => {}, { mode: "strict" as "global" }),
    TypeError,
    /mode strict/,
  ],
  ["a kernel's name with NUL", ({ own }) => own.program.kernel("a\0d"), TypeError, /contains NUL/],
  ["PTX with NUL", ({ own }) => own.device.loadPtx(".version\0"), TypeError, /contains NUL/],
  [
    "a dtype that is none",
    ({ own }) => own.kernel.launch(own.stream, 1, 1, [0n, ["frob", 1], ["uint32", 1]]),
    TypeError,
    /add, argument 1: /,
  ],
  [
    "an argument of JavaScript",
    ({ own }) =>
      own.kernel.launch(own.stream, 1, 1, [new Float32Array(4) as unknown as KernelArg, ["uint32", 1], ["uint32", 1]]),
    TypeError,
    /copy it to the device/,
  ],
  [
    "an argument that is a number",
    ({ own }) => own.kernel.launch(own.stream, 1, 1, [4 as unknown as KernelArg, ["uint32", 1], ["uint32", 1]]),
    TypeError,
    /argument 0: expected .*got number/,
  ],
  [
    "an argument of another size",
    ({ own }) => own.kernel.launch(own.stream, 1, 1, [0n, ["uint64", 1], ["uint32", 1]]),
    TypeError,
    /add, argument 1: expected 4 bytes.*got 8/,
  ],
  [
    "too few arguments",
    ({ own }) => own.kernel.launch(own.stream, 1, 1, [0n]),
    TypeError,
    /Cannot launch add: expected 3 arguments.*got 1/,
  ],
  ["too many arguments", ({ own }) => own.kernel.launch(own.stream, 1, 1, [...args, 0n]), TypeError, /got 4/],
  [
    "an argument that does not fit its type",
    ({ own }) => own.kernel.launch(own.stream, 1, 1, [0n, ["uint32", 2 ** 32], ["uint32", 1]]),
    RangeError,
    /add, argument 1: /,
  ],
  [
    "an argument beyond 64 bits",
    ({ own }) => own.kernel.launch(own.stream, 1, 1, [1n << 64n, ["uint32", 1], ["uint32", 1]]),
    RangeError,
    /add, argument 0: /,
  ],

  // what is no number
  ...noNumbers.flatMap((size): Row[] => {
    const what = JSON.stringify(size, (_, value) => typeof value === "bigint" ? `${value}n` : value);
    const says = typeof size === "bigint"
      ? /Cannot .* 10n bytes.*: expected a safe integer of at least 0, got a bigint: Number\(10n\) is one/
      : /Cannot .* bytes.*: expected a safe integer of at least 0, got/;
    const view = { shape: [1], dtype: "uint8", offset: size };
    return [
      [`allocate ${what}`, ({ own }) => own.memory.allocate(size, { stream: own.stream }), TypeError, says],
      [`allocate ${what} on the host`, () => new HostMemoryResource().allocate(size), TypeError, says],
      [`allocate ${what} pinned`, ({ own }) => new PinnedMemoryResource(own.device).allocate(size), TypeError, says],
      [`a buffer of ${what}`, () => MemoryBuffer.fromPointer(64n, size), TypeError, says],
      [`a pool of ${what}`, ({ own }) => new DeviceMemoryResource(own.device, { maxSize: size }), TypeError, says],
      [`trim to ${what}`, ({ own }) => own.pool.trim(size), TypeError, says],
      [`a view from ${what} on`, ({ own }) => StridedMemoryView.fromBuffer(own.buffer, view), TypeError, says],
    ];
  }),
  ...[10n, "10", {}, { x: 4 }, [], [4, 1n]].map((extents): Row => [
    `launch ${typeof extents}`,
    ({ own }) => own.kernel.launch(own.stream, extents as unknown as number, 1, args),
    RangeError,
    /Cannot launch a grid of .*: expected positive integers/,
  ]),

  // numbers
  ...noSizes.flatMap((size): Row[] => [
    [
      `allocate ${size}`,
      ({ own }) => own.memory.allocate(size, { stream: own.stream }),
      RangeError,
      /Cannot allocate .*safe integer/,
    ],
    [
      `allocate ${size} pinned`,
      ({ own }) => new PinnedMemoryResource(own.device).allocate(size),
      RangeError,
      /Cannot allocate .*safe integer/,
    ],
    [
      `allocate ${size} managed`,
      ({ own }) => new ManagedMemoryResource(own.device).allocate(size),
      RangeError,
      /Cannot allocate .*safe integer/,
    ],
    [
      `allocate ${size} synchronously`,
      ({ own }) => new SynchronousMemoryResource(own.device).allocate(size),
      RangeError,
      /Cannot allocate .*safe integer/,
    ],
    [
      `allocate ${size} on the host`,
      () => new HostMemoryResource().allocate(size),
      RangeError,
      /Cannot allocate .*safe integer/,
    ],
    [
      `a buffer of ${size}`,
      () => MemoryBuffer.fromPointer(64n, size),
      RangeError,
      /Cannot make a buffer .*safe integer/,
    ],
    [
      `a pool of ${size}`,
      ({ own }) => new DeviceMemoryResource(own.device, { maxSize: size }),
      RangeError,
      /Cannot limit a pool .*safe integer/,
    ],
    [
      `a pool that keeps ${size}`,
      ({ own }) => new DeviceMemoryResource(own.device, { releaseThreshold: size }),
      RangeError,
      /Cannot limit a pool .*safe integer/,
    ],
    [`trim to ${size}`, ({ own }) => own.pool.trim(size), RangeError, /Cannot trim .*safe integer/],
    [`device ${size}`, ({ own }) => own.cuda.device(size), RangeError, /Cannot use device/],
    [
      `a grid of ${size}`,
      ({ own }) => own.kernel.launch(own.stream, size, 1, args),
      RangeError,
      /Cannot launch a grid/,
    ],
    [
      `a block of ${size}`,
      ({ own }) => own.kernel.launch(own.stream, 1, [1, 1, size], args),
      RangeError,
      /Cannot launch a block/,
    ],
    [
      `${size} bytes of shared memory`,
      ({ own }) => own.kernel.launch(own.stream, 1, 1, args, { sharedBytes: size }),
      RangeError,
      /Cannot launch add .*shared memory/,
    ],
    [
      `occupancy with ${size} bytes`,
      ({ own }) => own.kernel.occupancy({ sharedBytes: size }),
      RangeError,
      /shared memory/,
    ],
    [
      `fill with ${size}`,
      ({ own }) => own.buffer.fill(size, { stream: own.stream, width: 4 }),
      RangeError,
      /Cannot fill with/,
    ],
    [
      `fill in widths of ${size}`,
      ({ own }) => own.buffer.fill(1, { stream: own.stream, width: size as 1 }),
      RangeError,
      /Cannot fill .*1, 2 or 4/,
    ],
  ]),
  [
    "fill in widths of 3",
    ({ own }) => own.buffer.fill(1, { stream: own.stream, width: 3 as 1 }),
    RangeError,
    /Cannot fill .*1, 2 or 4/,
  ],
  ["fill a byte with 256", ({ own }) => own.buffer.fill(256, { stream: own.stream }), RangeError, /from 0 to 255/],
  [
    "fill what is no multiple",
    ({ own }) => MemoryBuffer.fromPointer(64n, 6, { device: own.device }).fill(1, { stream: own.stream, width: 4 }),
    RangeError,
    /multiple/,
  ],
  [
    "fill at an odd address",
    ({ own }) => MemoryBuffer.fromPointer(66n, 8, { device: own.device }).fill(1, { stream: own.stream, width: 4 }),
    RangeError,
    /address/,
  ],
  ["a buffer at a negative address", () => MemoryBuffer.fromPointer(-8n, 8), RangeError, /64-bit address/],
  ["a buffer beyond the end", () => MemoryBuffer.fromPointer((1n << 64n) - 4n, 8), RangeError, /64-bit address/],
  ["bytes at a null pointer", () => MemoryBuffer.fromPointer(0n, 8), RangeError, /64-bit address/],
  ["a stream with a negative handle", ({ own }) => CudaStream.fromHandle(own.device, -1n), RangeError, /handle/],
  [
    "a stream with a handle beyond 64 bits",
    ({ own }) => CudaStream.fromHandle(own.device, 1n << 64n),
    RangeError,
    /handle/,
  ],
];

function sceneOf(): { scene: Scene; calls: () => number; done: () => void } {
  const cuda = Cuda.simulate({ devices: 2 });
  const other = Cuda.simulate();
  const gone = Cuda.simulate();
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
  const drivers = [cuda, other, gone].map(({ driver }) => SimulatedDriver.of(driver));
  const calls = () =>
    drivers.reduce((sum, one) => sum + names.reduce((all, name) => all + (one?.calls(name) ?? 0), 0), 0);
  const done = () => {
    for (const one of [own, next, foreign]) close(one);
    for (const one of [host, pinned, left.buffer]) one.close();
    for (const one of [cuda, other]) one.close();
  };
  return { scene: { own, next, foreign, closed, left, host, pinned }, calls, done };
}

test("every bad input is a typed error that says what was expected, before the driver is asked", () => {
  const { scene, calls, done } = sceneOf();
  const wrong: string[] = [];
  for (const [what, call, kind, says] of rows) {
    const before = calls();
    let error: unknown;
    try {
      call(scene);
    } catch (thrown) {
      error = thrown;
    }
    const seen = `${what}: ${String(error)}`;
    if (!(error instanceof kind) || error.constructor !== kind) wrong.push(`${seen} is no ${kind.name}`);
    else if (!says.test(error.message)) wrong.push(`${seen} does not say ${says}`);
    else if (calls() !== before) wrong.push(`${seen}, after ${calls() - before} calls of the driver`);
  }
  assertEquals(wrong, []);
  done();
});

test("no number that is no size ever reaches the driver, and every size that does comes back", () => {
  const { scene: { own, pinned }, calls, done } = sceneOf();
  const any = fc.oneof(fc.double(), fc.integer(), fc.constantFrom(...noSizes), fc.double({ min: 2 ** 53 }));
  check(
    fc.property(any, fc.nat(4), (size, at) => {
      const isSize = Number.isSafeInteger(size) && size >= 0;
      const acts: readonly (() => unknown)[] = [
        () => own.memory.allocate(size, { stream: own.stream }).close(),
        () => own.pool.trim(size),
        () => pinned.fill(size, { width: 4 }),
        () =>
          own.kernel.launch(own.stream, isSize ? Math.min(size, 4) : size, 1, [own.buffer, ["uint32", 1], [
            "uint32",
            1,
          ]]),
        () => own.cuda.device(size),
      ];
      const before = calls();
      try {
        acts[at]?.();
      } catch (error) {
        assert(error instanceof Error);
        if (error instanceof RangeError) assertEquals(calls(), before, error.message);
        else assert(isSize, `${error.name}: ${error.message}`); // out of memory, or too large a grid
        return;
      }
      assert(isSize, `${size} was taken for a size`);
    }),
    2000,
  );
  done();
});
