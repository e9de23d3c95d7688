/** A listener's former port is free for the next listener there, or the error explains how to free it. */
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { test } from "node:test";
import { SystemError } from "../../src/ffi/mod.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { patiently } from "../support/child.ts";
import { freePort } from "../support/free_port.ts";

/** Listens, serves one client, and closes first, which keeps a port busy for a minute. @returns the port */
async function serve(port: number, secret: string | undefined): Promise<number> {
  const asked = secret === undefined ? {} : { secret };
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using server = ucx.createWorker();
  await using client = ucx.createWorker();
  await using listener = server.listen({ host: "127.0.0.1", port, ...asked });
  const [there, here] = await Promise.all([
    client.connect({ host: "127.0.0.1", port: listener.port, ...asked }, { timeout: 20_000 }),
    listener.accept({ timeout: 20_000 }),
  ]);
  assert(here !== null);
  await here.sendArray(Float32Array.of(1, 2));
  using array = await there.recvArray({ timeout: 20_000 });
  assertEquals(`${array}`, "[1. 2.]");
  await here.close({ force: true });
  return listener.port;
}

test("a server with a secret listens at its port again at once", patiently, async () => {
  const port = await serve(await freePort(), "correct horse battery staple"); // nobody else gets it in between
  for (let again = 0; again < 3; again++) assertEquals(await serve(port, "correct horse battery staple"), port);
});

test("where the port of a UCX listener is busy, the error explains how to avoid that", patiently, async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  await using listener = worker.listen({ host: "127.0.0.1" });
  const { port } = listener;
  const error = assertThrows(() => worker.listen({ host: "127.0.0.1", port }), SystemError);
  assertStringIncludes(error.message, "UCX_TCP_CM_REUSEADDR=y");
});
