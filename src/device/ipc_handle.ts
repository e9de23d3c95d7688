/**
 * Handles with which another process opens an event or memory of a GPU: the driver's 64 bytes and the device that they
 * belong to, as a plain value that survives JSON, `structuredClone` and any wire.
 *
 * @module
 */
import type { CudaDevice } from "./device.ts";

/** A handle of another process's event or memory. A plain object: send it over any channel. */
export interface IpcHandle {
  /** What it identifies: an event, memory of a pool, or memory allocated without a pool. */
  readonly kind: "event" | "pool memory" | "memory";
  /** UUID of the device. Ordinals differ between processes, depending on `CUDA_VISIBLE_DEVICES`; UUIDs do not. */
  readonly device: string;
  /** The driver's bytes, in hexadecimal: 128 digits. */
  readonly data: string;
}

/** Size in bytes of every such handle in the driver's ABI. */
export const handleBytes = 64;

/** Converts a driver handle to a plain value. */
export function writeHandle(kind: IpcHandle["kind"], device: CudaDevice, bytes: Uint8Array): IpcHandle {
  return { kind, device: device.uuid, data: bytes.toHex() };
}

/**
 * Reads a handle that another process has sent.
 *
 * @param kinds the expected kinds
 * @param device the device that it will be used on
 * @throws {TypeError} if it is not such a handle
 * @throws {RangeError} if it belongs to another device
 */
export function readHandle(
  handle: IpcHandle,
  kinds: readonly IpcHandle["kind"][],
  device: CudaDevice,
): Uint8Array<ArrayBuffer> {
  const { kind, data } = handle ?? {}; // undefined in untyped code
  const isHandle = typeof data === "string" && data.length === 2 * handleBytes && /^[0-9a-f]*$/.test(data);
  if (!kinds.includes(kind) || !isHandle) {
    const got = isHandle ? `one of ${kind}` : "something else";
    throw new TypeError(`Cannot import a handle: expected one of ${kinds.join(" or ")} with 128 digits, got ${got}`);
  }
  checkDevice(handle.device, device);
  return Uint8Array.fromHex(data);
}

/**
 * Throws unless an object belongs to a device.
 *
 * @param uuid the UUID of the device that it belongs to
 * @throws {RangeError} naming both devices, and which one is right if this process sees it
 */
export function checkDevice(uuid: string, device: CudaDevice): void {
  if (uuid === device.uuid) return;
  const right = device.siblings.find((one) => one.uuid === uuid);
  const which = right === undefined ? "which this process does not see" : `which is ${right} here`;
  throw new RangeError(`Cannot import to ${device} (${device.uuid}): it belongs to ${uuid}, ${which}`);
}
