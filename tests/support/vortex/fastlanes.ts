/**
 * FastLanes' layouts, bit by bit as described: slow, and sharing nothing with the code under test.
 *
 * A block of 1024 words of T bits has 1024 / T lanes. Row r of lane l is word i(r, l) of the block, and the rows of a
 * lane, each of its lowest W bits, follow each other in the lane's stream of bits, low bits first. The k-th T bits of
 * that stream are the packed block's word k * lanes + l.
 *
 * @module
 */

const order = [0, 4, 2, 6, 1, 5, 3, 7];

/** The index in its block of a lane's row. */
export function wordOf(row: number, lane: number): number {
  return (order[Math.floor(row / 8)] ?? NaN) * 16 + (row % 8) * 128 + lane;
}

/** The position in column order of word i of a block in transposed order. */
export function transposed(i: number): number {
  return (i % 16) * 64 + (order[Math.floor(i / 16) % 8] ?? NaN) * 8 + Math.floor(i / 128);
}

/** Packs words, padded to whole blocks of 1024 with `filler`, to `width` bits. */
export function pack(words: readonly bigint[], bits: number, width: number, filler = 0n): Uint8Array<ArrayBuffer> {
  const lanes = 1024 / bits;
  const blocks = Math.ceil(words.length / 1024);
  const bytes = new Uint8Array(128 * width * blocks);
  for (let block = 0; block < blocks; block++) {
    for (let lane = 0; lane < lanes; lane++) {
      let stream = 0n;
      for (let row = 0; row < bits; row++) {
        const word = words[1024 * block + wordOf(row, lane)] ?? filler;
        stream |= BigInt.asUintN(width, word) << BigInt(row * width);
      }
      for (let k = 0; k < width; k++) {
        const word = BigInt.asUintN(bits, stream >> BigInt(k * bits));
        const at = 128 * width * block + (k * lanes + lane) * bits / 8;
        for (let byte = 0; byte < bits / 8; byte++) {
          bytes[at + byte] = Number(BigInt.asUintN(8, word >> BigInt(8 * byte)));
        }
      }
    }
  }
  return bytes;
}
