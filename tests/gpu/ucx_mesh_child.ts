/**
 * One of the processes of `tests/support/ucx_mesh.ts`, on the GPU that its first argument names: prints the address of
 * its worker, then reads orders and answers each, a line of JSON each way. Ends with its input.
 *
 * A message has the same bytes throughout a run, determined by its sender and receiver. The receiver's buffer is
 * checked after the last message, and overwritten before the first.
 */
import { Buffer } from "node:buffer";
import process from "node:process";
import { createInterface } from "node:readline";
import { Cuda, SynchronousMemoryResource, Ucx, type UcxEndpoint } from "../../mod.ts";
import { bytesOf, write } from "./ucx_behaviours.ts";
import { contentOf } from "../support/ucx_messages.ts";
import type { Answer, Order } from "../support/ucx_mesh.ts";
import { enqueuePeerCopy } from "../../src/device/mod.ts";

const [own = 0, count = 0, bytes = 0] = process.argv.slice(2).map(Number);
using cuda = Cuda.open();
const device = cuda.device(own);
using stream = device.createStream({ nonBlocking: true });
using ucx = Ucx.open();
await using worker = ucx.createWorker();
// For each other process one buffer to send from and one to receive into; memory that other processes can map.
const resource = new SynchronousMemoryResource(device);
const allocate = () => Array.from({ length: count }, () => resource.allocate(bytes, { stream }));
const [outgoing, incoming] = [allocate(), allocate()];
const endpoints: UcxEndpoint[] = [];

function at<T>(list: readonly T[], i: number): T {
  const one = list[i];
  if (one === undefined) throw new RangeError(`No ${i}`);
  return one;
}

const content = (from: number, to: number) => contentOf(from * count + to, bytes);
for (const [to, buffer] of outgoing.entries()) write(buffer, content(own, to), stream); // the send waits for it

async function exchange({ to, from, count: messages }: Extract<Order, { to: unknown }>): Promise<Answer> {
  for (const one of from) at(incoming, one).fill(0, { stream }); // the receive waits for it
  await stream.completed();
  const start = performance.now();
  // Several at a time, so that one is announced while another is in flight.
  const lanes = Math.min(4, messages);
  const share = (lane: number) => Math.floor((messages + lanes - 1 - lane) / lanes);
  const all = async (act: () => Promise<unknown>) => {
    await Promise.all(Array.from({ length: lanes }, async (_, lane) => {
      for (let n = share(lane); n > 0; n--) await act();
    }));
  };
  const sends = to.map((one) => all(() => at(endpoints, one).send(at(outgoing, one), { tag: BigInt(own) })));
  const receives = from.map((one) => all(() => worker.recv(at(incoming, one), { tag: BigInt(one) })));
  await Promise.all([...sends, ...receives]);
  const seconds = (performance.now() - start) / 1000;
  let wrong = 0;
  for (const one of from) {
    const got = bytesOf(at(incoming, one), stream);
    if (Buffer.compare(got, content(one, own)) !== 0) wrong++;
  }
  return { seconds, wrong, transports: [...new Set(to.flatMap((one) => at(endpoints, one).transports()))] };
}

function copies(to: number, times: number): Answer {
  const there = cuda.device(to);
  using home = there.createStream();
  using target = new SynchronousMemoryResource(there).allocate(bytes, { stream: home });
  const source = at(outgoing, to);
  target.copyFrom(source, { stream }); // enables access, without which the bytes go through the host
  stream.synchronize();
  const start = performance.now();
  for (let i = 0; i < times; i++) enqueuePeerCopy(stream, target.ptr, there, source.ptr, device, bytes);
  stream.synchronize();
  return { seconds: (performance.now() - start) / 1000, wrong: 0, transports: [] };
}

async function obey(order: Order): Promise<Answer> {
  if ("copyTo" in order) return copies(order.copyTo, order.count);
  if ("to" in order) return await exchange(order);
  for (const address of order.meet) {
    endpoints.push(await worker.connect(Uint8Array.fromHex(address), { errors: "none" }));
  }
  return { seconds: 0, wrong: 0, transports: [] };
}

console.log(worker.address.toHex());
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await obey(JSON.parse(line) as Order)));
}
process.exit(0);
