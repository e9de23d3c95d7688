/**
 * The structs of arrays of numbers: for the same element type and number of axes they differ only in a few numbers, so
 * they are written once, as a template, and copied from there.
 *
 * @module
 */
import {
  ArrowArray as ArrowArrayStruct,
  ArrowDeviceArray as ArrowDeviceStruct,
  ArrowSchema,
} from "../../bindings/arrow.ts";
import type { CudaEvent } from "../device/mod.ts";
import { cString, layoutOf, SlabPool, type StructView } from "../ffi/mod.ts";
import { releaseThunks } from "../native/mod.ts";
import type { Place } from "./export.ts";
import { StructBlock, type TreeNode } from "./exported_tree.ts";

/** Not imported: see `ffi/endian.ts`. */
const littleEndian = true;

/**
 * A tree of structs with placeholders for the values that differ between exports; all offsets are from the start of the
 * block.
 */
interface TreeTemplate {
  readonly root: TreeNode;
  /** By axis: the offset of an array's length, or of the digits of a list's size in its format. */
  readonly axes: readonly number[];
  /** Writes everything that is the same in all exports. */
  readonly write: () => void;
}

/** The trees of an array and of its schema in one block. */
interface StructTemplate {
  readonly block: StructBlock;
  readonly array: TreeTemplate;
  readonly schema: TreeTemplate;
  /** The offset of the pointer to the elements. */
  readonly data: number;
  /** The offset of the event's handle. */
  readonly event: number;
}

/** The structs of one export: memory that holds a copy of a template. */
export class StructCopy {
  readonly template: StructTemplate;
  /** The whole memory as words. */
  readonly words: Int32Array<ArrayBuffer>;
  /** Address of the schema's base struct; the array's is at the start of the memory. */
  readonly schemaAddress: bigint;
  readonly #bytes: DataView<ArrayBuffer>;
  readonly #eventAddress: bigint;
  readonly #live: Uint8Array<ArrayBuffer>;
  readonly #fresh: Uint8Array<ArrayBuffer>;

  constructor(template: StructTemplate, address: bigint, bytes: DataView<ArrayBuffer>) {
    const fresh = new ArrayBuffer(bytes.byteLength);
    template.block.place(address, fresh);
    template.array.write();
    template.schema.write();
    this.template = template;
    this.words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
    this.schemaAddress = address + BigInt(template.schema.root.struct);
    this.#bytes = bytes;
    this.#eventAddress = address + BigInt(template.event);
    this.#live = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#fresh = new Uint8Array(fresh);
  }

  // law cdata/StructCopy.write: order/refusals, cdata/export_numbers, view/arrow, order/reclaim, sim/behaviours
  /**
   * Writes the array of one export, overwriting any changes that the previous export's consumers made to the structs.
   */
  write(shape: readonly number[], data: bigint, place: Place, event: CudaEvent | null): void {
    this.#live.set(this.#fresh);
    this.#writeArray(shape, data, place, event);
    this.#writeSizes(shape);
  }

  // law cdata/StructCopy.writeArray: order/refusals, cdata/export_numbers, view/arrow, order/reclaim, sim/behaviours
  #writeArray(shape: readonly number[], data: bigint, place: Place, event: CudaEvent | null): void {
    const bytes = this.#bytes;
    const { array, data: dataAt, event: eventAt } = this.template;
    let length = 1;
    for (let axis = 0; axis < shape.length; axis++) {
      length *= shape[axis] ?? 0;
      const at = array.axes[axis] ?? 0;
      bytes.setUint32(at, length >>> 0, littleEndian);
      bytes.setUint32(at + 4, Math.floor(length / 2 ** 32), littleEndian);
    }
    bytes.setBigUint64(dataAt, data, littleEndian);
    bytes.setInt32(deviceAt.device_type, place.type, littleEndian);
    bytes.setInt32(deviceAt.device_id, place.id, littleEndian);
    bytes.setInt32(deviceAt.device_id + 4, place.id >> 31, littleEndian); // the sign of a 64-bit number
    if (event === null) return;
    bytes.setBigUint64(deviceAt.sync_event, this.#eventAddress, littleEndian);
    bytes.setBigUint64(eventAt, event.handle, littleEndian);
  }

  #writeSizes(shape: readonly number[]): void {
    const bytes = this.#bytes;
    const { axes } = this.template.schema;
    for (let axis = 1; axis < shape.length; axis++) {
      const text = String(shape[axis]);
      const at = axes[axis - 1] ?? 0;
      for (let i = 0; i < text.length; i++) bytes.setUint8(at + i, text.charCodeAt(i));
    }
  }
}

const arrayAt = layoutOf(ArrowArrayStruct).offsets;
const deviceAt = layoutOf(ArrowDeviceStruct).offsets;

/** The template for arrays of a format and number of axes. */
function makeTemplate(format: string, axes: number): StructTemplate {
  const block = new StructBlock();
  const array = arrayTemplate(block, axes);
  return { block, array, data: array.data, event: block.reserve(8), schema: schemaTemplate(block, format, axes) };
}

/** The array structs: a fixed-size list for each axis but the last, and the numbers. */
function arrayTemplate(block: StructBlock, axes: number): TreeTemplate & Pick<StructTemplate, "data"> {
  const levels = Array.from({ length: axes }, (_, axis) => ({
    struct: block.struct(axis === 0 ? ArrowDeviceStruct : ArrowArrayStruct), // the former begins with the base struct
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
        if (inner !== undefined) writeChild(block, out, child, inner.struct);
      });
    },
  };
}

/** Room for the digits of an extent, which in Arrow's lists is at most 2^31 - 1. */
const digits = 10;

/** The schema. */
function schemaTemplate(block: StructBlock, format: string, axes: number): TreeTemplate {
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
        if (inner !== undefined) writeChild(block, out, child, inner.struct);
      });
    },
  };
}

/** Sets a struct's only child, through a pointer that is in the block, too. */
function writeChild(
  block: StructBlock,
  out: Pick<StructView<typeof ArrowSchema>, "n_children" | "children">,
  pointer: number,
  child: number,
): void {
  out.n_children = 1n;
  out.children = block.address(pointer);
  block.pointers(pointer, [block.address(child)]);
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

/** Pools by format, then by number of axes. Looked up by `get`, as in ffi/struct.ts. */
const pools = new Map<string, (SlabPool<StructCopy> | undefined)[]>();

/** The pool of structs for arrays of a format and number of axes. */
export function structPool(format: string, axes: number): SlabPool<StructCopy> {
  let byAxes = pools.get(format);
  if (byAxes === undefined) pools.set(format, byAxes = []);
  return byAxes[axes] ??= new SlabPool(
    makeTemplate(format, axes).block.size,
    (address, bytes) => new StructCopy(makeTemplate(format, axes), address, bytes),
  );
}
