/**
 * Invalid option values, values that are not numbers, and numbers that are not sizes.
 *
 * @module
 */
import type { DeviceAttribute } from "../../../src/public/cuda.ts";
import {
  CudaStream,
  DeviceMemoryResource,
  HostMemoryResource,
  type KernelArg,
  ManagedMemoryResource,
  MemoryBuffer,
  PinnedMemoryResource,
  StridedMemoryView,
  SynchronousMemoryResource,
} from "../../../mod.ts";
import { args, noNumbers, noSizes, type Row } from "./scene.ts";

/** Each call with its error. */
export const valuesRows: readonly Row[] = [
  // words
  [
    "an unknown attribute",
    ({ own }) => own.device.attribute("FROBS" as DeviceAttribute),
    TypeError,
    /attribute "FROBS"/,
  ],
  [
    "an unknown attribute of kernels",
    ({ own }) => own.kernel.attribute("FROBS" as "NUM_REGS"),
    TypeError,
    /attribute "FROBS"/,
  ],
  [
    "unknown advice",
    ({ own }) => new ManagedMemoryResource(own.device).advise(own.managed, "FROB" as "SET_READ_MOSTLY", null),
    TypeError,
    /advice "FROB"/,
  ],
  [
    "an unknown capture mode",
    ({ own }) => own.stream.capture(() => {}, { mode: "strict" as "global" }),
    TypeError,
    /mode strict/,
  ],
  ["a kernel's name with NUL", ({ own }) => own.program.kernel("a\0d"), TypeError, /contains NUL/],
  ["PTX with NUL", ({ own }) => own.device.loadPtx(".version\0"), TypeError, /contains NUL/],
  [
    "an unknown dtype",
    ({ own }) => own.kernel.launch(own.stream, 1, 1, [0n, ["frob" as "int8", 1], ["uint32", 1]]),
    TypeError,
    /add, argument 1: /,
  ],
  [
    "an argument that is a JavaScript value",
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

  // values that are not numbers
  ...noNumbers.flatMap((size): Row[] => {
    const what = JSON.stringify(size, (_, value) => typeof value === "bigint" ? `${value}n` : value);
    const says = typeof size === "bigint"
      ? /Cannot .* 10n bytes.*: expected a safe integer of at least 0, got a bigint: Number\(10n\) is one/
      : /Cannot .* bytes.*: expected a safe integer of at least 0, got/;
    const view = { shape: [1], dtype: "uint8", offset: size } as const;
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
  ...[-1n, 2n ** 64n].flatMap((size): Row[] => {
    // of these the number would be none either
    const says = /Cannot .* bytes.*: expected a safe integer of at least 0, got a bigint$/;
    const options = (name: string) => ({ [name]: size as unknown as number });
    return [
      [`allocate ${size}n`, ({ own }) => own.memory.allocate(size as unknown as number), TypeError, says],
      [`a pool of ${size}n`, ({ own }) => new DeviceMemoryResource(own.device, options("maxSize")), TypeError, says],
      [
        `a pool that keeps ${size}n`,
        ({ own }) => new DeviceMemoryResource(own.device, options("releaseThreshold")),
        TypeError,
        says,
      ],
      [`trim to ${size}n`, ({ own }) => own.pool.trim(size as unknown as number), TypeError, says],
    ];
  }),
  ...[10n, "10", {}, { x: 4 }, [], [4, 1n]].map((extents): Row => [
    `launch ${typeof extents}`,
    ({ own }) => own.kernel.launch(own.stream, extents as unknown as number, 1, args),
    RangeError,
    /Cannot launch a grid of .*: expected one to three positive integers/,
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
    "fill a size that is no multiple",
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
