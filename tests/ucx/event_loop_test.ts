/** A server in the same thread keeps answering while messages leave it no pause. */
import { assert, assertEquals } from "@std/assert";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { setImmediate as immediate, setTimeout as pause } from "node:timers/promises";
import { ffiPort } from "../../src/ffi/port.ts";
import { atNextTurn, isServing } from "../../src/ucx/event_loop.ts";
import { Ucx } from "../../mod.ts";

test("what is to be done at the next turn waits for sockets every few milliseconds, whoever asked for them", async (context) => {
  const port = ffiPort();
  const { turnWithSockets } = port;
  const serves: (() => void)[] = [];
  const counted = () => new Promise<void>((resolve) => serves.push(resolve));
  Object.defineProperty(port, "turnWithSockets", { value: counted, configurable: true, writable: true });
  context.after(() => Object.defineProperty(port, "turnWithSockets", { value: turnWithSockets }));
  const done: string[] = [];
  await pause(5); // so long that sockets are due
  atNextTurn(() => done.push("first"));
  assert(isServing());
  atNextTurn(() => done.push("second"));
  await immediate();
  await immediate();
  assertEquals([serves.length, done], [1, []]);
  serves[0]?.();
  await immediate();
  assertEquals([isServing(), done], [false, ["first", "second"]]);
  atNextTurn(() => done.push("soon"));
  assertEquals([isServing(), serves.length], [false, 1]); // they were just served
  await immediate();
  assertEquals(done, ["first", "second", "soon"]);
});

for (const progress of ["adaptive", "event", "busy"] as const) {
  for (const tls of ["sm", "tcp"]) {
    test(`answers go out within some turns beside saturating messages: ${progress}, ${tls}`, async (context) => {
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
        for (let n = 0; n < 20; n++) {
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
      // Both sides of the connection are in this thread, each of which takes some steps.
      assert(median <= 8, `${counts}`);
      assert(turnWithSockets === null || turns > 0);
    });
  }
}
