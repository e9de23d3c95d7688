/** Views of bytes as words, of more bytes than 31 bits count: nothing of them is touched. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { HostMemoryResource } from "../../../mod.ts";
import { isValid } from "../../../src/vortex/bits.ts";
import { indicesOf, smallWords, words32 } from "../../../src/vortex/numeric/words.ts";

test("2 GiB and 4 GiB have as many words as a few bytes have, by their size", () => {
  using memory = new HostMemoryResource().allocate(2 ** 32);
  const all = memory.bytes();
  for (const size of [0, 7, 8, 2 ** 31 - 4, 2 ** 31, 2 ** 32 - 1, 2 ** 32]) {
    const bytes = all.subarray(0, size);
    const [halves, words] = [Math.floor(size / 2), Math.floor(size / 4)];
    assertEquals([words32(bytes).length, smallWords(bytes, 16).length, smallWords(bytes, 32).length], [
      words,
      halves,
      words,
    ]);
    assertEquals([indicesOf(bytes, 16).length, indicesOf(bytes, 32).length], [halves, words]);
  }
});

test("rows that 31 bits cannot count are valid where their bits are set", () => {
  using memory = new HostMemoryResource().allocate(2 ** 29);
  const validity = memory.bytes();
  const rows = [0, 9, 2 ** 31, 2 ** 31 + 9, 2 ** 32 - 1];
  for (const row of rows) validity[Math.floor(row / 8)] = 1 << row % 8;
  for (const row of rows) {
    assertEquals(
      [isValid(validity, row), isValid(validity, row % 2 === 0 ? row + 1 : row - 1)],
      [true, false],
      `${row}`,
    );
  }
});
