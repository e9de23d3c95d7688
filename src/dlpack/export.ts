/**
 * DLPack exports: an array as a tensor for any library. An export is planned, then copied if necessary, ordered and
 * written. Python's capsules around a tensor are made by `Array.__dlpack__` (`src/python/guest/array.py`), and for
 * NumPy's arrays by `exportTensor` (`src/python/export_array.ts`).
 *
 * @module
 */
import { DLDeviceType, DLPACK_FLAG_BITMASK } from "../../bindings/dlpack.ts";
import { type ArrayParts, copyToDevice, copyToHost, firstAddress } from "../copy/mod.ts";
import { none } from "../layout/mod.ts";
import type { MemoryBuffer } from "../memory/mod.ts";
import {
  addExport,
  consumerStream,
  consumerWaits,
  type ExportEntry,
  hostWaitsToRead,
  pollExport,
  pollIfMany,
  type ReleaseOrder,
} from "../order/mod.ts";
import { type ExportPlan, newest, planExport } from "./plan_export.ts";
import { type TensorPool, tensorPool, type TensorSlot } from "./struct.ts";
import { DlpackTensor, type TensorState, type ToDlpackOptions } from "./tensor.ts";

/**
 * An exported tensor, until its consumer has released it. One object holds all of its state: allocating and collecting
 * a second one takes longer than writing the struct.
 */
class Export implements TensorState, ExportEntry {
  index = -1;
  closed = false;
  readonly ptr: bigint;
  readonly #buffer: MemoryBuffer;
  readonly #pool: TensorPool;
  readonly #slot: TensorSlot;

  // law dlpack/Export.constructor: dlpack/host_consumers, dlpack/export, dlpack/copy_for_consumer, dlpack/programs,
  //   order/reclaim, sim/behaviours, memory/collection
  constructor(buffer: MemoryBuffer, pool: TensorPool, slot: TensorSlot) {
    this.ptr = slot.address;
    this.#buffer = buffer;
    this.#pool = pool;
    this.#slot = slot;
    buffer.pin();
    addExport(this);
  }

  isReleased(): boolean {
    return pollExport(this);
  }

  isReleasedByConsumer(): boolean {
    return this.#slot.content.isReleased;
  }

  // law dlpack/Export.drop: dlpack/export, dlpack/programs, memory/collection
  /** Does what the deleter would, without a call into C: nothing else has the struct. */
  drop(): void {
    if (this.index >= 0) this.#slot.content.release(); // otherwise its memory belongs to another export
  }

  /**
   * If nothing has to be ordered the export ends at once; otherwise the next poll orders all ended exports together.
   */
  release(): void {
    this.drop();
    if (this.#buffer.stream === null) pollExport(this);
  }

  // law dlpack/Export.order: dlpack/host_consumers, dlpack/export, dlpack/copy_for_consumer, dlpack/programs,
  //   order/reclaim, sim/behaviours, memory/collection
  order(order: ReleaseOrder): boolean {
    return order.add(this.#buffer);
  }

  // law dlpack/Export.finish: dlpack/host_consumers, dlpack/export, dlpack/copy_for_consumer, dlpack/programs,
  //   order/reclaim, sim/behaviours, memory/collection
  finish(): void {
    this.#slot.content.checkReleases();
    this.#pool.free(this.#slot);
    this.#buffer.unpin();
  }
}

// law dlpack/toDlpack: dlpack/host_consumers, dlpack/export, dlpack/copy_for_consumer, dlpack/programs,
//   order/reclaim, sim/behaviours, memory/collection
/** Exports an array. See `StridedMemoryView.toDlpack`; {@linkcode planExport} documents the errors. */
export function toDlpack(array: ArrayParts, options: ToDlpackOptions = none): DlpackTensor {
  const plan = planExport(array, options);
  pollIfMany();
  if (plan.hostWaits) hostWaitsToRead(array, "toDlpack()");
  const { copy } = plan;
  if (copy === null) return exportInOrder(array, plan, array.readonly ? flag.readOnly : 0);
  const copied = copy.to === "host" ? copyToHost(array) : copyToDevice(array, copy.home);
  try {
    return exportInOrder(copied, plan, flag.isCopied);
  } finally {
    copied.buffer.close(); // the export keeps it pinned
  }
}

/** The flags as numbers, because bigints are slow. */
const flag = {
  readOnly: Number(DLPACK_FLAG_BITMASK.READ_ONLY),
  isCopied: Number(DLPACK_FLAG_BITMASK.IS_COPIED),
  isPadded: Number(DLPACK_FLAG_BITMASK.IS_SUBBYTE_TYPE_PADDED),
};

// law dlpack/exportInOrder: dlpack/host_consumers, dlpack/export, dlpack/copy_for_consumer, dlpack/programs,
//   order/reclaim, sim/behaviours, memory/collection
function exportInOrder(array: ArrayParts, { consumer, isVersioned }: ExportPlan, flags: number): DlpackTensor {
  const { buffer, layout, dtype } = array;
  const { device } = buffer;
  const data = firstAddress(array); // first: a closed buffer has none
  if (device !== null && consumer !== null) consumerWaits(buffer, consumerStream(device, consumer));
  const pool = tensorPool(isVersioned, layout.shape.length);
  const slot = pool.allocate();
  const allFlags = dtype.dlpack.padded ? flags | flag.isPadded : flags;
  const type = device === null ? DLDeviceType.kDLCPU : DLDeviceType.kDLCUDA;
  slot.content.write(allFlags, data, type, device === null ? 0 : device.ordinal, dtype.dlpack, layout);
  const state = new Export(buffer, pool, slot);
  return new DlpackTensor(state.ptr, isVersioned ? newest : null, state, state);
}
