/**
 * The round trips: how an object gets to the other side and back, through each of UCX's interfaces.
 *
 * @module
 */
import type { UcxEndpoint, UcxRemoteKey } from "../../ucx/mod.ts";
import type { StridedMemoryView } from "../../view/mod.ts";
import { Chunks, ManyObjects, type Objects, type Payload } from "./objects.ts";
import type { SendRecvOptions } from "./options.ts";

/** The transfer cannot be trusted: other bytes came back, or fewer. */
export class TransferError extends Error {
  override readonly name: string = "TransferError";
}

/** How one side sends and receives an object, or another payload. Operations that wait in place return nothing. */
export interface Link<T = StridedMemoryView> {
  readonly send: (what: T) => Promise<void> | void;
  /** Returns nothing if the data arrived in `into`, or else the object that holds it instead: `into` is then gone. */
  readonly receive: (into: T) => Promise<T | void> | void;
}

/** The tags of the messages: the terms and the answer to them, the objects, and the end. */
export const TAG = { terms: 1n, answer: 2n, object: 3n, end: 4n } as const;

/** How long one transfer in place may take, in milliseconds: a minute, plus 100 s for each GB. */
const patience = (bytes: number): number => 60_000 + bytes / 10_000;

function checkLength(length: number, bytes: number): void {
  if (length !== bytes) throw new TransferError(`Wrong length: ${length} bytes arrived, expected ${bytes}`);
}

/** Tagged messages, awaited. */
function tagLink(endpoint: UcxEndpoint): Link {
  const tag = { tag: TAG.object };
  return {
    send: (what) => endpoint.send(what, tag),
    receive: async (into) => checkLength((await endpoint.recv(into, tag)).length, into.nbytes),
  };
}

/** Tagged messages, waited for in place. */
function tagLinkInPlace(endpoint: UcxEndpoint, bytes: number): Link {
  const options = { tag: TAG.object, timeout: patience(bytes) };
  return {
    send: (what) => endpoint.sendSync(what, options),
    receive: (into) => checkLength(endpoint.recvSync(into, options).length, into.nbytes),
  };
}

/** Active messages. */
function messageLink(endpoint: UcxEndpoint): Link {
  const messages = endpoint.messages()[Symbol.asyncIterator]();
  return {
    send: (what) => endpoint.sendMessage(what),
    receive: async (into) => {
      const next = await messages.next();
      if (next.done === true) throw new TransferError("The other side ended before its message arrived");
      checkLength(next.value.length, into.nbytes);
      await next.value.recv(into);
    },
  };
}

/** UCX's stream, which carries any memory. It has no messages, either. */
function rawStreamLink({ rawStream }: UcxEndpoint): Link {
  return {
    send: (what) => rawStream.send(what),
    receive: (into) => rawStream.recvAll(into),
  };
}

/** The server's memory, which only the client writes and reads. */
function remoteLink(endpoint: UcxEndpoint, remote: UcxRemoteKey): Link {
  return {
    send: async (what) => {
      await endpoint.put(what, remote);
      await endpoint.flush(); // so that the bytes are there when they are read
    },
    receive: (into) => endpoint.get(into, remote),
  };
}

/** Several objects in one message. Received objects are in new memory, and replace those received before. */
function manyLink(
  endpoint: UcxEndpoint,
  many: ManyObjects,
  { bytes, buffers }: Pick<SendRecvOptions, "bytes" | "buffers">,
): Link<readonly StridedMemoryView[]> {
  const tag = { tag: TAG.object };
  return {
    send: (views) => endpoint.sendMany(views, tag),
    receive: async (before) => {
      const views = await endpoint.recvMany({ ...tag, ...many.place });
      try {
        if (views.length !== buffers) {
          throw new TransferError(`Wrong number of buffers: ${views.length} arrived, expected ${buffers}`);
        }
        for (const { nbytes } of views) checkLength(nbytes, bytes);
      } catch (error) {
        many.close(views);
        throw error;
      }
      many.close(before);
      return views;
    },
  };
}

/** A link that both sides end when everything has been transferred. */
interface EndingLink<T> extends Link<T> {
  readonly end: () => Promise<void>;
}

/** JavaScript's streams, which have no messages: each receive reads as many bytes as an object has. */
function streamLink(endpoint: UcxEndpoint): EndingLink<Uint8Array<ArrayBuffer>> {
  const writer = endpoint.writable.getWriter();
  const reader = endpoint.readable.getReader({ mode: "byob" });
  return {
    send: (bytes) => writer.write(bytes),
    receive: async (into) => {
      const { length } = into; // 0 once the read has taken it
      const { value } = await reader.read(into, { min: length });
      checkLength(value?.length ?? 0, length);
      return value;
    },
    // Streams that are left open are aborted when their endpoint closes. Without error handling that may reach UCX when
    // the other side's endpoint is gone, which ends the process.
    end: async () => {
      await writer.close();
      const { done } = await reader.read(new Uint8Array(1));
      if (!done) throw new TransferError("The other side sent more than agreed");
    },
  };
}

/** @param remote the server's memory, given to the client for `rma` */
export function linkOver(
  endpoint: UcxEndpoint,
  { api, sync, bytes }: Pick<SendRecvOptions, "api" | "sync" | "bytes">,
  remote: UcxRemoteKey | null = null,
): Link {
  if (api === "am") return messageLink(endpoint);
  if (api === "stream") return rawStreamLink(endpoint);
  if (api === "tag") return sync ? tagLinkInPlace(endpoint, bytes) : tagLink(endpoint);
  if (remote === null) throw new TypeError("Expected the key of the server's memory");
  return remoteLink(endpoint, remote);
}

/**
 * Calls `go` with the link and the payload that the options select.
 *
 * @param remote as for {@linkcode linkOver}
 */
export async function runOver<R>(
  endpoint: UcxEndpoint,
  objects: Objects,
  options: Pick<SendRecvOptions, "api" | "sync" | "bytes" | "buffers" | "memory">,
  remote: UcxRemoteKey | null,
  go: <T>(link: Link<T>, payload: Payload<T>) => Promise<R>,
): Promise<R> {
  const { api, bytes, buffers, memory } = options;
  if (api === "stream" && memory === "host") {
    const link = streamLink(endpoint);
    const result = await go(link, new Chunks(bytes));
    await link.end();
    return result;
  }
  if (buffers === 1) return await go(linkOver(endpoint, options, remote), objects);
  const many = new ManyObjects(objects, buffers);
  return await go(manyLink(endpoint, many, options), many);
}

/** How many round trips, and whether they reuse memory. */
export interface RoundTrips {
  readonly warmup: number;
  readonly iterations: number;
  readonly reuse: boolean;
}

/** How many objects the server sends back: one for each timed round trip, and one more, which is compared. */
function roundTripsOf({ warmup, iterations }: RoundTrips): number {
  return warmup + iterations + 1;
}

/**
 * The client's part. As in UCXX's benchmark, allocating and freeing are part of a round trip unless memory is reused.
 * The last round trip is not measured: it checks that what comes back is what was sent.
 *
 * @param observe called after each round trip with its number, from 0 at the first of the warm-up, and its time
 * @returns the round trips after the warm-up, in whole nanoseconds
 * @throws {TransferError} if other bytes come back
 */
export async function measure<T>(
  link: Link<T>,
  payload: Payload<T>,
  roundTrips: RoundTrips,
  observe: (index: number, nanoseconds: number) => void,
): Promise<number[]> {
  const { warmup, iterations, reuse } = roundTrips;
  const times: number[] = [];
  const kept = { out: payload.filled(), into: payload.empty() };
  try {
    for (let i = 0; i < warmup + iterations; i++) {
      const start = performance.now();
      const out = reuse ? kept.out : payload.filled();
      let into = reuse ? kept.into : payload.empty();
      try {
        const sent = link.send(out);
        if (sent !== undefined) await sent;
        const received = link.receive(into);
        if (received !== undefined) into = await received ?? into;
      } finally {
        if (reuse) kept.into = into;
        else {
          payload.close(out);
          payload.close(into);
        }
      }
      const time = Math.max(1, Math.round((performance.now() - start) * 1e6));
      if (i >= warmup) times.push(time);
      observe(i, time);
    }
    payload.overwrite(kept.into);
    await link.send(kept.out);
    kept.into = await link.receive(kept.into) ?? kept.into;
    if (!await payload.holds(kept.into)) throw new TransferError("Wrong bytes: what came back is not what was sent");
  } finally {
    payload.close(kept.out);
    payload.close(kept.into);
  }
  return times;
}

/** The server's part: sends back what comes. */
export async function sendBack<T>(link: Link<T>, payload: Payload<T>, roundTrips: RoundTrips): Promise<void> {
  let kept = roundTrips.reuse ? payload.empty() : null;
  try {
    for (let left = roundTripsOf(roundTrips); left > 0; left--) {
      let what = kept ?? payload.empty();
      try {
        const received = link.receive(what);
        if (received !== undefined) what = await received ?? what;
        const sent = link.send(what);
        if (sent !== undefined) await sent;
      } finally {
        if (kept === null) payload.close(what);
        else kept = what;
      }
    }
  } finally {
    if (kept !== null) payload.close(kept);
  }
}
