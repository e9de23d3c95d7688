/**
 * Tells which rows of a benchmark take longer than at another commit. The two trees run in turns on one machine, so
 * that whatever else runs there slows both. Prints Markdown.
 *
 * Usage: compare.ts [--rounds=3] [--above=1.05] COMMIT BENCHMARK [ARGUMENT ...]
 *
 * `BENCHMARK` is a file of bench/ without its extension, which gets the arguments. Compared is the first number of each
 * row that both trees print, by the row's name.
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { median } from "../bench/peer.ts";
import { findBun } from "./bun.ts";

const { values, positionals } = parseArgs({
  options: { rounds: { type: "string", default: "3" }, above: { type: "string", default: "1.05" } },
  allowPositionals: true,
});
const [commit, benchmark, ...rest] = positionals;
const [rounds, above] = [Number(values.rounds), Number(values.above)];
if (commit === undefined || benchmark === undefined || !(rounds >= 1) || !(above > 0)) {
  console.error("Usage: compare.ts [--rounds=3] [--above=1.05] COMMIT BENCHMARK [ARGUMENT ...]");
  process.exit(2);
}

const root = fileURLToPath(new URL("..", import.meta.url));
const runtimes = [
  { name: "Deno", command: [process.execPath, "run", "-A", "--no-check"] },
  { name: "Bun", command: [findBun()] },
];

/** Runs a program in a folder, and returns what it prints. */
function run(folder: string, [executable = "", ...args]: readonly string[]): string {
  const { stdout, stderr, status } = spawnSync(executable, args, { cwd: folder, encoding: "utf8", maxBuffer: 2 ** 26 });
  if (stdout === "" && status !== 0) throw new Error(`${executable} ${args.join(" ")}: ${stderr}`);
  return stdout;
}

/**
 * What the rows took, by name: the first number behind it, inverted if more is better. Of two of a name, the first.
 */
function rowsOf(output: string): Map<string, number> {
  const rows = new Map<string, number>();
  for (const line of output.split("\n")) {
    const [, name = "", ...cells] = line.split("|").map((cell) => cell.trim());
    const cell = cells.find((one) => /^\d/.test(one));
    if (!line.startsWith("|") || cell === undefined || rows.has(name)) continue;
    const number = Number.parseFloat(cell.replaceAll(",", ""));
    rows.set(name, cell.endsWith("/s") ? 1 / number : number);
  }
  return rows;
}

const folder = mkdtempSync(join(tmpdir(), "causeway-compare-"));
try {
  const before = join(folder, "tree");
  run(root, ["git", "worktree", "add", "--detach", before, commit]);
  for (const name of ["node_modules", ".venv", ".venv-ucxx"]) symlinkSync(join(root, name), join(before, name));
  for (const { name, command } of runtimes) {
    const ratios = new Map<string, number[]>();
    for (let round = 0; round < rounds; round++) {
      const [then, now] = [before, root].map((tree) =>
        rowsOf(run(tree, [...command, join("bench", `${benchmark}.ts`), ...rest]))
      );
      for (const [row, took] of now ?? []) {
        const earlier = then?.get(row);
        if (earlier !== undefined) ratios.getOrInsertComputed(row, () => []).push(took / earlier);
      }
    }
    const rows = [...ratios].map(([row, of]) => ({ row, of, ratio: median(of) }));
    const slower = rows.filter(({ ratio }) => ratio > above).toSorted((one, other) => other.ratio - one.ratio);
    console.log(`## ${benchmark}, ${name}: ${slower.length} of ${rows.length} rows above ${above}\n`);
    if (rows.length > 0) console.log(`Median of all: ${median(rows.map(({ ratio }) => ratio)).toFixed(2)}.\n`);
    if (slower.length > 0) console.log(`| row | time, now / ${commit} | rounds |\n|---|--:|---|`);
    for (const { row, of, ratio } of slower) {
      console.log(`| ${row} | ${ratio.toFixed(2)} | ${of.map((one) => one.toFixed(2)).join(", ")} |`);
    }
    console.log();
  }
} finally {
  spawnSync("git", ["worktree", "remove", "--force", join(folder, "tree")], { cwd: root });
  rmSync(folder, { recursive: true, force: true });
}
