/**
 * Copies of narrow elements through tiles in shared memory: several are moved at a time, and turned over in registers.
 *
 * @module
 */
import type { Tiled } from "./copy_plan.ts";
import type { CopyProblem } from "./copy_problem.ts";
import { advance, type CopyKernel, load, plus, pointers, store, widened } from "./kernel_parts.ts";
import type { Access } from "./ptx_conversion.ts";
import { PtxWriter, type Register } from "./ptx_writer.ts";
import { tileOf, tilesOf } from "./tiles.ts";

/** Bytes of a register, and of a bank of shared memory. */
const bank = 4;

/** How so many registers are moved. */
const runs: { readonly [count in 1 | 2 | 4]: Access } = {
  1: { type: "u32", kind: "r", count: 1 },
  2: { type: "v2.u32", kind: "r", count: 2 },
  4: { type: "v4.u32", kind: "r", count: 4 },
};

/** Registers along each row and each column of a tile: as many as there are banks. */
const rowWords = 32;
const rowBytes = rowWords * bank;

const threads = 256;

/**
 * A tile has as many rows as elements in a row, which is 32 registers long. A thread reads `run` registers of each of `lanes`
 * rows that are neighbours, turns the squares of `lanes` by `lanes` elements in them over, and puts what is then parts of
 * columns into shared memory, where columns lie as the destination wants them. Columns lie one after another without gaps;
 * within one, register q is at place `q xor swizzle`, where the swizzle is the first register of the run that the column was
 * read in. So threads side by side neither write nor read the same bank.
 */
export function turnedKernel(problem: CopyProblem, { along, bytes, side }: Tiled): CopyKernel {
  const { word: size } = problem;
  const lanes = bank / size; // elements are of one or two bytes
  const run = bytes / bank as 1 | 2 | 4; // the plan moves more than a word at a time
  const perRow = rowWords / run; // threads
  const groups = threads / perRow; // of `lanes` rows, read in one go
  const goes = rowWords / groups;
  const tiles = tilesOf(problem, along, side);
  const { across, down } = tiles;

  const ptx = new PtxWriter();
  const { source, target, acrossStart, downStart } = tileOf(ptx, pointers(ptx), problem, tiles);
  const thread = ptx.make("r", "mov.u32 $, %tid.x");
  const column = ptx.make("r", `and.b32 $, ${thread}, ${perRow - 1}`);
  const row = ptx.make("r", `shr.u32 $, ${thread}, ${Math.log2(perRow)}`);
  const [column64, row64] = [widened(ptx, column), widened(ptx, row)];
  const base = ptx.make("r", "mov.u32 $, tile");
  const index = (start: Register, part: Register, count: number) =>
    ptx.make("d", `mad.lo.s64 $, ${part}, ${count}, ${start}`);
  const guard = (index: Register, extent: number, also: Register) =>
    `@${ptx.make("p", `setp.lt.and.u64 $, ${index}, ${extent}, ${also}`)} `;

  const readAcross = index(acrossStart, column64, run * lanes);
  const readDown = index(downStart, row64, lanes);
  const readInside = ptx.make("p", `setp.lt.u64 $, ${readAcross}, ${across.extent}`);
  const origin = advance(ptx, advance(ptx, source, readAcross, across.from * size), readDown, down.from * size);
  const loaded = Array.from({ length: goes }, (_, go) => {
    const first = go * groups * lanes;
    const inside = guard(plus(ptx, readDown, first), down.extent, readInside);
    return Array.from({ length: lanes }, (_, lane) => {
      const at = plus(ptx, origin, (first + lane) * down.from * size);
      return load(ptx, "global", runs[run], at, inside);
    });
  });
  const swizzle = ptx.make("r", `mul.lo.u32 $, ${column}, ${run}`);
  const place = ptx.make("r", `xor.b32 $, ${row}, ${swizzle}`);
  const columnsAt = ptx.make("r", `mad.lo.u32 $, ${column}, ${run * lanes * rowBytes}, ${base}`);
  loaded.forEach((words, go) => {
    // The group is `row + go * groups`, of which the second part changes no bit of the first.
    const shifted = ptx.make("r", `xor.b32 $, ${place}, ${go * groups}`);
    const storeAt = ptx.make("r", `mad.lo.u32 $, ${shifted}, ${bank}, ${columnsAt}`);
    for (let i = 0; i < run; i++) {
      turned(ptx, words.map((word) => word[i] as Register)).forEach((part, lane) => { // a run has so many registers
        store(ptx, "shared", runs[1], `${storeAt}+${(i * lanes + lane) * rowBytes}`, [part]);
      });
    }
  });
  ptx.line("bar.sync 0");

  // Each thread writes its run of some columns that are neighbours.
  const columns = lanes * goes;
  const swizzled = lanes * run; // columns with the same swizzle
  const writeDown = index(downStart, column64, run * lanes);
  const writeAcross = index(acrossStart, row64, columns);
  const writeInside = ptx.make("p", `setp.lt.u64 $, ${writeDown}, ${down.extent}`);
  const end = advance(ptx, advance(ptx, target, writeDown, down.to * size), writeAcross, across.to * size);
  const firstColumn = ptx.make("r", `mul.lo.u32 $, ${row}, ${columns}`);
  const firstSwizzle = ptx.make("r", `shr.u32 $, ${firstColumn}, ${Math.log2(swizzled)}`);
  const firstRun = ptx.make("r", `xor.b32 $, ${column}, ${firstSwizzle}`);
  const firstAt = ptx.make("r", `mad.lo.u32 $, ${firstColumn}, ${rowBytes}, ${base}`);
  for (let i = 0; i < columns; i += lanes) {
    const inside = guard(plus(ptx, writeAcross, i), across.extent, writeInside);
    const here = ptx.make("r", `xor.b32 $, ${firstRun}, ${Math.floor(i / swizzled)}`);
    const loadAt = ptx.make("r", `mad.lo.u32 $, ${here}, ${bytes}, ${firstAt}`);
    for (let lane = 0; lane < lanes; lane++) {
      const word = load(ptx, "shared", runs[run], `${loadAt}+${(i + lane) * rowBytes}`);
      store(ptx, "global", runs[run], plus(ptx, end, (i + lane) * across.to * size), word, inside);
    }
  }
  return { ptx: ptx.program("copy", side * rowBytes), grid: tiles.blocks, block: threads };
}

/** Registers of as many elements each, turned over: register i of the result has element i of every one. */
function turned(ptx: PtxWriter, [a, b, c, d]: readonly Register[]): Register[] {
  const permute = (one: unknown, other: unknown, selector: string) =>
    ptx.make("r", `prmt.b32 $, ${one}, ${other}, 0x${selector}`);
  if (c === undefined) return [permute(a, b, "5410"), permute(a, b, "7632")];
  // Bytes: first pairs of registers, then pairs of pairs.
  const [ab0, ab1] = [permute(a, b, "5140"), permute(a, b, "7362")];
  const [cd0, cd1] = [permute(c, d, "5140"), permute(c, d, "7362")];
  return [
    permute(ab0, cd0, "5410"),
    permute(ab0, cd0, "7632"),
    permute(ab1, cd1, "5410"),
    permute(ab1, cd1, "7632"),
  ];
}
