/**
 * The oldest versions of the runtimes that Causeway runs on, which are `engines` in package.json, too. Nothing is
 * tested with older ones, in which something fails sooner or later, or is wrong: zeros that go to Python lose their
 * sign (Bun 1.3.14), the package's files do not parse (Bun 1.3.11), Map lacks a method (Deno 2.6.6).
 *
 * @module
 */
import { FfiError } from "./errors.ts";

/** The major and minor version of each. */
export const oldestRuntimes = { bun: "1.4", deno: "2.9" } as const;

// law ffi/tooOld: ffi/oldest_runtimes
/** What to tell the user of a version that is too old; undefined for any other. */
export function tooOld(name: keyof typeof oldestRuntimes, version: string): string | undefined {
  const oldest = oldestRuntimes[name];
  const [[major = 0, minor = 0], [oldestMajor = 0, oldestMinor = 0]] = [parts(version), parts(oldest)];
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return undefined;
  const runtime = name === "bun" ? "Bun" : "Deno";
  return `${runtime} ${oldest} or newer is needed, and this is ${runtime} ${version}. Run ${name} upgrade.`;
}

function parts(version: string): number[] {
  return version.split(".").map(Number);
}

/**
 * Rejects a runtime that is too old, once, when its adapter is made.
 *
 * @throws {FfiError} with the version that is needed, and this one
 */
export function checkVersion(name: keyof typeof oldestRuntimes, version: string): void {
  const problem = tooOld(name, version);
  if (problem !== undefined) throw new FfiError(`Cannot use causeway: ${problem}`);
}
