/**
 * Talks to UCXX's own package, in a process with the same libucp: arguments are UCXX's Python and UCXX's role,
 * `listen` or `connect`. Prints a JSON object: how many messages came back correct.
 */
import { assert, assertEquals } from "@std/assert";
import { spawn } from "node:child_process";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { contentOf } from "../support/ucx_messages.ts";

const [python = "", role = ""] = process.argv.slice(2);
const limit = { timeout: 20_000 };

function peer(...args: string[]): { lines: AsyncIterator<string>; ended: Promise<number | null> } {
  const child = spawn(python, [fileURLToPath(new URL("./ucxx_peer.py", import.meta.url)), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, UCX_WARN_UNUSED_ENV_VARS: "n" },
    timeout: 60_000,
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return { lines, ended: new Promise((resolve) => child.on("close", resolve)) };
}

/** How the other side transforms bytes: each plus one. */
function more(bytes: Uint8Array): Uint8Array {
  return bytes.map((byte) => byte + 1);
}

async function talk(endpoint: UcxEndpoint): Promise<number> {
  let count = 0;
  const tags = [undefined, 0n, 1n, 1n << 32n, (1n << 61n) - 2n, (1n << 61n) - 1n, 1n << 61n, (1n << 63n) + 7n, ~0n];
  for (const [i, tag] of tags.entries()) {
    const options = tag === undefined ? limit : { ...limit, tag: BigInt.asUintN(64, tag) };
    const sent = contentOf(i, 8);
    const into = new Uint8Array(8);
    await endpoint.send(sent, options);
    assertEquals((await endpoint.recv(into, options)).length, 8);
    assertEquals(into, more(sent));
    count++;
  }
  const exact = new Uint8Array(4);
  await endpoint.send(Uint8Array.of(1, 2, 3, 4), { ...limit, tag: 2n ** 64n - 2n, exact: true });
  const { tag } = await endpoint.recv(exact, { ...limit, tag: 2n ** 63n, exact: true });
  assertEquals([tag, Array.from(exact)], [2n ** 63n, [4, 3, 2, 1]]);
  count++;
  for (const length of [1, 100_000]) {
    const numbers = Float64Array.from({ length }, (_, i) => i + 0.5);
    const into = new Uint8Array(8 * length);
    await endpoint.send(new Uint8Array(numbers.buffer), { ...limit, tag: 9n });
    await endpoint.recv(into, { ...limit, tag: 9n });
    assertEquals(new Float64Array(into.buffer), numbers.map((x) => 2 * x));
    count++;
  }
  for (const [tag, parts] of [[undefined, 3], [3n, 150]] as const) {
    const options = tag === undefined ? limit : { ...limit, tag };
    const sent = Array.from({ length: parts }, (_, i) => contentOf(i, 1 + i));
    await endpoint.sendMany(sent, options);
    const views = await endpoint.recvMany(options);
    assertEquals(views.map((view) => new Uint8Array(view.buffer.bytes())), sent.map(more).reverse());
    for (const view of views) view.close();
    count++;
  }
  const messages = endpoint.messages()[Symbol.asyncIterator]();
  for (const [i, size] of [1, 100, 0, 1 << 20].entries()) {
    const sent = contentOf(i, size);
    await endpoint.sendMessage(sent, { ...limit, header: "UCXX's Python does not read it" });
    const { value, done } = await messages.next();
    assert(done !== true);
    assertEquals([value.header.length, value.length], [0, size]);
    assertEquals(await value.bytes(limit), more(sent));
    count++;
  }
  await endpoint.send(Uint8Array.of(0), { ...limit, tag: 99n });
  return count;
}

const ucx = Ucx.open();
const worker = ucx.createWorker({ protocol: "ucxx" });
let count: number;
if (role === "listen") {
  const { lines, ended } = peer("listen");
  const { value: port } = await lines.next();
  const endpoint = await worker.connect({ host: "127.0.0.1", port: Number(port) }, limit);
  count = await talk(endpoint);
  assertEquals([(await lines.next()).value, await ended], ["talked", 0]);
} else {
  const listener = await worker.listen();
  const { lines, ended } = peer("connect", String(listener.port));
  const endpoint = await listener.accept();
  assert(endpoint !== null);
  count = await talk(endpoint);
  assertEquals([(await lines.next()).value, await ended], ["talked", 0]);
}
await worker.close({ timeout: 2000 });
console.log(JSON.stringify({ count, version: ucx.version }));
ucx.close();
process.exit(0);
