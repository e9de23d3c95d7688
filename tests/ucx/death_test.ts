/**
 * A process dies, or pauses, in the middle of every operation that involves it: see `death_child.ts`, which runs
 * each scenario.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { patiently, runScriptForJson } from "../support/child.ts";
import { check, fc } from "../support/property.ts";

const script = new URL("./death_child.ts", import.meta.url);

/**
 * What UCX 1.13 prints when it occasionally aborts because a peer dies amid a send over TCP: it has completed an
 * operation whose bytes are still in its socket. Seen in 6 of 900 deaths on a loaded machine.
 */
const ownFailure = "Assertion `comp->count > 0' failed";

/** Fails unless a scenario ends as it should. Its seed determines when the event happens. */
async function checkScenario(mode: string, tls: string | undefined): Promise<void> {
  // UCX warns of operations and memory that dead peers leave behind.
  const env = { UCX_TLS: tls, UCX_LOG_LEVEL: "error" };
  const once = (seed: number) => runScriptForJson(script, { args: [mode, `${seed}`], env, timeout: 30_000 });
  const run = async (seed: number) => {
    const ends = await once(seed).catch((error: unknown) => {
      if (!String(error).includes(ownFailure)) throw error;
      console.error(`UCX itself has aborted, tried again: ${ownFailure}`);
      return once(seed);
    });
    assertEquals(ends, []);
  };
  await check(fc.asyncProperty(fc.nat(1000), run), 1, { endOnFailure: true });
}

for (const tls of [undefined, "tcp"]) {
  const over = `UCX_TLS ${tls ?? "unset"}`;

  test(
    `operations pending on a stopped peer end within 3 s of its death, and so do all later ones: ${over}`,
    patiently,
    async () => {
      await checkScenario("stopped", tls);
    },
  );

  test(
    `operations in flight when a peer is killed end within 3 s, and so do all later ones: ${over}`,
    patiently,
    async () => {
      await checkScenario("flowing", tls);
    },
  );

  test(`a peer that is stopped and resumed loses nothing: ${over}`, patiently, async () => {
    await checkScenario("resumed", tls);
  });
}

for (const mode of ["sendSync", "recvSync"]) {
  // Over shared memory UCX does not notice, and no timer fires in a thread that waits in place.
  for (const tls of [undefined, "tcp"]) {
    const over = `UCX_TLS ${tls ?? "unset"}`;
    test(
      `a call that waits in place for a peer that is killed fails within 3 s: ${mode}, ${over}`,
      patiently,
      async () => {
        await checkScenario(mode, tls);
      },
    );
  }
}

test("a call in place loses nothing when its peer is stopped and resumed", patiently, async () => {
  await checkScenario("resumedSendSync", undefined);
  await checkScenario("resumedRecvSync", "tcp");
});
