/**
 * Memory that others read and write by themselves: registered here, named by a key that travels by any means, and used
 * there through an endpoint to this worker.
 *
 * @module
 */
import { UCP_MEM_MAP_PARAMS_FIELD, ucp_mem_map_params_t, UCS_MEMORY_TYPE } from "../../bindings/ucp_types.ts";
import { ffiPort, littleEndian, NativeArena } from "../ffi/mod.ts";
import { isIntact, trailerBytes, withTrailer } from "./address.ts";
import { checkStatus } from "./error.ts";
import type { UcpFunctions } from "./library.ts";
import type { Operation } from "./operation.ts";
import { ownIdentity } from "./process_identity.ts";
import { writeFields } from "./struct_fields.ts";

/** Where a key says that the memory is and how long, before what UCX says of it. */
const headBytes = 16;

/** What memory is registered with. */
export interface RegionContext {
  readonly ucp: UcpFunctions;
  readonly context: bigint;
  /** Called once, when it is closed. */
  forget(region: UcxMemoryRegion): void;
}

/** Memory of this process that others may read and write, until it is closed. */
export class UcxMemoryRegion {
  /** What others need to use it, as bytes. Whoever has it and reaches this worker can read and write the memory. */
  readonly key: Uint8Array<ArrayBuffer>;
  readonly #context: RegionContext;
  readonly #pin: Disposable | ArrayBuffer | null;
  #handle: bigint;

  /** Use {@linkcode UcxWorker.register}. `memory`: what an operation has taken, whose pin becomes this region's. */
  constructor(context: RegionContext, memory: Operation) {
    this.#context = context;
    const { ucp } = context;
    using arena = new NativeArena();
    const parameters = arena.struct(ucp_mem_map_params_t);
    writeFields(parameters, UCP_MEM_MAP_PARAMS_FIELD, {
      address: memory.address,
      length: memory.bytes,
      memory_type: memory.isCuda ? UCS_MEMORY_TYPE.CUDA : UCS_MEMORY_TYPE.HOST,
    });
    const made = arena.out("ptr");
    checkStatus("ucp_mem_map", ucp.memory.ucp_mem_map(context.context, parameters.$address, made.$address));
    this.#handle = made.value;
    try {
      const [packed, size] = [arena.out("ptr"), arena.out("size")];
      const { ucp_rkey_pack, ucp_rkey_buffer_release } = ucp.memory;
      checkStatus("ucp_rkey_pack", ucp_rkey_pack(context.context, made.value, packed.$address, size.$address));
      const head = new Uint8Array(headBytes + size.value);
      const view = new DataView(head.buffer);
      view.setBigUint64(0, memory.address, littleEndian);
      view.setBigUint64(8, BigInt(memory.bytes), littleEndian);
      head.set(new Uint8Array(ffiPort().memory(packed.value, size.value)), headBytes);
      ucp_rkey_buffer_release(packed.value);
      this.key = withTrailer(head, ownIdentity());
    } catch (error) {
      ucp.memory.ucp_mem_unmap(context.context, made.value);
      throw error;
    }
    this.#pin = memory.held;
    memory.held = null;
  }

  // law ucx/UcxMemoryRegion.close: ucx/remote_memory
  /**
   * Ends it: the memory is the program's own again. Others must not use it any more: what they have begun may still
   * write. Closing twice is harmless.
   */
  close(): void {
    if (this.#handle === 0n) return;
    const { ucp, context } = this.#context;
    ucp.memory.ucp_mem_unmap(context, this.#handle);
    this.#handle = 0n;
    if (this.#pin !== null && Symbol.dispose in this.#pin) this.#pin[Symbol.dispose]();
    this.#context.forget(this);
  }

  /** Ends it. */
  [Symbol.dispose](): void {
    this.close();
  }
}

/** Memory of another process, as an endpoint uses it. */
export class UcxRemoteKey {
  /** Bytes. */
  readonly size: number;
  /** Where it is in the other process. */
  readonly address: bigint;
  readonly #ucp: UcpFunctions;
  #handle: bigint;

  /** Use {@linkcode UcxEndpoint.remote}. */
  constructor(ucp: UcpFunctions, endpoint: bigint, key: Uint8Array) {
    if (!isIntact(key) || key.length <= headBytes + trailerBytes) {
      throw new TypeError(
        `Cannot use remote memory: expected the key of a region, got ${key.length} other or damaged bytes`,
      );
    }
    this.#ucp = ucp;
    using arena = new NativeArena();
    const view = new DataView(key.buffer, key.byteOffset, headBytes);
    this.address = view.getBigUint64(0, littleEndian);
    this.size = Number(view.getBigUint64(8, littleEndian));
    const packed = arena.bytes(key.length - headBytes);
    packed.bytes.set(key.subarray(headBytes));
    const made = arena.out("ptr");
    checkStatus("ucp_ep_rkey_unpack", ucp.memory.ucp_ep_rkey_unpack(endpoint, packed.address, made.$address));
    this.#handle = made.value;
  }

  // law ucx/UcxRemoteKey.range: ucx/remote_memory
  /**
   * A part of the memory, as UCX wants it. Called by endpoints.
   *
   * @throws {RangeError} if it is not within the memory
   * @throws {TypeError} if the key is closed
   */
  range(offset: number, bytes: number): { readonly address: bigint; readonly key: bigint } {
    if (this.#handle === 0n) throw new TypeError("Cannot use remote memory: its key is closed");
    if (!Number.isSafeInteger(offset) || offset < 0 || offset + bytes > this.size) {
      throw new RangeError(`Cannot use ${bytes} bytes at offset ${offset} of remote memory: it has ${this.size} bytes`);
    }
    return { address: this.address + BigInt(offset), key: this.#handle };
  }

  /** Frees it, when nothing uses it any more. Closing twice is harmless. */
  close(): void {
    if (this.#handle !== 0n) this.#ucp.memory.ucp_rkey_destroy(this.#handle);
    this.#handle = 0n;
  }

  /** Frees it. */
  [Symbol.dispose](): void {
    this.close();
  }
}
