/**
 * Deno's questions for permissions, which it asks on a terminal only.
 *
 * @module
 */
import { spawn, spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { isBun } from "./child.ts";

/** What is missing for a test that is asked, or null. */
export const missingPrompts: string | null = isBun
  ? "Bun has no permissions"
  : spawnSync("script", ["--version"]).status === 0
  ? null
  : "no terminal to ask on: apt-get install bsdutils";

/** What became of a script that asks. */
export interface Asked {
  /** What was asked for, in order: `ffi access`, `read access to "a.npy"`. */
  readonly questions: readonly string[];
  /** The last line that was printed. */
  readonly last: string;
}

/** Runs a script on a terminal of its own, and gives the same answer to all that Deno asks. */
export async function answering(
  answer: "y" | "n",
  url: URL,
  args: readonly string[] = [],
  permissions: readonly string[] = [],
): Promise<Asked> {
  const flags = ["run", ...permissions, "--no-check", "--quiet", "--no-lock", "--no-config"];
  const command = [process.execPath, ...flags, fileURLToPath(url), ...args].map((word) => `'${word}'`).join(" ");
  const child = spawn("script", ["--quiet", "--flush", "--command", command, "/dev/null"], { timeout: 60_000 });
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => printed += text);
  // Deno discards what was typed before it is ready to read, and asks only once nobody types.
  const typing = setInterval(() => {
    const shown = stripVTControlCharacters(printed); // it is coloured, unless NO_COLOR is set
    if (shown.split("Allow? [").length > shown.split(/(?:Granted|Denied) .*access/).length) {
      child.stdin.write(`${answer}\n`);
    }
  }, 200);
  await new Promise((resolve) => child.on("close", resolve));
  clearInterval(typing);
  const lines = stripVTControlCharacters(printed).trimEnd().split(/[\r\n]+/);
  const questions = lines.flatMap((line) => /Deno requests (?<what>.*)\.$/.exec(line)?.groups?.["what"] ?? []);
  return { questions, last: lines.at(-1) ?? "" };
}
