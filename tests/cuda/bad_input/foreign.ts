/**
 * Objects of another Cuda or another device, and memory in the wrong place.
 *
 * @module
 */
import { ManagedMemoryResource, PinnedMemoryResource, StridedMemoryView } from "../../../mod.ts";
import { args, type Row } from "./scene.ts";

/** Each call with its error. */
export const foreignRows: readonly Row[] = [
  // objects of another Cuda, or another device
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
    "prefetch memory that is not managed",
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
    "advise about memory that is not managed",
    ({ own, pinned }) => new ManagedMemoryResource(own.device).advise(pinned, "SET_READ_MOSTLY", null),
    TypeError,
    /managed memory/,
  ],

  // memory in the wrong place
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
];
