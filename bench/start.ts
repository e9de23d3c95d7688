/**
 * What the start of a program costs, beyond that of one that does nothing, in both runtimes: the wall time from the
 * process's start to the first view, of a typed array, and the process's processor time; and the processor time of an
 * import of each subpath; from the npm package and from the sources. Prints Markdown.
 *
 * Goal: the first view at most 25 ms later, in wall time.
 *
 * ```sh
 * deno run -A bench/start.ts
 * ```
 *
 * All alternate, in rounds; the median counts, and the least is printed beside it. Processor time, user and system,
 * hardly depends on other load; wall time does. The first round, which fills the runtimes' caches, does not count.
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
  { name: "Deno", command: [deno, "run", "-A", "--no-check"] },
  { name: "Bun", command: [findBun()] },
];

/** Milliseconds that a program took. */
interface Times {
  /** From the start of its process until it said that it is there. */
  readonly wall: number;
  /** Of the whole process. */
  readonly processor: number;
}

/** The current time, with fractions of a millisecond, which other processes can compare. */
const now = "performance.timeOrigin + performance.now()";

/** Runs a program that prints {@linkcode now} once. */
function timesOf(command: readonly string[]): Times {
  const start = performance.timeOrigin + performance.now();
  // Runtimes do not report a child's processor time: the shell's `times` prints user and system time of its children.
  const { status, stdout, stderr } = spawnSync("bash", ["-c", '"$@" && times', "bash", ...command], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${command.join(" ")}: ${stderr}`);
  const [user = NaN, system = NaN] = [...stdout.matchAll(/(?<minutes>\d+)m(?<seconds>[\d.]+)s/g)].slice(2)
    .map(({ groups }) => 60 * Number(groups?.["minutes"]) + Number(groups?.["seconds"]));
  return { wall: Number(stdout.split("\n")[0]) - start, processor: (user + system) * 1000 };
}

const folder = mkdtempSync(join(tmpdir(), "causeway-start-"));
try {
  const dist = join(folder, "node_modules/causeway/dist");
  mkdirSync(dist, { recursive: true });
  const packed = spawnSync(findBun(), [join(root, "tools/pack.ts"), `--out=${dist}`], { encoding: "utf8" });
  if (packed.status !== 0) throw new Error(packed.stderr);
  writeFileSync(join(dist, "../package.json"), readFileSync(join(root, "package.json")));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ dependencies: { causeway: "*" } }));

  const scripts = new Map<string, string>();
  const add = (name: string, code: string) => {
    const file = join(folder, `${scripts.size}.mjs`);
    writeFileSync(file, `${code}console.log(${now});\n`);
    scripts.set(name, file);
  };
  const firstView = (from: string) =>
    `import { StridedMemoryView } from ${JSON.stringify(from)};\n` +
    "globalThis.view = StridedMemoryView.fromTypedArray(new Float32Array(4));\n";
  add("nothing", "");
  add("the first view, package", firstView("causeway"));
  add("the first view, sources", firstView(join(root, "mod.ts")));
  const views = [...scripts.keys()];
  for (const { subpath, source } of entries()) {
    add(`${subpath}, published`, `import ${JSON.stringify(join("causeway", subpath))};\n`);
    if (subpath === "." || subpath === "./layout") {
      add(`${subpath}, sources`, `import ${JSON.stringify(join(root, source))};\n`);
    }
  }

  const times = runtimes.map(({ command }) => {
    const all = new Map([...scripts.keys()].map((name) => [name, [] as Times[]]));
    for (let round = 0; round <= ROUNDS; round++) {
      for (const [name, file] of scripts) {
        const one = timesOf([...command, file]);
        if (round > 0) all.get(name)?.push(one);
      }
    }
    return all;
  });
  /**
   * Medians of a kind of time in each runtime, over those of a program that does nothing; and the least over the least.
   */
  const over = (name: string, kind: keyof Times) =>
    times.map((all) => {
      const of = (one: string) => (all.get(one) ?? []).map((time) => time[kind]);
      const [own, nothing] = name === "nothing" ? [of(name), [0]] : [of(name), of("nothing")];
      return { median: median(own) - median(nothing), least: Math.min(...own) - Math.min(...nothing) };
    });
  const show = (ms: number) => `${ms.toFixed(1)}${ms > GOAL ? " (over)" : ""}`;

  console.log(
    `Milliseconds over a program that does nothing; medians of ${ROUNDS} rounds; goal ${GOAL} of wall time.\n`,
  );
  console.log(`| to the first view | ${runtimes.map(({ name }) => `${name}: wall | least | processor`).join(" | ")} |`);
  console.log(`| --- |${runtimes.map(() => " --: | --: | --: |").join("")}`);
  for (const name of views) {
    const processor = over(name, "processor");
    const cells = over(name, "wall").flatMap(({ median: ms, least }, i) => [
      name === "nothing" ? ms.toFixed(1) : show(ms),
      least.toFixed(1),
      (processor[i]?.median ?? NaN).toFixed(1),
    ]);
    console.log(`| ${[name, ...cells].join(" | ")} |`);
  }
  console.log(`\nThe same of processor time, for an import alone.\n`);
  console.log(`| import | ${runtimes.map(({ name }) => name).join(" | ")} |\n| --- | --: | --: |`);
  for (const name of scripts.keys()) {
    if (views.includes(name)) continue;
    const cells = over(name, "processor").map(({ median: ms }) => ms.toFixed(1));
    console.log(`| ${[name, ...cells].join(" | ")} |`);
  }
} finally {
  rmSync(folder, { recursive: true });
}
