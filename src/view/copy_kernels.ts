/**
 * The PTX of copies, specialised for their layouts: every extent and step is a constant, so that the driver's compiler
 * turns divisions into multiplications and drops what is not needed.
 *
 * @module
 */
import type { Tiled } from "./copy_plan.ts";
import type { CopyAxis, CopyProblem, WordSize } from "./copy_problem.ts";
import { type Access, accessOf, converted } from "./ptx_conversion.ts";
import { PtxWriter, type Register } from "./ptx_writer.ts";

/** A kernel, and how it is launched. */
export interface CopyKernel {
  /** The program; the kernel in it is called `copy` and takes the addresses of the first words: destination, source. */
  readonly ptx: string;
  readonly grid: number;
  readonly block: number;
}

const threads = 256;

/** Words that each thread moves: all are read before the first is written. */
const usual = 4;

/** The same where the source has gaps, by the bytes of a word: as was fastest on an H200. */
const withGaps: { readonly [word in WordSize]: number } = { 1: 8, 2: 8, 4: 4, 8: 2, 16: 1 };

/** How a word of so many bytes is moved. */
const moves: { readonly [word in WordSize]: Access } = {
  1: { type: "u8", kind: "h", count: 1 },
  2: { type: "u16", kind: "h", count: 1 },
  4: { type: "u32", kind: "r", count: 1 },
  8: { type: "u64", kind: "d", count: 1 },
  16: { type: "v2.u64", kind: "d", count: 2 },
};

/** Reads a word into registers. */
function load(ptx: PtxWriter, space: "global" | "shared", access: Access, address: string, guard = ""): Register[] {
  const { type, kind, count } = access;
  const registers = Array.from({ length: count }, () => ptx.register(kind));
  ptx.line(`${guard}ld.${space}.${type} ${operand(registers)}, [${address}]`);
  return registers;
}

/** Writes a word from registers. */
function store(
  ptx: PtxWriter,
  space: "global" | "shared",
  { type }: Access,
  address: string,
  from: readonly Register[],
  guard = "",
): void {
  ptx.line(`${guard}st.${space}.${type} [${address}], ${operand(from)}`);
}

function operand(registers: readonly Register[]): string {
  return registers.length === 1 ? `${registers[0]}` : `{${registers.join(", ")}}`;
}

/** Addresses of the first words. */
function pointers(ptx: PtxWriter): { to: Register; from: Register } {
  const pointer = (name: string) =>
    ptx.make("d", `cvta.to.global.u64 $, ${ptx.make("d", `ld.param.u64 $, [${name}]`)}`);
  return { to: pointer("to"), from: pointer("from") };
}

/** `base + index * step`, the index being a 64-bit register. */
function advance(ptx: PtxWriter, base: Register, index: Register, step: number): Register {
  return step === 0 ? base : ptx.make("d", `mad.lo.s64 $, ${index}, ${step}, ${base}`);
}

/**
 * Takes an index apart into one for each extent, the last fastest.
 *
 * @param index 64-bit
 * @param isSmall whether it fits 32 bits, in which division is several times cheaper
 * @returns 64-bit registers
 */
function takeApart(ptx: PtxWriter, index: Register, extents: readonly number[], isSmall: boolean): Register[] {
  const [kind, type] = isSmall ? ["r", "u32"] as const : ["d", "u64"] as const;
  const wide = (register: Register) => isSmall ? ptx.make("d", `cvt.u64.u32 $, ${register}`) : register;
  let rest = isSmall ? ptx.make("r", `cvt.u32.u64 $, ${index}`) : index;
  const parts: Register[] = [];
  for (const extent of extents.slice(1).toReversed()) {
    const quotient = ptx.make(kind, `div.${type} $, ${rest}, ${extent}`);
    const product = ptx.make(kind, `mul.lo.${type} $, ${quotient}, ${extent}`);
    parts.unshift(wide(ptx.make(kind, `sub.${type} $, ${rest}, ${product}`)));
    rest = quotient;
  }
  return extents.length === 0 ? [] : [wide(rest), ...parts];
}

/** A copy in the order of the destination, one word at a time. */
export function stridedKernel({ axes, word, fromWord, words, conversion }: CopyProblem): CopyKernel {
  const hasGaps = Math.abs(axes.at(-1)?.from ?? 1) > 1;
  const unrolled = hasGaps && conversion === null ? withGaps[word] : usual;
  const ptx = new PtxWriter();
  const { to, from } = pointers(ptx);
  const perBlock = threads * unrolled;
  const thread = ptx.make("d", `cvt.u64.u32 $, ${ptx.make("r", "mov.u32 $, %tid.x")}`);
  const block = ptx.make("d", `cvt.u64.u32 $, ${ptx.make("r", "mov.u32 $, %ctaid.x")}`);
  const first = ptx.make("d", `mad.lo.s64 $, ${block}, ${perBlock}, ${thread}`);
  const extents = axes.map(({ extent }) => extent);
  const isSmall = words + perBlock < 2 ** 32;
  const moved = Array.from({ length: unrolled }, (_, i) => {
    const index = i === 0 ? first : ptx.make("d", `add.s64 $, ${first}, ${i * threads}`);
    const inside = ptx.make("p", `setp.lt.u64 $, ${index}, ${words}`);
    let [source, target] = [from, to];
    takeApart(ptx, index, extents, isSmall).forEach((part, axis) => {
      const { to, from } = axes[axis] as CopyAxis; // one part for each axis
      source = advance(ptx, source, part, from * fromWord);
      target = advance(ptx, target, part, to * word);
    });
    const access = conversion === null ? moves[word] : accessOf(conversion.from, fromWord);
    return { target, inside, value: load(ptx, "global", access, source, `@${inside} `) };
  });
  for (const { target, inside, value } of moved) {
    const [access, result] = conversion === null
      ? [moves[word], value]
      : [accessOf(conversion.to, word), converted(ptx, conversion, value)];
    store(ptx, "global", access, target, result, `@${inside} `);
  }
  return { ptx: ptx.program("copy"), grid: Math.ceil(words / perBlock), block: threads };
}

/** Words along each side of a tile; a row of threads moves a row of words. */
const side = 32;

/** Rows of threads. */
const rows = threads / side;

/**
 * A copy through tiles in shared memory. Threads side by side read words that lie side by side in the source, and write
 * words that lie side by side in the destination; between the two the tile is turned over.
 *
 * A word of a tile holds `lanes` elements: narrow ones are moved four bytes at a time. The tile then has `side * lanes` rows
 * of `side` words, and what one thread writes is made of the words that `lanes` rows have in one column. The rows stand in
 * shared memory in the order in which threads side by side want them, each one word longer than needed: so no two of
 * the threads meet in a bank. Elements that are converted have one lane, and are converted when they leave the tile.
 */
export function tiledKernel(problem: CopyProblem, { along, lanes }: Tiled): CopyKernel {
  const { axes, conversion, word: size, fromWord: fromSize } = problem;
  const inner = axes.length - 1;
  const [across, down] = [axes[along] as CopyAxis, axes[inner] as CopyAxis]; // the plan names axes that there are
  const word = fromSize * lanes as WordSize; // the plan takes so many lanes that four bytes are moved
  const [read, written] = conversion === null
    ? [moves[word], moves[word]]
    : [accessOf(conversion.from, fromSize), accessOf(conversion.to, size)];
  const tile = side * lanes;
  const outer = axes.filter((_, axis) => axis !== along && axis !== inner);
  const [acrossTiles, downTiles] = [Math.ceil(across.extent / tile), Math.ceil(down.extent / tile)];
  const blocks = outer.reduce((product, { extent }) => product * extent, acrossTiles * downTiles);
  const pitch = (side + 1) * word;

  const ptx = new PtxWriter();
  const { to, from } = pointers(ptx);
  const block = ptx.make("d", `cvt.u64.u32 $, ${ptx.make("r", "mov.u32 $, %ctaid.x")}`);
  // Tiles that are neighbours in the destination run at about the same time.
  const parts = takeApart(ptx, block, [...outer.map(({ extent }) => extent), acrossTiles, downTiles], true);
  const [acrossTile, downTile] = parts.slice(-2) as [Register, Register]; // two extents were added at the end
  let [source, target] = [from, to];
  outer.forEach((axis, i) => {
    source = advance(ptx, source, parts[i] as Register, axis.from * fromSize); // one part for each axis
    target = advance(ptx, target, parts[i] as Register, axis.to * size);
  });
  const thread = ptx.make("r", "mov.u32 $, %tid.x");
  const column = ptx.make("r", `and.b32 $, ${thread}, ${side - 1}`);
  const row = ptx.make("r", `shr.u32 $, ${thread}, ${Math.log2(side)}`);
  const [column64, row64] = [ptx.make("d", `cvt.u64.u32 $, ${column}`), ptx.make("d", `cvt.u64.u32 $, ${row}`)];
  const acrossStart = ptx.make("d", `mul.lo.s64 $, ${acrossTile}, ${tile}`);
  const downStart = ptx.make("d", `mul.lo.s64 $, ${downTile}, ${tile}`);
  const base = ptx.make("r", "mov.u32 $, tile");

  // Reading: this thread's word of the rows `row`, `row + rows`, ...
  const readAcross = ptx.make("d", `mad.lo.s64 $, ${column64}, ${lanes}, ${acrossStart}`);
  const readDown = ptx.make("d", `add.s64 $, ${downStart}, ${row64}`);
  const readInside = ptx.make("p", `setp.lt.u64 $, ${readAcross}, ${across.extent}`);
  let at = advance(ptx, advance(ptx, source, readAcross, across.from * fromSize), readDown, down.from * fromSize);
  const loaded = Array.from({ length: tile / rows }, (_, i) => {
    if (i > 0) at = ptx.make("d", `add.s64 $, ${at}, ${rows * down.from * fromSize}`);
    const index = ptx.make("d", `add.s64 $, ${readDown}, ${i * rows}`);
    const inside = ptx.make("p", `setp.lt.and.u64 $, ${index}, ${down.extent}, ${readInside}`);
    return load(ptx, "global", read, at, `@${inside} `);
  });
  // Row r = q * lanes + v stands at place v * side + q.
  const rowLane = ptx.make("r", `and.b32 $, ${row}, ${lanes - 1}`);
  const rowGroup = ptx.make("r", `shr.u32 $, ${row}, ${Math.log2(lanes)}`);
  const place = ptx.make("r", `mad.lo.u32 $, ${rowLane}, ${side}, ${rowGroup}`);
  const columnAt = ptx.make("r", `mad.lo.u32 $, ${column}, ${word}, ${base}`);
  const storeAt = ptx.make("r", `mad.lo.u32 $, ${place}, ${pitch}, ${columnAt}`);
  loaded.forEach((value, i) => {
    store(ptx, "shared", read, `${storeAt}+${i * (rows / lanes) * pitch}`, value);
  });
  ptx.line("bar.sync 0");

  // Writing: of the words in column `row`, `row + rows`, ... those of the rows from `column * lanes` on.
  const writeDown = ptx.make("d", `mad.lo.s64 $, ${column64}, ${lanes}, ${downStart}`);
  const writeAcross = ptx.make("d", `mad.lo.s64 $, ${row64}, ${lanes}, ${acrossStart}`);
  const writeInside = ptx.make("p", `setp.lt.u64 $, ${writeDown}, ${down.extent}`);
  let into = advance(ptx, advance(ptx, target, writeDown, down.to * size), writeAcross, across.to * size);
  const turnedAt = ptx.make("r", `mad.lo.u32 $, ${column}, ${pitch}, ${base}`);
  const loadAt = ptx.make("r", `mad.lo.u32 $, ${row}, ${word}, ${turnedAt}`);
  for (let i = 0; i < side / rows; i++) {
    if (i > 0) into = ptx.make("d", `add.s64 $, ${into}, ${rows * lanes * across.to * size}`);
    const words = Array.from(
      { length: lanes },
      (_, lane) => load(ptx, "shared", read, `${loadAt}+${lane * side * pitch + i * rows * word}`),
    );
    turned(ptx, words, lanes).forEach((value, lane) => {
      const index = ptx.make("d", `add.s64 $, ${writeAcross}, ${i * rows * lanes + lane}`);
      const inside = ptx.make("p", `setp.lt.and.u64 $, ${index}, ${across.extent}, ${writeInside}`);
      const result = conversion === null ? value : converted(ptx, conversion, value);
      store(ptx, "global", written, `${into}+${lane * across.to * size}`, result, `@${inside} `);
    });
  }
  return { ptx: ptx.program("copy", side * lanes * pitch), grid: blocks, block: threads };
}

/** Words of `lanes` elements each, turned over: word i of the result has element i of every word. */
function turned(ptx: PtxWriter, words: readonly Register[][], lanes: number): Register[][] {
  if (lanes === 1) return [...words];
  const [a, b, c, d] = words.map(([register]) => register);
  const permute = (one: unknown, other: unknown, selector: string) =>
    ptx.make("r", `prmt.b32 $, ${one}, ${other}, 0x${selector}`);
  if (lanes === 2) return [[permute(a, b, "5410")], [permute(a, b, "7632")]];
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
