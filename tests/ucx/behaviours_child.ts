/**
 * Child processes of `behaviours_test.ts`. The first argument selects one; each prints one JSON value at the end.
 */
import { assert, assertEquals } from "@std/assert";
import process from "node:process";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import { UcxError } from "../../src/ucx/error.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { Cuda } from "../../src/cuda/mod.ts";
import { type ProgressMode, progressModes } from "../../src/ucx/progress.ts";
import { startScript } from "../support/child.ts";
import { echoAll, serveEcho } from "./echo.ts";
import { assertContent, contentOf } from "../support/ucx_messages.ts";
import { pairings } from "./pair.ts";
import { beginWaits } from "./waits.ts";

const [what = "", ...args] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** The next value from the parent process. */
async function nextInput(): Promise<unknown> {
  const { value, done } = await lines.next();
  if (done) throw new TypeError("the parent process has ended");
  return JSON.parse(value);
}

function print(value: unknown): void {
  console.log(JSON.stringify(value));
}

/** Another process of this script, which reads and writes one JSON value per line. */
function start(...args: readonly string[]) {
  const child = startScript(new URL(import.meta.url), { args }, ["pipe", "pipe", "inherit"]);
  const { stdin, stdout, pid } = child;
  assert(stdin !== null && stdout !== null && pid !== undefined);
  const output = createInterface({ input: stdout })[Symbol.asyncIterator]();
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  return {
    pid,
    ended,
    write: (value: unknown) => void stdin.write(`${JSON.stringify(value)}\n`),
    async read(): Promise<unknown> {
      const { value, done } = await output.next();
      if (done) throw new TypeError(`process ${pid} has ended`);
      return JSON.parse(value);
    },
  };
}

/**
 * Sizes of the messages that another process sends before it closes its endpoint, all small enough to arrive unasked,
 * and of its registered memory.
 */
const toldSizes = [0, 1, 100, 1000];
const tableSizes = [0, 1, 4096, 4097, 1 << 20, 4 << 20];

const scenarios: Readonly<Record<string, () => Promise<void> | void>> = {
  /** The settings that UCX uses under the environment and each given configuration. */
  settings() {
    const configs: Record<string, string>[] = JSON.parse(args[0] ?? "");
    print(configs.map((config) => {
      using ucx = Ucx.open({ config });
      return [...new Set(ucx.transports().map((name) => name.split("/")[0] ?? ""))].toSorted();
    }));
  },

  /** Whether a connection to a listener of this process uses shared memory. */
  async sharing() {
    const configs: Record<string, string>[] = JSON.parse(args[0] ?? "");
    const results: boolean[] = [];
    for (const config of configs) {
      using ucx = Ucx.open({ config });
      await using server = ucx.createWorker();
      await using client = ucx.createWorker();
      const listener = await server.listen();
      const [there, here] = await Promise.all([client.connect(listener), listener.accept()]);
      await Promise.all([there.send(new Uint8Array(8)), here?.recv(new Uint8Array(8))]);
      results.push(there.transports().some((name) => name.endsWith("/memory")));
    }
    print(results);
  },

  /** Why a GPU's memory cannot be sent. */
  async "GPU memory"() {
    using ucx = Ucx.open();
    await using worker = ucx.createWorker();
    const endpoint = await worker.connect(worker.address);
    const memory = Cuda.simulate().device(0).memory.allocate(8);
    const outcome = await endpoint.send(memory).then(() => "sent", (error: unknown) => String(error));
    print({ outcome, hasCuda: ucx.hasCuda });
    process.exit(0);
  },

  async "echo server"() {
    const [progress = "adaptive"] = args;
    using ucx = Ucx.open();
    await using worker = ucx.createWorker({ progress: progress as ProgressMode });
    const listener = await worker.listen();
    print(listener.port);
    nextInput().catch(() => {}).then(() => listener.close());
    await serveEcho(listener, worker);
  },

  /** Every kind of message at every size is echoed by another process, in each given mode. */
  async echo() {
    let count = 0;
    for (const progress of progressModes.filter((mode) => args.includes(mode))) {
      const server = start("echo server", progress);
      using ucx = Ucx.open();
      await using worker = ucx.createWorker({ progress });
      const to = { host: "127.0.0.1", port: Number(await server.read()) };
      count += await echoAll(worker, to, [0, 1, 10, 1024, 2048, 1 << 20], [1, 2, 3, 4, 8]);
      if (progress === "event") count += await echoAll(worker, to, [1 << 24], [1, 8]);
      server.write("stop");
      assertEquals(await server.ended, 0);
    }
    print(count);
  },

  /** Connects this process's workers with all other workers of all processes, and exchanges messages with each. */
  async member() {
    const [count = "1", first = "0", size = "0"] = args;
    using ucx = Ucx.open();
    const workers = Array.from({ length: Number(count) }, () => ucx.createWorker());
    print(workers.map(({ address }) => address.toHex()));
    const addresses = (await nextInput() as string[]).map((hex) => Uint8Array.fromHex(hex));
    const rounds = 3;
    const bytes = Number(size);
    const contents = (from: number, to: number, round: number) => contentOf(from * 1000 + to * 10 + round, bytes);
    let received = 0;
    await Promise.all(workers.map(async (worker, i) => {
      const me = Number(first) + i;
      const others = addresses.map((address, number) => ({ address, number })).filter(({ number }) => number !== me);
      const endpoints: UcxEndpoint[] = await Promise.all(others.map(({ address }) => worker.connect(address)));
      for (let round = 0; round < rounds; round++) {
        await Promise.all(others.flatMap(({ number }, at) => [
          endpoints[at]?.send(contents(me, number, round), { tag: BigInt(me) }),
          (async () => {
            const into = new Uint8Array(bytes);
            assertEquals(await worker.recv(into, { tag: BigInt(number) }), { length: bytes, tag: BigInt(number) });
            assertContent(into, number * 1000 + me * 10 + round);
            received++;
          })(),
        ]));
      }
    }));
    print(received);
    await nextInput(); // all processes are done
    await Promise.all(workers.map((worker) => worker.close()));
  },

  /** The given number of processes with the given number of workers each. */
  async cluster() {
    const [processes = "2", workers = "1", size = "0"] = args;
    const members = Array.from(
      { length: Number(processes) },
      (_, i) => start("member", workers, `${i * Number(workers)}`, size),
    );
    const addresses = (await Promise.all(members.map((member) => member.read()))).flat();
    for (const member of members) member.write(addresses);
    const received = await Promise.all(members.map((member) => member.read()));
    for (const member of members) member.write("done");
    assertEquals(await Promise.all(members.map(({ ended }) => ended)), members.map(() => 0));
    print(received.reduce<number>((sum, count) => sum + Number(count), 0));
  },

  /** Sends messages, small and large, by a connection to the given port, closes it, and answers gets and puts. */
  async teller() {
    const [port = ""] = args;
    using ucx = Ucx.open();
    await using worker = ucx.createWorker();
    const endpoint = await worker.connect({ host: "127.0.0.1", port: Number(port) });
    const regions = tableSizes.map((size) => worker.register(new Uint8Array(new ArrayBuffer(size))));
    for (const [i, size] of toldSizes.entries()) await endpoint.send(contentOf(i, size), { tag: BigInt(i) });
    await endpoint.close();
    print({ address: worker.address.toHex(), keys: regions.map(({ key }) => key.toHex()) });
    await nextInput();
    for (const region of regions) region.close();
    await worker.close();
  },

  /** Probes and takes messages of another process that has closed its endpoint; then uses its memory of every size. */
  async "probing"() {
    using ucx = Ucx.open();
    await using worker = ucx.createWorker();
    const listener = await worker.listen();
    const teller = start("teller", `${listener.port}`);
    const endpoint = await listener.accept();
    assert(endpoint !== null);
    const { address, keys } = await teller.read() as { address: string; keys: string[] };
    await endpoint.closed; // by the other side, which has sent all of it before
    const results: unknown[] = [];
    for (const i of [2, 0, 3, 1]) { // in another order than sent
      const size = toldSizes[i] ?? NaN;
      const tag = BigInt(i);
      assertEquals(worker.probe(tag), { length: size, tag });
      assert(worker.probe(0n, 0n) !== null); // any of them
      const taken = worker.take(tag);
      assertEquals(worker.probe(tag), null); // nobody else can have it
      const into = new Uint8Array(size);
      await taken?.recv(into);
      assertContent(into, i);
      results.push(size);
    }
    assertEquals(worker.probe(0n, 0n), null);
    const there = await worker.connect(Uint8Array.fromHex(address));
    for (const [i, key] of keys.entries()) {
      using remote = there.remote(Uint8Array.fromHex(key));
      assertEquals(remote.size, tableSizes[i]);
      await there.put(contentOf(i, remote.size), remote);
      await there.flush();
      const into = new Uint8Array(remote.size);
      await there.get(into, remote);
      assertContent(into, i);
      results.push(remote.size);
    }
    teller.write("done");
    assertEquals(await teller.ended, 0);
    await listener.close();
    print(results);
  },

  /**
   * Connects with the given port or address, sends a little, and closes its endpoint in order: with a port, long before
   * its process ends.
   */
  async leaver() {
    const [how, to = ""] = args;
    using ucx = Ucx.open();
    await using worker = ucx.createWorker();
    print(worker.address.toHex());
    const target = how === "listener" ? { host: "127.0.0.1", port: Number(to) } : Uint8Array.fromHex(to);
    const endpoint = await worker.connect(target);
    await endpoint.send(Uint8Array.of(1));
    await nextInput();
    await endpoint.rawStream.send(new Uint8Array(7)); // part of what is awaited
    await endpoint.close();
    if (how === "listener") await nextInput();
  },

  /** How every receive ends within 3 s, when another process closes its endpoint in order. */
  async left() {
    using ucx = Ucx.open();
    const endsOf = async (how: typeof pairings[number]) => {
      await using worker = ucx.createWorker();
      const listener = how === "listener" ? await worker.listen() : null;
      const leaver = start("leaver", how, `${listener?.port ?? worker.address.toHex()}`);
      const address = String(await leaver.read());
      const endpoint = await (listener?.accept() ?? worker.connect(Uint8Array.fromHex(address)));
      await worker.recv(new Uint8Array(1));
      assert(endpoint !== null);
      const waits = beginWaits(endpoint);
      await pause(20); // until each of them is pending
      leaver.write("leave");
      const late = pause(3000, "nothing within 3 s");
      const ends = await Promise.all(waits.map(async ({ name, end }) => {
        const error = await Promise.race([end, late]);
        return [how, name, error instanceof UcxError ? error.name : String(error)];
      }));
      if (how === "listener") leaver.write("end"); // the other one has ended
      assertEquals(await leaver.ended, 0);
      await endpoint.close();
      await listener?.close();
      return ends;
    };
    print((await Promise.all(pairings.map(endsOf))).flat());
  },

  async victim() {
    using ucx = Ucx.open();
    const worker = ucx.createWorker();
    const listener = await worker.listen({ errors: "none" });
    print({ port: listener.port, address: worker.address.toHex() });
    worker.recv(new Uint8Array(4 << 20), { tag: 8n }).catch(() => {});
    for await (const endpoint of listener) {
      endpoint.send(Uint8Array.of(1)).catch(() => {});
      endpoint.send(new Uint8Array(4 << 20), { tag: 5n }).catch(() => {});
    }
  },

  /** Endpoints without error handling whose peer is killed: limits end pending operations, and this process goes on. */
  async "unreported death"() {
    const victim = start("victim");
    const { port, address } = await victim.read() as { port: number; address: string };
    using ucx = Ucx.open();
    const worker = ucx.createWorker();
    const options = { errors: "none" } as const;
    const byPort = await worker.connect({ host: "127.0.0.1", port }, { ...options, timeout: 10_000 });
    await byPort.recv(new Uint8Array(1), { timeout: 10_000 });
    const byAddress = await worker.connect(Uint8Array.fromHex(address), options);
    // When connected by address, UCX 1.13 identifies itself to the peer with the first large message. If the peer is
    // gone by then, it ends the process with a failed assertion (ucp_request.c, "got REQ message").
    await byAddress.send(new Uint8Array(4 << 20), { tag: 8n });
    process.kill(victim.pid, "SIGKILL");
    await victim.ended;
    const limits = { timeout: 300 };
    const begun = performance.now();
    const pending = [byPort, byAddress].flatMap((endpoint) => [
      endpoint.send(new Uint8Array(4 << 20), { tag: 1n, ...limits }),
      endpoint.recv(new Uint8Array(8), { tag: 2n, ...limits }),
      endpoint.recvMany({ tag: 3n, ...limits }),
      endpoint.sendMessage(new Uint8Array(4 << 20), limits),
      endpoint.recvArray(limits),
      endpoint.rawStream.recvAll(new Uint8Array(8), limits),
    ]);
    pending.push(worker.recv(new Uint8Array(4 << 20), { tag: 5n, ...limits })); // announced while its sender was alive
    const ends = new Set<string>();
    for (const end of await Promise.allSettled(pending)) {
      if (end.status === "fulfilled") ends.add("done");
      else if (end.reason instanceof UcxError) ends.add(end.reason.statusName);
      else throw end.reason;
    }
    const took = performance.now() - begun;
    assert(took < 3000, `${took} ms`);
    const another = await worker.connect(worker.address); // the worker still works
    await Promise.all([another.send(Uint8Array.of(7), { tag: 9n }), worker.recv(new Uint8Array(1), { tag: 9n })]);
    const closing = performance.now();
    await worker.close({ timeout: 500 });
    const closed = performance.now() - closing;
    assert(closed < 2000, `${closed} ms`);
    await pause(0);
    ucx.close();
    print([...ends].toSorted());
  },
};

await scenarios[what]?.();
lines.return?.();
process.exit(0);
