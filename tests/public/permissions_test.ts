/** docs/platforms.md says what Deno must permit for what: that is enough, and all of it is needed. */
import { assertEquals, assertStringIncludes } from "@std/assert";
import { lookup } from "node:dns/promises";
import { copyFileSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { isBun, patiently, runScript } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";
import { serveRanges } from "../support/range_server.ts";
import { scratchFolder } from "../support/scratch.ts";

const root = new URL("../../", import.meta.url);
const page = readFileSync(new URL("docs/platforms.md", root), "utf8");

/** The rows of the page's table: what, and the flags that it needs. */
const rows = new Map(
  [...page.slice(page.indexOf("## What Deno must permit")).matchAll(/^\| (?!what|-)(.+?) +\| `?(.+?)`? +\|$/gm)].map((
    [, what = "", flags = ""],
  ) => [what, flags === "none" ? [] : flags.split(" ")]),
);

/** What is run, and what FILE and HOST in its flags stand for. */
interface Run {
  readonly args: readonly string[];
  /** Default: `permissions_child.ts`. */
  readonly script?: URL;
  readonly file?: string;
  readonly host?: string;
  readonly input?: string;
  /** What is missing on this machine. */
  readonly missing?: string | null;
}

const folder = scratchFolder();
const npy = join(folder, "digits.npy");
copyFileSync(new URL("examples/digits.npy", root), npy);
const written = join(folder, "written.npy");
const trips = fileURLToPath(new URL("examples/trips.vortex", root));
const bytes = readFileSync(trips);
const main = new URL("src/cli/main.ts", root);
const python = findPython();
const unnamed = await lookup(hostname()).then(() => null, () => "no address for this machine's own name: see hosts(5)");

const runs: { readonly [what: string]: Run | ((url: string) => Run) } = {
  "layouts; importing any subpath": { args: ["layouts"] },
  "Vortex from bytes and Blobs, as `VortexArray`": { args: ["vortexBytes"], input: bytes.toString("base64") },
  "Vortex from a path": { args: ["vortexPath", trips], file: trips },
  "Vortex over HTTP": (url) => ({ args: ["vortexHttp", url], host: new URL(url).host }),
  "views, copies, DLPack, Arrow, the simulator, the checker": { args: ["views"] },
  "CUDA": { args: ["cuda"] },
  "UCX": { args: ["ucx"] },
  "UCX to a host by name": { args: ["ucxByName", hostname()], host: hostname(), missing: unnamed },
  "Python": { args: ["python"], missing: typeof python === "string" ? python : null },
  "mapped files": { args: ["openNpy", npy] },
  "`readNpy` and `readNpz` from a path": { args: ["readNpy", npy], file: npy },
  "`writeNpy` and `writeNpz` to a path": { args: ["writeNpy", written], file: written },
  "a Worker: its file, and those that it imports": { args: ["worker"] },
  "`causeway doctor`": { script: main, args: ["doctor"] },
  "`causeway topology --simulate 2`": { script: main, args: ["topology", "--simulate", "2"] },
  "`causeway vortex FILE`": { script: main, args: ["vortex", trips], file: trips },
  "`causeway send-recv`, whose second process has all": {
    script: main,
    args: ["send-recv", "--n-bytes", "1Kb", "--n-iter", "2"],
  },
  "`causeway demo FILE`, whose second process has all": { script: main, args: ["demo", npy] },
};

test("every row of the page is run", () => assertEquals([...rows.keys()], Object.keys(runs)));

for (const [what, flags] of rows) {
  const given = runs[what];
  if (given === undefined) continue; // the test before has failed
  const missing = isBun ? "Bun has no permissions" : typeof given === "object" ? given.missing ?? null : null;
  const [title, { skip }] = needs(missing, `${what}: ${flags.join(" ") || "no flag"} is enough, and needed`);
  test(title, { skip, ...patiently }, async () => {
    await using server = await serveRanges(bytes);
    const { script, args, file = "", host = "", input } = typeof given === "object" ? given : given(server.url);
    const outcome = async (granted: readonly string[]) => {
      const flags = granted.map((flag) => flag.replace("=FILE", `=${file}`).replace("=HOST", `=${host}`));
      const url = script ?? new URL("./permissions_child.ts", import.meta.url);
      const { code, stdout, stderr } = await runScript(url, {
        args,
        permissions: ["--deny-sys", ...flags], // Deno's node:child_process adds -A where there is no flag
        ...input === undefined ? {} : { input },
      });
      const isDone = script === undefined ? stdout.endsWith("ok\n") : code === 0;
      return isDone ? "ok" : stdout + stderr;
    };
    assertEquals(await outcome(flags), "ok");
    for (const flag of flags) {
      const [name = ""] = flag.split("=");
      assertStringIncludes(await outcome(flags.filter((other) => other !== flag)), name, `without ${flag}`);
    }
  });
}
