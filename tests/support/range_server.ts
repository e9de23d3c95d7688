/**
 * A server of a file's ranges, which can be made to misbehave.
 *
 * @module
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** How a server misbehaves. */
export interface RangeServerOptions {
  /** Changes a response: its status, its headers, its body. */
  readonly spoil?: (answer: RangeAnswer, request: number) => void;
}

/** A response not yet sent. */
export interface RangeAnswer {
  status: number;
  headers: Record<string, string>;
  body: Uint8Array;
  /** What follows the body: the end, the end of the connection, or nothing. */
  ending: "end" | "reset" | "stall";
}

/** A running server. */
export interface RangeServer extends AsyncDisposable {
  readonly url: string;
  /** The ranges that were requested, and all headers of the requests. */
  readonly requests: { readonly range: string | undefined; readonly headers: NodeJS.Dict<string | string[]> }[];
}

/** Serves a file's bytes on a port of this machine. */
export async function serveRanges(bytes: Uint8Array, { spoil }: RangeServerOptions = {}): Promise<RangeServer> {
  const requests: RangeServer["requests"] = [];
  const server = createServer((request, response) => {
    const { range } = request.headers;
    requests.push({ range, headers: request.headers });
    const [, from = "0", to = "0"] = /^bytes=(\d+)-(\d+)$/.exec(range ?? "") ?? [];
    const [start, end] = [Number(from), Math.min(Number(to), bytes.length - 1)];
    const answer: RangeAnswer = start >= bytes.length
      ? { status: 416, headers: { "content-range": `bytes */${bytes.length}` }, body: new Uint8Array(0), ending: "end" }
      : {
        status: 206,
        headers: { "content-range": `bytes ${start}-${end}/${bytes.length}`, etag: '"1"' },
        body: bytes.subarray(start, end + 1),
        ending: "end",
      };
    spoil?.(answer, requests.length);
    response.writeHead(answer.status, { connection: "close", ...answer.headers });
    if (answer.ending === "end") response.end(answer.body);
    else response.write(answer.body, () => answer.ending === "reset" && response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  return {
    url: `http://127.0.0.1:${port}/file.vortex`,
    requests,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections(); // those that were stalled
      }),
  };
}
