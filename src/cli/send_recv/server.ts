/**
 * The server of `causeway send-recv`: listens, agrees with one client on what is measured, and sends back what comes.
 *
 * @module
 */
import { type Receivable, Ucx, type UcxEndpoint, type UcxWorker } from "../../ucx/mod.ts";
import { runOn } from "../../unix/mod.ts";
import { UsageError } from "../usage_error.ts";
import { Objects } from "./objects.ts";
import type { SendRecvOptions } from "./options.ts";
import { runOver, sendBack, TAG } from "./transfer.ts";

/** What must be the same on both sides, by option name. */
export interface Terms {
  readonly "n-bytes": number;
  readonly "n-buffers": number;
  readonly "n-iter": number;
  readonly "n-warmup-iter": number;
  readonly "transfer-api": string;
}

/** The server's answer: a refusal with its reason, or for `rma` the key of its memory, in hexadecimal. */
export interface Answer {
  readonly refusal?: string;
  readonly key?: string;
}

/** The longest text of an agreement, in bytes. */
const longestText = 4096;

/** How long an agreement may take, in milliseconds. */
export const agreementTimeout = 20_000;

/** The terms that this side was configured with. */
export function termsOf({ bytes, buffers, iterations, warmup, api }: SendRecvOptions): Terms {
  return { "n-bytes": bytes, "n-buffers": buffers, "n-iter": iterations, "n-warmup-iter": warmup, "transfer-api": api };
}

/** Sends a value as JSON. */
export async function sendJson(endpoint: UcxEndpoint, value: Terms | Answer, tag: bigint): Promise<void> {
  await endpoint.send(new TextEncoder().encode(JSON.stringify(value)), { tag });
}

/** Receives a value as JSON. */
export async function receiveJson<T extends Terms | Answer>(endpoint: UcxEndpoint, tag: bigint): Promise<T> {
  const bytes: Receivable & Uint8Array = new Uint8Array(new ArrayBuffer(longestText));
  const { length } = await endpoint.recv(bytes, { tag, timeout: agreementTimeout });
  return JSON.parse(new TextDecoder().decode(bytes.subarray(0, length)));
}

/** Where the sides differ, in words; null if they agree. */
export function differenceOf(server: Terms, client: Terms): string | null {
  for (const [name, here] of Object.entries(server)) {
    const there = client[name as keyof Terms]; // of the same type
    if (here === there) continue;
    return `The server has --${name} ${here}, the client ${there}: both sides need the same.`;
  }
  return null;
}

/**
 * Serves one client.
 *
 * @param listening called with the port as soon as clients may connect
 * @throws {UsageError} if the client has other options
 */
export async function runServer(options: SendRecvOptions, listening: (port: number) => void): Promise<void> {
  if (options.serverCpu !== null) runOn(options.serverCpu); // before UCX has threads
  using objects = new Objects(options, options.serverDevice);
  using ucx = Ucx.open();
  await using worker = ucx.createWorker({ progress: options.progress });
  const { address: host, port, errors } = options;
  const listener = worker.listen({ host, port, errors });
  listening(listener.port);
  for await (const endpoint of listener) {
    await serve(worker, endpoint, objects, options);
    await endpoint.close();
    return;
  }
}

async function serve(
  worker: UcxWorker,
  endpoint: UcxEndpoint,
  objects: Objects,
  options: SendRecvOptions,
): Promise<void> {
  const refusal = differenceOf(termsOf(options), await receiveJson<Terms>(endpoint, TAG.terms));
  if (refusal !== null) {
    await sendJson(endpoint, { refusal }, TAG.answer);
    await untilDone(endpoint);
    throw new UsageError(refusal);
  }
  if (options.api === "rma") return await exposeMemory(worker, endpoint, objects);
  await sendJson(endpoint, {}, TAG.answer);
  await runOver(endpoint, objects, options, null, (link, payload) => sendBack(link, payload, options));
  await untilDone(endpoint);
}

/**
 * Settles when the client has everything it waits for. A side that ends earlier may also end the other's receives: that
 * its own sends have arrived does not mean that they were received.
 */
async function untilDone(endpoint: UcxEndpoint): Promise<void> {
  await endpoint.recv(new Uint8Array(1), { tag: TAG.end }).catch(() => {}); // or the client has gone
}

/** Lets the client use an object's memory, until the client reports that it is done. */
async function exposeMemory(worker: UcxWorker, endpoint: UcxEndpoint, objects: Objects): Promise<void> {
  const object = objects.empty();
  try {
    using region = worker.register(object);
    await sendJson(endpoint, { key: region.key.toHex() }, TAG.answer);
    await untilDone(endpoint);
  } finally {
    object.buffer.close();
  }
}
