/**
 * Cost of an import to a program that does nothing else, in both runtimes: the processor time of a process that imports
 * each subpath, beyond that of one that imports nothing, from the sources and from the npm package. Prints Markdown.
 *
 * Goal: a program that imports the published package starts at most 25 ms later. Met in Deno, not by all of it in Bun.
 *
 * ```sh
 * deno run -A bench/start.ts
 * ```
 *
 * All alternate, in rounds; the median counts. Processor time, user and system, hardly depends on other load. The first
 * round, which fills the runtimes' caches, does not count.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { findBun } from "../tools/bun.ts";
import { entries, root } from "../tools/pack/entries.ts";
import { median } from "./peer.ts";

const ROUNDS = 11;
const GOAL = 25;

const deno = process.versions["bun"] === undefined ? process.execPath : "deno";
const runtimes = [
  { name: "Deno", command: [deno, "run", "-A", "--no-check", "--no-config"] },
  { name: "Bun", command: [findBun()] },
];

/** Runs a command; returns its processor time in milliseconds. */
function timeOf(command: readonly string[]): number {
  // Runtimes do not report a child's processor time: the shell's `times` prints user and system time of its children.
  const { status, stdout, stderr } = spawnSync("bash", ["-c", '"$@" >/dev/null && times', "bash", ...command], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${command.join(" ")}: ${stderr}`);
  const [user = NaN, system = NaN] = [...stdout.matchAll(/(?<minutes>\d+)m(?<seconds>[\d.]+)s/g)].slice(2)
    .map(({ groups }) => 60 * Number(groups?.["minutes"]) + Number(groups?.["seconds"]));
  return (user + system) * 1000;
}

const folder = mkdtempSync(join(tmpdir(), "causeway-start-"));
try {
  const dist = join(folder, "node_modules/causeway/dist");
  mkdirSync(dist, { recursive: true });
  const packed = spawnSync(findBun(), [join(root, "tools/pack.ts"), `--out=${dist}`], { encoding: "utf8" });
  if (packed.status !== 0) throw new Error(packed.stderr);
  writeFileSync(join(dist, "../package.json"), readFileSync(join(root, "package.json")));

  const scripts = new Map<string, string>();
  const add = (name: string, imported: string | null) => {
    const file = join(folder, `${scripts.size}.mjs`);
    writeFileSync(file, imported === null ? "" : `import ${JSON.stringify(imported)};\n`);
    scripts.set(name, file);
  };
  add("nothing", null);
  for (const { subpath, name, source } of entries()) {
    add(`${subpath}, published`, join(dist, `${name}.js`));
    if (subpath === "." || subpath === "./layout") add(`${subpath}, sources`, join(root, source));
  }

  const rows = new Map<string, string[]>();
  for (const { command } of runtimes) {
    const times = new Map([...scripts.keys()].map((name) => [name, [] as number[]]));
    for (let round = 0; round <= ROUNDS; round++) {
      for (const [name, file] of scripts) {
        const time = timeOf([...command, file]);
        if (round > 0) times.get(name)?.push(time);
      }
    }
    const nothing = median(times.get("nothing") ?? []);
    for (const [name, all] of times) {
      const over = median(all) - nothing;
      rows.set(name, [...rows.get(name) ?? [], (name === "nothing" ? nothing : over).toFixed(1)]);
    }
  }
  console.log(`Processor time in ms over a program that imports nothing; medians of ${ROUNDS} rounds; goal ${GOAL}.\n`);
  console.log(`| import | ${runtimes.map(({ name }) => name).join(" | ")} |\n| --- | --: | --: |`);
  for (const [name, times] of rows) {
    const show = (ms: string) => name.endsWith("published") && Number(ms) > GOAL ? `${ms} (over)` : ms;
    console.log(`| ${name} | ${times.map(show).join(" | ")} |`);
  }
} finally {
  rmSync(folder, { recursive: true });
}
