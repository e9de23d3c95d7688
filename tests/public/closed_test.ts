/** Whatever a program closes says whether it has been closed. */
import { assert, assertEquals } from "@std/assert";
import process from "node:process";
import { test } from "node:test";
import { ArrowArray, ArrowStream, Cuda, StridedMemoryView } from "../../mod.ts";
import { exportArrowStream } from "../../src/public/arrow.ts";
import { MemoryChannel, UnixListener, UnixSocket } from "../../src/public/sharing.ts";
import { Ucx } from "../../src/public/ucx.ts";
import { openVortex } from "../../src/public/vortex.ts";
import { addPtx } from "../gpu/graph_behaviours.ts";
import { needs } from "../support/needs.ts";
import { fileWith } from "../support/open_files.ts";
import { libucp } from "../../src/ucx/library.ts";
import { missing } from "../support/missing_library.ts";
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
    if (typeof value !== "function") continue;
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

test(...needs(missing(libucp), "so it is of what closes in order, while it waits for its peers, too"), async () => {
  const ucx = Ucx.open({ config: { TLS: "tcp" } });
  const worker = ucx.createWorker();
  const listener = worker.listen({ port: 0 });
  const [endpoint, accepted] = await Promise.all([worker.connect(listener), listener.accept()]);
  assert(accepted !== null);
  const region = worker.register(new Uint8Array(64));
  const closable = [endpoint.remote(region.key), region, accepted, endpoint, listener, worker, ucx];
  for (const object of closable) {
    assertEquals(object.isClosed, false, object.constructor.name);
    const closed = object.close();
    assertEquals(object.isClosed, true, object.constructor.name);
    await closed;
    assertEquals(object.isClosed, true, object.constructor.name);
  }
});
