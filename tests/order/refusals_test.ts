/**
 * Calls that the driver refuses, or that come at the wrong time: nothing is leaked, nothing is returned too early, and
 * nothing else is held up.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CUresult } from "../../bindings/cuda_types.ts";
import { libc } from "../../src/ffi/libc.ts";
import { liveExports } from "../../src/order/reclaim.ts";
import { exportArrowStream } from "../../src/public/arrow.ts";
import {
  ArrowArray,
  arrowField,
  ArrowStream,
  Cuda,
  CudaError,
  ExchangeError,
  HostMemoryResource,
  type MemoryBuffer,
  StridedMemoryView,
} from "../../mod.ts";
import { simulatorOf } from "../support/simulator_of.ts";

/** A device, two arrays with their own home streams, and a third stream. */
function setUp() {
  const cuda = Cuda.simulate({ check: { onReport: () => {} } });
  const simulated = simulatorOf(cuda);
  const device = cuda.device(0);
  const streams = Array.from({ length: 3 }, () => device.createStream());
  const [home = device.defaultStream, second = home, other = home] = streams;
  const buffers = [home, second].map((stream) => device.memory.allocate(16, { stream }));
  const views = buffers.map((buffer) => StridedMemoryView.fromBuffer(buffer, { shape: [16], dtype: "uint8" }));
  const close = () => {
    const live = liveExports();
    for (const one of [...buffers, ...streams, cuda]) one.close();
    const { streams: left, events, allocations, contexts } = simulated.live;
    assertEquals([left, events, allocations, contexts, live], [0, 0, 0, 0, 0]);
    assertEquals(cuda.reports.map(({ message }) => message), []);
  };
  const [view, another] = views;
  assert(view !== undefined && another !== undefined);
  return { cuda, simulated, device, home, other, view, another, buffers, close };
}

type Setting = ReturnType<typeof setUp>;

/** Two arrays of bytes side by side. */
function pair({ view, another }: Setting): ArrowArray {
  const children = [view, another].map((bytes) =>
    new ArrowArray({ field: arrowField("C"), length: 16, nullCount: 0, buffers: [null, bytes] })
  );
  const field = arrowField({ kind: "struct", children: children.map((one) => one.field) });
  return new ArrowArray({ field, length: 16, nullCount: 0, buffers: [null], children });
}

interface Closable {
  close(): void;
}

/** Every way to hand an array over, and to take it. */
const ways: Readonly<Record<string, (setting: Setting) => Closable>> = {
  lease: ({ view, other }) => view.borrow(other),
  dlpack: ({ view, other }) => view.toDlpack({ stream: other }),
  arrow: ({ view }) => view.toArrowDevice(),
  "arrow of two": (setting) => pair(setting).toArrowDevice(),
  "arrow stream": (setting) => exportArrowStream([pair(setting)], { device: true }),
  "from dlpack": ({ view, other }) => StridedMemoryView.fromDlpack(view, { stream: other }),
  "from the interface": ({ view, other }) => StridedMemoryView.fromCudaArrayInterface(view, { stream: other }),
  "from arrow": ({ view, other }) => StridedMemoryView.fromArrowDevice(view, { stream: other }),
  "from arrow of two": (setting) => ArrowArray.from(pair(setting), { stream: setting.other }),
};

test("the option that says where an array will be used is a stream or a device, or nothing is taken", () => {
  const setting = setUp();
  const { cuda, view, device } = setting;
  const closed = device.createStream();
  closed.close();
  const places: readonly (readonly [options: object, words: string])[] = [
    [{ device: 0 }, "expected a CudaDevice, got 0: use cuda.device(0)"],
    [{ device: null }, "expected a CudaDevice, got null"],
    [{ device: cuda }, "expected a CudaDevice, got an instance of Cuda"],
    [{ stream: 0 }, "expected a CudaStream, got 0"],
    [{ stream: 5n }, "expected a CudaStream, got 5n"],
    [{ stream: device }, "expected a CudaStream, got an instance of CudaDevice: device.createStream()"],
    [{ stream: closed }, "got a closed CudaStream"],
  ];
  for (const [options, words] of places) {
    const exported = [view.toDlpack(), view.toArrowDevice()] as const;
    const [tensor, array] = exported;
    const imports: readonly (() => unknown)[] = [
      () => StridedMemoryView.fromDlpack(view, options),
      () => StridedMemoryView.fromDlpack(tensor, options),
      () => StridedMemoryView.fromCudaArrayInterface(view, options),
      () => StridedMemoryView.fromArrowDevice(view, options),
      () => StridedMemoryView.fromArrowDevice(array, options),
      () => StridedMemoryView.from(view, options),
      () => StridedMemoryView.from(new Float32Array(2), options),
      () => StridedMemoryView.from({ __cuda_array_interface__: view.toCudaArrayInterface() }, options),
      () => ArrowArray.from(pair(setting), options),
      () => ArrowStream.from({ deviceStream: 8n }, options), // nothing reads it
    ];
    for (const one of imports) assertThrows(one, TypeError, words, `${one}`);
    assertEquals(exported.map((one) => one.released), [false, false]);
    for (const one of exported) one.close();
  }
  setting.close();
});

const calls = ["cuEventCreate", "cuEventRecord", "cuStreamWaitEvent", "cuStreamCreate", "cuCtxPushCurrent_v2"];

test("an exchange that the driver refuses has taken nothing, and can be retried", () => {
  let refused = 0;
  for (const way of Object.values(ways)) {
    for (const call of calls) {
      for (const nth of [1, 2, 3]) {
        const setting = setUp();
        setting.simulated.failNth(call, nth, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
        try {
          way(setting).close();
        } catch (error) {
          assert(error instanceof CudaError && error.codeName === "CUDA_ERROR_OUT_OF_MEMORY", `${error}`);
          refused++;
        }
        for (let i = 0; i < nth; i++) spend(setting);
        way(setting).close();
        setting.close();
      }
    }
  }
  assert(refused > 30, `only ${refused} refusals`);
});

/** Makes each of the calls, so that no injected refusal is left. */
function spend({ device, home, other }: Setting): void {
  for (
    const work of [() => device.createEvent().close(), () => other.wait(home), () => device.createStream().close()]
  ) {
    try {
      work();
    } catch (error) {
      assert(error instanceof CudaError, `${error}`);
    }
  }
}

test("a refused import still belongs to its producer, and retains no stream", () => {
  const setting = setUp();
  const { other: stream } = setting;
  const exported = pair(setting).toArrowDevice();
  assertThrows(() => StridedMemoryView.fromArrowDevice(exported, { stream }), ExchangeError, "struct");
  stream.close();
  assertEquals(setting.simulated.live.streams, 2);
  assertEquals(liveExports(), 2);
  exported.close();
  setting.close();
});

test("an export that finds no memory for its structs has taken nothing", () => {
  const { loading } = libc();
  const put = (value: typeof loading) => Object.defineProperty(libc(), "loading", { value, configurable: true });
  for (const out of [pair, ({ view }: Setting) => view.reshaped([1, 1, 1, 1, 16])]) {
    for (const failing of [1, 2]) {
      const setting = setUp();
      const from = out(setting);
      from.toArrowDevice().close();
      liveExports();
      const { events } = setting.simulated.live;
      let count = 0;
      put({ ...loading, calloc: (items, size) => ++count === failing ? 0n : loading.calloc(items, size) });
      try {
        assertThrows(() => from.toArrowDevice(), Error, "calloc");
      } finally {
        put(loading);
      }
      assertEquals(setting.simulated.live.events, events);
      from.toArrowDevice().close();
      setting.close();
    }
  }
});

test("a view of numbers that finds no memory for the first structs of its kind is not pinned", () => {
  const { loading } = libc();
  const put = (value: typeof loading) => Object.defineProperty(libc(), "loading", { value, configurable: true });
  const setting = setUp();
  const view = StridedMemoryView.fromBuffer(setting.view.buffer, { shape: [2, 2, 2], dtype: "float16" });
  setting.view.toArrowDevice().close();
  liveExports();
  const { events } = setting.simulated.live;
  put({ ...loading, calloc: () => 0n });
  try {
    assertThrows(() => view.toArrowDevice(), Error, "calloc");
  } finally {
    put(loading);
  }
  view.buffer.close();
  assertEquals([setting.simulated.calls("cuMemFreeAsync"), setting.simulated.live.events], [1, events]);
  setting.close();
});

/** Two consumers have released, and nothing has polled since. */
function released(setting: Setting): { readonly exports: readonly { readonly released: boolean }[] } {
  const exports = [
    setting.view.toDlpack({ stream: null }),
    setting.another.toArrowDevice(),
    pair(setting).toArrowDevice(),
  ];
  for (const one of exports) one.close();
  return { exports };
}

function freed({ simulated }: Setting, buffers: readonly MemoryBuffer[]): number {
  for (const buffer of buffers) buffer.close();
  return simulated.calls("cuMemFreeAsync");
}

// `liveExports()` in the middle of a capture recorded an event for the context, which ended the capture.
test("memory released while a stream is captured is returned afterwards, and the capture stays valid", () => {
  const setting = setUp();
  const { other, buffers, view } = setting;
  let exports: readonly { readonly released: boolean }[] = [];
  const graph = other.capture(() => {
    view.buffer.fill(1, { stream: other });
    ({ exports } = released(setting));
    new HostMemoryResource().allocate(8).close();
    assertEquals(liveExports(), 3); // the schemas order nothing
    assertEquals(exports.map((one) => one.released), [false, false, false]);
  });
  assertEquals(graph.nodes.length, 1);
  graph.close();
  assertEquals([liveExports(), exports.map((one) => one.released)], [0, [true, true, true]]);
  assertEquals(freed(setting, buffers), 2);
  setting.close();
});

test("a release that cannot be ordered is retried at the next poll, and delays no other", () => {
  const setting = setUp();
  const { simulated, buffers } = setting;
  const { exports } = released(setting);
  // For the first home, twice: a poll repeats as long as it finds something. In between the others order theirs.
  for (const nth of [1, 4]) simulated.failNth("cuCtxRecordEvent", nth, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
  for (const nth of [1, 2]) simulated.failNth("cuCtxSynchronize", nth, CUresult.CUDA_ERROR_UNKNOWN);
  assertThrows(() => liveExports(), CudaError, "cuCtxSynchronize");
  assertEquals(freed(setting, buffers), 1, "all but the one that is still exported");
  assertEquals([liveExports(), exports.map((one) => one.released)], [0, [true, true, true]]);
  assertEquals(simulated.calls("cuMemFreeAsync"), 2);
  setting.close();
});

test("a release that a capture keeps from being ordered is retried, and fails no other call", () => {
  const { CUDA_ERROR_OUT_OF_MEMORY: isOut, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: isCapturing } = CUresult;
  // As if by another library's capture that cannot be seen; it refuses the event, or there is none and it refuses
  // a wait of the host, which must not even be tried otherwise: that would invalidate the capture.
  for (const code of [isCapturing, isOut]) {
    const setting = setUp();
    const { simulated, buffers } = setting;
    const { exports } = released(setting);
    for (let nth = 1; nth <= 9; nth++) {
      simulated.failNth("cuCtxRecordEvent", nth, code);
      simulated.failNth("cuCtxSynchronize", nth, isCapturing);
    }
    assert(liveExports() > 0);
    assertEquals(simulated.calls("cuCtxSynchronize") > 0, code === isOut);
    while (liveExports() > 0);
    assertEquals(exports.map((one) => one.released), [true, true, true]);
    assertEquals(freed(setting, buffers), 2);
    setting.close();
  }
});

test("a release whose free fails is over, delays no other, and the error is thrown by the poll", () => {
  const setting = setUp();
  const { simulated, buffers } = setting;
  const { exports } = released(setting);
  for (const buffer of buffers) buffer.close();
  simulated.failNth("cuMemFreeAsync", 1, CUresult.CUDA_ERROR_UNKNOWN);
  assertThrows(() => liveExports(), CudaError, "cuMemFreeAsync");
  assertEquals([liveExports(), exports.map((one) => one.released)], [0, [true, true, true]]);
  assertEquals(simulated.calls("cuMemFreeAsync"), 2);
});

test("in a lost context nothing has to be waited for: a release is complete", () => {
  const setting = setUp();
  const { simulated } = setting;
  const { exports } = released(setting);
  for (const call of ["cuCtxRecordEvent", "cuCtxSynchronize"]) {
    for (let nth = 1; nth <= 20; nth++) simulated.failNth(call, nth, CUresult.CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  assertEquals([liveExports(), exports.map((one) => one.released)], [0, [true, true, true]]);
  setting.close();
});
