/**
 * Fast exports of numbers, by copying a template of the structs.
 *
 * @module
 */
import type { CudaEvent } from "../device/mod.ts";
import type { MemoryBuffer } from "../memory/mod.ts";
import type { SlabPool, Slot } from "../ffi/mod.ts";
import { type ArrayParts, firstAddress, withLastingCopies } from "../copy/mod.ts";
import { ArrowDeviceArray, type ExportStates } from "./device_array.ts";
import { onHost, type Place, placeOfBuffer } from "./export.ts";
import { ExportedTree, noOwner, type TreeMemory, type TreeOwner } from "./exported_tree.ts";
import { arrowField, fieldOfLists } from "./field.ts";
import { type StructCopy, structPool } from "./struct_template.ts";
import type { ArrowField } from "./type.ts";
import { pollIfMany, type ReleaseOrder } from "../order/mod.ts";

/** Arrays with more axes take the general export path, so that there are few templates. */
const maxAxes = 4;

// law cdata/exportNumbers: order/refusals, cdata/export_numbers, view/arrow, order/reclaim, sim/behaviours,
//   order/worker_end
/**
 * Exports an array of numbers in C order.
 *
 * @returns null for an array that must take the general path: with many axes, without elements, or not in C order
 * @throws {TypeError} if its buffer is closed
 * @throws {ExchangeError} if host memory is requested and the array is elsewhere
 */
export function exportNumbers(array: ArrayParts, where: "host" | "device"): ArrowDeviceArray | null {
  const { buffer, dtype, layout } = array;
  const { shape } = layout;
  const format = dtype.arrowFormat;
  const axes = shape.length;
  if (format === null || axes === 0 || axes > maxAxes || layout.volume === 0) return null;
  if (!layout.isContiguousC || shape.some((extent) => extent >= 2 ** 31)) return null;
  pollIfMany();
  const data = firstAddress(array);
  if (buffer.endsWithWorker) return exportLastingCopy(array, where);
  const place = where === "host" ? onHost([array]) : placeOfBuffer(buffer);
  return new ArrowDeviceArray(new NumbersExport(structPool(format, axes), format, buffer, shape, data, place, where));
}

function exportLastingCopy(array: ArrayParts, where: "host" | "device"): ArrowDeviceArray | null {
  return withLastingCopies([array], (lasting) => exportNumbers(lasting(array), where));
}

/**
 * Exported numbers. Their memory stays pinned, and the event that the consumer waits for stays alive, until the
 * consumer releases the array; the structs stay until it has released the schema, too.
 */
class NumbersExport implements ExportStates, TreeMemory, TreeOwner {
  readonly array: ExportedTree;
  readonly schema: ExportedTree;
  readonly #pool: SlabPool<StructCopy>;
  readonly #slot: Slot<StructCopy>;
  readonly #format: string;
  readonly #shape: readonly number[];
  readonly #buffer: MemoryBuffer;
  readonly #ready: CudaEvent | null;
  #trees = 2;

  // law cdata/NumbersExport.constructor: order/refusals, cdata/export_numbers, view/arrow, order/reclaim,
  //   sim/behaviours
  constructor(
    pool: SlabPool<StructCopy>,
    format: string,
    buffer: MemoryBuffer,
    shape: readonly number[],
    data: bigint,
    place: Place,
    where: "host" | "device",
  ) {
    this.#pool = pool;
    this.#slot = pool.allocate();
    try {
      this.#ready = where === "device" ? acquireReadyEvent(buffer) : null;
    } catch (error) {
      pool.free(this.#slot);
      throw error;
    }
    buffer.pin();
    this.#format = format;
    this.#shape = shape;
    this.#buffer = buffer;
    const structs = this.#slot.content;
    structs.write(shape, data, place, this.#ready);
    const { array, schema } = structs.template;
    this.array = new ExportedTree(this.#slot.address, this, array.root, this);
    this.schema = new ExportedTree(structs.schemaAddress, this, schema.root, noOwner);
  }

  get field(): ArrowField {
    return fieldOf(this.#format, this.#shape);
  }

  get words(): Int32Array<ArrayBuffer> {
    return this.#slot.content.words;
  }

  // law cdata/NumbersExport.free: order/refusals, cdata/export_numbers, view/arrow, order/reclaim, sim/behaviours
  free(): void {
    if (--this.#trees === 0) this.#pool.free(this.#slot);
  }

  // law cdata/NumbersExport.order: order/refusals, cdata/export_numbers, view/arrow, order/reclaim, sim/behaviours
  order(order: ReleaseOrder): boolean {
    return order.add(this.#buffer);
  }

  // law cdata/NumbersExport.finish: order/refusals, cdata/export_numbers, view/arrow, order/reclaim, sim/behaviours
  finish(): void {
    try {
      if (this.#ready !== null) releaseReadyEvent(this.#ready);
    } finally {
      this.#buffer.unpin();
    }
  }
}

// law cdata/acquireReadyEvent: order/refusals, cdata/export_numbers, view/arrow, order/reclaim, sim/behaviours
/** Records an event after the work enqueued on the home stream. Retains its device, to which the event is returned. */
function acquireReadyEvent({ stream }: MemoryBuffer): CudaEvent | null {
  if (stream === null) return null;
  const { device } = stream;
  const event = device.acquireEvent();
  try {
    stream.record(event);
    device.retain(); // the event belongs to its context
  } catch (error) {
    device.releaseEvent(event);
    throw error;
  }
  return event;
}

// law cdata/releaseReadyEvent: order/refusals, cdata/export_numbers, view/arrow, order/reclaim, sim/behaviours
/** Returns the event to its device, which destroys it if its Cuda is closed: that may fail. */
function releaseReadyEvent(event: CudaEvent): void {
  try {
    event.device.releaseEvent(event);
  } finally {
    event.device.release();
  }
}

function fieldOf(format: string, shape: readonly number[]): ArrowField {
  const leaf = arrowField(format, { nullable: false });
  return shape.slice(1).reduceRight<ArrowField>((child, size) => fieldOfLists(size, child), leaf);
}
