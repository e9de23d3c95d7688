/**
 * Temporary folders that are removed when the tests of a file are done.
 *
 * @module
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { after } from "node:test";

const root = mkdtempSync(join(tmpdir(), "causeway-"));
const remove = () => rmSync(root, { recursive: true, force: true });
after(remove);
process.on("exit", remove); // Bun may share this module among the files, and make folders after the first file's end

/** A new empty folder. */
export function scratchFolder(): string {
  mkdirSync(root, { recursive: true });
  return mkdtempSync(join(root, "t"));
}
