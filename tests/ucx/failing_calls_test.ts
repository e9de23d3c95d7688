/** Any call of UCX may fail: its error names it, nothing is left behind, and the next program works. */
import { assert, assertEquals, assertInstanceOf, assertRejects, assertThrows } from "@std/assert";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { libc as tables } from "../../bindings/libc.ts";
import { ucp } from "../../bindings/ucp.ts";
import { FfiError } from "../../src/ffi/errors.ts";
import { libc } from "../../src/ffi/libc.ts";
import { UcxError } from "../../src/ucx/error.ts";
import { openUcp } from "../../src/ucx/library.ts";
import { streamWindow } from "../../src/ucx/stream/byte_chunks.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import type { UcxWorker } from "../../src/ucx/worker.ts";
import { patiently } from "../support/child.ts";
import { errorsOf, FailingCalls } from "../support/failing_calls.ts";
import { freePort } from "../support/free_port.ts";
import { openFiles } from "../support/open_files.ts";
import { until } from "../support/until.ts";
import { pair } from "./pair.ts";

const failure = -3; // UCS_ERR_IO_ERROR

/** Two workers, closed at once afterwards, whatever is in flight. */
async function withWorkers(ucx: Ucx, act: (one: UcxWorker, other: UcxWorker) => Promise<void>): Promise<void> {
  using workers = new DisposableStack();
  const open = () => workers.adopt(ucx.createWorker(), (worker) => worker.abort());
  const [one, other] = [open(), open()];
  await act(one, other);
  await Promise.all([one.close(), other.close()]);
}

const programs: Record<string, (one: UcxWorker, other: UcxWorker) => Promise<void>> = {
  "by address": async (one, other) => {
    const [here, there] = await Promise.all([one.connect(other.address), other.connect(one.address)]);
    const asleep = there.recv(new Uint8Array(8), { tag: 1n });
    await Promise.all([asleep, pause(20).then(() => here.send(new Uint8Array(8), { tag: 1n }))]);
    here.sendSync(new Uint8Array(8), { tag: 2n });
    there.recvSync(new Uint8Array(8), { tag: 2n });
    await here.send(new Uint8Array(8), { tag: 3n });
    let message = other.take(3n);
    for (; message === null; message = other.take(3n)) await pause(1);
    await message.recv(new Uint8Array(8));
    const next = there.messages()[Symbol.asyncIterator]().next();
    await Promise.all([next.then(({ value }) => value?.bytes()), here.sendMessage(new Uint8Array(8))]);
    await Promise.all([there.rawStream.recvAll(new Uint8Array(8)), here.rawStream.send(new Uint8Array(8))]);
    using region = other.register(new Uint8Array(64));
    using remote = here.remote(region.key);
    await here.put(new Uint8Array(8), remote, 0);
    await here.flush();
    await here.get(new Uint8Array(8), remote, 0);
    await here.atomic("add", remote, 8, 1n);
  },
  "by a listener": async (one, other) => {
    const listener = other.listen();
    const [here, there] = await Promise.all([one.connect(listener), listener.accept()]);
    await Promise.all([here.send(new Uint8Array(8)), there?.recv(new Uint8Array(8))]);
  },
};

/** Not failed here: UCX keeps what is not closed or unmapped, and with it the descriptors of its worker or context. */
const closes = new Set(["ucp_ep_close_nbx", "ucp_mem_unmap"]);

/** Calls that these programs can do without: a worker polls, and a close is not announced to the other side. */
const isDispensable = (call: string) => /arm|get_efd|ep_query|flush|config_modify|get_address|am_send/.test(call);

for (const [name, program] of Object.entries(programs)) {
  test(
    `whichever call fails, its error names it, and nothing is left: workers connected ${name}`,
    patiently,
    async () => {
      using calls = new FailingCalls(openUcp().functions, ucp);
      const run = async () => {
        using ucx = Ucx.open();
        await withWorkers(ucx, program);
      };
      await run(); // what the process keeps is made
      calls.failNth("", 0, 0);
      await run();
      const counts = new Map(calls.counts);
      const before = openFiles();
      const isFailing = new Map(
        Object.values(ucp).flatMap((group) => Object.entries(group)).map(([call, { returns }]) => [call, returns]),
      );
      let failed = 0;
      for (const [call, count] of counts) {
        const returns = isFailing.get(call);
        const isAccepted = (nth: number) => call === "ucp_ep_create" && name === "by a listener" && nth === 2;
        if (closes.has(call) || (returns !== "i8" && returns !== "i32" && returns !== "i64")) continue;
        for (let nth = 1; nth <= Math.min(count, 3); nth++) {
          if (isAccepted(nth)) continue; // UCX would refuse the connection
          calls.failNth(call, nth, returns === "i64" ? BigInt(failure) : failure);
          const { thrown, stray } = await errorsOf(run);
          const where = `${call}, call ${nth}`;
          assertEquals(stray, [], where);
          if (calls.hasFailed) failed++;
          if (thrown !== undefined) {
            assertInstanceOf(thrown, UcxError, `${where}: ${thrown}`);
            const isByListener = thrown.call === "ucp_ep_create" && call === "ucp_ep_flush_nbx"; // which connect waits for
            assertEquals([isByListener ? call : thrown.call, thrown.status], [call, failure], where);
          } else assert(isDispensable(call) || !calls.hasFailed, `${where} failed, and nobody was told`);
          await until(() => openFiles() <= before);
          assert(openFiles() <= before, where); // the collector may have closed others
        }
      }
      assert(failed >= 15, `only ${failed} calls have failed`);
      calls.failNth("", 0, 0);
      await run();
    },
  );
}

test("where there is no memory for what UCX prints, or for a worker, that is an error, and nothing is left", () => {
  using ucx = Ucx.open();
  ucx.createWorker().abort();
  const before = openFiles();
  using calls = new FailingCalls(libc(), { loading: tables.loading, stdio: tables.stdio });
  calls.failNth("fmemopen", 1, 0n);
  assertThrows(() => ucx.transports(), FfiError, "for want of memory");
  let nth = 0;
  for (let isMade = false; !isMade;) {
    calls.failNth("calloc", ++nth, 0n);
    try {
      const worker = ucx.createWorker();
      calls.failNth("", 0, 0);
      worker.abort();
      isMade = true;
    } catch (error) {
      assertInstanceOf(error, FfiError, String(error));
    }
    assert(openFiles() <= before, `allocation ${nth}`);
  }
  assert(nth > 5);
});

test("a worker that is closed at once where there is no memory ends all that it can, and so does its context", async () => {
  const inFlight = 64; // a block of operations: closing needs more
  for (const listens of [false, true]) {
    let nth = -1; // which fails; 0: all
    for (let hasFailed = true; hasFailed && nth < 8;) {
      const ucx = Ucx.open();
      const [one, other] = [ucx.createWorker(), ucx.createWorker()];
      const [here] = await Promise.all([one.connect(other.address), other.connect(one.address)]);
      if (listens) other.listen();
      await Promise.all([here.send(new Uint8Array(1)), other.recv(new Uint8Array(1))]);
      const receives = Promise.allSettled(Array.from({ length: inFlight }, () => other.recv(new Uint8Array(1))));
      using calls = new FailingCalls(libc(), { loading: tables.loading });
      if (++nth === 0) calls.failAll("calloc", 0n);
      else calls.failNth("calloc", nth, 0n);
      const { thrown, stray } = await errorsOf(async () => {
        await null;
        if (nth % 2 === 0) other.abort();
        else ucx.close();
      });
      hasFailed = calls.hasFailed;
      calls.failNth("", 0, 0);
      assertEquals(stray, [], `allocation ${nth}`);
      if (nth <= 2) assertInstanceOf(thrown, FfiError, String(thrown)); // later ones are of calls that report nothing
      const outcomes = await receives;
      assertEquals(outcomes.filter(({ status }) => status === "rejected").length, inFlight, `allocation ${nth}`);
      other.abort();
      ucx.close();
      assert(one.isClosed && other.isClosed && ucx.isClosed);
    }
    assert(nth > 2);
  }
});

test("where there is no memory to stop listening, nobody goes on waiting for a connection, and a worker closes", async () => {
  for (const by of ["worker", "listener"]) {
    using ucx = Ucx.open();
    const worker = ucx.createWorker();
    const listener = worker.listen();
    const accepted: unknown[] = [];
    void listener.accept().then((endpoint) => accepted.push(endpoint));
    using calls = new FailingCalls(libc(), { loading: tables.loading });
    calls.failNth("calloc", 1, 0n);
    const { thrown, stray } = await errorsOf(() => by === "worker" ? worker.close() : listener.close());
    calls.failNth("", 0, 0);
    assertEquals(stray, [], by);
    if (by === "worker") assertEquals(thrown, undefined);
    else assertInstanceOf(thrown, FfiError, String(thrown));
    await until(() => accepted.length > 0);
    assertEquals(accepted, [null], by);
    worker.abort();
  }
});

test("a message for whose header there is no memory is refused, and a close does not wait for it", async () => {
  using ucx = Ucx.open();
  const { here, there, close } = await pair(ucx, "addresses");
  await here.sendMessage(new Uint8Array(8), { header: "x" }); // what it needs once is there
  {
    using calls = new FailingCalls(libc(), { loading: tables.loading });
    calls.failNth("calloc", 1, 0n);
    await assertRejects(() => here.sendMessage(new Uint8Array(8), { header: "x" }), FfiError);
  }
  let isClosed = false;
  void here.close().then(() => isClosed = true);
  await until(() => isClosed);
  assert(isClosed);
  await there.close();
  await close();
});

test("a worker whose handlers UCX refuses is closed at once", () => {
  using ucx = Ucx.open();
  ucx.createWorker().abort();
  const before = openFiles();
  using calls = new FailingCalls(openUcp().functions, ucp);
  for (const nth of [1, 2, 3]) {
    calls.failNth("ucp_worker_set_am_recv_handler", nth, failure);
    assertThrows(() => ucx.createWorker(), UcxError, "ucp_worker_set_am_recv_handler failed with UCS_ERR_IO_ERROR");
    assert(openFiles() <= before, `call ${nth}`);
  }
});

test("a listener whose port cannot be read accepts nobody", async () => {
  using ucx = Ucx.open();
  await using one = ucx.createWorker();
  await using other = ucx.createWorker();
  assert(other.address.length > 0); // it answers peers from now on
  const port = await freePort();
  using calls = new FailingCalls(openUcp().functions, ucp);
  calls.failNth("ucp_listener_query", 1, failure);
  assertThrows(() => other.listen({ port }), UcxError, "ucp_listener_query");
  await assertRejects(() => one.connect({ host: "127.0.0.1", port }), UcxError, "ucp_ep_create");
});

test("a reader that cannot tell its writer what it has taken fails, and so does the writer", patiently, async () => {
  using ucx = Ucx.open();
  const { here, there, close } = await pair(ucx, "addresses");
  using calls = new FailingCalls(openUcp().functions, ucp);
  calls.failNth("ucp_am_send_nbx", 2, BigInt(failure)); // the first says that there is a writer
  const written = here.writable.getWriter().write(new Uint8Array(8 * streamWindow));
  written.catch(() => {});
  let error: unknown;
  new Response(there.readable).bytes().catch((reason: unknown) => error = reason);
  await until(() => error !== undefined);
  assertInstanceOf(error, UcxError, String(error));
  assertEquals(error.call, "ucp_am_send_nbx");
  await assertRejects(() => written, UcxError, "The other side has stopped reading");
  await close();
});
