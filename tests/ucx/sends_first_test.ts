/** An accepted endpoint can be used when the program gets it. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { patiently, runScriptForJson } from "../support/child.ts";

const script = new URL("./sends_first_child.ts", import.meta.url);
const sizes = [8, 100, 8000, 20_000, 1 << 20];

// UCX 1.13 over shared memory ended the process (SIGSEGV, SIGABRT), or the message never arrived.
for (const tls of [undefined, "tcp"]) {
  test(`a server may send as soon as it has accepted a connection: UCX_TLS ${tls ?? "unset"}`, patiently, async () => {
    const got = await runScriptForJson(script, { env: { UCX_TLS: tls }, timeout: 60_000 });
    assertEquals(got, [...sizes, ...sizes, ...sizes]);
  });
}
