/**
 * Two processes: messages both ways, and what happens to one when the other exits or is killed. See
 * `two_processes_child.ts`, which runs each scenario.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { patiently, runScriptForJson } from "../support/child.ts";
import { transports } from "./transports.ts";

function run(scenario: string, tls: string | undefined): Promise<unknown> {
  const script = new URL("./two_processes_child.ts", import.meta.url);
  return runScriptForJson(script, { args: [scenario], env: { UCX_TLS: tls }, timeout: 50_000 });
}

for (const { tls, name, between } of transports) {
  test(`two processes exchange messages both ways, in order per tag: ${name}`, patiently, async () => {
    const paths = await run("exchange", tls);
    assert(Array.isArray(paths) && paths.length > 0 && paths.every((path) => between.test(path)), String(paths));
  });

  test(`messages sent arrive, although their sender closes at once and ends: ${name}`, patiently, async () => {
    await run("leave", tls);
  });

  test(`a close that waits for a peer ends when the peer is killed: ${name}`, patiently, async () => {
    assertEquals(await run("closing", tls), "closed");
  });

  test(`the address of a process that is gone is refused, or the first send fails: ${name}`, patiently, async () => {
    const outcome = await run("gone", tls);
    assert(outcome === "refused" || outcome === "noticed", String(outcome));
  });
}

for (const { tls, name } of [...transports, { tls: "self,sm,tcp", name: "UCX_TLS=self,sm,tcp" }]) {
  test(`a killed peer is noticed within 3 s while nothing is in flight: ${name}`, patiently, async () => {
    const status = await run("idle", tls);
    assert(status === "UCS_ERR_CONNECTION_RESET" || status === "UCS_ERR_ENDPOINT_TIMEOUT", String(status));
  });

  test(`a killed peer ends the sends to it within 3 s, and nothing else: ${name}`, patiently, async () => {
    assertEquals(await run("pending", tls), "sends rejected");
  });

  test(`a peer that is killed before it has answered ends the sends to it, too: ${name}`, patiently, async () => {
    assertEquals(await run("unanswered", tls), "sends rejected");
  });
}
