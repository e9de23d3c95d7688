/**
 * Explains in words how memory is sent.
 *
 * @module
 */
import { UCS_MEMORY_TYPE } from "../../bindings/ucp_types.ts";
import { MemoryBuffer } from "../memory/mod.ts";
import { StridedMemoryView } from "../view/mod.ts";
import { isKnown, type Located, packedAt, packedOn, typeOf } from "./memory_route.ts";
import { type Sendable, takeMemory } from "./message_memory.ts";
import { PoolStaging } from "./pool_staging.ts";
import { TakenMemory } from "./taken_memory.ts";

/** What is known about the route. */
export interface Way {
  /** The transports of the endpoint. */
  readonly transports: readonly string[];
  /** Staging for large messages in pool memory; null if this UCX does not support CUDA. */
  readonly cuda: PoolStaging | null;
  /** Whether UCX detects the end of the other side (`errors: "peer"`). */
  readonly handlesErrors: boolean;
}

// law ucx/explain: ucx/explain
/**
 * Explains how memory would be sent, one fact per line.
 *
 * @throws {TypeError} as `send` does
 */
export function explain(what: Sendable, way: Way): string {
  if (what instanceof StridedMemoryView || what instanceof MemoryBuffer || isJavaScripts(what)) {
    return explainOwn(what, way);
  }
  using view = StridedMemoryView.from(what); // as send does
  return explainOwn(view, way);
}

function isJavaScripts(what: object): what is ArrayBufferLike | ArrayBufferView {
  return ArrayBuffer.isView(what) || what instanceof ArrayBuffer || what instanceof SharedArrayBuffer;
}

function explainOwn(what: StridedMemoryView | MemoryBuffer | ArrayBufferLike | ArrayBufferView, way: Way): string {
  const buffer = what instanceof StridedMemoryView ? what.buffer : what instanceof MemoryBuffer ? what : null;
  const isPacked = what instanceof StridedMemoryView && !what.layout.isContiguousC;
  const bytes = isPacked ? what.nbytes : bytesOf(what);
  const home = isPacked && buffer !== null ? packedOn(buffer, way.cuda) : null;
  const isRefused = buffer !== null && !isKnown(buffer, way.cuda);
  const packed = home === null ? null : packedAt(home); // null on the host
  const given = isPacked && !isRefused ? packed : buffer;
  const isStaged = given !== null && way.cuda !== null && way.cuda.isFor(given, bytes);
  const unmapped = given?.kind === "managed" ? "managed memory" : "a pool's";
  const mappable = `to memory that other processes can map, which ${unmapped} is not (stagingBytes)`;
  const lines: string[] = [];
  if (isRefused) lines.push(`${bytes} bytes`);
  else if (isPacked) {
    const where = home === null ? "on the host" : "on the GPU";
    lines.push(
      `${bytes} bytes that are not contiguous: copied ${where} first, in C order ({ copy: false } refuses that)`,
      ...(isStaged ? [`then copied again, ${mappable}`] : []),
    );
  } else {
    const from = isStaged ? `copied on the GPU first, ${mappable}` : "sent from where they are";
    lines.push(`${bytes} contiguous bytes, ${from}`);
  }
  const stream = buffer?.stream ?? null;
  if (stream !== null) {
    lines.push(
      stream.isReady ? "all work on them is done" : "waits for the buffer's home stream; the event loop goes on",
    );
  }
  const chosen = way.transports.join(", ") || "no transports are chosen yet";
  const [place, ...reasons] = wayOf(given, way, isStaged, isPacked);
  return [...lines, `${place}: ${chosen}`, ...reasons].join("\n");
}

/** For a length, which is the same for memory that is refused. */
const anyGpu = new PoolStaging(0);

function bytesOf(what: Sendable | SharedArrayBuffer): number {
  const memory = new TakenMemory();
  takeMemory(memory, what, "send", anyGpu);
  const { bytes } = memory;
  memory.release();
  return bytes;
}

/** The kind of the memory that UCX is given and how it travels, then why it does not go faster. */
function wayOf(
  given: Located | null,
  { transports, cuda, handlesErrors }: Way,
  isStaged: boolean,
  isPacked: boolean,
): string[] {
  const has = (...names: string[]) => transports.some((one) => names.some((name) => one.startsWith(name)));
  // Shared memory without CMA: from the sender to a buffer that both share, and from there to the receiver.
  const hostReasons = has("sysv", "posix") && !has("cma", "knem", "xpmem") && handlesErrors
    ? ['large messages are copied twice: CMA, which copies once, is ruled out by { errors: "peer" }']
    : [];
  if (given === null || given.kind === "host") return ["the host's memory", ...hostReasons];
  const unknown = cuda === null ? "UCX knows no CUDA" : "its GPU is simulated, and this UCX uses real ones";
  if (!isKnown(given, cuda)) return [`a GPU's memory: refused, ${unknown}`];
  const type = isStaged ? UCS_MEMORY_TYPE.CUDA : typeOf(given, cuda);
  if (type === UCS_MEMORY_TYPE.HOST) {
    return [
      given.kind === "pinned" ? "page-locked memory, as the host's" : `managed memory, as the host's: ${unknown}`,
      ...hostReasons,
    ];
  }
  if (type === UCS_MEMORY_TYPE.CUDA_MANAGED) {
    if (given.kind === "managed") return ["managed memory, in pieces through memory of UCX's own"];
    return [
      "a pool's memory, in pieces through memory of UCX's own",
      "other processes cannot map a pool's memory: SynchronousMemoryResource allocates what goes from GPU to GPU" +
      (isPacked ? ", if it is contiguous: copies of elements that are not are in a pool" : ""),
    ];
  }
  if (has("cuda_ipc", "rc", "dc")) return ["a GPU's memory, from GPU to GPU"];
  if (transports.length === 0) return ["a GPU's memory"];
  return [
    "a GPU's memory, in pieces through the host",
    "cuda_ipc is not among the transports, which would go from GPU to GPU, a hundred times as fast: " +
    "the other process is on another machine or in another PID namespace, its GPU cannot be reached from here, or " +
    "UCX_TLS leaves it out",
  ];
}
