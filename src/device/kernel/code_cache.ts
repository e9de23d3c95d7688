/**
 * A cache of compiled code on disk, by everything that it depends on. Compiling takes tens of milliseconds, reading a
 * file almost none.
 *
 * @module
 */
import { ffiPort, nodeBuiltin } from "../../ffi/mod.ts";

/**
 * The cache's folder: `CAUSEWAY_CACHE`, or the user's cache folder. Null if caching is off (`CAUSEWAY_CACHE=off`), or
 * if the program may not use files: a cache is no reason to ask for a permission.
 */
function folder(): string | null {
  const port = ffiPort();
  const chosen = port.env("CAUSEWAY_CACHE");
  if (chosen === "off" || !port.mayUseFiles()) return null;
  if (chosen) return chosen;
  const base = port.env("XDG_CACHE_HOME") || (port.env("HOME") ? `${port.env("HOME")}/.cache` : undefined);
  return base === undefined ? null : `${base}/causeway`;
}

/**
 * Code from the cache, or made now and put there.
 *
 * @param key everything that the code depends on
 */
export function cached(key: readonly string[], make: () => Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const place = folder();
  if (place === null) return make();
  const { mkdirSync, readFileSync, renameSync, writeFileSync } = nodeBuiltin("node:fs");
  const digest = sha256(JSON.stringify(key)).toHex();
  const file = `${place}/${digest}`;
  try {
    return withoutDigest(readFileSync(file));
  } catch {
    // Not there, cut short by a crash, or not readable: made anew in each case.
  }
  const code = make();
  try {
    mkdirSync(place, { recursive: true });
    const temporary = `${file}.${crypto.randomUUID()}`;
    writeFileSync(temporary, withDigest(code));
    renameSync(temporary, file); // whole or not at all, also for another process that reads now
  } catch {
    // A full disk or a folder that cannot be written costs time at the next start, and nothing else.
  }
  return code;
}

const digestBytes = 32;

function sha256(data: string | Uint8Array): Uint8Array {
  return nodeBuiltin("node:crypto").createHash("sha256").update(data).digest();
}

function withDigest(code: Uint8Array): Uint8Array {
  const file = new Uint8Array(digestBytes + code.length);
  file.set(sha256(code));
  file.set(code, digestBytes);
  return file;
}

// law device/withoutDigest: device/kernel/compiler
/** @throws {Error} if the file is not what was written */
function withoutDigest(file: Uint8Array): Uint8Array<ArrayBuffer> {
  const code = file.slice(digestBytes);
  const digest = sha256(code);
  if (digest.some((byte, i) => byte !== file[i])) throw new Error("damaged");
  return new Uint8Array(code); // of a buffer of its own, which C may read
}
