/**
 * The demo's second process: receives an array over UCX and answers with its summary.
 *
 * Addresses travel over standard input and output, everything else over UCX. It exits when its standard input ends: so
 * it neither exits before its answer has been read, nor outlives the first process.
 *
 * @module
 */
import process from "node:process";
import { DType } from "../layout/mod.ts";
import { HostMemoryResource } from "../memory/mod.ts";
import { Ucx } from "../ucx/mod.ts";
import { firstLine } from "./child_process.ts";
import { summarize, type Summary } from "./summary.ts";

/** The tags of the messages between the two processes. */
export const TAG = { header: 1n, payload: 2n, arrived: 3n, answer: 4n } as const;

/** The longest header, in bytes. */
export const headerBytes = 65536;

/** The header that is sent before the elements. */
export interface Header {
  readonly shape: readonly number[];
  readonly dtype: string;
  readonly bytes: number;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Options of {@linkcode runPeer}. */
export interface PeerOptions {
  /**
   * Inspects or damages the bytes that have arrived, before they are summarised. For tests of the demo's own checks.
   */
  readonly arrived?: (bytes: Uint8Array) => void;
}

/** Runs the second process until its standard input ends. */
export async function runPeer(options: PeerOptions = {}): Promise<void> {
  process.stdin.once("end", () => process.exit(0));
  using ucx = Ucx.open();
  await using worker = ucx.createWorker();
  console.log(JSON.stringify({ address: worker.address.toHex() }));
  const address = await firstLine(process.stdin);
  if (address === null) throw new Error("Standard input ended before the first process sent its address");
  const endpoint = await worker.connect(Uint8Array.fromHex(address));
  process.stdin.resume(); // reading a line has paused it, and its end would not be noticed

  const headerBuffer = new Uint8Array(new ArrayBuffer(headerBytes));
  const { length } = await worker.recv(headerBuffer, { tag: TAG.header });
  const header: Header = JSON.parse(decoder.decode(headerBuffer.subarray(0, length)));
  using buffer = new HostMemoryResource().allocate(header.bytes);
  await endpoint.send(encoder.encode("ready"), { tag: TAG.arrived });
  await worker.recv(buffer, { tag: TAG.payload });
  await endpoint.send(encoder.encode("here"), { tag: TAG.arrived });

  options.arrived?.(buffer.bytes());
  const summary: Summary = summarize(buffer.bytes(), header.shape, DType.from(header.dtype));
  const answer = encoder.encode(JSON.stringify(summary));
  await endpoint.send(encoder.encode(`${answer.length}`), { tag: TAG.arrived });
  await endpoint.send(answer, { tag: TAG.answer });
  await new Promise<never>(() => {}); // the first process reads the answer, and then ends our standard input
}
