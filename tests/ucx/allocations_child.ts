/**
 * Sends and receives many messages, and prints what one costs on the JavaScript heap: in Deno all bytes allocated, in
 * Bun cells, counted by type before the collector runs.
 */
import process from "node:process";
import v8 from "node:v8";
import { Ucx } from "../../src/ucx/ucx.ts";

/** The operation measured, run the given number of times. */
type Work = (times: number) => void | Promise<void>;

/** Warm-up messages: after these the engine has compiled the hot path. */
const warmUp = 30_000;
/** Messages measured; and in Deno how often, as other work of the process, such as a compiler's, only adds. */
const measured = 100_000;
const repetitions = 3;
/** Messages between two collections in Bun, which resets its counts when it collects. */
const round = 4_000;

/** The part of `bun:jsc` used here. */
interface Jsc {
  heapStats(): { readonly objectTypeCounts: Readonly<Record<string, number>> };
  fullGC(): void;
}

const jsc = process.versions["bun"] === undefined ? null : Reflect.apply(
  Reflect.get(process, "getBuiltinModule"),
  process,
  ["bun:jsc"],
) as Jsc; // as Bun documents it

async function bytesOf(work: Work): Promise<number> {
  const allocated = () => Number(Reflect.get(v8.getHeapStatistics(), "total_allocated_bytes"));
  let least = Infinity;
  for (let i = 0; i < repetitions; i++) {
    const before = allocated();
    await work(measured);
    least = Math.min(least, allocated() - before);
  }
  return least / measured;
}

async function cellsOf(work: Work, { heapStats, fullGC }: Jsc): Promise<number> {
  const count = () => Object.values(heapStats().objectTypeCounts).reduce((sum, one) => sum + one, 0);
  let cells = 0;
  for (let done = 0; done < measured; done += round) {
    fullGC();
    const before = count();
    await work(round);
    cells += count() - before;
  }
  return cells / measured;
}

const ucx = Ucx.open({ config: { TLS: "self,sm" } });
const [sender, receiver] = [ucx.createWorker(), ucx.createWorker()];
const endpoint = await sender.connect(receiver.address);
const from = new Uint8Array(new ArrayBuffer(64), 8, 1);
const into = new Uint8Array(new ArrayBuffer(64), 8, 1);
await Promise.all([endpoint.send(from), receiver.recv(into)]); // the connection is established
const tagged = { tag: 0x1234_5678_9abcn };
const masked = { tag: 0x1234_5678_0000n, mask: 0xffff_ffff_0000n };

const works: Readonly<Record<string, Work>> = {
  "in place": (times) => {
    for (let i = 0; i < times; i++) {
      endpoint.sendSync(from);
      receiver.recvSync(into);
    }
  },
  "in place, by tag": (times) => {
    for (let i = 0; i < times; i++) {
      endpoint.sendSync(from, tagged);
      receiver.recvSync(into, tagged);
    }
  },
  "in place, by some bits of a tag": (times) => {
    for (let i = 0; i < times; i++) {
      endpoint.sendSync(from, tagged);
      receiver.recvSync(into, masked);
    }
  },
  "awaited": async (times) => {
    for (let i = 0; i < times; i++) {
      const received = receiver.recv(into);
      await endpoint.send(from);
      await received;
    }
  },
  "polled": (times) => {
    for (let i = 0; i < times; i++) receiver.poll();
  },
};

const results: Record<string, number> = {};
for (const [name, work] of Object.entries(works)) {
  await work(warmUp);
  results[name] = jsc === null ? await bytesOf(work) : await cellsOf(work, jsc);
}
console.log(JSON.stringify(results));
process.exit(0);
