/**
 * Driver queries about a device that need no context.
 *
 * @module
 */
import { isNameIn, show } from "../layout/mod.ts";
import { CU_DEVICE_ATTRIBUTE, CU_DEVICE_P2P_ATTRIBUTE } from "../../bindings/cuda_types.ts";
import { checkCuda, type CudaDriver, decodeVersion } from "../driver/mod.ts";
import { NativeArena, readField } from "../ffi/mod.ts";

/** The name of a device attribute, as in the header without the prefix `CU_DEVICE_ATTRIBUTE_`. */
export type DeviceAttribute = keyof typeof CU_DEVICE_ATTRIBUTE;

/** The name of an attribute of access to a peer's memory, as in the header without `CU_DEVICE_P2P_ATTRIBUTE_`. */
export type PeerAttribute = keyof typeof CU_DEVICE_P2P_ATTRIBUTE;

/** The properties of one device. The driver writes numeric ones to memory of this object, which is read at once. */
export class DeviceProperties {
  /** The driver's handle of the device: `CUdevice`. */
  readonly handle: number;
  readonly #driver: CudaDriver;
  readonly #int;
  readonly #size;

  /**
   * @param ordinal its number, from 0
   * @param arena holds space for results as long as the device can be queried
   */
  constructor(driver: CudaDriver, ordinal: number, arena: NativeArena) {
    this.#driver = driver;
    this.#int = arena.out("i32");
    this.#size = arena.out("size");
    checkCuda(driver, "cuDeviceGet", driver.opening.cuDeviceGet(this.#int.$address, ordinal));
    this.handle = this.#int.value;
  }

  get name(): string {
    using arena = new NativeArena();
    const { address, bytes } = arena.bytes(256);
    this.#check("cuDeviceGetName", this.#driver.device.cuDeviceGetName(address, bytes.length, this.handle));
    return readField(bytes);
  }

  // law device/DeviceProperties.uuid: device/device
  get uuid(): string {
    using arena = new NativeArena();
    const { address, bytes } = arena.bytes(16);
    this.#check("cuDeviceGetUuid_v2", this.#driver.device.cuDeviceGetUuid_v2(address, this.handle));
    const hex = bytes.toHex();
    // The driver gives a slice its own UUID, but identifies it as one only in its name: `NVIDIA H100 MIG 1g.10gb`.
    const prefix = /\bMIG \d+[cg]\./.test(this.name) ? "MIG" : "GPU";
    return `${prefix}-${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${
      hex.slice(20)
    }`;
  }

  get pciBusId(): string {
    using arena = new NativeArena();
    const { address, bytes } = arena.bytes(32);
    this.#check("cuDeviceGetPCIBusId", this.#driver.device.cuDeviceGetPCIBusId(address, bytes.length, this.handle));
    return readField(bytes);
  }

  get totalMemory(): number {
    this.#check("cuDeviceTotalMem_v2", this.#driver.device.cuDeviceTotalMem_v2(this.#size.$address, this.handle));
    return this.#size.value;
  }

  attribute(name: DeviceAttribute): number {
    if (!isNameIn(CU_DEVICE_ATTRIBUTE, name)) {
      throw new TypeError(`Cannot query the attribute ${show(name)}: expected a name of CU_DEVICE_ATTRIBUTE`);
    }
    const { cuDeviceGetAttribute } = this.#driver.device;
    const code = cuDeviceGetAttribute(this.#int.$address, CU_DEVICE_ATTRIBUTE[name], this.handle);
    this.#check("cuDeviceGetAttribute", code);
    return this.#int.value;
  }

  canAccessPeer(peer: DeviceProperties): boolean {
    const { cuDeviceCanAccessPeer } = this.#driver.device;
    this.#check("cuDeviceCanAccessPeer", cuDeviceCanAccessPeer(this.#int.$address, this.handle, peer.handle));
    return this.#int.value !== 0;
  }

  peerAttribute(name: PeerAttribute, peer: DeviceProperties): number {
    if (!isNameIn(CU_DEVICE_P2P_ATTRIBUTE, name)) {
      const names = Object.keys(CU_DEVICE_P2P_ATTRIBUTE).join(", ");
      throw new TypeError(`Cannot query the peer attribute ${show(name)}: expected one of ${names}`);
    }
    const { cuDeviceGetP2PAttribute } = this.#driver.device;
    const attribute = CU_DEVICE_P2P_ATTRIBUTE[name];
    const code = cuDeviceGetP2PAttribute(this.#int.$address, attribute, this.handle, peer.handle);
    this.#check("cuDeviceGetP2PAttribute", code);
    return this.#int.value;
  }

  get driverVersion(): [major: number, minor: number] {
    this.#check("cuDriverGetVersion", this.#driver.opening.cuDriverGetVersion(this.#int.$address));
    return decodeVersion(this.#int.value);
  }

  #check(call: string, code: number): void {
    checkCuda(this.#driver, call, code);
  }
}
