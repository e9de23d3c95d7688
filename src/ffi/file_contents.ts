/**
 * Files that are read a range at a time: at a path, or behind a Blob.
 *
 * @module
 */
import { errno } from "../../bindings/libc.ts";
import { nodeBuiltin } from "./node_builtin.ts";
import { SystemError } from "./system_error.ts";

/** Bytes at any position of a file. */
export interface OpenFile extends Disposable {
  /** Bytes in all. */
  readonly size: number;
  /**
   * Reads from a position: as many bytes as `into` has, fewer only where the file ends. Several reads may be under way
   * at once, and none while it is closed: a descriptor that is closed below a read may be another file's.
   */
  readAt(into: Uint8Array, position: number): Promise<number>;
}

/** The most that is read by one call: some systems refuse more than 2 GiB. */
const chunk = 1 << 30;

// law ffi/openFile: files/sources, vortex/file/reader
/**
 * Opens a file for reading.
 *
 * @throws {SystemError} if it cannot be opened, or is a folder
 * @throws {TypeError} if it is neither: a pipe, a device
 */
export function openFile(path: string | URL): OpenFile {
  const fs = nodeBuiltin("node:fs");
  checkPath("open", path);
  const file = namingErrors(`open ${path}`, () => fs.openSync(path, "r"), () => missingFile(path));
  const close = () => fs.closeSync(file);
  try {
    const status = fs.fstatSync(file);
    if (status.isDirectory()) throw new SystemError(`read ${path}`, "read", errno.EISDIR, "It is a folder");
    if (!status.isFile()) throw new TypeError(`Cannot read ${path}: it is no file that can be read at any position`);
    const once = (into: Uint8Array, position: number) =>
      new Promise<number>((resolve, reject) => {
        const length = Math.min(into.length, chunk);
        fs.read(file, into, 0, length, position, (error, read) => {
          if (error === null) resolve(read);
          else reject(systemErrorOf(`read ${path}`, error));
        });
      });
    const readAt = async (into: Uint8Array, position: number) => {
      let done = 0;
      while (done < into.length) {
        const got = await once(into.subarray(done), position + done);
        if (got === 0) break;
        done += got;
      }
      return done;
    };
    return { size: status.size, readAt, [Symbol.dispose]: close };
  } catch (error) {
    close();
    throw error;
  }
}

/**
 * Bytes of a Blob, which are the caller's: as many as are wanted, fewer only where it ends.
 *
 * @throws {SystemError} if it is a file that is gone
 */
export async function readBlob(blob: Blob, position: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await namingFailure(blob, () => blob.slice(position, position + length).arrayBuffer()));
}

async function namingFailure<T>(blob: Blob, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw systemErrorOf(`read ${blobName(blob)}`, error);
  }
}

/** Bytes of a Blob. @throws {SystemError} if it is a file that is not there: `Bun.file(path).size` is 0 for such */
export async function sizeOfBlob(blob: Blob): Promise<number> {
  if (blob.size === 0) await namingFailure(blob, () => blob.arrayBuffer());
  return blob.size;
}

/** What a Blob is called in errors: a File has a name. */
export function blobName(blob: Blob): string {
  return "name" in blob && typeof blob.name === "string" ? blob.name : `a Blob of ${blob.size} bytes`;
}

/** @throws {TypeError} for a URL of something else than a file */
export function checkPath(doing: string, path: string | URL): void {
  if (!(path instanceof URL) || path.protocol === "file:") return;
  throw new TypeError(`Cannot ${doing} ${path}: expected a path or a file: URL. ${fetchFirst}`);
}

const fetchFirst = "What is elsewhere is fetched first, and given as bytes: await (await fetch(url)).bytes()";

// law ffi/missingFile: files/sources
/** What is most likely wrong about a path at which there is nothing, as a sentence without its full stop. */
export function missingFile(path: string | URL): string {
  const text = `${path}`;
  if (typeof path === "string" && /^file:/i.test(text)) return "It is a URL as a string: pass new URL(it)";
  if (typeof path === "string" && /^[a-z][a-z0-9+.-]+:\/\//i.test(text)) return `It is no path. ${fetchFirst}`;
  if (text.startsWith("~")) return "Only a shell puts the home folder in the place of ~: write it out";
  return "There is no such file";
}

/**
 * What a call of `node:fs` gives.
 *
 * @param missing what to say where there is no such file or folder
 * @throws {SystemError} with what was done, if the system refused it
 */
export function namingErrors<T>(doing: string, call: () => T, missing?: () => string): T {
  try {
    return call();
  } catch (error) {
    throw systemErrorOf(doing, error, missing);
  }
}

/**
 * The error of `node:fs` as one of this package. What the system did not say is left as it is: a path that makes no
 * sense, and Deno's refusal, which names the flag that is missing.
 */
export function systemErrorOf(doing: string, error: unknown, missing?: () => string): unknown {
  if (!(error instanceof Error) || !("code" in error) || !("syscall" in error)) return error;
  const { code, syscall } = error;
  if (typeof code !== "string" || typeof syscall !== "string") return error;
  const known = Object.entries(errno).find(([name]) => name === code)?.[1];
  const number = known ?? ("errno" in error && typeof error.errno === "number" ? Math.abs(error.errno) : 0);
  return new SystemError(doing, syscall, number, code === "ENOENT" ? missing?.() ?? "" : "", { cause: error });
}
