/**
 * Arguments of the wrong kind: a device or options for a stream, a number for an event, nothing at all.
 *
 * @module
 */
import {
  Cuda,
  DeviceMemoryResource,
  HostMemoryResource,
  MemoryBuffer,
  PinnedMemoryResource,
  StridedMemoryView,
} from "../../../mod.ts";
import { checkDriver } from "../../../src/public/checker.ts";
import { args, type Row, type Scene } from "./scene.ts";

/** An argument from an untyped program. */
const any = (value: unknown) => value as never;

/** A launch with arbitrary arguments. */
const launch = (...given: readonly unknown[]) => ({ own }: Scene) => own.kernel.launch(...given as never as Launch);
type Launch = Parameters<Scene["own"]["kernel"]["launch"]>;

const allocation = { ptr: 4096n, size: 8, device: null, stream: null, free: () => {} };

const launches = /Cannot launch add by launch\(stream, grid, block, args\): expected /;

/** Each call with its error. */
export const kindsRows: readonly Row[] = [
  ["launch nothing", launch(), TypeError, /expected a CudaStream, got undefined/],
  ["launch an object of options", launch({ grid: 1, block: 1 }), TypeError, launches],
  ["launch without a stream", launch(1, 1, args), TypeError, /a CudaStream, got 1$/],
  [
    "launch on a device",
    ({ own }) => own.kernel.launch(any(own.device), 1, 1, args),
    TypeError,
    /expected a CudaStream, got an instance of CudaDevice: device.createStream\(\)/,
  ],
  [
    "launch without arguments",
    ({ own }) => own.kernel.launch(own.stream, 1, 1, any(undefined)),
    TypeError,
    /by launch\(.*\): expected an array of arguments, one for each of 3 parameters, got undefined/,
  ],
  [
    "launch with a buffer that is not in an array",
    ({ own }) => own.kernel.launch(own.stream, 1, 1, any(own.buffer)),
    TypeError,
    /expected an array of arguments.*, got an instance of MemoryBuffer/,
  ],
  ...[5, "0", null, {}].flatMap((one): Row[] => [
    [`a peer that is ${one}`, ({ own }) => own.device.canAccessPeer(any(one)), TypeError, /expected a device/],
    [
      `the path to ${one}`,
      ({ own }) => own.device.peerAttribute("PERFORMANCE_RANK", any(one)),
      TypeError,
      /expected a device/,
    ],
    [`pinned memory of ${one}`, () => new PinnedMemoryResource(any(one)), TypeError, /expected a CudaDevice/],
    [`a pool of ${one}`, () => new DeviceMemoryResource(any(one)), TypeError, /expected a CudaDevice/],
    [
      `memory of ${one}`,
      () => MemoryBuffer.fromPointer(4096n, 8, { device: any(one === null ? 7 : one), owner: {} }),
      TypeError,
      /Cannot make a buffer: expected a CudaDevice/,
    ],
    [
      `memory at ${one}`,
      () => MemoryBuffer.fromPointer(any(one), 8, { owner: {} }),
      RangeError,
      /expected a 64-bit address as a bigint/,
    ],
    [`what is at ${one}`, ({ own }) => own.cuda.pointerAttributes(any(one)), RangeError, /expected 64 bits/],
    [`a driver that is ${one}`, () => Cuda.over(any(one)), TypeError, /as a driver: expected the functions of libcuda/],
    [`a driver to check that is ${one}`, () => checkDriver(any(one)), TypeError, /as a driver: expected the functions/],
    [
      `${one} as the home of host memory`,
      () => {
        using buffer = new HostMemoryResource().allocate(8);
        buffer.setHomeStream(any(one));
      },
      TypeError,
      /expected a CudaStream/,
    ],
  ]),
  ...["0", "length", "at", 0.5, null].map((one): Row => [
    `the device ${one}`,
    ({ own }) => own.cuda.device(any(one)),
    RangeError,
    /Cannot use device .*: expected 0 to/,
  ]),
  ...Object.entries({
    driverVersion: [NaN, -5, "13"],
    print: [5],
    canAccessPeer: [true],
    freesWait: ["no"],
    poolsSupported: [1],
  }).flatMap(([name, values]) =>
    values.map((value): Row => [
      `a simulator with ${name} ${value}`,
      () => Cuda.simulate({ [name]: any(value) }),
      name === "driverVersion" && typeof value === "number" ? RangeError : TypeError,
      /Cannot simulate \w+: .*: expected|Expected \w+ to be true or false, got/,
    ])
  ),
  ...Object.entries({ kernels: "all", onReport: 5, leaks: "no" }).map(([name, value]): Row => [
    `a checker with ${name} ${value}`,
    () => Cuda.simulate({ check: { [name]: any(value) } }),
    TypeError,
    new RegExp(`Expected ${name} to be`),
  ]),
  ...[null, 5, {}].flatMap((one): Row[] =>
    (["buffer", "managed"] as const).map((kind): Row => [
      `close ${kind} on ${one}`,
      ({ own }) => own[kind].close(any(one)),
      TypeError,
      /Cannot give a buffer a home stream: expected a CudaStream, got /,
    ]).concat([
      [`close host memory on ${one}`, ({ host }) => host.close(any(one)), TypeError, /expected a CudaStream, got /],
      [`close pinned memory on ${one}`, ({ pinned }) => pinned.close(any(one)), TypeError, /a CudaStream, got /],
    ])
  ),
  ...[undefined, null, 5, {}].flatMap((one): Row[] => [
    [
      `work in a context: ${one}`,
      ({ own }) => own.device.withContext(any(one)),
      TypeError,
      /^Cannot call .* in the context of device 0: expected a function$/,
    ],
    [
      `for each peer ${one}`,
      ({ own }) => own.memory.peerAccessibleBy.forEach(any(one)),
      TypeError,
      /^Cannot call .* for each device: expected a function$/,
    ],
    [`an allocation: ${one}`, () => MemoryBuffer.fromAllocation(any(one)), TypeError, /^Cannot make a buffer/],
  ]),
  ...Object.entries({
    ptr: [undefined, 4096, 0n],
    size: [undefined, 8n, -1],
    device: [undefined, 0],
    stream: [undefined, 0],
    free: [undefined, null],
  }).flatMap(([name, values]) =>
    values.map((value): Row => [
      `an allocation with ${name} ${value}`,
      () => MemoryBuffer.fromAllocation({ ...allocation, [name]: any(value) }),
      name === "ptr" || value === -1 ? RangeError : TypeError,
      {
        ptr: /expected a 64-bit address as a bigint/,
        size: /expected a safe integer of at least 0/,
        device: /Cannot make a buffer.*: expected a CudaDevice, got /,
        stream: /expected stream to be a CudaStream, or null if it has no home stream, got /,
        free: /expected free to be a function/,
      }[name] ?? /never/,
    ])
  ),
  [
    "options that are null",
    ({ own }) => own.device.createStream(any(null)),
    TypeError,
    /an object of options.*got null/,
  ],
  ["a place that is null", () => StridedMemoryView.fromDlpack({}, any(null)), TypeError, /object of options.*got null/],
  ["launch no grid", ({ own }) => own.kernel.launch(own.stream, any(null), 1, args), RangeError, /a grid of null/],
  ...[5, null, undefined, {}].flatMap((one): Row[] => [
    [
      `wait for ${one}`,
      ({ own }) => own.stream.wait(any(one)),
      TypeError,
      /Cannot wait: expected a CudaEvent or a CudaStream, got /,
    ],
    [
      `wait on the default stream for ${one}`,
      ({ own }) => own.device.defaultStream.wait(any(one)),
      TypeError,
      /Cannot wait: expected a CudaEvent or a CudaStream, got /,
    ],
    [
      `time since ${one}`,
      ({ own }) => own.event.millisecondsSince(any(one)),
      TypeError,
      /Cannot measure time: expected the CudaEvent/,
    ],
    ["launch a graph on it", ({ own }) => own.exec.launch(any(one)), TypeError, /a graph: expected a CudaStream, got /],
    ["upload a graph on it", ({ own }) => own.exec.upload(any(one)), TypeError, /a graph: expected a CudaStream, got /],
    [`capture ${one}`, ({ own }) => own.stream.capture(any(one)), TypeError, /Cannot capture: expected a function/],
    [`compile ${one}`, ({ own }) => own.device.compile(any(one)), TypeError, /expected CUDA C\+\+, as a string, got /],
    [`load ${one}`, ({ own }) => own.device.loadPtx(any(one)), TypeError, /expected PTX, as a string, got /],
    [`the kernel ${one}`, ({ own }) => own.program.kernel(any(one)), TypeError, /expected its name, a string, got /],
    [
      `copy ${one}`,
      ({ own }) => own.buffer.copyFrom(any(one), { stream: own.stream }),
      TypeError,
      /Cannot copy: expected a MemoryBuffer or a typed array, got /,
    ],
    [
      `copy to ${one}`,
      ({ own }) => own.buffer.copyTo(any(one), { stream: own.stream }),
      TypeError,
      /Cannot copy: expected a MemoryBuffer or a typed array, got /,
    ],
  ]),
  [
    "wait for a buffer of the same device",
    ({ own }) => own.stream.wait(any(own.buffer)),
    TypeError,
    /Cannot wait: expected .*, got an instance of MemoryBuffer/,
  ],
  ...[5, null, {}].map((one): Row => [
    `record ${one}`,
    ({ own }) => own.stream.record(any(one)),
    TypeError,
    /Cannot record an event: expected a CudaEvent, or nothing for a new one, got /,
  ]),
  [
    "record a stream",
    ({ own }) => own.stream.record(any(own.stream)),
    TypeError,
    /Cannot record an event: expected .*, got an instance of CudaStream/,
  ],
  [
    "copy to an ArrayBuffer",
    ({ own }) => own.buffer.copyTo(any(new ArrayBuffer(64)), { stream: own.stream }),
    TypeError,
    /got an instance of ArrayBuffer: new Uint8Array/,
  ],
  [
    "copy a buffer to a view",
    ({ own }) => own.buffer.copyTo(any(StridedMemoryView.zeros([64], "uint8")), { stream: own.stream }),
    TypeError,
    /got an instance of StridedMemoryView: copy a view with view.copyFrom/,
  ],
  [
    "copy to memory that threads share",
    ({ own }) => own.buffer.copyTo(new Uint8Array(new SharedArrayBuffer(64)), { stream: own.stream }),
    TypeError,
    /Cannot copy a SharedArrayBuffer/,
  ],
];
