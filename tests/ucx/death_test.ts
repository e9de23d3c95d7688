/**
 * The death of a process, and a pause of it, in the middle of everything that can be done with it: see
 * `death_child.ts`, which runs each scenario.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { patiently, runScriptForJson } from "../support/child.ts";
import { check, fc } from "../support/property.ts";

const script = new URL("./death_child.ts", import.meta.url);

/** Fails unless a scenario ends as it should. Its seed says when what happens happens. */
async function checkScenario(mode: string, tls: string | undefined): Promise<void> {
  // UCX warns of what the dead have left.
  const env = { UCX_TLS: tls, UCX_LOG_LEVEL: "error" };
  const run = async (seed: number) => {
    assertEquals(await runScriptForJson(script, { args: [mode, `${seed}`], env, timeout: 30_000 }), []);
  };
  await check(fc.asyncProperty(fc.nat(1000), run), 1, { endOnFailure: true });
}

for (const tls of [undefined, "tcp"]) {
  const over = `UCX_TLS ${tls ?? "unset"}`;

  test(
    `whatever a peer that has stopped owes ends within 3 s of its death, and so does all that comes later: ${over}`,
    patiently,
    async () => {
      await checkScenario("stopped", tls);
    },
  );

  test(
    `whatever is under way when a peer is killed ends within 3 s, and so does all that comes later: ${over}`,
    patiently,
    async () => {
      await checkScenario("flowing", tls);
    },
  );

  test(`a peer that stops and goes on has lost nothing: ${over}`, patiently, async () => {
    await checkScenario("resumed", tls);
  });
}

for (const mode of ["sendSync", "recvSync"]) {
  // Over shared memory UCX does not notice, and no timer fires in a thread that waits in place.
  for (const tls of [undefined, "tcp"]) {
    const over = `UCX_TLS ${tls ?? "unset"}`;
    test(
      `whoever waits in place for a peer that is killed is told within 3 s: ${mode}, ${over}`,
      patiently,
      async () => {
        await checkScenario(mode, tls);
      },
    );
  }
}
