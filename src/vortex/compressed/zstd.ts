/**
 * Zstandard as the runtime provides it.
 *
 * @module
 */
import type { Fail } from "../error.ts";
import type { ZstdOptions } from "node:zlib";
import { nodeBuiltin } from "../../ffi/mod.ts";
import { readZstdFrame } from "./zstd_frame.ts";

/**
 * Decompresses frames, one after another.
 *
 * @param sizes the expected decompressed size of each frame in bytes
 * @param out exactly large enough for all contents
 * @param dictionary the dictionary that the frames share; empty if they have none
 */
export function decompressZstd(
  frames: readonly Uint8Array[],
  sizes: readonly number[],
  dictionary: Uint8Array,
  out: Uint8Array,
  fail: Fail,
): void {
  if (dictionary.length > 0 && !hasDictionaries()) {
    fail(
      "its frames share a dictionary, and zstd of this runtime's node:zlib cannot use one: decode it in Bun, " +
        "or write it without a dictionary",
    );
  }
  let at = 0;
  // law vortex/compressed/decompressZstd: vortex/compressed/zstd, vortex/compressed/malformed
  frames.forEach((frame, i) => {
    const size = sizes[i] ?? 0;
    const { contentSize, dictionaryId } = readZstdFrame(frame, fail);
    if (contentSize !== size) fail(`zstd frame ${i} holds ${contentSize} bytes, expected ${size}`);
    if (dictionaryId !== 0 && dictionary.length === 0) fail(`zstd frame ${i} needs the dictionary ${dictionaryId}`);
    const content = decompress(
      frame,
      size,
      dictionary,
      (why) => fail(`zstd frame ${i} cannot be decompressed: ${why}`),
    );
    if (content.length !== size) fail(`zstd frame ${i} decompresses to ${content.length} bytes, expected ${size}`);
    out.set(content, at);
    at += size;
  });
}

function decompress(frame: Uint8Array, size: number, dictionary: Uint8Array, fail: Fail): Uint8Array {
  try {
    return nodeBuiltin("node:zlib").zstdDecompressSync(frame, {
      maxOutputLength: Math.max(1, size),
      ...(dictionary.length > 0 ? { dictionary } : {}),
    });
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error));
  }
}

let knowsDictionaries: boolean | undefined;

// law vortex/compressed/hasDictionaries: vortex/compressed/zstd
/** Whether the runtime uses the dictionary it is passed; a runtime that does not silently ignores it. */
export function hasDictionaries(): boolean {
  if (knowsDictionaries === undefined) {
    const { zstdCompressSync, zstdDecompressSync } = nodeBuiltin("node:zlib");
    const dictionary = new TextEncoder().encode("what both sides know need not be said".repeat(4));
    const known: ZstdOptions & { readonly dictionary: Uint8Array } = { dictionary }; // missing from Deno's own types
    const compressed = zstdCompressSync(dictionary, known);
    // If the dictionary was used, the output is much shorter than without it, and decompresses only with it.
    const isShort = compressed.length < zstdCompressSync(dictionary).length;
    knowsDictionaries = isShort && zstdDecompressSync(compressed, known).length === dictionary.length;
  }
  return knowsDictionaries;
}
