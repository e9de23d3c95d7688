/**
 * Random sequences of all calls that copy or fill bytes, on four pieces of memory; and the bytes that they must leave
 * there.
 *
 * @module
 */
import {
  CU_MEMORYTYPE,
  CU_STREAM,
  CUDA_MEMCPY2D_v2,
  CUDA_MEMCPY3D_PEER,
  CUDA_MEMCPY3D_v2,
} from "../../bindings/cuda_types.ts";
import type { CudaDriver } from "../../src/driver/driver.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { fc } from "./property.ts";
import { Raw } from "./raw_driver.ts";

/** Bytes of each piece. */
const size = 2048;

/** The pieces: two on a device, one on the host that is page-locked, one that is not. */
const places = ["device", "other", "pinned", "pageable"] as const;
type Place = (typeof places)[number];

const isOnDevice = (place: Place) => place === "device" || place === "other";

/** A box of bytes in a piece. */
interface Corner {
  readonly place: Place;
  readonly x: number;
  readonly y: number;
  readonly z: number;
  /** Bytes from row to row. */
  readonly pitch: number;
  /** Rows from slice to slice. */
  readonly rows: number;
}

/** A call. */
export interface ByteCall {
  readonly kind: "copy" | "rectangle" | "box" | "fill" | "fill rectangle";
  readonly variant: number;
  readonly to: Corner;
  readonly from: Corner;
  readonly width: number;
  readonly height: number;
  readonly depth: number;
  readonly value: number;
  /** Bytes of the value of a fill. */
  readonly unit: 1 | 2 | 4;
  readonly isAsync: boolean;
}

const corner: fc.Arbitrary<Corner> = fc.record({
  place: fc.constantFrom(...places),
  x: fc.nat(15),
  y: fc.nat(2),
  z: fc.nat(2),
  pitch: fc.integer({ min: 64, max: 80 }),
  rows: fc.integer({ min: 4, max: 5 }),
});

/** Calls that stay inside their pieces and overlap nothing. */
export const byteCalls: fc.Arbitrary<readonly ByteCall[]> = fc.array(
  fc.record({
    kind: fc.constantFrom("copy", "rectangle", "box", "fill", "fill rectangle"),
    variant: fc.nat(5),
    to: corner,
    from: corner,
    width: fc.integer({ min: 1, max: 16 }),
    height: fc.integer({ min: 1, max: 2 }),
    depth: fc.integer({ min: 1, max: 2 }),
    value: fc.nat(0xffff_ffff),
    unit: fc.constantFrom(1, 2, 4),
    isAsync: fc.boolean(),
  }).map((call): ByteCall => call).filter(({ kind, to, from }) => kind.startsWith("fill") || to.place !== from.place),
  { minLength: 1, maxLength: 30 },
);

/** Start and pitch of a fill: multiples of its unit, and never in memory that the driver does not know. */
function aligned({ to, unit }: ByteCall): Corner {
  const [x, pitch] = [to.x - to.x % unit, to.pitch - to.pitch % unit];
  return { ...to, x, pitch, place: to.place === "pageable" ? "pinned" : to.place };
}

/** Offsets of the bytes of a box, in order. */
function* offsets({ x, y, z, pitch, rows }: Corner, width: number, height: number, depth: number): Generator<number> {
  for (let slice = 0; slice < depth; slice++) {
    for (let row = 0; row < height; row++) {
      for (let byte = 0; byte < width; byte++) yield ((z + slice) * rows + y + row) * pitch + x + byte;
    }
  }
}

function start(): Map<Place, Uint8Array> {
  return new Map(places.map((place, i) => [place, new Uint8Array(size).map((_, at) => (at * 7 + i * 50) % 256)]));
}

/** The bytes that the calls must leave in the four pieces. */
export function referenceBytes(calls: readonly ByteCall[]): number[][] {
  const memory = start();
  const at = (place: Place) => memory.get(place) ?? new Uint8Array();
  for (const call of calls) {
    const { kind, to, from, width, value, unit } = call;
    const height = kind === "copy" || kind === "fill" ? 1 : call.height;
    const depth = kind === "box" ? call.depth : 1;
    if (kind === "fill" || kind === "fill rectangle") {
      const target = aligned(call);
      let i = 0;
      for (const offset of offsets({ ...target, z: 0 }, width * unit, height, 1)) {
        at(target.place)[offset] = Math.floor(value / 256 ** (i++ % unit)) % 256;
      }
      continue;
    }
    const flat = kind === "box" ? {} : { z: 0 };
    const sources = [...offsets({ ...from, ...flat }, width, height, depth)].map((offset) => at(from.place)[offset]);
    let i = 0;
    for (const offset of offsets({ ...to, ...flat }, width, height, depth)) at(to.place)[offset] = sources[i++] ?? 0;
  }
  return places.map((place) => Array.from(at(place)));
}

/** Makes the calls; returns the bytes that they leave. */
export function runByteCalls(driver: CudaDriver, calls: readonly ByteCall[]): number[][] {
  using raw = new Raw(driver);
  raw.use(0);
  const stream = raw.stream(CU_STREAM.NON_BLOCKING);
  const device = () => {
    const address = raw.word((out) => driver.memory.cuMemAlloc_v2(out, BigInt(size)));
    raw.onClose(() => driver.memory.cuMemFree_v2(address));
    return address;
  };
  const addresses = new Map<Place, bigint>([
    ["device", device()],
    ["other", device()],
    ["pinned", raw.pinned(size).address],
    ["pageable", raw.pageable(size).address],
  ]);
  const at = (place: Place) => addresses.get(place) ?? 0n;
  const bytes = (place: Place) => new Uint8Array(ffiPort().memory(at(place), size));
  const window = raw.pinned(size);
  for (const [place, content] of start()) {
    if (isOnDevice(place)) {
      window.bytes.set(content);
      raw.ok(driver.copy.cuMemcpyHtoD_v2(at(place), window.address, BigInt(size)));
    } else bytes(place).set(content);
  }
  for (const call of calls) {
    raw.ok(make(driver, raw, call, at, stream));
    raw.ok(driver.context.cuCtxSynchronize());
  }
  return places.map((place) => {
    if (!isOnDevice(place)) return Array.from(bytes(place));
    raw.ok(driver.copy.cuMemcpyDtoH_v2(window.address, at(place), BigInt(size)));
    return Array.from(window.bytes);
  });
}

function make(driver: CudaDriver, raw: Raw, call: ByteCall, at: (place: Place) => bigint, stream: bigint): number {
  const { kind, to, from, width, height, value, unit, isAsync, variant } = call;
  const { copy, copyPitched, fill, fillPitched } = driver;
  const flat = ({ place, x, y, pitch }: Corner) => at(place) + BigInt(y * pitch + x);
  const context = raw.context(0);
  switch (kind) {
    case "fill": {
      const [target, n] = [flat(aligned(call)), BigInt(width)];
      const bits = value % 256 ** unit;
      if (unit === 1) {
        return isAsync ? fill.cuMemsetD8Async(target, bits, n, stream) : fill.cuMemsetD8_v2(target, bits, n);
      }
      if (unit === 2) {
        return isAsync ? fill.cuMemsetD16Async(target, bits, n, stream) : fill.cuMemsetD16_v2(target, bits, n);
      }
      return isAsync ? fill.cuMemsetD32Async(target, bits, n, stream) : fill.cuMemsetD32_v2(target, bits, n);
    }
    case "fill rectangle": {
      const corner = aligned(call);
      const args = [flat(corner), BigInt(corner.pitch), value % 256 ** unit, BigInt(width), BigInt(height)] as const;
      if (unit === 1) {
        return isAsync ? fillPitched.cuMemsetD2D8Async(...args, stream) : fillPitched.cuMemsetD2D8_v2(...args);
      }
      if (unit === 2) {
        return isAsync ? fillPitched.cuMemsetD2D16Async(...args, stream) : fillPitched.cuMemsetD2D16_v2(...args);
      }
      return isAsync ? fillPitched.cuMemsetD2D32Async(...args, stream) : fillPitched.cuMemsetD2D32_v2(...args);
    }
    case "copy": {
      const [target, source, n] = [flat(to), flat(from), BigInt(width)];
      const [up, down] = [isOnDevice(to.place), isOnDevice(from.place)];
      if (up && down && variant < 2) {
        return isAsync
          ? copy.cuMemcpyPeerAsync(target, context, source, context, n, stream)
          : copy.cuMemcpyPeer(target, context, source, context, n);
      }
      if (variant < 3 || up === down && !up) {
        return isAsync ? copy.cuMemcpyAsync(target, source, n, stream) : copy.cuMemcpy(target, source, n);
      }
      if (up && down) {
        return isAsync ? copy.cuMemcpyDtoDAsync_v2(target, source, n, stream) : copy.cuMemcpyDtoD_v2(target, source, n);
      }
      if (up) {
        return isAsync ? copy.cuMemcpyHtoDAsync_v2(target, source, n, stream) : copy.cuMemcpyHtoD_v2(target, source, n);
      }
      return isAsync ? copy.cuMemcpyDtoHAsync_v2(target, source, n, stream) : copy.cuMemcpyDtoH_v2(target, source, n);
    }
    case "rectangle": {
      const box = raw.arena.struct(CUDA_MEMCPY2D_v2);
      describe(box, call, at);
      if (isAsync) return copyPitched.cuMemcpy2DAsync_v2(box.$address, stream);
      return variant < 3 ? copyPitched.cuMemcpy2D_v2(box.$address) : copyPitched.cuMemcpy2DUnaligned_v2(box.$address);
    }
    case "box": {
      const isPeer = variant < 2 && isOnDevice(to.place) && isOnDevice(from.place);
      const box = raw.arena.struct(isPeer ? CUDA_MEMCPY3D_PEER : CUDA_MEMCPY3D_v2);
      describe(box, call, at);
      Object.assign(box, { srcZ: from.z, srcHeight: from.rows, dstZ: to.z, dstHeight: to.rows, Depth: call.depth });
      if (isPeer) Object.assign(box, { srcContext: context, dstContext: context });
      if (isPeer) {
        return isAsync
          ? copyPitched.cuMemcpy3DPeerAsync(box.$address, stream)
          : copyPitched.cuMemcpy3DPeer(box.$address);
      }
      return isAsync ? copyPitched.cuMemcpy3DAsync_v2(box.$address, stream) : copyPitched.cuMemcpy3D_v2(box.$address);
    }
  }
}

/** Fields that all descriptors of a box have. Fields that are not named are 0. */
function describe(box: object, { to, from, width, height }: ByteCall, at: (place: Place) => bigint): void {
  Object.assign(box, {
    ...{ srcXInBytes: from.x, srcY: from.y, srcPitch: from.pitch, dstXInBytes: to.x, dstY: to.y, dstPitch: to.pitch },
    ...{ WidthInBytes: width, Height: height },
    ...(isOnDevice(from.place)
      ? { srcMemoryType: CU_MEMORYTYPE.DEVICE, srcDevice: at(from.place) }
      : { srcMemoryType: CU_MEMORYTYPE.HOST, srcHost: at(from.place) }),
    ...(isOnDevice(to.place)
      ? { dstMemoryType: CU_MEMORYTYPE.DEVICE, dstDevice: at(to.place) }
      : { dstMemoryType: CU_MEMORYTYPE.HOST, dstHost: at(to.place) }),
  });
}
