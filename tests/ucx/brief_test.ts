/** Connections that are used once and closed at once, on busy machines: nothing is lost, and no process ends. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { patiently, runScriptForJson } from "../support/child.ts";

const script = new URL("./brief_child.ts", import.meta.url);
const aborting = new URL("./abort_child.ts", import.meta.url);

// With a secret, `connect` was rejected (29 of 1,200), and messages that had arrived could not be received (6 to 39 of
// 100); a listener that is told of no errors dropped connections whose messages had arrived (6 of 200).
for (
  const name of [
    "to the client, with a secret",
    "to the server, with a secret",
    "to the client",
    "to the server",
    "to a server that is told of no errors",
  ]
) {
  test(`connections that are used and closed at once lose nothing: ${name}`, patiently, async () => {
    const got = await runScriptForJson(script, { args: [name] });
    assertEquals(got, { accepted: 60, refused: [] });
  });
}

// UCX 1.13 ended the client's process by a failed assertion (`remote_ep_id`) in 7 of 8 runs.
test("workers that are aborted while a client connects to them leave its process alone", patiently, async () => {
  assertEquals(await runScriptForJson(aborting), { survived: 25, code: 0, signal: null });
});
