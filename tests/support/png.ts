/**
 * Reads pictures: PNG with eight bits for each of red, green, blue and alpha, per the specification.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { inflateSync } from "node:zlib";

/** A picture. */
export interface Png {
  readonly width: number;
  readonly height: number;
  /** Four bytes for each pixel, row by row from the top. */
  readonly pixels: Uint8Array;
}

const signature = [137, 80, 78, 71, 13, 10, 26, 10];
/** Bytes of a pixel. */
const unit = 4;

/** Reads a picture of eight bits with alpha, not interlaced. */
export function readPng(bytes: Uint8Array): Png {
  assertEquals([...bytes.subarray(0, 8)], signature);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const packed: number[] = [];
  for (let at = 8; at < bytes.length;) {
    const length = view.getUint32(at);
    const name = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    if (name === "IDAT") packed.push(...bytes.subarray(at + 8, at + 8 + length));
    at += 12 + length;
  }
  const [width, height] = [view.getUint32(16), view.getUint32(20)];
  assertEquals([...bytes.subarray(24, 29)], [8, 6, 0, 0, 0]); // bits, colours, packing, filters, not interlaced
  const filtered = inflateSync(Uint8Array.from(packed));
  const stride = width * unit;
  assertEquals(filtered.length, height * (1 + stride));
  const pixels = new Uint8Array(height * stride);
  for (let y = 0; y < height; y++) {
    const kind = filtered[y * (1 + stride)] ?? 0;
    for (let x = 0; x < stride; x++) {
      const at = y * stride + x;
      const left = x < unit ? 0 : pixels[at - unit] ?? 0;
      const above = y === 0 ? 0 : pixels[at - stride] ?? 0;
      const corner = x < unit || y === 0 ? 0 : pixels[at - stride - unit] ?? 0;
      const expected = [0, left, above, (left + above) >> 1, nearest(left, above, corner)][kind] ?? NaN;
      pixels[at] = (filtered[y * (1 + stride) + 1 + x] ?? 0) + expected;
    }
  }
  return { width, height, pixels };
}

/** Whichever of the three is nearest to left + above - corner (Paeth). */
function nearest(left: number, above: number, corner: number): number {
  const sum = left + above - corner;
  const away = (one: number) => Math.abs(sum - one);
  if (away(left) <= away(above) && away(left) <= away(corner)) return left;
  return away(above) <= away(corner) ? above : corner;
}
