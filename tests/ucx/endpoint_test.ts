/**
 * The order of events when an endpoint or a worker closes, fails or is forced to close: against a libucp whose every
 * answer is scripted.
 */
import { assert, assertEquals, assertInstanceOf, assertRejects, assertThrows } from "@std/assert";
import { afterEach, test } from "node:test";
import { setImmediate, setTimeout } from "node:timers/promises";
import { withTrailer } from "../../src/ucx/address.ts";
import { ownIdentity } from "../../src/ucx/process_identity.ts";
import { ContextResources } from "../../src/ucx/context_resources.ts";
import { UcxError } from "../../src/ucx/error.ts";
import { PendingConnections } from "../../src/ucx/listen/pending_connections.ts";
import { Progress } from "../../src/ucx/progress.ts";
import { RemoteKeys, type UcxRemoteKey } from "../../src/ucx/remote_memory.ts";
import { UcxWorker } from "../../src/ucx/worker.ts";
import { openScripted, type Scripted, type ScriptedOptions } from "./scripted_endpoint.ts";
import { scriptedResources, ScriptedUcp } from "./scripted_ucp.ts";
import { addressOf, openScriptedWorker, type ScriptedWorker, workerParts } from "./scripted_worker.ts";
import { check, fc } from "../support/property.ts";
import { unwritten } from "./unwritten.ts";

const reset = -25; // UCS_ERR_CONNECTION_RESET
const cancelled = -16; // UCS_ERR_CANCELED
const forced = "ucp_ep_close_nbx 7 flags 1";
const graceful = "ucp_ep_close_nbx 7 flags 0";

/** Endpoints to close: a scripted worker always may have events, so one left open would poll for ever. */
const opened: (() => void)[] = [];
afterEach(() => opened.splice(0).forEach((stop) => stop()));

/** An endpoint with the handle 7. */
function open(options: ScriptedOptions = {}): Scripted {
  const scripted = openScripted(options);
  opened.push(() => scripted.progress.stop(new TypeError("the test is over"), 0));
  return scripted;
}

/** Runs everything that is due. */
async function settle(): Promise<void> {
  for (let round = 0; round < 4; round++) {
    for (let i = 0; i < 5; i++) await setImmediate();
    await setTimeout(2); // turns that also serve sockets take longer, most of all on a busy machine
  }
  await setImmediate();
}

test("a close waits for the sends, then flushes, then closes, then forgets the endpoint", async () => {
  const { ucp, endpoint, forgotten } = open();
  const send = endpoint.send(new Uint8Array(1)); // request 1
  const closing = endpoint.close();
  const again = endpoint.close();
  await settle();
  assertEquals(ucp.log.splice(0), ["ucp_tag_send_nbx"]);
  ucp.finish(1);
  await send;
  await settle();
  assertEquals(ucp.log.splice(0), ["ucp_ep_flush_nbx"]); // request 2
  ucp.finish(2);
  await settle();
  assertEquals(ucp.log.splice(0), ["ucp_request_free", graceful]); // request 3
  assertEquals(forgotten, []);
  ucp.finish(3);
  await Promise.all([closing, again, endpoint.close(), endpoint.close({ force: true })]);
  assertEquals([ucp.log, forgotten, await endpoint.closed], [["ucp_request_free"], [7n], null]);
});

test("a graceful close notifies the peer, if it can have an endpoint with error handling; force does not", async () => {
  const end = async (handlesErrors: boolean, isUsed: boolean, force: boolean) => {
    const { ucp, endpoint } = open({ handlesErrors });
    ucp.answers.push(...Array.from({ length: 3 }, () => 0n)); // everything completes at once
    if (isUsed) await endpoint.sendMessage(new Uint8Array(1));
    await endpoint.close({ force });
    return ucp.log.filter((call) => call === "ucp_am_send_nbx").length - Number(isUsed);
  };
  assertEquals(await end(true, true, false), 1);
  assertEquals([await end(true, true, true), await end(true, false, false), await end(false, true, false)], [0, 0, 0]);
});

test("the close of a connection by host and port goes on when the other side has acknowledged it", async () => {
  const { ucp, endpoint } = open({ handlesErrors: true, isByHost: true });
  ucp.answers.push(0n, 0n, 0n); // everything completes at once
  const closing = endpoint.close();
  await settle();
  assertEquals(ucp.log.splice(0), ["ucp_am_send_nbx"]);
  endpoint.onStreamControl("acknowledged", 0);
  await closing;
  assertEquals(ucp.log, ["ucp_ep_flush_nbx", graceful]);
});

// A server on a busy machine sent and closed before its client knew that it was connected: 2 of 240 times `connect` was
// rejected (UCS_ERR_CONNECTION_RESET).
test("the close of the other side is acknowledged once the connection is established, or cannot be", async () => {
  for (const status of [0, reset]) {
    const { ucp, endpoint } = open({ handlesErrors: true });
    const standing = endpoint.established(undefined).catch(() => {}); // request 1
    endpoint.onStreamControl("closed", 0);
    await settle();
    assertEquals(ucp.log.splice(0), ["ucp_ep_flush_nbx"]);
    ucp.finish(1, status);
    await standing;
    await settle();
    assertEquals(ucp.log, ["ucp_request_free", "ucp_am_send_nbx"]);
  }
});

// With a secret the place of a client that was killed stayed taken for a second, and who replaced it was rejected.
test("a listener gives an endpoint's place to another as soon as its process has ended, or it is closed", async () => {
  for (const end of ["process", "close"]) {
    const { ucp, endpoint } = open();
    const pending = new PendingConnections({ backlog: 5, connections: 1 });
    pending.add(endpoint, null);
    assert(await pending.next() === endpoint && !pending.hasRoom);
    if (end === "process") endpoint.processEnded();
    else {
      ucp.answers.push(0n, 0n, 0n); // everything completes at once
      await endpoint.close();
    }
    await settle();
    assert(pending.hasRoom);
  }
});

test("a request that UCX allocated is freed once, and ours never", async () => {
  const { ucp, endpoint } = open();
  const flush = endpoint.flush(); // request 1
  ucp.finish(1);
  await flush;
  for (const request of [2, 3]) {
    const send = endpoint.send(new Uint8Array(1));
    ucp.finish(request);
    await send;
  }
  assertEquals(ucp.log, ["ucp_ep_flush_nbx", "ucp_request_free", "ucp_tag_send_nbx", "ucp_tag_send_nbx"]);
});

test("a receive in place that ends with its endpoint releases its operation once", () => {
  const { ucp, endpoint, operations } = open();
  ucp.onProgress = () => {
    ucp.onProgress = () => ucp.finish(1, cancelled); // as UCX does once the receive is cancelled
    endpoint.fail(new UcxError("ucp_worker_progress", reset));
  };
  assertThrows(() => endpoint.recvSync(new Uint8Array(1)), UcxError, "UCS_ERR_CONNECTION_RESET");
  assertEquals(ucp.log, ["ucp_tag_recv_nbx", "ucp_request_cancel"]);
  assertEquals(operations.inUse, 0);
});

test("force does not wait for a send that UCX never completes, and that send is rejected", async () => {
  const { ucp, endpoint } = open();
  const send = assertRejects(() => endpoint.send(new Uint8Array(1)), UcxError, "UCS_ERR_CANCELED");
  const closing = endpoint.close();
  await settle();
  ucp.answers.push(0n); // the close completes at once
  await endpoint.close({ force: true });
  await closing;
  assertEquals(await endpoint.closed, null);
  await send;
  assertEquals(ucp.log, ["ucp_tag_send_nbx", forced, "ucp_request_cancel"], "UCX has not released the request");
});

test("force does not wait for a flush, and the flush that it cancels is no failure", async () => {
  const { ucp, endpoint } = open();
  const closing = endpoint.close();
  await settle();
  assertEquals(ucp.log, ["ucp_ep_flush_nbx"]); // request 1
  const force = endpoint.close({ force: true }); // request 2
  assertEquals(ucp.log, ["ucp_ep_flush_nbx", forced]);
  ucp.finish(1, cancelled);
  ucp.finish(2);
  await Promise.all([closing, force]);
  assertEquals(await endpoint.closed, null);
});

test("force lets UCX finish connecting, but not when the worker is closed: then the endpoint is closed once", async () => {
  for (const isWorkerClosed of [false, true]) {
    const { ucp, endpoint } = open({ isConnecting: true });
    const force = endpoint.close({ force: true }); // request 1
    await settle();
    assertEquals(ucp.log.splice(0), ["ucp_ep_flush_nbx"]);
    if (isWorkerClosed) {
      endpoint.abort(); // request 2
      assertEquals(ucp.log, [forced]);
    }
    ucp.finish(1);
    await settle();
    assertEquals(ucp.log.splice(0).filter((call) => call !== "ucp_request_free"), [forced]);
    ucp.finish(2);
    await force;
    assertEquals(await endpoint.closed, null);
  }
});

test("an endpoint whose peer is gone closes by force: a flush would never end", async () => {
  const { ucp, endpoint } = open();
  const stuck = assertRejects(
    () => endpoint.send(new Uint8Array(1)),
    UcxError,
    "has closed the connection, or its process has ended",
  );
  const failure = new UcxError("ucp_worker_progress", reset);
  endpoint.fail(failure);
  endpoint.fail(new UcxError("ucp_worker_progress", cancelled)); // the first reason counts
  assertEquals(await endpoint.closed, failure);
  const error = await assertRejects(
    () => endpoint.send(new Uint8Array(1)),
    UcxError,
    "the endpoint has already failed",
  );
  assertEquals([error.call, error.status], ["ucp_worker_progress", reset]);
  ucp.answers.push(0n);
  await endpoint.close();
  await stuck;
  assertEquals(ucp.log, ["ucp_tag_send_nbx", forced, "ucp_request_cancel"], "nor for a send that UCX has not ended");
});

test("a lost endpoint ends its sends and its close with the reason; a closed one is left alone", async () => {
  const { ucp, endpoint, forgotten } = open();
  // Requests 1 and 2.
  const send = assertRejects(
    () => endpoint.send(new Uint8Array(1)),
    UcxError,
    "has closed the connection, or its process has ended",
  );
  const aborted = new AbortController();
  const abort = assertRejects(() => endpoint.send(new Uint8Array(1), { signal: aborted.signal }), TypeError, "mine");
  aborted.abort(new TypeError("mine"));
  const closing = endpoint.close(); // waits for both
  const lost = endpoint.lose(); // request 3
  void endpoint.lose();
  await settle();
  assertEquals(ucp.log.splice(0), [
    "ucp_tag_send_nbx",
    "ucp_tag_send_nbx",
    "ucp_request_cancel",
    "ucp_request_cancel", // UCX may never complete a send to a dead peer: the caller does not wait for it
    forced,
  ]);
  for (const request of [1, 2]) ucp.finish(request, cancelled);
  ucp.finish(3);
  const error = await send;
  assertEquals([error.call, error.statusName], ["ucp_tag_send_nbx", "UCS_ERR_CONNECTION_RESET"]);
  await Promise.all([abort, lost, closing, endpoint.close({ force: true })]);
  assertEquals(forgotten, [7n]);
  const reason = await endpoint.closed;
  assertInstanceOf(reason, UcxError);
  assertEquals([reason.call, reason.statusName], ["ucp_worker_progress", "UCS_ERR_CONNECTION_RESET"]);

  const closed = open();
  closed.ucp.answers.push(0n, 0n);
  await closed.endpoint.close();
  await closed.endpoint.lose();
  await assertRejects(() => closed.endpoint.send(new Uint8Array(1)), TypeError, "the endpoint is closed");
});

// openucx 1.13 completed neither, in a fifth of all runs of death_test beside other tests.
test("operations that UCX never completes after it failed an endpoint end all the same, for UCX's reason", async () => {
  const { ucp, endpoint } = open();
  const send = assertRejects(
    () => endpoint.send(new Uint8Array(1)),
    UcxError,
    "has closed the connection, or its process has ended",
  );
  const flush = assertRejects(() => endpoint.flush(), UcxError, "has closed the connection, or its process has ended");
  const failure = new UcxError("ucp_worker_progress", reset);
  endpoint.fail(failure);
  await settle();
  assertEquals(ucp.log, ["ucp_tag_send_nbx", "ucp_ep_flush_nbx"]);
  ucp.answers.push(0n); // the close completes at once
  await endpoint.lose();
  await Promise.all([send, flush]);
  assertEquals(ucp.log.slice(2), ["ucp_request_cancel", "ucp_request_cancel", forced]);
  assertEquals(await endpoint.closed, failure);
});

test("a flush that fails is why the endpoint is closed, and it closes by force", async () => {
  const { ucp, endpoint } = open();
  const closing = endpoint.close();
  ucp.finish(1, reset);
  await settle();
  ucp.finish(2);
  await closing;
  assertEquals(ucp.log.filter((call) => call !== "ucp_request_free"), ["ucp_ep_flush_nbx", forced]);
  const reason = await endpoint.closed;
  assertInstanceOf(reason, UcxError);
  assertEquals([reason.call, reason.status], ["ucp_ep_flush_nbx", reset]);
});

test("an operation that UCX refuses at once is an error, and its memory is released", async () => {
  const { ucp, endpoint } = open();
  ucp.answers.push(-6n); // UCS_ERR_UNREACHABLE
  const error = await assertRejects(() => endpoint.send(new Uint8Array(1)), UcxError, "compare UCX_TLS");
  assertEquals([error.statusName, error.call], ["UCS_ERR_UNREACHABLE", "ucp_tag_send_nbx"]);
  ucp.answers.push(-99n, -100n); // the last status values before addresses
  for (const status of [-99, -100]) {
    const odd = await assertRejects(() => endpoint.send(new Uint8Array(1)), UcxError);
    assertEquals(odd.status, status);
  }
  ucp.answers.push(0n, 0n);
  await endpoint.close(); // waits for none of them
  assertEquals(ucp.log.at(-1), graceful);
});

/** A worker over a scripted libucp, and an address that it accepts. */
function openWorker(): ScriptedWorker {
  const scripted = openScriptedWorker();
  opened.push(() => scripted.worker.abort());
  return scripted;
}

test("a failure is reported by the endpoint that has the handle at that time", async () => {
  const { ucp, worker, address } = openWorker();
  ucp.handles.push(0x70n, 0x70n);
  const first = await worker.connect(address);
  ucp.answers.push(0n); // the connection is established
  const closing = first.close({ force: true }); // request 1: UCX has already released the handle
  await settle();
  const second = await worker.connect(address);
  ucp.finish(1);
  await closing;
  ucp.fail(0x70n, reset);
  assertEquals(await first.closed, null);
  const reason = await second.closed;
  assertInstanceOf(reason, UcxError);
  assertEquals([reason.call, reason.statusName], ["ucp_worker_progress", "UCS_ERR_CONNECTION_RESET"]);
  ucp.answers.push(0n);
  await worker.close();
  assertEquals(ucp.log.filter((call) => call.startsWith("ucp_ep_close")), [
    "ucp_ep_close_nbx 112 flags 1",
    "ucp_ep_close_nbx 112 flags 1",
  ]);
});

test("a worker closes its endpoints, then itself, once, and notifies its context", async () => {
  const { ucp, worker, address, forgotten } = openWorker();
  ucp.handles.push(0x70n, 0x80n);
  await worker.connect(address);
  await worker.connect(address);
  ucp.log.length = 0;
  ucp.answers.push(0n, 0n, 0n, 0n, 0n);
  await Promise.all([worker.close(), worker.close()]);
  assertEquals(ucp.log, [
    "ucp_ep_flush_nbx",
    "ucp_ep_flush_nbx",
    "ucp_ep_close_nbx 112 flags 0",
    "ucp_ep_close_nbx 128 flags 0",
    "ucp_worker_flush_nbx",
    "ucp_worker_destroy",
  ]);
  assertEquals(forgotten(), 1);
});

test("UCX's part of a worker that could not be made is destroyed at once, and its context once", () => {
  const scripted = new ScriptedUcp();
  const { log, functions } = scripted;
  const failing = { ...functions.activeMessage, ucp_worker_set_am_recv_handler: () => -4 }; // UCS_ERR_NO_MEMORY
  const ucp = { ...functions, activeMessage: failing };
  const owner = new ContextResources(ucp, 1n, "");
  const parts = workerParts(scripted, { ucp, owner, hasRemoteMemory: false });
  assertThrows(() => new UcxWorker(parts), UcxError, "UCS_ERR_NO_MEMORY");
  assertEquals(log, ["ucp_worker_destroy"]);
  owner.close();
  owner.close();
  assertEquals(log, ["ucp_worker_destroy", "ucp_cleanup"]);
});

// Debian's UCX 1.18.1 and Ubuntu's 1.16.0 ended the process: a send that is given up leaves its memory registered.
test("a context stays when a send was given up with a UCX that forgets registrations, and only then", async () => {
  const ends = ["completed", "given up", "closed"] as const;
  await check(fc.asyncProperty(fc.integer({ min: 13, max: 23 }), fc.constantFrom(...ends), async (minor, end) => {
    const ucp = new ScriptedUcp();
    const owner = new ContextResources(ucp.functions, 1n, "");
    const version = `1.${minor}.0`;
    const worker = new UcxWorker(workerParts(ucp, { version, owner }));
    const endpoint = await worker.connect(addressOf(version));
    const limit = new AbortController();
    const sent = endpoint.send(new Uint8Array(8), { signal: limit.signal }).catch(() => {}); // request 1
    if (end === "given up") limit.abort();
    if (end === "completed") ucp.finish(1);
    if (end !== "closed") await sent;
    if (end !== "completed") {
      ucp.onProgress = () => { // UCX returns the send; what it has left registered does not show
        ucp.onProgress = null;
        ucp.finish(1, cancelled);
      };
    }
    ucp.answers.push(...Array.from({ length: 9 }, () => 0n));
    owner.close();
    await sent;
    const isLeft = end !== "completed" && minor >= 14;
    assertEquals(ucp.log.includes("ucp_cleanup"), !isLeft);
    assert(ucp.log.includes("ucp_worker_destroy"));
  }));
});

// UCX 1.13 ended the process over a worker that was destroyed while it answered (ucp_request.c: got REP message).
test("a worker whose UCX cannot send what it has to is never destroyed, before UCX 1.14", () => {
  for (const [version, isDone] of [["1.13.1", false], ["1.13.1", true], ["1.14.0", false]] as const) {
    const ucp = new ScriptedUcp();
    const resources = scriptedResources(ucp, version);
    if (isDone) ucp.answers.push(0n);
    resources.releaseAll(new Progress(resources, "event", null), new TypeError("over"));
    assertEquals(ucp.log.includes("ucp_worker_flush_nbx"), version === "1.13.1");
    assertEquals(ucp.log.includes("ucp_worker_destroy"), isDone || version === "1.14.0");
  }
});

// Asked while an endpoint was still connecting, and not again: such a worker was never destroyed.
test("a worker whose UCX can send everything once its endpoints are closed is destroyed, before UCX 1.14", () => {
  const ucp = new ScriptedUcp();
  const resources = scriptedResources(ucp, "1.13.1");
  const progress = new Progress(resources, "event", null);
  resources.answer(progress); // request 1 does not end
  ucp.answers.push(0n);
  resources.releaseAll(progress, new TypeError("over"));
  assertEquals(ucp.log.filter((call) => call !== "ucp_request_cancel"), [
    "ucp_worker_flush_nbx",
    "ucp_worker_flush_nbx",
    "ucp_worker_destroy",
  ]);
});

test("callbacks that UCX calls are closed once, and only after the worker", () => {
  const ucp = new ScriptedUcp();
  const resources = scriptedResources(ucp);
  resources.adopt({ close: () => ucp.log.push("close") });
  resources.close();
  resources.close();
  assertEquals(ucp.log, ["ucp_worker_destroy", "close"]);
});

test("a receive that UCX does not complete is rejected all the same when its worker is closed", async () => {
  const { ucp, worker, forgotten } = openWorker();
  const receive = assertRejects(() => worker.recv(new Uint8Array(4)), TypeError, "The worker was closed");
  worker.abort();
  await receive;
  // A message is arriving: destroying the worker would end the process, with UCX 1.13.
  assertEquals(ucp.log, ["ucp_tag_recv_nbx", "ucp_request_cancel"]);
  assertEquals(forgotten(), 1);
});

test("a message that arrived before a failure is received, although the failure is reported first", async () => {
  const { ucp, worker, address } = openWorker();
  ucp.handles.push(0x70n);
  const endpoint = await worker.connect(address);
  const receive = endpoint.recv(new Uint8Array(1)); // request 1
  ucp.onProgress = () => {
    ucp.onProgress = () => ucp.finish(1); // it had arrived, by another transport
    ucp.fail(0x70n, reset);
  };
  assertEquals((await receive).length, 0);
  await assertRejects(() => endpoint.recv(new Uint8Array(1)), UcxError, "the endpoint has already failed");
  worker.abort();
});

// The second close waited for the sends again, which UCX might never give back, whatever its limits.
test("a close after one by force is over when that is", async () => {
  const { ucp, endpoint, progress } = openScripted();
  const send = endpoint.send(new Uint8Array(8)); // never given back
  ucp.answers.push(0n); // of the close
  const ends = [endpoint.close({ force: true }), endpoint.close(), endpoint.close({ timeout: 1 })];
  await assertRejects(() => send, UcxError, "UCS_ERR_CANCELED");
  await Promise.all(ends);
  await endpoint.close();
  await endpoint[Symbol.asyncDispose]();
  progress.stop(new Error("over"), 0);
});

test("a key that was closed lives until the operations that use it have ended", async () => {
  const { ucp, worker, address } = openWorker();
  const endpoint = await worker.connect(address);
  const head = new Uint8Array(32); // of a key: a mark, the address, the size, and UCX's part
  head.set(new TextEncoder().encode("region"), 2);
  new DataView(head.buffer).setBigUint64(16, 8n, true);
  const key = endpoint.remote(withTrailer(head, ownIdentity()));
  const { buffer, finishWriting } = unwritten(8);
  const put = endpoint.put(buffer, key);
  key.close();
  assert(!ucp.log.includes("ucp_rkey_destroy"));
  finishWriting();
  await put;
  assertEquals(ucp.log.slice(-2), ["ucp_put_nbx", "ucp_rkey_destroy"]);
  worker.abort();
});

test("keys are destroyed once, and never after their worker", () => {
  const ucp = new ScriptedUcp();
  const keys = new RemoteKeys(ucp.functions);
  const key = {} as UcxRemoteKey; // used only as an owner here
  keys.add(key, 5n);
  keys.add(key, 6n);
  keys.free(5n, key);
  keys.free(5n, key);
  keys.close();
  assertEquals(ucp.log.length, 2);
  keys.free(6n, key);
  assertEquals(ucp.log, ["ucp_rkey_destroy", "ucp_rkey_destroy"]);
});
