/**
 * The main job: one real array, carried from a file through every room to a second process, each step checked.
 *
 * @module
 */
import type { ChildProcess } from "node:child_process";
import { basename } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Cuda } from "../cuda/mod.ts";
import type { CudaStream } from "../device/mod.ts";
import { ffiPort } from "../ffi/mod.ts";
import { slice } from "../layout/mod.ts";
import { DeviceMemoryResource, HostMemoryResource, type MemoryBuffer } from "../memory/mod.ts";
import { Ucx } from "../ucx/mod.ts";
import { StridedMemoryView } from "../view/mod.ts";
import { firstLine, ownCommand, startPartner } from "./child_process.ts";
import { canSum } from "./control.ts";
import { type DemoFile, readDemoFile } from "./demo_file.ts";
import { type Header, headerBytes, TAG } from "./demo_peer.ts";
import type { Summary } from "./summary.ts";
import { formatBytes, formatRate, formatTime, Table } from "./table.ts";
import { UsageError } from "./usage_error.ts";
import { print as printLine } from "./print.ts";

/** A step went wrong: a byte, an address or an answer is not what it must be, or the second process is gone. */
export class DemoError extends Error {
  override readonly name: string = "DemoError";
}

/** Options of {@linkcode runDemo}. */
export interface DemoOptions {
  /** The array: `.npy`, or a column of `.vortex`. Default: the handwritten digits that come with Causeway. */
  readonly file?: string;
  /** The command line of the second process. Default: this command line program. */
  readonly peer?: readonly string[];
  /** Where to print. Default: standard output. */
  readonly print?: (line: string) => void;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const digits = fileURLToPath(new URL("../../examples/digits.npy", import.meta.url));

/** Prints one step of the job when it is done: what it moved, how long it took, and by which path. */
type Report = (step: string, bytes: number, since: number, copies: number | "", path: string) => void;

/**
 * Runs the demo.
 *
 * @throws {UsageError} if the file cannot be read, its elements cannot be added up, or it is a `.vortex` file that has
 *   no column of numbers without nulls
 * @throws {DemoError} if a step's result is wrong, or the second process does not answer
 */
export async function runDemo(options: DemoOptions = {}): Promise<void> {
  const { file = digits, print = printLine } = options;
  const start = performance.now();
  const array = await readDemoFile(file);
  const { dtype, shape } = array.view;
  if (!canSum(dtype.typestr)) throw new UsageError(`The demo cannot add up elements of type ${dtype.name}`);

  const { name, version } = ffiPort().runtime;
  print(`Causeway on ${name === "deno" ? "Deno" : "Bun"} ${version}`);
  print(`${basename(file)}: ${array.what}${dtype.name} (${shape.join(", ")})\n`);
  const columns = [["step", 31], ["bytes", -9], ["time", -9], ["GB/s", -6], ["copies", -6], ["path", 0]] as const;
  const table = new Table(columns, print);
  const report: Report = (step, bytes, since, copies, path) => {
    const time = performance.now() - since;
    const rate = copies === 0 && !step.startsWith("send") ? "" : formatRate(bytes, time);
    table.row(step, formatBytes(bytes), formatTime(time), rate, `${copies}`, path);
  };
  report(`read ${basename(file)}`, array.buffer.size, start, "", "file -> host memory");
  try {
    using cuda = openCuda();
    using placed = place(array, cuda, report);
    const part = look(placed.view, report);
    exchange(part, placed.stream, report);
    const packed = await pack(part, report);
    try {
      const answer = await send(packed, options.peer ?? ownCommand("demo-peer"), report);
      await verify(answer, array, report);
    } finally {
      packed.buffer.close();
    }
  } finally {
    array.buffer.close();
  }
  print(`\nEvery byte and every sum is right.`);
}

/** CUDA, if this machine has a GPU. */
function openCuda(): Cuda | null {
  return Cuda.probe().available ? Cuda.open() : null;
}

/** An array in its place for the demo. */
interface Placed extends Disposable {
  readonly view: StridedMemoryView;
  readonly stream: CudaStream | null;
}

/** Puts the array on the best available device. */
function place(array: DemoFile, cuda: Cuda | null, report: Report): Placed {
  const start = performance.now();
  const device = cuda?.devices[0];
  const { size } = array.buffer;
  if (device === undefined) {
    report("keep in host memory", 0, start, 0, "no GPU here (see doctor)");
    return { view: array.view, stream: null, [Symbol.dispose]: () => {} };
  }
  const stream = device.createStream();
  const buffer = new DeviceMemoryResource(device).allocate(size, { stream });
  buffer.copyFrom(array.buffer, { stream });
  stream.synchronize();
  report(`put on ${device.name}`, size, start, 1, `host -> cuda:${device.ordinal}`);
  const { shape, strides, dtype } = array.view;
  const view = StridedMemoryView.fromBuffer(buffer, { shape, strides, dtype });
  const dispose = () => {
    buffer.close();
    stream.close();
  };
  return { view, stream, [Symbol.dispose]: dispose };
}

/** Views a part that is not contiguous: every second row, mirrored. */
function look(view: StridedMemoryView, report: Report): StridedMemoryView {
  const start = performance.now();
  const second = slice(null, null, 2);
  const mirrored = slice(null, null, -1);
  const { ndim } = view.layout;
  const part = ndim === 0 ? view : ndim === 1 ? view.sliced(second) : view.sliced(second, "...", mirrored);
  const words = ndim === 0 ? "[]" : ndim === 1 ? "[::2]" : "[::2, ..., ::-1]";
  report(`look at ${words}`, part.nbytes, start, 0, `strides (${part.strides.join(", ")})`);
  return part;
}

/** Exports the part by DLPack and imports it again: the same memory at the same address. */
function exchange(part: StridedMemoryView, stream: CudaStream | null, report: Report): void {
  const start = performance.now();
  const tensor = part.toDlpack({ stream });
  const back = StridedMemoryView.fromDlpack(tensor, { stream });
  const time = performance.now();
  const same = back.ptr === part.ptr && `${back.shape}` === `${part.shape}` &&
    `${back.strides}` === `${part.strides}` &&
    back.dtype.equals(part.dtype);
  back.close();
  if (!same) throw new DemoError(`DLPack returned another array: address ${back.ptr} instead of ${part.ptr}`);
  if (!tensor.released) throw new DemoError("DLPack's consumer has closed the tensor, but it was not released");
  const address = part.layout.volume === 0 ? "no memory" : `same address 0x${part.ptr.toString(16)}`;
  report("hand over by DLPack, take back", part.nbytes, start - (performance.now() - time), 0, address);
}

/** A contiguous array in host memory. */
interface Packed {
  readonly buffer: MemoryBuffer;
  readonly header: Header;
}

/** Gathers the part's elements, because a message is one contiguous run of bytes. */
async function pack(part: StridedMemoryView, report: Report): Promise<Packed> {
  const start = performance.now();
  const { shape, dtype, nbytes } = part;
  const buffer = new HostMemoryResource().allocate(nbytes);
  const packed = StridedMemoryView.fromBuffer(buffer, { shape, dtype });
  if (part.device === null) packed.copyFrom(part);
  else if (nbytes > 0) {
    const elements = await part.toTypedArray();
    buffer.bytes().set(new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength));
  }
  const copies = part.device === null ? 1 : 3;
  const path = part.device === null ? "host, strided -> host" : `cuda:${part.device.ordinal} -> host, strided -> host`;
  report("gather for the wire", nbytes, start, copies, path);
  return { buffer, header: { shape, dtype: dtype.name, bytes: nbytes } };
}

/** Starts the second process, sends it the array over UCX and returns its answer. */
async function send(packed: Packed, command: readonly string[], report: Report): Promise<Summary> {
  const start = performance.now();
  const { child, failed } = startPartner(command, (what) => new DemoError(`The second process ${what}`), false);
  try {
    return await Promise.race([talkToPeer(child, packed, start, report), failed]);
  } catch (error) {
    // An operation may fail before the exit that caused the failure is reported; the exit is the better error.
    await Promise.race([failed, delay(200)]);
    throw error;
  } finally {
    child.kill("SIGKILL"); // it has answered, or never will
  }
}

async function talkToPeer(
  child: ChildProcess,
  { buffer, header }: Packed,
  start: number,
  report: Report,
): Promise<Summary> {
  using ucx = Ucx.open();
  const worker = ucx.createWorker();
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new DemoError("The second process has no standard input and output");
  stdin.write(`${worker.address.toHex()}\n`);
  const { address } = JSON.parse(await firstLine(stdout) ?? await new Promise<never>(() => {})); // its exit is reported
  const endpoint = await worker.connect(Uint8Array.fromHex(address));
  const failed = endpoint.closed.then((reason) => {
    if (reason !== null) throw new DemoError(`The connection to the second process broke: ${reason.message}`);
    return new Promise<never>(() => {}); // closed by ourselves
  });
  failed.catch(() => {});
  const step = <T>(work: Promise<T>): Promise<T> => Promise.race([work, failed]);

  const text = new Uint8Array(new ArrayBuffer(64));
  const receiveText = async () => {
    const { length } = await step(worker.recv(text, { tag: TAG.arrived }));
    return decoder.decode(text.subarray(0, length));
  };
  const head = encoder.encode(JSON.stringify(header));
  if (head.length > headerBytes) throw new DemoError(`The header has ${head.length} bytes: more than ${headerBytes}`);
  await step(endpoint.send(head, { tag: TAG.header }));
  await receiveText();
  const path = endpoint.transports().join(" + ");
  report("start a second process, connect", head.length, start, 0, `UCX ${ucx.version}`);

  const sent = performance.now();
  await step(endpoint.send(buffer, { tag: TAG.payload }));
  await receiveText();
  report("send, until it has arrived", buffer.size, sent, 0, `host -> ${path} -> host`);

  const asked = performance.now();
  const answer = new Uint8Array(new ArrayBuffer(Number(await receiveText())));
  await step(worker.recv(answer, { tag: TAG.answer }));
  report("receive its digest and sums", answer.length, asked, "", `${path} -> host`);
  worker.abort(); // the other side has closed
  return JSON.parse(decoder.decode(answer));
}

/** Compares the answer with what the file says. */
async function verify(answer: Summary, array: DemoFile, report: Report): Promise<void> {
  const start = performance.now();
  const expected = await array.control();
  if (answer.sha256 !== expected.sha256) {
    throw new DemoError(`Wrong bytes: the second process has SHA-256 ${answer.sha256}, expected ${expected.sha256}`);
  }
  const wrong = expected.sums.findIndex((sum, column) => sum !== answer.sums[column]);
  if (wrong >= 0 || answer.sums.length !== expected.sums.length) {
    throw new DemoError(`Wrong sum of column ${wrong}: ${answer.sums[wrong]}, expected ${expected.sums[wrong]}`);
  }
  const columns = `${expected.sums.length} column sum${expected.sums.length === 1 ? "" : "s"}`;
  report("compare with the file", 0, start, "", `SHA-256 ${answer.sha256.slice(0, 12)}..., ${columns}`);
}
