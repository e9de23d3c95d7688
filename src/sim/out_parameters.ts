/**
 * Native memory that a caller points to: out-parameters, into which a call writes its results, and structs and numbers
 * that it reads.
 *
 * @module
 */
import type { StructDescription } from "../../bindings/abi.ts";
import { CUresult } from "../../bindings/cuda_types.ts";
import { ffiPort, littleEndian, struct, type StructView } from "../ffi/mod.ts";
import { refuse } from "./call.ts";

/** A view of native memory. A null pointer is refused as by the driver, with CUDA_ERROR_INVALID_VALUE. */
export function nativeView(address: bigint, bytes: number): DataView<ArrayBuffer> {
  if (address === 0n) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  return new DataView(ffiPort().memory(address, bytes));
}

/** Views a struct in native memory. A null pointer is refused, as by `nativeView`. */
export function viewStruct<const D extends StructDescription>(description: D, address: bigint): StructView<D> {
  if (address === 0n) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  return struct(description).at(address);
}

/** Writes an `int`. */
export function writeInt(address: bigint, value: number): void {
  nativeView(address, 4).setInt32(0, value, littleEndian);
}

/** Writes an `unsigned int`. */
export function writeUint(address: bigint, value: number): void {
  nativeView(address, 4).setUint32(0, value, littleEndian);
}

/** Writes a `float`. */
export function writeFloat(address: bigint, value: number): void {
  nativeView(address, 4).setFloat32(0, value, littleEndian);
}

/** Writes a handle, a pointer, a `size_t` or another unsigned integer of 64 bits. */
export function writeWord(address: bigint, value: bigint): void {
  nativeView(address, 8).setBigUint64(0, value, littleEndian);
}

/** Reads an `int`. */
export function readInt(address: bigint): number {
  return nativeView(address, 4).getInt32(0, littleEndian);
}

/** Reads an unsigned integer of 64 bits. */
export function readWord(address: bigint): bigint {
  return nativeView(address, 8).getBigUint64(0, littleEndian);
}

/** Writes a string with its NUL into `length` bytes, truncated if it does not fit. */
export function writeString(address: bigint, length: number, text: string): void {
  if (length <= 0) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  const bytes = new Uint8Array(nativeView(address, length).buffer);
  const encoded = new TextEncoder().encode(text).subarray(0, length - 1);
  bytes.set(encoded);
  bytes[encoded.length] = 0;
}
