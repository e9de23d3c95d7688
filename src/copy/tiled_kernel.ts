/**
 * Kernels that copy through tiles in shared memory: they read along one axis and write along another.
 *
 * @module
 */
import type { Tiled } from "./device_plan.ts";
import type { CoalescedCopy, CopyAxis, WordSize } from "./coalesced_copy.ts";
import {
  advance,
  type CopyKernel,
  indexKind,
  load,
  moves,
  plus,
  pointers,
  store,
  unravelIndex,
  widened,
} from "./ptx_fragments.ts";
import { accessOf, converted } from "./ptx_conversion.ts";
import { PtxWriter, type Register } from "./ptx_writer.ts";

/** Threads that read and write adjacent words. */
const warp = 32;

/** An axis of a tile, on one of the two sides. */
interface Side {
  /** Index of the tile along the axis. */
  readonly tile: Register;
  readonly extent: number;
  /** Bytes from element to element. */
  readonly step: number;
  /** Bytes from cell to cell in shared memory. */
  readonly pitch: number;
}

/** The unit that a thread moves: `lanes` words. */
interface Cell {
  /** Predicate: whether the cell exists. */
  readonly guard: string;
  /** Address where each word is read or written. */
  readonly addresses: readonly Register[];
  /** Address of each transposed word in shared memory. */
  readonly places: readonly string[];
}

// law copy/tiledKernel: copy/device_copy
/**
 * Adjacent threads read adjacent words of the source, and write adjacent words of the destination; in between the tile
 * is transposed.
 *
 * Here a word holds `lanes` of the problem's words: narrow ones are moved four bytes at a time. A thread reads the
 * words of as many adjacent rows, transposes them in registers, and stores them in shared memory as the words of as
 * many columns. Words that adjacent threads store are padded one word further apart than needed, so that no two threads
 * hit the same bank. Converted elements have one lane, and are converted when they leave the tile.
 */
export function tiledKernel(problem: CoalescedCopy, { along, lanes, cells, threads }: Tiled): CopyKernel {
  const { axes, conversion, word: size, fromWord: fromSize } = problem;
  const inner = axes.length - 1;
  const [across, down] = [axes[along] as CopyAxis, axes[inner] as CopyAxis]; // the plan names existing axes
  const word = fromSize * lanes as WordSize; // the plan chooses the lanes so that four bytes are moved
  const [read, written] = conversion === null
    ? [moves[word], moves[word]]
    : [accessOf(conversion.from, fromSize), accessOf(conversion.to, size)];
  const tile = cells * lanes;
  const outer = axes.filter((_, axis) => axis !== along && axis !== inner);
  // Tiles adjacent in the destination run at about the same time.
  const counts = [...outer.map(({ extent }) => extent), Math.ceil(across.extent / tile), Math.ceil(down.extent / tile)];
  const grid = counts.reduce((product, count) => product * count, 1);
  const pitch = cells * word + Math.max(4, word); // banks are four bytes wide
  const plane = cells * pitch;

  const ptx = new PtxWriter();
  const { to, from } = pointers(ptx);
  const parts = unravelIndex(ptx, ptx.make("r", "mov.u32 $, %ctaid.x"), counts, grid);
  let [source, target] = [from, to];
  outer.forEach((axis, i) => {
    source = advance(ptx, source, parts[i] as Register, axis.from * fromSize); // one part for each axis
    target = advance(ptx, target, parts[i] as Register, axis.to * size);
  });
  const [acrossTile, downTile] = parts.slice(-2) as [Register, Register]; // the last two counts are those of tiles
  const thread = ptx.make("r", "mov.u32 $, %tid.x");
  const column = ptx.make("r", `and.b32 $, ${thread}, ${warp - 1}`);
  const row = ptx.make("r", `shr.u32 $, ${thread}, ${Math.log2(warp)}`);
  const base = ptx.make("r", "mov.u32 $, tile");

  const kind = indexKind(Math.max(across.extent, down.extent) + tile);
  const type = kind === "r" ? "u32" : "u64";
  const index = (register: Register) => kind === "r" ? register : widened(ptx, register);
  /** The cells of this thread: every 32nd cell of each row of its warp. */
  const cellsOf = (start: Register, columns: Side, rows: Side): Cell[] => {
    const first = (cell: Register, tiles: Register) => {
      const element = ptx.make(kind, `mul.lo.${type} $, ${index(cell)}, ${lanes}`);
      return ptx.make(kind, `mad.lo.${type} $, ${index(tiles)}, ${tile}, ${element}`);
    };
    const [firstColumn, firstRow] = [first(column, columns.tile), first(row, rows.tile)];
    const origin = advance(ptx, advance(ptx, start, firstColumn, columns.step), firstRow, rows.step);
    const rowAt = ptx.make("r", `mad.lo.u32 $, ${row}, ${rows.pitch}, ${base}`);
    const at = ptx.make("r", `mad.lo.u32 $, ${column}, ${columns.pitch}, ${rowAt}`);
    const further = (element: Register, by: number) =>
      by === 0 ? element : ptx.make(kind, `add.${type} $, ${element}, ${by * lanes}`);
    return multiples(warp, cells).flatMap((right) => {
      const isColumn = ptx.make("p", `setp.lt.${type} $, ${further(firstColumn, right)}, ${columns.extent}`);
      return multiples(threads / warp, cells).map((below): Cell => {
        const isRow = `${further(firstRow, below)}, ${rows.extent}`;
        const corner = (right * columns.step + below * rows.step) * lanes;
        const place = right * columns.pitch + below * rows.pitch;
        return {
          guard: `@${ptx.make("p", `setp.lt.and.${type} $, ${isRow}, ${isColumn}`)} `,
          addresses: multiples(1, lanes).map((lane) => plus(ptx, origin, corner + lane * rows.step)),
          places: multiples(1, lanes).map((lane) => `${at}+${place + lane * plane}`),
        };
      });
    });
  };

  const readCells = cellsOf(
    source,
    { tile: acrossTile, extent: across.extent, step: across.from * fromSize, pitch },
    { tile: downTile, extent: down.extent, step: down.from * fromSize, pitch: word },
  );
  const loaded = readCells.map(({ guard, addresses }) =>
    addresses.map((address) => load(ptx, "global", read, address, guard))
  );
  readCells.forEach(({ places }, i) => {
    turned(ptx, loaded[i] ?? []).forEach((value, lane) => store(ptx, "shared", read, places[lane] ?? "", value));
  });
  ptx.line("bar.sync 0");
  const writtenCells = cellsOf(
    target,
    { tile: downTile, extent: down.extent, step: down.to * size, pitch: word },
    { tile: acrossTile, extent: across.extent, step: across.to * size, pitch },
  );
  for (const { guard, addresses, places } of writtenCells) {
    const values = places.map((place) => load(ptx, "shared", read, place));
    addresses.forEach((address, lane) => {
      const value = values[lane] ?? [];
      store(ptx, "global", written, address, conversion === null ? value : converted(ptx, conversion, value), guard);
    });
  }
  return { ptx: ptx.program("copy", lanes * plane), grid, block: threads };
}

/** The multiples of a number below another. */
function multiples(of: number, below: number): number[] {
  return Array.from({ length: below / of }, (_, i) => i * of);
}

// law copy/turned: copy/device_copy
/** Transposes words of as many elements each: word i of the result has element i of every word. */
function turned(ptx: PtxWriter, words: readonly Register[][]): Register[][] {
  if (words.length === 1) return [...words];
  const [a, b, c, d] = words.map(([register]) => register);
  const permute = (one: unknown, other: unknown, selector: string) =>
    ptx.make("r", `prmt.b32 $, ${one}, ${other}, 0x${selector}`);
  if (words.length === 2) return [[permute(a, b, "5410")], [permute(a, b, "7632")]];
  // Bytes: first pairs of words, then pairs of pairs.
  const [ab0, ab1] = [permute(a, b, "5140"), permute(a, b, "7362")];
  const [cd0, cd1] = [permute(c, d, "5140"), permute(c, d, "7362")];
  return [
    [permute(ab0, cd0, "5410")],
    [permute(ab0, cd0, "7632")],
    [permute(ab1, cd1, "5410")],
    [permute(ab1, cd1, "7632")],
  ];
}
