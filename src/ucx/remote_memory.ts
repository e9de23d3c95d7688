/**
 * Memory that peers read and write directly: registered here, named by a key that travels by any means, and used there
 * through an endpoint to this worker.
 *
 * @module
 */
import { checkMade, show, showAs, showBytes } from "../layout/mod.ts";
import { UCP_MEM_MAP_PARAMS_FIELD, ucp_mem_map_params_t } from "../../bindings/ucp_types.ts";
import { ffiPort, littleEndian, type MemoryArgument, NativeArena } from "../ffi/mod.ts";
import { isIntact, trailerBytes, withTrailer } from "./address.ts";
import { checkStatus } from "./error.ts";
import type { UcpFunctions } from "./library.ts";
import type { Operation } from "./operation.ts";
import { ownIdentity } from "./process_identity.ts";
import { writeFields } from "./struct_fields.ts";

/** Size of a key's head: what tells it from an address, and the address and length of the memory, before UCX's part. */
const headBytes = 24;

/** Begins a key: two zeros and `region` in ASCII. A worker's address has the same trailer. */
const mark = 0x6e6f696765720000n;

/** Whether bytes are a key, not a worker's address, as far as their beginning tells. */
export function isKey(bytes: Uint8Array): boolean {
  if (bytes.length < headBytes) return false;
  return new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, littleEndian) === mark;
}

/** What registering memory needs. */
export interface RegionContext {
  /** The worker's. */
  readonly resources: Registrations;
  readonly context: bigint;
  /** The worker: peers reach the memory through it, as long as the region is referenced. */
  readonly worker: object;
}

/** The registrations of a worker. */
export interface Registrations {
  readonly ucp: UcpFunctions;
  /** Memory that peers use. */
  readonly regions: Set<Registration>;
  /** Memory that UCX has refused to unregister: it may go on using it. */
  readonly refused: Set<Registration>;
}

/** Registered memory. It does not reference the worker. */
export class Registration {
  readonly #resources: Registrations;
  readonly #context: bigint;
  readonly #handle: bigint;
  /** Keeps the memory: a pin, or the memory itself if it is JavaScript's own. */
  readonly #pin: Disposable | MemoryArgument | null;

  constructor({ resources, context }: RegionContext, handle: bigint, pin: Disposable | MemoryArgument | null) {
    this.#resources = resources;
    this.#context = context;
    this.#handle = handle;
    this.#pin = pin;
    resources.regions.add(this);
  }

  /** Whether the memory was unregistered. */
  get isClosed(): boolean {
    return !this.#resources.regions.has(this);
  }

  // law ucx/Registration.close: ucx/remote_memory
  /** Unregisters the memory, once. @throws {UcxError} if UCX refuses: the memory then stays in place */
  close(): void {
    const { ucp, regions, refused } = this.#resources;
    if (!regions.delete(this)) return;
    refused.add(this);
    checkStatus("ucp_mem_unmap", ucp.memory.ucp_mem_unmap(this.#context, this.#handle));
    refused.delete(this);
    if (this.#pin !== null && Symbol.dispose in this.#pin) this.#pin[Symbol.dispose]();
  }
}

/** Memory of this process that peers may read and write, until it is closed. */
export class UcxMemoryRegion {
  /**
   * What peers need to use it, as bytes. Any peer that has it and reaches this worker can read and write the memory.
   */
  readonly key: Uint8Array<ArrayBuffer>;
  readonly #registration: Registration;
  /** The worker, kept alive as long as the region. */
  readonly worker: object;

  // law ucx/UcxMemoryRegion.constructor: ucx/dropped
  /**
   * Use {@linkcode UcxWorker.register}. `memory`: an operation that has taken the memory, whose pin moves to this
   * region.
   */
  constructor(context: RegionContext, memory: Operation) {
    checkMade(memory, "UcxMemoryRegion", "worker.register(memory)");
    const { ucp } = context.resources;
    using arena = new NativeArena();
    const parameters = arena.struct(ucp_mem_map_params_t);
    writeFields(parameters, UCP_MEM_MAP_PARAMS_FIELD, {
      address: memory.address,
      length: memory.bytes,
      memory_type: memory.memoryType,
    });
    const made = arena.out("ptr");
    checkStatus("ucp_mem_map", ucp.memory.ucp_mem_map(context.context, parameters.$address, made.$address));
    try {
      const [packed, size] = [arena.out("ptr"), arena.out("size")];
      const { ucp_rkey_pack, ucp_rkey_buffer_release } = ucp.memory;
      checkStatus("ucp_rkey_pack", ucp_rkey_pack(context.context, made.value, packed.$address, size.$address));
      const head = new Uint8Array(headBytes + size.value);
      const view = new DataView(head.buffer);
      view.setBigUint64(0, mark, littleEndian);
      view.setBigUint64(8, memory.address, littleEndian);
      view.setBigUint64(16, BigInt(memory.bytes), littleEndian);
      head.set(new Uint8Array(ffiPort().memory(packed.value, size.value)), headBytes);
      ucp_rkey_buffer_release(packed.value);
      this.key = withTrailer(head, ownIdentity());
    } catch (error) {
      ucp.memory.ucp_mem_unmap(context.context, made.value);
      throw error;
    }
    this.#registration = new Registration(context, made.value, memory.pin ?? memory.own);
    this.worker = context.worker;
    memory.pin = null;
  }

  /** Whether it is closed, by itself or with its worker. */
  get isClosed(): boolean {
    return this.#registration.isClosed;
  }

  /**
   * Unregisters the memory: it is the program's own again. Peers must not use it any more: operations that they have
   * begun may still write. Closing twice is harmless.
   *
   * @throws {UcxError} if UCX refuses: peers may then go on using the memory, which stays until the process ends
   */
  close(): void {
    this.#registration.close();
  }

  /** Unregisters the memory. */
  [Symbol.dispose](): void {
    this.close();
  }

  static {
    showAs(UcxMemoryRegion, (region) => {
      const size = Number(new DataView(region.key.buffer).getBigUint64(16, littleEndian)); // and not the key, a secret
      return `${showBytes(size)}${region.isClosed ? ", closed" : ""}`;
    });
  }
}

/** Keys that UCX has unpacked for the endpoints of one worker: UCX cannot free them once the worker is gone. */
export class RemoteKeys {
  readonly ucp: UcpFunctions;
  readonly #handles = new Set<bigint>();
  /** Frees keys that were dropped. */
  readonly #dropped = new FinalizationRegistry<bigint>((handle) => this.free(handle));

  constructor(ucp: UcpFunctions) {
    this.ucp = ucp;
  }

  /** Adds a key, which is freed when it is dropped, or the worker is closed. */
  add(key: UcxRemoteKey, handle: bigint): void {
    this.#handles.add(handle);
    this.#dropped.register(key, handle, key);
  }

  /** Frees a key's handle, once. */
  free(handle: bigint, key?: UcxRemoteKey): void {
    if (key !== undefined) this.#dropped.unregister(key);
    if (this.#handles.delete(handle)) this.ucp.memory.ucp_rkey_destroy(handle);
  }

  // law ucx/RemoteKeys.close: ucx/endpoint
  /** Frees all keys, before the worker is destroyed. */
  close(): void {
    for (const handle of this.#handles) this.free(handle);
  }
}

/** Memory of another process, used through an endpoint. */
export class UcxRemoteKey {
  /** Size in bytes. */
  readonly size: number;
  /** Its address in the other process. */
  readonly address: bigint;
  readonly #keys: RemoteKeys;
  readonly #endpoint: symbol;
  #handle: bigint;
  /** Operations in flight that use it. */
  #users = 0;
  #isClosed = false;

  /** Use {@linkcode UcxEndpoint.remote}. */
  constructor(keys: RemoteKeys, endpoint: symbol, endpointHandle: bigint, key: Uint8Array) {
    checkMade(keys, "UcxRemoteKey", "endpoint.remote(key)");
    if (!(key instanceof Uint8Array)) {
      throw new TypeError(`Cannot use remote memory: expected the key of a region (region.key), got ${show(key)}`);
    }
    if (!isIntact(key) || !isKey(key) || key.length <= headBytes + trailerBytes) {
      throw new TypeError(
        `Cannot use remote memory: expected the key of a region, got ${key.length} other or damaged bytes`,
      );
    }
    this.#keys = keys;
    this.#endpoint = endpoint;
    using arena = new NativeArena();
    const view = new DataView(key.buffer, key.byteOffset, headBytes);
    this.address = view.getBigUint64(8, littleEndian);
    this.size = Number(view.getBigUint64(16, littleEndian));
    const packed = arena.bytes(key.length - headBytes);
    packed.bytes.set(key.subarray(headBytes));
    const made = arena.out("ptr");
    const { ucp_ep_rkey_unpack } = keys.ucp.memory;
    checkStatus("ucp_ep_rkey_unpack", ucp_ep_rkey_unpack(endpointHandle, packed.address, made.$address));
    this.#handle = made.value;
    keys.add(this, made.value);
  }

  // law ucx/UcxRemoteKey.retainRange: ucx/remote_memory, ucx/limits, ucx/endpoint
  /**
   * A part of the memory, in UCX's terms, for an operation of an endpoint. Retains the key until a matching
   * {@linkcode release}. Called by endpoints.
   *
   * @internal
   * @throws {RangeError} if the part is not within the memory
   * @throws {TypeError} if the key is closed, or another endpoint's
   */
  retainRange(endpoint: symbol, offset: number, bytes: number): { readonly address: bigint; readonly key: bigint } {
    if (this.#isClosed) throw new TypeError("Cannot use remote memory: its key is closed");
    if (endpoint !== this.#endpoint) {
      throw new TypeError(
        "Cannot use remote memory through this endpoint: the key was made by another. Use this one's remote().",
      );
    }
    if (!Number.isSafeInteger(offset) || offset < 0 || offset + bytes > this.size) {
      throw new RangeError(
        `Cannot use ${bytes} bytes at offset ${show(offset)} of remote memory: it has ${this.size} bytes`,
      );
    }
    this.#users++;
    return { address: this.address + BigInt(offset), key: this.#handle };
  }

  /**
   * Ends what {@linkcode retainRange} began. Called by endpoints.
   *
   * @internal
   */
  release(): void {
    this.#users--;
    this.#freeIfUnused();
  }

  /** Whether it is closed. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Frees the key, as soon as no operation in flight uses it. Closing twice is harmless. */
  close(): void {
    this.#isClosed = true;
    this.#freeIfUnused();
  }

  #freeIfUnused(): void {
    if (this.#isClosed && this.#users === 0) this.#keys.free(this.#handle, this);
  }

  /** Frees the key. */
  [Symbol.dispose](): void {
    this.close();
  }

  static {
    showAs(UcxRemoteKey, (key) => `${showBytes(key.size)}${key.#isClosed ? ", closed" : ""}`);
  }
}

// law ucx/checkRemoteMemory: ucx/remote_memory
/** @throws {TypeError} if the context was opened without remote memory */
export function checkRemoteMemory(hasRemoteMemory: boolean): void {
  if (!hasRemoteMemory) throw new TypeError("Cannot use remote memory: this Ucx was opened with remoteMemory: false");
}
