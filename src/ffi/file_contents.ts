/**
 * Files read a range at a time, from a path or a Blob.
 *
 * @module
 */
import { errno } from "../../bindings/libc.ts";
import { nodeBuiltin } from "./node_builtin.ts";
import { SystemError } from "./system_error.ts";

/** A file that can be read at any position. */
export interface OpenFile extends Disposable {
  /** Total size in bytes. */
  readonly size: number;
  /**
   * Reads from a position: fills `into`, and falls short only at the end of the file. Several reads may be in flight at
   * once, but none when it is closed: a descriptor closed under a read may be reused for another file.
   */
  readAt(into: Uint8Array, position: number): Promise<number>;
}

/** The most that one call reads: some systems refuse more than 2 GiB. */
const chunk = 1 << 30;

// law ffi/openFile: files/sources, vortex/file/reader
/**
 * Opens a file for reading.
 *
 * @throws {SystemError} if it cannot be opened, or is a folder
 * @throws {TypeError} if it is not a regular file either: a pipe, a device
 */
export function openFile(path: string | URL): OpenFile {
  const fs = nodeBuiltin("node:fs");
  checkPath("open", path);
  const file = namingErrors(`open ${path}`, () => fs.openSync(path, "r"), () => missingFile(path));
  const close = () => fs.closeSync(file);
  try {
    const status = fs.fstatSync(file);
    if (status.isDirectory()) throw new SystemError(`read ${path}`, "read", errno.EISDIR, "It is a folder");
    if (!status.isFile()) throw new TypeError(`Cannot read ${path}: it is not a file that can be read at any position`);
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
 * Reads `length` bytes of a Blob, fewer only at its end; the caller owns them.
 *
 * @throws {SystemError} if the file behind it is gone
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

/** Size of a Blob in bytes. @throws {SystemError} if its file does not exist: `Bun.file(path).size` is 0 then */
export async function sizeOfBlob(blob: Blob): Promise<number> {
  if (blob.size === 0) await namingFailure(blob, () => blob.arrayBuffer());
  return blob.size;
}

/** How errors name a Blob: a File has a name. */
export function blobName(blob: Blob): string {
  return "name" in blob && typeof blob.name === "string" ? blob.name : `a Blob of ${blob.size} bytes`;
}

/** @throws {TypeError} for a URL that is not a file's */
export function checkPath(doing: string, path: string | URL): void {
  if (typeof path === "string" || (path instanceof URL && path.protocol === "file:")) return;
  if (!(path instanceof URL)) {
    const kind = Object.prototype.toString.call(path).slice(8, -1); // of an untyped program
    throw new TypeError(`Cannot ${doing} a file: expected a path or a file: URL, got ${kind}`);
  }
  throw new TypeError(`Cannot ${doing} ${path}: expected a path or a file: URL. ${fetchFirst}`);
}

const fetchFirst = "Fetch it first, and pass the bytes: await (await fetch(url)).bytes()";

// law ffi/missingFile: files/sources
/** The most likely mistake in a path that does not exist, as a sentence without its full stop. */
export function missingFile(path: string | URL): string {
  const text = `${path}`;
  if (typeof path === "string" && /^file:/i.test(text)) return "It is a URL as a string: pass new URL(it)";
  if (typeof path === "string" && /^[a-z][a-z0-9+.-]+:\/\//i.test(text)) return `It is not a path. ${fetchFirst}`;
  if (text.startsWith("~")) return "Only a shell expands ~ to the home folder: write it out";
  return "There is no such file";
}

/**
 * Calls `node:fs`, and returns the result.
 *
 * @param missing the hint if there is no such file or folder
 * @throws {SystemError} naming the operation, if the system refused it
 */
export function namingErrors<T>(doing: string, call: () => T, missing?: () => string): T {
  try {
    return call();
  } catch (error) {
    throw systemErrorOf(doing, error, missing);
  }
}

/**
 * Converts an error of `node:fs` to one of this package. Errors that are not from the system are left as they are: an
 * invalid path, and Deno's refusal, which names the missing flag.
 */
export function systemErrorOf(doing: string, error: unknown, missing?: () => string): unknown {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return error;
  const { code } = error;
  const known = Object.entries(errno).find(([name]) => name === code)?.[1];
  // Deno's callbacks get errors without the name of the call.
  const syscall = "syscall" in error ? error.syscall : known === undefined ? undefined : doing.split(" ", 1)[0];
  if (typeof syscall !== "string") return error;
  const number = known ?? ("errno" in error && typeof error.errno === "number" ? Math.abs(error.errno) : 0);
  return new SystemError(doing, syscall, number, code === "ENOENT" ? missing?.() ?? "" : "", { cause: error });
}
