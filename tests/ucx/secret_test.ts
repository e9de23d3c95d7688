/** A client that does not know the secret reaches no worker, is counted, and keeps no other client waiting. */
import { assert, assertEquals, assertInstanceOf, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import { connect, createServer, type Socket } from "node:net";
import process from "node:process";
import { afterEach, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import { UcxError } from "../../src/ucx/error.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import type { Acceptor } from "../../src/ucx/listen/acceptor.ts";
import {
  connectWithSecret,
  listenWithSecret,
  type SecretAcceptorContext,
} from "../../src/ucx/listen/secret_acceptor.ts";
import { SecretError, takeSecret } from "../../src/ucx/listen/secret_handshake.ts";
import { patiently, runScriptForJson } from "../support/child.ts";
import { check, fc } from "../support/property.ts";

const acceptors: Acceptor[] = [];
afterEach(() => acceptors.splice(0).forEach((acceptor) => acceptor.close()));

const never = new AbortController().signal;
const ours = new TextEncoder().encode("the listener's address");
const theirs = new TextEncoder().encode("the client's address");

/** An acceptor that asks for a secret, the clients admitted, and the number refused. */
function acceptor(given: Partial<SecretAcceptorContext> = {}) {
  const admitted: string[] = [];
  const seen = { refused: 0, arrived: 0 };
  const opened = listenWithSecret({ host: "127.0.0.1", port: 0 }, {
    secret: "s3cret",
    handshakes: 4,
    patience: 300,
    address: () => ours,
    hasRoom: () => true,
    accept: (address) => {
      admitted.push(new TextDecoder().decode(address));
      seen.arrived++;
    },
    refused: () => seen.refused++,
    ...given,
  });
  acceptors.push(opened);
  return { acceptor: opened, admitted, seen };
}

/** Waits until a condition holds. */
async function until(isSo: () => boolean): Promise<void> {
  for (let i = 0; i < 200 && !isSo(); i++) await pause(10);
  assert(isSo(), "the condition was never met");
}

test("both sides learn each other's address if they share the secret, and nothing otherwise", async () => {
  const bytes = fc.uint8Array({ minLength: 1, maxLength: 40 });
  await check(
    fc.asyncProperty(bytes, bytes, async (one, other) => {
      const { acceptor: { host, port, close }, admitted, seen } = acceptor({ secret: one });
      const isSame = `${one}` === `${other}`;
      const found = await connectWithSecret({ host, port }, other, theirs, never).catch((error: unknown) => error);
      if (isSame) assertEquals(found, ours);
      else assertInstanceOf(found, SecretError);
      assertEquals(await connectWithSecret({ host, port }, one, theirs, never), ours);
      await until(() => seen.arrived === (isSame ? 2 : 1));
      assertEquals([admitted.length, seen.refused], [isSame ? 2 : 1, isSame ? 0 : 1]);
      assertEquals(admitted[0], "the client's address");
      close();
    }),
    20,
  );
});

/** Everything received over a connection, chunk by chunk. */
function recorded(socket: Socket): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  socket.on("data", (chunk: Uint8Array) => chunks.push(chunk)).on("error", () => {});
  return chunks;
}

test("a recorded proof is worthless, replayed at the same acceptor or as the listener's own", async () => {
  const { acceptor: { host, port }, admitted, seen } = acceptor();
  // A man in the middle: forwards everything, and records what the client sent.
  const recording: Uint8Array[] = [];
  const middle = createServer((client) => {
    const server = connect(port, host);
    client.on("data", (chunk: Uint8Array) => recording.push(chunk)).pipe(server).pipe(client);
    client.on("error", () => {});
    server.on("error", () => {});
  });
  await new Promise<void>((resolve) => middle.listen(0, "127.0.0.1", resolve));
  const address = middle.address();
  assert(typeof address === "object" && address !== null);
  assertEquals(await connectWithSecret({ host, port: address.port }, "s3cret", theirs, never), ours);
  middle.close();
  assertEquals(admitted.length, 1);
  const replay = connect(port, host);
  recorded(replay);
  for (const chunk of recording) replay.write(chunk);
  await until(() => seen.refused === 1);
  assertEquals(admitted.length, 1);
  replay.destroy();

  // A false listener that sends the client's own proof back, under the client's own address.
  const mirror = createServer((client) => {
    client.on("error", () => {});
    client.write("causeway 1\n");
    client.write(new Uint8Array(32));
    let received = new Uint8Array(0);
    client.on("data", (chunk: Uint8Array) => {
      received = Uint8Array.from([...received, ...chunk]);
      if (received.length === 32 + 4 + theirs.length + 32) client.write(received.subarray(32));
    });
  });
  await new Promise<void>((resolve) => mirror.listen(0, "127.0.0.1", resolve));
  const at = mirror.address();
  assert(typeof at === "object" && at !== null);
  await assertRejects(
    () => connectWithSecret({ host, port: at.port }, "s3cret", theirs, never),
    SecretError,
    "The listener does not know the secret",
  );
  mirror.close();
});

test("the proof is an HMAC of the whole exchange, as computed by another program", async () => {
  const { acceptor: { host, port }, seen } = acceptor();
  const socket = connect(port, host);
  const chunks = recorded(socket);
  const all = () => Uint8Array.from(chunks.flatMap((chunk) => [...chunk]));
  await until(() => all().length === 11 + 32);
  const challenge = all().subarray(11);
  const framed = (bytes: Uint8Array) => Uint8Array.from([bytes.length, 0, 0, 0, ...bytes]);
  const answer = new Uint8Array(32).fill(7);
  const hmac = createHmac("sha256", "s3cret").update("client\n");
  for (const part of [challenge, answer, theirs]) hmac.update(framed(part));
  socket.write(answer);
  socket.write(framed(theirs));
  socket.write(hmac.digest());
  await until(() => seen.arrived === 1);
  await until(() => all().length === 43 + 4 + ours.length + 32);
  const proof = createHmac("sha256", "s3cret").update("listener\n");
  for (const part of [challenge, answer, theirs, ours]) proof.update(framed(part));
  assertEquals([...all().subarray(-32)], [...proof.digest()]);
  socket.destroy();
});

test("garbage and silent clients are refused and counted, and others are admitted meanwhile", async () => {
  const { acceptor: { host, port }, seen } = acceptor();
  await check(
    fc.asyncProperty(fc.uint8Array({ minLength: 69, maxLength: 400 }), async (garbage) => {
      const before = seen.refused;
      const socket = connect(port, host);
      recorded(socket);
      socket.write(garbage);
      socket.end();
      await until(() => seen.refused === before + 1);
      socket.destroy();
    }),
    15,
  );
  const refused = seen.refused;
  const silent = Array.from({ length: 3 }, () => {
    const socket = connect(port, host);
    recorded(socket);
    return socket;
  });
  const start = performance.now();
  assertEquals(await connectWithSecret({ host, port }, "s3cret", theirs, never), ours);
  assert(performance.now() - start < 250, "a silent client kept another one waiting");
  await until(() => seen.refused === refused + 3);
  for (const socket of silent) socket.destroy();
});

test("silent clients make room for later ones, and are counted; the last ones still get the challenge", async () => {
  // 64 silent connections blocked all other clients for 5 s: https://en.wikipedia.org/wiki/Slowloris_(cyber_attack)
  const { acceptor: { host, port }, seen } = acceptor({ handshakes: 4, patience: 20_000 });
  const silent: Socket[] = [];
  const chunks: Uint8Array[][] = [];
  for (let i = 0; i < 10; i++) {
    const socket = connect(port, host);
    silent.push(socket);
    chunks.push(recorded(socket));
    await until(() => (chunks[i]?.length ?? 0) > 0);
  }
  assertEquals(seen.refused, 6);
  const start = performance.now();
  for (let i = 0; i < 10; i++) assertEquals(await connectWithSecret({ host, port }, "s3cret", theirs, never), ours);
  assert(performance.now() - start < 2000, "silent clients kept others waiting");
  assertEquals([seen.refused, seen.arrived], [7, 10]); // each admitted client proved it before the next connected
  // A dropped client is notified that the secret was not the reason.
  await until(() => chunks[0]?.at(-1)?.length === 4 || (chunks[0]?.flatMap((chunk) => [...chunk]).length ?? 0) >= 47);
  assertEquals(chunks[0]?.flatMap((chunk) => [...chunk]).slice(43), [255, 255, 255, 255]);
  for (const socket of silent) socket.destroy();
});

test("only a client that knows the secret is notified that there is no room", async () => {
  const full = acceptor({ hasRoom: () => false });
  const refused = await assertRejects(() => connectWithSecret(full.acceptor, "s3cret", theirs, never), UcxError);
  assertEquals(refused.statusName, "UCS_ERR_REJECTED");
  assertStringIncludes(refused.message, "accepts no more");
  const wrong = await assertRejects(() => connectWithSecret(full.acceptor, "guess", theirs, never), SecretError);
  assertStringIncludes(wrong.message, "Is the secret the same?");
  assertEquals([full.seen.refused, full.admitted], [2, []]);
});

test("connecting to another program or to none, and an abort, are errors", async () => {
  const other = createServer((socket) => socket.on("error", () => {}).end("220 mail.example ESMTP ready\r\n"));
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const address = other.address();
  assert(typeof address === "object" && address !== null);
  const to = { host: "127.0.0.1", port: address.port };
  await assertRejects(() => connectWithSecret(to, "s3cret", theirs, never), SecretError, "not a Causeway listener");
  other.close();
  await assertRejects(
    () => connectWithSecret({ host: "127.0.0.1", port: 1 }, "s3cret", theirs, never),
    Error,
    "ECONNREFUSED",
  );
  const silent = createServer((socket) => void socket.on("error", () => {}));
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const there = silent.address();
  assert(typeof there === "object" && there !== null);
  const limit = new AbortController();
  const connecting = connectWithSecret({ host: "127.0.0.1", port: there.port }, "s3cret", theirs, limit.signal);
  setTimeout(() => limit.abort(new Error("enough")), 30);
  await assertRejects(() => connecting, Error, "enough");
  silent.close();
});

test("a secret is a string or a copy of bytes; any other value is an error", () => {
  assertEquals([takeSecret({}), takeSecret({ secret: "x" })], [null, "x"]);
  // slice() of a Buffer is a view: a listener whose secret was cleared let in whoever sent zeros.
  for (const bytes of [Uint8Array.of(1, 2), Buffer.from([1, 2])]) {
    const taken = takeSecret({ secret: bytes });
    bytes.fill(0);
    assertEquals(taken, Uint8Array.of(1, 2));
  }
  for (const secret of ["", new Uint8Array(0), undefined, null, 5, {}]) {
    assertThrows(() => takeSecret({ secret } as { secret: string }), TypeError, "an environment variable not set?");
  }
});

test("no client is admitted because a secret was not set, or was cleared", async () => {
  using ucx = Ucx.open();
  await using worker = ucx.createWorker();
  const unset = { secret: undefined } as object;
  assertThrows(() => worker.listen(unset), TypeError, "Cannot use the secret");
  await assertRejects(
    () => worker.connect({ host: "127.0.0.1", port: 1, ...unset }),
    TypeError,
    "Cannot use the secret",
  );
  const secret = new TextEncoder().encode("s3cret");
  await using listener = worker.listen({ secret });
  secret.fill(0);
  const { host, port } = listener;
  await assertRejects(() => worker.connect({ host, port, secret }), SecretError);
  const given = new TextEncoder().encode("s3cret");
  const connecting = worker.connect({ host, port, secret: given });
  given.fill(0);
  await (await connecting).close();
});

test("limits hold for clients that know the secret and connect at the same time", async () => {
  using ucx = Ucx.open();
  await using server = ucx.createWorker();
  await using client = ucx.createWorker();
  await using listener = server.listen({ secret: "s3cret", limits: { connections: 2 } });
  const { host, port } = listener;
  const outcomes = await Promise.all(Array.from({ length: 10 }, async () => {
    return await client.connect({ host, port, secret: "s3cret" }).catch((error: unknown) => error);
  }));
  const refused = outcomes.filter((one) => one instanceof UcxError);
  for (const error of refused) assertEquals(error.statusName, "UCS_ERR_REJECTED");
  const open = outcomes.filter((one) => one instanceof UcxEndpoint);
  assertEquals([open.length, refused.length, listener.rejected], [2, 8, 8]);
});

test("a client that knows the secret and is gone does not count as a connection", patiently, async () => {
  using ucx = Ucx.open({ config: { TLS: "sm,tcp" } });
  await using server = ucx.createWorker();
  await using client = ucx.createWorker();
  await using listener = server.listen({ secret: "s3cret", timeout: 300, limits: { connections: 1 } });
  const { host, port } = listener;
  const gone = ucx.createWorker();
  await connectWithSecret({ host, port }, "s3cret", gone.address, never); // and nothing from UCX follows
  gone.abort();
  await pause(1000);
  assertEquals(listener.rejected, 1);
  const [there, here] = await Promise.all([client.connect({ host, port, secret: "s3cret" }), listener.accept()]);
  await here?.close();
  await there.close();
});

test("workers that share a secret exchange messages of every kind; others reach no worker", async () => {
  using ucx = Ucx.open();
  await using server = ucx.createWorker();
  await using client = ucx.createWorker();
  await using listener = server.listen({ secret: "s3cret", timeout: 500, limits: { handshakes: 2 } });
  const { host, port } = listener;
  const here = listener.accept();
  await assertRejects(() => client.connect({ host, port, secret: "guess" }), SecretError);
  // Without a secret, as UCX connects: its bytes are garbage to the acceptor.
  await assertRejects(() => client.connect({ host, port }, { timeout: 1500 }), UcxError);
  const there = await client.connect({ host, port, secret: new TextEncoder().encode("s3cret") }, { timeout: 5000 });
  const endpoint = await here;
  assert(endpoint !== null);
  assertEquals(listener.rejected, 2);
  const into = new Uint8Array(3);
  await Promise.all([there.send(Uint8Array.of(1, 2, 3), { tag: 4n }), endpoint.recv(into, { tag: 4n })]);
  assertEquals([...into], [1, 2, 3]);
  await endpoint.sendArray(Int16Array.of(-5));
  assertEquals(`${await there.recvArray()}`, "[-5]");
  await there.sendMessage(Uint8Array.of(9), { header: "to the endpoint" });
  const { value: message } = await endpoint.messages()[Symbol.asyncIterator]().next();
  assertEquals(message?.text, "to the endpoint");
  await there.close();

  await assertRejects(() => client.connect({ host, port, secret: "" }), TypeError, "Cannot use the secret");
  assertThrows(() => server.listen({ secret: "" }), TypeError, "Cannot use the secret");
  assertThrows(() => server.listen({ timeout: 5 }), TypeError, "expected a secret");
  assertThrows(() => server.listen({ limits: { handshakes: 5 } }), TypeError, "there are none without a secret");
  assertThrows(() => server.listen({ secret: "x", port }), Error, "EADDRINUSE");
});

// The default was 64: of a hundred honest clients that came at once, 36 were rejected.
// It waited for ever: the endpoint had failed by the time when it was to tell.
test("a client whose message is too long learns that its connection was closed", patiently, async () => {
  const ends = await runScriptForJson(new URL("./exceeds_child.ts", import.meta.url));
  assertEquals(ends, ["UcxError", "UcxError"]);
});

test("two hundred clients that know the secret connect at once", patiently, async () => {
  using ucx = Ucx.open();
  await using server = ucx.createWorker();
  await using client = ucx.createWorker();
  await using listener = server.listen({ secret: "s3cret" });
  const { host, port } = listener;
  const connecting = Array.from(
    { length: 200 },
    () => client.connect({ host, port, secret: "s3cret" }, { timeout: 30_000 }),
  );
  assertEquals((await Promise.all(connecting)).length, 200);
  assertEquals(listener.rejected, 0);
});

// Beyond what a timer can count, it fired at once, and the client was told that the secret may be another.
test("a handshake may take any time, if so wished", async () => {
  using ucx = Ucx.open();
  for (const timeout of [Infinity, 2 ** 31, 2 ** 31 - 1]) {
    await using server = ucx.createWorker();
    await using client = ucx.createWorker();
    await using listener = server.listen({ secret: "s3cret", timeout });
    const { host, port } = listener;
    for (let i = 0; i < 5; i++) await client.connect({ host, port, secret: "s3cret" });
    assertEquals(listener.rejected, 0);
  }
});

// UCX reports no close of such a connection: everything stayed pending, and the limit on connections was never freed.
test("with a secret, too, each side learns at once that the other has closed, and makes room for another", async () => {
  using ucx = Ucx.open();
  for (const force of [false, true]) {
    await using server = ucx.createWorker();
    const listener = server.listen({ secret: "s3cret", limits: { connections: 2 } });
    for (const closer of ["client", "server", "client", "server", "client"] as const) {
      await using worker = ucx.createWorker();
      const { host, port } = listener;
      const [there, here] = await Promise.all([listener.accept(), worker.connect({ host, port, secret: "s3cret" })]);
      assert(there !== null);
      const [leaving, staying] = closer === "client" ? [here, there] : [there, here];
      await leaving.sendMessage(new Uint8Array(3));
      const messages = staying.messages()[Symbol.asyncIterator]();
      assertEquals((await messages.next()).value?.length, 3);
      const pending = [
        staying.recv(new Uint8Array(1), { tag: 5n }),
        staying.recvArray(),
        staying.readable.getReader().read(),
      ].map((one) => assertRejects(() => one as Promise<unknown>, UcxError, "has closed the connection"));
      await leaving.close({ force });
      await Promise.all(pending);
      assertEquals(await messages.next(), { done: true, value: undefined }, "the loop over messages ends");
      assertInstanceOf(await staying.closed, UcxError);
    }
    assertEquals(listener.rejected, 0);
  }
});

test("with a secret on one side only, connecting fails soon either way, and says why", patiently, async () => {
  using ucx = Ucx.open();
  await using server = ucx.createWorker();
  await using client = ucx.createWorker();
  await using asking = await server.listen({ secret: "s3cret" });
  const start = performance.now();
  const unasked = await assertRejects(() => client.connect({ host: asking.host, port: asking.port }), UcxError);
  assert(performance.now() - start < 4000);
  assertStringIncludes(
    unasked.message,
    `at 127.0.0.1:${asking.port} has hung up, or there is none. Does it ask for a secret?`,
  );
  await using open = await server.listen();
  const begun = performance.now();
  const connecting = client.connect({ host: open.host, port: open.port, secret: "x" }, {
    signal: AbortSignal.timeout(20_000), // so that this test ends if there is no other limit
  });
  const silent = await assertRejects(() => connecting, UcxError);
  const after = performance.now() - begun;
  assert(after >= 4990 && after < 8000, `${after} ms`);
  assertEquals(silent.statusName, "UCS_ERR_TIMED_OUT");
  assertStringIncludes(silent.message, `at 127.0.0.1:${open.port} has asked for a secret. Does the listener have one?`);
});

test("Deno's --allow-net is needed only for names, and its lack is an error", patiently, async () => {
  const isBun = process.versions["bun"] !== undefined;
  const child = new URL("no_network_child.ts", import.meta.url);
  const outcomes = await runScriptForJson(child, { permissions: ["--allow-ffi"] }) as Record<string, string>;
  const { "connect by name": byName = "", "connect with a secret, by name": withSecret = "", ...others } = outcomes;
  assertEquals(others, { "listen and connect": "ok", "listen and connect with a secret": "ok" });
  if (isBun) return; // it needs no permission; whether the name exists is another question
  const lacks = "FfiError: Cannot look up no.such.name.invalid: Deno did not grant the network";
  for (const outcome of [byName, withSecret]) assertStringIncludes(outcome, lacks);
});
