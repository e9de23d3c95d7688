/**
 * Values made once per device, on first use, and closed with the device.
 *
 * @module
 */
import type { CudaDevice } from "./device.ts";

/** One value for each device. */
export class PerDevice<T> {
  readonly #values = new WeakMap<CudaDevice, T>();
  readonly #make: (device: CudaDevice) => T;
  readonly #close: (value: T, device: CudaDevice) => void;

  /** @param close called when the device is closed and can still be used */
  constructor(make: (device: CudaDevice) => T, close: (value: T, device: CudaDevice) => void) {
    this.#make = make;
    this.#close = close;
  }

  /** Whether a device already has its value. */
  has(device: CudaDevice): boolean {
    return this.#values.has(device);
  }

  /**
   * The value of a device, which is made on first use.
   *
   * @throws {TypeError} if the device's Cuda is closed
   */
  of(device: CudaDevice): T {
    const known = this.#values.get(device);
    return known === undefined ? this.#add(device) : known;
  }

  #add(device: CudaDevice): T {
    const value = this.#make(device);
    this.#values.set(device, value);
    device.onClose(() => {
      this.#values.delete(device);
      this.#close(value, device);
    });
    return value;
  }
}
