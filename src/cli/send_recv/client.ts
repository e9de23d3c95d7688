/**
 * The client of `causeway send-recv`: connects, agrees with the server on what is measured, and measures.
 *
 * @module
 */
import { Ucx } from "../../ucx/mod.ts";
import { runOn } from "../../unix/mod.ts";
import { UsageError } from "../usage_error.ts";
import { Objects } from "./objects.ts";
import type { SendRecvOptions } from "./options.ts";
import { agreementTimeout, type Answer, receiveJson, sendJson, termsOf } from "./server.ts";
import { measure, runOver, TAG } from "./transfer.ts";

/**
 * Measures round trips to a server.
 *
 * @param observe called with each round trip, those of the warm-up first
 * @returns the measured round trips, in whole nanoseconds
 * @throws {UsageError} if the server has other options
 * @throws {TransferError} if other bytes come back
 * @throws {UcxError} if nothing listens there, or the connection breaks
 */
export async function runClient(
  options: SendRecvOptions,
  port: number,
  observe: (index: number, nanoseconds: number) => void,
): Promise<number[]> {
  if (options.clientCpu !== null) runOn(options.clientCpu); // before UCX has threads
  using objects = new Objects(options, options.clientDevice);
  using ucx = Ucx.open();
  await using worker = ucx.createWorker({ progress: options.progress });
  const { address: host, errors } = options;
  const endpoint = await worker.connect({ host, port }, { errors, timeout: agreementTimeout });
  await sendJson(endpoint, termsOf(options), TAG.terms);
  const { refusal, key } = await receiveJson<Answer>(endpoint, TAG.answer);
  const done = () => endpoint.send(new Uint8Array(1), { tag: TAG.end });
  if (refusal !== undefined) {
    await done();
    throw new UsageError(refusal);
  }
  using remote = key === undefined ? null : endpoint.remote(Uint8Array.fromHex(key));
  const times = await runOver(
    endpoint,
    objects,
    options,
    remote,
    (link, payload) => measure(link, payload, options, observe),
  );
  await done();
  return times;
}
