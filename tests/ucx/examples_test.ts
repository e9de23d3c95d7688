/** The two sides of the example find each other, with a secret and without, and the server outlives other clients. */
import { assert, assertEquals, assertInstanceOf, assertNotEquals, assertStringIncludes } from "@std/assert";
import process from "node:process";
import { test } from "node:test";
import { StridedMemoryView } from "../../mod.ts";
import { UcxError } from "../../src/ucx/error.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { patiently } from "../support/child.ts";
import { assertOutput, outputsOf, startProgram } from "../support/example_programs.ts";
import { needs } from "../support/needs.ts";
import { runtimes } from "../support/runtimes.ts";

const env = (secret: string | undefined) => ({ CAUSEWAY_SECRET: secret, UCX_TCP_CM_REUSEADDR: "y" });

/** Starts a server, and waits until it prints its address. */
async function listening(args: readonly string[], secret?: string) {
  const server = startProgram("ucx_server.ts", args, { env: env(secret) });
  const [, host = "", port = ""] = await server.until(/listening at (\S+) (\d+)\n/);
  return { server, host, port };
}

for (const secret of [undefined, "correct horse battery staple"]) {
  test(
    `a client of the example gets its sums, ${secret === undefined ? "without a secret" : "by a secret"}`,
    patiently,
    async () => {
      const { server, host, port } = await listening([], secret);
      using _ends = server;
      const client = (secret: string | undefined) =>
        startProgram("ucx_client.ts", [host, port, "1"], { env: env(secret) });
      using good = client(secret);
      assertEquals(await good.ended, 0, good.printed);
      assertStringIncludes(good.printed, "matrix 1 has the sums [4. 6.]");
      if (secret !== undefined) {
        using stranger = client("another");
        assertNotEquals(await stranger.ended, 0, stranger.printed);
        assertStringIncludes(stranger.printed, "hung up");
      }
    },
  );
}

for (const other of runtimes) {
  const [title, options] = needs(
    other.missing,
    `a client in ${other.name} reconnects to its server after a restart`,
  );
  test(title, { ...options, ...patiently }, async () => {
    const first = await listening([]);
    using _one = first.server;
    const { host, port } = first;
    using client = startProgram("ucx_client.ts", [host, port], { env: env(undefined), runtime: other });
    await client.until(/sums \[4\. 6\.\]\n/);
    first.server.process.kill("SIGTERM");
    await client.until(/the server has gone/);
    const again = await listening([host, port]);
    using _another = again.server;
    assertEquals(await client.ended, 0, client.printed);
    const [printed] = outputsOf("ucx_client.ts");
    assertOutput(client.printed, printed);
    await again.server.until(/a client has gone/);
    assertOutput(again.server.printed, outputsOf("ucx_server.ts")[0]);
  });
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  test(`a client that sends the server no matrix is closed, and no other; ${signal} ends it`, patiently, async () => {
    const { server: running, host, port } = await listening([]);
    using _ends = running;
    const { process: server, ended } = running;
    using ucx = Ucx.open();
    await using worker = ucx.createWorker();
    const to = { host, port: Number(port) };
    const good = await worker.connect(to, { timeout: 5000 });
    for (const other of [Float32Array.of(1), new Float64Array(2), new Uint8Array(0), new Float32Array(2 ** 22 + 1)]) {
      const bad = await worker.connect(to, { timeout: 5000 });
      await bad.sendArray(other).catch(() => {});
      assertInstanceOf(await bad.closed, UcxError);
    }
    const matrix = StridedMemoryView.fromTypedArray(Float32Array.of(1, 2, 3, 4), { shape: [2, 2] });
    await good.sendArray(matrix);
    assertEquals(`${await good.recvArray({ timeout: 5000 })}`, "[4. 6.]");
    assert(server.pid !== undefined); // Deno considers any process that its own method has killed dead by the signal
    process.kill(server.pid, signal);
    assertEquals(await ended, 0);
    assertInstanceOf(await good.closed, UcxError);
  });
}
