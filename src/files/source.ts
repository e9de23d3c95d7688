/**
 * Sources of a file's bytes: sequential, or at any position.
 *
 * @module
 */
import { blobName, openFile, readBlob, sizeOfBlob } from "../ffi/mod.ts";
import { show } from "../layout/mod.ts";
import { NpyError } from "./error.ts";

/** A path or a `file:` URL, or the file's contents: a Blob or File (in Bun also `Bun.file(path)`), or its bytes. */
export type FileContents = string | URL | Blob | Uint8Array | ArrayBuffer;

/** A sequential source of bytes. */
export interface ByteSource {
  /** Total number of bytes. */
  readonly size: number;
  /** Reads the next bytes: as many as fit `into`, fewer only at the end. */
  read(into: Uint8Array): Promise<number>;
}

/** A source of bytes at any position. */
export interface ByteRange extends Disposable {
  readonly size: number;
  /** Its name in errors. */
  readonly name: string;
  /** Reads from a position: as many bytes as fit `into`, fewer only at the end. */
  readAt(into: Uint8Array, position: number): Promise<number>;
}

/**
 * Opens a file, a Blob, or bytes.
 *
 * @throws {SystemError} if there is no such file
 * @throws {TypeError} for anything else
 */
export async function openContents(contents: FileContents): Promise<ByteRange> {
  if (typeof contents === "string" || contents instanceof URL) return { ...openFile(contents), name: `${contents}` };
  if (contents instanceof Blob) return await openBlob(contents);
  if (!(contents instanceof ArrayBuffer || contents instanceof Uint8Array)) {
    const way = isReadable(contents) ? ". `await response.bytes()` reads those of a response" : "";
    throw new TypeError(
      `Cannot read a file from ${show(contents)}: expected a path, a URL, a Blob, or its bytes${way}`,
    );
  }
  const check = () => {
    if (isDetached(contents)) throw new TypeError("Cannot read a file from bytes that were transferred");
  };
  check();
  const bytes = contents instanceof ArrayBuffer ? new Uint8Array(contents) : contents;
  const readAt = (into: Uint8Array, position: number) => {
    check(); // they may be by now
    const some = bytes.subarray(position, position + into.length);
    into.set(some);
    return Promise.resolve(some.length);
  };
  return { size: bytes.length, name: `${bytes.length} bytes`, readAt, [Symbol.dispose]: () => {} };
}

/** Whether what untyped programs pass is a response, or the stream of its bytes. */
function isReadable(given: unknown): boolean {
  return given instanceof Response || given instanceof ReadableStream;
}

function isDetached(bytes: ArrayBuffer | Uint8Array): boolean {
  const buffer = bytes instanceof Uint8Array ? bytes.buffer : bytes;
  return buffer instanceof ArrayBuffer && buffer.detached;
}

// law files/openBlob: files/sources
async function openBlob(blob: Blob): Promise<ByteRange> {
  const readAt = async (into: Uint8Array, position: number) => {
    const some = await readBlob(blob, position, into.length);
    into.set(some);
    return some.length;
  };
  return { size: await sizeOfBlob(blob), name: blobName(blob), readAt, [Symbol.dispose]: () => {} };
}

/** A part of a file, as a sequential source. */
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

/** Fills `into` completely. @throws {NpyError} if there are too few bytes */
export async function readFully(source: ByteSource, into: Uint8Array): Promise<void> {
  const got = await source.read(into);
  if (got < into.length) {
    throw new NpyError(`the file ended ${into.length - got} bytes early: it shrank while it was read`);
  }
}
