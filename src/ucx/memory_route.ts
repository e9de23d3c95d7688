/**
 * Decides how memory is handed to UCX: as what, and where elements that are not contiguous are copied first.
 *
 * @module
 */
import { UCS_MEMORY_TYPE } from "../../bindings/ucp_types.ts";
import type { CudaStream } from "../device/mod.ts";
import type { MemoryBuffer } from "../memory/mod.ts";
import type { PoolStaging } from "./pool_staging.ts";

/** What the decisions depend on, beside the number of bytes. */
export type Located = Pick<MemoryBuffer, "kind" | "pool" | "device" | "stream">;

// law ucx/cudaFor: ucx/explain
/**
 * What UCX knows of CUDA, as far as this memory goes: nothing if its GPU is a simulated one, whose memory is the
 * host's. UCX would take it for a real one's.
 */
function cudaFor({ device }: Located, cuda: PoolStaging | null): PoolStaging | null {
  return device === null || cuda === null || cuda.knows(device) ? cuda : null;
}

/** Whether UCX can use the memory at all: a UCX without CUDA cannot use a GPU's. */
export function isKnown(buffer: Located, cuda: PoolStaging | null): boolean {
  return buffer.kind !== "device" || cudaFor(buffer, cuda) !== null;
}

/** @throws {TypeError} if UCX cannot use the memory */
export function checkKnown(buffer: Located, doing: string, cuda: PoolStaging | null): void {
  if (isKnown(buffer, cuda)) return;
  if (cuda !== null) {
    throw new TypeError(`Cannot ${doing} memory of a simulated GPU: this UCX uses real ones. Copy it to the host.`);
  }
  throw new TypeError(
    `Cannot ${doing} GPU memory: this UCX was built without CUDA, finds no GPU, or UCX_TLS leaves CUDA out. ` +
      "Copy it to the host, or install libucx-cu13.",
  );
}

/**
 * The memory type to pass to UCX, so that it need not detect it. To a UCX without CUDA, managed memory is the host's.
 */
export function typeOf(buffer: Located, cuda: PoolStaging | null): number {
  const { kind, pool } = buffer;
  // Other processes cannot map pool memory. UCX accepts such memory as managed, too, and copies through its own.
  if (kind === "device") return pool === null ? UCS_MEMORY_TYPE.CUDA : UCS_MEMORY_TYPE.CUDA_MANAGED;
  return kind === "managed" && cudaFor(buffer, cuda) !== null ? UCS_MEMORY_TYPE.CUDA_MANAGED : UCS_MEMORY_TYPE.HOST;
}

// law ucx/packedOn: ucx/explain, ucx/gpu_behaviours
/**
 * The stream on which elements that are not contiguous are copied, to its GPU's pool; null if they are copied on the
 * host. The host can access managed memory, too: a UCX without CUDA gets its copy there.
 */
export function packedOn(buffer: Located, cuda: PoolStaging | null): CudaStream | null {
  const { device, stream } = buffer;
  return device === null || cudaFor(buffer, cuda) === null ? null : stream ?? device.defaultStream;
}

/** The packed copy that {@linkcode packedOn} makes, as far as the decisions about it go. */
export function packedAt(home: CudaStream): Located {
  const { device } = home;
  return { kind: "device", pool: device.memory.pool, device, stream: home };
}
