import { test } from "node:test";
import { patiently, runScriptForJson } from "../support/child.ts";
import { transports } from "./transports.ts";

const script = new URL("./interleavings_child.ts", import.meta.url);

for (const { tls, name } of transports) {
  test(
    `messages are matched by the rules, whatever is cancelled, taken, timed out or closed meanwhile: ${name}`,
    patiently,
    async () => {
      const env = { UCX_TLS: tls, UCX_LOG_LEVEL: "error" }; // UCX warns of messages that were never received
      await runScriptForJson(script, { env, timeout: 120_000 });
    },
  );
}
