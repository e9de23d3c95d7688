/**
 * How workers, endpoints and operations end: closed, forced, cancelled, and in any order.
 */
import { assert, assertEquals, assertInstanceOf, assertRejects, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { libc } from "../../src/ffi/libc.ts";
import { MemoryBuffer } from "../../src/memory/memory_buffer.ts";
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import { UcxError } from "../../src/ucx/error.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import type { UcxWorker } from "../../src/ucx/worker.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";
import { patiently, runScript } from "../support/child.ts";
import { assertContent, contentOf, turns } from "../support/ucx_messages.ts";

/** Larger than UCX buffers unasked: a message of this size waits for its receiver. */
const big = 1 << 20;

/** Two workers and the endpoint from the first to the second. */
interface Pair {
  readonly ucx: Ucx;
  readonly sender: UcxWorker;
  readonly receiver: UcxWorker;
  readonly endpoint: UcxEndpoint;
}

/** Settings of UCX_TLS, passed as configuration here and as environment variable in the tests with child processes. */
const settings = [undefined, "tcp", "sm"] as const;

async function open(tls: string | undefined): Promise<Pair> {
  const ucx = Ucx.open(tls === undefined ? {} : { config: { TLS: tls } });
  const [sender, receiver] = [ucx.createWorker(), ucx.createWorker()];
  const endpoint = await sender.connect(receiver.address);
  // The first message makes the connection.
  await Promise.all([endpoint.send(new Uint8Array(1)), receiver.recv(new Uint8Array(1))]);
  return { ucx, sender, receiver, endpoint };
}

async function close({ ucx, sender, receiver }: Pair): Promise<void> {
  await Promise.all([sender.close(), receiver.close()]);
  ucx.close();
}

/** Memory that counts how often it is freed. */
function countedBuffer(size: number): { buffer: MemoryBuffer; freed: () => number } {
  let frees = 0;
  const free = (ptr: bigint) => {
    frees++;
    libc().loading.free(ptr);
  };
  const ptr = libc().loading.calloc(1n, BigInt(size));
  return { buffer: MemoryBuffer.fromAllocation({ ptr, size, device: null, stream: null, free }), freed: () => frees };
}

/** The current state of a promise. */
async function stateOf(promise: Promise<unknown>): Promise<"pending" | "resolved" | "rejected"> {
  const pending = {};
  try {
    return await Promise.race([promise, Promise.resolve(pending)]) === pending ? "pending" : "resolved";
  } catch {
    return "rejected";
  }
}

for (const tls of settings) {
  const over = `UCX_TLS ${tls ?? "unset"}`;

  test(`closing twice is harmless, in any order, and every use afterwards is refused: ${over}`, async () => {
    const { ucx, sender, receiver, endpoint } = await open(tls);
    const address = receiver.address;
    await Promise.all([endpoint.close(), endpoint.close()]);
    await endpoint.close({ force: true });
    await endpoint[Symbol.asyncDispose]();
    assertEquals(await endpoint.closed, null);
    await assertRejects(() => endpoint.send(new Uint8Array(1)), TypeError, "Cannot send: the endpoint is closed");
    assertThrows(() => endpoint.transports(), TypeError, "the endpoint is closed");

    await Promise.all([receiver.close(), receiver.close()]);
    receiver.abort();
    await receiver[Symbol.asyncDispose]();
    await assertRejects(() => receiver.recv(new Uint8Array(1)), TypeError, "Cannot receive: the worker is closed");
    await assertRejects(() => receiver.connect(address), TypeError, "Cannot connect: the worker is closed");
    const fresh = ucx.createWorker();
    fresh.abort();
    assertThrows(() => fresh.address, TypeError, "Cannot read the address: the worker is closed");

    ucx.close();
    ucx.close();
    ucx[Symbol.dispose]();
    assertThrows(() => ucx.createWorker(), TypeError, "this Ucx is closed");
    assertThrows(() => ucx.transports(), TypeError, "this Ucx is closed");
    await sender.close(); // closed with its context
    await assertRejects(() => sender.recv(new Uint8Array(1)), TypeError, "the worker is closed");
  });

  test(`closing a worker ends its receives and releases their memory: ${over}`, async () => {
    const pair = await open(tls);
    const { buffer, freed } = countedBuffer(64);
    const viewed = countedBuffer(64);
    const view = StridedMemoryView.fromBuffer(viewed.buffer, { shape: [64], dtype: "uint8" });
    const receives = [
      pair.receiver.recv(new Uint8Array(8), { tag: 5n }),
      pair.receiver.recv(buffer, { tag: 6n }),
      pair.receiver.recv(view, { tag: 6n }),
      pair.receiver.recv(new Uint8Array(big), { mask: 0n }),
    ];
    buffer.close();
    viewed.buffer.close();
    await turns(5);
    assertEquals([freed(), viewed.freed()], [0, 0], "UCX may still write to it");
    const outcomes = Promise.allSettled(receives);
    await pair.receiver.close();
    for (const outcome of await outcomes) {
      assert(outcome.status === "rejected");
      assertInstanceOf(outcome.reason, TypeError);
      assertEquals(outcome.reason.message, "The worker was closed");
    }
    assertEquals([freed(), viewed.freed()], [1, 1]);
    await close(pair);
  });

  test(`a worker that only waits to be connected to answers its peers: ${over}`, async () => {
    using ucx = Ucx.open(tls === undefined ? {} : { config: { TLS: tls } });
    await using sender = ucx.createWorker();
    await using receiver = ucx.createWorker();
    const endpoint = await sender.connect(receiver.address);
    await endpoint.send(new Uint8Array(1));
    await endpoint.close(); // after the message has arrived, which needs the other side
    assertEquals((await receiver.recv(new Uint8Array(8))).length, 1);
  });

  test(`closing the context ends open workers, endpoints and sends at once: ${over}`, async () => {
    const { ucx, sender, receiver, endpoint } = await open(tls);
    const { buffer, freed } = countedBuffer(big);
    const work = [
      endpoint.send(buffer, { tag: 1n }),
      endpoint.send(new Uint8Array(big), { tag: 2n }),
      receiver.recv(new Uint8Array(4), { tag: 3n }),
      sender.recv(new Uint8Array(4), { tag: 3n }),
    ];
    const outcomes = Promise.allSettled(work);
    buffer.close();
    await turns(10);
    ucx.close();
    assertEquals((await outcomes).map(({ status }) => status), work.map(() => "rejected"));
    assertEquals(await endpoint.closed, null);
    assertEquals(freed(), 1, "nothing uses the memory any more");
    await endpoint.close();
    await sender.close();
  });

  test(`an endpoint closes after its sends have arrived: ${over}`, async () => {
    const pair = await open(tls);
    const { endpoint, receiver } = pair;
    const sends = [0, 1, 2].map((i) => endpoint.send(contentOf(i, i === 1 ? big : 100), { tag: 4n }));
    const closing = endpoint.close();
    await turns(50);
    assertEquals(await stateOf(closing), "pending", "the second message has not arrived");
    assertThrows(() => endpoint.transports(), TypeError, "the endpoint is closed");
    for (const index of [0, 1, 2]) {
      const into = new Uint8Array(big);
      const { length } = await receiver.recv(into, { tag: 4n });
      assertContent(into.subarray(0, length), index);
    }
    await closing;
    await Promise.all(sends);
    assertEquals(await endpoint.closed, null);
    await close(pair);
  });

  test(`force ends sends and a close that waits for them: ${over}`, async () => {
    const pair = await open(tls);
    const { endpoint } = pair;
    const { buffer, freed } = countedBuffer(big);
    const send = assertRejects(() => endpoint.send(buffer, { tag: 4n }), UcxError);
    buffer.close();
    const closing = endpoint.close();
    await turns(20);
    assertEquals([await stateOf(closing), freed()], ["pending", 0]);
    await endpoint.close({ force: true });
    await closing;
    assertEquals((await send).statusName, "UCS_ERR_CANCELED");
    assertEquals([await endpoint.closed, freed()], [null, 1]);
    await close(pair);
  });

  // Without the worker's last message, UCX before 1.14 aborts the process of the receiver: openucx/ucx#8175.
  test(`a receiver survives a sender that closes by force in the middle of a large send: ${over}`, async () => {
    for (let round = 0; round < 5; round++) {
      const { ucx, sender, receiver, endpoint } = await open(tls);
      const send = assertRejects(() => endpoint.send(new Uint8Array(big), { tag: 4n }), UcxError);
      await endpoint.close({ force: true });
      await send;
      await sender.close();
      await pause(50);
      await receiver.close();
      ucx.close();
    }
  });

  test(`the memory of a send that was given up stays until UCX is done with it, at the latest with its worker: ${over}`, async () => {
    for (const isReceived of [true, false]) {
      const { ucx, endpoint, sender, receiver } = await open(tls);
      const { buffer, freed } = countedBuffer(big);
      buffer.bytes().set(contentOf(7, big));
      await assertRejects(() => endpoint.send(buffer, { tag: 1n, timeout: 20 }), UcxError, "UCS_ERR_TIMED_OUT");
      buffer.close();
      await turns(20);
      if (ucx.version.startsWith("1.13.")) assertEquals(freed(), 0, "this UCX cannot cancel a send");
      if (isReceived && freed() === 0) {
        const into = new Uint8Array(big);
        await receiver.recv(into, { tag: 1n });
        assertContent(into, 7);
      }
      for (const worker of [receiver, sender]) worker.abort();
      assertEquals(freed(), 1);
      ucx.close();
    }
  });

  test(`the memory of a send stays until UCX is done with it, although its buffer is closed: ${over}`, async () => {
    const pair = await open(tls);
    const { buffer, freed } = countedBuffer(big);
    buffer.bytes().set(contentOf(7, big));
    const send = pair.endpoint.send(buffer, { tag: 1n });
    buffer.close();
    await turns(20);
    assertEquals(freed(), 0);
    const into = new Uint8Array(big);
    await pair.receiver.recv(into, { tag: 1n });
    await send;
    assertEquals(freed(), 1);
    assertContent(into, 7);
    await close(pair);
  });

  test(`a cancelled receive takes no message, and its memory is released: ${over}`, async () => {
    const pair = await open(tls);
    const { endpoint, receiver } = pair;
    const controller = new AbortController();
    const into = new Uint8Array(8).fill(9);
    const reason = new Error("changed my mind");
    const receive = receiver.recv(into, { tag: 1n, signal: controller.signal });
    await turns(5);
    controller.abort(reason);
    const error = await receive.catch((error: unknown) => error);
    assertStrictEquals(error, reason);
    const { buffer, freed } = countedBuffer(8);
    const stop = new AbortController();
    const ended = receiver.recv(buffer, { tag: 1n, signal: stop.signal }).catch(() => freed());
    buffer.close();
    stop.abort();
    assertEquals([freed(), await ended], [1, 1], "it is released when the promise is rejected");
    await endpoint.send(new Uint8Array([1, 2, 3]), { tag: 1n });
    const next = new Uint8Array(8);
    assertEquals(await receiver.recv(next, { tag: 1n }), { length: 3, tag: 1n });
    assertEquals([[...into], [...next]], [[9, 9, 9, 9, 9, 9, 9, 9], [1, 2, 3, 0, 0, 0, 0, 0]]);

    // Signals that fire too early and too late.
    const late = new AbortController();
    const done = receiver.recv(next, { tag: 2n, signal: late.signal });
    await endpoint.send(new Uint8Array(5), { tag: 2n, signal: late.signal });
    assertEquals((await done).length, 5);
    late.abort(reason);
    assertStrictEquals(await receiver.recv(next, { signal: late.signal }).catch((error: unknown) => error), reason);
    assertStrictEquals(await endpoint.send(next, { signal: late.signal }).catch((error: unknown) => error), reason);
    await close(pair);
  });

  test(`a cancelled send ends at once for its caller, and pins its memory until UCX is done: ${over}`, async () => {
    const pair = await open(tls);
    const { endpoint, receiver } = pair;
    const controller = new AbortController();
    const { buffer, freed } = countedBuffer(big);
    const reason = new Error("changed my mind");
    const send = endpoint.send(buffer, { tag: 1n, signal: controller.signal }).then(() => "sent", (error) => error);
    buffer.close();
    await turns(5);
    controller.abort(reason);
    const into = new Uint8Array(big);
    const stop = new AbortController();
    const receive = receiver.recv(into, { tag: 1n, signal: stop.signal }).then(() => "received", () => "none");
    assertStrictEquals(await send, reason);
    stop.abort(); // whether the message has arrived is up to UCX
    await receive;
    assert(freed() <= 1);
    // A message that has not arrived by now is never received: a close without a limit would wait for that.
    await pair.sender.close({ timeout: 1000 });
    await close(pair);
    assertEquals(freed(), 1);
  });

  test(`an endpoint that reuses the handle of a forced one is closed by its worker: ${over}`, async () => {
    const pair = await open(tls);
    const { sender, receiver } = pair;
    const made: UcxEndpoint[] = [];
    for (let i = 0; i < 10; i++) {
      const first = await sender.connect(receiver.address);
      const closing = first.close({ force: true });
      const second = sender.connect(receiver.address); // begun before the close has completed
      await closing;
      made.push(await second);
    }
    await sender.close();
    for (const endpoint of made) {
      await assertRejects(() => endpoint.send(new Uint8Array(1)), TypeError, "the endpoint is closed");
      assertEquals(await endpoint.closed, null);
    }
    await close(pair);
  });

  test(`a worker talks to itself: ${over}`, async () => {
    using ucx = Ucx.open(tls === undefined ? {} : { config: { TLS: tls } });
    await using worker = ucx.createWorker();
    const endpoint = await worker.connect(worker.address);
    const into = new Uint8Array(big);
    const [, received] = await Promise.all([
      endpoint.send(contentOf(3, big), { tag: 9n }),
      worker.recv(into, { tag: 9n }),
    ]);
    assertEquals(received, { length: big, tag: 9n });
    assertContent(into, 3);
  });
}

test("a block that throws ends although its send of 50 MB is never received", patiently, async () => {
  using ucx = Ucx.open();
  await using other = ucx.createWorker();
  const start = performance.now();
  let send: Promise<unknown> = Promise.resolve();
  await assertRejects(
    async () => {
      await using worker = ucx.createWorker();
      const endpoint = await worker.connect(other.address);
      send = endpoint.send(new Uint8Array(50 << 20)).then(() => "sent", (error: unknown) => error);
      throw new Error("mine");
    },
    Error,
    "mine",
  );
  assertInstanceOf(await send, Error);
  assert(performance.now() - start < 8000, `${performance.now() - start} ms`);
});

test("a close continues by force after its timeout, and an invalid timeout is refused", async () => {
  using ucx = Ucx.open();
  await using other = ucx.createWorker();
  await using worker = ucx.createWorker();
  const endpoint = await worker.connect(other.address);
  await assertRejects(() => endpoint.close({ timeout: -1 }), RangeError, "Cannot wait for -1 ms");
  await assertRejects(() => worker.close({ timeout: NaN }), RangeError, "Cannot wait for NaN ms");
  const send = endpoint.send(new Uint8Array(50 << 20)).then(() => "sent", (error: unknown) => error);
  await endpoint.close({ timeout: 20 });
  assertInstanceOf(await send, Error);
});

test("a close continues by force once its signal is aborted, and one without a limit waits", async () => {
  using ucx = Ucx.open();
  for (const what of ["endpoint", "worker"] as const) {
    for (const isAbortedBefore of [false, true]) {
      await using other = ucx.createWorker();
      await using worker = ucx.createWorker();
      const endpoint = await worker.connect(other.address);
      const closed = { endpoint, worker }[what];
      const send = endpoint.send(new Uint8Array(50 << 20)).then(() => "sent", (error: unknown) => error);
      const signal = isAbortedBefore ? AbortSignal.abort() : AbortSignal.timeout(20);
      await closed.close({ signal });
      assertInstanceOf(await send, Error, what);
    }
    await using other = ucx.createWorker();
    await using worker = ucx.createWorker();
    const endpoint = await worker.connect(other.address);
    const [size, into] = [3_000_000, new Uint8Array(3_000_000)];
    const send = endpoint.send(new Uint8Array(size));
    // A timer of that length would fire at once.
    const closing = { endpoint, worker }[what].close({ timeout: Infinity, signal: new AbortController().signal });
    await pause(20);
    assertEquals((await other.recv(into)).length, size);
    await Promise.all([send, closing]);
  }
});

// UCX 1.13 ended the process with a failed assertion (ucp_ep.c:437), whichever receive took the data.
test("an endpoint is closed in order while large messages arrive through it, and all of them settle", async () => {
  for (const receives of ["endpoint", "worker"] as const) {
    using ucx = Ucx.open();
    await using worker = ucx.createWorker();
    await using other = ucx.createWorker();
    const listener = other.listen();
    const [endpoint, peer] = await Promise.all([
      worker.connect({ host: listener.host, port: listener.port }),
      listener.accept(),
    ]);
    assert(peer !== null);
    const parts = [1, 2].map((byte) => new Uint8Array(1_200_000).fill(byte));
    const sent = endpoint.sendMany(parts, { tag: 3n });
    const received = { endpoint: peer, worker: other }[receives].recvMany({ tag: 3n });
    const closed = peer.close();
    for (const one of await Promise.allSettled([sent, received])) {
      if (one.status === "rejected") assert(/clos|cancel|reset/i.test(`${one.reason}`), `${one.reason}`);
    }
    await closed;
  }
});

// UCX took the signal as one to debug itself, and a process in Bun went on when its terminal had closed.
test("a process that has opened UCX ends with its terminal", async () => {
  const script = new URL("hang_up_child.ts", import.meta.url);
  const { signal, stderr } = await runScript(script, { timeout: 8000 });
  assertEquals(signal, "SIGHUP", stderr);
});

// UCX 1.13 took the signal: in Bun an error of a WebAssembly module was reported as a fault, and in a trial ended it.
test("a process that has opened UCX keeps its runtime's signals", async () => {
  const script = new URL("trap_child.ts", import.meta.url);
  const { code, stdout, stderr } = await runScript(script, { timeout: 20_000 });
  assertEquals([code, stdout.trim()], [0, "out of bounds"], stderr);
  assert(!stderr.includes("Caught signal"), stderr); // by UCX, whether or not the process goes on
});

test("a worker that is aborted while it answers a connecting peer's large message harms nothing else", async () => {
  // UCX 1.13 ended the process with a failed assertion (ucp_request.c: UCP_WIREUP_MSG_EP_REMOVED): such a worker stays.
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  for (let i = 0; i < 12; i++) {
    const [worker, other] = [ucx.createWorker(), ucx.createWorker()];
    const endpoint = await worker.connect(other.address);
    for (let tag = 0n; tag < 5n; tag++) endpoint.send(new Uint8Array(3_000_000), { tag }).catch(() => {});
    await pause(i % 4);
    other.abort();
    await pause(50);
    worker.abort();
  }
});
