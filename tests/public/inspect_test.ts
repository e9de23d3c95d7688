/**
 * What a console shows for every kind of object, open and closed, alone and nested: a line or a few, without internals,
 * and never an error.
 */
import { assert, assertEquals } from "@std/assert";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import {
  ArrowArray,
  arrowField,
  ArrowStream,
  Cuda,
  CudaDevice,
  CudaStream,
  DeviceMemoryResource,
  DType,
  HostMemoryResource,
  kwargs,
  ManagedMemoryResource,
  PinnedMemoryResource,
  Python,
  readNpz,
  Slice,
  slice,
  StridedLayout,
  StridedMemoryView,
  SynchronousMemoryResource,
  Ucx,
} from "../../mod.ts";
import { type ArrowType, exportArrowStream } from "../../src/public/arrow.ts";
import { showType } from "../../src/cdata/mod.ts";
import { libc } from "../../src/ffi/mod.ts";
import { CausalityChecker, CausalityReport } from "../../src/public/checker.ts";
import { type NpzArrays, writeNpz } from "../../src/public/files.ts";
import { Keywords } from "../../src/public/python.ts";
import { FileDescriptor, MemoryChannel, UnixListener, UnixSocket } from "../../src/public/sharing.ts";
import { SimulatedDriver, simulateDriver } from "../../src/public/sim.ts";
import { HttpReader, openVortex, VortexArray, VortexSession } from "../../src/public/vortex.ts";
import { addPtx } from "../gpu/graph_behaviours.ts";
import { isBun } from "../support/child.ts";
import { check, fc } from "../support/property.ts";
import { needs } from "../support/needs.ts";
import { until } from "../support/until.ts";
import { publicValues } from "./values.ts";

/** Why `open` fails here; null if it succeeds. */
function reasonAgainst(open: () => unknown): string | null {
  try {
    open();
    return null;
  } catch (error) {
    return String(error).split("\n")[0] ?? "";
  }
}

const ucxMissing = reasonAgainst(() => Ucx.open().close());
const pythonMissing = reasonAgainst(() => Python.open());

const symbols = ["Deno.customInspect", "nodejs.util.inspect.custom"].map((name) => Symbol.for(name));

/** The classes of all objects that were shown. */
const shownClasses = new Set<unknown>();

/** Classes whose instances are other text than what a console shows: values, or a name without the class. */
const withText = [ArrowArray, CudaDevice, CudaStream, DType, Slice, StridedLayout, StridedMemoryView, VortexArray];
/** Classes whose instances have values in JSON. */
const withValues = [
  ArrowArray,
  CausalityReport,
  DType,
  Keywords,
  Slice,
  StridedLayout,
  StridedMemoryView,
  VortexArray,
];

/** Asserts that all hooks of the runtimes show the same text, also when nested, as does JSON; returns the text. */
function shown(object: object, most = 25): string {
  const text = inspect(object);
  shownClasses.add(object.constructor);
  for (const symbol of symbols) {
    const method: unknown = Reflect.get(object, symbol);
    assert(typeof method === "function", `${text} has no ${String(symbol)}`);
    assertEquals(method.call(object), text);
  }
  const has = (classes: readonly { readonly prototype: object }[]) =>
    classes.some(({ prototype }) => Object.prototype.isPrototypeOf.call(prototype, object));
  if (!has(withText)) assertEquals(`${object}`, text);
  if (!has(withValues)) assertEquals(JSON.stringify([object]), JSON.stringify([text]));
  assert(inspect({ nested: [object] }).replaceAll(/\s/g, "").includes(text.replaceAll(/\s/g, "")), text);
  assert(text.split("\n").length <= most, text);
  return text;
}

const simulated = (options = {}) => Cuda.simulate({ devices: 2, seed: 1, ...options });

test("objects of a device are shown by name, place and size, and as closed when they are", () => {
  const cuda = simulated();
  const device = cuda.device(0, { name: "prefill" });
  const idle = cuda.device(1);
  const stream = device.createStream({ name: "copies" });
  const event = device.createEvent();
  const buffer = device.memory.allocate(4096, { stream, name: "weights" });
  const program = device.loadPtx(addPtx);
  const kernel = program.kernel("add");
  const unused = device.loadPtx(addPtx);
  const capture = stream.beginCapture();
  buffer.fill(1, { stream });
  const graph = capture.end();
  const limited = new DeviceMemoryResource(device, { maxSize: 2 ** 22 });
  const exec = graph.instantiate();
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [32, 32], dtype: "float32" });
  const lease = view.borrow(stream);
  const named = 'of device 0 "prefill"';
  const table: [object, string][] = [
    [cuda, 'Cuda 13.5 (simulated)\n  device 0 "prefill": Simulated GPU 0\n  device 1: Simulated GPU 1'],
    [device, 'CudaDevice 0 "prefill": Simulated GPU 0, 2 MiB of 8 GiB in use'],
    [idle, "CudaDevice 1: Simulated GPU 1, 8 GiB, not in use"],
    [stream, `CudaStream "copies" ${named}`],
    [device.defaultStream, `CudaStream (the default) ${named}`],
    [device.perThreadStream, `CudaStream (the thread's default) ${named}`],
    [event, `CudaEvent ${named}`],
    [buffer, `MemoryBuffer "weights" 4 KiB of memory ${named}, ordered on CudaStream "copies" ${named}`],
    [view, `StridedMemoryView "weights" float32 (32, 32) on device 0 "prefill"`],
    [lease, `Lease of "weights" float32 (32, 32) on device 0 "prefill" to CudaStream "copies" ${named}`],
    [program, `Program ${named}, kernels add`],
    [unused, `Program ${named}, no kernel asked for yet`],
    [kernel, `Kernel add(8 bytes, 4 bytes, 4 bytes) ${named}`],
    [graph, `CudaGraph ${named}: 1 node (1 MEMSET)`],
    [exec, `CudaGraphExec ${named}`],
    [device.memory, `DeviceMemoryResource ${named}, 4 KiB of 2 MiB in use`],
    [device.memory.pool, `MemoryPool ${named}, 4 KiB of 2 MiB in use`],
    [idle.memory, "DeviceMemoryResource of device 1"],
    [limited, `DeviceMemoryResource ${named}, 0 bytes of 0 bytes in use, at most 4 MiB`],
    [capture, `StreamCapture of CudaStream "copies" ${named}, ended`],
    [device.memory.peerAccessibleBy, "PeerAccessSet {}"],
    [new PinnedMemoryResource(device), `PinnedMemoryResource ${named}`],
    [new ManagedMemoryResource(device), `ManagedMemoryResource ${named}`],
    [new SynchronousMemoryResource(device), `SynchronousMemoryResource ${named}`],
  ];
  for (const [object, text] of table) assertEquals(shown(object), text);
  lease.close();
  using first = device.createStream();
  using second = device.createStream();
  for (const one of [first, second]) assert(/^CudaStream 0x[0-9a-f]+ of device 0/.test(shown(one)), shown(one));
  assert(shown(first) !== shown(second), "streams can be told apart");
  const closable = [event, buffer, exec, graph, program, stream, limited];
  for (const object of closable) object.close();
  for (const object of [...closable, view, kernel]) assert(shown(object).endsWith(", closed"), shown(object));
  assert(shown(lease).endsWith(", ended"));
  cuda.close();
  for (const [object] of table) shown(object);
  assertEquals(shown(cuda), "Cuda 13.5 (simulated), closed");
  assertEquals(shown(device), 'CudaDevice 0 "prefill": Simulated GPU 0, closed');
});

test("arrays of the host are shown in rows, of large ones the corners, and else with their first and last elements", () => {
  const small = StridedMemoryView.fromArray([[1, 2], [3, 4]], "float32");
  const table: [object, string][] = [
    [small, "StridedMemoryView float32 (2, 2) on the host\n[[1. 2.]\n [3. 4.]]"],
    [
      StridedMemoryView.arange(1000).reshaped([10, 100]),
      "StridedMemoryView float64 (10, 100) on the host\n" +
      "[[  0.   1.   2. ...  97.  98.  99.]\n [100. 101. 102. ... 197. 198. 199.]\n" +
      " [200. 201. 202. ... 297. 298. 299.]\n ...\n [700. 701. 702. ... 797. 798. 799.]\n" +
      " [800. 801. 802. ... 897. 898. 899.]\n [900. 901. 902. ... 997. 998. 999.]]",
    ],
    [
      StridedMemoryView.arange(100, "int32").reshaped([10, 10]).T,
      "StridedMemoryView int32 (10, 10) on the host\n" +
      `${StridedMemoryView.arange(100, "int32").reshaped([10, 10]).T}`,
    ],
    [
      StridedMemoryView.arange(1000, "int32").reshaped([10, 10, 10]),
      "StridedMemoryView int32 (10, 10, 10) on the host\n[0 1 2 ... 997 998 999]",
    ],
    [StridedMemoryView.zeros([0, 2]), "StridedMemoryView float64 (0, 2) on the host"],
    [StridedMemoryView.full([], true), "StridedMemoryView bool () on the host\nTrue"],
    [
      StridedMemoryView.zeros([40], "uint8x2"),
      "StridedMemoryView uint8x2 (40,) on the host\n" +
      "[[0 0] [0 0] [0 0] ... [0 0] [0 0] [0 0]]",
    ],
    [DType.from("bfloat16"), "DType bfloat16"],
    [small.layout, "StridedLayout (shape=(2, 2), strides=(2, 1), itemsize=4)"],
    [new HostMemoryResource(), "HostMemoryResource aligned to 64 bytes"],
    [slice(1, null, 2), "Slice 1::2"],
    [small.toDlpack(), "DlpackTensor 1.3"],
  ];
  for (const [object, text] of table) assertEquals(shown(object), text);
  const buffer = new HostMemoryResource().allocate(1, { name: "here" });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [1], dtype: "uint8", readonly: true });
  buffer.bytes()[0] = 5;
  assertEquals(shown(view), 'StridedMemoryView "here" uint8 (1,) on the host, read-only\n[5]');
  assertEquals(shown(buffer), 'MemoryBuffer "here" 1 byte of host memory');
  buffer.close();
  assertEquals(shown(buffer), 'MemoryBuffer "here" 1 byte of host memory, closed');
  assertEquals(shown(view), 'StridedMemoryView "here" uint8 (1,) on the host, read-only, closed');
});

test("rows are shown as toString() prints them, as long as that is a few lines", () => {
  const extent = fc.oneof(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 2000 }));
  const seen = { rows: 0, corners: 0, ends: 0 };
  const ends = [[7, 7, 7], [30, 30, 30], [9, 9, 9, 9]];
  check(
    fc.property(fc.array(extent, { minLength: 2, maxLength: 4 }), (shape) => {
      const view = StridedMemoryView.arange(7, "int16").sliced(6).broadcastTo(shape);
      const [about, ...lines] = shown(view).split("\n");
      assertEquals(about, `StridedMemoryView int16 (${shape.join(", ")}) on the host`);
      const count = view.size;
      const whole = `${view}`.split("\n");
      // All elements are equal: toString() prints the corners of such long axes, too.
      const corners = `${view.sliced(...shape.map(() => 0)).broadcastTo(shape.map((long) => long > 6 ? 1001 : long))}`
        .split("\n");
      if (count <= 256 && whole.length <= 24) {
        assertEquals(lines, whole);
        seen.rows++;
      } else if (corners.length <= 24) {
        assertEquals(lines, corners);
        seen.corners++;
      } else {
        assertEquals(lines, ["[6 6 6 ... 6 6 6]"]);
        seen.ends++;
      }
    }),
    400,
    // Three of each: of 200 shapes two or fewer are shown in whole rows by one seed in 2000.
    { examples: [[1, 1], [3, 40], [4, 4, 4], [7, 40], [100, 5], [30, 2000], ...ends].map((shape) => [shape]) },
  );
  assert(Math.min(...Object.values(seen)) > 2, JSON.stringify(seen));
  const deep = StridedMemoryView.zeros([1], "int8").broadcastTo(Array.from({ length: 40 }, () => 2));
  assert(shown(deep).endsWith("\n[0 0 0 ... 0 0 0]"));
});

test("inside of other objects rows stand under each other, in this runtime's console, too", () => {
  const nested = { v: StridedMemoryView.fromArray([[1, 2], [3, 4]]) };
  const view = "v: StridedMemoryView float64 (2, 2) on the host\n  [[1. 2.]\n   [3. 4.]]";
  assertEquals(inspect(nested).replace("{ v", "{\n  v").replace(" }", "\n}"), `{\n  ${view}\n}`);
  const { stdout } = spawnSync(process.execPath, [
    ...isBun ? [] : ["run", "-A", "--no-check"],
    fileURLToPath(new URL("./nested_child.ts", import.meta.url)),
  ], { encoding: "utf8", env: { ...process.env, NO_COLOR: "1" } });
  assert(stdout.includes(`{\n  ${view}`), stdout);
  assert(stdout.includes("[\n  StridedMemoryView float64 (2, 2) on the host\n  [[1. 2.]\n   [3. 4.]]"), stdout);
});

test("a console neither waits for a stream nor queries it, and does not invalidate a capture", () => {
  using cuda = simulated({ schedule: "latest", check: true });
  const device = cuda.device(0);
  using home = device.createStream();
  using pinned = new PinnedMemoryResource(device).allocate(4, { stream: home });
  const view = StridedMemoryView.fromBuffer(pinned, { shape: [4], dtype: "uint8" });
  pinned.fill(1, { stream: home });
  assertEquals(shown(view), "StridedMemoryView uint8 (4,) in pinned memory");
  assert(!home.isDone);
  using graph = home.capture(() => {
    for (const object of [cuda, device, home, pinned, view, device.memory, device.defaultStream]) shown(object);
    assert(shown(home).endsWith(", captured"));
    pinned.fill(2, { stream: home });
  });
  assertEquals(graph.nodes.length, 1);
  assertEquals(cuda.reports, []);
});

test("Arrow's arrays and streams are shown by type, length and ends, and as taken or closed when they are", () => {
  const host = new HostMemoryResource();
  const buffer = host.allocate(12);
  new Int32Array(buffer.bytes().buffer, buffer.bytes().byteOffset, 3).set([1, 2, 3]);
  const numbers = new ArrowArray({
    field: arrowField("i"),
    length: 3,
    buffers: [null, StridedMemoryView.fromBuffer(buffer, { shape: [12], dtype: "uint8" })],
  });
  const many = ArrowArray.from(StridedMemoryView.arange(1000, "int64").toArrowDevice());
  const nested = ArrowArray.from(StridedMemoryView.zeros([2, 50], "float32").toArrowDevice());
  const pairs = new ArrowArray({ field: arrowField("+s"), length: 0, buffers: [null], children: [] });
  const table: [object, string][] = [
    [numbers, "ArrowArray int32 (3)\n[1, 2, 3]"],
    [numbers.sliced(1), "ArrowArray int32 (2)\n[2, 3]"],
    [many, "ArrowArray int64 (1000)\n[0, 1, 2, ... 994 more ..., 997, 998, 999]"],
    [pairs, "ArrowArray struct<> (0)"],
  ];
  for (const [object, text] of table) assertEquals(shown(object), text);
  assert(shown(nested).startsWith("ArrowArray fixed_size_list<float32>[50] (2)\n[[0,0,0,"), shown(nested));
  assert(shown(nested).length < 200, "a long element is cut");
  buffer.close();
  assertEquals(shown(numbers), "ArrowArray int32 (3), closed");
  many.close();
  assertEquals(shown(many), "ArrowArray int64 (1000), closed");
  const nulls = ArrowArray.from(new ArrowArray({ field: arrowField("n"), length: 7, buffers: [] }).toArrowDevice());
  nulls.close(); // it has no memory that would be closed
  assertEquals(shown(nulls), "ArrowArray (Cannot read a closed ArrowArray of 7 elements)");

  const exported = StridedMemoryView.zeros([3], "uint8").toArrowDevice();
  assertEquals(shown(exported), "ArrowDeviceArray uint8");
  ArrowArray.from(exported.take()).close();
  assertEquals(shown(exported), "ArrowDeviceArray uint8, released");
  const given = exportArrowStream([ArrowArray.from(StridedMemoryView.zeros([3], "uint8").toArrowDevice())]);
  assertEquals(shown(given), "ArrowStreamExport for the host");
  const stream = ArrowStream.from({ stream: given.take() });
  assertEquals(shown(given), "ArrowStreamExport for the host, taken");
  assertEquals(shown(stream), "ArrowStream uint8");
  stream.close();
  assertEquals(shown(stream), "ArrowStream uint8, closed");
  assertEquals(shown(given), "ArrowStreamExport for the host, released");

  using cuda = simulated();
  using memory = cuda.device(1).memory.allocate(16);
  const onDevice = StridedMemoryView.fromBuffer(memory, { shape: [4], dtype: "float32" });
  using there = ArrowArray.from(onDevice.toArrowDevice(), { device: cuda.device(1) });
  assertEquals(shown(there), "ArrowArray float32 (4) on device 1");
});

test("a type of Arrow's is shown as a line", () => {
  const table: [string | ArrowType, string][] = [
    ["u", "utf8"],
    ["b", "bool"],
    ["d:9,2", "decimal128(9, 2)"],
    ["w:16", "fixed_size_binary[16]"],
    ["tdD", "date[day]"],
    ["tsu:UTC", "timestamp[microsecond, UTC]"],
    ["tsn:", "timestamp[nanosecond]"],
    [{ kind: "list", offsets: 32, child: arrowField("u") }, "list<utf8>"],
    [
      { kind: "dictionary", index: { kind: "int", bits: 8 }, values: arrowField("u"), ordered: false },
      "dictionary<int8, utf8>",
    ],
    [
      { kind: "struct", children: Array.from({ length: 10 }, (_, i) => arrowField("g", { name: `c${i}` })) },
      "struct<c0: float64, c1: float64, c2: float64, c3: float64, c4: float64, c5: float64, c6: float64, " +
      "c7: float64, 2 more>",
    ],
    [{ kind: "run_end_encoded", runEnds: arrowField("i"), values: arrowField("g") }, "run_end_encoded<float64>"],
  ];
  for (const [type, text] of table) assertEquals(showType(arrowField(type).type), text);
});

test("objects that several processes share are shown by their other end", async () => {
  using cuda = simulated();
  const path = `@causeway-inspect-${process.pid}`;
  const listener = UnixListener.listen(path);
  assertEquals(shown(listener), `UnixListener at ${path}`);
  const [mine, theirs] = await Promise.all([UnixSocket.connect(path), listener.accept()]);
  assertEquals(shown(mine), `UnixSocket to process ${process.pid} of user ${process.getuid?.()}`);
  const channel = new MemoryChannel(mine, cuda);
  assertEquals(shown(channel), "MemoryChannel (0 buffers shared)");
  channel.close();
  assertEquals(shown(channel), "MemoryChannel (0 buffers shared), closed");
  theirs.close();
  assertEquals(shown(theirs), "UnixSocket (closed)");
  listener.close();
  assertEquals(shown(listener), `UnixListener at ${path}, closed`);
  const descriptor = FileDescriptor.adopt(libc().files.eventfd(0, 0));
  assertEquals(shown(descriptor), `FileDescriptor ${descriptor.number}`);
  descriptor.close();
  assertEquals(shown(descriptor), "FileDescriptor (closed)");
});

test("a checker is shown by its reports, a report by its message, a simulator by its allocations and streams", () => {
  const cuda = simulated({ check: { onReport: () => {}, leaks: false } });
  const device = cuda.device(0);
  using one = device.createStream();
  using other = device.createStream();
  using buffer = device.memory.allocate(64, { stream: one });
  const checker = CausalityChecker.of(device.driver);
  const simulator = SimulatedDriver.of(device.driver);
  assert(checker !== null && simulator !== null);
  assertEquals(shown(checker), "CausalityChecker (0 reports)");
  buffer.fill(1, { stream: one });
  buffer.fill(2, { stream: other });
  const [report] = cuda.reports;
  assert(report !== undefined);
  assertEquals(shown(report, 30), `CausalityReport ${report.kind}\n${report.message}`);
  assertEquals(shown(checker), "CausalityChecker (1 report)");
  assertEquals(shown(simulator), "SimulatedDriver with 1 allocation (64 bytes) and 2 streams");
  one.wait(other);
  other.synchronize();
  checker.close();
  assertEquals(shown(checker), "CausalityChecker (1 report), closed");
  shown(simulateDriver());
});

test("files are shown by their contents", async () => {
  const arrays = await npz({ a: StridedMemoryView.zeros([2, 3]), b: StridedMemoryView.arange(3, "int32") });
  assertEquals(shown(arrays), "NpzArrays of 2 arrays\n  a: float64 (2, 3)\n  b: int32 (3,)");
  arrays.close();
  assertEquals(shown(arrays), "NpzArrays of 2 arrays\n  a: float64 (2, 3), closed\n  b: int32 (3,), closed");
  const names = Array.from({ length: 20 }, (_, i) => [`n${i}`, StridedMemoryView.zeros([1])] as const);
  assert(shown(await npz(Object.fromEntries(names))).endsWith("\n  n6: float64 (1,)\n  and 13 more"));

  const reader = new HttpReader("https://name:secret@example.org/taxi.vortex?token=secret#x");
  assertEquals(shown(reader), "HttpReader https://example.org/taxi.vortex");
  reader.close();
  assertEquals(shown(reader), "HttpReader https://example.org/taxi.vortex, closed");
  const none = new VortexSession({ allowsUnknown: true });
  assertEquals(shown(none), "VortexSession with 0 encodings and 0 types of extensions, also unknown encodings");
  assert(/^VortexSession with \d\d+ encodings and \d+ types of extensions$/.test(shown(VortexSession.default())));
  using file = await openVortex(readFileSync(new URL("../data/vortex/written_by_0.93.vortex", import.meta.url)));
  assert(shown(file).startsWith(`VortexFile ${file.rowCount} rows of {`), shown(file));
  for await (const array of file.scan()) {
    assert(shown(array).startsWith(`VortexArray ${array.length} of {`), shown(array));
    array.close();
    assert(shown(array).endsWith(", closed"), shown(array));
    break;
  }
});

/** Arrays written to a file and read back. */
async function npz(arrays: Readonly<Record<string, StridedMemoryView>>): Promise<NpzArrays> {
  const folder = mkdtempSync(join(tmpdir(), "causeway-inspect-"));
  try {
    await writeNpz(join(folder, "a.npz"), arrays);
    return await readNpz(join(folder, "a.npz"));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test(...needs(ucxMissing, "endpoints, workers and listeners are shown, open and closed"), async () => {
  const ucx = Ucx.open();
  const worker = ucx.createWorker();
  const another = ucx.createWorker();
  assert(shown(worker) !== shown(another), "workers can be told apart");
  another.abort();
  const listener = worker.listen();
  const [mine, theirs] = await Promise.all([worker.connect(listener), listener.accept()]);
  assert(theirs !== null);
  assertEquals(shown(listener), `UcxListener at 127.0.0.1:${listener.port}`);
  for (const endpoint of [mine, theirs]) assert(shown(endpoint).startsWith("UcxEndpoint (open"), shown(endpoint));
  await Promise.all([mine.send(new Uint8Array(5), { tag: 7n }), until(() => worker.probe(7n) !== null)]);
  assert(/^UcxEndpoint \(open, by [\w/, .-]+\)$/.test(shown(mine)), shown(mine));
  const taken = worker.take(7n);
  assert(taken !== null);
  assertEquals(shown(taken), "UcxMessage 5 bytes, tag 7");
  await taken.recv(new Uint8Array(5));
  assertEquals(shown(taken), "UcxMessage 5 bytes, tag 7, received");
  const messages = theirs.messages()[Symbol.asyncIterator]();
  await mine.sendMessage(new Uint8Array(3), { header: "head" });
  const { value: message } = await messages.next();
  assert(message !== undefined);
  assertEquals(shown(message), "UcxActiveMessage 3 bytes, header of 4 bytes");
  await message.bytes();
  assertEquals(shown(message), "UcxActiveMessage 3 bytes, header of 4 bytes, received");
  const region = worker.register(new Uint8Array(4096));
  const key = mine.remote(region.key);
  assertEquals([shown(region), shown(key)], ["UcxMemoryRegion 4 KiB", "UcxRemoteKey 4 KiB"]);
  key.close();
  region.close();
  assertEquals([shown(region), shown(key)], ["UcxMemoryRegion 4 KiB, closed", "UcxRemoteKey 4 KiB, closed"]);
  assert(/^UcxWorker \d+ of UCX /.test(shown(worker)) && shown(worker).includes(`UCX ${ucx.version}`));
  assert(shown(ucx).startsWith(`Ucx ${ucx.version} (`));
  await Promise.all([mine.close(), theirs.close()]);
  for (const endpoint of [mine, theirs]) assertEquals(shown(endpoint), "UcxEndpoint (closed)");
  await listener.close();
  await worker.close();
  ucx.close();
  for (const object of [listener, worker, ucx]) assert(shown(object).endsWith(", closed"), shown(object));
});

test(...needs(pythonMissing, "an object of Python is shown by its repr, or by why it has none"), () => {
  const py = Python.open();
  assert(shown(py).startsWith(`Python ${py.version} (`));
  py.run("class Unshowable:\n  def __repr__(self): raise ValueError('no')");
  using list = py.builtins.$get("list").$call([1, 2]);
  assertEquals(inspect(list), "PyObject [1, 2]");
  assertEquals(inspect({ list }).replaceAll(/\s+/g, " ").replace(", }", " }"), "{ list: PyObject [1, 2] }");
  using unshowable = py.import("__main__").$get("Unshowable").$call();
  assert(inspect(unshowable).startsWith("PyObject "), inspect(unshowable));
  list.$close();
  assertEquals(inspect(list), "PyObject (closed)");
  const named = kwargs({ axis: 0, name: "a", key: () => 1, list: [1, 2], object: unshowable });
  assertEquals(
    shown(named),
    'Keywords { axis: 0, name: "a", key: a function, list: an array of 2, object: a PyObject }',
  );
  assertEquals(shown(kwargs({})), "Keywords {}");
  const lock = py.import("threading")["Lock"]();
  const entered = py.with(lock);
  assertEquals(inspect(entered), "Entered (true)");
  entered[Symbol.dispose]();
  assertEquals(inspect(entered), "Entered (left)");
});

/** Public classes that this file shows no instance of, and why. */
const notShown: Readonly<Record<string, string>> = {
  DriverMemoryResource: "it is abstract, and derived classes are above",
  MemoryResource: "it is abstract, and derived classes are a program's own",
  ...(ucxMissing === null ? {} : Object.fromEntries(
    [
      "Ucx",
      "UcxEndpoint",
      "UcxWorker",
      "UcxListener",
      "UcxMessage",
      "UcxActiveMessage",
      "UcxMemoryRegion",
      "UcxRemoteKey",
    ]
      .map((name) => [name, "no UCX"]),
  )),
  ...(pythonMissing === null ? {} : { Python: "no Python", Keywords: "no Python" }),
};

test("every public class is shown so, with an instance of each above", async () => {
  const classes = new Map<string, unknown>();
  for (const { name, value } of await publicValues()) {
    if (typeof value !== "function" || !/^class\b/.test(Function.prototype.toString.call(value))) continue;
    if (!(value.prototype instanceof Error)) classes.set(name, value); // errors are shown as all errors are
  }
  assert(classes.size > 40);
  const missing = [...classes].filter(([name, one]) => !shownClasses.has(one) && notShown[name] === undefined);
  assertEquals(missing.map(([name]) => name), [], "show one in this file, open and closed");
  const needless = Object.keys(notShown).filter((name) => shownClasses.has(classes.get(name)));
  assertEquals(needless, [], "they are shown");
});
