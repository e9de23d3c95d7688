/**
 * Messages of several parts, in UCXX's wire format: headers with the number of parts, their lengths, and whether each
 * was on a GPU; then the parts. All have the same tag.
 *
 * @module
 */
import { littleEndian } from "../ffi/mod.ts";

/** How many parts one header can describe. */
const maxPartsPerHeader = 100;
/** Offsets in a header: whether another header follows, how many parts, and for each whether on a GPU and its size. */
const at = { next: 0, count: 1, isCuda: 9, bytes: 9 + 4 * maxPartsPerHeader } as const;

/** Size of a header in bytes. */
export const partHeaderBytes = at.bytes + 8 * maxPartsPerHeader;

/** One part. */
export interface Part {
  readonly bytes: number;
  /** Whether the sender has it on a GPU. */
  readonly isCuda: boolean;
}

// law ucx/partHeaders: ucx/message_parts
/** The headers of a message with these parts: at least one. */
export function partHeaders(parts: readonly Part[]): Uint8Array<ArrayBuffer>[] {
  const headers: Uint8Array<ArrayBuffer>[] = [];
  for (let start = 0; start === 0 || start < parts.length; start += maxPartsPerHeader) {
    const header = new Uint8Array(new ArrayBuffer(partHeaderBytes));
    const view = new DataView(header.buffer);
    const described = parts.slice(start, start + maxPartsPerHeader);
    view.setUint8(at.next, start + maxPartsPerHeader < parts.length ? 1 : 0);
    view.setBigUint64(at.count, BigInt(described.length), littleEndian);
    described.forEach(({ bytes, isCuda }, i) => {
      view.setInt32(at.isCuda + 4 * i, isCuda ? 1 : 0, littleEndian);
      view.setBigUint64(at.bytes + 8 * i, BigInt(bytes), littleEndian);
    });
    headers.push(header);
  }
  return headers;
}

// law ucx/readPartHeader: ucx/message_parts
/**
 * Reads a header.
 *
 * @param header the memory received into
 * @param length how many bytes were received
 * @throws {TypeError} if it is not a header
 */
export function readPartHeader(
  header: Uint8Array<ArrayBuffer>,
  length: number,
): { readonly hasNext: boolean; readonly parts: Part[] } {
  const view = new DataView(header.buffer, header.byteOffset, header.length);
  const count = length === partHeaderBytes ? view.getBigUint64(at.count, littleEndian) : -1n;
  const next = view.getUint8(at.next);
  // Only a full header may be followed by another one: otherwise they could go on forever.
  if (
    count < 0n || count > BigInt(maxPartsPerHeader) || next > 1 || (next === 1 && count < BigInt(maxPartsPerHeader))
  ) {
    throw new TypeError(
      `Cannot receive parts: expected a header of ${partHeaderBytes} bytes for up to ${maxPartsPerHeader} of them, got ` +
        (count < 0n ? `a message of ${length} bytes` : "other bytes") + ". Was it sent by sendMany?",
    );
  }
  const parts = Array.from({ length: Number(count) }, (_, i) => {
    const bytes = view.getBigUint64(at.bytes + 8 * i, littleEndian); // beyond any memory if it is not exact
    return { bytes: Number(bytes), isCuda: view.getInt32(at.isCuda + 4 * i, littleEndian) !== 0 };
  });
  return { hasNext: next === 1, parts };
}
