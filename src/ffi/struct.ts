/**
 * C structs, described once as data, read and written as properties at the speed of a DataView.
 *
 * @module
 */
import type { CScalar, Field, StructDescription } from "../../bindings/abi.ts";
import { ffiPort } from "./port.ts";

/** Not imported: see `ffi/endian.ts`. */
const littleEndian = true;

/**
 * The JavaScript value of a scalar field. Unlike a call argument, a `size` field is a number, and a value that is not a
 * safe integer throws a RangeError, whether it is written or read.
 */
export type FieldValue<F extends Field> = F extends "i64" | "u64" | "ptr" ? bigint
  : F extends CScalar ? number
  : F extends readonly [unknown, number] ? Uint8Array<ArrayBuffer>
  : F extends StructDescription ? StructView<F>
  : never;

/** Names of the fields that hold a scalar, and can therefore be assigned. */
type ScalarNames<D extends StructDescription> = { [N in keyof D]: D[N] extends CScalar ? N : never }[keyof D];

/**
 * Names of the fields that hold a struct or an array by value: their parts can be assigned, the fields themselves
 * cannot.
 */
type AggregateNames<D extends StructDescription> = Exclude<keyof D, ScalarNames<D>>;

/** The memory of a struct view. The dollar signs keep these names distinct from those of any C field. */
export interface NativeSpan {
  /** Address of the struct: what to pass to C. */
  readonly $address: bigint;
  /** The struct's bytes. */
  readonly $bytes: DataView<ArrayBuffer>;
}

/** A struct in native memory: every field is a property. */
export type StructView<D extends StructDescription> =
  & NativeSpan
  & { -readonly [N in ScalarNames<D>]: FieldValue<D[N]> }
  & { readonly [N in AggregateNames<D>]: FieldValue<D[N]> };

/** Size, alignment and field offsets of a struct, in bytes, as the C compilers of 64-bit Linux lay it out. */
export interface StructLayout<D extends StructDescription> {
  readonly size: number;
  readonly alignment: number;
  readonly offsets: { readonly [N in keyof D]: number };
}

/** A struct type: its layout, and how to view memory as it. */
export interface StructType<D extends StructDescription> extends StructLayout<D> {
  /**
   * Views the struct at an address. The caller owns the memory, which must outlive the view.
   *
   * @throws {RangeError} for NULL
   *
   * @example
   * ```ts ignore
   * const tensor = struct(DLManagedTensorVersioned).at(pointer);
   * if (tensor.version.major === 1) console.log(tensor.dl_tensor.ndim);
   * ```
   */
  at(address: bigint): StructView<D>;
  /** Views the struct at a byte offset of an ArrayBuffer over native memory that starts at `address`. */
  over(buffer: ArrayBuffer, address: bigint, byteOffset?: number): StructView<D>;
}

const scalarSize: { readonly [S in CScalar]: number } = {
  i8: 1,
  u8: 1,
  i16: 2,
  u16: 2,
  i32: 4,
  u32: 4,
  i64: 8,
  u64: 8,
  f32: 4,
  f64: 8,
  size: 8,
  ptr: 8,
};

/** Size and alignment of a field, in bytes. */
function extentOf(field: Field): { readonly size: number; readonly alignment: number } {
  if (typeof field === "string") return { size: scalarSize[field], alignment: scalarSize[field] };
  if (isArray(field)) {
    const element = extentOf(field[0]);
    return { size: element.size * field[1], alignment: element.alignment };
  }
  return layoutOf(field);
}

function isArray(field: Field): field is readonly [CScalar | StructDescription, number] {
  return Array.isArray(field);
}

/**
 * Lays out a struct by the rules of the System V and AAPCS64 ABIs: each field at the next multiple of its alignment,
 * the size rounded up to the largest alignment.
 */
export function layoutOf<const D extends StructDescription>(description: D): StructLayout<D> {
  const offsets: Record<string, number> = {};
  let end = 0;
  let alignment = 1;
  for (const [name, field] of Object.entries(description)) {
    const extent = extentOf(field);
    end = roundUp(end, extent.alignment);
    offsets[name] = end;
    end += extent.size;
    alignment = Math.max(alignment, extent.alignment);
  }
  return { size: roundUp(end, alignment), alignment, offsets: offsets as StructLayout<D>["offsets"] };
}

/** The next multiple of `alignment` at or above `value`. */
export function roundUp(value: number, alignment: number): number {
  return Math.ceil(value / alignment) * alignment;
}

/** The members of every struct view; the fields are added to the prototype of a subclass per struct. */
class View implements NativeSpan {
  readonly $address: bigint;
  readonly $bytes: DataView<ArrayBuffer>;

  constructor(buffer: ArrayBuffer, address: bigint, byteOffset: number, size: number) {
    this.$bytes = new DataView(buffer, byteOffset, size);
    this.$address = address + BigInt(byteOffset);
  }
}

/**
 * Struct types by description. Looked up by `get`, because exports do so on every call: on a hit, `getOrInsertComputed`
 * takes 5 ns longer in Deno, and 10 ns in Bun.
 */
const types = new WeakMap<StructDescription, StructType<StructDescription>>();

/** The type of a struct. The same description always gives the same type. */
export function struct<const D extends StructDescription>(description: D): StructType<D> {
  let type = types.get(description);
  if (type === undefined) types.set(description, type = build(description));
  return type as StructType<D>; // made from this very description
}

function build(description: StructDescription): StructType<StructDescription> {
  const layout = layoutOf(description);
  class Fields extends View {}
  for (const [name, field] of Object.entries(description)) {
    const offset = layout.offsets[name] ?? 0;
    Object.defineProperty(Fields.prototype, name, { enumerable: true, ...accessors(field, offset, name) });
  }
  const over = (buffer: ArrayBuffer, address: bigint, byteOffset = 0) =>
    new Fields(buffer, address, byteOffset, layout.size) as unknown as StructView<StructDescription>;
  return { ...layout, over, at: (address) => over(ffiPort().memory(address, layout.size), address) };
}

type Accessors = PropertyDescriptor & ThisType<View>;

// law ffi/scalarAccessors: ffi/struct
/**
 * The accessors of a scalar field at a byte offset. Each is a separate closure around a single DataView access, instead
 * of one shared function with the access as a parameter: only then do both compilers inline it (a shared one was
 * measured at 3.4 ns against 0.34 in Bun).
 */
const scalarAccessors: { readonly [S in CScalar]: (at: number) => Accessors } = {
  i8: (at) => ({
    get() {
      return this.$bytes.getInt8(at);
    },
    set(value: number) {
      this.$bytes.setInt8(at, value);
    },
  }),
  u8: (at) => ({
    get() {
      return this.$bytes.getUint8(at);
    },
    set(value: number) {
      this.$bytes.setUint8(at, value);
    },
  }),
  i16: (at) => ({
    get() {
      return this.$bytes.getInt16(at, littleEndian);
    },
    set(value: number) {
      this.$bytes.setInt16(at, value, littleEndian);
    },
  }),
  u16: (at) => ({
    get() {
      return this.$bytes.getUint16(at, littleEndian);
    },
    set(value: number) {
      this.$bytes.setUint16(at, value, littleEndian);
    },
  }),
  i32: (at) => ({
    get() {
      return this.$bytes.getInt32(at, littleEndian);
    },
    set(value: number) {
      this.$bytes.setInt32(at, value, littleEndian);
    },
  }),
  u32: (at) => ({
    get() {
      return this.$bytes.getUint32(at, littleEndian);
    },
    set(value: number) {
      this.$bytes.setUint32(at, value, littleEndian);
    },
  }),
  i64: (at) => ({
    get() {
      return this.$bytes.getBigInt64(at, littleEndian);
    },
    set(value: bigint) {
      this.$bytes.setBigInt64(at, value, littleEndian);
    },
  }),
  u64: (at) => ({
    get() {
      return this.$bytes.getBigUint64(at, littleEndian);
    },
    set(value: bigint) {
      this.$bytes.setBigUint64(at, value, littleEndian);
    },
  }),
  f32: (at) => ({
    get() {
      return this.$bytes.getFloat32(at, littleEndian);
    },
    set(value: number) {
      this.$bytes.setFloat32(at, value, littleEndian);
    },
  }),
  f64: (at) => ({
    get() {
      return this.$bytes.getFloat64(at, littleEndian);
    },
    set(value: number) {
      this.$bytes.setFloat64(at, value, littleEndian);
    },
  }),
  ptr: (at) => ({
    get() {
      return this.$bytes.getBigUint64(at, littleEndian);
    },
    set(value: bigint) {
      this.$bytes.setBigUint64(at, value, littleEndian);
    },
  }),
  size: (at) => ({
    get() {
      const high = this.$bytes.getUint32(at + 4, littleEndian);
      if (high > 0x1f_ffff) throw unsafeSize("read", this.$bytes.getBigUint64(at, littleEndian));
      return this.$bytes.getUint32(at, littleEndian) + high * 0x1_0000_0000;
    },
    set(value: number) {
      if (!Number.isSafeInteger(value) || value < 0) throw unsafeSize("write", value);
      const low = value >>> 0; // modulo 2^32: a division of doubles would cost six times as much
      this.$bytes.setUint32(at, low, littleEndian);
      this.$bytes.setUint32(at + 4, (value - low) / 0x1_0000_0000, littleEndian);
    },
  }),
};

function unsafeSize(doing: "read" | "write", value: number | bigint): RangeError {
  return new RangeError(`Cannot ${doing} a size_t: expected a safe integer of at least 0, got ${value}`);
}

function accessors(field: Field, at: number, name: string): Accessors {
  if (typeof field === "string") return scalarAccessors[field](at);
  const size = extentOf(field).size;
  const make = isArray(field)
    ? (view: View) => new Uint8Array(view.$bytes.buffer, view.$bytes.byteOffset + at, size)
    : (view: View) => {
      const from = view.$bytes.byteOffset;
      return struct(field).over(view.$bytes.buffer, view.$address - BigInt(from), from + at);
    };
  return {
    get(): unknown {
      const value = make(this);
      // Made once per view: the next read finds an own property instead of this getter.
      Object.defineProperty(this, name, { value, enumerable: true });
      return value;
    },
  };
}
