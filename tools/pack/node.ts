/**
 * The files that Node loads instead: every name is there, and its first use reports that it needs Deno or Bun.
 *
 * @module
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Entry } from "./entries.ts";
import type { Exports } from "./join.ts";

/** Files whose exports are real on Node. `unavailable` also has the stand-in for the rest. */
const real = ["layout", "unavailable"];

/** Writes a file for each entry that needs native code. */
export function writeForNode(all: readonly Entry[], exports: Exports, out: string): void {
  mkdirSync(join(out, "node"), { recursive: true });
  for (const { name } of all.filter(({ name }) => !real.includes(name))) {
    const names = exports.get(name) ?? [];
    const lines = ['import { unavailable } from "../unavailable.js";'];
    for (const file of real) {
      const here = names.filter((name) => exports.get(file)?.includes(name));
      if (here.length > 0) lines.push(`export { ${here.join(", ")} } from "../${file}.js";`);
    }
    const rest = names.filter((name) => !real.some((file) => exports.get(file)?.includes(name)));
    lines.push(...rest.map((name) => `export const ${name} = unavailable("${name}");`), "");
    writeFileSync(join(out, "node", `${name}.js`), lines.join("\n"));
  }
}
