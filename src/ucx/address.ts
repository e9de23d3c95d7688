/**
 * Worker addresses as they travel between processes.
 *
 * UCX walks an address without knowing its length, and aborts the process where one is damaged. So Causeway appends
 * what it takes to notice that, a mark and a CRC-32, and before them which process the worker lives in. UCX itself
 * never reads so far, so another program's UCX can use the whole as it is.
 *
 * @module
 */
import { nodeBuiltin } from "../ffi/mod.ts";
import { identityBytes } from "./process_identity.ts";

const mark = 0x4341_5553; // "CAUS"
/** Bytes that follow UCX's own: the identity of the process, the mark and the check. */
export const trailerBytes: number = identityBytes + 8;

/** A copy of an address of UCX, with the trailer that {@linkcode isIntact} looks for. */
export function withTrailer(address: Uint8Array, process: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(new ArrayBuffer(address.length + trailerBytes));
  whole.set(address);
  whole.set(process, address.length);
  const trailer = new DataView(whole.buffer, whole.length - 8);
  trailer.setUint32(0, mark);
  trailer.setUint32(4, crc32(whole.subarray(0, -8)));
  return whole;
}

/** Whether these bytes are an address with its trailer, all of it and unchanged. */
export function isIntact(address: Uint8Array): boolean {
  if (address.length <= trailerBytes) return false;
  const trailer = new DataView(address.buffer, address.byteOffset + address.length - 8, 8);
  return trailer.getUint32(0) === mark && trailer.getUint32(4) === crc32(address.subarray(0, -8));
}

/** The identity of the process that the worker of an intact address lives in. */
export function processOf(address: Uint8Array): Uint8Array {
  return address.subarray(-trailerBytes, -8);
}

/** What tells the worker of an intact address from others: UCX gives each a number that it draws. */
export function checkOf(address: Uint8Array): number {
  return new DataView(address.buffer, address.byteOffset + address.length - 4, 4).getUint32(0);
}

/** Bytes of a version. */
const versionBytes = 4;

/** An address of UCX with its version, for those who cannot connect to it. */
export function withVersion(address: Uint8Array, version: string): Uint8Array {
  const bytes = new Uint8Array(address.length + versionBytes);
  bytes.set(address);
  bytes.set(version.split(".", 3).map(Number), address.length);
  return bytes;
}

/** The version of UCX whose intact address it is. */
export function versionOf(address: Uint8Array): string {
  return address.subarray(-trailerBytes - versionBytes, -trailerBytes - 1).join(".");
}

/** The CRC-32 of Ethernet and zip. */
function crc32(bytes: Uint8Array): number {
  return nodeBuiltin("node:zlib").crc32(bytes);
}
