/** Looking after peers: who is looked after, who is reported, when, and that it keeps nothing alive. */
import { assert, assertEquals } from "@std/assert";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { PeerLiveness } from "../../src/ucx/peer_liveness.ts";
import { ownIdentity, PeerProcess } from "../../src/ucx/process_identity.ts";
import { patiently, runScript } from "../support/child.ts";
import { identityOf } from "./identity.ts";

/** An endpoint that counts how often it is lost. */
function endpoint(): { lose(): Promise<void>; readonly lost: number } {
  const one = { lost: 0, lose: () => Promise.resolve(void one.lost++) };
  return one;
}

test("who ends is reported, and nobody else", patiently, async () => {
  const [one, other] = ["100", "101"].map((seconds) => spawn("sleep", [seconds], { stdio: "ignore" }));
  assert(one?.pid !== undefined && other?.pid !== undefined);
  const watch = new PeerLiveness();
  const [first, second, lastOne, own] = [endpoint(), endpoint(), endpoint(), endpoint()];
  watch.watch(first, PeerProcess.find(identityOf(one.pid)));
  watch.watch(second, PeerProcess.find(identityOf(other.pid)));
  watch.watch(lastOne, PeerProcess.find(identityOf(one.pid)));
  watch.watch(own, PeerProcess.find(ownIdentity()));
  watch.forget(lastOne);
  await setTimeout(2500); // two looks and more
  assertEquals([first, second, own].map(({ lost }) => lost), [0, 0, 0], "while they live");
  const ended = once(one, "exit");
  one.kill("SIGKILL");
  await ended;
  while (first.lost === 0) await setTimeout(10);
  assertEquals([second, lastOne, own].map(({ lost }) => lost), [0, 0, 0]);
  watch.close();
  other.kill("SIGKILL");
});

test("UCX has the time between two looks to say itself that a peer is gone", patiently, async () => {
  const { code, stdout } = await runScript(new URL("./peer_liveness_child.ts", import.meta.url), { args: ["looks"] });
  assertEquals([code, stdout.trim()], [0, "0 1"]);
});

test("a watch ends with its last endpoint, and does not keep the process alive before", patiently, async () => {
  for (const mode of ["watched", "forgotten"]) {
    const { code, stdout } = await runScript(new URL("./peer_liveness_child.ts", import.meta.url), { args: [mode] });
    assertEquals([code, stdout.trim()], [0, mode === "watched" ? "1 of 1" : "0 of 1"]);
  }
});
