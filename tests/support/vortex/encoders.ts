/**
 * Encoders of columns of words, written from what the encodings mean, without any decoder's code. Whatever a reader may
 * not look at is filled with values that would show.
 *
 * @module
 */
import { transposed, wordOf } from "./fastlanes.ts";

const modulo = (word: bigint, bits: number) => BigInt.asUintN(bits, word);

/** Differences of each lane in transposed order; `first` chooses the base of a lane, whatever its first word is. */
export function encodeDelta(
  words: readonly bigint[],
  bits: number,
  first: (word: bigint) => bigint,
): { readonly deltas: bigint[]; readonly bases: bigint[] } {
  const blocks = Math.ceil(words.length / 1024);
  const deltas = Array.from({ length: 1024 * blocks }, () => 0n);
  const bases: bigint[] = [];
  for (let block = 0; block < blocks; block++) {
    for (let lane = 0; lane < 1024 / bits; lane++) {
      let previous = first(words[1024 * block + transposed(lane)] ?? 0n);
      bases.push(previous);
      for (let row = 0; row < bits; row++) {
        const place = wordOf(row, lane);
        const word = words[1024 * block + transposed(place)] ?? 7n;
        deltas[1024 * block + place] = modulo(word - previous, bits);
        previous = word;
      }
    }
  }
  return { deltas, bases };
}

/** A dictionary for each block of 1024 words; offsets count from `origin`. */
export function encodeRle(
  words: readonly bigint[],
  origin: number,
): { readonly values: bigint[]; readonly indices: number[]; readonly starts: number[] } {
  const [values, indices, starts]: [bigint[], number[], number[]] = [[], [], []];
  for (let block = 0; block < words.length; block += 1024) {
    starts.push(origin + values.length);
    const here = words.slice(block, block + 1024);
    const known = [...new Set(here)];
    values.push(...known);
    for (let i = 0; i < 1024; i++) {
      const word = here[i];
      // In a block with one value the indices are meaningless.
      indices.push(known.length === 1 ? i % 256 : word === undefined ? 0 : known.indexOf(word));
    }
  }
  return { values, indices, starts };
}

/** Runs of equal words, each with its end. */
export function encodeRuns(words: readonly bigint[]): { readonly values: bigint[]; readonly ends: number[] } {
  const [values, ends]: [bigint[], number[]] = [[], []];
  for (const [index, word] of words.entries()) {
    if (index === 0 || words[index - 1] !== word) values.push(word);
    else ends.pop();
    ends.push(index + 1);
  }
  return { values, ends };
}
