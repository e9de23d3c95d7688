/**
 * Malformed input, tried in a separate process, so that an unchecked read shows as a crash.
 *
 * @module
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { runScript, runScriptForJson } from "./child.ts";

/** How often each event has occurred, by name. */
export type Tally = Record<string, number>;

/** Runs a script that counts what it tried. @throws {Error} with the last case, if it fails or dies */
export async function runFuzz(script: URL): Promise<Tally> {
  try {
    return await runScriptForJson(script, { timeout: 280_000 }) as Tally; // as the script prints it
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new Error(`${text}\nthe last case: ${await lastCase(script, /seed (-?\d+)/.exec(text)?.[1])}`);
  }
}

/** Runs the same cases again, more slowly: each is written to a file before it is tried. */
async function lastCase(script: URL, seed: string | undefined): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "causeway-fuzz-"));
  const file = join(folder, "case.json");
  try {
    await runScript(script, { args: [file], env: { CAUSEWAY_SEED: seed }, timeout: 280_000 });
    return readFileSync(file, "utf8");
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** In the script: records the next case, if a file for it was passed. */
export function nextCase(one: unknown): void {
  const [file] = process.argv.slice(2);
  if (file === undefined) return;
  writeFileSync(file, JSON.stringify(one, (_, value: unknown) => typeof value === "bigint" ? `${value}n` : value));
}
