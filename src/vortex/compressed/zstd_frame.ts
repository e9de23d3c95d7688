/**
 * The outer structure of a Zstandard frame (RFC 8878): enough to know, before decompression, how large its content is
 * and that the frame is complete. The runtimes differ in how they treat truncated frames and trailing bytes.
 *
 * @module
 */
import type { Fail } from "../error.ts";

const MAGIC = 0xfd2f_b528;

/** The size of the dictionary id in bytes, by two bits of the descriptor. */
const ID_BYTES = [0, 1, 2, 4] as const;

/** What a frame declares about itself. */
export interface ZstdFrame {
  /** The size of its content in bytes. */
  readonly contentSize: number;
  /** The id of the dictionary it needs; 0 if it needs none or does not say which. */
  readonly dictionaryId: number;
}

// law vortex/compressed/readZstdFrame: vortex/compressed/zstd
/**
 * Reads a frame's header and walks its blocks.
 *
 * @param bytes exactly one frame
 */
export function readZstdFrame(bytes: Uint8Array, fail: Fail): ZstdFrame {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  /** Advances, and returns the position before. */
  const skip = (count: number): number => {
    if (at + count > bytes.length) fail(`a zstd frame is truncated after ${bytes.length} bytes`);
    at += count;
    return at - count;
  };
  const little = (count: number): number => {
    const from = skip(count);
    let value = 0;
    for (let i = 0; i < count; i++) value += (bytes[from + i] ?? 0) * 2 ** (8 * i);
    return value;
  };
  if (bytes.length < 5 || view.getUint32(skip(4), true) !== MAGIC) fail("bytes that do not begin with a zstd frame");
  const descriptor = little(1);
  if ((descriptor & 0x08) !== 0) fail("a zstd frame with a reserved bit set");
  const isSingleSegment = (descriptor & 0x20) !== 0;
  if (!isSingleSegment) skip(1); // the window
  const dictionaryId = little(ID_BYTES[descriptor & 3] ?? 0);
  const contentSize = readContentSize(descriptor >> 6, isSingleSegment, little, fail);
  for (let isLast = false; !isLast;) {
    const header = little(3);
    isLast = (header & 1) === 1;
    const type = header >> 1 & 3;
    if (type === 3) fail("a zstd frame with a block of a reserved type");
    skip(type === 1 ? 1 : header >> 3); // an RLE block stores its byte once
  }
  if ((descriptor & 0x04) !== 0) skip(4); // the checksum
  if (at !== bytes.length) fail(`a zstd frame of ${at} bytes in a buffer of ${bytes.length}`);
  return { contentSize, dictionaryId };
}

function readContentSize(
  flag: number,
  isSingleSegment: boolean,
  little: (count: number) => number,
  fail: Fail,
): number {
  switch (flag) {
    case 0:
      return isSingleSegment ? little(1) : fail("a zstd frame without the size of its content");
    case 1:
      return little(2) + 256;
    case 2:
      return little(4);
    default:
      return little(8);
  }
}
