/**
 * The program that `bunx` and `npx` start.
 *
 * @module
 */
import { oldestRuntimes } from "../../src/ffi/oldest_runtimes.ts";

/**
 * A shell script, then JavaScript. Package managers choose a program's runtime by its first line: `bun` there would be
 * "no such file" where only Node is installed, and with `node`, `bunx` would start Node. So the shell tries Bun, the
 * running one or the one on PATH, then Deno, and Node last, which says what is missing. `bunx` puts its path in
 * `npm_execpath`, unless npm has already put its own there (in an npm script); Linux knows it as the shell's parent.
 */
export const bin = `#!/bin/sh
":" // ; self=$(readlink -f "$0")
":" // ; parent=$(readlink "/proc/$PPID/exe")
":" // ; for each in "$npm_execpath" "$parent"; do case "$each" in */bun) exec "$each" "$self" "$@" ;; esac; done
":" // ; if command -v bun >/dev/null; then exec bun "$self" "$@"; fi
":" // ; if command -v deno >/dev/null; then exec deno run -A "$self" "$@"; fi
":" // ; exec node "$self" "$@"
if (globalThis.Bun === undefined && globalThis.Deno === undefined) {
  const { existsSync } = await import("node:fs");
  const on = (name) => (process.env.PATH ?? "").split(":").some((folder) => existsSync(folder + "/" + name));
  const [, self, ...args] = process.argv;
  const way = on("bun") || !on("deno") ? ["bunx", "causeway", ...args] : ["deno", "run", "-A", self, ...args];
  console.error(
    "causeway: needs Deno or Bun, for it calls native code through them, and this is Node. " +
      (on("bun") || on("deno") ? "Type: " : "Neither is on PATH. Install Bun 1.4 (npm install --global bun) and type: ") +
      way.join(" "),
  );
  process.exit(1);
}
if (globalThis.Bun?.semver.order(process.versions.bun, "${oldestRuntimes.bun}.0-0") < 0) {
  const { tooOld } = await import("./unavailable.js");
  console.error("causeway: " + tooOld("bun", process.versions.bun));
  process.exit(1);
}
await import("./cli.js");
`;
