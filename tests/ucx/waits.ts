/**
 * Every operation that can wait for the peer to send.
 *
 * @module
 */
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";

const waits: Readonly<Record<string, (endpoint: UcxEndpoint) => Promise<unknown>>> = {
  recv: (endpoint) => endpoint.recv(new Uint8Array(8), { tag: 77n }),
  recvMany: (endpoint) => endpoint.recvMany({ tag: 78n }),
  /** The first keeps the second from beginning. */
  async "two recvMany"(endpoint) {
    const both = [endpoint.recvMany({ tag: 79n }), endpoint.recvMany({ tag: 79n })];
    for (const end of await Promise.allSettled(both)) if (end.status === "rejected") throw end.reason;
  },
  recvArray: (endpoint) => endpoint.recvArray(),
  "rawStream.recvAll": (endpoint) => endpoint.rawStream.recvAll(new Uint8Array(8)),
  readable: (endpoint) => endpoint.readable.getReader().read(),
  async messages(endpoint) {
    const { done } = await endpoint.messages()[Symbol.asyncIterator]().next();
    if (done) throw await endpoint.closed ?? new TypeError("The endpoint was closed");
  },
};

/** A wait that has begun. */
export interface Wait {
  readonly name: string;
  /** Why it was rejected; `"nothing"` if it was not. */
  readonly end: Promise<unknown>;
}

/** Begins each of them. */
export function beginWaits(endpoint: UcxEndpoint): Wait[] {
  return Object.entries(waits).map(([name, wait]) => ({
    name,
    end: wait(endpoint).then(() => "nothing", (error: unknown) => error),
  }));
}
