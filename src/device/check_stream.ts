/**
 * Checks that an argument is a stream or a device, and usable.
 *
 * @module
 */
import { checkOptions, type OptionNames, quoted, showGiven } from "../layout/mod.ts";
import { checkSameCuda } from "./check_device.ts";
import { CudaDevice } from "./device.ts";
import { noStream } from "./no_stream.ts";
import { CudaStream } from "./stream.ts";

/**
 * Throws if a value is not a stream, or if the stream is closed or belongs to another Cuda than the device. See
 * {@linkcode checkSameCuda}.
 */
export function checkStream(stream: CudaStream, device: CudaDevice, doing: string): void {
  checkOpenStream(stream, doing);
  checkSameCuda(stream, device, doing);
}

/** Throws if a value is not a stream, or the stream is closed. See {@linkcode checkSameCuda}. */
export function checkOpenStream(stream: CudaStream, doing: string): void {
  if (!(stream instanceof CudaStream)) throw noStream(stream, doing);
  if (stream.isClosed) throw closedStream(stream, doing);
}

function closedStream({ name }: CudaStream, doing: string): TypeError {
  return new TypeError(`${doing}: expected an open one, got a closed CudaStream${quoted(name)}`);
}

// law device/expectDevice: order/refusals
/** Throws if a value is not a device, above all for a number: every Cuda has a device 0. */
export function expectDevice(device: CudaDevice, doing: string): void {
  if (!(device instanceof CudaDevice)) throw noDevice(device, doing);
}

function noDevice(given: unknown, doing: string): TypeError {
  const way = typeof given === "number" ? `: use cuda.device(${given})` : "";
  return new TypeError(`${doing}: expected a CudaDevice, got ${showGiven(given)}${way}`);
}

/** Where an array will be used. */
interface Place {
  readonly stream?: CudaStream | null;
  readonly device?: CudaDevice;
}

const placeNames: OptionNames<Place> = { stream: true, device: true };

/**
 * Whether the options name only a place, as nearly all do: comparing with two names is faster than looking each one up.
 */
function isPlace(options: unknown): boolean {
  if (typeof options !== "object" || options === null) return false;
  for (const name in options) if (name !== "stream" && name !== "device") return false;
  return true;
}

/** Throws unless options that say where an array will be used have known names, an open stream and a device. */
export function checkPlace<P extends Place>(options: P, doing: string, known: OptionNames<Place> = placeNames): void {
  if (!isPlace(options)) checkOptions<Place>(options, known);
  const { stream, device } = options;
  if (stream !== undefined && stream !== null) checkOpenStream(stream, doing);
  if (device !== undefined) expectDevice(device, doing);
}
