/**
 * pco's wrapped format: a header and chunks, each with metadata and pages of numbers.
 *
 * @module
 */
import type { Fail } from "../../error.ts";
import type { AnsTable } from "./ans_table.ts";
import { BitReader } from "./bit_reader.ts";
import { bitsOf, type PcoChunk, type PcoType, type PcoVariable, readPcoChunk, readPcoHeader } from "./chunk_meta.ts";
import { type DeltaDecoder, deltaDecoder } from "./delta.ts";
import { join, type NumberWords, store } from "./join.ts";
import { BATCH, type Latents, latents, PageVariable } from "./page_variable.ts";

/** The bytes of a chunk. */
export interface PcoChunkBytes {
  readonly meta: Uint8Array;
  readonly pages: readonly {
    readonly bytes: Uint8Array;
    /** The count of numbers in the page. */
    readonly length: number;
  }[];
}

/**
 * Decodes all chunks, one after another.
 *
 * @param words exactly large enough for all numbers
 * @param charge accounts for the additional memory that decoding needs; throws if it is too much
 */
export function decodePco(
  header: Uint8Array,
  chunks: readonly PcoChunkBytes[],
  type: PcoType,
  words: NumberWords,
  charge: (bytes: number) => void,
  fail: Fail,
): void {
  const version = readPcoHeader(header, fail);
  let at = 0;
  for (const { meta, pages } of chunks) {
    // law vortex/compressed/decodePco: vortex/compressed/malformed
    charge(CHUNK_BYTES + 2 * meta.length);
    const chunk = readPcoChunk(meta, type, version, fail);
    charge(tableBytes(chunk));
    for (const { bytes, length } of pages) {
      charge(PAGE_BYTES + bytes.length + (chunk.lookbacks === null ? 0 : 16 * length));
      readPage(chunk, bytes, length, words, at, fail);
      at += length;
    }
  }
}

/** Approximate additional memory for reading a chunk's metadata. */
const CHUNK_BYTES = 8192;

/** Approximate additional memory for reading a page. */
const PAGE_BYTES = 16384;

/** Memory of a chunk's tables; a few input bytes can make them large, but at most 2^14 states each. */
function tableBytes({ lookbacks, first, second }: PcoChunk): number {
  const sizeOf = (table: AnsTable | undefined): number => table === undefined ? 0 : 16 * table.nodes.length;
  return sizeOf(lookbacks ?? undefined) + sizeOf(first.table) + sizeOf(second?.table);
}

/** A variable of a page, and the decoder for its differences. */
interface Reading {
  readonly variable: PageVariable;
  readonly undelta: DeltaDecoder | null;
  /** The count of numbers stored in the page's header instead of its batches. */
  readonly states: number;
}

function readPage(
  chunk: PcoChunk,
  bytes: Uint8Array,
  length: number,
  words: NumberWords,
  start: number,
  fail: Fail,
): void {
  const reader = new BitReader(bytes, "a pco page", fail);
  const lookbacks = chunk.lookbacks === null ? null : new PageVariable(chunk.lookbacks);
  lookbacks?.readStates(reader);
  const first = open(chunk.first, reader, length, fail);
  const second = chunk.second === null ? null : open(chunk.second, reader, length, fail);
  reader.align();
  const { states } = chunk.first.delta;
  // law vortex/compressed/readPage: vortex/compressed/pco, vortex/compressed/malformed
  if (length > states && chunk.lookbacks?.hasBins === false) fail("a pco chunk without bins has lookbacks");
  for (let done = 0; done < length; done += BATCH) {
    const count = Math.min(BATCH, length - done);
    lookbacks?.read(reader, Math.max(0, Math.min(count, length - done - states)));
    readBatch(first, reader, count, length - done, lookbacks?.latents ?? null);
    if (second !== null) readBatch(second, reader, count, length - done, lookbacks?.latents ?? null);
    join(chunk.mode, chunk.type, first.variable.latents, second?.variable.latents ?? nothing, count, fail);
    store(chunk.type, first.variable.latents, count, words, start + done);
  }
  reader.align();
}

const nothing = latents(0);

function open({ table, delta }: PcoVariable, reader: BitReader, length: number, fail: Fail): Reading {
  const { states } = delta;
  if (states * table.bits > reader.left) fail(`a pco page of ${reader.left / 8} bytes begins with ${states} numbers`);
  const before = latents(states);
  for (let i = 0; i < states; i++) [before.low[i], before.high[i]] = reader.readWords(table.bits);
  const variable = new PageVariable(table);
  variable.readStates(reader);
  if (!table.hasBins && length > states) fail(`a pco chunk without bins has a page of ${length} numbers`);
  return { variable, undelta: deltaDecoder(delta, table.bits, before, length, fail), states };
}

function readBatch(
  { variable, undelta, states }: Reading,
  reader: BitReader,
  count: number,
  left: number,
  lookbacks: Latents | null,
): void {
  const read = Math.max(0, Math.min(count, left - states));
  variable.read(reader, read);
  undelta?.apply(variable.latents, count, read, lookbacks);
}

/** A view of `memory` as the words of `count` numbers. */
export function numberWords(memory: Uint8Array<ArrayBuffer>, type: PcoType, count: number): NumberWords {
  const bits = bitsOf(type);
  return bits === 16
    ? new Uint16Array(memory.buffer, memory.byteOffset, count)
    : new Int32Array(memory.buffer, memory.byteOffset, count * (bits / 32));
}
