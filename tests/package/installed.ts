/**
 * The package as a program gets it: built from the sources, packed, and installed in an empty folder. Done once for all
 * tests of a process, without the network.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { findBun } from "../../tools/bun.ts";
import { runtimes } from "../support/runtimes.ts";

/** The root of the repository. */
export const root: string = fileURLToPath(new URL("../..", import.meta.url));

/** Runs a program to completion; it must succeed. Returns its output. */
export function run(command: readonly string[], cwd: string, env: NodeJS.ProcessEnv = process.env): string {
  const [program = "", ...args] = command;
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, env, encoding: "utf8", timeout: 240_000 });
  assertEquals(status, 0, `${command.join(" ")}\n${stdout}\n${stderr}`);
  return stdout;
}

/** The package before it is packed: what package.json names. */
interface Package {
  readonly folder: string;
  /** A project with the package installed. */
  readonly project: string;
}

let made: Package | undefined;
let remove = (): void => {};
after(() => remove());

/** Packs and installs, on the first call. */
export function installed(): Package {
  made ??= install();
  return made;
}

function install(): Package {
  const scratch = mkdtempSync(join(tmpdir(), "causeway-installed-"));
  remove = () => rmSync(scratch, { recursive: true, force: true });
  const [folder, project] = [join(scratch, "package"), join(scratch, "project")];
  mkdirSync(join(folder, "examples"), { recursive: true });
  mkdirSync(project);
  for (const name of ["package.json", "README.md", "LICENSE", "CHANGELOG.md", "examples/digits.md"]) {
    copyFileSync(join(root, name), join(folder, name));
  }
  run([...runtimes[0]?.command ?? [], join(root, "tools/pack.ts"), `--out=${join(folder, "dist")}`], root);
  run([findBun(), "pm", "pack", "--ignore-scripts", `--filename=${join(scratch, "causeway.tgz")}`], folder);
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "project", private: true, type: "module" }));
  run([findBun(), "add", join(scratch, "causeway.tgz")], project);
  return { folder, project };
}
