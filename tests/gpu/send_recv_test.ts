/** `causeway send-recv` with memory of every kind, by every transfer API. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { patiently, runScript } from "../support/child.ts";
import { missingUcxCuda } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";

const main = new URL("../../src/cli/main.ts", import.meta.url);

for (const api of ["tag", "am", "stream", "rma"]) {
  for (const memory of ["pinned", "device"]) {
    const [name, options] = needs(missingUcxCuda(1), `send-recv: ${memory} memory, by ${api}`);
    test(name, { ...patiently, ...options }, async () => {
      for (const bytes of ["8", "1MiB"]) {
        for (const more of [[], ["--reuse-alloc", "--errors", "none"]]) {
          const args = ["-n", bytes, "--n-iter", "20", "-o", memory, "--transfer-api", api, ...more];
          const { code, stderr } = await runScript(main, { args: ["send-recv", ...args] });
          assertEquals(code, 0, `${args.join(" ")}: ${stderr}`); // the command compares what came back
        }
      }
    });
  }
}
