/**
 * What a console shows of every kind of object, open and closed, alone and in others: a line or a few, without
 * internals, and never an error.
 */
import { assert, assertEquals } from "@std/assert";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import {
  Cuda,
  DType,
  HostMemoryResource,
  ManagedMemoryResource,
  PinnedMemoryResource,
  Python,
  StridedMemoryView,
  SynchronousMemoryResource,
  Ucx,
} from "../../mod.ts";
import { addPtx } from "../gpu/graph_behaviours.ts";
import { isBun } from "../support/child.ts";
import { check, fc } from "../support/property.ts";
import { needs } from "../support/needs.ts";

/** Why something cannot be opened here; null if it can. */
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

/** Whatever the runtimes ask shows the same, also inside of something else. */
function shown(object: object): string {
  const text = inspect(object);
  for (const symbol of symbols) {
    const method: unknown = Reflect.get(object, symbol);
    assert(typeof method === "function", `${text} has no ${String(symbol)}`);
    assertEquals(method.call(object), text);
  }
  assert(inspect({ nested: [object] }).replaceAll(/\s/g, "").includes(text.replaceAll(/\s/g, "")), text);
  assert(text.split("\n").length <= 25, text);
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
  const graph = stream.capture(() => buffer.fill(1, { stream }));
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
    [kernel, `Kernel add(8 bytes, 4 bytes, 4 bytes) ${named}`],
    [graph, `CudaGraph ${named}: 1 node (1 MEMSET)`],
    [exec, `CudaGraphExec ${named}`],
    [device.memory, `DeviceMemoryResource ${named}`],
    [device.memory.pool, `MemoryPool ${named}`],
    [device.memory.peerAccessibleBy, "PeerAccessSet {}"],
    [new PinnedMemoryResource(device), `PinnedMemoryResource ${named}`],
    [new ManagedMemoryResource(device), `ManagedMemoryResource ${named}`],
    [new SynchronousMemoryResource(device), `SynchronousMemoryResource ${named}`],
  ];
  for (const [object, text] of table) assertEquals(shown(object), text);
  lease.close();
  const closable = [event, buffer, exec, graph, program, stream];
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
  check(
    fc.property(fc.array(extent, { minLength: 2, maxLength: 4 }), (shape) => {
      const view = StridedMemoryView.arange(7, "int16").sliced(6).broadcastTo(shape);
      const [about, ...lines] = shown(view).split("\n");
      assertEquals(about, `StridedMemoryView int16 (${shape.join(", ")}) on the host`);
      const count = view.size;
      const whole = `${view}`.split("\n");
      // All elements are alike: of so long axes toString() prints the corners, too.
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
    200,
  );
  assert(Math.min(...Object.values(seen)) > 5, JSON.stringify(seen));
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

test("a console neither waits for a stream nor asks it, and during a capture spoils nothing", () => {
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

test(...needs(ucxMissing, "endpoints, workers and listeners are shown, open and closed"), async () => {
  const ucx = Ucx.open();
  const worker = ucx.createWorker();
  const listener = worker.listen();
  const [mine, theirs] = await Promise.all([worker.connect(listener), listener.accept()]);
  assert(theirs !== null);
  assertEquals(shown(listener), `UcxListener at 127.0.0.1:${listener.port}`);
  for (const endpoint of [mine, theirs]) assertEquals(shown(endpoint), "UcxEndpoint (open)");
  assert(shown(worker).startsWith(`UcxWorker of UCX ${ucx.version}`));
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
});
