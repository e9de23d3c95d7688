/**
 * The first process of the two-process tests. Its argument selects the scenario; it prints the result.
 */
import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import type { ChildProcess } from "node:child_process";
import process from "node:process";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import { UcxError } from "../../src/ucx/error.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { startScript } from "../support/child.ts";
import { planOf, receivePlan, sendPlan, turns } from "../support/ucx_messages.ts";

const count = 60;
/** How soon a dead peer must be noticed, in milliseconds. */
const limit = 3000;

const ucx = Ucx.open();
const worker = ucx.createWorker();

/** A second process, connected both ways. */
interface Peer {
  readonly child: ChildProcess;
  readonly endpoint: UcxEndpoint;
  readonly ended: Promise<number | null>;
  /** The next line it prints. */
  line(): Promise<string>;
}

async function startPeer(mode: string, seed = 0): Promise<Peer> {
  const options = { args: [mode, `${seed}`], timeout: 40_000 };
  const child = startScript(new URL("./peer.ts", import.meta.url), options, ["pipe", "pipe", "inherit"]);
  assert(child.stdout !== null && child.stdin !== null);
  const lines: string[] = [];
  let wake = () => {};
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(line);
    wake();
  });
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  const line = async () => {
    while (lines.length === 0) await new Promise<void>((resolve) => wake = resolve);
    return lines.shift() ?? "";
  };
  const endpoint = await worker.connect(Uint8Array.fromHex(await line()));
  child.stdin.write(`${worker.address.toHex()}\n`);
  return { child, endpoint, ended, line };
}

async function kill({ child, ended }: Peer): Promise<void> {
  child.kill("SIGKILL");
  await ended;
}

/** The outcome, within the limit, of a promise that may never settle. */
async function within<T>(promise: Promise<T>): Promise<T | "nothing"> {
  const timer = new AbortController();
  const timeout = setTimeout(limit, "nothing" as const, { signal: timer.signal }).catch(() => "nothing" as const);
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    timer.abort();
  }
}

/** Fails unless an endpoint is reported as failed in time, and refuses to send from then on. */
async function assertGone(endpoint: UcxEndpoint): Promise<UcxError> {
  const reason = await within(endpoint.closed);
  assertInstanceOf(reason, UcxError, `${reason} within ${limit} ms`);
  await assertRejects(() => endpoint.send(new Uint8Array(1)), UcxError, "the endpoint has already failed");
  return reason;
}

const scenarios: Record<string, () => Promise<unknown>> = {
  /** Messages both ways at once, received in another order than sent. */
  async exchange() {
    const seed = process.pid;
    const { child, endpoint, ended, line } = await startPeer("exchange", seed);
    await Promise.all([
      sendPlan(endpoint, planOf(seed + 1, count)),
      receivePlan(worker, planOf(seed, count), seed),
    ]);
    assertEquals(await line(), "done");
    const transports = endpoint.transports();
    await endpoint.close();
    assertEquals(await endpoint.closed, null);
    child.stdin?.end();
    assertEquals(await ended, 0);
    return transports;
  },

  /** Messages sent arrive, although the sender has closed everything and exited. */
  async leave() {
    const seed = process.pid;
    const { endpoint, ended } = await startPeer("leave", seed);
    await setTimeout(300); // so that messages that fit into UCX's buffers arrive before they are received
    await receivePlan(worker, planOf(seed, count), seed);
    assertEquals(await ended, 0);
    await endpoint.close({ force: true });
    return endpoint.closed;
  },

  /** A killed peer is noticed although nothing is in flight. */
  async idle() {
    const peer = await startPeer("listen");
    assertEquals(await peer.line(), "ready");
    await peer.endpoint.send(new Uint8Array(5), { tag: 7n });
    assertEquals(await peer.line(), "5");
    await setTimeout(50);
    await kill(peer);
    const reason = await assertGone(peer.endpoint);
    return reason.statusName;
  },

  /** Sends in flight to a killed peer are rejected, and other peers and receives go on. */
  async pending() {
    const peer = await startPeer("idle");
    const other = await startPeer("listen");
    assertEquals(await other.line(), "ready");
    let received = "nothing yet";
    const stop = new AbortController();
    const receive = worker.recv(new Uint8Array(8), { tag: 99n, signal: stop.signal })
      .then(() => received = "a message", () => received = "an end");
    // Larger than UCX buffers: they wait for the peer, which never receives them.
    const sends = Array.from({ length: 4 }, () => within(peer.endpoint.send(new Uint8Array(2 << 20), { tag: 1n })));
    const outcomes = Promise.allSettled(sends);
    await setTimeout(100);
    await kill(peer);
    for (const outcome of await outcomes) {
      assert(outcome.status === "rejected", "a send to a dead peer neither succeeds nor waits for ever");
      assertInstanceOf(outcome.reason, UcxError);
    }
    await assertGone(peer.endpoint);
    assertEquals(received, "nothing yet", "a receive is the worker's: any endpoint may still fulfil it");
    await other.endpoint.send(new Uint8Array(9), { tag: 7n });
    assertEquals(await within(other.line()), "9");
    stop.abort();
    await receive;
    assertEquals(received, "an end");
    assertEquals(await within(peer.endpoint.close()), undefined);
    await kill(other);
    return "sends rejected";
  },

  /** So are sends to a peer killed before it ever answered, whose death UCX does not check for on its own. */
  async unanswered() {
    const { child, endpoint, ended } = await startPeer("unresponsive");
    const small = endpoint.send(new Uint8Array(8), { tag: 1n }).then(() => "buffered", (error) => error);
    const large = Array.from({ length: 4 }, () => within(endpoint.send(new Uint8Array(2 << 20), { tag: 1n })));
    const outcomes = Promise.allSettled(large);
    await turns(20);
    child.kill("SIGKILL");
    await ended;
    const statuses = new Set<string>();
    for (const outcome of await outcomes) {
      assert(outcome.status === "rejected", "a send to a peer that never answered neither succeeds nor waits for ever");
      assertInstanceOf(outcome.reason, UcxError);
      statuses.add(outcome.reason.statusName);
    }
    statuses.add((await assertGone(endpoint)).statusName);
    assertEquals(statuses.size, 1, `sends and endpoint say the same: ${[...statuses]}`);
    assert(statuses.has("UCS_ERR_CONNECTION_RESET") || statuses.has("UCS_ERR_ENDPOINT_TIMEOUT"), `${[...statuses]}`);
    const first = await within(small);
    assert(first === "buffered" || first instanceof UcxError, `${first}`);
    assertEquals(await within(endpoint.close()), undefined);
    return "sends rejected";
  },

  /** A graceful close also ends if the peer that it waits for dies. */
  async closing() {
    const peer = await startPeer("idle");
    const send = peer.endpoint.send(new Uint8Array(2 << 20), { tag: 1n });
    const rejected = assertRejects(() => send, UcxError);
    await turns(20);
    const close = peer.endpoint.close();
    await setTimeout(100);
    await kill(peer);
    assertEquals(await within(close), undefined);
    await rejected;
    assertInstanceOf(await peer.endpoint.closed, UcxError);
    return "closed";
  },

  /** Connecting to a process that is gone fails at once, or is noticed soon. */
  async gone() {
    const address = await addressOfTheDead();
    let endpoint: UcxEndpoint;
    try {
      endpoint = await worker.connect(address);
    } catch (error) {
      assertInstanceOf(error, UcxError);
      return "refused";
    }
    const send = await within(endpoint.send(new Uint8Array(1 << 20), { tag: 1n }).then(() => "sent", (error) => error));
    assertInstanceOf(send, UcxError, `${send}`);
    await assertGone(endpoint);
    return "noticed";
  },
};

async function addressOfTheDead(): Promise<Uint8Array> {
  const child = startScript(new URL("./peer.ts", import.meta.url), { args: ["idle"] }, ["pipe", "pipe", "inherit"]);
  const { stdout } = child;
  assert(stdout !== null);
  const address: string = await new Promise((resolve) => createInterface({ input: stdout }).once("line", resolve));
  const ended = new Promise((resolve) => child.on("close", resolve));
  child.kill("SIGKILL");
  await ended;
  return Uint8Array.fromHex(address);
}

const scenario = scenarios[process.argv[2] ?? ""];
assert(scenario !== undefined);
const result = await scenario();
const start = performance.now();
await worker.close();
ucx.close();
assert(performance.now() - start < 2000, "a worker closes soon, whether or not its peers live");
console.log(JSON.stringify(result));
