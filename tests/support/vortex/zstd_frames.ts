/**
 * Zstandard frames with every kind of header: with blocks from the runtime's own compressor, or blocks that need none.
 *
 * @module
 */
import { zstdCompressSync } from "node:zlib";
import { joined } from "./nodes.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** How a frame is written. */
export interface FrameForm {
  /** Raw blocks, blocks of a repeated byte (where all bytes are the same), or compressed blocks. */
  readonly blocks: "raw" | "repeated" | "compressed";
  /** Bytes of the size in the header; raised if too few. */
  readonly sizeBytes: 1 | 2 | 4 | 8;
  readonly isSingleSegment: boolean;
}

/** A frame with its content. */
export function zstdFrame(
  content: Bytes,
  { blocks, sizeBytes, isSingleSegment }: FrameForm,
  dictionary?: Bytes,
): Bytes {
  const least = content.length < 256 && isSingleSegment ? 1 : content.length >= 256 && content.length < 65792 ? 2 : 4;
  let size = Math.max(sizeBytes, least);
  if (size === 2 && least !== 2) size = 4; // two bytes begin at 256
  if (size === 1 && !isSingleSegment) size = 4;
  const flag = { 1: 0, 2: 1, 4: 2, 8: 3 }[size] ?? 0;
  const header = Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, flag << 6 | (isSingleSegment ? 0x20 : 0));
  const window = isSingleSegment ? new Uint8Array(0) : Uint8Array.of(0x60); // 4 MiB
  return joined(
    header,
    window,
    little(content.length - (size === 2 ? 256 : 0), size),
    bodyOf(content, blocks, dictionary),
  );
}

function little(value: number, bytes: number): Bytes {
  return Uint8Array.from({ length: bytes }, (_, i) => Math.floor(value / 2 ** (8 * i)) % 256);
}

function bodyOf(content: Bytes, blocks: FrameForm["blocks"], dictionary: Bytes | undefined): Bytes {
  if (blocks === "compressed") return compressedBlocks(content, dictionary);
  const isRepeated = blocks === "repeated" && content.every((byte) => byte === content[0]);
  const parts: Bytes[] = [];
  // At most 128 KiB per block; an empty one ends the frame.
  for (let at = 0; at < content.length; at += 100_000) {
    const part = content.slice(at, at + 100_000);
    parts.push(little(part.length << 3 | Number(isRepeated) << 1, 3), isRepeated ? part.slice(0, 1) : part);
  }
  return joined(...parts, little(1, 3));
}

/** What the runtime's compressor writes after its own header, without a checksum. */
function compressedBlocks(content: Bytes, dictionary: Bytes | undefined): Bytes {
  const frame = Uint8Array.from(zstdCompressSync(content, dictionary === undefined ? {} : { dictionary }));
  const descriptor = frame[4] ?? 0;
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const sizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0;
  const idBytes = [0, 1, 2, 4][descriptor & 3] ?? 0;
  if ((descriptor & 4) !== 0) throw new Error("A frame with a checksum was not asked for");
  const start = 5 + (isSingleSegment ? 0 : 1) + idBytes + sizeBytes;
  // Deno 2.9 appends an empty frame of 9 bytes to one of more than 128 KiB.
  const isTwo = frame.length > start + 9 && frame.slice(-9).every((byte, i) => byte === emptyFrame[i]);
  return frame.slice(start, isTwo ? -9 : undefined);
}

/** One segment of no bytes, with one empty block, marked as the last. */
const emptyFrame = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x00, 0x01, 0x00, 0x00];
