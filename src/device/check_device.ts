/**
 * Whether two objects belong together: nothing of one Cuda can be used with another one's, and some objects only with
 * those of their own device. Checked before the driver is called, which would say no more than that an argument is
 * invalid.
 *
 * @module
 */
import type { CudaDevice } from "./device.ts";

/** An object that belongs to a device. */
export interface OfDevice {
  /** The device. */
  readonly device: CudaDevice;
}

/** Whether two objects stand for the same device: every Cuda that was opened over a driver has objects of its own. */
export function isSameDevice(one: CudaDevice, other: CudaDevice): boolean {
  return one === other || (one.driver === other.driver && one.ordinal === other.ordinal);
}

/**
 * Throws if an object belongs to another Cuda than a device.
 *
 * @param doing what was to be done with which object: `Cannot wait for an event`
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
