/**
 * Whether things belong together: nothing of one Cuda can be used with another one's, and some things only with those of
 * their own device. Looked at before the driver is asked, which would say no more than that something is invalid.
 *
 * @module
 */
import { checkOptions, type OptionNames } from "../layout/mod.ts";
import { CudaDevice } from "./device.ts";
import { CudaStream } from "./stream.ts";

/** Something that belongs to a device. */
export interface OfDevice {
  /** The device. */
  readonly device: CudaDevice;
}

/** Whether two objects stand for the same device: every Cuda that was opened over a driver has objects of its own. */
export function isSameDevice(one: CudaDevice, other: CudaDevice): boolean {
  return one === other || (one.driver === other.driver && one.ordinal === other.ordinal);
}

/**
 * Throws if something belongs to another Cuda than a device.
 *
 * @param doing what was to be done with which thing: `Cannot wait for an event`
 */
export function checkSameCuda(thing: OfDevice, device: CudaDevice, doing: string): void {
  if (thing.device.driver === device.driver) return;
  throw new TypeError(`${doing} of another Cuda: expected one of the Cuda that device ${device.ordinal} belongs to`);
}

/** Throws if something belongs to another device, or another Cuda. See {@linkcode checkSameCuda}. */
export function checkSameDevice(thing: OfDevice, device: CudaDevice, doing: string): void {
  checkSameCuda(thing, device, doing);
  if (isSameDevice(thing.device, device)) return;
  throw new TypeError(`${doing} of device ${thing.device.ordinal}: expected one of device ${device.ordinal}`);
}

/** Throws if a stream is none, closed, or of another Cuda than a device. See {@linkcode checkSameCuda}. */
export function checkStream(stream: CudaStream, device: CudaDevice, doing: string): void {
  checkOpenStream(stream, doing);
  checkSameCuda(stream, device, doing);
}

/** Throws if a stream is none, or closed. See {@linkcode checkSameCuda}. */
export function checkOpenStream(stream: CudaStream, doing: string): void {
  if (!(stream instanceof CudaStream)) {
    throw new TypeError(`${doing}: expected a CudaStream, got ${stream === null ? "null" : typeof stream}`);
  }
  if (stream.isClosed) throw new TypeError(`${doing}: expected an open one, got a closed CudaStream`);
}

/** Throws if a device is none, above all a number: every Cuda has a device 0. */
function checkDevice(device: CudaDevice, doing: string): void {
  if (device instanceof CudaDevice) return;
  const got: unknown = device;
  const way = typeof got === "number" ? `${got}: use cuda.device(${got})` : got === null ? "null" : typeof got;
  throw new TypeError(`${doing}: expected a CudaDevice, got ${way}`);
}

/** Where an array will be used. */
interface Place {
  readonly stream?: CudaStream | null;
  readonly device?: CudaDevice;
}

const placeNames: OptionNames<Place> = { stream: true, device: true };

/** Throws if what is to say where an array will be used is no stream, a closed one, or no device, or says something else. */
export function checkPlace<P extends Place>(options: P, doing: string, known: OptionNames<Place> = placeNames): void {
  checkOptions<Place>(options, known);
  const { stream, device } = options;
  if (stream !== undefined && stream !== null) checkOpenStream(stream, doing);
  if (device !== undefined) checkDevice(device, doing);
}
