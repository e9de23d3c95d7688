/**
 * Installs what a task needs and this machine lacks, and says so in one line; where it may not install, the error is
 * the command to type. Debian and Ubuntu, as root or with passwordless sudo.
 *
 * Usage: setup.ts [ucx] [python]
 *
 * @module
 */
import { execFileSync, spawnSync } from "node:child_process";
import process from "node:process";
import { pythonLibrary } from "../src/python/find_library.ts";
import { LibraryNotFoundError } from "../src/ffi/errors.ts";
import { type LibraryDescription, openLibrary } from "../src/ffi/library.ts";
import type { SymbolTable } from "../bindings/abi.ts";
import { libucp } from "../src/ucx/library.ts";

function isOpenable<T extends SymbolTable>(library: LibraryDescription<T>): boolean {
  try {
    openLibrary(library);
    return true;
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return false;
    throw error;
  }
}

function succeeds(command: string, ...args: string[]): boolean {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

/** The missing Debian packages, by what needs them. */
const missing: { readonly [need: string]: () => string[] } = {
  ucx: () => (isOpenable(libucp) ? [] : ["libucx0"]),
  python: () => {
    const packages = isOpenable(pythonLibrary) ? [] : [`libpython${systemPython()}`];
    const numpy = succeeds("/usr/bin/python3", "-c", "import numpy");
    return numpy ? packages : [...packages, "python3-numpy"];
  },
};

/** The version of Debian's python3, whose library matches python3-numpy. */
function systemPython(): string {
  const print = "import sys; print('%d.%d' % sys.version_info[:2])";
  const found = spawnSync("/usr/bin/python3", ["-c", print], { encoding: "utf8" });
  if (found.status === 0) return found.stdout.trim();
  const policy = execFileSync("apt-cache", ["depends", "python3"], { encoding: "utf8" });
  return /python(3\.\d+)/.exec(policy)?.[1] ?? "3";
}

/** `[]` as root, `["sudo", "-n"]` with passwordless sudo, null without either. */
function privilege(): string[] | null {
  if (process.getuid?.() === 0) return [];
  return succeeds("sudo", "-n", "true") ? ["sudo", "-n"] : null;
}

function install(packages: readonly string[]): void {
  const byHand = `apt-get install -y ${packages.join(" ")}`;
  const how = privilege();
  if (how === null || !succeeds("apt-get", "--version")) {
    console.error(`Missing on this machine: ${packages.join(", ")}. Install with:\n\n  sudo ${byHand}\n`);
    process.exit(1);
  }
  console.log(`Installing what is missing here: ${[...how, byHand].join(" ")}`);
  const run = (...args: string[]) => {
    const [command = "apt-get", ...rest] = [...how, "apt-get", ...args];
    const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
    return spawnSync(command, rest, { encoding: "utf8", env });
  };
  const arguments_ = ["install", "-y", "--no-install-recommends", "-qq", ...packages];
  let result = run(...arguments_);
  if (result.status !== 0) {
    run("update", "-qq"); // the package lists may be absent, or older than the archive
    result = run(...arguments_);
  }
  if (result.status !== 0) {
    console.error(`${result.stderr}\nCould not install them. By hand:\n\n  sudo apt-get update && sudo ${byHand}\n`);
    process.exit(1);
  }
}

const packages = process.argv.slice(2).flatMap((need) => {
  const check = missing[need];
  if (check === undefined) {
    console.error(`setup.ts: there is no need "${need}": expected ${Object.keys(missing).join(" or ")}`);
    process.exit(2);
  }
  return check();
});
if (packages.length > 0) install(packages);
