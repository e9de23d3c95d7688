/** Connections over IPv6, which UCX 1.14 and newer make: everything that works over IPv4 works over IPv6. */
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { Ucx } from "../../src/ucx/ucx.ts";
import { needs } from "../support/needs.ts";
import { assertContent, contentOf } from "../support/ucx_messages.ts";

const config = { TLS: "tcp", TCP_AF_PRIO: "inet6" };

function missing(): string | null {
  using ucx = Ucx.open();
  const [major = 0, minor = 0] = ucx.version.split(".").map(Number);
  if (major === 1 && minor < 14) {
    return `UCX ${ucx.version} is older than 1.14: name a newer one by CAUSEWAY_LIBUCP, as of pip install libucx-cu13`;
  }
  const addresses = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  return addresses.some(({ address }) => address === "::1") ? null : "no IPv6 here: it is turned off in the system";
}

const reason = missing();

for (const secret of [{}, { secret: "s3cret" }]) {
  const how = "secret" in secret ? "with a secret" : "as UCX does";
  test(...needs(reason, `a listener at ::1 and its clients talk to each other: ${how}`), async () => {
    using ucx = Ucx.open({ config });
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
  });
}

test(...needs(reason, "an IPv4 address is refused where UCX uses IPv6: nothing would come of it"), async () => {
  using ucx = Ucx.open({ config });
  await using worker = ucx.createWorker();
  assertThrows(() => worker.listen({ host: "127.0.0.1" }), TypeError, "Cannot use the IPv4 address 127.0.0.1");
  await assertRejects(() => worker.connect({ host: "127.0.0.1", port: 1 }), TypeError, "Cannot use the IPv4 address");
  await worker.listen().close(); // at ::1
});
