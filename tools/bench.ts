/**
 * Runs every benchmark under Deno and under Bun.
 *
 * Usage: bench.ts [name ...]      a name is a file of bench/ without its extension
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import process from "node:process";
import { findBun } from "./bun.ts";

const wanted = process.argv.slice(2);
const names = readdirSync("bench").flatMap((file) => (file.endsWith(".ts") ? [file.slice(0, -3)] : []));
const unknown = wanted.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  console.error(`bench.ts: there is no benchmark ${unknown.join(", ")}: expected ${names.join(", ")}`);
  process.exit(2);
}
let failed = 0;
for (const name of wanted.length > 0 ? wanted : names) {
  for (const command of [[process.execPath, "run", "-A"], [findBun()]]) {
    const [executable = "", ...args] = [...command, `bench/${name}.ts`];
    console.log(`\n== ${name}: ${executable.split("/").at(-1)} ==`);
    if (spawnSync(executable, args, { stdio: "inherit" }).status !== 0) failed++;
  }
}
process.exit(failed === 0 ? 0 : 1);
