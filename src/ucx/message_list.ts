/**
 * Messages whose data lie in several pieces of memory: gathered on send, scattered on receive.
 *
 * @module
 */
import { ucp_dt_iov_t, UCS_MEMORY_TYPE } from "../../bindings/ucp_types.ts";
import { layoutOf, littleEndian, NativeArena } from "../ffi/mod.ts";
import type { MemoryBuffer } from "../memory/mod.ts";
import { type Doing, type Sendable, takeMemory, type TakeOptions } from "./message_memory.ts";
import type { Operation } from "./operation.ts";
import type { PoolStaging } from "./pool_staging.ts";
import { TakenMemory } from "./taken_memory.ts";

/** One piece of memory, or several. */
export type Pieces = Sendable | readonly Sendable[];

/** Whether data lie in several pieces. */
export function isList(what: Pieces): what is readonly Sendable[] {
  return Array.isArray(what);
}

const { size: entryBytes, offsets: field } = layoutOf(ucp_dt_iov_t);

/** Several pieces of memory, taken together. */
export interface List {
  /** Settles when all pieces are ready; null if they are. */
  readonly ready: Promise<void> | null;
  /** Total size in bytes. */
  readonly bytes: number;
  /** The pieces, whose addresses are final once all are ready. */
  readonly pieces: readonly TakenMemory[];
  /** What each piece is in; null for JavaScript's own memory. */
  readonly buffers: readonly (MemoryBuffer | null)[];
}

// law ucx/takeList: ucx/message_list
/**
 * Takes several pieces of memory for an operation that has none.
 *
 * @param order a promise that settles when a buffer's memory is ready; null if it is
 * @throws {TypeError} as {@linkcode takeMemory}, and for a mix of GPU, managed and host memory; nothing is kept then
 */
export function takeList(
  operation: Operation,
  what: readonly Sendable[],
  doing: Doing,
  cuda: PoolStaging | null,
  order: (buffer: MemoryBuffer) => Promise<void> | null,
  options?: TakeOptions,
): List {
  const pieces: TakenMemory[] = [];
  const list = new NativeArena();
  operation.pin = {
    [Symbol.dispose]: () => {
      for (const piece of pieces) piece.release();
      list.close();
    },
    pieces,
  };
  const waits: Promise<void>[] = [];
  const buffers: (MemoryBuffer | null)[] = [];
  for (const one of what) {
    const piece = new TakenMemory();
    pieces.push(piece);
    const buffer = takeMemory(piece, one, doing, cuda?.unstaged ?? null, options);
    buffers.push(buffer);
    const wait = buffer === null ? null : order(buffer);
    if (wait !== null) waits.push(wait);
  }
  const [first] = pieces;
  operation.memoryType = first?.memoryType ?? UCS_MEMORY_TYPE.HOST;
  if (pieces.some(({ memoryType }) => memoryType !== operation.memoryType)) {
    throw new TypeError(
      `Cannot ${doing} memory of several kinds (GPU, managed, host) in one message. Copy one of them, or use several.`,
    );
  }
  const entries = list.bytes(entryBytes * pieces.length);
  operation.useList(entries.address, pieces.length);
  const write = () => {
    const view = new DataView(entries.bytes.buffer, entries.bytes.byteOffset, entries.bytes.byteLength);
    pieces.forEach((piece, i) => {
      piece.pack?.();
      view.setBigUint64(entryBytes * i + field.buffer, piece.address, littleEndian);
      view.setBigUint64(entryBytes * i + field.length, BigInt(piece.bytes), littleEndian);
    });
    operation.pack = null;
  };
  const bytes = pieces.reduce((sum, piece) => sum + piece.bytes, 0);
  if (waits.length === 0) {
    write();
    return { ready: null, bytes, pieces, buffers };
  }
  operation.pack = write;
  return { ready: Promise.all(waits).then(() => {}), bytes, pieces, buffers };
}
