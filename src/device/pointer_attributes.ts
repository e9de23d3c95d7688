/**
 * What the driver knows about an address.
 *
 * @module
 */
import { CU_MEMORYTYPE, CU_POINTER_ATTRIBUTE } from "../../bindings/cuda_types.ts";
import { NativeArena } from "../ffi/mod.ts";
import type { CudaDevice } from "./device.ts";
import { checkCuda, type CudaDriver } from "../driver/mod.ts";

/** What the driver knows about an address: see {@linkcode Cuda.pointerAttributes}. */
export interface PointerAttributes {
  /**
   * Where the memory is and what can use it: device memory; host memory known to the driver and usable by devices;
   * memory that migrates between them; or `host` for ordinary memory, which the driver does not know.
   */
  readonly kind: "host" | "device" | "pinned" | "managed";
  /** The device with which the memory was allocated; null for ordinary host memory. */
  readonly device: CudaDevice | null;
}

const asked = [CU_POINTER_ATTRIBUTE.MEMORY_TYPE, CU_POINTER_ATTRIBUTE.IS_MANAGED, CU_POINTER_ATTRIBUTE.DEVICE_ORDINAL];

/** Queries a driver about addresses. The arguments are laid out once: only the address changes. */
export class PointerQuery {
  readonly #driver: CudaDriver;
  readonly #devices: readonly CudaDevice[];
  readonly #arena = new NativeArena();
  readonly #attributes: bigint;
  readonly #places: bigint;
  readonly #answers: DataView;

  /** Lays out the arguments: the attributes, and where their values are written. */
  constructor(driver: CudaDriver, devices: readonly CudaDevice[]) {
    this.#driver = driver;
    this.#devices = devices;
    const attributes = this.#arena.bytes(4 * asked.length);
    const places = this.#arena.bytes(8 * asked.length, 8);
    const answers = this.#arena.bytes(8 * asked.length, 8);
    const view = ({ buffer, byteOffset, byteLength }: Uint8Array) => new DataView(buffer, byteOffset, byteLength);
    asked.forEach((attribute, i) => {
      view(attributes.bytes).setInt32(4 * i, attribute, true);
      view(places.bytes).setBigUint64(8 * i, answers.address + BigInt(8 * i), true);
    });
    this.#attributes = attributes.address;
    this.#places = places.address;
    this.#answers = view(answers.bytes);
  }

  /** Queries one address. An address that the driver does not know is not an error. */
  ask(ptr: bigint): PointerAttributes {
    const { cuPointerGetAttributes } = this.#driver.pointer;
    const code = cuPointerGetAttributes(asked.length, this.#attributes, this.#places, ptr);
    checkCuda(this.#driver, "cuPointerGetAttributes", code);
    const type = this.#answers.getUint32(0, true);
    if (type === 0) return { kind: "host", device: null };
    const isManaged = this.#answers.getUint8(8) !== 0; // a bool: one byte
    const kind = isManaged ? "managed" : type === CU_MEMORYTYPE.HOST ? "pinned" : "device";
    return { kind, device: this.#devices[this.#answers.getInt32(16, true)] ?? null };
  }

  /** Frees the memory of the arguments. */
  close(): void {
    this.#arena.close();
  }
}
