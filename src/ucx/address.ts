/**
 * Worker addresses as they travel between processes.
 *
 * UCX parses an address without knowing its length, and aborts the process if it is damaged. So Causeway appends a
 * trailer: the identity of the worker's process, a mark, and a CRC-32 that detects damage. UCX itself never reads that
 * far, so another program's UCX can use the whole as it is.
 *
 * @module
 */
import { nodeBuiltin } from "../ffi/mod.ts";
import { identityBytes } from "./process_identity.ts";

const mark = 0x4341_5553; // "CAUS"
/** Size of what follows UCX's own bytes: the identity of the process, the mark and the checksum. */
export const trailerBytes: number = identityBytes + 8;

/** Copies a UCX address and appends the trailer that {@linkcode isIntact} checks. */
export function withTrailer(address: Uint8Array, process: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(new ArrayBuffer(address.length + trailerBytes));
  whole.set(address);
  whole.set(process, address.length);
  const trailer = new DataView(whole.buffer, whole.length - 8);
  trailer.setUint32(0, mark);
  trailer.setUint32(4, crc32(whole.subarray(0, -8)));
  return whole;
}

/** Whether these bytes are an address with its trailer, complete and unchanged. */
export function isIntact(address: Uint8Array): boolean {
  if (address.length <= trailerBytes) return false;
  const trailer = new DataView(address.buffer, address.byteOffset + address.length - 8, 8);
  return trailer.getUint32(0) === mark && trailer.getUint32(4) === crc32(address.subarray(0, -8));
}

/** The identity of the process that owns the worker of an intact address. */
export function processOf(address: Uint8Array): Uint8Array {
  return address.subarray(-trailerBytes, -8);
}

/** The checksum of an intact address. It tells workers apart: UCX gives each a random number. */
export function checkOf(address: Uint8Array): number {
  return new DataView(address.buffer, address.byteOffset + address.length - 4, 4).getUint32(0);
}

/** Size of a version in bytes. */
const versionBytes = 4;

/** Appends the UCX version to an address, for peers that cannot connect to it. */
export function withVersion(address: Uint8Array, version: string): Uint8Array {
  const bytes = new Uint8Array(address.length + versionBytes);
  bytes.set(address);
  bytes.set(version.split(".", 3).map(Number), address.length);
  return bytes;
}

/** The UCX version in an intact address. */
export function versionOf(address: Uint8Array): string {
  return address.subarray(-trailerBytes - versionBytes, -trailerBytes - 1).join(".");
}

/** The CRC-32 that Ethernet and zip use. */
function crc32(bytes: Uint8Array): number {
  return nodeBuiltin("node:zlib").crc32(bytes);
}
