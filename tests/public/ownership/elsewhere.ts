/**
 * Owners of memory that streams, graphs, files, other processes and Python use.
 *
 * @module
 */
import { assert, assertEquals } from "@std/assert";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import {
  Cuda,
  DeviceMemoryResource,
  liveExports,
  type MemoryBuffer,
  openNpy,
  Python,
  readNpy,
  readNpz,
  StridedMemoryView,
  Ucx,
  writeNpz,
} from "../../../mod.ts";
import { MemoryChannel, UnixSocket } from "../../../src/public/sharing.ts";
import { openVortex } from "../../../src/public/vortex.ts";
import { addPtx } from "../../gpu/graph_behaviours.ts";
import { until } from "../../support/until.ts";
import { openFiles } from "../../support/open_files.ts";
import { findPython } from "../../support/python.ts";
import { missing } from "../../support/missing_library.ts";
import { libucp } from "../../../src/ucx/library.ts";
import { viewOf } from "./memory.ts";
import { CountedMemory, type OwnershipRow } from "./row.ts";

const digits = "examples/digits.npy";
const ucxMissing = missing(libucp);
const python = findPython("numpy");
const pythonMissing = typeof python === "string" ? python : null;

/** How many times the file is mapped into this process. */
function mappings(): number {
  return readFileSync("/proc/self/maps", "utf8").split("\n").filter((line) => line.endsWith(digits)).length;
}

/** Memory for work that a stream has not reached yet: the stream is held back until something waits for it. */
function late() {
  const cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  const stream = device.createStream();
  const memory = new CountedMemory();
  const there = device.memory.allocate(16, { stream });
  return { device, stream, memory, there };
}

/** Two simulated processes, a channel between them, and a pool that one of them shares. */
function sharing() {
  const [here, there] = [Cuda.simulate({ schedule: "latest" }), Cuda.simulate({ schedule: "latest" })];
  const [one, other] = UnixSocket.pair();
  const pool = new DeviceMemoryResource(here.device(0), { shareable: true });
  return { here, there, owner: new MemoryChannel(one, here), user: new MemoryChannel(other, there), pool };
}

/** Two workers, and an endpoint from one to the other. */
async function twoWorkers() {
  const ucx = Ucx.open();
  const [sender, receiver] = [ucx.createWorker(), ucx.createWorker()];
  const endpoint = await sender.connect(receiver.address);
  const close = async () => {
    await Promise.all([sender.close(), receiver.close()]);
    ucx.close();
  };
  return { endpoint, sender, receiver, [Symbol.asyncDispose]: close };
}

/** A Python function that retains its argument until told to release it. */
function keeper() {
  const py = Python.open(typeof python === "string" ? {} : { home: python.executable });
  py.import("numpy");
  py.run("kept = []\ndef keep(x): kept.append(x)\ndef forget(): kept.clear()");
  return py;
}

export const elsewhereRows: Readonly<Record<string, OwnershipRow>> = {
  "`readNpy(file)`": {
    async ends() {
      const view = await readNpy(digits);
      view.close();
      assert(view.buffer.isClosed);
      const path = join(mkdtempSync(join(tmpdir(), "causeway-owner-")), "two.npz");
      await writeNpz(path, { one: StridedMemoryView.zeros([1]), two: StridedMemoryView.zeros([2]) });
      const arrays = await readNpz(path);
      arrays.close();
      assertEquals([...arrays.values()].map(({ buffer }) => buffer.isClosed), [true, true]);
      rmSync(dirname(path), { recursive: true });
    },
    drop: () => {
      const memory = new CountedMemory();
      return { once: () => readNpy(digits, { memory }), ended: () => memory.freed };
    },
  },
  "`openNpy(path)`": {
    ends() {
      const view = openNpy(digits);
      assertEquals(mappings(), 1);
      view.close();
      assertEquals(mappings(), 0);
    },
    drop: () => {
      let made = 0;
      return { once: () => void (made++, openNpy(digits)), ended: () => made - mappings() };
    },
  },
  "`buffer.copyTo(array, { stream })`": {
    ends() {
      const { stream, memory, there } = late();
      {
        using source = memory.allocate(16);
        source.copyTo(there, { stream });
      }
      liveExports();
      assertEquals(memory.freed, 0);
      stream.synchronize();
      liveExports();
      assertEquals(memory.freed, 1);
    },
  },
  "`kernel.launch(stream, grid, block, [buffer])`": {
    ends() {
      const { device, stream, there } = late();
      using program = device.loadPtx(addPtx);
      program.kernel("add").launch(stream, 1, 4, [there, ["uint32", 4], ["uint32", 1]]);
      there.close(); // in order: the stream is its home
      stream.synchronize();
      assertEquals(device.memory.pool.use.used, 0);
    },
  },
  "`stream.capture(work)`": {
    ends() {
      const { stream, memory, there } = late();
      const source = memory.allocate(16);
      const graph = stream.capture(() => source.copyTo(there, { stream }));
      source.close();
      const exec = graph.instantiate();
      graph.close();
      assertEquals(memory.freed, 0);
      exec.launch(stream);
      stream.synchronize();
      exec.close();
      liveExports();
      assertEquals(memory.freed, 1);
    },
    drop: () => {
      const { stream, memory, there } = late();
      return {
        once: () => {
          using source = memory.allocate(16);
          stream.capture(() => source.copyTo(there, { stream }));
        },
        ended: () => memory.freed,
      };
    },
  },
  "`channel.send({ buffer })`": {
    async ends() {
      const { owner, user, here, pool } = sharing();
      {
        using buffer = pool.allocate(64);
        await owner.send({ buffer });
      }
      here.device(0).synchronize();
      assertEquals(pool.pool.use.used, 64);
      const { buffer } = await user.receive() as { buffer: MemoryBuffer };
      buffer.close();
      const { used } = pool.pool.use;
      await until(() => (here.device(0).synchronize(), owner.shared === 0 && pool.pool.use.used === 0));
      assertEquals([used, owner.shared, pool.pool.use.used], [64, 0, 0]);
      owner.close();
      user.close();
    },
  },
  "`channel.receive()`": {
    async ends() {
      const { owner, user, pool } = sharing();
      using buffer = pool.allocate(64);
      await owner.send({ buffer });
      const got = await user.receive() as { buffer: MemoryBuffer };
      assertEquals(owner.shared, 1);
      got.buffer.close();
      await until(() => owner.shared === 0);
      assert(owner.shared === 0 && !buffer.isClosed);
      owner.close();
      user.close();
    },
    drop: (stack) => {
      const { owner, user, pool } = sharing();
      stack.use(owner);
      stack.use(user);
      const buffer = stack.use(pool.allocate(64));
      let sent = 0;
      return {
        once: async () => {
          sent++;
          await owner.send({ buffer });
          await user.receive();
        },
        ended: () => sent - owner.shared,
      };
    },
  },
  "`buffer.exportDescriptor()`": {
    ends() {
      const { here, pool } = sharing();
      const buffer = pool.allocate(64);
      buffer.exportDescriptor();
      buffer.close();
      here.device(0).synchronize();
      assertEquals(pool.pool.use.used, 0);
    },
  },
  "`imported.importBuffer(descriptor)`": {
    ends() {
      const { there, pool } = sharing();
      using file = pool.exportPool();
      using imported = DeviceMemoryResource.importPool(there.device(0), file);
      using buffer = pool.allocate(64);
      let returned = 0;
      imported.importBuffer(buffer.exportDescriptor(), { onRelease: () => returned++ }).close();
      assert(returned === 1 && !buffer.isClosed);
    },
    drop: (stack) => {
      const { there, pool } = sharing();
      const imported = stack.use(DeviceMemoryResource.importPool(there.device(0), stack.use(pool.exportPool())));
      const descriptor = stack.use(pool.allocate(64)).exportDescriptor();
      const returned = { count: 0 };
      return {
        once: () => void imported.importBuffer(descriptor, { onRelease: () => returned.count++ }),
        ended: () => returned.count,
      };
    },
  },
  "`resource.exportPool()`": {
    ends() {
      const { pool } = sharing();
      const before = openFiles();
      const file = pool.exportPool();
      assertEquals(openFiles(), before + 1);
      file.close();
      assertEquals(openFiles(), before);
      pool.allocate(64).close();
    },
    drop: () => {
      const { pool } = sharing();
      const before = openFiles();
      let made = 0;
      return { once: () => void (made++, pool.exportPool()), ended: () => before + made - openFiles() };
    },
  },
  "`endpoint.send(memory)`": {
    missing: ucxMissing,
    async ends() {
      await using two = await twoWorkers();
      const memory = new CountedMemory();
      const [from, into] = [memory.allocate(1 << 22), memory.allocate(1 << 22)];
      const done = Promise.all([two.endpoint.send(from, { tag: 1n }), two.receiver.recv(into, { tag: 1n })]);
      from.close();
      into.close();
      assertEquals(memory.freed, 0);
      await done;
      assertEquals(memory.freed, 2);
    },
  },
  "`endpoint.recvArray()`": {
    missing: ucxMissing,
    async ends() {
      await using two = await twoWorkers();
      const memory = new CountedMemory();
      await two.endpoint.sendArray(Float32Array.of(1));
      const array = await two.receiver.recvArray({ place: memory });
      assertEquals(array.toArray(), [1]);
      array.close();
      assertEquals(memory.freed, 1);
    },
    async drop(stack) {
      const two = stack.use(await twoWorkers());
      const memory = new CountedMemory();
      return {
        once: async () => {
          await two.endpoint.sendArray(Float32Array.of(1));
          await two.receiver.recvArray({ place: memory });
        },
        ended: () => memory.freed,
      };
    },
  },
  "`worker.register(memory)`": {
    missing: ucxMissing,
    async ends() {
      await using two = await twoWorkers();
      const memory = new CountedMemory();
      const buffer = memory.allocate(4096);
      const region = two.sender.register(buffer);
      buffer.close();
      assertEquals(memory.freed, 0);
      region.close();
      assertEquals(memory.freed, 1);
    },
    async drop(stack) {
      const two = stack.use(await twoWorkers());
      const memory = new CountedMemory();
      return {
        once: () => {
          using buffer = memory.allocate(4096);
          two.sender.register(buffer);
        },
        ended: () => memory.freed,
        last: () => two.sender.close(),
      };
    },
  },
  '`python.evaluate("f")(view)`': {
    missing: pythonMissing,
    ends() {
      const py = keeper();
      const memory = new CountedMemory();
      {
        using buffer = memory.allocate(16);
        py.evaluate("keep")(viewOf(buffer));
      }
      liveExports();
      assertEquals(memory.freed, 0);
      py.evaluate("forget")();
      liveExports();
      assertEquals(memory.freed, 1);
    },
  },
  "`StridedMemoryView.from(object)` of Python": {
    missing: pythonMissing,
    ends() {
      const py = keeper();
      py.run("import numpy, weakref\nmade = numpy.zeros(4)\nseen = weakref.ref(made)");
      const view = StridedMemoryView.from(py.evaluate("made"));
      py.run("del made");
      assertEquals(py.evaluate("seen() is None"), false);
      assertEquals(view.toArray(), [0, 0, 0, 0]);
      view.close();
      py.run("0");
      assertEquals(py.evaluate("seen() is None"), true);
    },
    drop: () => {
      const py = keeper();
      py.run(
        "import numpy, weakref\nrefs = []\ndef make():\n  a = numpy.zeros(4)\n  refs.append(weakref.ref(a))\n  return a",
      );
      const make = py.evaluate("make");
      return {
        once: () => void make(),
        ended: () => Number(py.evaluate("sum(ref() is None for ref in refs)")),
      };
    },
  },
  "`openVortex(path)`": {
    async ends() {
      const before = openFiles();
      const file = await openVortex("examples/trips.vortex");
      assertEquals(openFiles(), before + 1);
      file.close();
      assertEquals(openFiles(), before);
    },
    drop: () => {
      const before = openFiles();
      let made = 0;
      return {
        once: async () => void (made++, await openVortex("examples/trips.vortex")),
        ended: () => before + made - openFiles(),
      };
    },
  },
  "`vortexArray.toArrow()`": {
    async ends() {
      using file = await openVortex("examples/trips.vortex");
      for await (const batch of file.scan({ columns: ["fare"], rows: [0, 2] })) {
        const array = batch.toArrow();
        array.close();
        assertEquals(array.toArray().length, 2);
      }
    },
  },
};
