/**
 * Memory that JavaScript transfers while UCX has it: the operation ends with an error that says so, a receive whose
 * message has not arrived is cancelled, and everything else works as before.
 */
import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { test } from "node:test";
import { setImmediate as turn, setTimeout as pause } from "node:timers/promises";
import { Cuda, HostMemoryResource, PinnedMemoryResource, Ucx, type UcxEndpoint, type UcxWorker } from "../../mod.ts";
import { openUcp } from "../../src/ucx/library.ts";
import type { ProgressMode } from "../../src/ucx/progress.ts";
import { check, fc } from "../support/property.ts";

/** Larger than UCX buffers unasked: it stays at the sender until the other side asks for it. */
const big = 1 << 20;

/** Memory that JavaScript can transfer, and views of it. */
const shapes = {
  "an ArrayBuffer": (memory: ArrayBuffer) => memory,
  "a typed array": (memory: ArrayBuffer) => new Uint8Array(memory),
  "a part of one": (memory: ArrayBuffer) => new Float32Array(memory, 8, memory.byteLength / 4 - 4),
  "a DataView": (memory: ArrayBuffer) => new DataView(memory, 3, memory.byteLength - 8),
} as const;
const shapeNames = fc.constantFrom(...Object.keys(shapes) as (keyof typeof shapes)[]); // its own keys

/** How JavaScript transfers memory. */
const transfers = {
  transfer: (memory: ArrayBuffer) => memory.transfer(),
  clone: (memory: ArrayBuffer) => structuredClone(memory, { transfer: [memory] }),
} as const;
const transferNames = fc.constantFrom(...Object.keys(transfers) as (keyof typeof transfers)[]); // its own keys

/** Both sides of a connection, with the worker of each. */
interface Ends {
  readonly here: UcxEndpoint;
  readonly there: UcxEndpoint;
  readonly sender: UcxWorker;
  readonly receiver: UcxWorker;
}

/** An operation in flight when its memory is transferred. */
interface InFlight {
  /** Begins it. */
  begin(ends: Ends, memory: ArrayBufferView | ArrayBuffer): Promise<unknown>;
  /** Makes UCX complete it, unless it has been cancelled. */
  finish(ends: Ends, bytes: number): Promise<unknown>;
}

const bytesOf = (length: number) => new Uint8Array(new ArrayBuffer(length)).fill(9);

async function takeMessage(endpoint: UcxEndpoint): Promise<Uint8Array | null> {
  for await (const message of endpoint.messages()) return await message.bytes();
  return null;
}

function asArray(memory: ArrayBufferView | ArrayBuffer): Uint8Array {
  if (memory instanceof ArrayBuffer) return new Uint8Array(memory);
  return new Uint8Array(memory.buffer, memory.byteOffset, memory.byteLength);
}

const operations = {
  recv: {
    begin: ({ receiver }, memory) => receiver.recv(memory, { tag: 1n }),
    // The receive gets the message, or, if it was cancelled before that arrived, the next one does. That one waits
    // until the message is taken: when it gave up after 50 ms, on a busy machine, no receive was left, and the send
    // never ended.
    finish: async ({ here, receiver }, bytes) => {
      const taken = new AbortController();
      const sent = here.send(bytesOf(bytes), { tag: 1n });
      const next = receiver.recv(bytesOf(bytes), { tag: 1n, signal: taken.signal }).catch(() => {});
      await sent;
      taken.abort();
      await next;
    },
  },
  send: {
    begin: ({ here }, memory) => here.send(memory, { tag: 2n }),
    finish: ({ receiver }, bytes) => receiver.recv(bytesOf(bytes), { tag: 2n }),
  },
  "send of a list": {
    begin: ({ here }, memory) => here.sendMessage([new Uint8Array(new ArrayBuffer(5)), memory]),
    finish: ({ there }) => takeMessage(there),
  },
  // It sent what was there by its address, and took no notice.
  array: {
    begin: ({ here }, memory) => here.sendArray(asArray(memory)),
    finish: async ({ there }) => (await there.recvArray()).close(),
  },
  "stream receive": {
    begin: ({ there }, memory) => there.rawStream.recvAll(memory),
    finish: ({ here }, bytes) => here.rawStream.send(bytesOf(bytes)),
  },
} as const satisfies Readonly<Record<string, InFlight>>;

const names = Object.keys(operations) as (keyof typeof operations)[]; // its own keys

// A busy worker never sleeps while operations are in flight, and finds out when they complete.
for (
  const [tls, progress] of [["tcp", "event"], ["sm,tcp", "event"], ["tcp", "busy"], ["sm,tcp", "adaptive"]] as const
) {
  const how = `${tls}, ${progress}`;
  test(`an operation whose memory is transferred in flight is an error, and others continue: ${how}`, async () => {
    using ucx = Ucx.open({ config: { TLS: tls } });
    const { here, there, close, workers: [receiver, sender] } = await connected(ucx, progress);
    const ends = { here, there, sender, receiver };
    let number = 0;
    await check(
      fc.asyncProperty(
        fc.constantFrom(...names),
        shapeNames,
        transferNames,
        fc.constantFrom(0, 20),
        async (name, shape, how, wait) => {
          const operation: InFlight = operations[name];
          const memory = bytesOf(big).buffer;
          const seen = shapes[shape](memory);
          const length = seen.byteLength;
          const end = assertRejects(() => operation.begin(ends, seen), TypeError, "transferred");
          const moved = transfers[how](memory);
          if (wait > 0) await pause(wait); // the workers sleep
          await Promise.all([operation.finish(ends, length), end]);
          assertEquals(moved.byteLength, big); // it is still alive here
          // Nothing sent is left over, and the next message is whole.
          const into = new Uint8Array(300);
          const next = Uint8Array.from(into, (_, i) => i + number);
          number++;
          await Promise.all([here.send(next, { tag: 7n }), receiver.recv(into, { tag: 7n })]);
          assertEquals(into, next);
        },
      ),
      20,
      { endOnFailure: true }, // what a failure leaves behind goes to the next case
    );
    await close();
  });
}

/** Two endpoints connected to each other, and their workers. */
async function connected(ucx: Ucx, progress: ProgressMode = "event") {
  const workers = [ucx.createWorker({ progress }), ucx.createWorker({ progress })] as const;
  const [receiver, sender] = workers;
  const listener = receiver.listen();
  const [here, there] = await Promise.all([sender.connect(listener), listener.accept()]);
  assert(there !== null);
  await listener.close();
  await Promise.all([here.send(bytesOf(8)), receiver.recv(bytesOf(8))]); // the connection is established
  const close = async () => {
    await Promise.all(workers.map((worker) => worker.close()));
  };
  return { here, there, close, workers };
}

/** Counts calls of UCX, to tell when all workers sleep: on a busy machine that takes longer than any fixed pause. */
function watchSleep() {
  const { functions: { worker, wakeup } } = openUcp();
  const { ucp_worker_progress: progress } = worker;
  const { ucp_worker_arm: arm } = wakeup;
  let calls = 0;
  const replace = (own: typeof progress, arms: typeof arm) => {
    Object.defineProperty(worker, "ucp_worker_progress", { configurable: true, value: own });
    Object.defineProperty(wakeup, "ucp_worker_arm", { configurable: true, value: arms });
  };
  replace((handle) => (calls++, progress(handle)), (handle) => (calls++, arm(handle)));
  return {
    /** Settles when no worker has had anything to do for several turns of the event loop. */
    asleep: async () => {
      for (let quiet = 0; quiet < 3;) {
        const before = calls;
        await pause(5);
        await turn();
        quiet = calls === before ? quiet + 1 : 0;
      }
    },
    [Symbol.dispose]: () => replace(progress, arm),
  };
}

for (const tls of ["tcp", "sm,tcp"]) {
  test(`a receive whose memory is transferred while its worker sleeps is cancelled in time: ${tls}`, async () => {
    using workers = watchSleep();
    using ucx = Ucx.open({ config: { TLS: tls } });
    const { here, close, workers: [receiver] } = await connected(ucx);
    for (const size of [1, 5000, big]) {
      const memory = new ArrayBuffer(size);
      const end = assertRejects(() => receiver.recv(memory, { tag: 3n }), TypeError, "transferred");
      await workers.asleep(); // one that polls takes the message: the next receive never ended
      const moved = new Uint8Array(memory.transfer());
      const sent = here.send(bytesOf(size), { tag: 3n });
      await end;
      const into = new Uint8Array(new ArrayBuffer(size));
      await Promise.all([sent, receiver.recv(into, { tag: 3n, timeout: 30_000 })]);
      assert(into.every((byte) => byte === 9), "the message is the next receive's");
      assert(moved.every((byte) => byte === 0), "transferred memory was written to");
    }
    await close();
  });
}

test("memory that UCX is done with may be transferred at once", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  const { here, close, workers: [receiver] } = await connected(ucx);
  const memory = bytesOf(8);
  const sent = here.send(memory);
  memory.buffer.transfer();
  await sent; // UCX copies so few bytes
  const into = bytesOf(8);
  into.fill(0);
  await receiver.recv(into);
  assertEquals(into, bytesOf(8));
  await close();
});

test("memory that is transferred before its operation begins is never sent, nor received into", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  const { here, close, workers: [receiver] } = await connected(ucx);
  const cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  const stream = device.createStream();
  using first = new PinnedMemoryResource(device).allocate(4, { stream });
  const later: ((memory: ArrayBuffer) => Promise<unknown>)[] = [
    (memory) => here.send(memory),
    (memory) => here.sendMessage([first, memory]),
    (memory) => here.sendMany([memory]),
    (memory) => receiver.recv(memory),
  ];
  for (const begin of later) {
    assertEquals(cuda.driver.fill.cuMemsetD8Async(first.ptr, 1, 4n, stream.handle), 0);
    const waits = begin === later.at(-1) ? receiver.recv(first, { tag: 5n }) : here.send(first, { tag: 5n });
    const memory = new ArrayBuffer(8);
    const refused = assertRejects(() => begin(memory), TypeError, "transferred");
    memory.transfer();
    await refused;
    await (begin === later.at(-1) ? here.send(new Uint8Array(4), { tag: 5n }) : receiver.recv(bytesOf(4), { tag: 5n }));
    await waits;
  }
  assertEquals(receiver.probe(), null);
  await here.flush();
  await close();
});

test("memory that was transferred, or can be resized, is refused before anything begins", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  const { here, there, close, workers: [receiver] } = await connected(ucx);
  const region = receiver.register(new HostMemoryResource().allocate(8));
  const key = here.remote(region.key);
  const begins: Readonly<Record<string, (what: ArrayBuffer | ArrayBufferView) => unknown>> = {
    send: (what) => here.send(what),
    sendSync: (what) => here.sendSync(what),
    sendMany: (what) => here.sendMany([what]),
    sendMessage: (what) => here.sendMessage(what),
    "sendMessage of a list": (what) => here.sendMessage([new Uint8Array(1), what]),
    "stream send": (what) => here.rawStream.send(what),
    put: (what) => here.put(what, key),
    get: (what) => here.get(what, key),
    recv: (what) => receiver.recv(what),
    recvSync: (what) => receiver.recvSync(what),
    "stream receive": (what) => there.rawStream.recvAll(what),
    register: (what) => receiver.register(what),
  };
  const refuse = async (begin: () => unknown) => {
    try {
      await begin();
    } catch (error) {
      return error;
    }
    return null;
  };
  for (const [name, begin] of Object.entries(begins)) {
    for (const shape of Object.values(shapes)) {
      const gone = new ArrayBuffer(32);
      const what = shape(gone);
      gone.transfer();
      for (
        const [given, why] of [[what, "transferred"], [
          shape(new ArrayBuffer(32, { maxByteLength: 64 })),
          "resizable",
        ]] as const
      ) {
        const error = await refuse(() => begin(given));
        assertInstanceOf(error, TypeError, `${name}: ${why}`);
        assert(error.message.includes(why), `${name}: ${error.message}`);
      }
    }
  }
  assertEquals(receiver.probe(), null);
  region.close();
  await close();
});
