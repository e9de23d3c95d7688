/**
 * The behaviours that UCXX's own tests cover, and where they are covered here. Rows without a file are in this one.
 *
 * |    | behaviour                                           | where                                                 |
 * | -- | --------------------------------------------------- | ----------------------------------------------------- |
 * |  1 | settings, transports, wrong and unknown ones        | worker_test; from environment and caller: here        |
 * |  2 | an operation of a feature that was not requested    | cannot occur: a context has every feature             |
 * |  3 | no CUDA                                             | worker_test, explain_test; which reason: here         |
 * |  4 | addresses: bytes, empty, damaged                    | worker_test; they are bytes: there is nothing to hash |
 * |  5 | listener: address, port 0                           | listener_test; a port of one's choice: here           |
 * |  6 | server and client, by tag, message, stream          | here, "every kind"                                    |
 * |  7 | bytes, NumPy's, CuPy's                              | python_arrays_test, message_memory_test; sizes: here  |
 * |  8 | messages of several parts                           | message_parts_test; sizes and counts: here            |
 * |  9 | active messages, before and after a receiver waits  | active_messages_test; sizes: here                     |
 * | 10 | headers, several pieces, no header                  | active_messages_test, message_list_test; pieces       |
 * |    |                                                     | between processes: here. Callbacks by                 |
 * |    |                                                     | number and memory policies do not exist: the receiver |
 * |    |                                                     | of a message provides their memory, or is refused     |
 * |    |                                                     | (gpu/ucx_test)                                        |
 * | 11 | tags in another order than sent                     | programs_test, many_test                              |
 * | 12 | probe, take, receive taken                          | probe_test, interleavings_test; never received, and   |
 * |    |                                                     | from another process: here                            |
 * | 13 | receives end when the other side closes             | here, and listener_test                               |
 * | 14 | either side is shut down while it receives          | here, and lifecycle_test                              |
 * | 15 | a listener is closed or dropped; its handler throws | listener_test, unclosed_test; there is no handler     |
 * | 16 | close after n receives                              | does not exist: count them, and close                 |
 * | 17 | why an endpoint is closed, on both sides            | here, endpoint_test, lifecycle_test                   |
 * | 18 | a peer is killed                                    | death_test; without error handling: here              |
 * | 19 | workers connected by address, 8 processes           | two_processes_test; here                              |
 * | 20 | no peer, or none that answers in time               | two_processes_test, progress_test; messages: here     |
 * | 21 | 4 servers, 100 clients each                         | many_test                                             |
 * | 22 | objects left after teardown                         | lifecycle_test, unclosed_test                         |
 * | 23 | transports in use                                   | worker_test, explain_test. UCX's own description of   |
 * |    |                                                     | contexts and workers is not shown: `doctor` has its   |
 * |    |                                                     | description of the transports                         |
 * | 24 | two processes on two GPUs                           | gpu/ucx_test                                          |
 * | 25 | every kind at every size in every mode              | here                                                  |
 * | 26 | remote memory and its keys                          | remote_memory_test; zero bytes, many bytes, of this   |
 * |    |                                                     | process and another: here                             |
 * | 27 | headers of parts, read and refused                  | message_parts_test                                    |
 * | 28 | a progress thread that stops while it starts        | cannot occur: no thread makes progress                |
 * | 29 | callbacks around progress, cancelling everything    | lifecycle_test, order_test                            |
 * | 30 | delayed submission, futures of Python               | cannot occur: neither exists                          |
 * | 31 | a request's memory type and description             | no such query: the caller knows the memory type, and  |
 * |    |                                                     | `explain` reports the way (explain_test)              |
 * | 32 | a cluster of 2 nodes with 2 workers each            | here                                                  |
 */
import { assert, assertEquals, assertInstanceOf, assertMatch, assertRejects } from "@std/assert";
import { createServer } from "node:net";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { UcxError } from "../../src/ucx/error.ts";
import { progressModes } from "../../src/ucx/progress.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { patiently, runScriptForJson } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { echoAll, serveEcho } from "./echo.ts";
import { assertContent, contentOf, turns } from "../support/ucx_messages.ts";
import { ucxOfWheel, wheelAdvice } from "../support/wheel_ucx.ts";
import { pair, pairings } from "./pair.ts";
import { beginWaits } from "./waits.ts";

const script = new URL("./behaviours_child.ts", import.meta.url);

function run(args: readonly string[], env: Readonly<Record<string, string | undefined>> = {}): Promise<unknown> {
  return runScriptForJson(script, { args, env: { UCX_LOG_LEVEL: "error", ...env }, timeout: 120_000 });
}

// 1
test("the caller's setting wins over the environment's, and the environment's over Causeway's own", async () => {
  const settings = (configs: object[], env: Record<string, string>) => run(["settings", JSON.stringify(configs)], env);
  const own = [{}, { TLS: "self" }, { UCX_TLS: "self" }];
  assertEquals(await settings(own, { UCX_TLS: "tcp" }), [["tcp"], ["self"], ["self"]]);
  const sharing = (configs: object[], value: string | undefined) =>
    run(["sharing", JSON.stringify(configs)], { UCX_TLS: undefined, UCX_MM_ERROR_HANDLING: value });
  assertEquals(await sharing([{}, { MM_ERROR_HANDLING: "n" }], undefined), [true, false]);
  assertEquals(await sharing([{}, { MM_ERROR_HANDLING: "y" }], "n"), [false, true]);
});

// 3
const library = ucxOfWheel();
const missing = library === null ? `no UCX that knows CUDA: ${wheelAdvice}` : null;
test(...needs(missing, "a UCX that was built with CUDA and may not use it is not reported to lack it"), async () => {
  const forGpus = (env: Record<string, string | undefined>) =>
    run(["GPU memory"], { CAUSEWAY_LIBUCP: library ?? "", ...env }) as Promise<
      { readonly outcome: string; readonly hasCuda: boolean }
    >; // the script's output
  const { outcome, hasCuda } = await forGpus({ UCX_TLS: "tcp" });
  assertEquals(hasCuda, false);
  assertEquals((await forGpus({ UCX_TLS: undefined, CUDA_VISIBLE_DEVICES: "-1" })).hasCuda, false, "without a GPU");
  assertMatch(outcome, /^TypeError: Cannot send GPU memory: .*UCX_TLS.*Copy it to the host/);
});

// 5
test("a listener has the port that it was given, and another listener can have it afterwards", async () => {
  const free = createServer();
  await new Promise<void>((resolve) => free.listen(0, "127.0.0.1", resolve));
  const address = free.address();
  assert(address !== null && typeof address === "object");
  const { port } = address;
  await new Promise((resolve) => free.close(resolve));
  using ucx = Ucx.open();
  await using server = ucx.createWorker();
  await using client = ucx.createWorker();
  for (let i = 0; i < 2; i++) {
    const listener = await server.listen({ port });
    assertEquals([listener.host, listener.port], ["127.0.0.1", port]);
    const [there, here] = await Promise.all([client.connect({ host: "127.0.0.1", port }), listener.accept()]);
    await Promise.all([there.send(contentOf(i, 9)), here?.recv(new Uint8Array(9))]);
    await there.close({ force: true });
    await here?.close({ force: true });
    await listener.close();
  }
});

// 6
for (const how of pairings) {
  test(`a stream without a byte ends, and so does one of 16 MiB, both ways at once: ${how}`, patiently, async () => {
    using ucx = Ucx.open();
    for (const bytes of [0, 10, 1 << 24]) {
      const { here, there, close } = await pair(ucx, how);
      await Promise.all([[here, there], [there, here]].map(async ([from, to], i) => {
        assert(from !== undefined && to !== undefined);
        const read = new Response(to.readable).bytes();
        await new Blob([contentOf(i, bytes)]).stream().pipeTo(from.writable);
        const all = await read;
        assertEquals(all.length, bytes);
        assertContent(all, i);
      }));
      await Promise.all([here.rawStream.send(new Uint8Array(0)), there.rawStream.recvAll(new Uint8Array(0))]);
      await close();
    }
  });
}

// 6 to 9, 25
for (const tls of [undefined, "tcp"]) {
  const over = `UCX_TLS ${tls ?? "unset"}`;
  test(
    `every kind of message is echoed by a worker of this process, in every mode: ${over}`,
    patiently,
    async () => {
      for (const progress of progressModes) {
        using ucx = Ucx.open(tls === undefined ? {} : { config: { TLS: tls } });
        await using server = ucx.createWorker({ progress });
        await using client = ucx.createWorker({ progress });
        const listener = await server.listen();
        const serving = serveEcho(listener, server);
        assertEquals(await echoAll(client, listener, [0, 1, 1024, 2048, 1 << 20], [1, 3]), 45);
        await listener.close();
        await serving;
      }
    },
  );

  test(`every kind of message of up to 16 MiB is echoed by another process: ${over}`, patiently, async () => {
    const modes = tls === undefined ? progressModes : ["event"] as const;
    assertEquals(await run(["echo", ...modes], { UCX_TLS: tls }), 72 * modes.length + 9);
  });
}

// 12
test("a message that was taken and is never received blocks neither messages nor a close", patiently, async () => {
  for (const tls of ["tcp", "sm"]) {
    using ucx = Ucx.open({ config: { TLS: tls } });
    const [sender, receiver] = [ucx.createWorker(), ucx.createWorker()];
    const endpoint = await sender.connect(receiver.address);
    const large = endpoint.send(contentOf(1, 1 << 20), { tag: 1n }).then(() => "sent", (error: unknown) => error);
    await endpoint.send(contentOf(2, 8), { tag: 1n });
    for (let i = 0; receiver.probe(1n) === null && i < 10_000; i++) await turns(1);
    const [first, second] = [receiver.take(1n), receiver.take(1n)];
    assertEquals([first?.length, second?.length, receiver.take(1n)], [1 << 20, 8, null]);
    await endpoint.send(contentOf(3, 9), { tag: 1n }); // other messages overtake it
    assertEquals((await receiver.recv(new Uint8Array(9), { tag: 1n })).length, 9);
    const begun = performance.now();
    await receiver.close();
    await sender.close({ timeout: 100 });
    assert(performance.now() - begun < 5000, `${performance.now() - begun} ms`);
    const end = await large;
    assert(end === "sent" || end instanceof Error, String(end));
  }
});

// 12, 26
test("messages of another process are probed and taken after its end has closed, and its memory of any size is used", async () => {
  for (const tls of [undefined, "tcp"]) {
    assertEquals(await run(["probing"], { UCX_TLS: tls }), [100, 0, 1000, 1, 0, 1, 4096, 4097, 1 << 20, 4 << 20]);
  }
});

// 13, 14, 17
for (const how of pairings) {
  for (const force of [false, true]) {
    const notified = how === "listener" ? "and the other side is notified" : "and a peer by address is not notified";
    test(`a side that closes ends its pending receives, ${notified}: ${how}${force ? ", by force" : ""}`, async () => {
      using ucx = Ucx.open();
      for (const closer of ["here", "there"] as const) {
        const { close, ...ends } = await pair(ucx, how);
        const [own, other] = [ends[closer], ends[closer === "here" ? "there" : "here"]];
        // This makes the connection: before that there is nothing to close.
        await Promise.all([own.send(new Uint8Array(1)), other.recv(new Uint8Array(1))]);
        await Promise.all([other.send(new Uint8Array(1)), own.recv(new Uint8Array(1))]);
        const ours = beginWaits(own);
        const others = beginWaits(other);
        await turns(5);
        await own.close({ force });
        for (const { name, end } of ours) assertInstanceOf(await end, TypeError, name);
        assertEquals(await own.closed, null);
        await assertRejects(() => own.send(new Uint8Array(1)), TypeError, "the endpoint is closed");
        if (how === "listener") {
          for (const { name, end } of others) assertInstanceOf(await end, UcxError, name);
          assertInstanceOf(await other.closed, UcxError);
          await assertRejects(() => other.send(new Uint8Array(1)), UcxError, "the endpoint has already failed");
        } else {
          assertEquals(await Promise.race([...others.map(({ end }) => end), pause(50, "open")]), "open");
          await other.close({ force: true });
          for (const { name, end } of others) assertInstanceOf(await end, TypeError, name);
        }
        await close();
      }
    });
  }
}

// 13
for (const tls of [undefined, "tcp"]) {
  test(
    `receives end within 3 s of an orderly close in another process: UCX_TLS ${tls ?? "unset"}`,
    patiently,
    async () => {
      const ends = await run(["left"], { UCX_TLS: tls });
      assert(Array.isArray(ends) && ends.length > 12);
      assertEquals(ends.filter(([, , end]) => end !== "UcxError"), []);
    },
  );
}

// 18
for (const tls of [undefined, "tcp"]) {
  test(
    `the death of a peer without error handling harms nothing: limits end pending calls, UCX_TLS ${tls ?? "unset"}`,
    patiently,
    async () => {
      const ends = await run(["unreported death"], { UCX_TLS: tls, UCX_LOG_LEVEL: "fatal" });
      assert(Array.isArray(ends) && ends.includes("UCS_ERR_TIMED_OUT") && !ends.includes("done"), JSON.stringify(ends));
    },
  );
}

// 19, 32
for (const [processes, workers, bytes] of [[8, 1, 1000], [2, 2, 1 << 20]] as const) {
  test(
    `${processes} processes with ${workers} workers each, connected by address, receive from all others`,
    patiently,
    async () => {
      const all = processes * workers;
      assertEquals(await run(["cluster", `${processes}`, `${workers}`, `${bytes}`]), 3 * all * (all - 1));
    },
  );
}

// 20
test(
  "a limit ends sends that the peer does not receive, and receives for which it sends nothing",
  patiently,
  async () => {
    using ucx = Ucx.open();
    const { here, there, close } = await pair(ucx, "listener");
    const large = new Uint8Array(4 << 20);
    const limits = { timeout: 50 };
    const began: Readonly<Record<string, () => Promise<unknown>>> = {
      send: () => here.send(large, { tag: 1n, ...limits }),
      sendMany: () => here.sendMany([large], { tag: 1n, ...limits }),
      sendMessage: () => here.sendMessage(large, limits),
      sendArray: () => here.sendArray(large, limits),
      recv: () => here.recv(large, { tag: 2n, ...limits }),
      recvMany: () => here.recvMany({ tag: 2n, ...limits }),
      recvArray: () => here.recvArray(limits),
      // Queued behind another one, which goes on.
      "recvMany that waits for its turn": () => {
        here.recvMany({ tag: 4n }).catch(() => {});
        return here.recvMany({ tag: 4n, ...limits });
      },
      recvAll: () => here.rawStream.recvAll(large, limits),
    };
    for (const [name, begin] of Object.entries(began)) {
      const error = await assertRejects(begin, UcxError, "It had not completed after 50 ms");
      assertEquals(error.statusName, "UCS_ERR_TIMED_OUT", name);
    }
    await Promise.all([there.send(Uint8Array.of(1), { tag: 3n }), here.recv(new Uint8Array(1), { tag: 3n })]);
    await here.close({ force: true });
    await close();
  },
);

// 26
test("memory of any size is registered, also zero bytes, and a key knows the size", async () => {
  using ucx = Ucx.open();
  await using owner = ucx.createWorker();
  await using user = ucx.createWorker();
  const endpoint = await user.connect(owner.address);
  const size = fc.oneof(fc.nat(5000), fc.constantFrom(0, 1, 4096, 4097, 1 << 20, 4 << 20));
  await check(
    fc.asyncProperty(size, fc.nat(), async (size, place) => {
      const table = new Uint8Array(new ArrayBuffer(size));
      using region = owner.register(table);
      assert(region.key.length < 1000, `a key of ${region.key.length} bytes`);
      using remote = endpoint.remote(region.key);
      assertEquals(remote.size, size);
      const at = place % (size + 1);
      await endpoint.put(contentOf(1, size - at), remote, at);
      await endpoint.flush();
      const into = new Uint8Array(size - at);
      await endpoint.get(into, remote, at);
      assertContent(into, 1);
      assertContent(table.subarray(at), 1);
      assertEquals(table.subarray(0, at).every((byte) => byte === 0), true);
      await assertRejects(() => endpoint.put(new Uint8Array(1), remote, size), RangeError, `it has ${size} bytes`);
    }),
    30,
  );
});
