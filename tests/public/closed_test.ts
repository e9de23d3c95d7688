/** Whatever a program closes says whether it has been closed. */
import { assert, assertEquals } from "@std/assert";
import process from "node:process";
import { test } from "node:test";
import { ArrowArray, ArrowStream, Cuda, StridedMemoryView } from "../../mod.ts";
import { exportArrowStream } from "../../src/public/arrow.ts";
import { MemoryChannel, UnixListener, UnixSocket } from "../../src/public/sharing.ts";
import { openVortex } from "../../src/public/vortex.ts";
import { addPtx } from "../gpu/graph_behaviours.ts";
import { fileWith } from "../support/open_files.ts";
import { publicValues } from "./values.ts";

/** Classes without `isClosed`, and what tells instead. */
const otherwise: Readonly<Record<string, string>> = {
  ArrowArray: "the memory of its buffers",
  ArrowDeviceArray: "released",
  ArrowStreamExport: "released",
  CausalityChecker: "the code that made the driver, which closes it",
  DeviceMemoryResource: "pool.isClosed",
  DlpackTensor: "released",
  HttpReader: "the file that was opened with it",
  Kernel: "its program",
  NpzArrays: "the memory of its views",
  SimulatedDriver: "the code that made the driver, which closes it",
  StreamCapture: "isEnded",
  StridedMemoryView: "buffer.isClosed",
};

test("every class that can be closed has isClosed, or something else that tells", async () => {
  const without = new Set<string>();
  for (const { name, value } of await publicValues()) {
    if (typeof value !== "function" || /^Ucx/.test(name)) continue; // closing most of those takes time, and is a promise
    const prototype: unknown = value.prototype;
    if (typeof prototype !== "object" || prototype === null || !("close" in prototype)) continue;
    if (!("isClosed" in prototype)) without.add(name);
  }
  assertEquals([...without].sort(), Object.keys(otherwise).sort());
});

test("isClosed is true from the first close on", async () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  const stream = device.createStream();
  const buffer = device.memory.allocate(16, { stream });
  const graph = stream.capture(() => buffer.fill(1, { stream }));
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [16], dtype: "uint8" });
  const listener = UnixListener.listen(`@causeway-closed-${process.pid}`);
  const channel = await MemoryChannel.connect(listener.path, cuda);
  const [one, other] = UnixSocket.pair();
  const file = await openVortex(new URL("../../examples/trips.vortex", import.meta.url));
  const [batch] = await Array.fromAsync(file.scan({ rows: [0, 1] }));
  assert(batch !== undefined);
  const arrays = exportArrowStream([ArrowArray.from(StridedMemoryView.zeros([3], "uint8").toArrowDevice())]);
  const closable = [
    ArrowStream.from({ stream: arrays.take() }),
    batch,
    file,
    channel,
    listener,
    one,
    other,
    fileWith(Uint8Array.of(1)),
    view.borrow(stream),
    graph.instantiate(),
    graph,
    device.loadPtx(addPtx),
    device.createEvent({ timing: true }),
    stream.record(),
    buffer,
    stream,
    Cuda.over(cuda.driver),
  ];
  for (const object of closable) {
    const name = object.constructor.name;
    assertEquals(object.isClosed, false, name);
    object.close();
    assertEquals(object.isClosed, true, name);
    object.close();
    assertEquals(object.isClosed, true, name);
  }
});
