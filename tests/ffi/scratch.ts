/**
 * Temporary folders that go when the tests of a file are done.
 *
 * @module
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";

const root = mkdtempSync(join(tmpdir(), "causeway-"));
after(() => rmSync(root, { recursive: true, force: true }));

/** A new empty folder. */
export function scratchFolder(): string {
  mkdirSync(root, { recursive: true }); // one runtime may share this module among files
  return mkdtempSync(join(root, "t"));
}
