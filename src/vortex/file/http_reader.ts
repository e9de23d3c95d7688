/**
 * Ranges of a file behind a URL, by HTTP range requests.
 *
 * @module
 */
import { checkOptions, type OptionNames, showAs, showGiven } from "../../layout/mod.ts";
import { VortexError } from "../error.ts";
import { checkGap } from "./coalesce.ts";
import type { VortexReader } from "./reader.ts";

/** Options of {@linkcode HttpReader}. */
export interface HttpReaderOptions {
  /** Headers sent with every request, such as an authorization. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Makes the requests. Default: the global `fetch`. A custom one may sign them or retry. */
  readonly fetch?: (url: URL, init: RequestInit) => Promise<Response>;
  /** Largest number of unwanted bytes that is cheaper than one more request. Default 65536. */
  readonly gap?: number;
}

const optionNames: OptionNames<HttpReaderOptions> = { headers: true, fetch: true, gap: true };

/** What must stay the same from one response to the next. */
interface Version {
  readonly size: number;
  readonly tag: string | null;
}

/**
 * Reads ranges of a file over HTTP. The server must support range requests (206). A change of the file is detected by
 * its size, and by its `ETag` or `Last-Modified` if the server sends one.
 *
 * @example
 * ```ts ignore
 * const headers = { authorization: "Bearer ..." };
 * const file = await openVortex(new HttpReader("https://example.org/taxi.vortex", { headers }));
 * ```
 */
export class HttpReader implements VortexReader {
  /** Size of the file in bytes, requested on first use. */
  get size(): Promise<number> {
    return this.#known().then(({ size }) => size);
  }

  /** Largest number of unwanted bytes that is cheaper than one more request. */
  readonly gap: number;
  readonly #url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #fetch: (url: URL, init: RequestInit) => Promise<Response>;
  readonly #abort = new AbortController();
  #version: Promise<Version> | undefined;

  /**
   * A reader for a URL.
   *
   * @throws {TypeError} if the URL is invalid, or an option is unknown
   * @throws {RangeError} if the gap is not a number of bytes
   */
  constructor(url: string | URL, options: HttpReaderOptions = {}) {
    checkOptions(options, optionNames);
    this.#url = new URL(url);
    if (!/^https?:$/.test(this.#url.protocol)) {
      throw new TypeError(`Cannot read ${this.#url} over HTTP: expected a URL that begins with http: or https:`);
    }
    this.#headers = options.headers ?? {};
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init));
    this.gap = checkGap(options.gap ?? 65536);
  }

  /** Reads a range. @throws {VortexError} if the server does not return exactly that range, or the file has changed */
  async read(offset: number, length: number): Promise<Uint8Array> {
    if (length === 0) return new Uint8Array(0);
    const before = await this.#known();
    const response = await this.#request(offset, length);
    const now = await this.#check(response, offset, length);
    if (now.size !== before.size || (now.tag !== null && before.tag !== null && now.tag !== before.tag)) {
      await discard(response.body);
      throw this.#error(`the file has changed since it was opened: ${describe(before)}, now ${describe(now)}`);
    }
    return await this.#body(response, length);
  }

  /** Aborts the requests in flight: their reads are rejected. */
  close(): void {
    this.#abort.abort();
  }

  // law vortex/HttpReader.known: vortex/file/http_reader
  /** The file's version. If the request for it fails, the next read makes another: servers may be busy for a while. */
  #known(): Promise<Version> {
    this.#version ??= this.#ask().catch((error: unknown) => {
      this.#version = undefined;
      throw error;
    });
    return this.#version;
  }

  /** Requests the first byte to learn the size: not every server that supports ranges answers HEAD alike. */
  async #ask(): Promise<Version> {
    const response = await this.#request(0, 1);
    const version = await this.#check(response, 0, 1);
    await this.#body(response, 1);
    return version;
  }

  async #request(offset: number, length: number): Promise<Response> {
    const range = `bytes=${offset}-${offset + length - 1}`;
    const response = await this.#arrived(() =>
      this.#fetch(this.#url, {
        headers: { ...this.#headers, range, "accept-encoding": "identity" },
        signal: this.#abort.signal,
      })
    );
    if (typeof response?.headers?.get === "function") return response;
    throw new TypeError(`Cannot read ${this.#url}: expected fetch to return a Response, got ${showGiven(response)}`);
  }

  // law vortex/HttpReader.check: vortex/file/http_reader
  /** Checks that a response is what was requested. */
  async #check(response: Response, offset: number, length: number): Promise<Version> {
    const { status, headers } = response;
    const range = /^bytes (?<start>\d+)-(?<end>\d+)\/(?<size>\d+)$/.exec(headers.get("content-range") ?? "")?.groups;
    const problem = status === 200
      ? "the server sends the whole file instead of a range. Load it with fetch() and open its bytes"
      : status === 416
      ? "the file has no such range: it is empty, or was truncated since it was opened"
      : status !== 206
      ? `the server answers ${status} ${response.statusText}`
      : range === undefined
      ? `the server answers with content-range ${headers.get("content-range")}: expected bytes, an end and a size`
      : Number(range["start"]) !== offset || Number(range["end"]) !== offset + length - 1
      ? `the server sends bytes ${range["start"]} to ${range["end"]} instead of ${offset} to ${offset + length - 1}`
      : (headers.get("content-encoding") ?? "identity") !== "identity"
      ? `the server sends the range encoded as ${headers.get("content-encoding")}, expected identity`
      : null;
    if (problem !== null || range === undefined) {
      await discard(response.body);
      throw this.#error(problem ?? "no range");
    }
    return { size: Number(range["size"]), tag: headers.get("etag") ?? headers.get("last-modified") };
  }

  // law vortex/HttpReader.body: vortex/file/http_reader
  /** Reads the body, and keeps no more than was requested, whatever the server sends. */
  async #body(response: Response, length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(length);
    let done = 0;
    const parts = response.body?.getReader();
    for (;;) {
      const part = await this.#arrived(async () => await parts?.read());
      if (part?.value === undefined) break;
      if (done + part.value.length > length) {
        await discard(parts);
        throw this.#error(`the server sends more than the ${length} bytes requested`);
      }
      bytes.set(part.value, done);
      done += part.value.length;
    }
    if (done < length) throw this.#error(`the connection ended after ${done} of ${length} bytes`);
    return bytes;
  }

  /** Waits for the network. @throws {VortexError} that names the URL, for any error of it */
  async #arrived<T>(from: () => Promise<T>): Promise<T> {
    try {
      return await from();
    } catch (error) {
      throw this.#error(error instanceof Error ? error.message : `${error}`, { cause: error });
    }
  }

  #error(problem: string, options?: ErrorOptions): VortexError {
    return new VortexError("file", `Cannot read ${this.#url}: ${problem}`, options);
  }

  static {
    // Without the user name and password that a URL may have, and without its query, which may hold a secret.
    showAs(HttpReader, (reader) => {
      return `${reader.#url.origin}${reader.#url.pathname}${reader.#abort.signal.aborted ? ", closed" : ""}`;
    });
  }
}

/** Ends a response that is not wanted. Where its body cannot be decoded either, Bun rejects even this. */
async function discard(body: { cancel(): Promise<void> } | null | undefined): Promise<void> {
  await body?.cancel().catch(() => {});
}

function describe({ size, tag }: Version): string {
  return `${size} bytes${tag === null ? "" : `, ${tag}`}`;
}
