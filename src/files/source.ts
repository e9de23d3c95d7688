/**
 * Where bytes of a file come from, from its beginning to its end.
 *
 * @module
 */
import { nodeBuiltin } from "../ffi/mod.ts";
import { NpyError } from "./error.ts";

/** A path, or what is in the file. */
export type FileContents = string | URL | Uint8Array | ArrayBuffer;

/** Bytes in a row. */
export interface ByteSource {
  /** How many there are. */
  readonly size: number;
  /** Reads the next ones: as many as `into` has, fewer only at the end. */
  read(into: Uint8Array): Promise<number>;
}

/** Bytes at any position. */
export interface ByteRange extends Disposable {
  readonly size: number;
  /** What it is called in errors. */
  readonly name: string;
  /** Reads from a position: as many as `into` has, fewer only at the end. */
  readAt(into: Uint8Array, position: number): Promise<number>;
}

/** The most that is read by one call: some systems refuse more than 2 GiB. */
const chunk = 1 << 30;

/** Opens a file, or bytes. @throws {NpyError} if there is no such file */
export function openContents(contents: FileContents): ByteRange {
  if (typeof contents === "string" || contents instanceof URL) return openPath(contents);
  const bytes = contents instanceof ArrayBuffer ? new Uint8Array(contents) : contents;
  if (!(bytes instanceof Uint8Array)) {
    throw new TypeError(`Cannot read a file from ${typeof contents}: expected a path, a URL, or its bytes`);
  }
  const readAt = (into: Uint8Array, position: number) => {
    const some = bytes.subarray(position, position + into.length);
    into.set(some);
    return Promise.resolve(some.length);
  };
  return { size: bytes.length, name: `${bytes.length} bytes`, readAt, [Symbol.dispose]: () => {} };
}

function openPath(path: string | URL): ByteRange {
  const fs = nodeBuiltin("node:fs");
  let file: number;
  try {
    file = fs.openSync(path, "r");
  } catch (error) {
    throw new NpyError(`Cannot open ${path}: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
  const status = fs.fstatSync(file);
  if (!status.isFile()) {
    fs.closeSync(file);
    throw new NpyError(`Cannot read ${path}: it is not a file`);
  }
  const once = (into: Uint8Array, position: number) =>
    new Promise<number>((resolve, reject) => {
      const length = Math.min(into.length, chunk);
      fs.read(file, into, 0, length, position, (error, read) => error === null ? resolve(read) : reject(error));
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
  return { size: status.size, name: `${path}`, readAt, [Symbol.dispose]: () => fs.closeSync(file) };
}

/** A part of a file, from its beginning to its end. */
export function sourceOf(range: Pick<ByteRange, "readAt">, from: number, size: number): ByteSource {
  let done = 0;
  return {
    size,
    read: async (into) => {
      const wanted = into.subarray(0, Math.min(into.length, size - done));
      const got = wanted.length === 0 ? 0 : await range.readAt(wanted, from + done);
      done += got;
      return got;
    },
  };
}

/** Reads exactly as many bytes as there is room for. @throws {NpyError} if there are fewer */
export async function readFully(source: ByteSource, into: Uint8Array): Promise<void> {
  const got = await source.read(into);
  if (got < into.length) {
    throw new NpyError(`the file ended ${into.length - got} bytes early: it shrank while it was read`);
  }
}
