import { assert } from "@std/assert";
import { test } from "node:test";
import { patiently, runScriptForJson } from "../support/child.ts";
import { scaled } from "../support/property.ts";
import { transports } from "./transports.ts";

const script = new URL("./interleavings_child.ts", import.meta.url);

for (const { tls, name } of transports) {
  test(
    `messages are matched by the rules, whatever is cancelled, taken, timed out or closed meanwhile: ${name}`,
    patiently,
    async () => {
      const env = { UCX_TLS: tls, UCX_LOG_LEVEL: "error" }; // UCX warns of messages that were never received
      const counts = await runScriptForJson(script, { env, timeout: 120_000 }) as Record<string, number>;
      for (const what of ["messages received", "abort receive", "abort send", "close it by force"]) {
        assert((counts[what] ?? 0) > scaled(10), JSON.stringify(counts));
      }
    },
  );
}
