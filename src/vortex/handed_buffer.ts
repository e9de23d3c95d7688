/**
 * Buffers that a producer hands over in a C struct: taken, used in stream order, and returned once.
 *
 * @module
 */
import { VORTEX_BUFFER_KIND, VortexBufferExport } from "../../bindings/vortex.ts";
import { type ArrayParts, copyToHost } from "../copy/mod.ts";
import { CudaEvent, type CudaStream } from "../device/mod.ts";
import { ffiPort, littleEndian, struct } from "../ffi/mod.ts";
import { DType, StridedLayout } from "../layout/mod.ts";
import { MemoryBuffer } from "../memory/mod.ts";
import { callRelease } from "../native/mod.ts";
import { consumerWaitsForEvent, ExchangeError, hostWaits, hostWaitsBeforeReturn } from "../order/mod.ts";
import type { HandedBuffer } from "./raw_node.ts";
import { type Bytes, noBytes } from "./wire/source.ts";

/** Where device buffers will be used. */
export interface HandedOptions {
  /** The stream that waits for the producer, and in whose order the buffers are returned. */
  readonly stream?: CudaStream;
}

/** A taken buffer, which must be returned. */
export interface OwnedBuffer extends HandedBuffer {
  /** Returns the buffer to its producer. Closing twice is harmless. */
  close(): void;
}

/** The memory of handed-over bytes, keyed by the ArrayBuffer over it: the bytes keep the memory alive. */
const memories = new WeakMap<ArrayBuffer, MemoryBuffer>();

/** The memory behind bytes, if it was handed over. */
export function memoryOf(bytes: Bytes): MemoryBuffer | undefined {
  return memories.get(bytes.buffer);
}

/** Structs taken and not yet returned: taking one again would return it twice. */
const taken = new Set<bigint>();

// law vortex/takeDescriptor: vortex/core/bridge, vortex/core/device_buffers
/**
 * Takes a buffer.
 *
 * @param address of the struct, which the producer owns until this returns
 * @throws {ExchangeError} if it cannot be taken; the producer then still owns it
 */
export function takeDescriptor(address: bigint, { stream }: HandedOptions): OwnedBuffer {
  const refuse = (why: string): never => {
    throw new ExchangeError(`Cannot take a Vortex buffer: ${why}`);
  };
  if (address === 0n) refuse("its address is NULL");
  if (taken.has(address)) refuse(`the struct at ${address} was taken before and has not been returned`);
  const raw = struct(VortexBufferExport).at(address);
  const { version, kind, ptr, release, sync_event: syncEvent, device_id: ordinal } = raw;
  if (version !== 1) refuse(`its struct has version ${version}. Expected 1`);
  if (kind !== VORTEX_BUFFER_KIND.HOST && kind !== VORTEX_BUFFER_KIND.DEVICE) {
    refuse(`its kind is ${kind}. Expected the host (0) or a device (1)`);
  }
  const { len: size, alignment } = raw;
  if (size !== 0 && ptr === 0n) refuse(`it has ${size} bytes at NULL`);
  if (release === 0n) refuse("it has no release callback");
  if (alignment < 1 || !Number.isInteger(Math.log2(alignment))) {
    refuse(`its alignment is ${alignment}. Expected a power of two`);
  }
  if (ptr % BigInt(alignment) !== 0n) refuse(`its address is not a multiple of its alignment of ${alignment}`);
  const isDevice = kind === VORTEX_BUFFER_KIND.DEVICE;
  if (isDevice) {
    if (stream === undefined) return refuse(`it is on device ${ordinal}: pass { stream } to say where it will be used`);
    if (stream.device.ordinal !== ordinal) {
      refuse(`it is on device ${ordinal}, but the stream is on ${stream.device}`);
    }
    if (syncEvent !== 0n) {
      const event = new DataView(ffiPort().memory(syncEvent, 8)).getBigUint64(0, littleEndian);
      if (event === 0n) refuse("its sync_event points to a NULL event");
      consumerWaitsForEvent(new CudaEvent(stream.device, event), stream); // the producer closes the event
    }
  }
  const [device, home] = isDevice && stream !== undefined ? [stream.device, stream] : [null, null];
  const memory = MemoryBuffer.fromForeign(
    size === 0 ? 0n : ptr,
    size,
    device,
    isDevice ? "device" : "host",
    home,
    { address },
    { address, release },
    releaseBuffer,
  );
  taken.add(address);
  if (size === 0) memory.close();
  return new Handed(memory);
}

/** What is needed to return a buffer. */
interface Descriptor {
  readonly address: bigint;
  readonly release: bigint;
}

/** Returns a buffer, after the work enqueued on its home stream. */
function releaseBuffer(_: bigint, stream: CudaStream | null, { address, release }: Descriptor): void {
  if (stream !== null) hostWaitsBeforeReturn(stream);
  taken.delete(address); // the producer may put its next struct there
  callRelease(release, address);
}

// law vortex/Handed: vortex/core/device_buffers
/** A buffer whose bytes are looked for on first use. */
class Handed implements OwnedBuffer {
  readonly size: number;
  readonly memory: MemoryBuffer;
  #bytes: Bytes | null = null;

  constructor(memory: MemoryBuffer) {
    this.memory = memory;
    this.size = memory.size;
  }

  hostBytes(): Bytes {
    if (this.size === 0) return noBytes;
    return this.#bytes ??= this.memory.device === null ? hostBytes(this.memory) : copied(this.memory);
  }

  close(): void {
    this.memory.close();
  }
}

/** Bytes of memory that the host can access, aligned to 8: a copy if they are not. */
function hostBytes(memory: MemoryBuffer): Bytes {
  hostWaits(memory);
  const bytes = memory.bytes();
  if (memory.ptr % 8n !== 0n) return bytes.slice();
  memories.set(bytes.buffer, memory);
  return bytes;
}

/** The bytes of device memory, copied to the host in stream order. */
function copied(buffer: MemoryBuffer): Bytes {
  const layout = StridedLayout.dense([buffer.size], 1);
  const parts: ArrayParts = { buffer, offset: 0, layout, dtype: DType.from("uint8"), readonly: true };
  const copy = copyToHost(parts).buffer;
  const bytes = copy.bytes();
  memories.set(bytes.buffer, copy);
  return bytes;
}

/** This package's memory as a buffer of a node: its owner keeps it. */
export function handedMemory(memory: MemoryBuffer): HandedBuffer {
  return new Handed(memory);
}
