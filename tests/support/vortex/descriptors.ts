/**
 * Buffer descriptors as a producer hands them over, and a release callback that counts its calls.
 *
 * @module
 */
import { VortexBufferExport } from "../../../bindings/vortex.ts";
import type { NativeArena } from "../../../src/ffi/arena.ts";
import { ffiPort } from "../../../src/ffi/mod.ts";
import type { VortexMetadata } from "../../../src/vortex/mod.ts";
import { writeDType } from "../../../src/vortex/wire/dtype_flatbuffer.ts";

/**
 * A release callback that counts its calls. The callback is never freed: there is no telling when a runtime has
 * returned from it.
 */
export class CountingRelease {
  /** Number of calls. */
  count = 0;
  /** Address of the callback. */
  readonly address: bigint;

  /** @param onRelease runs on each call, after it is counted */
  constructor(onRelease?: () => void) {
    this.address = ffiPort().callback({ args: ["ptr"], returns: "void" }, () => {
      this.count++;
      onRelease?.();
    }).address;
  }
}

/** Fields of a descriptor that differ from the defaults. */
export interface Change {
  readonly version?: number;
  readonly kind?: number;
  readonly ptr?: bigint;
  readonly alignment?: number;
  readonly release?: bigint;
  readonly device_id?: number;
  readonly sync_event?: bigint;
}

/** A descriptor of some numbers, on the host unless `change` overrides it. */
export function descriptor(
  arena: NativeArena,
  release: CountingRelease,
  values: Uint32Array,
  change: Change = {},
): bigint {
  const memory = arena.bytes(Math.max(8, values.byteLength));
  memory.bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  const raw = arena.struct(VortexBufferExport);
  Object.assign(raw, {
    version: 1,
    kind: 0,
    ptr: memory.address,
    len: values.byteLength,
    alignment: 4,
    device_id: -1,
    sync_event: 0n,
    private_data: 0n,
    release: release.address,
    ...change,
  });
  return raw.$address;
}

/** A tree of numbers over any buffers. */
export function numbers(length: number, buffers: VortexMetadata[4]): VortexMetadata {
  const dtype = writeDType({ kind: "primitive", ptype: "u32", nullable: false });
  return ["vortex.primitive", dtype, length, new Uint8Array(0), buffers, []];
}
