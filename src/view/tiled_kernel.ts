/**
 * Copies through tiles in shared memory, word by word.
 *
 * @module
 */
import type { Tiled } from "./copy_plan.ts";
import type { CopyProblem } from "./copy_problem.ts";
import { advance, type CopyKernel, load, moves, pointers, store, widened } from "./kernel_parts.ts";
import { accessOf, converted } from "./ptx_conversion.ts";
import { PtxWriter } from "./ptx_writer.ts";
import { tileOf, tilesOf } from "./tiles.ts";

const threads = 256;

/**
 * Threads side by side read words that lie side by side in the source, and write words that lie side by side in the
 * destination; between the two the tile is turned over. Its rows stand in shared memory one word longer than needed: so no
 * two of the threads meet in a bank. Elements that are converted are converted when they leave the tile.
 */
export function tiledKernel(problem: CopyProblem, { along, side }: Tiled): CopyKernel {
  const { conversion, word: size, fromWord: fromSize } = problem;
  const [read, written] = conversion === null
    ? [moves[size], moves[size]]
    : [accessOf(conversion.from, fromSize), accessOf(conversion.to, size)];
  const tiles = tilesOf(problem, along, side);
  const { across, down } = tiles;
  const pitch = (side + 1) * fromSize;
  const rows = threads / side; // of threads: each moves a row of words

  const ptx = new PtxWriter();
  const { source, target, acrossStart, downStart } = tileOf(ptx, pointers(ptx), problem, tiles);
  const thread = ptx.make("r", "mov.u32 $, %tid.x");
  const column = ptx.make("r", `and.b32 $, ${thread}, ${side - 1}`);
  const row = ptx.make("r", `shr.u32 $, ${thread}, ${Math.log2(side)}`);
  const [column64, row64] = [widened(ptx, column), widened(ptx, row)];
  const base = ptx.make("r", "mov.u32 $, tile");

  // Reading: this thread's word of the rows `row`, `row + rows`, ...
  const readAcross = ptx.make("d", `add.s64 $, ${acrossStart}, ${column64}`);
  const readDown = ptx.make("d", `add.s64 $, ${downStart}, ${row64}`);
  const readInside = ptx.make("p", `setp.lt.u64 $, ${readAcross}, ${across.extent}`);
  let at = advance(ptx, advance(ptx, source, readAcross, across.from * fromSize), readDown, down.from * fromSize);
  const loaded = Array.from({ length: side / rows }, (_, i) => {
    if (i > 0) at = ptx.make("d", `add.s64 $, ${at}, ${rows * down.from * fromSize}`);
    const index = ptx.make("d", `add.s64 $, ${readDown}, ${i * rows}`);
    const inside = ptx.make("p", `setp.lt.and.u64 $, ${index}, ${down.extent}, ${readInside}`);
    return load(ptx, "global", read, at, `@${inside} `);
  });
  const columnAt = ptx.make("r", `mad.lo.u32 $, ${column}, ${fromSize}, ${base}`);
  const storeAt = ptx.make("r", `mad.lo.u32 $, ${row}, ${pitch}, ${columnAt}`);
  loaded.forEach((value, i) => store(ptx, "shared", read, `${storeAt}+${i * rows * pitch}`, value));
  ptx.line("bar.sync 0");

  // Writing: of the columns `row`, `row + rows`, ... the word of the row `column`.
  const writeDown = ptx.make("d", `add.s64 $, ${downStart}, ${column64}`);
  const writeAcross = ptx.make("d", `add.s64 $, ${acrossStart}, ${row64}`);
  const writeInside = ptx.make("p", `setp.lt.u64 $, ${writeDown}, ${down.extent}`);
  let into = advance(ptx, advance(ptx, target, writeDown, down.to * size), writeAcross, across.to * size);
  const turnedAt = ptx.make("r", `mad.lo.u32 $, ${column}, ${pitch}, ${base}`);
  const loadAt = ptx.make("r", `mad.lo.u32 $, ${row}, ${fromSize}, ${turnedAt}`);
  for (let i = 0; i < side / rows; i++) {
    if (i > 0) into = ptx.make("d", `add.s64 $, ${into}, ${rows * across.to * size}`);
    const value = load(ptx, "shared", read, `${loadAt}+${i * rows * fromSize}`);
    const index = ptx.make("d", `add.s64 $, ${writeAcross}, ${i * rows}`);
    const inside = ptx.make("p", `setp.lt.and.u64 $, ${index}, ${across.extent}, ${writeInside}`);
    const result = conversion === null ? value : converted(ptx, conversion, value);
    store(ptx, "global", written, into, result, `@${inside} `);
  }
  return { ptx: ptx.program("copy", side * pitch), grid: tiles.blocks, block: threads };
}
