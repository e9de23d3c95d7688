/** Limits end any operation they are given to, at any time, and consume no message that arrives later. */
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import process from "node:process";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import {
  HostMemoryResource,
  type MemoryBuffer,
  StridedMemoryView,
  Ucx,
  type UcxEndpoint,
  UcxError,
  type UcxWorker,
} from "../../mod.ts";
import { trailerBytes, withTrailer } from "../../src/ucx/address.ts";
import { ownIdentity } from "../../src/ucx/process_identity.ts";
import type { UcxRemoteKey } from "../../src/ucx/remote_memory.ts";
import type { UcxActiveMessage } from "../../src/ucx/active_messages/active_messages.ts";
import type { LimitOptions } from "../../src/ucx/limit.ts";
import { partHeaders } from "../../src/ucx/message_parts.ts";
import { patiently, startScript } from "../support/child.ts";
import { check, fc } from "../support/property.ts";
import { assertContent } from "../support/ucx_messages.ts";
import { unwritten } from "./unwritten.ts";

interface Scene {
  readonly endpoint: UcxEndpoint;
  readonly back: UcxEndpoint;
  readonly worker: UcxWorker;
  readonly other: UcxWorker;
  /** Memory whose owner answers no get and no atomic operation, and to which nothing is written. */
  readonly silent: UcxRemoteKey;
}

/** Larger than UCX buffers unasked: it stays at the sender until it is received. */
const large = new Uint8Array(new ArrayBuffer(4 << 20));

/** Operations that never complete on their own. */
const waits: Readonly<Record<string, (scene: Scene, limits: LimitOptions) => unknown>> = {
  "worker.recv": ({ worker }, limits) => worker.recv(new Uint8Array(1), { tag: 5n, ...limits }),
  "endpoint.recv": ({ back }, limits) => back.recv(new Uint8Array(1), { tag: 5n, ...limits }),
  "worker.recvMany": ({ worker }, limits) => worker.recvMany({ tag: 5n, ...limits }),
  "worker.recvMany behind another": ({ worker }, limits) => {
    worker.recvMany({ tag: 6n }).catch(() => {});
    return worker.recvMany({ tag: 6n, ...limits });
  },
  "endpoint.recvMany": ({ back }, limits) => back.recvMany({ tag: 5n, ...limits }),
  "worker.recvArray": ({ worker }, limits) => worker.recvArray(limits),
  "endpoint.recvArray": ({ back }, limits) => back.recvArray(limits),
  "rawStream.recvAll": ({ back }, limits) => back.rawStream.recvAll(new Uint8Array(1), limits),
  "a flush behind a send that waits for a stream": ({ endpoint }, limits) => {
    endpoint.send(unwritten(8).buffer, { tag: 9n }).catch(() => {});
    return endpoint.flush(limits);
  },
  "a send that waits for a stream": ({ endpoint }, limits) =>
    endpoint.send(unwritten(8).buffer, { tag: 9n, ...limits }),
  "a send that nobody receives": ({ endpoint }, limits) => endpoint.send(large, { tag: 8n, ...limits }),
  "sendMany": ({ endpoint }, limits) => endpoint.sendMany([large, large], { tag: 8n, ...limits }),
  "sendMessage": ({ endpoint }, limits) => endpoint.sendMessage(large, limits),
  "sendArray": ({ endpoint }, limits) => endpoint.sendArray(new Float64Array(large.buffer), limits),
  "get": ({ endpoint, silent }, limits) => endpoint.get(new Uint8Array(8), silent, 0, limits),
  "atomic": ({ endpoint, silent }, limits) => endpoint.atomic("add", silent, 0, 1n, limits),
  "a flush behind a get": ({ endpoint, silent }, limits) => {
    endpoint.get(new Uint8Array(8), silent).catch(() => {});
    return endpoint.flush(limits);
  },
  "a worker's flush behind a get": ({ endpoint, other, silent }, limits) => {
    endpoint.get(new Uint8Array(8), silent).catch(() => {});
    return other.flush(limits);
  },
};

/** Fails unless limits end an operation that would never complete. */
async function assertLimited(operation: (limits: LimitOptions) => Promise<unknown>): Promise<void> {
  const begin = (limits: LimitOptions) => Promise.race([operation(limits), pause(5000, null, { ref: false })]);
  await assertRejects(() => begin({ timeout: 20 }), Error, "UCS_ERR_TIMED_OUT");
  const reason = new RangeError("enough");
  await assertRejects(() => begin({ signal: AbortSignal.abort(reason) }), RangeError, "enough");
  for (const after of [null, 20]) {
    const end = new AbortController();
    const ended = begin({ signal: end.signal });
    if (after !== null) await pause(after);
    end.abort(reason);
    await assertRejects(() => ended, RangeError, "enough");
  }
}

for (const [name, wait] of Object.entries(waits)) {
  test(`limits end ${name}: a timeout, and a signal before, right after and later`, async () => {
    const config = { TLS: "tcp" };
    using ucx = Ucx.open({ config });
    using careful = Ucx.open({ config, remoteMemory: false });
    const [worker, other] = [careful.createWorker(), ucx.createWorker()];
    const back = await worker.connect(other.address, { errors: "none" });
    const endpoint = await other.connect(worker.address, { errors: "none" });
    await Promise.all([endpoint.send(new Uint8Array(1)), worker.recv(new Uint8Array(1))]); // until they are connected
    using region = other.register(new Uint8Array(new ArrayBuffer(8)));
    using silent = endpoint.remote(withTrailer(region.key.slice(0, -trailerBytes), ownIdentity())); // as if it were its own
    const scene = { endpoint, back, worker, other, silent };
    await assertLimited(async (limits) => await wait(scene, limits));
    worker.abort();
    other.abort();
  });
}

test("limits end what waits for a stopped process, and once it is resumed the rest goes on", patiently, async () => {
  const options = { args: ["offer"], env: { UCX_TLS: "tcp" } };
  const child = startScript(new URL("./peer.ts", import.meta.url), options, ["pipe", "pipe", "inherit"]);
  const { stdin, stdout, pid } = child;
  assert(stdin !== null && stdout !== null && pid !== undefined);
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  const next = async () => Uint8Array.fromHex(String((await lines.next()).value));
  await next(); // its address
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  const worker = ucx.createWorker();
  const listener = await worker.listen();
  stdin.write(`${listener.host} ${listener.port}\n`);
  const endpoint = await listener.accept();
  assert(endpoint !== null);
  using remote = endpoint.remote(await next());
  const messages = endpoint.messages()[Symbol.asyncIterator]();
  const message = async (): Promise<UcxActiveMessage> => (await messages.next()).value;
  const offered = [await message(), await message(), await message(), await message()];
  process.kill(pid, "SIGSTOP");
  const content = new Uint8Array(new ArrayBuffer(remote.size)); // more than the system buffers
  await assertLimited((limits) => endpoint.put(content, remote, 0, limits));
  await assertLimited((limits) => endpoint.rawStream.send(content, limits));
  await assertLimited((limits) => {
    const [first] = offered;
    assert(first !== undefined);
    if (limits.signal?.aborted !== true) offered.shift(); // else it has not begun
    return first.bytes(limits);
  });
  process.kill(pid, "SIGCONT");
  assertContent(await offered[0]?.bytes() ?? new Uint8Array(1), 3);
  await endpoint.flush();
  await endpoint.close({ force: true });
  worker.abort();
  const ended = once(child, "close");
  process.kill(pid, "SIGKILL");
  await ended;
});

test("receives of several parts end with their endpoint, also those queued behind others of their tag", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  await using other = ucx.createWorker();
  const endpoint = await worker.connect(other.address);
  const first = worker.recvMany({ tag: 1n });
  const later = [endpoint.recvMany({ tag: 1n }), endpoint.recvMany({ tag: 1n }), endpoint.recvMany({ tag: 2n })];
  const ends = later.map((one) => assertRejects(() => one, TypeError, "closed"));
  await endpoint.close({ force: true });
  await Promise.all(ends);
  // The worker's own receive continues, and gets the message that arrives.
  const sender = await other.connect(worker.address);
  await sender.sendMany([Uint8Array.of(3)], { tag: 1n });
  assertEquals((await first).map((view) => [...view.buffer.bytes()]), [[3]]);
});

test("a receive into memory that waits for its stream ends with its endpoint", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  await using other = ucx.createWorker();
  const endpoint = await worker.connect(other.address);
  const { buffer, finishWriting } = unwritten(8);
  const received = assertRejects(() => endpoint.recv(buffer), TypeError, "closed");
  await endpoint.close({ force: true });
  await received;
  finishWriting();
});

for (const count of [1, 150]) {
  test(`cancelling a message of parts in the middle leaves nothing for the next of its tag: ${count}`, async () => {
    using ucx = Ucx.open({ config: { TLS: "tcp" } });
    await using worker = ucx.createWorker();
    await using other = ucx.createWorker();
    const endpoint = await other.connect(worker.address);
    const end = new AbortController();
    const given = worker.recvMany({ tag: 1n, signal: end.signal });
    const next = worker.recvMany({ tag: 1n });
    const parts = Array.from({ length: count }, () => ({ bytes: 8, isCuda: false }));
    const [first = new Uint8Array(0), ...headers] = partHeaders(parts);
    await endpoint.send(first, { tag: 1n });
    const later = { tag: 2n }; // what arrives later has come after it, which is then taken
    await Promise.all([endpoint.send(new Uint8Array(1), later), worker.recv(new Uint8Array(1), later)]);
    await pause(1);
    end.abort(new RangeError("enough"));
    await assertRejects(() => given, RangeError, "enough");
    await pause(1);
    for (const header of headers) await endpoint.send(header, { tag: 1n });
    for (const _ of parts) await endpoint.send(new Uint8Array(8), { tag: 1n });
    await endpoint.sendMany([Uint8Array.of(4), Uint8Array.of(5)], { tag: 1n });
    assertEquals((await next).map((view) => [...view.buffer.bytes()]), [[4], [5]]);
  });
}

test("receives of several parts take whole messages in turn, although one between them times out", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  await using other = ucx.createWorker();
  const endpoint = await other.connect(worker.address);
  const first = worker.recvMany({ tag: 1n });
  const given = worker.recvMany({ tag: 1n, timeout: 10 });
  const last = worker.recvMany({ tag: 1n });
  await assertRejects(() => given, Error, "UCS_ERR_TIMED_OUT");
  for (const part of [1, 2]) await endpoint.sendMany([Uint8Array.of(part)], { tag: 1n });
  const received = await Promise.all([first, last]);
  assertEquals(received.map((views) => views.map((view) => [...view.buffer.bytes()])), [[[1]], [[2]]]);
});

test("parts are bounded by the bytes that they may have together, however short they are", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  const endpoint = await worker.connect(worker.address);
  const nothing = Array.from({ length: 101 }, () => new Uint8Array(0));
  const [parts] = await Promise.all([worker.recvMany({ messageBytes: 64 * 101 }), endpoint.sendMany(nothing)]);
  assertEquals(parts.length, 101);
  const sent = endpoint.sendMany(nothing, { tag: 1n });
  await assertRejects(() => worker.recvMany({ tag: 1n, messageBytes: 1000 }), UcxError, "101 parts");
  for (const messageBytes of [NaN, 0, -1, "1000" as unknown as number]) { // NaN was no limit, and none of the worker's
    await assertRejects(() => worker.recvMany({ tag: 9n, messageBytes }), RangeError, "Cannot limit messageBytes to");
  }
  await sent;
  const large = endpoint.sendMany([new Uint8Array(1001)], { tag: 2n });
  await assertRejects(() => worker.recvMany({ tag: 2n, messageBytes: 1000 }), UcxError, "1001 bytes");
  await large;
});

// They were taken for headers, which anybody could so forge.
test("the parts of a message that is refused are discarded, and the next one is received", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  await using other = ucx.createWorker();
  const endpoint = await other.connect(worker.address);
  const part = fc.constantFrom(0, 1, 100, 9000, 200_000);
  const sizesOf = fc.oneof(fc.array(part, { maxLength: 8 }), fc.array(part, { minLength: 101, maxLength: 240 }));
  const seen = new Set<string>();
  await check(
    fc.asyncProperty(sizesOf, fc.boolean(), async (sizes, isLimited) => {
      const [forged = new Uint8Array(0)] = partHeaders([{ bytes: 6, isCuda: false }]);
      const parts = [new Uint8Array(5), forged, ...sizes.map((size) => new Uint8Array(size))];
      const sent = endpoint.sendMany(parts, { tag: 5n });
      const then = endpoint.sendMany([Uint8Array.of(1), Uint8Array.of(2)], { tag: 5n });
      const options = isLimited ? { messageBytes: 1200 } : { place: new SmallResource() };
      const refused = await assertRejects(() => worker.recvMany({ tag: 5n, ...options }));
      seen.add(`${refused}`.replaceAll(/\d+/g, ""));
      const views = await worker.recvMany({ tag: 5n });
      assertEquals(views.map((view) => [...view.buffer.bytes()]), [[1], [2]]);
      await Promise.all([sent, then]);
    }),
    60,
  );
  assertEquals(seen.size, 2, [...seen].join());
  assert(SmallResource.made.length > 0 && SmallResource.made.every((buffer) => buffer.isClosed), "all is freed");
  const [impossible = new Uint8Array(0)] = partHeaders([{ bytes: 2 ** 62, isCuda: false }]);
  const huge = endpoint.send(impossible, { tag: 6n });
  await assertRejects(() => worker.recvMany({ tag: 6n }), UcxError, "are accepted");
  await huge;
});

/** A resource that has no memory for more than 1000 bytes: not for a header. */
class SmallResource extends HostMemoryResource {
  /** All buffers of all of them: parts of messages that were refused. */
  static readonly made: MemoryBuffer[] = [];

  override allocate(bytes: number): MemoryBuffer {
    if (bytes > 1000) throw new RangeError("no memory");
    const buffer = super.allocate(bytes);
    SmallResource.made.push(buffer);
    return buffer;
  }
}

test("a taken message whose receive was cancelled while it waited for a stream can still be received", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  const endpoint = await worker.connect(worker.address);
  await endpoint.send(Uint8Array.of(1, 2, 3));
  let message = worker.take();
  for (; message === null; message = worker.take()) await pause(1);
  const taken = message;
  const { buffer, finishWriting } = unwritten(8);
  await assertRejects(() => taken.recv(buffer, { timeout: 20 }), Error, "UCS_ERR_TIMED_OUT");
  const into = new Uint8Array(3);
  assertEquals((await taken.recv(into)).length, 3);
  assertEquals([...into], [1, 2, 3]);
  await assertRejects(() => taken.recv(into), TypeError, "twice");
  finishWriting();
});

test("an endpoint that is closed by force while it connects over TCP harms nothing else", async () => {
  // UCX 1.13 ended the process with a failed assertion at every other such close.
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  for (let i = 0; i < 10; i++) {
    await using worker = ucx.createWorker();
    await using other = ucx.createWorker();
    const endpoint = await worker.connect(other.address);
    await endpoint.close({ force: true });
    const sender = await other.connect(worker.address);
    const into = new Uint8Array(1);
    await Promise.all([sender.send(Uint8Array.of(i)), worker.recv(into)]);
    assertEquals(into[0], i);
    // Nor does a worker that is aborted at once.
    const gone = ucx.createWorker();
    void (await gone.connect(other.address)).close({ force: true });
    gone.abort();
  }
});

test("connecting to a port that never answers ends by its signal, right after the call and later", async () => {
  const silent = createServer(() => {}).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  for (const host of ["127.0.0.1", "localhost"]) {
    for (const after of [null, 0, 20]) {
      const end = new AbortController();
      const connected = worker.connect({ host, port }, { signal: end.signal });
      if (after !== null) await pause(after);
      end.abort(new RangeError("enough"));
      await assertRejects(() => connected, RangeError, "enough");
    }
    await assertRejects(() => worker.connect({ host, port }, { timeout: 20 }), Error, "UCS_ERR_TIMED_OUT");
  }
  silent.close();
});

test("a worker's flush covers its open endpoints: one that closes is no error", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  await using other = ucx.createWorker();
  const [closing, open] = [await worker.connect(other.address), await worker.connect(other.address)];
  const sent = closing.send(new Uint8Array(1_000_000), { tag: 1n }); // waits for its receiver
  const closed = closing.close();
  await open.send(Uint8Array.of(1), { tag: 2n });
  await worker.flush();
  await other.recv(new Uint8Array(1), { tag: 2n });
  await Promise.all([other.recv(new Uint8Array(1_000_000), { tag: 1n }), sent, closed]);
  await worker.flush();
});

/** A worker's endpoint to itself, and the key of eight bytes, which stay registered until the worker is closed. */
async function toItself(worker: UcxWorker) {
  const endpoint = await worker.connect(worker.address, { errors: "none" });
  const bytes = new Uint8Array(new ArrayBuffer(8));
  return { endpoint, bytes, key: endpoint.remote(worker.register(bytes).key) };
}

test("an invalid tag or operand is refused before anything begins, and nothing is left to close", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  const { endpoint, bytes, key } = await toItself(worker);
  for (const wrong of ["7", 7, 1.5, null]) {
    const tag = wrong as unknown as bigint;
    await assertRejects(() => endpoint.send(bytes, { tag }), TypeError, "expected a bigint");
    await assertRejects(() => endpoint.sendMany([bytes], { tag }), TypeError, "expected a bigint");
    await assertRejects(() => worker.recv(bytes, { tag }), TypeError, "expected a bigint");
    await assertRejects(() => worker.recv(bytes, { mask: tag }), TypeError, "expected a bigint");
    assertThrows(() => worker.probe(tag), TypeError, "expected a bigint");
    await assertRejects(() => endpoint.atomic("add", key, 0, tag), TypeError, "expected a bigint");
  }
  for (const [operand, size] of [[-1n, 8], [1n << 64n, 8], [1n << 32n, 4]] as const) {
    await assertRejects(() => endpoint.atomic("add", key, 0, operand, { bytes: size }), RangeError, `${size} bytes`);
  }
  const compare = 1n << 32n;
  const swap = () => endpoint.atomic("compare-and-swap", key, 0, 1n, { bytes: 4, compare });
  await assertRejects(swap, RangeError, "4 bytes");
  // A key belongs to one endpoint, and stays valid as long as an operation in flight uses it.
  const other = await worker.connect(worker.address, { errors: "none" });
  await assertRejects(() => other.put(bytes, key), TypeError, "made by another");
  const { buffer, finishWriting } = unwritten(8);
  buffer.bytes().fill(3);
  const put = endpoint.put(buffer, key);
  key.close();
  await assertRejects(() => endpoint.put(bytes, key), TypeError, "its key is closed");
  finishWriting();
  await put;
  await endpoint.flush();
  assertEquals([...bytes], Array(8).fill(3));
});

test("values of any kind, where a name, a number or a signal is expected, are errors that show them", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  const { endpoint, bytes, key } = await toItself(worker);
  for (const [value, shown] of [[Symbol("x"), "Symbol(x)"], [Object.create(null), "an object"]]) {
    const calls: readonly (() => unknown)[] = [
      () => endpoint.put(bytes, key, value),
      () => endpoint.get(bytes, key, value),
      () => endpoint.atomic(value, key, 0, 1n),
      () => endpoint.atomic("add", key, value, 1n),
      () => endpoint.atomic("add", key, 0, value),
      () => endpoint.atomic("add", key, 0, 1n, { bytes: value }),
      () => worker.probe(value),
      () => worker.take(1n, value),
      () => worker.connect({ host: "127.0.0.1", port: value }),
      () => worker.connect({ host: value, port: 1 }),
      () => worker.connect(worker.address, { errors: value }),
      () => worker.listen({ errors: value }),
      () => worker.listen({ host: value }),
      () => worker.listen({ port: value }),
      () => worker.listen({ backlog: value }),
      () => ucx.createWorker({ progress: value }),
      () => ucx.createWorker({ protocol: value }),
      () => Ucx.open({ stagingBytes: value }),
      () => Ucx.open({ library: value }),
      () => endpoint.close({ signal: value }),
      () => endpoint.close({ force: value }),
      () => endpoint.send(StridedMemoryView.zeros([2, 2]).T, { copy: value }),
      () => worker.close({ signal: value }),
      () => worker.flush({ signal: value }),
      () => worker.messages({ signal: value }),
      () => endpoint.messages({ signal: value }),
    ];
    for (const call of calls) {
      const error = await (async () => await call())().then(() => null, (error: unknown) => error);
      assert(error instanceof TypeError || error instanceof RangeError, `${call}: ${error}`);
      assert(error.message.includes(shown) && /xpected|it has/.test(error.message), `${call}: ${error.message}`);
    }
  }
  // A close that is refused has closed nothing.
  await Promise.all([endpoint.send(bytes, { tag: 1n }), worker.recv(new Uint8Array(8), { tag: 1n })]);
});

test("memory that was transferred can be neither sent nor received into", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  const endpoint = await worker.connect(worker.address);
  const bytes = new Uint8Array(new ArrayBuffer(8));
  bytes.buffer.transfer();
  for (const what of [bytes, bytes.buffer]) {
    await assertRejects(() => endpoint.send(what), TypeError, "transferred");
    await assertRejects(() => worker.recv(what), TypeError, "transferred");
  }
});
