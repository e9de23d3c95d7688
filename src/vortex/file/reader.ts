/**
 * Where a file's bytes come from, one range at a time.
 *
 * @module
 */
import {
  DeferredFinalizer,
  type FinalizerState,
  openFile,
  readBlob,
  reportUncaught,
  sizeOfBlob,
  wantsLeakReports,
} from "../../ffi/mod.ts";
import { show } from "../../layout/mod.ts";
import { abortable } from "../../unix/mod.ts";
import { VortexError } from "../error.ts";
import { checkGap } from "./coalesce.ts";
import { checkThere } from "../wire/source.ts";
import { HttpReader } from "./http_reader.ts";

/** A custom source of bytes. Several reads may be in flight at once. */
export interface VortexReader {
  /** Size in bytes. */
  readonly size: number | Promise<number>;
  /**
   * Reads exactly `length` bytes starting at `offset`. The caller owns the bytes from then on: nothing may write to
   * them, because arrays may use them in place.
   */
  read(offset: number, length: number): Promise<Uint8Array>;
  /** Largest number of unwanted bytes that is cheaper than one more read. Default 16384. */
  readonly gap?: number;
  /**
   * Called once the file is closed, or was collected, and no read is in flight, even if nobody waits for the read any
   * more.
   */
  close?(): void;
}

/**
 * What a file can be opened from: its bytes, a Blob or File, a path, a `file:`, `http:` or `https:` URL (for HTTP, also
 * as a string), or a custom reader.
 */
export type VortexSource = Uint8Array | ArrayBuffer | Blob | string | URL | VortexReader;

/** A source of known size that returns exactly what is requested. */
export interface FileReader {
  readonly size: number;
  readonly gap: number;
  /** Bytes read so far, and in how many reads. */
  readonly statistics: { readonly bytes: number; readonly reads: number };
  /** @throws {TypeError} once it is closed */
  checkOpen(): void;
  read(offset: number, length: number): Promise<Uint8Array>;
  close(): void;
  /** Closes the source, if it can be closed, once `user` is collected. */
  closeWith(user: WeakKey): void;
}

/**
 * Opens a source.
 *
 * @throws {TypeError} if it is not a source, or bytes that were transferred
 * @throws {SystemError} if it is a file that cannot be opened
 * @throws {VortexError} if its size is invalid
 */
export async function openReader(source: VortexSource): Promise<FileReader> {
  const reader = readerOf(source);
  const size = await reader.size;
  if (!Number.isSafeInteger(size) || size < 0) {
    throw new VortexError("file", `Cannot read a file of ${show(size)} bytes: expected a non-negative integer`);
  }
  return new CheckedReader(reader, size);
}

function readerOf(source: VortexSource): VortexReader {
  if (source instanceof Uint8Array || source instanceof ArrayBuffer) return bytesReader(source);
  if (source instanceof Blob) return blobReader(source);
  if (source instanceof URL) return source.protocol === "file:" ? openPath(source) : new HttpReader(source);
  if (typeof source === "string") return /^https?:\/\//.test(source) ? new HttpReader(source) : openPath(source);
  if (typeof source === "object" && source !== null && typeof source.read === "function" && "size" in source) {
    return source;
  }
  throw new TypeError(
    `Cannot open ${show(source)} as a Vortex file: expected bytes, a Blob, a path, a URL or { size, read }`,
  );
}

// law vortex/bytesReader: public/untyped
function bytesReader(source: Uint8Array | ArrayBuffer): VortexReader {
  const memory = source instanceof ArrayBuffer ? source : source.buffer;
  checkThere(memory);
  const bytes = source instanceof ArrayBuffer ? new Uint8Array(source) : source;
  const read = (offset: number, length: number) => {
    checkThere(memory); // it may be gone by now
    return Promise.resolve(bytes.subarray(offset, offset + length));
  };
  return { size: bytes.length, gap: 0, read };
}

function blobReader(blob: Blob): VortexReader {
  return { size: sizeOfBlob(blob), read: (offset, length) => readBlob(blob, offset, length) };
}

function openPath(path: string | URL): VortexReader {
  const file = openFile(path);
  const read = async (offset: number, length: number) => {
    const bytes = new Uint8Array(length);
    return bytes.subarray(0, await file.readAt(bytes, offset)); // the caller sees that bytes are missing
  };
  return { size: file.size, gap: 4096, read, close: () => file[Symbol.dispose]() };
}

/**
 * A reader until it is closed. The finalizer must not hold it any longer: V8's stack of the error with which closing
 * ends its reads refers to the file that was closed, which would never be collected.
 */
class OpenReader implements FinalizerState {
  reader: CheckedReader | null;

  constructor(reader: CheckedReader) {
    this.reader = reader;
  }

  get closed(): boolean {
    return this.reader === null;
  }
}

/** Closes the sources of files that were dropped without being closed. */
const finalizer = new DeferredFinalizer<OpenReader>(({ reader }) => {
  if (wantsLeakReports()) console.error("Causeway: a VortexFile was never closed; closed by garbage collection");
  try {
    reader?.close();
  } catch (error) {
    reportUncaught("closing a VortexFile that was collected", error);
  }
});

class CheckedReader implements FileReader {
  readonly size: number;
  readonly gap: number;
  readonly statistics = { bytes: 0, reads: 0 };
  readonly #reader: VortexReader;
  readonly #closing = new AbortController();
  readonly #open = new OpenReader(this);
  #underWay = 0;

  constructor(reader: VortexReader, size: number) {
    this.#reader = reader;
    this.size = size;
    this.gap = checkGap(reader.gap ?? 16384);
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    this.checkOpen();
    if (!(offset >= 0 && length >= 0 && offset + length <= this.size)) {
      throw new VortexError("file", `Cannot read ${length} bytes at offset ${offset}: the file has ${this.size}`);
    }
    return await abortable(this.#exactly(offset, length), this.#closing.signal);
  }

  checkOpen(): void {
    if (this.#open.closed) throw new TypeError("Cannot read a closed VortexFile");
  }

  // law vortex/CheckedReader.read: vortex/file/reader, public/untyped
  async #exactly(offset: number, length: number): Promise<Uint8Array> {
    this.#underWay++;
    try {
      const bytes = await this.#reader.read(offset, length);
      if (bytes instanceof Uint8Array) checkThere(bytes.buffer);
      if (!(bytes instanceof Uint8Array) || bytes.length !== length) {
        const got = bytes instanceof Uint8Array ? `${bytes.length}` : show(bytes);
        throw new VortexError(
          "file",
          `The source returned ${got} instead of ${length} bytes at offset ${offset}: was it truncated meanwhile?`,
        );
      }
      this.statistics.bytes += length;
      this.statistics.reads++;
      return bytes;
    } finally {
      this.#underWay--;
      if (this.#open.closed && this.#underWay === 0) this.#reader.close?.();
    }
  }

  // law vortex/CheckedReader.close: vortex/file/reader
  /**
   * Rejects the reads in flight. The source is closed once it has ended them, too: a descriptor closed during a read
   * may be reused for another file. HTTP requests end by being aborted.
   */
  close(): void {
    if (this.#open.closed) return;
    this.#open.reader = null;
    this.#closing.abort(new TypeError("The VortexFile was closed while it was read"));
    if (this.#reader instanceof HttpReader) this.#reader.close();
    else if (this.#underWay === 0) this.#reader.close?.();
  }

  closeWith(user: WeakKey): void {
    if (this.#reader.close !== undefined) finalizer.register(user, this.#open);
  }
}
