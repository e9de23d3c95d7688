/**
 * Builds the npm package in the folder `dist`: the joined sources, the same compiled for Bun, declarations of their
 * types, the program `causeway`, and files for Node that say what to use instead. `npm pack` runs it; nothing in the
 * repository needs it.
 *
 * Usage: pack.ts [--out=folder]
 *
 * @module
 */
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { bin } from "./pack/bin.ts";
import { compileForBun } from "./pack/compile_for_bun.ts";
import { declareTypes } from "./pack/declarations.ts";
import { writeForDeno } from "./pack/deno.ts";
import { entries, root } from "./pack/entries.ts";
import { joinSources } from "./pack/join.ts";
import { writeForNode } from "./pack/node.ts";

const { values } = parseArgs({ options: { out: { type: "string" } } });
const out = resolve(values.out ?? join(root, "dist"));

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const exports = await joinSources(entries(), { unavailable: "tools/pack/unavailable.ts" }, out);
await compileForBun(entries(), exports, out);
writeForDeno(entries(), out);
writeForNode(entries(), exports, out);
declareTypes(entries(), join(out, "types"));
writeFileSync(join(out, "bin.js"), bin);
chmodSync(join(out, "bin.js"), 0o755);
