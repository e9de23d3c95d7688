/**
 * Kernels that copy in the order of the destination.
 *
 * @module
 */
import type { CoalescedCopy, CopyAxis, WordSize } from "./coalesced_copy.ts";
import {
  advance,
  type CopyKernel,
  indexKind,
  load,
  moves,
  pointers,
  store,
  threadIndex,
  unravelIndex,
} from "./ptx_fragments.ts";
import { accessOf, converted } from "./ptx_conversion.ts";
import { PtxWriter } from "./ptx_writer.ts";

const threads = 256;

/** Words that each thread moves: all are read before the first is written. */
const usual = 4;

/** The same if the source has gaps, by the bytes of a word; measured to be the fastest on an H200. */
const withGaps: { readonly [word in WordSize]: number } = { 1: 8, 2: 8, 4: 4, 8: 2, 16: 1 };

/** A kernel that moves one word at a time. */
export function stridedKernel({ axes, word, fromWord, words, conversion }: CoalescedCopy): CopyKernel {
  const hasGaps = Math.abs(axes.at(-1)?.from ?? 1) > 1;
  const unrolled = hasGaps && conversion === null ? withGaps[word] : usual;
  const ptx = new PtxWriter();
  const { to, from } = pointers(ptx);
  const perBlock = threads * unrolled;
  const grid = Math.ceil(words / perBlock);
  const end = grid * perBlock;
  const kind = indexKind(end);
  const type = kind === "r" ? "u32" : "u64";
  const first = threadIndex(ptx, kind, perBlock);
  const extents = axes.map(({ extent }) => extent);
  const moved = Array.from({ length: unrolled }, (_, i) => {
    const index = i === 0 ? first : ptx.make(kind, `add.${type} $, ${first}, ${i * threads}`);
    const inside = ptx.make("p", `setp.lt.${type} $, ${index}, ${words}`);
    let [source, target] = [from, to];
    unravelIndex(ptx, index, extents, end).forEach((part, axis) => {
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
  return { ptx: ptx.program("copy"), grid, block: threads };
}
