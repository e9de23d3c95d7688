import { assert } from "@std/assert";
import { test } from "node:test";
import { patiently, runScriptForJson } from "../support/child.ts";
import { transports } from "./transports.ts";

const script = new URL("./programs_child.ts", import.meta.url);

for (const { tls, name, within } of transports) {
  test(`any program of sends and receives ends by the rules of tag matching: ${name}`, patiently, async () => {
    const result = await runScriptForJson(script, { env: { UCX_TLS: tls }, timeout: 50_000 });
    const { transports } = result as { readonly transports: string[] }; // the script's output
    assert(transports.length > 0 && transports.every((path) => within.test(path)), transports.join(" "));
  });
}
