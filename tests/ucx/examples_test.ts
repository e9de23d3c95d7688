/** The two sides of the example find each other, with a secret and without, and the server outlives other clients. */
import { assert, assertEquals, assertInstanceOf, assertStringIncludes } from "@std/assert";
import { spawn } from "node:child_process";
import process from "node:process";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { StridedMemoryView } from "../../mod.ts";
import { UcxError } from "../../src/ucx/error.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { patiently } from "../support/child.ts";

function start(name: string, args: readonly string[], secret: string | undefined) {
  const script = fileURLToPath(new URL(`../../examples/${name}.ts`, import.meta.url));
  const runtime = process.versions["bun"] === undefined ? ["run", "-A", "--quiet", script] : ["run", script];
  const env = { ...process.env, CAUSEWAY_SECRET: secret };
  if (secret === undefined) Reflect.deleteProperty(env, "CAUSEWAY_SECRET");
  return spawn(process.execPath, [...runtime, ...args], { env, stdio: ["ignore", "pipe", "pipe"], timeout: 30_000 });
}

/** What a process prints, and its exit code. */
async function outcome(child: ReturnType<typeof start>): Promise<{ printed: string; code: number | null }> {
  let printed = "";
  child.stdout.on("data", (chunk) => printed += chunk);
  child.stderr.on("data", (chunk) => printed += chunk);
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return { printed, code };
}

/** Where a server listens, as it says. */
async function addressOf(server: ReturnType<typeof start>): Promise<[host: string, port: string]> {
  const { value } = await createInterface({ input: server.stdout })[Symbol.asyncIterator]().next();
  const [, , host = "", port = ""] = String(value).split(" ");
  return [host, port];
}

for (const secret of [undefined, "correct horse battery staple"]) {
  test(
    `a client of the example gets its sums, ${secret === undefined ? "from anybody" : "by a secret"}`,
    patiently,
    async () => {
      const server = start("ucx_server", [], secret);
      try {
        const [host, port] = await addressOf(server);
        const { printed, code } = await outcome(start("ucx_client", [host, port], secret));
        assertStringIncludes(printed, "sums of its columns: [ 9. 12.]");
        assert(code === 0, printed);
        if (secret !== undefined) {
          const stranger = await outcome(start("ucx_client", [host, port], "another"));
          assert(stranger.code !== 0, stranger.printed);
          assertStringIncludes(stranger.printed, "hung up");
        }
      } finally {
        server.kill();
      }
    },
  );
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  test(`who sends the server no matrix is closed, and nobody else; ${signal} ends it`, patiently, async () => {
    const server = start("ucx_server", [], undefined);
    const ended = new Promise<number | null>((resolve) => server.on("close", resolve));
    try {
      const [host, port] = await addressOf(server);
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
      assert(server.pid !== undefined); // Deno takes whoever its own method has killed for dead by the signal
      process.kill(server.pid, signal);
      assertEquals(await ended, 0);
      assertInstanceOf(await good.closed, UcxError);
    } finally {
      server.kill("SIGKILL");
    }
  });
}
