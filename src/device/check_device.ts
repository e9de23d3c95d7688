/**
 * Checks that two objects belong together: objects of one Cuda cannot be used with those of another, and some only with
 * those of their own device. Checked before the driver is called, which would only report an invalid argument.
 *
 * @module
 */
import type { CudaDevice } from "./device.ts";

/** An object that belongs to a device. */
export interface OfDevice {
  /** The device. */
  readonly device: CudaDevice;
}

/** Whether two objects stand for the same device: every Cuda opened over a driver has its own objects. */
export function isSameDevice(one: CudaDevice, other: CudaDevice): boolean {
  return one === other || (one.driver === other.driver && one.ordinal === other.ordinal);
}

/**
 * Throws unless an object belongs to the Cuda of a device.
 *
 * @param doing the failed operation and its object: `Cannot wait for an event`
 */
export function checkSameCuda(object: OfDevice, device: CudaDevice, doing: string): void {
  if (object.device.driver !== device.driver) throw otherCuda(device, doing);
}

function otherCuda(device: CudaDevice, doing: string): TypeError {
  return new TypeError(`${doing} of another Cuda: expected one of the Cuda that ${device} belongs to`);
}

/** Throws if an object belongs to another device, or another Cuda. See {@linkcode checkSameCuda}. */
export function checkSameDevice(object: OfDevice, device: CudaDevice, doing: string): void {
  checkSameCuda(object, device, doing);
  if (isSameDevice(object.device, device)) return;
  throw new TypeError(`${doing} of ${object.device}: expected one of ${device}`);
}
