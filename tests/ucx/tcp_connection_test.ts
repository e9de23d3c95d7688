/** TCP connections: all bytes arrive, in order, in any pieces; an end is noticed, and a close ends pending calls. */
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { connect, createServer } from "node:net";
import { afterEach, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { SystemError } from "../../src/ffi/mod.ts";
import type { Acceptor } from "../../src/ucx/listen/acceptor.ts";
import { listenTcp, TcpConnection } from "../../src/ucx/listen/tcp_connection.ts";
import { check, fc } from "../support/property.ts";
import { until } from "../support/until.ts";
import { assertContent, contentOf } from "../support/ucx_messages.ts";

const never = new AbortController().signal;
const here = { host: "127.0.0.1", port: 0 };

const opened: Acceptor[] = [];
afterEach(() => opened.splice(0).forEach((listener) => listener.close()));

function listen(onConnection: (connection: TcpConnection) => void): Acceptor {
  const listener = listenTcp(here, onConnection, () => {});
  opened.push(listener);
  return listener;
}

/** Two ends of a connection. */
async function pair(): Promise<[TcpConnection, TcpConnection]> {
  const { promise, resolve } = Promise.withResolvers<TcpConnection>();
  const listener = listen(resolve);
  const ends = await Promise.all([TcpConnection.connect(listener, never), promise]);
  listener.close();
  return ends;
}

const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 100 }), fc.constantFrom(5000, 1_000_000)), {
  minLength: 1,
  maxLength: 6,
});

test("one side receives what the other sends, in pieces of any size, in both directions, to the end", async () => {
  await check(
    fc.asyncProperty(sizes, sizes, async (sends, receives) => {
      const [one, other] = await pair();
      const total = sends.reduce((sum, size) => sum + size, 0);
      const content = contentOf(3, total);
      const send = async (from: TcpConnection) => {
        let at = 0;
        for (const size of sends) assert(await from.send(content.subarray(at, at += size)));
      };
      const receive = async (to: TcpConnection) => {
        const all = new Uint8Array(total);
        const least = Math.ceil(total / 5000); // six million bytes one by one take a quarter of a minute
        for (let at = 0, n = 0; at < total; n++) {
          const size = Math.max(receives[n % receives.length] ?? 1, least);
          const piece = await to.receive(Math.min(size, total - at));
          assert(piece !== null);
          all.set(piece, at);
          at += piece.length;
        }
        assertContent(all, 3);
      };
      await Promise.all([send(one), receive(other), send(other), receive(one)]);
      const finished = one.finish();
      assertEquals(await other.receive(1), null);
      other.close();
      await finished;
    }),
    8,
  );
});

test("an end that waits for the other side lets it read all bytes sent, and ends with it", async () => {
  const [one, other] = await pair();
  await other.send(new Uint8Array(100)); // never read: a close would drop what is in flight
  const sent = one.send(contentOf(1, 20_000_000)); // more than the system buffers at once
  await pause(50);
  const first = await other.receive(19_000_000);
  assert(await sent);
  let isFinished = false;
  const finished = one.finish().then(() => isFinished = true);
  await pause(50);
  assertEquals(isFinished, false);
  const rest = await other.receive(1_000_000);
  assert(first !== null && rest !== null);
  const read = new Uint8Array(20_000_000);
  read.set(first);
  read.set(rest, 19_000_000);
  assertContent(read, 1);
  assertEquals([await other.receive(1), isFinished], [null, false]);
  other.close();
  await finished;
});

test("a close ends pending calls on both sides, and nothing is sent or received after it", async () => {
  const [one, other] = await pair();
  const [mine, theirs] = [one.receive(1), other.receive(1)];
  await pause(20);
  one.close();
  one.close();
  const reused = await pair(); // the system reuses its descriptor number
  assertEquals(await Promise.all([mine, theirs, one.receive(1), one.send(new Uint8Array(1))]), [
    null,
    null,
    null,
    false,
  ]);
  await one.finish();
  reused.forEach((end) => end.close());
  const [full, stuck] = await pair();
  const sending = full.send(new Uint8Array(50_000_000)); // more than the system buffers
  await pause(20);
  full.close();
  assertEquals(await sending, false);
  stuck.close();
});

test("it speaks TCP: it accepts another program's sockets, and connects to them", async () => {
  const received: Uint8Array[] = [];
  const listener = listen(async (connection) => {
    received.push(await connection.receive(5) ?? new Uint8Array(0));
    await connection.send(Uint8Array.of(9));
    await connection.finish();
  });
  const socket = connect(listener.port, listener.host);
  const answer: number[] = [];
  socket.on("data", (chunk: Uint8Array) => answer.push(...chunk)).on("end", () => socket.end());
  socket.write("hello");
  await until(() => answer.length === 1);
  assertEquals([new TextDecoder().decode(received[0]), answer], ["hello", [9]]);

  const server = createServer((socket) => socket.on("error", () => {}).end("220 ready\r\n"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert(typeof address === "object" && address !== null);
  const client = await TcpConnection.connect({ host: "127.0.0.1", port: address.port }, never);
  assertEquals(new TextDecoder().decode(await client.receive(9) ?? new Uint8Array(0)), "220 ready");
  client.close();
  server.close();
});

test("no listener, a port in use and an aborted signal are errors that say so", async () => {
  const listener = listen((connection) => connection.close());
  const taken = assertThrows(() => listenTcp(listener, () => {}, () => {}), SystemError, "EADDRINUSE");
  assertEquals(taken.call, "bind");
  assertThrows(() => listenTcp({ host: "192.0.2.1", port: 0 }, () => {}, () => {}), SystemError, "EADDRNOTAVAIL");
  const { port } = listener;
  await assertRejects(
    () => TcpConnection.connect({ host: "127.0.0.1", port }, AbortSignal.abort(new Error("enough"))),
    Error,
    "enough",
  );
  listener.close();
  await listenAgain();
  const refused = await refusedConnect();
  assertEquals([refused.code, refused.call], ["ECONNREFUSED", "connect"]);
});

/** Listens at a port just released: at once, although connections linger. Another process may be faster. */
async function listenAgain(): Promise<void> {
  for (let tries = 1;; tries++) {
    const first = listen((connection) => connection.close());
    const { port } = first;
    (await TcpConnection.connect({ host: "127.0.0.1", port }, never)).close();
    first.close();
    try {
      const again = listenTcp({ host: "127.0.0.1", port }, () => {}, () => {});
      assertEquals(again.port, port);
      return again.close();
    } catch (error) {
      if (tries === 5 || !(error instanceof SystemError && error.code === "EADDRINUSE")) throw error;
    }
  }
}

/**
 * The error of connecting where nothing listens. A port that was just closed may soon belong to another process, which
 * may close it in turn: that was ECONNRESET, once beside other tests.
 */
async function refusedConnect(): Promise<SystemError> {
  for (let tries = 0; tries < 5; tries++) {
    const listener = listen((connection) => connection.close());
    listener.close();
    const { port } = listener;
    try {
      (await TcpConnection.connect({ host: "127.0.0.1", port }, never)).close();
    } catch (error) {
      if (!(error instanceof SystemError)) throw error;
      if (error.code !== "ECONNRESET") return error;
    }
  }
  throw new Error("Every port that was closed was taken at once");
}

test("connections that arrive together are all accepted, and other work runs between them", async () => {
  let accepted = 0;
  const listener = listen((connection) => {
    accepted++;
    connection.close();
  });
  const sockets = await Promise.all(Array.from({ length: 200 }, () => TcpConnection.connect(listener, never)));
  await until(() => accepted === 200);
  assertEquals(accepted, 200);
  for (const socket of sockets) socket.close();
});
