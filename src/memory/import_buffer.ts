/**
 * Device memory of other processes.
 *
 * @module
 */
import { CU_IPC_MEM } from "../../bindings/cuda_types.ts";
import {
  besideCaptures,
  checkStream,
  type CudaDevice,
  type CudaEvent,
  type CudaStream,
  handleBytes,
  readHandle,
} from "../device/mod.ts";
import { NativeArena, reportUncaught, runAll } from "../ffi/mod.ts";
import { checkCuda, checkRelease } from "../driver/mod.ts";
import { type OptionNames, show } from "../layout/mod.ts";
import { comeAfter, freeAfter, isOver, markEnd, reclaim, whenUnblocked } from "../order/mod.ts";
import type { BufferDescriptor } from "./buffer_descriptor.ts";
import type { Allocation } from "./allocation.ts";
import { MemoryBuffer } from "./memory_buffer.ts";
import type { MemoryPool } from "./memory_pool.ts";
import { ProcessWide } from "./process_wide.ts";

/** Options of the `importBuffer` methods. */
export interface ImportBufferOptions {
  /** The home stream, in whose order use in this process ends. Default: the device's default stream. */
  readonly stream?: CudaStream;
  /**
   * Called when use in this process has ended, after everything enqueued on the stream so far: record an interprocess
   * event there and notify the owner, whose stream can wait for it before freeing the memory. It must not reference the
   * buffer.
   */
  readonly onRelease?: (stream: CudaStream) => void;
}

const onlyElsewhere = "Memory is imported by another process than the one that made it, while it is allocated there";

/** The names of {@linkcode ImportBufferOptions}. */
export const importBufferOptionNames: OptionNames<ImportBufferOptions> = { stream: true, onRelease: true };

// law memory/checked: memory/imported_memory, memory/sharing/sharing, memory/sharing/pieces,
//   memory/sharing/memory_channel
/** Throws unless another process can have made the descriptor. @returns the driver's bytes */
function checked(from: BufferDescriptor, kind: BufferDescriptor["kind"], device: CudaDevice): Uint8Array<ArrayBuffer> {
  const bytes = readHandle(from, [kind], device);
  const isSize = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0;
  if (isSize(from.size) && isSize(from.offset)) return bytes;
  throw new RangeError(
    `Cannot import ${show(from.size)} bytes at ${show(from.offset)}: expected safe integers of at least 0`,
  );
}

/**
 * One piece of another process's memory, however often it is imported, and through however many imports of its pool.
 */
interface Imported {
  readonly ptr: bigint;
  /** Pools through which it was imported, each retained until the piece is freed. */
  readonly pools: Set<MemoryPool>;
  /** Number of open buffers over it. */
  buffers: number;
  /** What the free has to wait for: the stream ends of the closed buffers. */
  readonly closed: CudaEvent[];
}

/**
 * Imported pieces by address. The driver returns the same address every time the process imports a piece, through any
 * import of the pool, and unmaps it at the first free: so the buffers of each piece are counted here, and only the last
 * one frees it.
 */
const allPieces = new ProcessWide<Imported>();

// law memory/importPoolMemory: memory/imported_memory, memory/sharing/sharing, memory/sharing/pieces,
//   memory/sharing/memory_channel
/** A buffer over memory of another process's pool. Closing it frees nothing there. */
export function importPoolMemory(pool: MemoryPool, from: BufferDescriptor, options: ImportBufferOptions): MemoryBuffer {
  const { device } = pool;
  const { stream = device.defaultStream, onRelease } = options;
  const bytes = checked(from, "pool memory", device);
  const { size, offset } = from;
  const { handle } = pool; // a closed pool or stream must fail before anything is retained
  checkHome(stream, device);
  if (size === 0) return emptyBuffer(device, stream, onRelease);
  const ptr = importPointer(device, handle, bytes);
  const pieces = allPieces.of(device.driver);
  const piece = pieces.getOrInsertComputed(ptr, () => ({ ptr, pools: new Set(), buffers: 0, closed: [] }));
  piece.buffers++;
  if (!piece.pools.has(pool)) {
    pool.retain();
    piece.pools.add(pool);
  }
  const free = (_: bigint, home: CudaStream | null) => {
    const last = home ?? device.defaultStream;
    runAll([() => closePiece(pieces, piece, last), () => onRelease?.(last)]);
  };
  return importedBuffer({ ptr: ptr + BigInt(offset), size, device, stream, free, pool });
}

function importPointer(device: CudaDevice, pool: bigint, data: Uint8Array): bigint {
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(handleBytes);
  bytes.set(data);
  const out = arena.out("ptr");
  const { driver } = device;
  const open = () => driver.poolSharing.cuMemPoolImportPointer(out.$address, pool, address);
  const code = besideCaptures(driver, () => device.withContext(open));
  checkCuda(driver, "cuMemPoolImportPointer", code);
  return out.value;
}

// law memory/closePiece: memory/imported_memory, memory/sharing/sharing, memory/sharing/pieces,
//   memory/sharing/memory_channel
/** Ends the use by one buffer. The last one frees the piece, after all uses on the streams of the others. */
function closePiece(pieces: Map<bigint, Imported>, piece: Imported, home: CudaStream): void {
  const { ptr, pools, closed } = piece;
  piece.buffers--;
  if (piece.buffers > 0) {
    for (let [first] = closed; first !== undefined && isOver(first); [first] = closed) closed.shift()?.close();
    const end = markEnd(home);
    if (end !== null) closed.push(end);
    return;
  }
  pieces.delete(ptr);
  const handle = home.handleFor("use");
  const { driver } = home.device;
  const free = () => {
    const take = () => home.enqueue(() => driver.pool.cuMemFreeAsync(ptr, handle));
    checkRelease(driver, "cuMemFreeAsync", besideCaptures(driver, take));
  };
  const waits = closed.splice(0).flatMap((event) => [() => comeAfter(home, event), () => event.close()]);
  whenUnblocked(home, () => runAll([...waits, free, ...[...pools].map((pool) => () => pool.release(home))]));
}

// law memory/importMemory: memory/imported_memory, memory/sharing/sharing, memory/sharing/pieces,
//   memory/sharing/memory_channel
/** A buffer over memory that another process allocated without a pool. */
export function importMemory(
  device: CudaDevice,
  from: BufferDescriptor,
  options: ImportBufferOptions,
): MemoryBuffer {
  const { stream = device.defaultStream, onRelease } = options;
  const bytes = checked(from, "memory", device);
  const { size, offset } = from;
  checkHome(stream, device);
  if (size === 0) return emptyBuffer(device, stream, onRelease);
  return device.retainFor((retained) => {
    using arena = new NativeArena();
    const out = arena.out("ptr");
    const { driver } = device;
    const { LAZY_ENABLE_PEER_ACCESS } = CU_IPC_MEM;
    // The driver counts how often the handle is open, and unmaps the memory at the last close.
    const open = () => driver.ipc.cuIpcOpenMemHandle_v2(out.$address, bytes, LAZY_ENABLE_PEER_ACCESS);
    const code = besideCaptures(driver, () => device.withContext(open));
    checkCuda(driver, "cuIpcOpenMemHandle_v2", code, onlyElsewhere);
    const base = out.value;
    const free = (_: bigint, home: CudaStream | null) => {
      freeAfter(home, () => {
        runAll([() => closeMemory(device, base, retained), () => onRelease?.(home ?? device.defaultStream)]);
      });
      if (home !== null) reclaimWhenDone(home);
    };
    return importedBuffer({ ptr: base + BigInt(offset), size, device, stream, free });
  });
}

// law memory/reclaimWhenDone: memory/imported_memory, memory/sharing/sharing, memory/sharing/pieces,
//   memory/sharing/memory_channel
/**
 * Runs frees that wait for a stream as soon as its work is done, not at the next allocation: the owner waits for them.
 */
function reclaimWhenDone(stream: CudaStream): void {
  if (isOver(stream)) return reclaim();
  const retained = stream.retained();
  const end = stream.completed().then(reclaim, reclaim).finally(() => retained[Symbol.dispose]());
  end.catch((error) => reportUncaught("returning imported memory", error));
}

// law memory/closeMemory: memory/imported_memory, memory/sharing/sharing, memory/sharing/pieces,
//   memory/sharing/memory_channel
function closeMemory(device: CudaDevice, base: bigint, retained: Disposable): void {
  const { driver } = device;
  try {
    const close = () => device.withContext(() => driver.ipc.cuIpcCloseMemHandle(base));
    checkRelease(driver, "cuIpcCloseMemHandle", besideCaptures(driver, close));
  } finally {
    retained[Symbol.dispose]();
  }
}

function emptyBuffer(
  device: CudaDevice,
  stream: CudaStream,
  onRelease: ImportBufferOptions["onRelease"],
): MemoryBuffer {
  const free = (_: bigint, home: CudaStream | null) => onRelease?.(home ?? device.defaultStream);
  return importedBuffer({ ptr: 0n, size: 0, device, stream, free });
}

/** A buffer over memory that another process owns; only the owner can share it further. */
function importedBuffer(allocation: Allocation): MemoryBuffer {
  return MemoryBuffer.fromAllocation({ ...allocation, describe: refuseToShare });
}

function refuseToShare(): never {
  throw new TypeError("Cannot export memory of another process: export it from that process");
}

// law memory/checkHome: memory/imported_memory, memory/sharing/sharing, memory/sharing/pieces,
//   memory/sharing/memory_channel
/**
 * Throws for a closed Cuda, a closed stream or a stream of another Cuda, before anything is imported that would have to
 * be undone.
 */
function checkHome(stream: CudaStream, device: CudaDevice): void {
  checkStream(stream, device, "Cannot import memory to a stream");
  device.retain();
  device.release();
  stream.retain();
  stream.release();
}
