/**
 * Tiles: squares of two axes that a block of threads moves, read along the one and written along the other.
 *
 * @module
 */
import type { CopyAxis, CopyProblem } from "./copy_problem.ts";
import { advance, takeApart } from "./kernel_parts.ts";
import type { PtxWriter, Register } from "./ptx_writer.ts";

/** How a problem is cut into tiles. */
export interface Tiles {
  /** Words along each side of a tile. */
  readonly side: number;
  /** The axis along which is read. */
  readonly across: CopyAxis;
  /** The axis along which is written. */
  readonly down: CopyAxis;
  /** All others. */
  readonly outer: readonly CopyAxis[];
  /** Tiles: one block of threads moves one. */
  readonly blocks: number;
}

/** Where a block's tile is: addresses of its index along the other axes, and its first indices along its own two. */
export interface Tile {
  readonly source: Register;
  readonly target: Register;
  readonly acrossStart: Register;
  readonly downStart: Register;
}

/** Cuts a problem. */
export function tilesOf({ axes }: CopyProblem, along: number, side: number): Tiles {
  const inner = axes.length - 1;
  const [across, down] = [axes[along] as CopyAxis, axes[inner] as CopyAxis]; // the plan names axes that there are
  const outer = axes.filter((_, axis) => axis !== along && axis !== inner);
  const blocks = counts({ side, across, down, outer }).reduce((product, count) => product * count, 1);
  return { side, across, down, outer, blocks };
}

/** Tiles along each axis. Those that are neighbours in the destination are at about the same time. */
function counts({ side, across, down, outer }: Omit<Tiles, "blocks">): number[] {
  return [...outer.map(({ extent }) => extent), Math.ceil(across.extent / side), Math.ceil(down.extent / side)];
}

/** The tile of a block, in 64-bit registers. */
export function tileOf(
  ptx: PtxWriter,
  { to, from }: { readonly to: Register; readonly from: Register },
  { word, fromWord }: CopyProblem,
  tiles: Tiles,
): Tile {
  const { side, outer, blocks } = tiles;
  const block = ptx.make("r", "mov.u32 $, %ctaid.x");
  const parts = takeApart(ptx, block, counts(tiles), blocks);
  let [source, target] = [from, to];
  outer.forEach((axis, i) => {
    source = advance(ptx, source, parts[i] as Register, axis.from * fromWord); // one part for each axis
    target = advance(ptx, target, parts[i] as Register, axis.to * word);
  });
  const [acrossTile, downTile] = parts.slice(-2) as [Register, Register]; // two counts are at the end
  const start = (tile: Register) => ptx.make("d", `mul.lo.s64 $, ${tile}, ${side}`);
  return { source, target, acrossStart: start(acrossTile), downStart: start(downTile) };
}
