/**
 * How a device reaches its memory resource, which is built on top of it: the room `memory` plugs itself in when it is
 * loaded, which every public module does. So `device.memory` can be a property, and no import points upwards.
 *
 * @module
 */
import type { DeviceMemoryResource } from "../memory/device_memory_resource.ts";
import type { CudaDevice } from "../device/device.ts";

/** Makes the resource over a device's current pool. */
type MakeMemory = (device: CudaDevice) => DeviceMemoryResource;

let provided: MakeMemory | undefined;

/** Plugs the memory room in. */
export function provideDeviceMemory(make: MakeMemory): void {
  provided = make;
}

/** The resource over the pool that a device uses at the moment. */
export function deviceMemory(device: CudaDevice): DeviceMemoryResource {
  if (provided === undefined) throw new TypeError("Cannot allocate memory: import the package, not one file of it");
  return provided(device);
}
