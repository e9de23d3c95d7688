/**
 * Fast exports of numbers: the structs of arrays of numbers differ in a few numbers only, so they are written once and
 * copied from there.
 *
 * @module
 */
import {
  ArrowArray as ArrowArrayStruct,
  ArrowDeviceArray as ArrowDeviceStruct,
  ArrowSchema,
} from "../../bindings/arrow.ts";
import type { CudaEvent } from "../device/mod.ts";
import type { MemoryBuffer } from "../memory/mod.ts";
import { releaseThunks } from "../native/mod.ts";
import { cString, layoutOf, littleEndian, SlabPool, type Slot } from "../ffi/mod.ts";
import { type ArrayParts, firstAddress, withLastingCopies } from "../copy/mod.ts";
import { ArrowDeviceArray, type ExportStates } from "./device_array.ts";
import { onHost, type Place, placeOfBuffer } from "./export.ts";
import { ExportedTree, noOwner, StructBlock, type TreeMemory, type TreeNode, type TreeOwner } from "./exported_tree.ts";
import { arrowField } from "./field.ts";
import type { ArrowField } from "./type.ts";
import { pollIfMany, type ReleaseOrder } from "../order/mod.ts";

/** A tree of structs with places for what is not the same in all of its kind; all offsets are from the block's beginning. */
interface TreePlan {
  readonly root: TreeNode;
  /** By axis: where an array's length is, or the digits of a list's size in its format. */
  readonly axes: readonly number[];
  /** Writes what is the same in all of its kind. */
  readonly write: () => void;
}

/** The trees of an array and of its schema in one block. */
interface Plan {
  readonly block: StructBlock;
  readonly array: TreePlan;
  readonly schema: TreePlan;
  /** Where the address of the elements is. */
  readonly data: number;
  /** Where the handle of the event is. */
  readonly event: number;
}

/** One piece of memory with both trees in it. */
class TreePiece {
  readonly plan: Plan;
  readonly bytes: DataView<ArrayBuffer>;
  readonly words: Int32Array<ArrayBuffer>;
  /** Where the schema's base struct is; the array's is at the beginning. */
  readonly schemaAddress: bigint;
  /** Where the handle of the event is. */
  readonly eventAddress: bigint;
  readonly #live: Uint8Array<ArrayBuffer>;
  readonly #fresh: Uint8Array<ArrayBuffer>;

  constructor(plan: Plan, address: bigint, bytes: DataView<ArrayBuffer>) {
    const fresh = new ArrayBuffer(bytes.byteLength);
    plan.block.place(address, fresh);
    plan.array.write();
    plan.schema.write();
    this.plan = plan;
    this.bytes = bytes;
    this.words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
    this.schemaAddress = address + BigInt(plan.schema.root.struct);
    this.eventAddress = address + BigInt(plan.event);
    this.#live = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#fresh = new Uint8Array(fresh);
  }

  /** Undoes whatever consumers have done to the structs. */
  restore(): void {
    this.#live.set(this.#fresh);
  }
}

const arrayAt = layoutOf(ArrowArrayStruct).offsets;
const deviceAt = layoutOf(ArrowDeviceStruct).offsets;

/** The structs of an array with so many axes and elements of a format. */
function planStructs(format: string, axes: number): Plan {
  const block = new StructBlock();
  const array = planArray(block, axes);
  return { block, array, data: array.data, event: block.reserve(8), schema: planSchema(block, format, axes) };
}

/** The arrays: a fixed-size list for each axis but the last, and the numbers. */
function planArray(block: StructBlock, axes: number): TreePlan & Pick<Plan, "data"> {
  const levels = Array.from({ length: axes }, (_, axis) => ({
    struct: block.struct(axis === 0 ? ArrowDeviceStruct : ArrowArrayStruct), // the device's begins with the base struct
    counter: block.reserve(8),
    buffers: block.reserve(axis === axes - 1 ? 16 : 8),
    child: block.reserve(axis === axes - 1 ? 0 : 8),
  }));
  const last = levels.at(-1)?.buffers ?? 0;
  return {
    root: nest(levels, "ArrowArray"),
    axes: levels.map(({ struct }) => struct + arrayAt.length),
    data: last + 8,
    write() {
      levels.forEach(({ struct, counter, buffers, child }, axis) => {
        const inner = levels[axis + 1];
        const out = block.at(ArrowArrayStruct, struct);
        out.n_buffers = inner === undefined ? 2n : 1n;
        out.buffers = block.address(buffers);
        out.release = releaseThunks().address.ArrowArray;
        out.private_data = block.address(counter);
        if (inner === undefined) return;
        out.n_children = 1n;
        out.children = block.address(child);
        block.pointers(child, [block.address(inner.struct)]);
      });
    },
  };
}

/** Room for the digits of an extent, of which Arrow's lists allow 2^31 - 1. */
const digits = 10;

/** The schema. */
function planSchema(block: StructBlock, format: string, axes: number): TreePlan {
  const levels = Array.from({ length: axes }, (_, axis) => ({
    struct: block.struct(ArrowSchema),
    counter: block.reserve(8),
    format: block.bytes(axis === axes - 1 ? cString(format) : roomForSize()),
    name: block.bytes(cString(axis === 0 ? "" : "item")),
    child: block.reserve(axis === axes - 1 ? 0 : 8),
  }));
  return {
    root: nest(levels, "ArrowSchema"),
    axes: levels.slice(0, -1).map(({ format }) => format + listFormat.length),
    write() {
      levels.forEach(({ struct, counter, format, name, child }, axis) => {
        const inner = levels[axis + 1];
        const out = block.at(ArrowSchema, struct);
        out.format = block.address(format);
        out.name = block.address(name);
        out.release = releaseThunks().address.ArrowSchema;
        out.private_data = block.address(counter);
        if (inner === undefined) return;
        out.n_children = 1n;
        out.children = block.address(child);
        block.pointers(child, [block.address(inner.struct)]);
      });
    },
  };
}

const listFormat = "+w:";

function roomForSize(): Uint8Array {
  const text = new Uint8Array(listFormat.length + digits + 1);
  text.set(cString(listFormat));
  return text;
}

function nest(
  levels: readonly { readonly struct: number; readonly counter: number }[],
  kind: TreeNode["kind"],
): TreeNode {
  const [first = { struct: 0, counter: 0 }, ...others] = levels;
  const { struct, counter } = first;
  return { struct, counter, kind, inner: others.length === 0 ? [] : [nest(others, kind)] };
}

/** Arrays of more axes are exported as any other is; so there are few kinds of trees. */
const mostAxes = 4;

/** By format, and by how many axes there are. */
const pools = new Map<string, (SlabPool<TreePiece> | undefined)[]>();

/**
 * Exports an array of numbers in C order.
 *
 * @returns null for one that has to be exported as any other array, if it can be: one of many axes, or without elements
 * @throws {TypeError} if its buffer is closed
 * @throws {ExchangeError} if the host's memory is wanted and it is not in it
 */
export function exportNumbers(array: ArrayParts, where: "host" | "device"): ArrowDeviceArray | null {
  const { buffer, dtype, layout } = array;
  const { shape } = layout;
  const format = dtype.arrowFormat;
  const axes = shape.length;
  if (format === null || axes === 0 || axes > mostAxes || layout.volume === 0) return null;
  if (!layout.isContiguousC || shape.some((extent) => extent >= 2 ** 31)) return null;
  pollIfMany();
  const data = firstAddress(array);
  if (buffer.endsWithWorker) return withLastingCopies([array], (lasting) => exportNumbers(lasting(array), where));
  const place = where === "host" ? onHost([array]) : placeOfBuffer(buffer);
  return new ArrowDeviceArray(new NumbersExport(poolOf(format, axes), format, buffer, shape, data, place, where));
}

function poolOf(format: string, axes: number): SlabPool<TreePiece> {
  let byAxes = pools.get(format);
  if (byAxes === undefined) pools.set(format, byAxes = []);
  return byAxes[axes] ??= new SlabPool(
    planStructs(format, axes).block.size,
    (address, bytes) => new TreePiece(planStructs(format, axes), address, bytes),
  );
}

/**
 * Exported numbers: their memory is pinned until consumers release the array, and with it an event after what the home stream
 * holds, if consumers have to wait for that; the structs are there until they release the schema, too.
 */
class NumbersExport implements ExportStates, TreeMemory, TreeOwner {
  readonly array: ExportedTree;
  readonly schema: ExportedTree;
  readonly #pool: SlabPool<TreePiece>;
  readonly #slot: Slot<TreePiece>;
  readonly #format: string;
  readonly #shape: readonly number[];
  readonly #buffer: MemoryBuffer;
  readonly #ready: CudaEvent | null;
  #trees = 2;

  constructor(
    pool: SlabPool<TreePiece>,
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
      this.#ready = where === "device" ? recordReady(buffer) : null;
    } catch (error) {
      pool.free(this.#slot);
      throw error;
    }
    buffer.pin();
    this.#format = format;
    this.#shape = shape;
    this.#buffer = buffer;
    const piece = this.#slot.content;
    piece.restore();
    writeArray(piece, shape, data, place, this.#ready);
    writeSizes(piece, shape);
    const { array, schema } = piece.plan;
    this.array = new ExportedTree(this.#slot.address, this, array.root, this);
    this.schema = new ExportedTree(piece.schemaAddress, this, schema.root, noOwner);
  }

  get field(): ArrowField {
    return fieldOf(this.#format, this.#shape);
  }

  get words(): Int32Array<ArrayBuffer> {
    return this.#slot.content.words;
  }

  free(): void {
    if (--this.#trees === 0) this.#pool.free(this.#slot);
  }

  order(order: ReleaseOrder): boolean {
    return order.add(this.#buffer);
  }

  finish(): void {
    const ready = this.#ready;
    if (ready !== null) {
      ready.device.releaseEvent(ready);
      ready.device.release();
    }
    this.#buffer.unpin();
  }
}

/** An event that the device gets back, and is retained for. */
function recordReady({ stream }: MemoryBuffer): CudaEvent | null {
  if (stream === null) return null;
  const { device } = stream;
  const event = device.acquireEvent();
  try {
    stream.record(event);
    device.retain(); // the event is of its context
  } catch (error) {
    device.releaseEvent(event);
    throw error;
  }
  return event;
}

function writeArray(
  { plan, bytes, eventAddress }: TreePiece,
  shape: readonly number[],
  data: bigint,
  place: Place,
  event: CudaEvent | null,
): void {
  let length = 1;
  for (let axis = 0; axis < shape.length; axis++) {
    length *= shape[axis] ?? 0;
    const at = plan.array.axes[axis] ?? 0;
    bytes.setUint32(at, length >>> 0, littleEndian);
    bytes.setUint32(at + 4, Math.floor(length / 2 ** 32), littleEndian);
  }
  bytes.setBigUint64(plan.data, data, littleEndian);
  bytes.setInt32(deviceAt.device_type, place.type, littleEndian);
  bytes.setInt32(deviceAt.device_id, place.id, littleEndian);
  bytes.setInt32(deviceAt.device_id + 4, place.id >> 31, littleEndian); // the sign of a 64-bit number
  if (event === null) return;
  bytes.setBigUint64(deviceAt.sync_event, eventAddress, littleEndian);
  bytes.setBigUint64(plan.event, event.handle, littleEndian);
}

function writeSizes({ plan, bytes }: TreePiece, shape: readonly number[]): void {
  for (let axis = 1; axis < shape.length; axis++) {
    const text = String(shape[axis]);
    const at = plan.schema.axes[axis - 1] ?? 0;
    for (let i = 0; i < text.length; i++) bytes.setUint8(at + i, text.charCodeAt(i));
  }
}

function fieldOf(format: string, shape: readonly number[]): ArrowField {
  const leaf = arrowField(format, { nullable: false });
  return shape.slice(1).reduceRight<ArrowField>(
    (child, size) =>
      arrowField({ kind: "fixed_size_list", size, child: { ...child, name: "item" } }, { nullable: false }),
    leaf,
  );
}
