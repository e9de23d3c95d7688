/**
 * A cache of compiled code on disk, keyed by everything that the code depends on. Compiling takes tens of milliseconds,
 * reading a file almost none.
 *
 * @module
 */
import { ffiPort, nodeBuiltin } from "../../ffi/mod.ts";

// law device/cacheFolder: device/kernel/compiler
/**
 * The cache's folder: `CAUSEWAY_CACHE`, or one in the user's cache folder. Null if caching is off
 * (`CAUSEWAY_CACHE=off`), or if the program may not use that folder: a cache does not justify requesting a permission.
 */
function folder(): string | null {
  const port = ffiPort();
  const home = port.env("HOME");
  const base = port.env("XDG_CACHE_HOME") || (home ? `${home}/.cache` : "");
  const place = port.env("CAUSEWAY_CACHE") || (base && `${base}/causeway`);
  return place === "" || place === "off" || !port.mayUseFiles(place) ? null : place;
}

// law device/cached: device/kernel/compiler
/**
 * Returns code from the cache, or makes it and stores it there.
 *
 * @param key everything that the code depends on
 */
export function cached(key: readonly string[], make: () => Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const place = folder();
  if (place === null) return make();
  const { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } = nodeBuiltin("node:fs");
  const digest = sha256(JSON.stringify(key)).toHex();
  const file = `${place}/${digest}`;
  try {
    return withoutDigest(readFileSync(file));
  } catch {
    // Missing, truncated by a crash, or unreadable: remade in each case.
  }
  const code = make();
  try {
    mkdirSync(place, { recursive: true });
    const temporary = `${file}.${crypto.randomUUID()}`;
    try {
      writeFileSync(temporary, withDigest(code));
      renameSync(temporary, file); // atomic, also for another process that reads now
    } finally {
      rmSync(temporary, { force: true }); // what a full disk has left of it
    }
  } catch {
    // A full disk or an unwritable folder only costs time at the next start.
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
/** @throws {Error} if the file is damaged */
function withoutDigest(file: Uint8Array): Uint8Array<ArrayBuffer> {
  const code = file.slice(digestBytes);
  const digest = sha256(code);
  if (digest.some((byte, i) => byte !== file[i])) throw new Error("damaged");
  return new Uint8Array(code); // with its own buffer, which C may read
}
