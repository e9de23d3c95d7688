/**
 * Arrow's structs by hand: every field at its offset in abi.h as gcc lays it out, written from and read into the model,
 * without using the code under test.
 *
 * @module
 */
import { assert, assertEquals } from "@std/assert";
import type { NativeArena } from "../../src/ffi/arena.ts";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort, type NativeCallback } from "../../src/ffi/port.ts";
import { readCString } from "../../src/ffi/c_string.ts";
import type { Encoded, Model } from "./arrow_model.ts";

/** Sizes of the structs, and the offsets of their release callback and private data. */
export const layout = {
  schema: { size: 72, release: 56, privateData: 64 },
  array: { size: 80, release: 64, privateData: 72 },
  deviceArray: { size: 128, deviceId: 80, deviceType: 88, syncEvent: 96, reserved: 104 },
} as const;

/** A producer's release callback in JavaScript: counts its calls by private data, and marks the struct as released. */
export class CountingRelease {
  readonly calls = new Map<bigint, number>();
  readonly #callbacks: NativeCallback[];
  readonly schema: bigint;
  readonly array: bigint;

  constructor() {
    const make = ({ size, release, privateData }: { size: number; release: number; privateData: number }) =>
      ffiPort().callback({ args: ["ptr"], returns: "void" }, (address) => {
        const view = new DataView(ffiPort().memory(address, size));
        const key = view.getBigUint64(privateData, true);
        this.calls.set(key, (this.calls.get(key) ?? 0) + 1);
        view.setBigUint64(release, 0n, true);
      });
    this.#callbacks = [make(layout.schema), make(layout.array)];
    this.schema = this.#callbacks[0]?.address ?? 0n;
    this.array = this.#callbacks[1]?.address ?? 0n;
  }

  /** Clears the counts only: the callbacks stay, as that of CountingDeleter does, and for the same reason. */
  [Symbol.dispose](): void {
    this.calls.clear();
  }
}

/** Writes structs of the model, and their buffers, into an arena. */
export class RawWriter {
  readonly #arena: Pick<NativeArena, "bytes" | "cString">;
  readonly #release: CountingRelease;

  constructor(arena: Pick<NativeArena, "bytes" | "cString">, release: CountingRelease) {
    this.#arena = arena;
    this.#release = release;
  }

  /** An ArrowSchema. Its private data is its own address. */
  schema(model: Model): bigint {
    const { address, view } = this.#struct(layout.schema.size);
    view.setBigUint64(0, this.#arena.cString(model.format), true);
    view.setBigUint64(8, this.#arena.cString(model.name), true);
    view.setBigUint64(16, this.#metadata(model), true);
    view.setBigInt64(24, BigInt(model.flags | (model.nullable ? 2 : 0)), true);
    view.setBigInt64(32, BigInt(model.children.length), true);
    view.setBigUint64(40, this.#pointers(model.children.map((child) => this.schema(child))), true);
    view.setBigUint64(48, model.dictionary === null ? 0n : this.schema(model.dictionary), true);
    view.setBigUint64(56, this.#release.schema, true);
    view.setBigUint64(64, address, true);
    return address;
  }

  /** An ArrowArray, with room after it for the rest of an ArrowDeviceArray. Its private data is its own address. */
  array(encoded: Encoded, kind: "array" | "deviceArray" = "deviceArray"): bigint {
    const { address, view } = this.#struct(layout[kind].size);
    view.setBigInt64(0, BigInt(encoded.length), true);
    view.setBigInt64(8, BigInt(encoded.nullCount), true);
    view.setBigInt64(16, BigInt(encoded.offset), true);
    view.setBigInt64(24, BigInt(encoded.buffers.length), true);
    view.setBigInt64(32, BigInt(encoded.children.length), true);
    view.setBigUint64(40, this.#pointers(encoded.buffers.map((buffer) => this.#bytes(buffer))), true);
    view.setBigUint64(48, this.#pointers(encoded.children.map((child) => this.array(child, "array"))), true);
    view.setBigUint64(56, encoded.dictionary === null ? 0n : this.array(encoded.dictionary, "array"), true);
    view.setBigUint64(64, this.#release.array, true);
    view.setBigUint64(72, address, true);
    if (kind === "array") return address;
    view.setBigInt64(layout.deviceArray.deviceId, -1n, true);
    view.setInt32(layout.deviceArray.deviceType, 1, true);
    return address;
  }

  #struct(size: number): { address: bigint; view: DataView } {
    const { address, bytes } = this.#arena.bytes(size);
    return { address, view: new DataView(bytes.buffer, bytes.byteOffset, size) };
  }

  #bytes(contents: Uint8Array | null): bigint {
    if (contents === null || contents.length === 0) return 0n;
    const { address, bytes } = this.#arena.bytes(contents.length);
    bytes.set(contents);
    return address;
  }

  #pointers(values: readonly bigint[]): bigint {
    if (values.length === 0) return 0n;
    const { address, view } = this.#struct(values.length * 8);
    values.forEach((value, i) => view.setBigUint64(i * 8, value, true));
    return address;
  }

  #metadata({ metadata }: Model): bigint {
    if (metadata.length === 0) return 0n;
    const numbers = (value: number) => [value & 255, value >> 8 & 255, value >> 16 & 255, value >> 24 & 255];
    const texts = metadata.flat().map((text) => [...new TextEncoder().encode(text)]);
    const bytes = [...numbers(metadata.length), ...texts.flatMap((text) => [...numbers(text.length), ...text])];
    return this.#bytes(Uint8Array.from(bytes));
  }
}

function pointersAt(address: bigint, count: number): bigint[] {
  if (count === 0) return [];
  const view = new DataView(ffiPort().memory(address, count * 8));
  return Array.from({ length: count }, (_, i) => view.getBigUint64(i * 8, true));
}

/** Reads an ArrowSchema into a model. */
export function readRawSchema(address: bigint): Model {
  const view = new DataView(ffiPort().memory(address, layout.schema.size));
  const flags = Number(view.getBigInt64(24, true));
  const dictionary = view.getBigUint64(48, true);
  return {
    format: readCString(view.getBigUint64(0, true)),
    name: readCString(view.getBigUint64(8, true)),
    metadata: readRawMetadata(view.getBigUint64(16, true)),
    nullable: (flags & 2) !== 0,
    flags: flags & ~2,
    children: pointersAt(view.getBigUint64(40, true), Number(view.getBigInt64(32, true))).map(readRawSchema),
    dictionary: dictionary === 0n ? null : readRawSchema(dictionary),
  };
}

function readRawMetadata(address: bigint): [string, string][] {
  if (address === 0n) return [];
  let at = address;
  const number = () => {
    const value = new DataView(ffiPort().memory(at, 4)).getInt32(0, true);
    at += 4n;
    return value;
  };
  const text = () => {
    const length = number();
    const bytes = new Uint8Array(ffiPort().memory(at, length));
    at += BigInt(length);
    return new TextDecoder().decode(bytes);
  };
  return Array.from({ length: number() }, () => [text(), text()]);
}

/** An ArrowArray as it is in memory: numbers and addresses. */
export interface RawArray {
  readonly length: number;
  readonly nullCount: number;
  readonly offset: number;
  readonly buffers: readonly bigint[];
  readonly children: readonly RawArray[];
  readonly dictionary: RawArray | null;
  readonly release: bigint;
}

/** Reads an ArrowArray. */
export function readRawArray(address: bigint): RawArray {
  const view = new DataView(ffiPort().memory(address, layout.array.size));
  const number = (at: number) => Number(view.getBigInt64(at, true));
  const dictionary = view.getBigUint64(56, true);
  return {
    length: number(0),
    nullCount: number(8),
    offset: number(16),
    buffers: pointersAt(view.getBigUint64(40, true), number(24)),
    children: rawChildren(address).map(readRawArray),
    dictionary: dictionary === 0n ? null : readRawArray(dictionary),
    release: view.getBigUint64(64, true),
  };
}

/** Addresses of an ArrowArray's children. */
export function rawChildren(address: bigint): bigint[] {
  const view = new DataView(ffiPort().memory(address, layout.array.size));
  return pointersAt(view.getBigUint64(48, true), Number(view.getBigInt64(32, true)));
}

/** Fails unless two arrays are the same memory, and equal in every respect that matters. */
export function assertSameArray(actual: RawArray, expected: RawArray, model: Model): void {
  assertEquals(essence(actual, model), essence(expected, model));
}

/**
 * How an array is exported: a struct begins at offset 0, if it has no nulls or begins there already, with children of
 * its length.
 */
export function asSent(raw: RawArray, { format, children: models }: Model): RawArray {
  const { length, offset, buffers: [validity = 0n], nullCount } = raw;
  const isAtStart = offset === 0 || length === 0;
  if (format !== "+s" || (!isAtStart && validity !== 0n && nullCount !== 0)) return raw;
  const children = raw.children.map((child, i) => {
    const isWhole = isAtStart && child.length === length;
    const known = child.nullCount === 0 || isWhole ? child.nullCount : -1;
    return {
      ...child,
      offset: child.offset + (isAtStart ? 0 : offset),
      length,
      nullCount: models[i]?.format === "n" ? length : known,
    };
  });
  return { ...raw, offset: 0, buffers: isAtStart ? raw.buffers : [0n], children };
}

/** Whether an array of texts has no bytes: then the address of its data does not matter. */
function hasNoText({ length, offset, buffers }: RawArray, { format }: Model): boolean {
  if (!/^[uUzZ]$/.test(format)) return false;
  const isLarge = format === "U" || format === "Z";
  const width = isLarge ? 8 : 4;
  const last = new DataView(ffiPort().memory((buffers[1] ?? 0n) + BigInt((offset + length) * width), width));
  return isLarge ? last.getBigInt64(0, true) === 0n : last.getInt32(0, true) === 0;
}

/**
 * An array without what may be expressed in two ways: addresses and offsets where there are no elements, and null
 * counts where there can be no nulls.
 */
function essence(raw: RawArray, model: Model): unknown {
  const { length, buffers, dictionary } = raw;
  const hasNulls = model.format === "n" || (buffers[0] ?? 0n) !== 0n;
  const hasOffsets = /^(\+[lLm]|[uUzZ])$/.test(model.format);
  if (hasOffsets) assert(buffers[1] !== 0n, "there is always one offset");
  return {
    length,
    nullCount: hasNulls && length > 0 ? raw.nullCount : 0,
    offset: length > 0 ? raw.offset : 0,
    buffers: length > 0 ? buffers.map((ptr, i) => i === 2 && hasNoText(raw, model) ? 0n : ptr) : buffers.length,
    children: raw.children.map((child, i) => essence(child, model.children[i] ?? model)),
    dictionary: dictionary === null ? null : essence(dictionary, model.dictionary ?? model),
  };
}

/** The value of the pointer at an offset of a struct. */
export function pointerAt(address: bigint, offset: number): bigint {
  return new DataView(ffiPort().memory(address + BigInt(offset), 8)).getBigUint64(0, true);
}

/** Sets the pointer at an offset of a struct. */
export function setPointer(address: bigint, offset: number, value: bigint): void {
  new DataView(ffiPort().memory(address + BigInt(offset), 8)).setBigUint64(0, value, true);
}

/** Moves a struct as the specification requires: copies its bytes, and marks the source as released. */
export function moveRaw(to: bigint, from: bigint, kind: "schema" | "array"): void {
  libc().memory.memcpy(to, from, BigInt(layout[kind].size));
  setPointer(from, layout[kind].release, 0n);
}

/** Calls a struct's release callback, as a consumer does. */
export function releaseRaw(address: bigint, kind: "schema" | "array"): void {
  const release = pointerAt(address, layout[kind].release);
  ffiPort().functionAt(release, { args: ["ptr"], returns: "void" })(address);
  assertEquals(pointerAt(address, layout[kind].release), 0n, "a released struct says so");
}
