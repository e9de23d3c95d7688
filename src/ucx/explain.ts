/**
 * Explains in words how memory is sent.
 *
 * @module
 */
import { MemoryBuffer } from "../memory/mod.ts";
import { StridedMemoryView } from "../view/mod.ts";
import { type Sendable, takeMemory } from "./message_memory.ts";
import { notStaged, type PoolStaging } from "./pool_staging.ts";
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
  using view = StridedMemoryView.from(what, { stream: null }); // another library's array, whose memory is not used here
  return explainOwn(view, way);
}

function isJavaScripts(what: object): what is ArrayBufferLike | ArrayBufferView {
  return ArrayBuffer.isView(what) || what instanceof ArrayBuffer ||
    (typeof SharedArrayBuffer === "function" && what instanceof SharedArrayBuffer);
}

function explainOwn(what: StridedMemoryView | MemoryBuffer | ArrayBufferLike | ArrayBufferView, way: Way): string {
  const buffer = what instanceof StridedMemoryView ? what.buffer : what instanceof MemoryBuffer ? what : null;
  const lines: string[] = [];
  const isPacked = what instanceof StridedMemoryView && !what.layout.isContiguousC;
  const bytes = isPacked ? what.nbytes : bytesOf(what);
  const isStaged = buffer !== null && way.cuda !== null && way.cuda.isFor(buffer, bytes);
  if (isPacked) {
    lines.push(
      `${bytes} bytes that are not contiguous: copied ` +
        `${buffer?.kind === "device" ? "on the GPU" : "on the host"} first, in C order ({ copy: false } refuses that)`,
    );
  } else {
    const from = isStaged
      ? "copied on the GPU first, to memory that other processes can map, which a pool's is not (stagingBytes)"
      : "sent from where they are";
    lines.push(`${bytes} contiguous bytes, ${from}`);
  }
  const stream = buffer?.stream ?? null;
  if (stream !== null) {
    lines.push(
      stream.isReady ? "all work on them is done" : "waits for the buffer's home stream; the event loop goes on",
    );
  }
  const chosen = way.transports.join(", ") || "no transports are chosen yet";
  const [place, ...reasons] = wayOf(buffer, way, isStaged);
  return [...lines, `${place}: ${chosen}`, ...reasons].join("\n");
}

function bytesOf(what: Sendable): number {
  const memory = new TakenMemory();
  takeMemory(memory, what, "send", notStaged);
  const { bytes } = memory;
  memory.release();
  return bytes;
}

/** The kind of memory and how it travels, then why it does not go faster. */
function wayOf(
  buffer: MemoryBuffer | null,
  { transports, cuda, handlesErrors }: Way,
  isStaged: boolean,
): string[] {
  const has = (...names: string[]) => transports.some((one) => names.some((name) => one.startsWith(name)));
  // Shared memory without CMA: from the sender to a buffer that both share, and from there to the receiver.
  const hostReasons = has("sysv", "posix") && !has("cma", "knem", "xpmem") && handlesErrors
    ? ['large messages are copied twice: CMA, which copies once, is ruled out by { errors: "peer" }']
    : [];
  const kind = buffer?.kind ?? "host";
  if (kind === "host") return ["the host's memory", ...hostReasons];
  if (kind === "pinned") return ["page-locked memory, as the host's", ...hostReasons];
  if (cuda === null) {
    return kind === "managed"
      ? ["managed memory, as the host's: UCX knows no CUDA", ...hostReasons]
      : ["a GPU's memory: refused, UCX knows no CUDA"];
  }
  if (kind === "managed") return ["managed memory, in pieces through memory of UCX's own"];
  if (buffer?.pool !== null && !isStaged) {
    return [
      "a pool's memory, in pieces through memory of UCX's own",
      "other processes cannot map a pool's memory: SynchronousMemoryResource allocates what goes from GPU to GPU",
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
