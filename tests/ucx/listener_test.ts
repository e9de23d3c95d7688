/** Connecting by host and port: which clients are accepted, in what order, and how it ends. */
import { assert, assertEquals, assertInstanceOf, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { readlinkSync } from "node:fs";
import { createServer } from "node:net";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { libc, SystemError } from "../../src/ffi/mod.ts";
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import { UcxError } from "../../src/ucx/error.ts";
import type { ListenOptions, UcxListener } from "../../src/ucx/listen/listener.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import type { UcxWorker } from "../../src/ucx/worker.ts";
import { patiently, runScript } from "../support/child.ts";
import { assertContent, contentOf } from "../support/ucx_messages.ts";
import { scriptedResources, ScriptedUcp } from "./scripted_ucp.ts";

interface Scene {
  readonly server: UcxWorker;
  readonly client: UcxWorker;
  readonly listener: UcxListener;
}

async function inScene(options: ListenOptions, act: (scene: Scene) => Promise<void> | void): Promise<void> {
  using ucx = Ucx.open({ config: { TLS: "sm,tcp" } });
  await using server = ucx.createWorker();
  await using client = ucx.createWorker();
  const listener = await server.listen(options);
  await act({ server, client, listener });
  await listener.close();
}

/** The next connection; fails if the listener is closed. */
async function next(listener: UcxListener): Promise<UcxEndpoint> {
  const endpoint = await listener.accept();
  assert(endpoint !== null);
  return endpoint;
}

for (const host of ["127.0.0.1", "localhost"]) {
  test(`both sides of a connection send and receive: ${host}`, async () => {
    await inScene({ host }, async ({ client, server, listener }) => {
      assertEquals(listener.host, "127.0.0.1");
      assert(listener.port > 0);
      const [there, here] = await Promise.all([client.connect(listener), next(listener)]);
      for (const size of [0, 1, 1000, 300_000]) {
        const into = new Uint8Array(size);
        const [received] = await Promise.all([here.recv(into), there.send(contentOf(1, size))]);
        assertEquals(received, { length: size, tag: 0n });
        assertContent(into, 1);
        const back = new Uint8Array(size);
        await Promise.all([there.recv(back, { tag: 5n }), here.send(contentOf(2, size), { tag: 5n })]);
        assertContent(back, 2);
      }
      await there.close();
      assertEquals(await there.closed, null);
      void server;
    });
  });
}

test("connections are accepted in the order of arrival, by a loop that ends with the listener", async () => {
  await inScene({}, async ({ client, server, listener }) => {
    const there: UcxEndpoint[] = [];
    for (let i = 0; i < 5; i++) {
      const endpoint = await client.connect({ host: listener.host, port: listener.port });
      there.push(endpoint);
      await endpoint.send(new Uint8Array([i]), { tag: BigInt(i) });
    }
    const taken: UcxEndpoint[] = [];
    for await (const endpoint of listener) {
      await endpoint.send(new Uint8Array([taken.length]), { tag: 100n });
      const into = new Uint8Array(1);
      const { tag } = await client.recv(into, { tag: 100n });
      assertEquals([into[0], tag], [taken.length, 100n]);
      if (taken.push(endpoint) === 5) void listener.close();
    }
    assertEquals(taken.length, 5);
    assertEquals(await listener.accept(), null);
    const into = new Uint8Array(1);
    for (let i = 0; i < 5; i++) {
      await server.recv(into, { tag: BigInt(i) });
      assertEquals(into[0], i);
    }
  });
});

/** Whether a port can be bound again once its listener is closed. Another program may be faster, but not five times. */
async function isFreeAgain(worker: UcxWorker, secret: { readonly secret?: string }): Promise<boolean> {
  for (let n = 0; n < 5; n++) {
    const listener = worker.listen(secret);
    await listener.close();
    try {
      await worker.listen({ port: listener.port, ...secret }).close();
      return true;
    } catch (error) {
      if (!(error instanceof SystemError) || error.code !== "EADDRINUSE") throw error;
    }
  }
  return false;
}

test("a listener has its port at once, with a secret and without, and may be awaited", async () => {
  using ucx = Ucx.open();
  await using worker = ucx.createWorker();
  for (const secret of [{}, { secret: "s3cret" }]) {
    const listener = worker.listen({ host: "localhost", ...secret });
    assertEquals([listener.host, Number.isInteger(listener.port), listener.port > 0], ["127.0.0.1", true, true]);
    assertEquals(await listener, listener);
    assertThrows(() => worker.listen({ port: listener.port, ...secret }), SystemError, "taken");
    await listener.close();
    assert(await isFreeAgain(worker, secret), "ports stay taken when their listener is closed");
    for (const host of ["localhost.", "example.org", ""]) {
      assertThrows(() => worker.listen({ host, ...secret }), TypeError, "expected an address of this machine");
    }
  }
});

test("a wait for a connection has limits, and a connection that arrives later is for the next wait", async () => {
  await inScene({}, async ({ client, listener }) => {
    const late = await assertRejects(() => listener.accept({ timeout: 20 }), UcxError);
    assertEquals(late.statusName, "UCS_ERR_TIMED_OUT");
    const stop = new AbortController();
    const waiting = assertRejects(() => listener.accept({ signal: stop.signal }), Error, "enough");
    stop.abort(new Error("enough"));
    await waiting;
    await assertRejects(() => listener.accept({ signal: stop.signal }), Error, "enough");
    await assertRejects(() => listener.accept({ timeout: -1 }), RangeError, "-1 ms");
    await assertRejects(() => listener.accept({ timout: 1 } as object), TypeError, "timout");
    const iterator = listener[Symbol.asyncIterator]();
    const pending = iterator.next();
    await iterator.return?.();
    assertEquals((await pending).done, true);
    await client.connect(listener);
    await next(listener);
  });
});

test("options for a worker's address are refused for a host", async () => {
  await inScene({}, async ({ client, listener }) => {
    const options = { unchecked: true };
    await assertRejects(() => client.connect(listener, options), TypeError, "{ unchecked } is about the bytes");
  });
});

test("a wait for a connection ends with null when the listener is closed", async () => {
  await inScene({}, async ({ listener }) => {
    const waiting = [listener.accept(), listener.accept()];
    await listener.close();
    await listener.close();
    assertEquals(await Promise.all(waiting), [null, null]);
  });
});

test("a listener that is closed again after its worker leaves its number to whoever has it since", async () => {
  using ucx = Ucx.open({ config: { TLS: "sm,tcp" } });
  const worker = ucx.createWorker();
  const listener = worker.listen();
  await listener.close();
  await worker.close();
  const { eventfd, close } = libc().files;
  const since = Array.from({ length: 64 }, () => eventfd(0, 0)); // one has its number: the lowest are given first
  await listener.close();
  const kinds = since.map((fd) => readlinkSync(`/proc/self/fd/${fd}`));
  for (const fd of since) close(fd);
  assertEquals(new Set(kinds), new Set(["anon_inode:[eventfd]"]));
});

test("connections beyond the backlog are rejected, and counted; those within it are served", async () => {
  await inScene({ backlog: 2 }, async ({ client, listener }) => {
    const outcomes = await Promise.all(Array.from({ length: 4 }, async () => {
      try {
        return await client.connect(listener, { timeout: 5000 });
      } catch (error) {
        assertInstanceOf(error, UcxError);
        return error.statusName;
      }
    }));
    const made = outcomes.filter((outcome) => typeof outcome !== "string");
    await Promise.all(made.map((endpoint) => endpoint.close({ force: true })));
    assert(
      listener.rejected >= 1,
      `${listener.rejected} of 4 rejected: ${outcomes.filter((o) => typeof o === "string")}`,
    );
  });
});

test("connecting fails where no program listens, or one that does not speak UCX; a limit ends it", async () => {
  await inScene({}, async ({ client, listener }) => {
    const { port } = listener;
    await listener.close();
    for (const secret of [{}, { secret: "s3cret" }]) {
      const failure = await assertRejects(() => client.connect({ host: "127.0.0.1", port, ...secret }), UcxError);
      // Newer versions of UCX say that the connection was reset.
      if (failure.statusName === "UCS_ERR_CONNECTION_RESET") {
        assertStringIncludes(failure.message, `at 127.0.0.1:${port} has hung up, or there is none`);
      } else {
        assertEquals(failure.statusName, "UCS_ERR_NOT_CONNECTED");
        assertStringIncludes(failure.message, `Nobody listens at 127.0.0.1:${port}`);
      }
    }
    const silent = createServer(() => {}); // accepts connections and sends nothing
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const address = silent.address();
    if (address === null || typeof address === "string") throw new TypeError("no port");
    const to = { host: "127.0.0.1", port: address.port };
    const late = await assertRejects(() => client.connect(to, { timeout: 50 }), UcxError);
    assertEquals(late.statusName, "UCS_ERR_TIMED_OUT");
    const stop = new AbortController();
    const reason = new Error("changed my mind");
    setTimeout(() => stop.abort(reason), 20);
    assertEquals(await client.connect(to, { signal: stop.signal }).catch((error: unknown) => error), reason);
    silent.close();
  });
});

test("connecting to a port that never answers ends after 5 s by default, later or never as the timeout says", async () => {
  // Without a secret it never ended.
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const address = silent.address();
  if (address === null || typeof address === "string") throw new TypeError("no port");
  const to = { host: "127.0.0.1", port: address.port };
  using ucx = Ucx.open();
  await using client = ucx.createWorker();
  const stop = new AbortController();
  const { signal } = stop;
  const longer = [60_000, Infinity].map((timeout) => client.connect(to, { timeout, signal }).catch((error) => error));
  const begun = performance.now();
  const patience = AbortSignal.timeout(30_000); // so that this test ends if there is no other limit
  const late = await assertRejects(() => client.connect(to, { signal: patience }), UcxError);
  assert(performance.now() - begun >= 4990, "ended before the default");
  assertEquals(late.statusName, "UCS_ERR_TIMED_OUT");
  assertStringIncludes(late.message, `127.0.0.1:${to.port} has not answered within the timeout`);
  assertEquals(await Promise.race([...longer, pause(0, "pending")]), "pending");
  const reason = new Error("enough");
  stop.abort(reason);
  assertEquals(await Promise.all(longer), [reason, reason]);
  silent.close();
});

test("a receive that is bound to an endpoint ends with it, and one of the worker does not", async () => {
  await inScene({}, async ({ client, server, listener }) => {
    const [there, here] = await Promise.all([client.connect(listener), next(listener)]);
    const bound = here.recv(new Uint8Array(1), { tag: 7n });
    const free = server.recv(new Uint8Array(1), { tag: 8n });
    const mine = there.recv(new Uint8Array(1), { tag: 9n }).catch((error: unknown) => error);
    const ending = assertRejects(() => bound, UcxError);
    await pause(20);
    await there.close({ force: true });
    assertInstanceOf(await mine, TypeError);
    await ending; // the other side has closed
    const failed = await here.closed;
    assertInstanceOf(failed, UcxError);
    assertEquals(await Promise.race([free.then(() => "received"), pause(20, "pending")]), "pending");
    const again = await client.connect(server.address);
    await again.send(new Uint8Array(1), { tag: 8n });
    assertEquals((await free).length, 1);
    await assertRejects(
      () => here.recv(new Uint8Array(1)),
      UcxError,
      "Cannot receive: the endpoint has already failed",
    );
  });
});

test("an address that cannot be bound is an error, and a port has one listener", async () => {
  await inScene({}, ({ server, listener }) => {
    for (const secret of [{}, { secret: "s3cret" }]) {
      const refused = (options: ListenOptions, code: string, ...says: string[]) => {
        const error = assertThrows(() => server.listen({ ...options, ...secret }), SystemError);
        assertEquals([error.code, error.call], [code, "bind"]);
        for (const words of says) assertStringIncludes(error.message, words);
        if (!("secret" in secret)) assertInstanceOf(error.cause, UcxError);
      };
      const at = `Cannot listen at 127.0.0.1:${listener.port}: bind failed`;
      refused({ port: listener.port }, "EADDRINUSE", at, "choose another one, or 0 for any free port");
      refused({ host: "192.0.2.1" }, "EADDRNOTAVAIL", "at 192.0.2.1:0", '"0.0.0.0" stands for all');
    }
    assertThrows(() => server.listen({ port: 70_000 }), RangeError, "port 70000");
    assertThrows(() => server.listen({ backlog: 0 }), RangeError, "at least 1");
    const wrong = { errors: "all" } as unknown as ListenOptions;
    assertThrows(() => server.listen(wrong), RangeError, "expected peer or none");
  });
});

test("a worker that is closed while it listens, or begins to connect, stops both", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  const worker = ucx.createWorker();
  worker.listen();
  worker.listen({ secret: "s3cret" });
  const connecting = worker.connect({ host: "127.0.0.1", port: 1 });
  worker.abort();
  await assertRejects(() => connecting, TypeError, "is closed");
  assertThrows(() => worker.listen(), TypeError, "is closed");
});

test("an IPv6 address is refused where UCX uses IPv4: it would write past the end of its memory", async () => {
  await inScene({}, async ({ server, client }) => {
    assertThrows(() => server.listen({ host: "::1" }), TypeError, "TCP_AF_PRIO");
    await assertRejects(() => client.connect({ host: "::1", port: 1 }), TypeError, "TCP_AF_PRIO");
  });
});

test("without error handling large messages are copied once, where the system allows", async () => {
  using ucx = Ucx.open({ config: { TLS: "self,sm" } });
  const isAllowed = ucx.transports().some((name) => name.startsWith("cma/"));
  for (const errors of ["none", "peer"] as const) {
    await using sender = ucx.createWorker();
    await using receiver = ucx.createWorker();
    const endpoint = await sender.connect(receiver.address, { errors });
    const into = new Uint8Array(1 << 20);
    await Promise.all([endpoint.send(contentOf(3, 1 << 20)), receiver.recv(into)]);
    assertContent(into, 3);
    const isCopiedOnce = endpoint.transports().some((name) => name.startsWith("cma/"));
    assertEquals(isCopiedOnce, isAllowed && errors === "none", `${errors}: ${endpoint.transports()}`);
  }
});

// UCX's thread went on with connections that were being established, of a listener or a worker that was gone: the
// process ended, whenever a server was closed that a port scanner had connected to.
for (const what of ["listener", "worker"]) {
  test(`a ${what} may be closed while clients have connected and said nothing`, patiently, async () => {
    const script = new URL("half_open_child.ts", import.meta.url);
    for (let again = 0; again < 2; again++) {
      const { code, stdout, stderr } = await runScript(script, { args: [what], timeout: 30_000 });
      assertEquals([code, stdout.trimEnd().split("\n").at(-1)], [0, "20 clients"], `${stdout}\n${stderr}`);
      assert(!stdout.includes("not released"), stdout); // what UCX writes of connections that it would go on with
    }
  });
}

test("a worker is not destroyed while UCX's thread has yet to notice that connections have ended", () => {
  for (const looks of [3, Infinity]) {
    const ucp = new ScriptedUcp();
    const resources = scriptedResources(ucp);
    let looked = 0;
    resources.listeners.add({ endConnections: () => ++looked < looks ? 1 : 0, destroy: () => {} });
    resources.close();
    assertEquals([resources.closed, ucp.log.includes("ucp_worker_destroy")], [true, looks !== Infinity]);
  }
});

test("a port is free once its listener is closed, and clients are refused, also those that come meanwhile", async () => {
  using ucx = Ucx.open();
  await using server = ucx.createWorker();
  await using client = ucx.createWorker();
  let port = 0;
  for (let again = 0; again < 3; again++) {
    await using listener = server.listen({ port });
    port = listener.port;
  }
  const refused = () => client.connect({ host: "127.0.0.1", port }, { timeout: 5000 });
  await assertRejects(refused, UcxError, "Nobody listens");
  const listener = server.listen({ port });
  const meanwhile = [refused(), refused(), refused()];
  await listener.close();
  for (const outcome of await Promise.allSettled(meanwhile)) {
    if (outcome.status === "fulfilled") await outcome.value.close({ force: true });
    else assertInstanceOf(outcome.reason, UcxError);
  }
});

test("no more connections are open than allowed, and the next is accepted when one has closed", async () => {
  await inScene({ limits: { connections: 2 } }, async ({ client, listener }) => {
    const there = [await client.connect(listener), await client.connect(listener)];
    const here = [await next(listener), await next(listener)];
    await assertRejects(() => client.connect(listener, { timeout: 2000 }), UcxError);
    assertEquals(listener.rejected, 1);
    await here[0]?.close({ force: true });
    await there[0]?.close({ force: true });
    there.push(await client.connect(listener, { timeout: 2000 }));
    await next(listener);
  });
});

for (const kind of ["messages", "messages and arrays", "large message", "large array", "large parts"] as const) {
  test(`a client that sends more than is allowed is closed, and no other: ${kind}`, async () => {
    await inScene({ limits: { messages: 3, messageBytes: 1000 } }, async ({ client, listener }) => {
      const [bad, good] = [await client.connect(listener), await client.connect(listener)];
      const [fromBad, fromGood] = [await next(listener), await next(listener)];
      const many = kind === "large parts" ? assertRejects(() => fromBad.recvMany(), UcxError, "EXCEEDS_LIMIT") : null;
      const sends = kind === "messages"
        ? Array.from({ length: 4 }, () => bad.sendMessage(new Uint8Array(1)))
        : kind === "messages and arrays"
        ? [0, 1].flatMap(() => [bad.sendMessage(new Uint8Array(1)), bad.sendArray(new Uint8Array(1))])
        : kind === "large message"
        ? [bad.sendMessage(new Uint8Array(1001))]
        : kind === "large array"
        ? [bad.sendArray(new Float64Array(126))]
        : [bad.sendMany([new Uint8Array(500), new Uint8Array(501)])];
      await Promise.allSettled(sends);
      await many;
      const reason = await fromBad.closed;
      assertInstanceOf(reason, UcxError);
      assertEquals(reason.statusName, "UCS_ERR_EXCEEDS_LIMIT");
      await assertRejects(() => fromBad.recvArray(), UcxError, "UCS_ERR_EXCEEDS_LIMIT");
      await bad.closed; // it is notified
      for (let i = 0; i < 3; i++) await good.sendMessage(new Uint8Array(1000));
      const messages = fromGood.messages()[Symbol.asyncIterator]();
      for (let i = 0; i < 3; i++) assertEquals((await messages.next()).value?.length, 1000);
      await good.sendArray(new Float64Array(125));
      assertEquals((await fromGood.recvArray()).layout.volume, 125);
    });
  });
}

test("invalid limits are refused before the worker listens", async () => {
  await inScene({}, ({ server }) => {
    for (const name of ["connections", "messages", "messageBytes"]) {
      const limits = { [name]: NaN };
      assertThrows(() => server.listen({ limits }), RangeError, `Cannot limit ${name} to NaN`);
    }
    const unknown = { limits: { conections: 1 } } as object;
    assertThrows(() => server.listen(unknown), TypeError, "connections");
  });
});
