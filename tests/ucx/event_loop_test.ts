/** A server in the same thread keeps answering while messages saturate the event loop. */
import { assert, assertEquals } from "@std/assert";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { setImmediate as immediate, setTimeout as pause } from "node:timers/promises";
import { ffiPort } from "../../src/ffi/port.ts";
import { atNextTurn, isServing, serveAll } from "../../src/ucx/event_loop.ts";
import { Ucx } from "../../mod.ts";
import { check, fc } from "../support/property.ts";

test("a task for the next turn waits for sockets every few milliseconds, with all later tasks", async (context) => {
  const port = ffiPort();
  const { turnWithSockets } = port;
  const serves: (() => void)[] = [];
  const counted = () => new Promise<void>((resolve) => serves.push(resolve));
  Object.defineProperty(port, "turnWithSockets", { value: counted, configurable: true, writable: true });
  context.after(() => Object.defineProperty(port, "turnWithSockets", { value: turnWithSockets }));
  const done: string[] = [];
  await pause(5); // long enough that sockets are due
  atNextTurn(() => done.push("first"));
  assert(isServing());
  atNextTurn(() => done.push("second"));
  await immediate();
  await immediate();
  assertEquals([serves.length, done], [1, []]);
  for (; isServing(); await immediate()) serves.at(-1)?.(); // other sockets of this process may have events, too
  assertEquals(done, ["first", "second"]);
  const before = serves.length;
  atNextTurn(() => done.push("soon"));
  assertEquals([isServing(), serves.length], [false, before]); // they were just served
  await immediate();
  assertEquals(done, ["first", "second", "soon"]);
});

test("sockets are served until they have no more events, four turns at most", async () => {
  await check(fc.asyncProperty(fc.option(fc.nat(9)), async (more) => {
    let turns = 0;
    let asked = 0;
    const turn = () => Promise.resolve(void turns++);
    // After the first turn there are events for `more` others; null: it cannot be known.
    await serveAll(turn, more === null ? null : () => asked++ < more);
    assertEquals(turns, Math.min(1 + (more ?? 0), 4));
  }));
});

/** Records when sockets are served, by `performance.now()`: in the runtime that serves them only on request. */
function servesDuring(context: { after(fn: () => void): void }): number[] {
  const port = ffiPort();
  const { turnWithSockets } = port;
  const times: number[] = [];
  if (turnWithSockets === null) return times;
  const noted = () => {
    times.push(performance.now());
    return turnWithSockets();
  };
  Object.defineProperty(port, "turnWithSockets", { value: noted, configurable: true });
  context.after(() => Object.defineProperty(port, "turnWithSockets", { value: turnWithSockets }));
  return times;
}

/** Messages back and forth, so large that the event loop seldom turns, until the caller is done. */
async function saturate(ucx: Ucx, isOver: () => boolean): Promise<void> {
  await using alice = ucx.createWorker();
  await using bob = ucx.createWorker();
  const there = await alice.connect(bob.address);
  const [out, into] = [new Uint8Array(2 ** 20), new Uint8Array(2 ** 20)];
  while (!isOver()) await Promise.all([bob.recv(into), there.send(out)]);
}

// A turn in which Deno serves sockets takes 0.3 ms: one every 4 ms took a fifth of the time of messages of 8 KiB.
test("while nothing arrives at sockets they are served seldom, but still served", async (context) => {
  using ucx = Ucx.open({ config: { TLS: "sm" } });
  const times = servesDuring(context);
  const start = performance.now();
  const since = () => performance.now() - start;
  const isOver = () => ffiPort().turnWithSockets === null || times.length > 0 || since() > 30_000;
  await saturate(ucx, () => since() > 500 && isOver()); // on a busy machine they were served once in 790 ms
  const elapsed = since();
  if (ffiPort().turnWithSockets === null) return; // every turn serves them
  // Every 50 ms; more often where the runtime has events of its own, as on a busy machine. Each turn would be 500.
  assert(times.length >= 1 && times.length <= elapsed / 20, `${times.length} times in ${elapsed} ms`);
});

test("when something arrives at sockets they are served soon", async (context) => {
  const server = createServer((_, response) => response.end("here")).listen(0, "127.0.0.1");
  await once(server, "listening");
  using ucx = Ucx.open({ config: { TLS: "sm" } });
  const times = servesDuring(context);
  let isOver = false;
  const asking = (async () => {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    for (let n = 0; n < 30; n++) assertEquals(await (await fetch(url)).text(), "here");
  })().finally(() => isOver = true);
  await saturate(ucx, () => isOver);
  await asking;
  server.closeAllConnections();
  server.close();
  if (ffiPort().turnWithSockets === null) return;
  const gaps = times.slice(1).map((time, i) => time - (times[i] ?? 0)).toSorted((one, other) => one - other);
  const median = gaps[gaps.length >> 1] ?? Infinity;
  assert(median < 30, `${median} ms between two turns that serve sockets`); // 50 where nothing has arrived
});

for (const progress of ["adaptive", "event", "busy"] as const) {
  for (const tls of ["sm", "tcp"]) {
    test(`answers are sent within a few turns beside saturating messages: ${progress}, ${tls}`, async (context) => {
      const server = createServer((_, response) => response.end("here")).listen(0, "127.0.0.1");
      await once(server, "listening");
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
      using ucx = Ucx.open({ config: { TLS: tls } });
      await using alice = ucx.createWorker({ progress });
      await using bob = ucx.createWorker({ progress });
      const [there, back] = [await alice.connect(bob.address), await bob.connect(alice.address)];
      const port = ffiPort();
      const { turnWithSockets } = port;
      let turns = 0;
      if (turnWithSockets !== null) {
        const counted = () => {
          turns++;
          return turnWithSockets();
        };
        Object.defineProperty(port, "turnWithSockets", { value: counted, configurable: true });
        context.after(() => Object.defineProperty(port, "turnWithSockets", { value: turnWithSockets }));
      }
      const counts: number[] = [];
      let isOver = false;
      const asking = (async () => {
        // Where other processes keep this one waiting the event loop is idle at times, and serves sockets by itself.
        for (let n = 0; n < 20 || (turnWithSockets !== null && turns === 0 && n < 2000); n++) {
          const before = turns;
          assertEquals(await (await fetch(url)).text(), "here");
          counts.push(turns - before);
        }
      })().finally(() => isOver = true);
      const [out, into] = [new Uint8Array(8), new Uint8Array(8)];
      while (!isOver) {
        const [asked, answered] = [bob.recv(into), alice.recv(into)];
        await there.send(out);
        await asked;
        await back.send(out);
        await answered;
      }
      await asking;
      server.closeAllConnections();
      server.close();
      const median = counts.toSorted((one, other) => one - other)[counts.length >> 1] ?? Infinity;
      // Both sides of the connection are in this thread, and each takes some steps.
      assert(median <= 8, `${counts}`);
      assert(turnWithSockets === null || turns > 0);
    });
  }
}
