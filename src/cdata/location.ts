/**
 * Where the buffers of an Arrow device array are, and when they may be used.
 *
 * @module
 */
import { ARROW_DEVICE, type ArrowDeviceArray } from "../../bindings/arrow.ts";
import { type CudaDevice, CudaEvent, type CudaStream, enqueueCopy } from "../device/mod.ts";
import { ffiPort, littleEndian, NativeArena, type StructView } from "../ffi/mod.ts";
import { consumerWaitsForEvent, hostWaitsFor, hostWaitsForCopy, type MemoryKind } from "../order/mod.ts";
import type { ReadInteger } from "./array_import.ts";
import type { FromArrowOptions } from "./device_array.ts";
import type { Walk } from "./walk.ts";

/** The location of buffers. */
export interface Location {
  readonly kind: MemoryKind;
  /** The device that has the memory or can access it; null for ordinary host memory. */
  readonly device: CudaDevice | null;
  /** The stream on which the array will be used. */
  readonly stream: CudaStream | null;
  /** Handle of the event after which the data is ready; 0n: it is ready. */
  readonly event: bigint;
}

const kinds: ReadonlyMap<number, MemoryKind> = new Map([
  [ARROW_DEVICE.CPU, "host"],
  [ARROW_DEVICE.CUDA, "device"],
  [ARROW_DEVICE.CUDA_HOST, "pinned"],
  [ARROW_DEVICE.CUDA_MANAGED, "managed"],
]);

// law cdata/readLocation: order/default_home
/**
 * Reads the location of an array's buffers.
 *
 * @throws {ExchangeError} if the options name no suitable device, or the struct is invalid
 */
export function readLocation(
  raw: StructView<typeof ArrowDeviceArray>,
  options: FromArrowOptions,
  walk: Walk,
): Location {
  const { device_type: type, device_id: id } = raw;
  const kind = kinds.get(type);
  if (kind === undefined) {
    throw walk.refusal(`is on a device of type ${type}: expected the CPU (1) or CUDA (2, 3 or 13)`);
  }
  // The reserved bytes must be zero, but PyArrow 26 leaves them uninitialized. They are not checked: no meaning is
  // defined for them yet.

  // The specification gives no meaning to an event of the CPU.
  if (kind === "host") return { kind, device: null, stream: null, event: 0n };
  const device = options.stream?.device ?? options.device ?? null;
  if (device === null) {
    if (kind === "pinned" && raw.sync_event === 0n) return { kind: "host", device, stream: null, event: 0n };
    throw walk.refusal(
      `is on CUDA device ${id}: pass { stream } to say where it will be used, or { device } to wait for it here`,
    );
  }
  // Pinned and managed memory is accessible from every device; only device memory must be that of the given device.
  if (kind === "device" && BigInt(device.ordinal) !== id) {
    throw walk.refusal(`is on CUDA device ${id}: expected ${device}`);
  }
  const stream = options.stream === undefined ? device.defaultStream : options.stream;
  return { kind, device, stream, event: readEvent(raw.sync_event, walk) };
}

// law cdata/readEvent: cdata/fuzz
function readEvent(address: bigint, walk: Walk): bigint {
  if (address === 0n) return 0n;
  walk.pointer(address, "event");
  const event = new DataView(ffiPort().memory(address, 8)).getBigUint64(0, littleEndian);
  if (event === 0n) throw walk.refusal("has a sync_event that points to NULL");
  return event;
}

// law cdata/waitFor: arrow/array, order/programs, arrow/several_homes
/** Waits for the producer's event: on the consumer's stream, or on the host if there is none. */
export function waitFor({ device, event }: Location, { stream }: FromArrowOptions): void {
  if (device === null || event === 0n || stream === null) return;
  const ready = new CudaEvent(device, event); // owned by the producer: never closed here
  consumerWaitsForEvent(ready, stream ?? null);
}

// law cdata/integerReader: arrow/several_homes
/** Reads single integers of an array, wherever it is. Waits for the stream if necessary. */
export function integerReader({ kind, device, stream }: Location): ReadInteger {
  return (address, bits, where) => {
    const bytes = bits / 8;
    if (where === "host" || kind === "host" || device === null) return integer(ffiPort().memory(address, bytes), bits);
    using arena = new NativeArena();
    const target = arena.bytes(bytes);
    const copyStream = stream ?? device.defaultStream;
    if (kind === "device") {
      enqueueCopy(copyStream, target.address, address, bytes, "DtoH");
      hostWaitsForCopy(copyStream);
      return integer(target.bytes.buffer, bits, target.bytes.byteOffset);
    }
    hostWaitsFor(copyStream); // it waits for the producer; the host can read the memory afterwards
    return integer(ffiPort().memory(address, bytes), bits);
  };
}

function integer(memory: ArrayBuffer, bits: 32 | 64, at = 0): bigint {
  const view = new DataView(memory, at);
  return bits === 32 ? BigInt(view.getInt32(0, littleEndian)) : view.getBigInt64(0, littleEndian);
}
