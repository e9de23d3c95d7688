/**
 * Exports by DLPack: an array as a tensor for any library. An export is planned, then copied if need be, ordered and
 * written.
 *
 * @module
 */
import { DLPACK_FLAG_BITMASK, DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION } from "../../bindings/dlpack.ts";
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
import { type ExportPlan, planExport } from "./plan_export.ts";
import { ExportedStruct, type TensorContent } from "./struct.ts";
import { dlpackDevice, DlpackTensor, type ReleaseState, type ToDlpackOptions } from "./tensor.ts";

/** An exported tensor, until its consumer has released it. */
class Export implements ReleaseState, ExportEntry {
  index = -1;
  readonly #buffer: MemoryBuffer;
  readonly #tensor: ExportedStruct;

  // law dlpack/Export.constructor: dlpack/host_consumers, dlpack/export, dlpack/copy_for_consumer, dlpack/programs,
  //   order/reclaim, sim/behaviours, memory/collection
  constructor(buffer: MemoryBuffer, content: TensorContent) {
    this.#buffer = buffer;
    this.#tensor = new ExportedStruct(content);
    buffer.pin();
    addExport(this);
  }

  /** Address of the struct. */
  get address(): bigint {
    return this.#tensor.address;
  }

  isReleased(): boolean {
    return pollExport(this);
  }

  isReleasedByConsumer(): boolean {
    return this.#tensor.isReleased;
  }

  // law dlpack/Export.order: dlpack/host_consumers, dlpack/export, dlpack/copy_for_consumer, dlpack/programs,
  //   order/reclaim, sim/behaviours, memory/collection
  order(order: ReleaseOrder): boolean {
    return order.add(this.#buffer);
  }

  // law dlpack/Export.finish: dlpack/host_consumers, dlpack/export, dlpack/copy_for_consumer, dlpack/programs,
  //   order/reclaim, sim/behaviours, memory/collection
  finish(): void {
    this.#tensor.free();
    this.#buffer.unpin();
  }
}

// law dlpack/toDlpack: dlpack/host_consumers, dlpack/export, dlpack/copy_for_consumer, dlpack/programs,
//   order/reclaim, sim/behaviours, memory/collection
/** Exports an array. See `StridedMemoryView.toDlpack`; {@linkcode planExport} says what it throws. */
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
    copied.buffer.close(); // the export has pinned it
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
  const { buffer, layout: { shape, strides }, dtype } = array;
  const { device } = buffer;
  const data = firstAddress(array); // first: a closed buffer has none
  if (device !== null && consumer !== null) consumerWaits(buffer, consumerStream(device, consumer));
  const state = new Export(buffer, {
    isVersioned,
    flags: flags | (dtype.dlpack.padded ? flag.isPadded : 0),
    data,
    device: dlpackDevice(array),
    dtype: dtype.dlpack,
    shape,
    strides,
  });
  return new DlpackTensor(state.address, isVersioned ? [DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION] : null, state);
}
