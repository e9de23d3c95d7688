/** Active messages: each comes once, whole, in order, where it belongs, and what nobody wants is given back. */
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { test } from "node:test";
import { HostMemoryResource } from "../../src/memory/host_memory_resource.ts";
import type { UcxActiveMessage } from "../../src/ucx/active_messages.ts";
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import { UcxError } from "../../src/ucx/error.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { check, fc } from "../support/property.ts";
import { assertContent, contentOf } from "./messages.ts";

const plans = fc.array(
  fc.record({
    size: fc.oneof(fc.nat(300), fc.constantFrom(0, 8192, 9000, 100_000, 1 << 20)),
    header: fc.nat(60),
    fromClient: fc.boolean(),
    end: fc.constantFrom("bytes", "array", "buffer", "release"),
  }),
  { maxLength: 8 },
);

/** Takes the next message. */
async function next(messages: AsyncIterable<UcxActiveMessage>): Promise<UcxActiveMessage> {
  const { value, done } = await messages[Symbol.asyncIterator]().next();
  if (done) throw new TypeError("there are no more messages");
  return value;
}

for (const tls of ["tcp", "sm,tcp"]) {
  test(`messages come to the endpoint that leads back, once and in order, with headers and data: ${tls}`, async () => {
    using ucx = Ucx.open({ config: { TLS: tls } });
    await using server = ucx.createWorker();
    await using client = ucx.createWorker();
    const listener = await server.listen();
    const [there, accepted] = await Promise.all([client.connect(listener), listener.accept()]);
    assert(accepted !== null);
    const here: UcxEndpoint = accepted;
    let index = 0;
    await check(
      fc.asyncProperty(plans, async (plan) => {
        const sent = plan.map((message) => ({ ...message, index: index++ }));
        const sends = sent.map(({ size, header, fromClient, index }) =>
          (fromClient ? there : here).sendMessage(contentOf(index, size), { header: contentOf(index + 1, header) })
        );
        for (const { size, header, fromClient, end, index } of sent) {
          const message = await next((fromClient ? here : there).messages());
          assertEquals([message.header.length, message.length], [header, size]);
          assertContent(message.header, index + 1);
          if (end === "bytes") assertContent(await message.bytes(), index);
          else if (end === "array") {
            const into = new Uint8Array(size + 5).fill(9);
            await message.recv(into.subarray(2, size + 3), { timeout: 20_000 });
            assertContent(into.subarray(2, size + 2), index);
            assertEquals([...into.subarray(0, 2), ...into.subarray(size + 2)], [9, 9, 9, 9, 9]);
          } else if (end === "buffer") {
            using buffer = new HostMemoryResource().allocate(size);
            await message.recv(buffer);
            assertContent(buffer.bytes(), index);
          } else message.release();
          await assertRejects(() => message.recv(new Uint8Array(size)), TypeError, "twice");
          message.release();
        }
        await Promise.all(sends);
      }),
      15,
    );
    await listener.close();
    await there.close();
  });
}

test("a message from a worker to which no endpoint leads comes to the worker", async () => {
  using ucx = Ucx.open({ config: { TLS: "sm" } });
  const [sender, receiver] = [ucx.createWorker(), ucx.createWorker()];
  const endpoint = await sender.connect(receiver.address);
  await endpoint.sendMessage(Uint8Array.of(1, 2), { header: Uint8Array.of(3) });
  const message = await next(receiver.messages());
  assertEquals([[...message.header], [...await message.bytes()]], [[3], [1, 2]]);
  await endpoint.sendMessage(new Uint8Array(0), { header: "gr\u00f6\u00dfe: 3 \u00b5m" });
  using second = await next(receiver.messages());
  assertEquals([second.text, second.length], ["gr\u00f6\u00dfe: 3 \u00b5m", 0]);
  await endpoint.sendMessage(new Uint8Array(0)); // nobody takes it
  await Promise.all([sender.close(), receiver.close()]);
  assertThrows(() => receiver.messages(), TypeError, "the worker is closed");
});

test("what does not fit is refused and can be received still; a loop ends with its endpoint", async () => {
  using ucx = Ucx.open({ config: { TLS: "sm,tcp" } });
  await using server = ucx.createWorker();
  await using client = ucx.createWorker();
  const listener = await server.listen();
  const [there, here] = await Promise.all([client.connect(listener), listener.accept()]);
  assert(here !== null);
  await assertRejects(
    () => there.sendMessage(new Uint8Array(1), { header: new Uint8Array(1 << 20) }),
    RangeError,
    "header",
  );
  await there.sendMessage(new Uint8Array(10).fill(4));
  const message = await next(here.messages());
  await assertRejects(() => message.recv(new Uint8Array(9)), RangeError, "Cannot receive 10 bytes into memory of 9");
  await assertRejects(() => message.recv(new Uint8Array(10), { timeout: -1 }), RangeError, "at least 0");
  assertEquals([...await message.bytes()], Array.from({ length: 10 }, () => 4));
  const loop = (async () => {
    let count = 0;
    for await (const one of here.messages()) {
      count++;
      one.release();
    }
    return count;
  })();
  await there.sendMessage(new Uint8Array(1));
  await there.flush();
  const unclaimed = there.sendMessage(new Uint8Array(1 << 20)).catch((error: unknown) => error instanceof UcxError);
  await new Promise((resolve) => setTimeout(resolve, 50));
  await here.close({ force: true });
  assertEquals(await loop, 2);
  await unclaimed;
  await listener.close();
});
