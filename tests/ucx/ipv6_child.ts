/**
 * Connections over IPv6, by a UCX that makes them, as UCX_TCP_AF_PRIO or the config says. The first argument selects
 * one: `native`, `secret`, or `refused`, an IPv4 address where UCX uses IPv6. Prints the version of UCX when all is as
 * it should be.
 */
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import process from "node:process";
import { Ucx } from "../../src/ucx/ucx.ts";
import { assertContent, contentOf } from "../support/ucx_messages.ts";

const [which] = process.argv.slice(2);
const isInherited = process.env["UCX_TCP_AF_PRIO"] !== undefined;
const ucx = Ucx.open({ config: { TLS: "tcp", ...(isInherited ? {} : { TCP_AF_PRIO: "inet6" }) } });

async function talk(secret: { readonly secret?: string }): Promise<void> {
  await using server = ucx.createWorker();
  await using client = ucx.createWorker();
  await using listener = server.listen({
    host: "localhost",
    ...("secret" in secret ? { ...secret, host: "::1" } : {}),
  });
  assertEquals(listener.host, "::1");
  const to = { host: "::1", port: listener.port, ...secret };
  const [there, here] = await Promise.all([client.connect(to, { timeout: 10_000 }), listener.accept()]);
  assert(here !== null);
  for (const size of [0, 100, 3_000_000]) {
    const into = new Uint8Array(size);
    await Promise.all([there.send(contentOf(1, size), { tag: 5n }), here.recv(into, { tag: 5n })]);
    assertContent(into, 1);
    const sent = here.sendMessage(contentOf(2, size));
    for await (const message of there.messages()) {
      assertContent(await message.data, 2);
      break;
    }
    await sent;
  }
  await there.close();
}

async function refuse(): Promise<void> {
  await using worker = ucx.createWorker();
  assertThrows(() => worker.listen({ host: "127.0.0.1" }), TypeError, "Cannot use the IPv4 address 127.0.0.1");
  await assertRejects(() => worker.connect({ host: "127.0.0.1", port: 1 }), TypeError, "Cannot use the IPv4 address");
  await worker.listen().close(); // at ::1
}

if (which === "refused") await refuse();
else await talk(which === "secret" ? { secret: "s3cret" } : {});
const { version } = ucx;
ucx.close();
console.log(JSON.stringify(version));
process.exit(0);
