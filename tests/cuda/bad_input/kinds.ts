/**
 * Arguments of the wrong kind: a device or options for a stream, a number for an event, nothing at all.
 *
 * @module
 */
import { StridedMemoryView } from "../../../mod.ts";
import { args, type Row, type Scene } from "./scene.ts";

/** An argument from an untyped program. */
const any = (value: unknown) => value as never;

/** A launch with arbitrary arguments. */
const launch = (...given: readonly unknown[]) => ({ own }: Scene) => own.kernel.launch(...given as never as Launch);
type Launch = Parameters<Scene["own"]["kernel"]["launch"]>;

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
